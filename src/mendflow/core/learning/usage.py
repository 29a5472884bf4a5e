"""What jobs have cost: time and memory of attempts that completed, that failed, that were asked for and not used, and
the time that jobs waited. By flow and day, so that a report can begin at any day, and old days stay small."""

from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Attempt, Job
from mendflow.core.model.learning import LostTime

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
HOUR_DIGITS: Final = 6
"""Of hours that are told: milliseconds are not lost."""

GB: Final = 1_000_000_000
CAUSES_MAX: Final = 200
UNCOUNTED_ENDS: Final = frozenset({"", "returned", "cancelled", "requeued"})
"""Ends of an attempt that say nothing of the job or its place: somebody wanted them, or nothing was begun."""
QUEUE: Final = "waiting for a pilot"
OTHER_CAUSES: Final = "all other causes"


class CauseCost(msgspec.Struct):
    count: int = 0
    ms: int = 0
    gb_ms: float = 0.0

    def add(self, ms: int, memory_bytes: int, count: int = 1) -> None:
        self.count += count
        self.ms += ms
        self.gb_ms += ms * memory_bytes / GB


class PlaceCount(msgspec.Struct):
    attempts: int = 0
    failed: int = 0


class UsageStatistics(msgspec.Struct, kw_only=True):
    """One flow on one day. `failed` and `waits` are by cause; `asked` is what was asked for and not used."""

    flow: str
    day: int
    jobs: int = 0
    attempts: int = 0
    useful: CauseCost = msgspec.field(default_factory=CauseCost)
    asked: CauseCost = msgspec.field(default_factory=CauseCost)
    failed: dict[str, CauseCost] = {}
    waits: dict[str, CauseCost] = {}
    hosts: dict[str, PlaceCount] = {}
    sites: dict[str, PlaceCount] = {}


def day_of(at: Instant) -> int:
    return at // DAY_MS


def count_job(usage: UsageStatistics, job: Job, causes: dict[int, str], *, resubmitted_after: Instant = 0) -> None:
    """Add a job that is over. `causes` has the causes of its failed attempts, by fence. `resubmitted_after` is when the
    submission before this one had failed."""
    usage.jobs += 1
    asked_bytes = job.spec.resources.memory_bytes
    waited_from, waited_for = (resubmitted_after or job.created_at), QUEUE
    if resubmitted_after:
        waited_for = "after a failure"
    for attempt in job.history:
        if attempt.granted_at > waited_from:
            cause_cost(usage.waits, waited_for).add(attempt.granted_at - waited_from, 0)
        if attempt.end not in UNCOUNTED_ENDS:
            _count_attempt(usage, attempt, asked_bytes, causes)
        waited_from, waited_for = attempt.ended_at or attempt.granted_at, "after a failure"


class CompletedJobs:
    """Sums up jobs whose only attempt has completed, as most do: the same as `count_job` for each. A job is read while
    it is at hand, and not kept."""

    __slots__ = ("asked", "hosts", "jobs", "sites", "useful_byte_ms", "useful_ms", "wait_ms", "waits")

    def __init__(self) -> None:
        self.jobs = self.waits = self.wait_ms = self.useful_ms = self.useful_byte_ms = 0
        self.asked = CauseCost()
        self.hosts: dict[str, int] = {}
        self.sites: dict[str, int] = {}

    def add(self, job: Job, only: Attempt) -> None:
        granted_at = only.granted_at
        self.jobs += 1
        waited_ms = granted_at - job.created_at
        if waited_ms > 0:
            self.waits += 1
            self.wait_ms += waited_ms
        ms = only.ended_at - granted_at
        if ms < 0:
            ms = 0
        asked_bytes, peak_bytes = job.spec.resources.memory_bytes, only.measures.peak_bytes
        self.useful_ms += ms
        self.useful_byte_ms += ms * (asked_bytes or peak_bytes)
        if asked_bytes > peak_bytes > 0:
            self.asked.add(ms, asked_bytes - peak_bytes)
        host, site = only.host, only.site
        if host:
            self.hosts[host] = self.hosts.get(host, 0) + 1
        if site:
            self.sites[site] = self.sites.get(site, 0) + 1

    def add_to(self, usage: UsageStatistics) -> None:
        usage.jobs += self.jobs
        usage.attempts += self.jobs
        if self.waits:
            _add(cause_cost(usage.waits, QUEUE), CauseCost(self.waits, self.wait_ms))
        _add(usage.useful, CauseCost(self.jobs, self.useful_ms, self.useful_byte_ms / GB))
        _add(usage.asked, self.asked)
        for places, counted in ((usage.hosts, self.hosts), (usage.sites, self.sites)):
            for name, attempts in counted.items():
                places.setdefault(name, PlaceCount()).attempts += attempts


def _count_attempt(usage: UsageStatistics, attempt: Attempt, asked_bytes: int, causes: dict[int, str]) -> None:
    usage.attempts += 1
    ms = max(0, attempt.ended_at - attempt.granted_at)
    completed = attempt.end == "completed"
    if attempt.host:
        _count_place(usage.hosts, attempt.host, completed)
    if attempt.site:
        _count_place(usage.sites, attempt.site, completed)
    if not completed:
        cause_cost(usage.failed, causes.get(attempt.fence, attempt.end)).add(ms, asked_bytes)
        return
    peak_bytes = attempt.measures.peak_bytes
    usage.useful.add(ms, asked_bytes or peak_bytes)
    if asked_bytes > peak_bytes > 0:
        usage.asked.add(ms, asked_bytes - peak_bytes)


def _count_place(places: dict[str, PlaceCount], name: str, completed: bool) -> None:
    place = places.get(name)
    if place is None:
        place = places[name] = PlaceCount()
    place.attempts += 1
    if not completed:
        place.failed += 1


def cause_cost(costs: dict[str, CauseCost], cause: str) -> CauseCost:
    """The cost of a cause. If there are too many causes, the rest is summed up as one."""
    known = costs.get(cause)
    if known is not None:
        return known
    if len(costs) >= CAUSES_MAX:
        cause = OTHER_CAUSES
    return costs.setdefault(cause, CauseCost())


def merge_usage(into: UsageStatistics, more: UsageStatistics) -> None:
    into.jobs += more.jobs
    into.attempts += more.attempts
    for cost, other in ((into.useful, more.useful), (into.asked, more.asked)):
        _add(cost, other)
    for costs, others in ((into.failed, more.failed), (into.waits, more.waits)):
        for cause, other in others.items():
            _add(cause_cost(costs, cause), other)
    for places, more_places in ((into.hosts, more.hosts), (into.sites, more.sites)):
        for name, counted in more_places.items():
            place = places.setdefault(name, PlaceCount())
            place.attempts += counted.attempts
            place.failed += counted.failed


def _add(cost: CauseCost, other: CauseCost) -> None:
    cost.count += other.count
    cost.ms += other.ms
    cost.gb_ms += other.gb_ms


def total_usage(all_usage: Iterable[UsageStatistics], since: Instant, flow: str = "") -> dict[str, UsageStatistics]:
    """By flow, from the day of that moment on."""
    totals: dict[str, UsageStatistics] = {}
    for usage in all_usage:
        if usage.day >= day_of(since) and flow in ("", usage.flow):
            merge_usage(totals.setdefault(usage.flow, UsageStatistics(flow=usage.flow, day=0)), usage)
    return totals


def lost_time(usage: UsageStatistics) -> list[LostTime]:
    """What was lost in the jobs of a flow, the most first."""
    found = [_lost(usage.flow, "failed attempts", cause, cost) for cause, cost in usage.failed.items()]
    if usage.asked.count:
        found.append(
            _lost(usage.flow, "over-asking", "memory that was asked for and not used", usage.asked, hours=False)
        )
    found += [_lost(usage.flow, "waits", cause, cost) for cause, cost in usage.waits.items() if cost.ms]
    return sorted(found, key=lambda each: (each.loss, -each.hours, -each.gb_hours))


def _lost(flow: str, loss: str, cause: str, cost: CauseCost, *, hours: bool = True) -> LostTime:
    return msgspec.convert(
        {
            "flow": flow,
            "loss": loss,
            "cause": cause,
            "count": cost.count,
            "hours": round(cost.ms / HOUR_MS, HOUR_DIGITS) if hours else 0.0,
            "gb_hours": round(cost.gb_ms / HOUR_MS, HOUR_DIGITS),
        },
        LostTime,
    )
