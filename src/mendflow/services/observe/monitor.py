"""The monitor of a server: it looks periodically at what the server has in memory, and at the other servers.

No job waits for it. Each server checks its own jobs, pilots, queue and levels; all servers check the other servers, and
the first that finds a problem raises the alert. A look that fails because the store is unreachable is skipped: the next
one finds the same."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import msgspec

from mendflow.core.model.alerts import AlertView, Notification
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.services.base.alerts import (
    AlertDocument,
    AlertFinding,
    AlertRaised,
    AlertStore,
    ProblemFound,
    StoredAlert,
    UnhandledFailures,
)
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import JOB_KIND, root_of
from mendflow.services.base.contracts import Clock, UnhandledFailure
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.reading_cost import context_for_everybody
from mendflow.services.base.watched_files import WatchedFileStore
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cluster.membership import ServerMembership
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
from mendflow.services.observe.unmet_needs import UnmetNeeds
from mendflow.services.scheduling.facts import PilotLost, PilotPaused
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.monitor")

RAISED_MAX = 50
"""How many alerts of one kind are raised at one look; the next look raises more, if they last."""

LOOK_AGAIN_MS = 500
"""How long it rests after it has looked, between two looks, whether alerts are over."""

LOST_PILOTS_MAX = 1_000
_decode_job = msgspec.json.Decoder(Job).decode


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
        self._store = store
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
        self._went_on: set[CaseId] = set()
        self._done_again = False
        self._cancelled_since: Instant | None = None  # the first of the later runs that were cancelled began then
        self._closing: asyncio.Task[None] | None = None
        hub.subscribe(PilotPaused, lambda _: self.look_at_disks())
        hub.subscribe(PilotLost, lambda lost: self.pilot_lost(lost.pilot))
        hub.subscribe(AlertRaised, lambda raised: self._alert_raised(raised.alert))
        hub.subscribe(ProblemFound, lambda found: self._problem_found(found.finding))
        hub.subscribe(CaseEnded, lambda end: self._case_ended(end.document))
        hub.provide(DeliveryFailures, self)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="monitor")

    async def stop(self) -> None:
        await cancel_tasks(self._task, self._closing)
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
        found = [*self._full_disks(), *[each async for each in self._overdue_jobs()]]
        gone, self._lost_pilots = self._lost_pilots, []
        found += [*gone, *self._dead_servers(), *self._growing_queues(), *self._filling_levels()]
        found += [*self._unmet_needs.unset_limits(), *self._unmet_needs.without_pilot(self._rules.unable_ms)]
        found += [*(held_finding(held) for held in self._held())]
        counts: dict[str, int] = {}
        for finding in found:
            counts[finding.kind] = counts.get(finding.kind, 0) + 1
            if counts[finding.kind] <= RAISED_MAX:
                await self.alerts.raise_(finding)
        for known in list(self.alerts.open.values()):
            await self._close_if_over(known)
        await self._reopen_over(self._cancelled_since)
        await self.alerts.tell_for_ended(self._is_orphaned)
        if self._announced:
            await self._ledger.settled()
            announced, self._announced = self._announced, []
            for id in announced:
                await self.alerts.mark_notified(id)

    async def _overdue_jobs(self) -> AsyncIterator[AlertFinding]:
        now, silent_ms = self._clock.now(), self._meta.leases.lease_ms // 2
        for job, pilot in list(self._running()):
            expected_ms = job.spec.expected_ms or await self._learned_ms(job)
            finding = job_finding(job, pilot, expected_ms, now=now, silent_ms=silent_ms, rules=self._rules)
            if finding is not None:
                yield finding

    async def _learned_ms(self, job: Job) -> int:
        live = self._manager.live.get(job.case)
        return await self.runtimes.expected_ms(live.document.flow, job.name) if live is not None else 0

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

    def _growing_queues(self) -> Iterator[AlertFinding]:
        now, server = self._clock.now(), self._membership.id
        waiting = {str(each.needs): each for each in self._meta.waiting()}
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

    def _held(self) -> list[UnhandledFailure]:
        provider = self._hub.provider(UnhandledFailures)
        return provider.held_failures() if provider is not None else []

    # What is over

    def went_on(self, case: CaseId) -> None:
        """Somebody has taken up what was held, or had failed, in a case: an alert about it is over now, not at the next
        look."""
        self._went_on.add(root_of(case))
        self._look_again()

    def _case_ended(self, document: CaseDocument) -> None:
        """A case that went on after its failure, runs another again, or was cancelled: failures may be settled."""
        if document.reopened or document.stands_for is not None or document.status == "cancelled":
            self._done_again = True
            if document.stands_for is not None and document.status == "cancelled":
                self._run_cancelled(document.started_at)
            self._look_again()

    def _run_cancelled(self, started_at: Instant) -> None:
        since = self._cancelled_since
        self._cancelled_since = started_at if since is None else min(since, started_at)

    def _look_again(self) -> None:
        if not (self.alerts.open or self.alerts.over_since(self._cancelled_since)):
            self._went_on.clear()
            self._done_again, self._cancelled_since = False, None
        elif self._closing is None or self._closing.done():
            self._closing = asyncio.get_running_loop().create_task(
                self._close_over(), name="alerts that are over", context=context_for_everybody()
            )

    async def _close_over(self) -> None:
        cancelled_since: Instant | None = None
        try:
            while self._went_on or self._done_again:
                await self._ledger.settled()
                roots, again = self._went_on, self._done_again
                cancelled_since = self._cancelled_since
                self._went_on, self._done_again, self._cancelled_since = set(), False, None
                for known in list(self.alerts.open.values()):
                    kind, root = known.alert.kind, root_of(known.alert.case)
                    if (root in roots and kind in ("case-held", "failure")) or (again and kind == "failure"):
                        await self._close_if_over(known)
                if again:
                    await self._reopen_over(cancelled_since)
                await self._clock.sleep(LOOK_AGAIN_MS)
        except StoreUnavailable as error:
            if cancelled_since is not None:
                self._run_cancelled(cancelled_since)
            log.warning("alerts that are over stay until the next look: %s", error.message)

    async def _close_if_over(self, known: StoredAlert) -> None:
        """Close it, or let it tell of what is left, where it is about several."""
        alert, failures = known.alert, self._hub.provider(UnhandledFailures)
        if alert.kind != "failure" or failures is None or not alert.case:
            if await self._is_over(alert):
                await self.alerts.close(known)
            return
        found = await failures.open_failure(alert)
        if found.finding is None:
            await self.alerts.close(known, may_reopen=found.may_reopen)
        elif (found.finding.case, found.finding.item) != (alert.case, alert.item):
            await self.alerts.retarget(known, found.finding)

    async def _reopen_over(self, cancelled_since: Instant | None) -> None:
        """Raise alerts again that were over because a case was run again, when that was cancelled; its server may have
        ended since."""
        failures = self._hub.provider(UnhandledFailures)
        if failures is None:
            return
        for known in self.alerts.over_since(cancelled_since):
            found = await failures.open_failure(known.alert)
            if found.finding is not None:
                await self.alerts.raise_(found.finding)
            elif known.alert.may_reopen and not found.may_reopen:
                await self.alerts.keep_closed(known)

    async def _is_over(self, alert: AlertDocument) -> bool:
        episode = alert.id.rpartition("/")[2]
        mine = alert.raised_by == self._membership.id
        match alert.kind:
            case "orphan" | "long-job":
                return await self._is_job_over(
                    JobId(alert.subject), episode, mine=mine or self._has_ended(alert.raised_by)
                )
            case "pilot-gone":
                pilot = self._meta.pilots.get(PilotId(alert.subject))
                lease_ms = self._meta.leases.lease_ms
                return pilot is not None and self._clock.now() - pilot.seen_at < lease_ms // 2
            case "server-gone":
                found = self._membership.find(alert.subject)
                return found is not None and found.incarnation != episode
            case "queue-grows":
                return not self._queue_growth.is_ongoing(episode) if mine else self._has_ended(alert.raised_by)
            case "disk-full":
                full = {finding.id for finding in self._full_disks()}
                return alert.id not in full if mine else self._has_ended(alert.raised_by)
            case "case-held":
                held = {(each.subject, str(each.since)) for each in self._held()}
                return (alert.subject, episode) not in held if mine else self._has_ended(alert.raised_by)
            case "limit-unset":
                unset = {finding.id for finding in self._unmet_needs.unset_limits()}
                return alert.id not in unset if mine else self._has_ended(alert.raised_by)
            case "no-pilot":
                unable = {finding.id for finding in self._unmet_needs.without_pilot(0)}
                return alert.id not in unable if mine else self._has_ended(alert.raised_by)
            case "level-fills":
                return not self._level_growth.is_ongoing(episode) if mine else self._has_ended(alert.raised_by)
        return False

    async def _is_job_over(self, id: JobId, episode: str, *, mine: bool) -> bool:
        """Whether the attempt is over, or its pilot was heard from again. The server that has the job in memory knows;
        else the server that is responsible for the alert reads the document."""
        job = self._meta.jobs.get(id)
        if job is None and mine and (found := await self._store.get(JOB_KIND, id)) is not None:
            job = _decode_job(found.body)
        if job is None:
            return mine
        fence, _, serial = episode.partition("-")
        if job.state is not JobState.RUNNING or str(job.fence) != fence:
            return True
        pilot = self._meta.pilots.get(job.pilot) if job.pilot is not None else None
        return bool(serial) and pilot is not None and pilot.newest > int(serial)

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
