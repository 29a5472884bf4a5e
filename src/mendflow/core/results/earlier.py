"""The jobs of an earlier case, and which of their results can be used for a job of a later one."""

from collections.abc import Iterable
from typing import Final

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Job, JobSpec, JobState
from mendflow.core.results.declared import why_never
from mendflow.core.results.key import base_of, differences, result_key

JOBS_COMPARED: Final = 200
"""Among how many jobs of its name the one is looked for that is nearest to a new one, so that what has changed can be
said."""

_DIFFERENCES_SHOWN: Final = 3


class EarlierResults:
    """The jobs of an earlier case: by item, and those that completed by what they were made from."""

    def __init__(self, jobs: dict[ItemId, Job]) -> None:
        self._by_item = jobs
        self._by_key: dict[str, list[Job]] = {}
        for job in jobs.values():
            if job.state is JobState.COMPLETED and job.outcome is not None and not why_never(job.spec):
                self._by_key.setdefault(base_of(job.key) or result_key(job.spec), []).append(job)

    def take(self, item: ItemId, base: str) -> Job | None:
        """A job that was made from the same, each once only; that of the same item, if there is one."""
        made = self._by_key.get(base)
        if not made:
            return None
        return made.pop(next((place for place, job in enumerate(made) if job.spec.item == item), 0))

    def why_not(self, spec: JobSpec) -> str:
        named = [job for job in self._by_item.values() if job.name == spec.item.partition("[")[0]]
        earlier = self._by_item.get(spec.item) or nearest(named[:JOBS_COMPARED], spec)
        if earlier is None:
            return "the earlier case had no such item"
        if earlier.state is not JobState.COMPLETED or earlier.outcome is None:
            return "it did not complete in the earlier case"
        return why_never(spec) or summary(earlier.spec, spec) or "another job made from the same has its result"


def nearest(jobs: Iterable[Job], spec: JobSpec) -> Job | None:
    """The job that differs in the fewest parts; of several the one of the same item, else the first."""
    return min(jobs, key=lambda job: (len(differences(job.spec, spec)), job.spec.item != spec.item), default=None)


def summary(before: JobSpec, after: JobSpec) -> str:
    """What has changed from one job to the other, in a line; empty if nothing has."""
    found = differences(before, after)
    inputs = [each for each in found if each.startswith("its input")]
    if len(inputs) > 1:
        found = [each for each in found if each not in inputs]
        found.append(f"{len(inputs)} inputs changed, the first: {inputs[0]}")
    more = len(found) - _DIFFERENCES_SHOWN
    return "; ".join(found[:_DIFFERENCES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
