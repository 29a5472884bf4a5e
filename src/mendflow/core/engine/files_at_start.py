"""Which paths of input files are known before a case begins.

A job that waits for no other begins with its case, and nothing in the flow can make its files first. If their paths
come from the flow and the case's inputs alone, they can be looked for before the case is started. What stands behind a
condition may never run, and is left alone."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from mendflow.core.engine.activities.foreach import place_names
from mendflow.core.engine.activities.job import each_file
from mendflow.core.engine.item_ids import item_id, path_of
from mendflow.core.expressions import ExpressionError, resolve
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.flow import Activity, Assign, Empty, Flow, ForEach, JobActivity, Parallel, Scope, Sequence
from mendflow.core.model.values import Value

PATHS_MAX: Final = 1_000
"""How many paths are looked at: the first iterations of a very long loop stand for the rest."""

INSTANT: Final = (Empty, Assign)
"""What takes no time, so that what follows begins with the case too."""


class FileAtStart(NamedTuple):
    """A path that a job reads as soon as its case begins. `key` is where the file stands in the job's folder."""

    item: str
    key: str
    source: str


class _First(NamedTuple):
    """A job that begins with its case, with the values that it may ask for."""

    job: JobActivity
    names: Mapping[str, Value]
    path: str


def files_at_start(flow: Flow, inputs: Mapping[str, Value]) -> list[FileAtStart]:
    """The paths on the server's machine that jobs of this case read at its start. A URL or a logical name is none."""
    if flow.xml is not None:
        return []
    known = {name: declared.default for name, declared in flow.inputs.items() if not declared.required}
    given = {**known, **inputs}
    found = (each for first in _first_jobs(flow.body, {"inputs": given}, "") for each in _paths_of(first))
    return list(islice(found, PATHS_MAX))


def _first_jobs(activity: Activity, names: Mapping[str, Value], path: str) -> Iterator[_First]:
    if activity.targets or activity.when is not None:
        return
    match activity:
        case JobActivity():
            yield _First(activity, names, path)
        case Scope(body=body):
            hidden = {name: value for name, value in names.items() if name not in activity.variables}
            yield from _first_jobs(body, hidden, path)
        case Parallel(branches=branches):
            for branch in branches:
                yield from _first_jobs(branch, names, path)
        case Sequence(body=body):
            after = next((each for each in body if not isinstance(each, INSTANT)), None)
            if after is not None:
                yield from _first_jobs(after, names, path)
        case ForEach():
            yield from _first_iterations(activity, names, path)
        case _:
            return


def _first_iterations(loop: ForEach, names: Mapping[str, Value], path: str) -> Iterator[_First]:
    axes = loop.axes or {loop.variable: loop.items}
    try:
        lists = {name: resolve(given, names.__getitem__) for name, given in axes.items()}
    except ExpressionError:
        return
    if not all(isinstance(each, list) and each for each in lists.values()):
        return
    sizes = [len(each) for each in lists.values()]
    total = min(sizes) if loop.zip else math.prod(sizes)
    for place in range(min(total, PATHS_MAX) if loop.parallel else 1):
        at = place_names(lists, place, zipped=loop.zip)
        yield from _first_jobs(loop.body, {**names, **at, "index": place}, path_of(path, place))


def _paths_of(first: _First) -> Iterator[FileAtStart]:
    job, item = first.job, item_id(first.job.label or first.job.name, first.path)
    for key, template in job.inputs.items():
        try:
            wanted = resolve(template, first.names.__getitem__)
        except ExpressionError:
            continue
        for place, source in each_file({key: wanted}):
            if isinstance(source, str) and source and "://" not in source and not source.startswith(LOGICAL_PREFIX):
                yield FileAtStart(item, place, source)
