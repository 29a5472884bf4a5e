"""A trace: tasks that ran once, somewhere, with their times and files.

All versions of the format are converted to this. Tasks are in the order of the file; dependencies are in one place,
whether the file states them at the parent, at the child, or only through a file."""

from typing import Final

import msgspec

VERSIONS: Final = ("1.4", "1.5", "1.6")


class TraceTask(msgspec.Struct, frozen=True, kw_only=True):
    """`needs` are tasks that must be over before. `made_by` maps a file that it reads to the task that makes it; what
    it reads and nobody makes in time was there before. What the trace does not say of it is None or zero."""

    id: str
    program: str = ""
    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    made_by: dict[str, str] = {}
    runtime_s: float | None = None
    cores: float = 0.0
    memory_bytes: int = 0
    priority: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """`sizes` has the bytes of every file. `makespan_s` is what the whole took where it was recorded, on so many
    `machines` with so many `machine_cores` together, and `system` what ran it there; 0 and empty: not said."""

    name: str
    version: str
    tasks: dict[str, TraceTask]
    sizes: dict[str, int] = {}
    description: str = ""
    makespan_s: float = 0.0
    machines: int = 0
    machine_cores: int = 0
    system: str = ""

    @property
    def initial_files(self) -> list[str]:
        """The files that were there before, in the order in which they are first read."""
        return list(
            dict.fromkeys(file for task in self.tasks.values() for file in task.reads if file not in task.made_by)
        )
