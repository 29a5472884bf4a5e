"""What waits for something that does not come by itself: a limit that nobody has set, or a pilot that could take it."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, Instant, JobId, item_name
from mendflow.core.model.jobs import Job
from mendflow.core.model.projects import is_quota_name
from mendflow.core.recovery.ids import serial_of
from mendflow.core.scheduling.queue import WaitingGroup
from mendflow.services.base.alerts import AlertFinding
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.membership import OwnMembership
from mendflow.services.observe.findings import limit_finding, no_pilot_finding
from mendflow.services.scheduling.facts import FarWaits
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.waiting_reasons import WaitingReasons

UNSET_MS = 60_000
"""How long a job waits for a limit that nobody has set before that is told: whoever starts it may be about to."""

ALIKE_JOBS_MAX = 1_000
"""Of waiting jobs with the same needs, so many are looked at."""


class Lack(NamedTuple):
    """What no pilot could ever take, and since when that is so."""

    finding: AlertFinding
    since: Instant


class _Lacking(NamedTuple):
    job: Job
    why: str
    since: Instant


class UnmetNeeds:
    def __init__(self, meta: PilotScheduler, hub: Hub, clock: Clock, membership: OwnMembership) -> None:
        self._meta = meta
        self._hub = hub
        self._clock = clock
        self._membership = membership

    def unset_limits(self) -> Iterator[AlertFinding]:
        """What waits for a limit that nobody has set, of each limit what has waited longest."""
        queue, longest = self._meta.queue, dict[str, WaitingGroup]()
        for group in queue.limited():
            for name, _ in group.needs.named_limits:
                if name in queue.limits.free or is_quota_name(name):
                    continue
                known = longest.get(name)
                older = group if known is None or group.since < known.since else known
                jobs = group.jobs + (known.jobs if known is not None else 0)
                longest[name] = msgspec.structs.replace(older, jobs=jobs)
        for name, group in longest.items():
            if self._clock.now() - group.since >= UNSET_MS and group.first in self._meta.jobs:
                yield limit_finding(name, group, self._meta.jobs[group.first])

    def without_pilot(self, waiting: Iterable[WaitingGroup], told: Collection[JobId]) -> Iterator[Lack]:
        """What no pilot there is could ever take, of each task of a case once. Jobs that people were `told` of stand
        for their tasks as long as they wait, however far behind others."""
        lacking = [*self._near_the_first(waiting), *self._elsewhere()]
        seen = {each.job.id for each in lacking}
        lacking += [each for id in told if id not in seen and (each := self._alone(id)) is not None]
        tasks: dict[tuple[CaseId, str], list[_Lacking]] = {}
        for each in sorted(lacking, key=lambda each: (each.job.id not in told, _waited_longer(each.job))):
            tasks.setdefault((each.job.case, item_name(each.job.spec.item)), []).append(each)
        for like in tasks.values():
            finding = no_pilot_finding([each.job for each in like], like[0].why, self._membership.id)
            yield Lack(finding, min(each.since for each in like))

    def _near_the_first(self, waiting: Iterable[WaitingGroup]) -> Iterator[_Lacking]:
        for group in waiting:
            if not group.has_pilot and (why := self._why_stuck(group.first)):
                for id in self._meta.queue.similar_jobs(group.first, ALIKE_JOBS_MAX):
                    yield _Lacking(self._meta.jobs[id], why, group.unable_since)

    def _alone(self, id: JobId) -> _Lacking | None:
        why = self._why_stuck(id) if id in self._meta.queue else ""
        return _Lacking(self._meta.jobs[id], why, self._clock.now()) if why else None

    def _elsewhere(self) -> Iterator[_Lacking]:
        far = self._hub.provider(FarWaits)
        for job, since in far.stuck_jobs() if far is not None else ():
            yield _Lacking(job, "no pilot can take it, here or in the domain that it was given to", since)

    def _why_stuck(self, id: JobId) -> str:
        """Why no pilot there is could ever take it; empty if it has room enough, a pilot for it was submitted, or a
        limit is all that it waits for."""
        reasons = self._hub.provider(WaitingReasons)
        told = reasons.of(id, is_of_many=True) if reasons is not None else None
        return told.sentence if told is not None and told.stuck and not told.needs_limit else ""


def _waited_longer(job: Job) -> tuple[Instant, Instant, int]:
    return job.available_at, job.created_at, serial_of(job.id)
