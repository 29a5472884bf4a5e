"""The jobs of an earlier case, and which of their results can be used for a job of a later one."""

from collections.abc import Iterable, Sequence
from typing import Final

from mendflow.core.model.ids import ItemId, JobId, item_name
from mendflow.core.model.jobs import Job, JobSpec, JobState
from mendflow.core.recovery.ids import flow_job_id, generation_of, serial_of
from mendflow.core.results.result_key import base_of, differences, result_key
from mendflow.core.results.reuse_checks import why_never, why_not_kept

JOBS_COMPARED: Final = 200
"""Among how many jobs of its name the one is looked for that is nearest to a new one, so that what has changed can be
said."""

JOBS_READ_MAX: Final = 2000
"""How many jobs of a name are read of one earlier case, to see for which elements of a loop there was one."""

NEW: Final = "new: "
"""How the reason of a job begins that is for an element which no earlier case had."""

AGAIN: Final = "run again: "
"""How the reason of a job begins whose earlier result was not used."""

PASSED_OVER: Final = "not taken from the cache, although there is a result: "
"""How the reason of a job begins whose result was there and would have been used only if somebody had asked for it."""

IF_ASKED: Final = "; --cached, or `cache: true` in the job, uses it"
"""How it ends."""

_DIFFERENCES_SHOWN: Final = 3


def why_rerun(name: str, again: Sequence[str]) -> str:
    """The reason of an item that runs because whoever starts the case wants these to run again."""
    if name in again:
        return f"{AGAIN}{name} was to run again, whatever is known"
    return f"{AGAIN}it depends on what was to run again: {', '.join(again)}"


class EarlierResults:
    """The jobs of an earlier case: by item, and those that completed by what they were made from. What a repair made
    with other settings is found by what the flow had asked for, too: it was the result of that item there."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        first: dict[JobId, Job] = {}
        self._by_item: dict[ItemId, Job] = {}
        for job in sorted(jobs, key=lambda each: (serial_of(each.id), generation_of(each.id))):
            first.setdefault(flow_job_id(job.id), job)
            self._by_item[job.spec.item] = job
        self._by_key: dict[str, list[Job]] = {}
        self._by_name: dict[str, NamedJobs] = {}
        self._taken: set[JobId] = set()
        for job in self._by_item.values():
            if job.state is not JobState.COMPLETED or job.outcome is None or why_not_kept(job.outcome):
                continue
            if not why_never(job.spec):
                for base in {_base(job), _base(first[flow_job_id(job.id)])}:
                    self._by_key.setdefault(base, []).append(job)

    def take(self, item: ItemId, base: str) -> Job | None:
        """A job that was made from the same, each once only; that of the same item, if there is one."""
        made = self._by_key.get(base, [])
        while made and made[0].id in self._taken:
            del made[0]
        if not made:
            return None
        place = next((place for place, job in enumerate(made) if job.spec.item == item), 0)
        if made[place].id in self._taken:
            place = 0
        self._taken.add(made[place].id)
        return made.pop(place)

    def why_not(self, spec: JobSpec) -> str:
        name = item_name(spec.item)
        if (known := self._by_name.get(name)) is None:
            known = self._by_name[name] = NamedJobs([job for job in self._by_item.values() if job.name == name])
        same = self._by_item.get(spec.item)
        earlier = same if same is not None and same.spec.element == spec.element else known.nearest_to(spec)
        if earlier is None and spec.element and known.jobs:
            return new_element(spec)
        if earlier is None:
            return "the earlier case had no such item"
        if earlier.state is not JobState.COMPLETED or earlier.outcome is None:
            return "it did not complete in the earlier case"
        never = why_never(spec) or why_not_kept(earlier.outcome)
        return never or summary(earlier.spec, spec) or "another job made from the same has its result"


class NamedJobs:
    """Jobs of one name, of earlier cases. `whole`: there were no others. In a loop a job is compared with those for the
    same element, wherever that stood in the list: one for an element that is new has not changed, it is new."""

    def __init__(self, jobs: Sequence[Job], *, whole: bool = True) -> None:
        self.jobs = jobs
        self._whole = whole
        self._by_element: dict[str, list[Job]] = {}
        for job in jobs:
            self._by_element.setdefault(job.spec.element, []).append(job)

    def nearest_to(self, spec: JobSpec) -> Job | None:
        """The job that this one is to be compared with; None if there was none like it."""
        alike = self._by_element.get(spec.element)
        if alike is None and spec.element and self._whole:
            return None
        return nearest((alike or self.jobs)[:JOBS_COMPARED], spec)


def _base(job: Job) -> str:
    return base_of(job.key) or result_key(job.spec)


def new_element(spec: JobSpec) -> str:
    return f"{NEW}no earlier case had {spec.element} here"


def nearest(jobs: Iterable[Job], spec: JobSpec) -> Job | None:
    """The job that differs in the fewest parts; of several one that completed, of these the one of the same item, else
    the first."""

    def distance(job: Job) -> tuple[int, bool, bool]:
        return len(differences(job.spec, spec)), job.state is not JobState.COMPLETED, job.spec.item != spec.item

    return min(jobs, key=distance, default=None)


def summary(before: JobSpec, after: JobSpec) -> str:
    """What has changed from one job to the other, in a line; empty if nothing has."""
    found = differences(before, after)
    inputs = [each for each in found if each.startswith("its input")]
    if len(inputs) > 1:
        found = [each for each in found if each not in inputs]
        found.append(f"{len(inputs)} inputs changed, the first: {inputs[0]}")
    more = len(found) - _DIFFERENCES_SHOWN
    return "; ".join(found[:_DIFFERENCES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
