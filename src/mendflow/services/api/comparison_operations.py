"""The part of the domain that puts two cases beside each other and shows what differs."""

from collections.abc import Iterator, Sequence
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
LONGER: Final = 1.25
LONGER_MS: Final = 1_000
_decode_job = msgspec.json.Decoder(Job).decode
Sides = dict[str, JobSide]


class ComparisonOperations(TimelineOperations):
    async def compare_cases(self, case: str, other: str) -> CasesCompared:
        for each in (case, other):
            if self._foreign(each) is not None:
                raise InvalidRequest(f"{each} is another engine's case: only cases of this server are compared")
        left, right = await self.case(case), await self.case(other)
        (ours, ours_whole), (theirs, theirs_whole) = await self._sides(left), await self._sides(right)
        return CasesCompared(
            left=left.id,
            right=right.id,
            inputs=value_differences(_in_effect(left), _in_effect(right)),
            outputs=value_differences(left.outputs, right.outputs),
            flow_changed=(left.flow, left.digest) != (right.flow, right.digest),
            statuses=[left.status, right.status],
            jobs=job_differences(ours, theirs),
            is_whole=ours_whole and theirs_whole,
        )

    async def _sides(self, view: CaseView) -> tuple[Sides, bool]:
        """What each name came to, and whether all items were looked at."""
        index = await self._index(await self._document(view.id))
        if index is None:
            return {each.name: _counted(each) for each in view.counts}, False
        by_name: dict[str, list[TimedEntry]] = {}
        for entry in index.items():
            by_name.setdefault(entry.name, []).append(entry)
        samples = [f"{view.id}/{found[0].serial}" for found in by_name.values() if found[0].kind == "job"]
        jobs = {
            job.name: job
            for found in await (await self._read()).get_many(JOB_KIND, samples)
            for job in (_decode_job(found.body),)
        }
        return {name: _side(found, jobs.get(name)) for name, found in by_name.items()}, True


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
        sample=entries[0].item,
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
