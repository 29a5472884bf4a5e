"""The server's side of the exchange with pilots: process reports, compare running attempts, grant jobs that fit.

Verdicts and jobs leave only after the ledger has settled. An attempt that its pilot no longer names was given up; one
that the pilot names and that is not its own is lost, and the pilot kills it. When a pilot's lease ends, all its jobs go
back to the queue, charged to the infrastructure and not to the jobs.

On a server that shares its store, some attempts of a pilot may belong to other servers. Then the relay asks these, and
the answers are merged; an exchange that another server forwards is handled like any other, but not forwarded again."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from mendflow.core.model.errors import Forbidden, InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import JobState
from mendflow.core.model.sync import (
    SYNC_VERSION,
    AttemptControl,
    AttemptOrder,
    AttemptRef,
    AttemptReport,
    AttemptStatus,
    SyncAnswer,
    SyncRequest,
    sync_flaw,
)
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling.leases import ExpiredLease
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.scheduling.answer import AnswerBuilder
from mendflow.services.scheduling.assigner import Assigner
from mendflow.services.scheduling.attempt_ends import AttemptEnds
from mendflow.services.scheduling.drained_pilots import DrainedPilots
from mendflow.services.scheduling.facts import (
    AttemptHeartbeats,
    BorrowedWork,
    JobMoved,
    PilotLost,
    PilotPaused,
    SubmittedPilots,
)
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.pilot_records import NO_TOKEN, PilotNames, PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.relay import PilotRelay, RelayRound
from mendflow.services.scheduling.secret_service import SecretService
from mendflow.services.scheduling.submission_claims import SubmissionClaims, is_news
from mendflow.services.scheduling.unprocessed_reports import UnprocessedReports
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.exchange")

_EXPIRY_CHECK_MS = 200
_IN_SLOT = frozenset({"running", "suspended", "ending"})
UNCLAIMED_MS = 250
"""A pilot is answered after this time if other servers do not answer for its attempts or reports."""

REPORTS_A_TURN = 100
"""After so many reports of one pilot others get a turn."""

IDLE_ASK_MS = 1_000
"""A pilot that was answered without a job asks again within this time."""


class Exchange:
    def __init__(
        self,
        *,
        meta: PilotScheduler,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        notices: Notices,
        relay: PilotRelay | None = None,
        sites: SubmittedPilots | None = None,
        unprocessed: UnprocessedReports | None = None,
        hidden: HiddenTexts | None = None,
        limits: LimitService | None = None,
        secrets: SecretService | None = None,
        drains: DrainedPilots | None = None,
        owners: PilotNames | None = None,
    ) -> None:
        """Without a relay this server is alone, and decides about everything. `sites` knows the pilots that were
        submitted to batch systems, `unprocessed` the reports that have raised an internal error, `hidden` what no log
        may show, `limits` who may use named limits, `secrets` what jobs get with their grants,
        `drains` which pilots get no new jobs, `owners` whose the names of pilots are."""
        self._meta = meta
        self._hub = meta.hub
        self._relay = relay
        self._sites = sites
        self._claims = SubmissionClaims(sites, notices) if sites is not None else None
        self._assigner = Assigner(meta, clock, limits, secrets)
        self._limits = limits
        self._drains = drains
        self._owners = owners
        self._ledger = ledger
        self._clock = clock
        self._notices = notices
        self._unprocessed = unprocessed or UnprocessedReports()
        self._hidden = hidden or HiddenTexts()
        self._ends = AttemptEnds(
            meta=meta,
            store=store,
            ledger=ledger,
            clock=clock,
            notices=notices,
            unprocessed=self._unprocessed,
            hidden=self._hidden,
        )
        self._task: asyncio.Task[None] | None = None
        self._unannounced: set[PilotId] = set()  # pilots to which this server is about to make its first promise
        self._stopping = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch_leases(), name="leases")
        if self._relay is not None:
            self._relay.start()

    async def stop(self) -> None:
        """Answer held exchanges with what there is, and stop watching leases."""
        self._stopping = True
        for pilot in self._meta.pilots.values():
            pilot.wake.set()
        await cancel_tasks(self._task)
        if self._relay is not None:
            await self._relay.stop()

    def answer_held(self, id: PilotId | None) -> None:
        """Answer held exchanges at once: of one pilot whose connection was lost, so that no job is granted in an answer
        that nobody receives, or of all."""
        for pilot in self._meta.pilots.values():
            if id is None or pilot.id == id:
                pilot.released = True
                pilot.wake.set()

    def on_nudge(self, pilots: Iterable[PilotId], *, work: bool, by: str) -> None:
        """Another server has something for pilots that are connected here, or has jobs for idle ones."""
        for id in pilots:
            self.answer_held(id)
        if work and self._relay is not None:
            self._relay.nudged(by)
            for pilot in self._meta.pilots.values():
                if pilot.want > 0 and not pilot.front:
                    pilot.wake.set()

    async def sync(self, request: SyncRequest, who: str = "") -> SyncAnswer:
        """A pilot's request, directly or forwarded by the server that it is connected to."""
        if self._drains is not None and self._relay is not None and request.pilot not in self._meta.pilots:
            await self._drains.look(request.pilot)
        pilot = await self._admit(request, who)
        if self._claims is not None and request.submission and not request.front:
            request = await self._claims.check(pilot, request, who)
        if request.serial <= pilot.newest:
            return SyncAnswer(serial=request.serial, lease_ms=0)  # a newer request, which said more, came first
        if self._relay is not None:
            self._relay.check_promise()
            if not request.front and (pilot.front or not pilot.seen_at):
                self._relay.pilot_arrived(pilot.id, request.serial)
        if request.submission and self._sites is not None and is_news(pilot, request):
            self._sites.pilot_reported(request)
        pilot.drained = self._drains.sentence(pilot.id) if self._drains is not None else ""
        lacked_room = pilot.lacks_room
        pilot.hear(request, self._clock.now())
        if pilot.lacks_room and not lacked_room and not request.front:
            self._hub.publish(PilotPaused(pilot))
        self._meta.caches.hear(pilot, request)
        await self._stop_borrowed()
        await self._hidden.learn_soon()
        self._assigner.expect(pilot, request)
        if self._limits is not None:
            self._limits.pilot_heard(pilot.id, request)
        if self._relay is not None and self._meta.leases.inherits(pilot.id):
            self._unannounced.add(pilot.id)
        with self._ledger.atomic():
            draft = AnswerBuilder(self._meta.leases.lease_ms)
            for part in request.logs:
                if part.job in pilot.held:
                    self._meta.live_logs.hear(part)
            await self._take_reports(pilot, request.reports, draft)
            await self._compare_attempts(pilot, request, draft)
            if request.leaving:
                await self._pilot_leaves(pilot, request.leaves, draft.unjudged(request))
            answer = await self._answer(pilot, request, who, draft)
        await self._ledger.settled()
        if self._relay is not None and pilot.id in self._unannounced:
            await self._relay.announce_promises()
            self._unannounced.discard(pilot.id)
        if not request.leaving:
            self._meta.leases.renew(pilot.id, request.running, now=self._meta.steady_ms_now())
        if self._relay is not None:
            self._relay.check_promise()
        return answer

    async def _admit(self, request: SyncRequest, who: str) -> PilotRecord:
        if request.version != SYNC_VERSION:
            raise RequestError(
                f"pilot {request.pilot} uses protocol version {request.version} and this server {SYNC_VERSION};"
                " use the same version of mendflow for both"
            )
        if wrong := sync_flaw(request):
            raise InvalidRequest(f"this is not a pilot's request: {wrong}", field=wrong.partition(" ")[0])
        pilot = self._meta.pilot(request.pilot)
        owner = pilot.owner
        if self._owners is not None and not owner and not request.front and who not in ("", NO_TOKEN):
            owner = await self._owners.claim(pilot.id, who)
            pilot.owner = owner if owner == who else ""  # whose pilot comes has claimed it here, and gives it back
        if owner != pilot.owner or not pilot.belongs_to(who):
            raise Forbidden(f"the name {request.pilot} is taken by another token; choose another --work folder")
        return pilot

    async def _answer(self, pilot: PilotRecord, request: SyncRequest, who: str, draft: AnswerBuilder) -> SyncAnswer:
        """Answer now, if there is something to say; else as soon as there is, or when the pilot wants an answer
        anyway."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        relay = None if request.front else self._relay
        relayed: RelayRound | None = None
        if relay is not None and relay.concerns_peers(pilot.id, request, draft):
            relayed = await self._relay_request(relay.round(pilot, request, who, draft), pilot, draft)
        until = began + self._hold_ms(request, draft) / 1000
        told_at_once = self._meta.caches.should_answer_at_once(pilot, request)
        while True:
            # for other servers to claim its attempts: more jobs would only be killed with the rest
            waits = relay is not None and draft.unclaimed
            await self._stop_borrowed()
            if not (request.leaving or self._stopping or waits):
                await self._assigner.hand_out(pilot, request, draft, self._hold_ms(request, draft) + IDLE_ASK_MS)
            draft.orders += pilot.take_orders()
            draft.logs += pilot.take_log_requests()
            if draft.has_news or self._stopping or request.leaving or told_at_once:
                break
            if relay is not None and pilot.wants_jobs and not waits:
                relayed = relayed or relay.round(pilot, request, who, draft)
                if await relayed.fetch(request.want) or draft.has_news:
                    break
            left_s = until - loop.time()
            if left_s <= 0:
                break
            if not await self._meta.idle.wait_for_work(pilot, left_s):
                break
            if pilot.newest != request.serial or pilot.released:
                break
        servers = relay.servers_for(request) if relay is not None else []
        idle_ms = self._sites.idle_exit_ms(request.submission) if request.submission and self._sites is not None else 0
        return draft.answer(request, servers, self._meta.caches, idle_exit_ms=idle_ms)

    async def _stop_borrowed(self) -> None:
        """Stop what another domain lets us do no longer. This server may have been paused since it last looked."""
        borrowed = self._hub.provider(BorrowedWork)
        if borrowed is not None and borrowed.is_due():
            await borrowed.stop_due()

    def _hold_ms(self, request: SyncRequest, draft: AnswerBuilder) -> int:
        """How long an answer may be held. Other servers hear from the pilot only when it asks; and when an attempt is
        not answered for, it should ask again soon."""
        lease_ms = self._meta.leases.lease_ms
        if draft.unclaimed or draft.foreign:
            return min(request.wait_ms, UNCLAIMED_MS)
        return min(request.wait_ms, lease_ms // 6 if draft.has_remote else lease_ms // 3)

    async def _relay_request(self, relayed: RelayRound, pilot: PilotRecord, draft: AnswerBuilder) -> RelayRound:
        await relayed.go()
        for report in relayed.unowned_reports:
            ref, accepted = AttemptRef(report.job, report.fence), await self._ends.was_accepted(pilot, report)
            if accepted is not None:
                (draft.accepted if accepted else draft.refused).append(ref)
        return relayed

    # Reports

    async def _take_reports(self, pilot: PilotRecord, reports: Iterable[AttemptReport], draft: AnswerBuilder) -> None:
        for place, report in enumerate(reports, 1):
            if place % REPORTS_A_TURN == 0:
                await asyncio.sleep(0)
            if pilot.knows_accepted(report.job, report.fence):
                draft.accepted.append(AttemptRef(report.job, report.fence))
                continue
            if report.job in self._ends.in_recovery or self._meta.is_loading(report.job):
                continue  # reported again while it is judged, or too soon: the pilot will get the verdict
            if report.job not in self._meta.jobs and self._relay is not None and not self._relay.mine(report.job):
                draft.foreign.append(report)
                continue
            try:
                accepted = await self._ends.take_report(pilot, report)
            except Exception as error:
                if not isinstance(error, RequestError):
                    self._unprocessed.note(report.job, report.fence, error)
                raise
            if accepted is not None:
                (draft.accepted if accepted else draft.refused).append(AttemptRef(report.job, report.fence))

    # What the pilot holds

    async def _compare_attempts(self, pilot: PilotRecord, request: SyncRequest, draft: AnswerBuilder) -> None:
        """An attempt that the pilot names and does not hold is lost to it, if the job is ours; one that it should name
        and does not was given up. One that it reports as ended, and that cannot be judged yet, stays its own: its case
        is being loaded, and a finished job must not run again because of that."""
        if self._meta.requeued:
            self._meta.repeat_requeue_orders(pilot)
        lost = self._meta.leases.renew(pilot.id, request.running, now=self._meta.steady_ms_now())
        unjudged = draft.unjudged(request)
        self._meta.leases.renew(pilot.id, unjudged, now=self._meta.steady_ms_now())
        others = {(ref.job, ref.fence) for ref in lost}
        named, ahead = set(), _staged_ahead(request.running, pilot.capacity.slots)
        for beat in request.running:
            if others and (beat.job, beat.fence) in others:
                self._reject_attempt(beat, draft)
            else:
                named.add(beat.job)
                if pilot.held[beat.job].hear(beat, ahead=beat.job in ahead):
                    self._hub.publish(JobMoved(self._meta.jobs[beat.job]))
                self._repeat_order(pilot, beat)
                if beat.log_tail:
                    mask = self._hidden.of(self._meta.jobs[beat.job].spec.project)
                    pilot.hear_log(beat.job, mask.mask(beat.log_tail))
        self._hub.publish(AttemptHeartbeats([beat.job for beat in request.running if beat.job in named]))
        named |= self._held_reports(pilot, unjudged)
        for id in [id for id, held in pilot.held.items() if id not in named and held.was_delivered(request)]:
            if id in pilot.held:
                await self._take_back(pilot, id, request.leaves if request.leaving else None)

    def _held_reports(self, pilot: PilotRecord, reports: Iterable[AttemptReport]) -> set[JobId]:
        """The jobs whose attempts, as the pilot holds them, are in these reports."""
        return {
            each.job for each in reports if each.job in pilot.held and self._meta.jobs[each.job].fence == each.fence
        }

    def _reject_attempt(self, beat: AttemptStatus, draft: AnswerBuilder) -> None:
        """An attempt that is not the pilot's by our records: lost to it, or another server's. One that is being killed
        needs no answer."""
        if beat.state != "ending":
            ours = self._relay is None or self._relay.mine(beat.job)
            (draft.lost if ours else draft.unclaimed).append(AttemptRef(beat.job, beat.fence))

    def _repeat_order(self, pilot: PilotRecord, beat: AttemptStatus) -> None:
        """Repeat the order for an attempt, if the pilot does something else: an order may have been lost in a
        restart."""
        suspended = self._meta.jobs[beat.job].suspended
        if suspended == (beat.state == "suspended") or beat.state in ("staging", "keeping", "ending"):
            return
        order = AttemptOrder(beat.job, beat.fence, AttemptControl.SUSPEND if suspended else AttemptControl.RESUME)
        if order not in pilot.orders:
            pilot.orders.append(order)

    async def _take_back(self, pilot: PilotRecord, id: JobId, leaves: str | None = None) -> None:
        """The pilot has read the answer that granted this job, and does not name it; or it leaves, and says why. If it
        never reported that the job had begun, no loss is counted."""
        if self._meta.leases.ending(pilot.id, id):
            return  # it was told to kill it, and no longer names it while it does: the end of the lease counts
        job, begun = self._meta.jobs[id], pilot.held[id].begun
        now = self._clock.now()
        if begun and leaves is not None:
            events = job_lifecycle.cut_short(job, leaves, now=now, policy=self._meta.policy)
            if (lost := job_lifecycle.pending_retry(events)) is not None and lost.fault is not None:
                self._notices.post(f"job {id}: {lost.fault.message}", case=job.case, item=job.spec.item)
        elif begun:
            events = job_lifecycle.lose(job, now=now, policy=self._meta.policy, why="the job was lost in a restart")
        else:
            events = job_lifecycle.give_back(job, job.fence, now=now)
        await self._ends.end(job, events)

    async def _pilot_leaves(self, pilot: PilotRecord, why: str, unjudged: Sequence[AttemptReport]) -> None:
        """A pilot that leaves has ended everything that it had started: the rest goes back to the queue. While a report
        of it cannot be judged, it stays, and asks again."""
        self._meta.leases.resume_renewal(pilot.id)
        while left := pilot.held.keys() - self._held_reports(pilot, unjudged):
            await self._take_back(pilot, next(id for id in pilot.held if id in left), why)
        if pilot.held:
            return
        self._meta.leases.leave(pilot.id)
        self._forget(pilot.id)

    # Leases

    async def _watch_leases(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRY_CHECK_MS)
            try:
                for attempt in self._meta.leases.expired_attempts(now=self._meta.steady_ms_now()):
                    await self._expire_or_give_up(attempt)
                for id in self._meta.leases.forget_silent(now=self._meta.steady_ms_now()):
                    self._forget_lost(id)
                self._wake_queue()
            except StoreUnavailable:
                return  # the attempts are no longer leased, but still in their jobs: everything is loaded again
            except Exception:  # without this loop no lease would ever end again: the next check may succeed
                log.exception("leases could not be checked; trying again")

    def _forget_lost(self, id: PilotId) -> None:
        try:
            if (pilot := self._meta.pilots.get(id)) is not None:
                self._hub.publish(PilotLost(pilot))
        except Exception:  # an error of one who hears of it must not keep pilots from being forgotten
            log.exception("pilot %s was lost, and somebody who was told of it failed", id)
        self._forget(id)
        if self._relay is not None:
            self._relay.forget(id)

    def _forget(self, id: PilotId) -> None:
        self._meta.forget(id)
        if self._owners is not None:
            self._owners.release(id)

    def _wake_queue(self) -> None:
        next_wake, now = self._meta.queue.next_wake(), self._clock.now()
        if self._meta.queue.take_freed(now) or (next_wake is not None and next_wake <= now):
            self._meta.queue.wake(now)  # even if no pilot asks: whoever submits pilots must see that jobs wait
            self._meta.idle.wake()

    async def _expire_or_give_up(self, attempt: ExpiredLease) -> None:
        """Its lease is gone already: if it cannot be ended now, nobody would ever end it."""
        try:
            await self._expire(attempt)
        except Exception as error:  # whatever it is: the lease is gone, so everything is loaded again
            if not isinstance(error, StoreUnavailable):
                log.exception(
                    "job %s could not be taken from pilot %s; loading everything again", attempt.job, attempt.pilot
                )
            self._ledger.give_up(f"the lease of job {attempt.job} is over, and it could not be ended: {error}")
            raise StoreUnavailable(self._ledger.broken) from error

    async def _expire(self, attempt: ExpiredLease) -> None:
        job = self._meta.jobs.get(attempt.job)
        if job is None or job.state is not JobState.RUNNING or job.fence != attempt.fence:
            return  # it has ended while others were processed
        if job.id in self._ends.in_recovery:
            return  # or is about to end: its pilot has reported it, and the exception service is being asked
        self._meta.counts.leases_lost += 1
        why = "it was silent for a whole lease"
        if job.requeued is None:
            self._notices.post(f"job {job.id}: {why} on pilot {attempt.pilot}", case=job.case, item=job.spec.item)
        tail = self._meta.log_tail(job.id)
        events = job_lifecycle.lose(job, now=self._clock.now(), policy=self._meta.policy, why=why, log_tail=tail)
        await self._ends.end(job, events)


def _staged_ahead(attempts: Sequence[AttemptStatus], slots: int) -> set[JobId]:
    """The jobs whose files are fetched while others run in all slots: they have not begun for anybody who looks."""
    staging = [each.job for each in attempts if each.state == "staging"]
    if not staging:
        return set()
    free = slots - sum(each.state in _IN_SLOT for each in attempts)
    return set(staging[max(0, free) :])
