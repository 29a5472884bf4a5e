"""The part of the domain that puts two cases beside each other and shows what differs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from mendflow.core.model.comparisons import CasesCompared, JobDifference, JobSide, ValueDifference
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.jobs import Job
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView, NameCount
from mendflow.lazy import LazyModule
from mendflow.services.api.timeline_operations import TimelineOperations
from mendflow.services.base.cluster import JOB_KIND

if TYPE_CHECKING:
    import statistics

    from mendflow.services.api.timeline_index import TimedEntry
else:
    statistics = LazyModule("statistics")

DIFFERENCES_MAX: Final = 500
DEPTH_MAX: Final = 20
SAMPLES_OF_NAME_MAX: Final = 20
SAMPLES_MAX: Final = 1_000
"""How many jobs of a case are read to find two for the same element."""
LONGER: Final = 1.25
LONGER_MS: Final = 1_000
_decode_job = msgspec.json.Decoder(Job).decode
Sides = dict[str, JobSide]
Items = dict[str, list["TimedEntry"]]


class ComparisonOperations(TimelineOperations):
    async def compare_cases(self, case: str, other: str) -> CasesCompared:
        for each in (case, other):
            if self._foreign(each) is not None:
                raise InvalidRequest(f"{each} is another engine's case: only cases of this server are compared")
        left, right = await self.case(case), await self.case(other)
        ours, theirs = await self._items_by_name(left), await self._items_by_name(right)
        mine, others = await self._samples(left, ours or {}), await self._samples(right, theirs or {})
        pairs = {name: _same_element(mine.get(name, ()), others.get(name, ())) for name in {**mine, **others}}
        return CasesCompared(
            left=left.id,
            right=right.id,
            inputs=value_differences(_in_effect(left), _in_effect(right)),
            outputs=value_differences(left.outputs, right.outputs),
            flow_changed=(left.flow, left.digest) != (right.flow, right.digest),
            statuses=[left.status, right.status],
            jobs=job_differences(
                _sides(left, ours, {name: pair[0] for name, pair in pairs.items()}),
                _sides(right, theirs, {name: pair[1] for name, pair in pairs.items()}),
            ),
            is_whole=ours is not None and theirs is not None,
        )

    async def _items_by_name(self, view: CaseView) -> Items | None:
        """None while the items of the case are still being read."""
        index = await self._index(await self._document(view.id))
        if index is None:
            return None
        by_name: Items = {}
        for entry in index.items():
            by_name.setdefault(entry.name, []).append(entry)
        return by_name

    async def _samples(self, view: CaseView, items: Items) -> dict[str, list[Job]]:
        """The first jobs of each name."""
        most = min(SAMPLES_OF_NAME_MAX, max(1, SAMPLES_MAX // max(1, len(items))))
        ids = [
            f"{view.id}/{each.serial}" for found in items.values() if found[0].kind == "job" for each in found[:most]
        ]
        stored = {each.id: each.body for each in await (await self._read()).get_many(JOB_KIND, ids)}
        jobs: dict[str, list[Job]] = {}
        for job in [_decode_job(stored[id]) for id in ids if id in stored]:
            jobs.setdefault(job.name, []).append(job)
        return jobs


def _same_element(left: Sequence[Job], right: Sequence[Job]) -> tuple[Job | None, Job | None]:
    """A job of each side to be compared: for the same element of their loops, as commands of different ones differ
    anyway, and if possible one that ended differently. Where no element is on both sides, the first of each."""
    others = {job.spec.element: job for job in reversed(right)}
    pairs = [(job, others[job.spec.element]) for job in left if job.spec.element in others]
    first = (next(iter(left), None), next(iter(right), None))
    return next((pair for pair in pairs if pair[0].state != pair[1].state), next(iter(pairs), first))


def _sides(view: CaseView, items: Items | None, samples: Mapping[str, Job | None]) -> Sides:
    """What each name came to."""
    if items is None:
        return {each.name: _counted(each) for each in view.counts}
    return {name: _side(found, samples.get(name)) for name, found in items.items()}


def _in_effect(view: CaseView) -> dict[str, Value]:
    """What the case worked on: what it was given, and what its flow has for all else, as far as the case kept it."""
    return {**view.defaults, **view.inputs}


def _counted(count: NameCount) -> JobSide:
    states = {"completed": count.done, "failed": count.failed, "cached": count.cached, "skipped": count.skipped}
    states |= {"running": count.running, "waiting": count.waiting, "cancelled": count.cancelled}
    known = {state: number for state, number in states.items() if number}
    return JobSide(count=sum(known.values()), states=known)


def _side(entries: Sequence["TimedEntry"], job: Job | None) -> JobSide:
    states: dict[str, int] = {}
    for each in entries:
        states[each.state] = states.get(each.state, 0) + 1
    runs = [each.end - each.busy for each in entries if each.end and each.busy]
    side = JobSide(
        count=len(entries),
        states=states,
        run_ms=max(0, statistics.median_low(runs)) if runs else 0,
        sample=job.spec.item if job is not None else entries[0].item,
    )
    if job is None:
        return side
    function = job.spec.function
    return msgspec.structs.replace(
        side,
        command=f"{function.module}:{function.name}" if function is not None else job.spec.command or "",
        container=job.spec.container.image if job.spec.container is not None else "",
        image=job.outcome.image if job.outcome is not None else "",
        resources=msgspec.to_builtins(job.spec.resources),
    )


def job_differences(left: Sides, right: Sides) -> list[JobDifference]:
    found = []
    for name in dict.fromkeys((*left, *right)):
        ours, theirs = left.get(name), right.get(name)
        if differences := _differences(ours, theirs):
            found.append(JobDifference(name=name, left=ours, right=theirs, differences=differences))
    return found


def _differences(left: JobSide | None, right: JobSide | None) -> list[str]:
    if left is None or right is None:
        return ["only-right" if left is None else "only-left"]
    words = ("count", "states", "command", "container", "image", "resources")
    found = [word for word in words if getattr(left, word) != getattr(right, word)]
    short, long = sorted((left.run_ms, right.run_ms))
    return [*found, "run_ms"] if long > short * LONGER and long - short > LONGER_MS else found


def value_differences(left: Value, right: Value) -> list[ValueDifference]:
    """The values that differ, by their paths; at most so many."""
    return list(islice(_values(left, right, "", 0), DIFFERENCES_MAX))


def _values(left: Value, right: Value, path: str, depth: int) -> Iterator[ValueDifference]:
    if left == right and type(left) is type(right):
        return
    ours, theirs = _members(left), _members(right)
    if type(left) is not type(right) or not (ours or theirs) or depth >= DEPTH_MAX:
        yield ValueDifference(path=path, left=left, right=right)
        return
    for name in dict.fromkeys((*ours, *theirs)):
        at = f"{path}{name}" if path else name.removeprefix(".")
        if name not in theirs:
            yield ValueDifference(path=at, left=ours[name], only="left")
        elif name not in ours:
            yield ValueDifference(path=at, right=theirs[name], only="right")
        else:
            yield from _values(ours[name], theirs[name], at, depth + 1)


def _members(value: Value) -> dict[str, Value]:
    """The parts of a map or a list, by what is added to the path; of anything else there are none. A file is one value:
    its name and its digest belong together."""
    if isinstance(value, dict) and "$file" in value:
        return {}
    if isinstance(value, dict):
        return {f".{name}": each for name, each in value.items()}
    return {f"[{place}]": each for place, each in enumerate(value)} if isinstance(value, list) else {}
