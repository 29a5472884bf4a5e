"""Counts what ends: decisions about failures, and jobs. Only additions to counts in memory; no job waits for it.

Jobs that have just completed, as most do, are summed up by case, and the sums are added to the counts when somebody
asks for these: that takes a fraction of what counting each by itself does."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from mendflow.core.learning.group_statistics import (
    GroupStatistics,
    LearnedFailure,
    count_again,
    count_failure,
    empty_group,
    merge_groups,
)
from mendflow.core.learning.usage import (
    UNCOUNTED_ENDS,
    CompletedJobs,
    UsageStatistics,
    count_job,
    day_of,
    merge_usage,
)
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.jobs import Attempt, Job
from mendflow.core.model.repair import ExceptionType
from mendflow.core.recovery.own_words import own_words
from mendflow.core.recovery.signature import signature
from mendflow.services.cases.flows import OF_PROJECT
from mendflow.services.recovery.failures import group_id

REMEMBERED_JOBS_MAX: Final = 20_000
GROUPS_MAX: Final = 5_000
"""Of more causes than this, those that come last are not learned from: something makes every message different."""
RESUBMISSION_MARK: Final = "~"
CASES_AT_ONCE: Final = 256
"""Sums are added up when there are those of so many cases."""

V = TypeVar("V")


class _EndedJobs:
    """What has ended of one case on one day."""

    __slots__ = ("completed", "day", "flow")

    def __init__(self, flow: str, day: int) -> None:
        self.flow = flow
        self.day = day
        self.completed = CompletedJobs()


class FailureCounter:
    """What was counted since it was last taken. `flow_of` is by what the flow of a job's case is counted, empty if
    unknown."""

    def __init__(self, flow_of: Callable[[Job], str]) -> None:
        self._flow_of = flow_of
        self._groups: dict[str, GroupStatistics] = {}
        self._usage: dict[tuple[str, int], UsageStatistics] = {}
        self._ended: dict[CaseId, _EndedJobs] = {}
        self._failed_at: OrderedDict[str, Instant] = OrderedDict()  # of submissions that failed, by the job's own id

    @property
    def groups(self) -> dict[str, GroupStatistics]:
        self._count_ended()
        return self._groups

    @property
    def usage(self) -> dict[tuple[str, int], UsageStatistics]:
        self._count_ended()
        return self._usage

    def take(self) -> tuple[list[GroupStatistics], list[UsageStatistics]]:
        groups, usage = list(self.groups.values()), list(self.usage.values())
        self._groups, self._usage = {}, {}
        return groups, usage

    def put_back(self, groups: Sequence[GroupStatistics], usage: Sequence[UsageStatistics]) -> None:
        """Take up again what could not be stored; more may have been counted meanwhile."""
        for group in groups:
            if (newer := self.groups.get(group.id)) is not None:
                merge_groups(group, newer)
            self.groups[group.id] = group
        for each in usage:
            if (later := self.usage.get((each.flow, each.day))) is not None:
                merge_usage(each, later)
            self.usage[each.flow, each.day] = each

    def count_failure(self, failure: LearnedFailure) -> None:
        group = self.groups.get(failure.group)
        if group is None:
            if len(self.groups) >= GROUPS_MAX:
                return
            group = self.groups[failure.group] = empty_group(failure)
        group.category, group.name = group.category or failure.category, group.name or failure.name
        count_failure(group, failure)

    def count_jobs(self, jobs: Sequence[Job]) -> None:
        """They are over."""
        for job in jobs:
            ended, day = self._ended.get(job.case), day_of(job.finished_at)
            if ended is None or ended.day != day:
                ended = self._ended_jobs_of(job, day)
                if ended is None:
                    continue
            history = job.history
            if len(history) == 1 and history[0].end == "completed" and RESUBMISSION_MARK not in job.id:
                ended.completed.add(job, history[0])
            else:
                self._count_mended(self._usage_of(ended.flow, day), job, ended.flow)

    def _ended_jobs_of(self, job: Job, day: int) -> _EndedJobs | None:
        """What has ended of the job's case on that day. None if its flow is unknown, as those of others are."""
        flow = self._flow_of(job)
        if not flow:
            return None
        if job.case in self._ended or len(self._ended) >= CASES_AT_ONCE:
            self._count_ended()
        ended = self._ended[job.case] = _EndedJobs(flow, day)
        return ended

    def _count_ended(self) -> None:
        """Add the sums to the counts."""
        if not self._ended:
            return
        all_ended, self._ended = self._ended, {}
        for ended in all_ended.values():
            if ended.completed.jobs:
                ended.completed.add_to(self._usage_of(ended.flow, ended.day))

    def _usage_of(self, flow: str, day: int) -> UsageStatistics:
        usage = self._usage.get((flow, day))
        if usage is None:
            usage = self._usage[flow, day] = UsageStatistics(flow=flow, day=day)
        return usage

    def _count_mended(self, usage: UsageStatistics, job: Job, flow: str) -> None:
        """Count a job that has failed, or was tried more than once."""
        own = job.id.partition(RESUBMISSION_MARK)[0]
        causes = {
            each.fence: self._count_attempt(job, place, flow) for place, each in enumerate(job.history) if each.fault
        }
        count_job(usage, job, causes, resubmitted_after=self._failed_at.pop(own, 0))
        if job.outcome is not None and job.outcome.fault is not None:
            _remember(self._failed_at, own, job.finished_at)

    def _count_attempt(self, job: Job, place: int, flow: str) -> str:
        """Count a failed attempt for its cause, and what came of the next one, which the queue has begun by itself."""
        attempt = job.history[place]
        assert attempt.fault is not None
        name = flow.partition(OF_PROJECT)[0]
        cause = signature(attempt.fault, own_words(job.spec, name))
        if attempt.end in UNCOUNTED_ENDS:
            return cause
        id = group_id(ExceptionType.ABORT, cause)
        group = self._groups.get(id)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                return cause
            group = GroupStatistics(id=id, type=ExceptionType.ABORT, signature=cause)
            group.category, group.name = attempt.fault.category.value, attempt.fault.name
            self._groups[id] = group
        group.lost_attempts += 1
        group.lost_ms += max(0, attempt.ended_at - attempt.granted_at)
        after = next_attempt(job.history, place)
        if after is not None:
            count_again(group, name, helped=after.end == "completed")
        return cause


def next_attempt(attempts: list[Attempt], place: int) -> Attempt | None:
    """The next one that says something."""
    return next((each for each in attempts[place + 1 :] if each.end not in UNCOUNTED_ENDS), None)


def _remember(known: OrderedDict[str, V], key: str, value: V) -> None:
    known[key] = value
    if len(known) > REMEMBERED_JOBS_MAX:
        known.popitem(last=False)
