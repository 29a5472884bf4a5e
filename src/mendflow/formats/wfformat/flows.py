"""Converts a trace to a flow: each task is a job, each dependency a link, each file an output that later jobs read.

Times and sizes are scaled, each by its own factor. The flow and the simulator's model of a job come from the same data,
so a run and its simulation are comparable."""

import hashlib
from collections.abc import Callable
from math import ceil
from pathlib import PurePosixPath
from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.templates import ResourceTemplates, Template
from mendflow.core.model.values import FileRef
from mendflow.formats.links import JobNeeds, parallel_with_links
from mendflow.formats.names import NAME, NAME_CHARS_MAX
from mendflow.formats.wfformat.model import Trace, TraceTask
from mendflow.formats.wfformat.program import INPUTS, command_for, digest_of
from mendflow.lazy import lazy_pattern

SIZE_SCALE: Final = 0.0001
"""Traces have gigabytes; on a laptop the total is limited to this."""

MEMORY_BYTES_MIN: Final = 64 * 1024 * 1024
"""A job may not use more memory than it asks for, and the stand-in for a task needs at least this."""

SCALE_MAX: Final = 1_000_000.0
FILE_CHARS_MAX: Final = 60
KEPT_CHARS_MAX: Final = 200
_UNUSUAL: Final = lazy_pattern(r"[^A-Za-z0-9_-]+")
_UNUSUAL_IN_FILES: Final = lazy_pattern(r"[^A-Za-z0-9_.+-]+")


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """By what times and sizes are multiplied. Where `cores_most` and `memory_bytes_most` are given, no job asks for
    more: one that asks for what is nowhere would wait for ever."""

    time: float = 1.0
    size: float = SIZE_SCALE
    cores_most: float = 0.0
    memory_bytes_most: int = 0

    def seconds(self, task: TraceTask) -> float:
        return (task.runtime_s or 0.0) * self.time

    def bytes(self, size: int) -> int:
        """What is there at all is never scaled to nothing."""
        return ceil(size * self.size)


class TaskWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does: for how long, and which files it makes, by the names that they have in the flow."""

    seconds: float
    files: dict[str, int] = {}


class TraceFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A trace made ready: the flow, and what each of its jobs does, by the job's name."""

    flow: Flow
    works: dict[str, TaskWork]


InputTemplate = Callable[[str, int], Template]
"""How a file that was there before stands in the flow, by its id and its scaled size."""


def by_content(file: str, size: int) -> Template:
    """As a stored file with the content that it will have, when somebody has given it to the server."""
    name = stored_name(file)
    return FileRef(sha256=digest_of(name, size), bytes=size, name=name).as_value()


def by_name(file: str, size: int) -> Template:
    """As a file that nobody ever reads: in the simulator its name stands for its content."""
    digest = hashlib.sha256(f"{file} {size}".encode()).hexdigest()
    return FileRef(sha256=digest, bytes=size, name=stored_name(file)).as_value()


def as_flow(trace: Trace, scale: Scale, given: InputTemplate = by_content) -> TraceFlow:
    """The trace as a flow, with its times and sizes scaled."""
    check_scale(scale)
    making = _FlowBuilder(trace, scale, given)
    jobs = {making.names[each.id]: making.awaited(each) for each in trace.tasks.values()}
    works = {making.names[each.id]: making.work(each) for each in trace.tasks.values()}
    name = flow_name(trace.name)
    body = parallel_with_links(f"{name}.tasks", jobs, "finish")
    return TraceFlow(flow=Flow(name=FlowName(name), body=body, description=trace.description), works=works)


def check_scale(scale: Scale) -> None:
    for word, factor in (("time", scale.time), ("size", scale.size)):
        if not 0 <= factor <= SCALE_MAX:
            raise InvalidRequest(
                f"the scale of {word}s is {factor}; give a number from 0 to {SCALE_MAX:,.0f}, such as 0.01"
            )


class _FlowBuilder:
    """A flow while it is made: what its jobs and their files are called."""

    def __init__(self, trace: Trace, scale: Scale, given: InputTemplate) -> None:
        self.names = job_names(trace)
        self._sizes = {file: scale.bytes(size) for file, size in trace.sizes.items()}
        self._given = {file: given(file, self._sizes[file]) for file in trace.initial_files}
        self._scale = scale
        self._keys = {
            task.id: {file: f"f{number}" for number, file in enumerate(task.makes, 1)} for task in trace.tasks.values()
        }

    def awaited(self, task: TraceTask) -> JobNeeds:
        keys = self._keys[task.id]
        inputs = {
            f"{INPUTS}/{numbered_file_name(place, file)}": self._source(task, file)
            for place, file in enumerate(task.reads, 1)
        }
        paths = {file: numbered_file_name(place, file) for place, file in enumerate(task.makes, 1)}
        makes = {path: (file, self._sizes[file]) for file, path in paths.items()}
        job = JobActivity(
            name=self.names[task.id],
            command=command_for(self._scale.seconds(task), reads=bool(inputs), makes=makes),
            inputs=inputs,
            files={keys[file]: path for file, path in paths.items()},
            link_inputs=True,
            resources=_resources(task, self._scale),
            priority=task.priority,
        )
        return JobNeeds(job, tuple(self.names[each] for each in task.needs))

    def work(self, task: TraceTask) -> TaskWork:
        files = {key: self._sizes[file] for file, key in self._keys[task.id].items()}
        return TaskWork(seconds=self._scale.seconds(task), files=files)

    def _source(self, task: TraceTask, file: str) -> Template:
        maker = task.made_by.get(file)
        if maker is None:
            return self._given[file]
        return f"${{{{ jobs.{self.names[maker]}.files.{self._keys[maker][file]} }}}}"


def _resources(task: TraceTask, scale: Scale) -> ResourceTemplates:
    """What the trace says that the task had, and nothing that it does not say."""
    cores = min(task.cores, scale.cores_most or task.cores)
    memory_bytes = max(task.memory_bytes, MEMORY_BYTES_MIN) if task.memory_bytes else 0
    return ResourceTemplates(cpus=cores or 1.0, memory_bytes=min(memory_bytes, scale.memory_bytes_most or memory_bytes))


def flow_name(name: str) -> str:
    return _as_name(name.removesuffix(".json")) or "trace"


def job_names(trace: Trace) -> dict[str, str]:
    """A name for each task that looks like its id, and is its own."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for task in trace.tasks:
        wanted = name = _as_name(task) or "task"
        number = 1
        while name in taken:
            number += 1
            end = f"-{number}"
            name = wanted[: NAME_CHARS_MAX - len(end)] + end
        taken.add(name)
        names[task] = name
    return names


def _as_name(text: str) -> str:
    name = _UNUSUAL.sub("_", text).strip("-")[:NAME_CHARS_MAX].strip("-")
    if name and not NAME.fullmatch(name):
        name = f"t{name}"[:NAME_CHARS_MAX].rstrip("-")
    return name


def numbered_file_name(place: int, file: str) -> str:
    """The last part of a file's id, as any shell and any disk takes it, with a number that makes it the only one."""
    return f"{place}-{_UNUSUAL_IN_FILES.sub('_', PurePosixPath(file).name)[-FILE_CHARS_MAX:]}"


def stored_name(file: str) -> str:
    """The whole id, as the server takes the names of files."""
    return _UNUSUAL_IN_FILES.sub("_", file)[-KEPT_CHARS_MAX:].strip("_") or "file"
