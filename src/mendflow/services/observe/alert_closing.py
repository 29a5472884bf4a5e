"""Which alerts are over: at each look of the monitor, and at once where somebody has taken up what an alert tells of.

What lasts is found once for all alerts: by the ids of what the monitor finds now, and of failures by what the store
says of them together."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

import msgspec

from mendflow.core.model.alerts import AlertKind
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.services.base.alerts import AlertDocument, AlertStore, OpenFailure, StoredAlert, UnhandledFailures
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import JOB_KIND, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.reading_cost import context_for_everybody
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.monitor")

LOOK_AGAIN_MS = 500
"""How long it rests after it has looked, between two looks, whether alerts are over."""

_decode_job = msgspec.json.Decoder(Job).decode


class AlertClosing:
    """`lasting` gives the ids of what this server finds now and had told of, `is_ongoing` whether what grows still does
    since an episode began."""

    def __init__(
        self,
        alerts: AlertStore,
        *,
        store: Store,
        clock: Clock,
        ledger: Ledger,
        membership: OwnMembership,
        meta: PilotScheduler,
        hub: Hub,
        lasting: Callable[[], Collection[str]],
        is_ongoing: Callable[[AlertKind, str], bool],
    ) -> None:
        self._alerts = alerts
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._membership = membership
        self._meta = meta
        self._hub = hub
        self._lasting = lasting
        self._is_ongoing = is_ongoing
        self._went_on: set[CaseId] = set()
        self._done_again = False
        self._cancelled_since: Instant | None = None  # the first of the later runs that were cancelled began then
        self._task: asyncio.Task[None] | None = None
        hub.subscribe(CaseEnded, lambda end: self._case_ended(end.document))

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    async def look(self) -> None:
        await self._close(list(self._alerts.open.values()))
        await self._reopen_over(self._cancelled_since)

    # At once

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
        if not (self._alerts.open or self._alerts.over_since(self._cancelled_since)):
            self._went_on.clear()
            self._done_again, self._cancelled_since = False, None
        elif self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._close_over(), name="alerts that are over", context=context_for_everybody()
            )

    async def _close_over(self) -> None:
        try:
            while self._went_on or self._done_again:
                await self._ledger.settled()
                await self._close_taken_up()
                await self._clock.sleep(LOOK_AGAIN_MS)
        except StoreUnavailable as error:
            log.warning("alerts that are over stay until the next look: %s", error.message)
        except Exception:  # nobody waits for this task, so nobody else would tell of it; the next look may succeed
            log.exception("alerts that are over stay until the next look")

    async def _close_taken_up(self) -> None:
        roots, again, cancelled_since = self._went_on, self._done_again, self._cancelled_since
        self._went_on, self._done_again, self._cancelled_since = set(), False, None
        try:
            await self._close([known for known in self._alerts.open.values() if _may_be_over(known, roots, again)])
            if again:
                await self._reopen_over(cancelled_since)
        except BaseException:
            if cancelled_since is not None:
                self._run_cancelled(cancelled_since)
            raise

    # What is over

    async def _close(self, known: Sequence[StoredAlert]) -> None:
        """Close those that are over. One that is about several tells of what is left."""
        lasting, failures = self._lasting(), [each for each in known if self._is_failure(each.alert)]
        for each in known:
            if not self._is_failure(each.alert) and await self._is_over(each.alert, lasting):
                await self._alerts.close(each)
        found = await self._open_failures(failures)
        for each in failures:
            await self._close_failure(each, found[each.alert.id])

    def _is_failure(self, alert: AlertDocument) -> bool:
        return alert.kind == "failure" and alert.case != "" and self._hub.provider(UnhandledFailures) is not None

    async def _open_failures(self, known: Sequence[StoredAlert]) -> dict[str, OpenFailure]:
        failures = self._hub.provider(UnhandledFailures) if known else None
        return await failures.open_failures([each.alert for each in known]) if failures is not None else {}

    async def _close_failure(self, known: StoredAlert, found: OpenFailure) -> None:
        alert = known.alert
        if found.finding is None:
            await self._alerts.close(known, may_reopen=found.may_reopen)
        elif (found.finding.case, found.finding.item) != (alert.case, alert.item):
            await self._alerts.retarget(known, found.finding)

    async def _reopen_over(self, cancelled_since: Instant | None) -> None:
        """Raise alerts again that were over because a case was run again, when that was cancelled; its server may have
        ended since."""
        over = self._alerts.over_since(cancelled_since)
        open_failures = await self._open_failures(over)
        for known in over:
            found = open_failures.get(known.alert.id)
            if found is not None and found.finding is not None:
                await self._alerts.raise_(found.finding)
            elif found is not None and known.alert.may_reopen and not found.may_reopen:
                await self._alerts.keep_closed(known)

    async def _is_over(self, alert: AlertDocument, lasting: Collection[str]) -> bool:
        episode = alert.id.rpartition("/")[2]
        mine = alert.raised_by == self._membership.id
        match alert.kind:
            case "orphan" | "long-job":
                mine = mine or self._has_ended(alert.raised_by)
                return await self._is_job_over(JobId(alert.subject), episode, mine=mine)
            case "pilot-gone":
                pilot = self._meta.pilots.get(PilotId(alert.subject))
                lease_ms = self._meta.leases.lease_ms
                return pilot is not None and self._clock.now() - pilot.seen_at < lease_ms // 2
            case "server-gone":
                found = self._membership.find(alert.subject)
                return found is not None and found.incarnation != episode
            case "disk-full" | "case-held" | "limit-unset" | "no-pilot":
                return alert.id not in lasting if mine else self._has_ended(alert.raised_by)
            case "queue-grows" | "level-fills":
                return not self._is_ongoing(alert.kind, episode) if mine else self._has_ended(alert.raised_by)
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


def _may_be_over(known: StoredAlert, roots: Collection[CaseId], again: bool) -> bool:
    kind = known.alert.kind
    return (root_of(known.alert.case) in roots and kind in ("case-held", "failure")) or (again and kind == "failure")
