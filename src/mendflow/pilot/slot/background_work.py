"""What a script has started in the background and not waited for.

When a script has ended, so has its job, and whatever still runs is killed: what it was to write is cut off. A command
at the end of `> >(gzip > log.gz)` needs a moment more than the script, so what is in the script's session gets that
moment. What is still there afterwards is named, and what it was writing: the author is told to `wait` for it. A process
with a session of its own is a daemon (`gpg-agent`), and no work of the script's."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.pilot.slot.processes import children, session_of

GRACE_MS: Final = 1_000
ADVICE: Final = "`wait` at the end of a script waits for what it has started"
NAMED_MAX: Final = 5
COMMAND_CHARS_MAX: Final = 80
_PAUSE_S: Final = 0.001
_PAUSE_MAX_S: Final = 0.02


class LeftRunning(NamedTuple):
    """What ran when the script had ended: the commands, and the files of the job's folder that they were writing."""

    commands: list[str]
    writing: set[str]

    def sentence(self) -> str:
        names = ", ".join(f"`{each}`" for each in self.commands[:NAMED_MAX])
        more = f" and {len(self.commands) - NAMED_MAX:,} more" if len(self.commands) > NAMED_MAX else ""
        verb = "was" if len(self.commands) == 1 else "were"
        return f"its script ended while {names}{more} {verb} still running in the background, and {verb} ended too"

    def fault(self, paths: Iterable[str]) -> Fault | None:
        """If it was writing one of these files, which are the job's declared outputs."""
        cut = sorted(self.writing.intersection(paths))
        if not cut:
            return None
        message = f"{self.sentence()}: {', '.join(cut[:NAMED_MAX])} may be incomplete; {ADVICE}"
        return Fault(
            name="unfinishedOutput",
            category=Category.OUTPUT,
            message=message,
            stage=AttemptStage.STAGE_OUT,
            file=cut[0],
        )


def wait_for_background(
    running: Callable[[], list[int]], session: int, folder: str, *, grace_ms: int, drain: Callable[[], object]
) -> LeftRunning | None:
    """Wait until nothing of the session runs, or the time is over; what is left then. `running` are the processes of
    the job, `drain` takes what they print."""
    until, pause_s = time.monotonic() + grace_ms / 1000, _PAUSE_S
    while pids := [pid for pid in running() if session_of(pid) == session]:
        if time.monotonic() >= until:
            return _left(pids, folder)
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _PAUSE_MAX_S)
        drain()
    return None


def _left(pids: list[int], folder: str) -> LeftRunning:
    """A process that waits for others of them, as a subshell does, is not named."""
    inner = [pid for pid in pids if not set(children(pid)) & set(pids)]
    return LeftRunning([_command_of(pid) for pid in inner], {each for pid in pids for each in _written(pid, folder)})


def _command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as text:
            words = text.read(4096).split(b"\0")
    except OSError:
        words = []
    command = " ".join(" ".join(each.decode(errors="replace").split()) for each in words).strip() or f"process {pid}"
    return command if len(command) <= COMMAND_CHARS_MAX else command[: COMMAND_CHARS_MAX - 1] + "…"


def _written(pid: int, folder: str) -> Iterable[str]:
    """The files below the folder that a process has open to write."""
    below = os.path.realpath(folder) + os.sep
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for descriptor in descriptors:
        try:
            path = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if path.startswith(below) and _is_for_writing(pid, descriptor):
                yield path[len(below) :]
        except (OSError, ValueError):
            continue


def _is_for_writing(pid: int, descriptor: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{descriptor}", "rb", buffering=0) as text:
        flags = next((line for line in text.read().splitlines() if line.startswith(b"flags:")), b"flags: 0")
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
