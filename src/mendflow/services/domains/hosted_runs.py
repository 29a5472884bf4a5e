"""The cases that work of other domains runs as, on this server: begun, watched, stopped when their leases end, and told
of when they end."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine import StaleAnswer
from mendflow.core.engine.messages import Cancel, Resume, Suspend
from mendflow.core.model.domains import WorkStatus
from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job
from mendflow.services.base.background_tasks import BackgroundTasks, cancel_tasks, first_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.case_starter import CaseStarter
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.case_files import CaseFiles
from mendflow.services.domains.host_leases import HostLeases
from mendflow.services.domains.hosted_cases import newest_job, tries_of, work_outcome
from mendflow.services.domains.hosted_register import HostedRegister, HostedWork
from mendflow.services.domains.spilled_values import SpilledValues
from mendflow.services.domains.work_documents import DOMAIN_PORT
from mendflow.services.scheduling.facts import BorrowedWork, JobMoved, LogTails
from mendflow.services.scheduling.waiting_reasons import WaitingReasons
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.domains")

LOOK_MS: Final = 1_000
"""How often a server that shares its store looks at what others have written of the work that it does."""
KEPT_MS: Final = 24 * 3_600_000
"""How long it is remembered that work was over. A message that comes later has no lease with it."""
NOTHING_DUE: Final = 2**62
SILENT_ORIGIN: Final = "for too long nothing was heard of {origin}, which has sent it"
NO_LONGER_WANTED: Final = "{origin} no longer wants it"
NO_LONGER_CONNECTED: Final = "{origin} is no longer connected"
SENT_ANEW: Final = "{origin} has sent it anew"
"""Why work is stopped; `{origin}` stands for the name of the domain that has sent it."""
FOUND_AT_ONCE: Final = 100
"""The cases of so many pieces of work are looked for at the same time."""
EXPLAIN_MS: Final = 5_000
EXPLAINED_MAX: Final = 100
"""Why a job waits, or what it prints, is looked at so often, and for so many jobs at an exchange."""
LOG_TAIL_CHARS: Final = 2_000


class HostedRuns:
    """`shared`: other servers are on the store, so a case may live on one of them."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        manager: FlowManager,
        homes: HomeRegistry,
        starter: CaseStarter,
        leases: HostLeases,
        hub: Hub,
        shared: bool,
        is_connected: Callable[[], bool],
        resolve: Resolve,
        spilled: SpilledValues,
    ) -> None:
        self._is_connected = is_connected
        self._hub = hub
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._manager = manager
        self._homes = homes
        self.starter = starter
        self.leases = leases
        self._shared = shared
        self.register = HostedRegister(store, ledger, shared=shared)
        self.files = CaseFiles(store, manager, hub, self.register.files_sent, resolve, spilled)
        hub.provide(CaseFiles, self.files)
        self._on_news: list[Callable[[tuple[str, str]], None]] = []
        self._due_at = NOTHING_DUE
        self._background = BackgroundTasks(ledger)
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._stopping = asyncio.Lock()
        hub.provide(BorrowedWork, self)
        hub.subscribe(CaseEnded, lambda end: self._case_ended(end.document))
        hub.subscribe(JobMoved, self._job_moved)

    def listen(self, on_news: Callable[[tuple[str, str]], None]) -> None:
        """Call this, with the server that claims it, when a piece of work has ended."""
        self._on_news.append(on_news)

    async def load(self) -> None:
        """Read what was taken before; other servers may have taken more since."""
        await self.leases.look()
        works = await self.register.read_all()
        for start in range(0, len(works), FOUND_AT_ONCE):
            await asyncio.gather(*map(self.find_case, works[start : start + FOUND_AT_ONCE]))

    async def resume(self, cases: Iterable[LiveCase]) -> None:
        """Before any pilot gets jobs of cases that were loaded: stop those that we have no lease for, and those that
        nobody knows of any more."""
        loaded = [live for live in cases if live.document.port == DOMAIN_PORT]
        if not loaded:
            return
        await self.load()
        for live in loaded:
            work = self.register.by_case.get(live.id)
            if work is None:
                await self._command(live.id, Cancel(reason="the domain that sent it has to send it again"))
            else:
                await self.carry_out(work)
        await self._stop_due()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="hosted work")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        await self._background.stop()

    async def _watch(self) -> None:
        purged_at = self._clock.now()
        while True:
            await self._sleep()
            try:
                if self._looks():
                    await self._look_again()
                await self.stop_due()
                if self._clock.now() - purged_at >= KEPT_MS // 24:
                    purged_at = self._clock.now()
                    await self._purge()
            except StoreUnavailable as error:
                self._ledger.give_up(error.message)
                return
            except Exception:  # whatever is wrong with one piece of work, the leases of the others must be watched
                log.exception("the work of other domains could not be looked after; trying again")
                await self._clock.sleep(LOOK_MS)

    def _looks(self) -> bool:
        """Whether other servers on the store may have to do with other domains: it may fall to us to go on with it."""
        return self._shared and (self.leases.are_some or self._is_connected())

    def connections_changed(self) -> None:
        self._wake.set()

    async def _sleep(self) -> None:
        self._wake.clear()
        left_ms = min(max(1, self._due_at - self.leases.now()), LOOK_MS if self._looks() else KEPT_MS // 24)
        await first_of(self._wake.wait(), self._clock.sleep(left_ms))

    # Leases

    def is_due(self) -> bool:
        return self._due_at <= self.leases.now()

    async def stop_due(self) -> None:
        """Stop what no lease holds any more. Whoever comes while that is done waits until it is, and until cases that
        are being loaded can be stopped."""
        while loading := await self._stop_due():
            await self._homes.wait_until_loaded(loading[0])

    async def _stop_due(self) -> list[CaseId]:
        """Stop what is due; returns what cannot be stopped now, because another task loads it. That task comes here
        too, so nobody may wait for it meanwhile."""
        async with self._stopping:
            now, due, loading = self.leases.now(), list[HostedWork](), list[CaseId]()
            for work in self.register.by_case.values():
                if self.is_live(work) and self.leases.stop_at(*work.sender) <= now:
                    log.warning(
                        "case %s is stopped: %s no longer vouches for it",
                        work.case,
                        work.document.origin,
                        extra={"case": work.case},
                    )
                    due.append(work)
            await self._note_stopped(due, SILENT_ORIGIN)
            for work in due:
                if self._homes.is_loading_by_another(work.case):
                    loading.append(work.case)
                else:
                    await self.carry_out(work)
            self.note_due()
            return loading

    def note_due(self) -> None:
        """Find the next moment when something has to be stopped."""
        live = (of for of in self.register.senders() if any(map(self.is_live, self.register.claimed_by(of))))
        due_at = min((self.leases.stop_at(*of) for of in live), default=NOTHING_DUE)
        if due_at < self._due_at:
            self._wake.set()
        self._due_at = due_at

    async def stop_works(self, works: Sequence[HostedWork], why: str) -> None:
        """Stop them without their origin's asking. A pilot that cannot be reached stops its own when its lease ends."""
        await self._note_stopped(works, why)
        for work in works:
            await self.carry_out(work)

    async def _note_stopped(self, works: Sequence[HostedWork], why: str) -> None:
        stopped = [(work, {"stopped": why.format(origin=work.document.origin)}) for work in works]
        await self.register.change_all([(work, change) for work, change in stopped if not work.document.stopped])

    def attach(self, work: HostedWork, case: CaseDocument) -> None:
        self.register.attach(work, case.id)
        if case.live:
            self._set_status(work, self._live_status(work, case))
            self._due_at = min(self._due_at, self.leases.stop_at(*work.sender))
            self._wake.set()
        else:
            self._background.start(self._tell_end(work, case))

    async def find_case(self, work: HostedWork) -> None:
        """Find the case of work that was read from the store, if it has begun."""
        document = work.document
        if work.case or document.over or document.id in self.register.taking:
            return
        await self._ledger.settled()
        case = await self.starter.find_keyed(document.flow, document.case_key, port=DOMAIN_PORT)
        if case is not None and not case.void:
            if document.stopped:
                work.quiet_at = self.leases.now() + self.leases.guard_ms
            self.attach(work, case)

    # Cases

    async def carry_out(self, work: HostedWork) -> None:
        """Do to the case what its document says, if it lives here."""
        if not self.is_live(work):
            return
        document = work.document
        if document.stopped or document.over:
            work.quiet_at = self.leases.now() + self.leases.guard_ms
            reason = document.stopped or NO_LONGER_WANTED.format(origin=document.origin)
            await self._command(work.case, Cancel(reason=reason))
        elif document.control == "cancel":
            reason = document.reason or f"{document.origin} has cancelled it"
            await self._command(work.case, Cancel(reason=reason))
        elif document.control != work.applied:
            by, before = document.origin, work.applied
            work.applied = document.control
            suspended = self._manager.live[work.case].document.status == "suspended"
            if document.control == "suspend":
                await self._command(work.case, Suspend(holder=by, by=by))
            elif before or suspended:
                await self._command(work.case, Resume(holder=by, by=by))

    async def give_up(self, works: Sequence[HostedWork], why: str) -> None:
        """Stop what of these is under way, and drop their outcomes. If a case lives on another server, that one reads
        here that it has to stop it."""
        await self.stop_works([work for work in works if self.is_live(work)], why)
        over_at, changes = self._clock.now(), list[tuple[HostedWork, dict[str, object]]]()
        for work in works:
            stopped = work.document.stopped or (
                "" if work.status.state == "ended" else why.format(origin=work.document.origin)
            )
            changes.append((work, {"over": True, "over_at": over_at, "stopped": stopped}))
        await self.register.change_all(changes)
        for work in works:
            if not self.is_live(work):
                self.register.detach(work)

    async def _command(self, case: CaseId, command: Cancel | Suspend | Resume) -> None:
        try:
            await self._manager.command(case, command)
        except (NotFound, StaleAnswer):
            pass  # it has just ended

    def is_live(self, work: HostedWork) -> bool:
        live = self._manager.live.get(work.case)
        return live is not None and live.document.live

    async def is_over(self, work: HostedWork) -> bool:
        """Whether an earlier piece of work of the same key is certainly done with; if not, it is stopped."""
        await self.refresh(work)
        if work.case and work.status.state != "ended":
            await self.stop_works([work], SENT_ANEW)
        return work.status.state == "ended" and self.may_tell(work)

    def may_tell(self, work: HostedWork) -> bool:
        """Whether its status can be told: work that was stopped has ended when no pilot can still be at it."""
        return not work.document.stopped or work.quiet_at <= self.leases.now()

    def _case_ended(self, case: CaseDocument) -> None:
        work = self.register.by_case.get(case.id)
        if work is not None:
            self._background.start(self._tell_end(work, case))

    async def _tell_end(self, work: HostedWork, case: CaseDocument) -> None:
        await self._ledger.settled()
        if self._shared:
            await self.register.read([work.document.id])  # another server may have written why it was stopped
        if work.document.over or case.void:
            self.register.detach(work)
            work.case = CaseId("")  # one that never began: the origin hears that we have not got it, and sends it again
            return
        if work.document.stopped and case.status == "cancelled" and not work.quiet_at:
            work.quiet_at = self.leases.now() + self.leases.guard_ms
        job = await newest_job(self._store, case.id) if work.document.single else None
        last = job.history[-1] if job is not None and job.history else None
        outcome = work_outcome(work.document, case, job)
        if not work.document.by_name:
            outcome = await self.files.checked(case.id, work.document.files, outcome)
        status = WorkStatus(
            key=work.document.key,
            fence=work.document.fence,
            state="ended",
            case=case.id,
            outcome=outcome,
            host=last.host if last else "",
            site=last.site if last else "",
            attempts=job.tries if job is not None else 0,
            losses=job.losses if job is not None else 0,
            tries=tries_of(job) if job is not None else None,
        )
        self._set_status(work, status, news=True)

    def _job_moved(self, fact: JobMoved) -> None:
        work = self.register.by_case.get(fact.job.case) if self.register.by_case else None
        live = self._manager.live.get(fact.job.case) if work is not None else None
        if work is None or live is None or work.status.state == "ended":
            return
        if work.document.single:
            self._note_job(work, live.document, fact.job)
        else:
            self._set_status(work, self._live_status(work, live.document))

    def _note_job(self, work: HostedWork, case: CaseDocument, job: Job) -> None:
        """Tell of the only job of a piece of work where it runs, or that it waits."""
        last = job.history[-1] if job.history and job.pilot is not None else None
        where = (last.host or last.pilot, last.site) if last is not None else ("", "")
        progress = "running" if last is not None else "waiting"
        status = replace(self._live_status(work, case), host=where[0], site=where[1], progress=progress)
        began_at = last.granted_at if last is not None else 0
        status = replace(status, attempts=job.tries, losses=job.losses, began_at=began_at)
        work.job, work.explained_ms = job.id, None
        self._set_status(work, status)

    async def _find_job(self, work: HostedWork) -> None:
        """Find the job of which no move was heard: it began before this server did, or moved before the work was
        attached to its case."""
        await self._ledger.settled()
        found = await newest_job(self._store, work.case)
        live = self._manager.live.get(work.case)
        if found is not None and live is not None and not work.job and work.status.state != "ended":
            self._note_job(work, live.document, found)

    async def explain(self, works: Collection[HostedWork]) -> None:
        """Say of jobs that wait why they do. That changes without an event, so it is looked at now and then."""
        reasons, now = self._hub.provider(WaitingReasons), self.leases.now()
        waiting = [work for work in works if work.document.single and self.is_live(work) and not work.status.host]
        due = [work for work in waiting if work.explained_ms is None or now - work.explained_ms >= EXPLAIN_MS]
        for work in due[:EXPLAINED_MAX] if reasons is not None else ():
            work.explained_ms = now
            if not work.job:
                await self._find_job(work)
            told = reasons.of(work.job) if reasons is not None else None
            if told is not None and work.status.state != "ended":
                status = replace(work.status, progress="waiting", reason=told.sentence, stuck=told.stuck)
                self._set_status(work, status)

    def add_log_tails(self, works: Collection[HostedWork]) -> None:
        """Add to the statuses of jobs that run the end of what they have printed so far, now and then."""
        tails, now = self._hub.provider(LogTails), self.leases.now()
        running = [work for work in works if work.job and work.status.host and work.status.state == "running"]
        due = [work for work in running if work.explained_ms is None or now - work.explained_ms >= EXPLAIN_MS]
        for work in due[:EXPLAINED_MAX] if tails is not None else ():
            work.explained_ms = now
            tail = tails.log_tail(work.job)[-LOG_TAIL_CHARS:] if tails is not None else ""
            self._set_status(work, replace(work.status, log_tail=tail))

    def _live_status(self, work: HostedWork, case: CaseDocument) -> WorkStatus:
        live = self._manager.live.get(case.id)
        progress = ""
        if live is not None and not work.document.single:
            counts = live.tally.counts()
            done, open = sum(each.done for each in counts), sum(each.running + each.waiting for each in counts)
            progress = f"{done} completed, {open} under way"
        return WorkStatus(
            key=work.document.key,
            fence=work.document.fence,
            state="suspended" if case.status == "suspended" else "running",
            case=case.id,
            progress=progress,
        )

    def _set_status(self, work: HostedWork, status: WorkStatus, *, news: bool = False) -> None:
        if status == work.status:
            return
        work.status, work.told = status, 0
        if news:
            for tell in self._on_news:
                tell(work.sender)

    async def refresh(self, work: HostedWork) -> None:
        """Where its case lives on another server: see how it stands."""
        if work.case and work.status.state != "ended" and not self.is_live(work):
            case = await self._manager.document(work.case)
            if case is not None and not case.live:
                await self._tell_end(work, case)

    async def _look_again(self) -> None:
        await self.leases.look()
        mine = [work for work in self.register.by_case.values() if self.is_live(work)]
        await self.register.read([work.document.id for work in mine if not work.document.over])
        for work in mine:
            await self.carry_out(work)

    async def _purge(self) -> None:
        """Forget for good what has been over for long."""
        await self.register.purge(self._clock.now() - KEPT_MS)
        senders = set(self.register.senders())
        await self.leases.purge(lambda origin, sender: (origin, sender) in senders)
