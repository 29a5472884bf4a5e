"""What waits for something that does not come by itself: a limit that nobody has set, or a pilot that could take it."""

from collections.abc import Iterable, Iterator

import msgspec

from mendflow.core.model.ids import CaseId, item_name
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

    def without_pilot(self, unable_ms: int) -> Iterator[AlertFinding]:
        """What no pilot there is could ever take, for so long: of each task of a case once."""
        now, reasons, far = self._clock.now(), self._hub.provider(WaitingReasons), self._hub.provider(FarWaits)
        for group in self._meta.waiting():
            told = reasons.of(group.first, is_of_many=True) if reasons is not None and not group.has_pilot else None
            if told is None or told.needs_limit or not told.stuck:
                continue  # it has room enough, a pilot for it was submitted, or a limit is all that it waits for
            if now - group.unable_since >= unable_ms:
                ids = self._meta.queue.similar_jobs(group.first, ALIKE_JOBS_MAX)
                yield from self._by_task([self._meta.jobs[id] for id in ids], told.sentence)
        stuck = [job for job, since in (far.stuck_jobs() if far is not None else ()) if now - since >= unable_ms]
        yield from self._by_task(stuck, "no pilot can take it, here or in the domain that it was given to")

    def _by_task(self, jobs: Iterable[Job], why: str) -> Iterator[AlertFinding]:
        tasks: dict[tuple[CaseId, str], list[Job]] = {}
        for job in sorted(jobs, key=lambda each: (each.available_at, each.created_at, serial_of(each.id))):
            tasks.setdefault((job.case, item_name(job.spec.item)), []).append(job)
        for like in tasks.values():
            yield no_pilot_finding(like, why, self._membership.id)
