"""The monitor of a server: it looks periodically at what the server has in memory, and at the other servers.

No job waits for it. Each server checks its own jobs, pilots, queue and levels; all servers check the other servers, and
the first that finds a problem raises the alert. A look that fails because the store is unreachable is skipped: the next
one finds the same."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Protocol

from mendflow.core.model.alerts import AlertKind, AlertView, Notification
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job
from mendflow.core.scheduling.queue import WaitingGroup
from mendflow.services.base.alerts import (
    AlertDocument,
    AlertFinding,
    AlertRaised,
    AlertStore,
    ProblemFound,
    UnhandledFailures,
)
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.watched_files import WatchedFileStore
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.observe.alert_closing import AlertClosing
from mendflow.services.observe.findings import (
    GrowthTracker,
    delivery_finding,
    files_finding,
    held_finding,
    job_finding,
    level_finding,
    paused_finding,
    pilot_finding,
    queue_finding,
    server_finding,
)
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.observe.notifications.notifier import DeliveryFailures
from mendflow.services.observe.runtimes import RuntimeEstimator
from mendflow.services.observe.unmet_needs import Lack, UnmetNeeds
from mendflow.services.scheduling.facts import PilotLost, PilotPaused
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.monitor")

RAISED_MAX = 50
"""How many alerts of one kind are raised at one look; the next look raises more, if they last."""

LOST_PILOTS_MAX = 1_000


class LevelCounts(Protocol):
    def counts(self) -> dict[int, int]: ...
    def wait_ms(self, level: int) -> int: ...


class Monitor:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        rules: MonitorSettings,
        membership: OwnMembership,
        manager: FlowManager,
        meta: PilotScheduler,
        levels: LevelCounts,
        ledger: Ledger,
        hub: Hub,
        files: WatchedFileStore,
    ) -> None:
        self._clock = clock
        self._started_at = clock.now()
        self._rules = rules
        self._membership = membership
        self._manager = manager
        self._meta = meta
        self._levels = levels
        self._unmet_needs = UnmetNeeds(meta, hub, clock, membership)
        self._files = files
        self.alerts = AlertStore(store, clock, lambda: membership.id, kept_ms=rules.kept_ms, hub=hub)
        self.runtimes = RuntimeEstimator(store, learn_min=rules.learn_min)
        self._queue_growth = GrowthTracker(rules.queue_looks)
        self._level_growth = GrowthTracker(rules.queue_looks)
        self._lost_pilots: list[AlertFinding] = []
        self._hub = hub
        self._ledger = ledger
        self._announced: list[str] = []
        self._found: dict[str, AlertFinding] = {}
        self._raising: asyncio.Task[None] | None = None
        self._unable: list[Lack] = []  # at the last look
        self._closing = AlertClosing(
            self.alerts,
            store=store,
            clock=clock,
            ledger=ledger,
            membership=membership,
            meta=meta,
            hub=hub,
            lasting=self._lasting,
            is_ongoing=self._is_ongoing,
        )
        hub.subscribe(PilotPaused, lambda _: self.look_at_disks())
        hub.subscribe(PilotLost, lambda lost: self.pilot_lost(lost.pilot))
        hub.subscribe(AlertRaised, lambda raised: self._alert_raised(raised.alert))
        hub.subscribe(ProblemFound, lambda found: self._problem_found(found.finding))
        hub.provide(DeliveryFailures, self)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="monitor")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        await self._closing.stop()
        if self._raising is not None:
            await self._raising

    # Reports of other services

    def pilot_lost(self, pilot: PilotRecord) -> None:
        """A pilot's lease has ended, and the pilot has not signed off. The server that it was connected to reports it;
        if that server has ended too, all that knew the pilot do, about the same episode."""
        now = self._clock.now()
        leaving = pilot.ends_at and now >= pilot.ends_at
        if not pilot.seen_at or leaving or pilot.submission or len(self._lost_pilots) >= LOST_PILOTS_MAX:
            return  # a pilot that was submitted is replaced if it is needed, and its site reports what became of it
        if not pilot.front:
            episode = f"{self._membership.id}-{pilot.newest}"
        elif self._membership.find(pilot.front) is None:
            episode = f"with {pilot.front}-{self._incarnation(pilot.front)}"
        else:
            return
        self._lost_pilots.append(pilot_finding(pilot, episode, lease_ms=self._meta.leases.lease_ms))

    async def delivery_failed(self, to: str, notification: Notification, why: str) -> None:
        """A notification could not be delivered to a receiver in the time allowed."""
        await self.alerts.raise_(delivery_finding(to, notification, why, self._clock.now()))

    def _problem_found(self, finding: AlertFinding) -> None:
        """Raise it at once: the server may end before the next look, as one does that runs a single case."""
        if not self.alerts.is_known(finding) and len(self._found) < RAISED_MAX:
            self._found[finding.id] = finding
            if self._raising is None or self._raising.done():
                self._raising = asyncio.create_task(self._raise_found(), name="alerts")

    async def _raise_found(self) -> None:
        while self._found:
            finding = self._found.pop(next(iter(self._found)))
            try:
                await self.alerts.raise_(finding)
            except StoreUnavailable as error:
                log.warning("%s: %s (the store is away: %s)", finding.kind, finding.sentence, error.message)

    def _alert_raised(self, alert: AlertDocument) -> None:
        """The notifier has recorded it for clients, too: when that is on disk, the alert is marked as told."""
        self._announced.append(alert.id)

    async def acknowledge(self, id: str, *, who: str) -> AlertView:
        return await self.alerts.acknowledge(id, who=who)

    # Looking

    def look_at_disks(self) -> None:
        """A disk has become full: raise that at once."""
        for finding in self._full_disks():
            self._problem_found(finding)

    def disk_problems(self) -> list[str]:
        """Sentences about disks that are full, or cannot be written."""
        return [finding.sentence for finding in self._full_disks()]

    def _full_disks(self) -> list[AlertFinding]:
        paused = [pilot for pilot in self._meta.own_pilots() if pilot.lacks_room]
        found = [paused_finding(pilot) for pilot in paused[:RAISED_MAX]]
        if problem := self._files.problem:
            found.insert(0, files_finding(self._membership.id, problem, self._files.problem_since))
        return found

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(self._rules.look_ms)
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("the monitor could not look for problems: %s; trying again", error.message)
            except Exception:  # a monitor that stops silently would be the worst failure: the next look may succeed
                log.exception("the monitor could not look for problems; trying again")

    async def look(self) -> None:
        if not self._membership.may_promise():
            return  # others may have its cases by now: what it has in memory proves nothing
        self.alerts.forget_unwritten()
        await self.alerts.read()
        await self.runtimes.merge(self._clock.now())
        waiting, unable_at = self._meta.waiting(), self._clock.now() - self._rules.unable_ms
        self._unable = list(self._unmet_needs.without_pilot(waiting, self._told_without_pilot()))
        found = [*self._full_disks(), *[each async for each in self._overdue_jobs()]]
        gone, self._lost_pilots = self._lost_pilots, []
        found += [*gone, *self._dead_servers(), *self._growing_queues(waiting), *self._filling_levels()]
        unable = (each.finding for each in self._unable if each.since <= unable_at)
        found += [*self._unmet_needs.unset_limits(), *unable, *self._held()]
        await self._raise_some(found)
        await self._closing.look()
        await self.alerts.tell_for_ended(self._is_orphaned)
        if self._announced:
            await self._ledger.settled()
            announced, self._announced = self._announced, []
            for id in announced:
                await self.alerts.mark_notified(id)

    async def _raise_some(self, found: Iterable[AlertFinding]) -> None:
        counts = Counter[str]()
        for finding in found:
            if not self.alerts.is_known(finding) and counts[finding.kind] < RAISED_MAX:
                counts[finding.kind] += 1
                await self.alerts.raise_(finding)

    def _told_without_pilot(self) -> set[JobId]:
        """The jobs that this server has told of, since no pilot could take them."""
        mine = (each.alert for each in self.alerts.open.values() if each.alert.raised_by == self._membership.id)
        return {JobId(each.subject) for each in mine if each.kind == "no-pilot"}

    async def _overdue_jobs(self) -> AsyncIterator[AlertFinding]:
        now, silent_ms = self._clock.now(), self._meta.leases.lease_ms // 2
        for job, pilot in list(self._running()):
            expected_ms = job.spec.expected_ms or await self._learned_ms(job)
            finding = job_finding(job, pilot, expected_ms, now=now, silent_ms=silent_ms, rules=self._rules)
            if finding is not None:
                yield finding

    async def _learned_ms(self, job: Job) -> int:
        live = self._manager.live.get(job.case)
        if live is None:
            return 0
        return await self.runtimes.expected_ms(live.document.counted_flow, job.name)

    def _running(self) -> Iterator[tuple[Job, PilotRecord]]:
        """Jobs that have run long enough to be checked."""
        oldest = self._clock.now() - self._rules.long_min_ms
        for pilot in self._meta.pilots.values():
            for id, held in pilot.held.items():
                job = self._meta.jobs[id]
                if held.runs and not job.suspended and job.history[-1].granted_at <= oldest:
                    yield job, pilot

    def _dead_servers(self) -> Iterator[AlertFinding]:
        if isinstance(self._membership, ServerMembership):
            for peer in self._membership.peer_states.values():
                document = peer.document
                if document.ended and document.silent_ms:
                    yield server_finding(document.id, document.incarnation, document.host, document.silent_ms)

    def _growing_queues(self, groups: Iterable[WaitingGroup]) -> Iterator[AlertFinding]:
        now, server = self._clock.now(), self._membership.id
        waiting = {str(each.needs): each for each in groups}
        for name, growth in self._queue_growth.look(
            {name: (each.jobs, each.first) for name, each in waiting.items()}, now
        ):
            if growth.lengths[-1] - growth.lengths[0] >= self._rules.queue_min:
                yield queue_finding(waiting[name], server, growth)

    def _filling_levels(self) -> Iterator[AlertFinding]:
        now, server = self._clock.now(), self._membership.id
        counts = {str(level): (count, "") for level, count in self._levels.counts().items() if count}
        for name, growth in self._level_growth.look(counts, now):
            if growth.lengths[-1] >= self._rules.level_min:
                yield level_finding(int(name), server, growth, self._levels.wait_ms(int(name)))

    def _lasting(self) -> set[str]:
        """What is in memory, as it is now: some of it is told between two looks. What no pilot could take is told, and
        over, at looks alone."""
        found = (*self._full_disks(), *self._held(), *self._unmet_needs.unset_limits())
        return {each.id for each in found} | {each.finding.id for each in self._unable}

    def _is_ongoing(self, kind: AlertKind, episode: str) -> bool:
        return (self._queue_growth if kind == "queue-grows" else self._level_growth).is_ongoing(episode)

    def _held(self) -> list[AlertFinding]:
        provider = self._hub.provider(UnhandledFailures)
        return [held_finding(each) for each in provider.held_failures()] if provider is not None else []

    def went_on(self, case: CaseId) -> None:
        """Somebody has taken up what was held, or had failed, in a case."""
        self._closing.went_on(case)

    def _has_ended(self, server: str) -> bool:
        return self._membership.find(server) is None

    def _is_orphaned(self, alert: AlertDocument) -> bool:
        """Whether no server will notify clients of it: the one that raised it has ended, or was restarted since."""
        if alert.raised_by == self._membership.id:
            return alert.raised_at < self._started_at
        return self._has_ended(alert.raised_by)

    def _incarnation(self, server: str) -> str:
        membership = self._membership
        peer = membership.peer_states.get(server) if isinstance(membership, ServerMembership) else None
        return peer.document.incarnation if peer is not None else ""
