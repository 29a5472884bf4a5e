"""The server's side of the one exchange with pilots: hear what ended, see what runs, hand out what fits.

Verdicts and jobs leave only after the ledger has settled. An attempt that its pilot no longer names was given up; one
that the pilot names and that is not its own is lost to it, and the pilot kills it. When a pilot's lease ends, all that
it holds goes back to the queue, charged to the infrastructure and not to the job."""

import asyncio
from collections.abc import Iterable

import msgspec

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.problems import Mistake, StoreUnavailable
from mendflow.core.model.sync import (
    SYNC_VERSION,
    Assignment,
    AttemptRef,
    Report,
    SyncAnswer,
    SyncRequest,
)
from mendflow.core.scheduling import jobs as life
from mendflow.core.scheduling.queue import Offer
from mendflow.services.contracts import Clock
from mendflow.services.ledger import Ledger
from mendflow.services.meta_scheduler import JOB_KIND, QueueAndPilots
from mendflow.services.notices import Notices
from mendflow.services.pilot_book import Held, PilotRecord
from mendflow.stores.contract import Store

_EXPIRY_CHECK_MS = 200
_decode = msgspec.json.Decoder(Job).decode


class Exchange:
    def __init__(
        self, *, meta: QueueAndPilots, store: Store, ledger: Ledger, clock: Clock, notices: Notices
    ) -> None:
        self._meta = meta
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._notices = notices
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch_leases(), name="leases")

    async def stop(self) -> None:
        """End held exchanges with what there is, and watch no longer."""
        self._stopping = True
        for pilot in self._meta.pilots.values():
            pilot.wake.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def let_go(self, id: PilotId | None) -> None:
        """Answer at once what is held: of one pilot whose line was lost, so that no job is given into the void, or of
        all."""
        for pilot in self._meta.pilots.values():
            if id is None or pilot.id == id:
                pilot.released = True
                pilot.wake.set()

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        if request.version != SYNC_VERSION:
            raise Mistake(
                f"pilot {request.pilot} speaks version {request.version} and this server {SYNC_VERSION};"
                " use the same version of mendflow for both"
            )
        pilot = self._meta.pilot(request.pilot)
        if request.serial <= pilot.newest:
            return SyncAnswer(serial=request.serial, lease_ms=0)  # overtaken by a newer one that said more
        pilot.hear(request, self._clock.now(), self._meta.lease_ms)
        accepted, refused = await self._hear_reports(pilot, request.reports)
        lost = self._compare(pilot, request)
        if request.leaving:
            self._farewell(pilot, request)
        answer = await self._answer(pilot, request, accepted, refused, lost)
        await self._ledger.settled()
        if not request.leaving:
            pilot.expires_at = self._clock.now() + self._meta.lease_ms
        return answer

    async def _answer(
        self,
        pilot: PilotRecord,
        request: SyncRequest,
        accepted: list[AttemptRef],
        refused: list[AttemptRef],
        lost: list[AttemptRef],
    ) -> SyncAnswer:
        """Now, if there is something to say; else as soon as there is, or when the pilot wants to hear anyway."""
        loop = asyncio.get_running_loop()
        until = loop.time() + min(request.wait_ms, self._meta.lease_ms // 3) / 1000
        while True:
            jobs = [] if request.leaving or self._stopping else self._hand_out(pilot, request)
            orders = pilot.take_orders()
            if jobs or orders or accepted or refused or lost:
                break
            left_s = until - loop.time()
            if left_s <= 0 or self._stopping:
                break
            pilot.wake.clear()
            try:
                await asyncio.wait_for(pilot.wake.wait(), left_s)
            except TimeoutError:
                break
            if pilot.newest != request.serial or pilot.released:
                break
        return SyncAnswer(
            serial=request.serial,
            lease_ms=self._meta.lease_ms,
            jobs=jobs,
            accepted=accepted,
            refused=refused,
            lost=lost,
            orders=orders,
        )

    # Reports

    async def _hear_reports(
        self, pilot: PilotRecord, reports: Iterable[Report]
    ) -> tuple[list[AttemptRef], list[AttemptRef]]:
        accepted: list[AttemptRef] = []
        refused: list[AttemptRef] = []
        for report in reports:
            ref = AttemptRef(report.job, report.fence)
            (accepted if await self._hear(pilot, report) else refused).append(ref)
        return accepted, refused

    async def _hear(self, pilot: PilotRecord, report: Report) -> bool:
        job = self._meta.jobs.get(report.job)
        if job is None:
            return await self._was_accepted(pilot, report)
        verdict = life.report(job, pilot.id, report.fence, report.outcome, self._clock.now(), self._meta.policy)
        if not verdict.accepted:
            self._notices.post(verdict.reason, case=job.case, item=job.spec.item)
            return False
        for event in verdict.events:
            life.evolve(job, event)
        pilot.held.pop(job.id, None)
        pilot.log_tails.pop(job.id, None)
        await self._settle(job)
        return True

    async def _settle(self, job: Job) -> None:
        if job.finished:
            await self._meta.finish(job)
        else:
            self._meta.enqueue(job)
            self._meta.changed(job)

    async def _was_accepted(self, pilot: PilotRecord, report: Report) -> bool:
        """A report that is told again, because the verdict did not reach the pilot."""
        found = await self._store.get(JOB_KIND, report.job)
        if found is None:
            return False
        job = _decode(found.body)
        return job.state is JobState.COMPLETED and job.fence == report.fence and report.outcome.ok

    # What the pilot holds

    def _compare(self, pilot: PilotRecord, request: SyncRequest) -> list[AttemptRef]:
        lost = []
        named = set()
        for beat in request.running:
            job = self._meta.jobs.get(beat.job)
            if job is None or job.pilot != pilot.id or job.fence != beat.fence:
                lost.append(AttemptRef(beat.job, beat.fence))
                continue
            named.add(beat.job)
            pilot.held[beat.job].named = True
            if beat.log_tail:
                pilot.log_tails[beat.job] = beat.log_tail
        for id in [id for id, held in pilot.held.items() if id not in named and _expected(held, request)]:
            self._given_up(pilot, id)
        return lost

    def _given_up(self, pilot: PilotRecord, id: JobId) -> None:
        """The pilot has read the answer that gave it this job, and does not name it."""
        held = pilot.held.pop(id)
        job = self._meta.jobs[id]
        if held.named:
            self._lose(job, f"pilot {pilot.id} on {pilot.host} lost it")
        else:
            life.evolve(job, life.release(job, self._clock.now()))
            self._meta.enqueue(job)
            self._meta.changed(job)

    def _farewell(self, pilot: PilotRecord, request: SyncRequest) -> None:
        """A pilot that leaves has ended everything that it had started: the rest goes back."""
        for id in list(pilot.held):
            self._given_up(pilot, id)
        pilot.want = 0
        pilot.expires_at = self._clock.now()
        self._meta.pilots.pop(pilot.id, None)

    # Handing out

    def _hand_out(self, pilot: PilotRecord, request: SyncRequest) -> list[Assignment]:
        if request.want <= 0 or not len(self._meta.queue):
            return []
        now = self._clock.now()
        assignments = []
        for id in self._take(pilot, request, now):
            job = self._meta.jobs[id]
            for event in life.grant(job, pilot.id, now):
                life.evolve(job, event)
            pilot.held[id] = Held(request.serial)
            self._meta.changed(job)
            assignments.append(Assignment(id, job.fence, job.spec))
        return assignments

    def _take(self, pilot: PilotRecord, request: SyncRequest, now: Instant) -> list[JobId]:
        raise AssertionError

    # Leases

    async def _watch_leases(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRY_CHECK_MS)
            now = self._clock.now()
            for pilot in [pilot for pilot in self._meta.pilots.values() if pilot.expires_at <= now]:
                await self._expire(pilot)

    async def _expire(self, pilot: PilotRecord) -> None:
        del self._meta.pilots[pilot.id]
        if pilot.held:
            self._notices.post(
                f"pilot {pilot.id} on {pilot.host or 'an unknown host'} was silent for a whole lease;"
                f" {len(pilot.held)} jobs go back to the queue"
            )
        for id in list(pilot.held):
            self._lose(self._meta.jobs[id], f"pilot {pilot.id} was silent for a whole lease")

    def _lose(self, job: Job, why: str) -> None:
        raise AssertionError


def _expected(held: Held, request: SyncRequest) -> bool:
    return held.since is not None and request.heard >= held.since
