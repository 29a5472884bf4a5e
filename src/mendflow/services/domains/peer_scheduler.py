"""Another domain as a meta-scheduler: jobs are sent there, and their outcomes come back.

A job has the same document as one of our own queue: lists, reasons and logs show it like any other. Its pilot is the
domain."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.domains.routing import lack_of
from mendflow.core.model.domains import DomainReport, SentWork, TriesThere, WorkStatus
from mendflow.core.model.errors import NotFound, RequestError
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId, item_name
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.recovery.ids import serial_of
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling.amounts import clock, duration
from mendflow.core.scheduling.job_events import JobFinished, TriesTakenOver
from mendflow.core.scheduling.retries import tries_max
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import Callback, CapacityReport, Clock, NewJob, Status, SubmissionFailed
from mendflow.services.base.hub import Hub
from mendflow.services.base.job_runs import run_to_end
from mendflow.services.base.ledger import Ledger
from mendflow.services.domains.sent_work import SentWorks
from mendflow.services.domains.work_documents import SentDocument
from mendflow.services.domains.work_files import files_in_job
from mendflow.services.scheduling.facts import FarWaits, JobEnded, JobMoved
from mendflow.stores.contract import Store

_decode = msgspec.json.Decoder(Job).decode


class HeardStatus(NamedTuple):
    """What a domain said last of a job, and when that was heard."""

    status: WorkStatus
    at: Instant


class FarJobs:
    """The jobs of this server that are in other domains, whichever. `way` are the domains that those of a case have
    come through, this one the last."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        hub: Hub,
        sent: SentWorks,
        way: Callable[[CaseId], tuple[str, ...]],
        opened: Callable[[JobSpec], JobSpec] = lambda spec: spec,
        report_of: Callable[[str], DomainReport | None] = lambda _: None,
    ) -> None:
        self._store = store
        self._report_of = report_of
        self.ledger = ledger
        self.clock = clock
        self._hub = hub
        self.sent = sent
        self.way = way
        self.opened = opened
        self.jobs: dict[JobId, Job] = {}
        self.heard: dict[JobId, HeardStatus] = {}
        self._stuck_since: dict[JobId, Instant] = {}
        self.callbacks: dict[JobId, Callback] = {}
        self.background = BackgroundTasks(ledger)
        sent.own("job", self)
        hub.provide(FarWaits, self)

    async def stop(self) -> None:
        await self.background.stop()

    async def read(self, id: JobId) -> Job | None:
        await self.ledger.settled()
        found = await self._store.get(JOB_KIND, id)
        return _decode(found.body) if found is not None else None

    async def load(self, id: JobId) -> Job | None:
        """The document of a job that was sent before; one that is not over is in memory then."""
        if id in self.jobs:
            return self.jobs[id]
        await self.ledger.settled()
        found = await self._store.get(JOB_KIND, id)
        if found is None:
            return None
        job = _decode(found.body)
        if not job.finished:
            self.ledger.known(JOB_KIND, id, found.version)
            self.jobs[id] = job
        return job

    def changed(self, job: Job, *, from_outside: bool = False) -> None:
        """`from_outside`: it changed because of what its domain says; every other change follows from an order of its
        case."""
        self.ledger.touch(JOB_KIND, job.id, job, from_outside=from_outside)
        self._hub.publish(JobMoved(job))

    def close(self, job: Job, *, from_outside: bool = False) -> None:
        self.ledger.touch(JOB_KIND, job.id, job, last=True, from_outside=from_outside)
        self.jobs.pop(job.id, None)
        self.heard.pop(job.id, None)
        self._stuck_since.pop(job.id, None)
        self._hub.publish(JobMoved(job))
        self._hub.publish(JobEnded(job))

    # What is known of them

    def lack_of(self, job: Job, domain: str) -> str:
        """What none of the domain's pilots has, as its report or it itself has said; empty if it may get the job done,
        or does so now."""
        heard = self.heard.get(job.id)
        if heard is not None and (heard.status.host or heard.status.state == "ended"):
            return ""
        if heard is not None and heard.status.stuck:
            return heard.status.reason
        report = self._report_of(domain)
        lack = lack_of(job.spec.resources, report) if report is not None else ""
        return f"no pilot can take it: {lack}" if lack else ""

    def stuck_jobs(self) -> Iterator[tuple[Job, Instant]]:
        for job in list(self.jobs.values()):
            sent = self.sent.open_work(job.id)
            if sent is not None and not job.suspended and self.lack_of(job, sent.domain):
                yield job, self._stuck_since.setdefault(job.id, self.clock.now())
            else:
                self._stuck_since.pop(job.id, None)

    def log_note(self, id: JobId) -> str:
        """Why there is no log of a job yet; empty if it is in no other domain."""
        sent = self.sent.open_work(id)
        heard = self.heard.get(id)
        if sent is None:
            return ""
        does = "runs" if heard is not None and heard.status.host else "is"
        note = f"it {does} in the domain {sent.domain}; its log comes from there when it has ended"
        tail = heard.status.log_tail if heard is not None else ""
        return f"{note}. So far it ends with:\n{tail}" if tail else note

    # The owner of sent work

    def work_moved(self, document: SentDocument, status: WorkStatus) -> None:
        job = self.jobs.get(JobId(document.key))
        if job is None:
            return
        self.heard[job.id] = HeardStatus(status, self.clock.now())
        if status.host and job.state is JobState.AVAILABLE and not job.suspended:
            self._grant(job, document, status)
            self.changed(job, from_outside=True)

    def _grant(self, job: Job, document: SentDocument, status: WorkStatus) -> None:
        where = PilotId(document.domain)
        lease_ms, now = document.lease_ms, max(self.clock.now(), job.available_at)
        granted = job_lifecycle.grant(job, where, now=now, host=status.host, site=status.site, lease_ms=lease_ms)
        for event in granted:
            job_events.evolve(job, event)

    async def work_ended(self, document: SentDocument) -> None:
        job = await self.load(JobId(document.key))
        if job is None or job.finished or document.outcome is None:
            return
        outcome = document.outcome
        was_there = outcome.fault is None or outcome.fault.stage != AttemptStage.SUBMISSION
        if job.state is JobState.AVAILABLE and not job.suspended and was_there:
            self._grant(job, document, WorkStatus(key=document.key, fence=document.fence, state="ended"))
        end = "completed" if outcome.ok else "failed"
        own = was_there and outcome.fault is not None and not outcome.fault.infrastructure
        job_events.evolve(job, JobFinished(outcome, end, self.clock.now(), own=own))
        if document.tries is not None and document.tries.attempts and was_there:
            job_events.evolve(job, _tries_there(job, document.domain, document.tries))
        self.close(job, from_outside=True)
        callback = self.callbacks.pop(job.id, None)
        if callback is not None:
            await callback(job.id, outcome)

    async def may_ask(self, document: SentDocument) -> bool:
        return False  # the job's own document has it


class PeerScheduler:
    """One other domain, by its name. `report` is what it last said of itself."""

    def __init__(
        self, domain: str, far: FarJobs, report: Callable[[str], DomainReport | None] = lambda _: None
    ) -> None:
        self.domain = domain
        self._far = far
        self._report = report

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        far = self._far
        if not far.sent.is_reachable(self.domain) and not reissued:
            raise SubmissionFailed(self._not_connected())
        for new in jobs:
            if new.id in far.jobs:
                continue
            known = await far.load(new.id) if reissued else None
            if known is not None and known.finished:
                continue
            document = self._document(new)
            if known is None:
                known = job_lifecycle.create(new.id, new.case, new.spec, now=far.clock.now(), not_before=new.not_before)
                known.cache_reason, known.key = new.note, new.key
                far.jobs[new.id] = known
                far.changed(known)
            before = await far.sent.take_up(new.id) if reissued else None
            if before is None:
                far.sent.send(document)
            elif before.outcome is not None:
                far.background.start(far.work_ended(before))

    def _document(self, new: NewJob) -> SentDocument:
        try:
            spec = self._far.opened(new.spec)
        except RequestError as error:
            fault = Fault(name="notSendable", category=Category.INPUT, message=error.message)
            raise SubmissionFailed(fault) from error
        files = tuple(files_in_job(spec))
        work = SentWork(
            key=new.id,
            fence=1,
            name=item_name(new.spec.item),
            job=spec,
            files=files,
            owner=new.spec.owner,
            way=self._far.way(new.case),
        )
        return SentDocument(
            key=new.id,
            domain=self.domain,
            case=new.case,
            serial=serial_of(new.id),
            kind="job",
            work=work,
            not_before=new.not_before,
        )

    def _not_connected(self) -> Fault:
        return Fault(
            name="noSuchDomain",
            category=Category.SCHEDULER_DOWN,
            message=not_connected(self.domain),
            stage=AttemptStage.SUBMISSION,
        )

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return await run_to_end(self, job, reissued=reissued)

    async def status(self, id: JobId) -> Status:
        job = self._far.jobs.get(id) or await self._far.read(id)
        if job is None:
            raise NotFound(f"there is no job {id}")
        last = job.history[-1] if job.history else None
        heard = self._far.heard.get(id)
        lack = "" if job.finished else self._far.lack_of(job, self.domain)
        reason = f"it has {job.state.value}" if job.finished else self._reason(heard, lack)
        return Status(
            job=id,
            state=job.state,
            suspended=job.suspended,
            attempts=job.tries,
            losses=job.losses,
            reason=reason,
            outcome=job.outcome,
            pilot=last.pilot if last else "",
            host=last.host if last else "",
            site=last.site if last else "",
            progress=_progress(heard) if not job.finished else "",
            stuck=bool(lack),
        )

    def _reason(self, heard: "HeardStatus | None", lack: str) -> str:
        """What the domain said last of a job, and when; if it is silent, since when, and what happens next."""
        said = f"{_said(heard)} (as {self.domain} said at {clock(heard.at)})" if heard is not None else ""
        if lack and (heard is None or not heard.status.stuck):
            said = f"{lack} (as {self.domain} reports of itself)"
        silence = self._far.sent.silence(self.domain)
        if silence is None:
            return said or "it was sent, and nothing was heard of it yet"
        next = (
            f"if it stays silent, its lease has certainly ended in {duration(silence.left_ms)}; then the job counts as"
            " lost there, and is submitted again"
        )
        return "; ".join(filter(None, (f"no answer from {self.domain} since {clock(silence.since)}", said, next)))

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        far = self._far
        if id in far.jobs:
            far.callbacks[id] = callback
            return
        job = await far.read(id)
        if job is None or job.outcome is None:
            raise NotFound(f"there is no job {id}")
        far.background.start(_notify(callback, id, job.outcome))

    async def suspend(self, id: JobId) -> None:
        job = self._far.jobs.get(id)
        if job is not None and (events := job_lifecycle.suspend(job)):
            job_events.evolve(job, events[0])
            self._far.changed(job)
            self._far.sent.control(id, "suspend")

    async def resume(self, id: JobId) -> None:
        job = self._far.jobs.get(id)
        if job is not None and (events := job_lifecycle.resume(job)):
            job_events.evolve(job, events[0])
            self._far.changed(job)
            self._far.sent.control(id, "run")

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        far = self._far
        job = far.jobs.get(id)
        if job is None:
            return
        far.callbacks.pop(id, None)
        for event in job_lifecycle.cancel(job, now=far.clock.now(), reason=reason):
            job_events.evolve(job, event)
        far.close(job)
        far.sent.withdraw(id, reason)

    async def capacity(self) -> CapacityReport:
        told = self._report(self.domain) or DomainReport()
        largest = told.largest
        return CapacityReport(
            pilots=0,
            slots=told.slots,
            slots_free=told.slots_free,
            cpus=largest.cpus if largest is not None else 0.0,
            memory_bytes=largest.memory_bytes if largest is not None else 0,
            gpus=largest.gpus if largest is not None else 0,
            waiting=told.waiting,
            running=told.running,
            sites=[],
        )


def _progress(heard: HeardStatus | None) -> str:
    """In a word. What has ended there is still to come here."""
    if heard is None:
        return "waiting"
    status = heard.status
    if status.state in ("suspended", "ended"):
        return "suspended" if status.state == "suspended" else "staging"
    return status.progress if status.progress in ("waiting", "running", "staging") else "running"


def _said(heard: HeardStatus) -> str:
    status = heard.status
    if status.state == "ended":
        return "it has ended there, and its outcome is being fetched"
    if status.state == "suspended":
        return "it is suspended there"
    if status.host:
        since = f" since {clock(status.began_at)}" if status.began_at else ""
        tries = f", attempt {status.attempts}" if status.attempts > 1 else ""
        return f"it runs there on {status.host}{since}{tries}"
    return f"it waits there: {status.reason}" if status.reason else "it waits there"


def _tries_there(job: Job, domain: str, tries: TriesThere) -> TriesTakenOver:
    """The attempts there as the job's own. The whole log of the last has come with the outcome; no other file of them
    has."""
    history = [replace(each, pilot=PilotId(domain), token="", log=None, folder="") for each in tries.attempts]
    if job.outcome is not None and history[-1].end:
        history[-1] = replace(history[-1], log=job.outcome.log)
    kept = [each for each in history if each.end]
    failures = min(tries.failures, tries_max(job.spec))
    return TriesTakenOver(tuple(kept), tries.fence, tries.unbegun, failures, tries.losses)


async def _notify(callback: Callback, id: JobId, outcome: Outcome) -> None:
    await callback(id, outcome)
