"""The jobs of a parameter sweep as loops: what differs between them becomes the elements of a loop.

Commands, files, environment and resources may hold expressions, so jobs that differ in these only are one loop. Those
that differ in anything else, such as a limit, are a loop each."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.data.url_passwords import password_in
from mendflow.core.expressions import literal, plain_text
from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity, Parallel
from mendflow.core.model.values import Value
from mendflow.formats.loops import iteration_files, iteration_outputs

MAPS: Final = ("env", "inputs", "files", "publish")
VARIABLE: Final = "job"
SHORT: Final = {"memory_bytes": "memory", "disk_bytes": "disk", "wall_ms": "time"}
WORD: Final = re.compile(r"[\w.+-]+|[^\w.+-]", re.ASCII)
_encode = msgspec.json.Encoder(order="deterministic").encode


def swept_flow(name: str, jobs: Sequence[JobActivity], first: Flow) -> Flow:
    """The flow of a sweep with these jobs, of which the first is that of the flow `first`."""
    groups: dict[bytes, list[JobActivity]] = {}
    for job in jobs:
        groups.setdefault(_shape(job), []).append(replace(job, name=name))
    names = [name, *(f"{name}-{n}" for n in range(2, len(groups) + 1))]
    loops = [_loop(each, group) for each, group in zip(names, groups.values(), strict=True)]
    body: Activity = (
        loops[0] if len(loops) == 1 else Parallel(name=f"{name}.sweep", branches=tuple(loops), on_fault="finish")
    )
    streams = {stream: _joined(stream, loops) for stream in first.outputs}
    return replace(first, name=first.name, body=body, outputs=streams)


def _joined(stream: str, loops: Sequence[ForEach]) -> str:
    """The streams of all jobs, as one list."""
    lists = [f"jobs.`{each.name}`.files.{stream}" for each in loops if stream in each.collect_files]
    return f"${{{{ {' + '.join(lists)} }}}}"


def _shape(job: JobActivity) -> bytes:
    """What of a job no expression can say."""
    bare = replace(job, name="", command="", env={}, inputs={}, files={}, publish={})
    resources = {key: None for key in msgspec.structs.asdict(job.resources)}
    inner = {name: _map_shape(getattr(job, name)) for name in MAPS}
    return _encode([replace(bare, resources=type(job.resources)()), resources, inner, job.command is None])


def _map_shape(given: Mapping[str, Any]) -> Any:
    """Names of variables and paths of inputs may differ, names of files may not: they are what others ask for."""
    if any(not isinstance(each, str) for each in given.values()):
        return [[key, each.overwrite, bool(each.url), bool(each.logical)] for key, each in given.items()]
    return len(given)


def _loop(name: str, jobs: Sequence[JobActivity]) -> ForEach:
    items = LoopItems(len(jobs))
    first = jobs[0]
    publish = {
        key: replace(
            each,
            url=items.text(key, [job.publish[key].url for job in jobs]),
            logical=items.text(key, [job.publish[key].logical for job in jobs]),
        )
        for key, each in first.publish.items()
    }
    resources = {
        key: items.value(SHORT.get(key, key), [getattr(job.resources, key) for job in jobs])
        for key in msgspec.structs.asdict(first.resources)
    }
    body = replace(
        first,
        name=f"{name}.iteration",
        label=name,
        command=items.text("command", [job.command for job in jobs]),
        env=items.map([job.env for job in jobs]),
        inputs=items.map([job.inputs for job in jobs]),
        files=items.map([job.files for job in jobs]),
        publish=publish,
        resources=type(first.resources)(**resources),
    )
    return ForEach(
        name=name,
        body=body,
        items=items.items,
        variable=VARIABLE,
        on_fault="finish",
        collect=iteration_outputs(body),
        collect_files=iteration_files(body),
    )


class LoopItems:
    """Gathers what differs: an element of the loop is a map with a name for each difference."""

    def __init__(self, count: int) -> None:
        self.items: list[dict[str, Value]] = [{} for _ in range(count)]

    def map(self, given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One map for all, by the places of its entries."""
        rows = zip(*(each.items() for each in given), strict=True)
        found = {}
        for row in rows:
            key = self.text("name", [name for name, _ in row])
            found[key] = self.text(row[0][0], [value for _, value in row])
        return found

    def text(self, name: str, given: Sequence[Any]) -> Any:
        """The template that gives each its text. What all begin and end with stays in it."""
        if all(each == given[0] for each in given):
            return given[0]
        texts = [plain_text(each) or "" for each in given]
        if len({password_in(text) for text in texts}) > 1:
            return self._name_it(name, texts)  # so that it is found, and sealed
        rows = [WORD.findall(text) for text in texts]
        head = "".join(_common(rows)).rstrip("$")  # which would make a literal of the expression behind it
        texts = ["".join(row)[len(head) :] for row in rows]
        tail = "".join(_common([WORD.findall(text)[::-1] for text in texts])[::-1])
        inner = [text[: len(text) - len(tail)] for text in texts]
        return f"{literal(head)}{self._name_it(name, inner)}{literal(tail)}"

    def value(self, name: str, given: Sequence[Any]) -> Any:
        if all(each == given[0] for each in given):
            return given[0]
        return self._name_it(name, [list(each) if isinstance(each, tuple) else each for each in given])

    def _name_it(self, name: str, values: Sequence[Value]) -> str:
        name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name).strip("_") or "value"
        name = f"v_{name}" if name[0].isdigit() else name
        taken = self.items[0]
        name = next(each for n in range(1, 1 << 30) if (each := name if n == 1 else f"{name}_{n}") not in taken)
        for item, value in zip(self.items, values, strict=True):
            item[name] = literal(value) if isinstance(value, str) else value
        return f'${{{{ {VARIABLE}["{name}"] }}}}'


def _common(rows: Sequence[Sequence[str]]) -> list[str]:
    """The words that all begin with."""
    words = []
    for row in zip(*rows, strict=False):
        if any(each != row[0] for each in row):
            break
        words.append(row[0])
    return words
