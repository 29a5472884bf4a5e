"""The meta-scheduler of this domain: a queue of jobs, and the pilots that pull from it.

Every job is a document with a version. It goes from available to running by a grant that raises its fence, and no
report under an older fence changes it. This module has the jobs and the queue; the exchange with pilots is in
exchange.py."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Measurements, Outcome, Resources
from mendflow.core.model.sync import AttemptControl, AttemptOrder, LogPart, LogRequest
from mendflow.core.model.values import Value
from mendflow.core.model.views import PilotView
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.core.scheduling.data_explanations import files_of, match_sentence
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.core.scheduling.leases import Leases
from mendflow.core.scheduling.queue import JobQueue, WaitingGroup
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import Callback, CapacityReport, Clock, NewJob, Status
from mendflow.services.base.counters import JobMetrics
from mendflow.services.base.hub import Hub
from mendflow.services.base.job_runs import run_to_end
from mendflow.services.base.ledger import Ledger
from mendflow.services.scheduling.cache_records import CacheRegistry
from mendflow.services.scheduling.facts import (
    AttemptEnding,
    JobEnded,
    JobMoved,
    JobQuotas,
    JobSizer,
    LogTails,
    WorkAnnouncer,
)
from mendflow.services.scheduling.idle_pilots import IdlePilots
from mendflow.services.scheduling.live_logs import LiveLogReader
from mendflow.services.scheduling.pilot_records import GrantedAttempt, PilotRecord
from mendflow.stores.contract import Store

_decode = msgspec.json.Decoder(Job).decode


class RunningAttempt(NamedTuple):
    """The last report of a pilot on an attempt that it runs."""

    pilot: PilotId
    measures: Measurements
    values: dict[str, Value]


class PilotScheduler:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        policy: RetryPolicy,
        lease_ms: int,
        steady_ms_now: Callable[[], int] | None = None,
        counts: JobMetrics | None = None,
        hub: Hub | None = None,
        queue: JobQueue | None = None,
        signals: WorkAnnouncer | None = None,
        is_loading: Callable[[JobId], bool] = lambda _: False,
        is_stopped: Callable[[JobId], bool] = lambda _: False,
        spec_for_pilot: Callable[[Job], JobSpec] = lambda job: job.spec,
        promised_until: Callable[[Job], int] | None = None,
    ) -> None:
        """Leases are measured by `steady_ms_now`: the clock itself may jump ahead when a case comes from another
        server. `signals` announces work to the other servers, if there are some. `is_loading` says whether a job's case
        is being loaded, `is_stopped` whether it waits for somebody to resume it, `promised_until` until when another
        server has promised a job to its pilot."""
        self.hub = hub = hub or Hub()
        self._hear_attempts = hub.listeners(AttemptEnding)
        self.signals = signals
        self.is_loading = is_loading
        self.is_stopped = is_stopped
        self.spec_for_pilot = spec_for_pilot
        self.promised_until = promised_until or self.full_lease_end
        self._store = store
        self.steady_ms_now = steady_ms_now or clock.now
        self.counts = counts or JobMetrics()
        self._ledger = ledger
        self._clock = clock
        self.policy = policy
        self.leases = Leases(lease_ms)
        self.jobs: dict[JobId, Job] = {}
        self.queue = queue if queue is not None else JobQueue()
        self.idle = IdlePilots(self.queue, signals)
        self.caches = CacheRegistry(self.queue.caches)
        self.pilots: dict[PilotId, PilotRecord] = {}
        self.held_back: dict[JobId, Job] = {}  # until their cases are loaded, or resumed
        self._callbacks: dict[JobId, Callback] = {}
        self._failed_jobs: dict[JobId, Job] = {}  # failed, and the submitter is being told just now
        self._unable_since: dict[Resources, Instant] = {}
        self.requeued: dict[JobId, Instant] = {}  # requeued by people, and when their pilots were last told
        self.live_logs = LiveLogReader(signals)
        self.hub.provide(LogTails, self)
        self._background = BackgroundTasks(ledger)

    async def stop(self) -> None:
        await self._background.stop()

    # The contract

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        sizer = self.hub.provider(JobSizer)
        if sizer is not None and (learned := [new for new in jobs if new.spec.resources.is_learned]):
            await sizer.load(learned)
        if reissued:
            jobs = await self._load_known(jobs)
        now = self._clock.now()
        self.counts.submitted += len(jobs)
        for new in jobs:
            job = job_lifecycle.create(new.id, new.case, new.spec, now=now, not_before=new.not_before)
            job.cache_reason, job.key = new.note, new.key
            self.jobs[job.id] = job
            self.enqueue(job)
            self.changed(job)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return await run_to_end(self, job, reissued=reissued)

    async def status(self, id: JobId) -> Status:
        job = self.jobs.get(id) or self._failed_jobs.get(id) or await self._read(id)
        last = job.history[-1] if job.history else None
        return Status(
            job=id,
            state=job.state,
            suspended=job.suspended,
            attempts=job.tries,
            losses=job.losses,
            reason=last.end if last else "waiting",
            outcome=job.outcome,
            pilot=last.pilot if last else "",
            host=last.host if last else "",
            site=last.site if last else "",
            asked=job.spec.resources,
        )

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        if id in self.jobs:
            self._callbacks[id] = callback
            return
        outcome = (await self._read(id)).outcome
        assert outcome is not None
        self._background.start(_notify(callback, id, outcome))

    async def suspend(self, id: JobId) -> None:
        if (job := self.jobs.get(id)) is not None and self.apply(job, job_lifecycle.suspend(job)):
            self.queue.remove(id)
            self._control(job, AttemptControl.SUSPEND)
            self.changed(job)

    async def resume(self, id: JobId) -> None:
        if (job := self.jobs.get(id)) is not None and self.apply(job, job_lifecycle.resume(job)):
            if job.state is JobState.AVAILABLE:
                self.enqueue(job)
            self._control(job, AttemptControl.RESUME)
            self.changed(job)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        """Cancel a job without a callback: whoever cancels no longer waits."""
        job = self.jobs.get(id)
        if job is None:
            return
        self._callbacks.pop(id, None)
        self._control(job, AttemptControl.CANCEL)
        self.queue.remove(id)
        tail = self.log_tail(id)
        self.detach(job)
        self.apply(job, job_lifecycle.cancel(job, now=self._clock.now(), reason=reason, log_tail=tail))
        self.close(job)

    def requeue(self, id: JobId, *, by: str, reason: str) -> Job | None:
        """Take the job's attempt from its pilot, which is told to stop it. None if no pilot has the job."""
        job = self.jobs.get(id)
        if job is None or not self.apply(
            job, job_lifecycle.requeue_attempt(job, by=by, reason=reason, now=self._clock.now())
        ):
            return None
        self._control(job, AttemptControl.CANCEL)
        self.requeued[id] = self._clock.now()
        self.changed(job, from_outside=True)
        return job

    def repeat_requeue_orders(self, pilot: PilotRecord) -> None:
        """A pilot that does not stop a requeued attempt within a lease is told that the attempt is lost. The order may
        have been lost in a restart: until then it is repeated from time to time."""
        now, lease_ms = self._clock.now(), self.leases.lease_ms
        for id, told_at in list(self.requeued.items()):
            job = self.jobs.get(id)
            if job is None or job.requeued is None:
                del self.requeued[id]
            elif id in pilot.held and now - job.requeued.at >= lease_ms:
                self.leases.end(pilot.id, id)
            elif id in pilot.held and now - told_at >= lease_ms // 6:
                self.requeued[id] = now
                pilot.orders.append(AttemptOrder(id, job.fence, AttemptControl.CANCEL))

    async def capacity(self) -> CapacityReport:
        pilots = list(self.pilots.values())
        return CapacityReport(
            pilots=len(pilots),
            slots=sum(pilot.capacity.slots for pilot in pilots),
            slots_free=sum(pilot.free_slots for pilot in pilots),
            cpus=sum(pilot.capacity.cpus for pilot in pilots),
            memory_bytes=sum(pilot.capacity.memory_bytes for pilot in pilots),
            gpus=sum(pilot.capacity.gpus for pilot in pilots),
            waiting=self.jobs_waiting(),
            running=self.jobs_running(),
            sites=sorted({pilot.site for pilot in pilots if pilot.site}),
        )

    # What the exchange and the views use

    def apply(self, job: Job, events: Iterable[job_events.JobEvent]) -> bool:
        """Apply the events; whether there were any."""
        happened = False
        for event in events:
            if self._hear_attempts:
                self.hub.publish(AttemptEnding(job, event))
            job_events.evolve(job, event)
            self.counts.job_changed(job, event)
            happened = True
        return happened

    def detach(self, job: Job) -> None:
        """The job's attempt is no longer with its pilot."""
        if job.pilot is not None:
            self.leases.drop(job.pilot, job.id)
            if (pilot := self.pilots.get(job.pilot)) is not None:
                pilot.held.pop(job.id, None)
                pilot.log_tails.pop(job.id, None)
            self.live_logs.end(job.id)

    def enqueue_held_back(self) -> None:
        """Cases that were being loaded are here, or stopped ones are resumed: put their jobs into the queue."""
        held_back, self.held_back = self.held_back, {}
        for job in held_back.values():
            if self.jobs.get(job.id) is job and job.state is JobState.AVAILABLE:
                self.enqueue(job)

    def enqueue(self, job: Job) -> None:
        if self.is_loading(job.id) or self.is_stopped(job.id):
            self.held_back[job.id] = job
        elif not job.suspended:
            spec = job.spec
            if spec.resources.is_learned and (sizer := self.hub.provider(JobSizer)) is not None:
                job_lifecycle.resize(job, sizer.size_of(job))
                spec = job.spec
            quotas = self.hub.provider(JobQuotas)
            if quotas is not None and not quotas.admits(job):
                return
            self.queue.add(
                job.id,
                job_lifecycle.effective_needs(job, quotas.uses(job) if quotas is not None else None),
                spec.priority,
                job.created_at,
                job.available_at,
                files_of(spec) if spec.inputs else (),
                self.queue.shares.account(spec.project, spec.account or spec.owner),
            )
            self.idle.wake()

    def queue_again(self, projects: Collection[str]) -> None:
        """Other quotas or shares hold for these projects: their waiting jobs are put into the queue anew."""
        self.size_waiting_again([job for job in self.jobs.values() if job.spec.project in projects] if projects else ())

    def size_waiting_again(self, jobs: Iterable[Job]) -> None:
        """More is known of what these jobs need: those that still wait ask for that from now on."""
        for job in jobs:
            before = job.spec.resources
            if job.state is JobState.AVAILABLE and self.queue.remove(job.id):
                self.enqueue(job)
                if job.spec.resources != before:
                    self.changed(job)

    def match_reason(self, job: Job) -> str:
        """Why a job was just chosen for a pilot: what its data had to do with it."""
        chosen = self.queue.chosen.get(job.id)
        if chosen is None:
            return ""
        self.counts.placed.add("turn" if chosen.turn else "data" if chosen.bytes else "order")
        return match_sentence(job.spec, chosen)

    def changed(self, job: Job, *, from_outside: bool = False) -> None:
        """`from_outside`: it changed because of a report of its pilot, or of the clock; every other change follows from
        an order of its case."""
        self._ledger.touch(JOB_KIND, job.id, job, from_outside=from_outside)
        self.hub.publish(JobMoved(job))

    def close(self, job: Job, *, from_outside: bool = False) -> None:
        """The job is over: write it for the last time, and remove it from memory."""
        self._ledger.touch(JOB_KIND, job.id, job, last=True, from_outside=from_outside)
        self.jobs.pop(job.id, None)
        self.hub.publish(JobMoved(job))
        self.hub.publish(JobEnded(job))

    async def finish(self, job: Job) -> None:
        """The job is over: tell its submitter."""
        self.close(job, from_outside=True)
        callback = self._callbacks.pop(job.id, None)
        if callback is None:
            return
        assert job.outcome is not None
        if job.outcome.fault is None:
            await callback(job.id, job.outcome)
            return
        self._failed_jobs[job.id] = job
        try:
            await callback(job.id, job.outcome)
        finally:
            del self._failed_jobs[job.id]

    def pilot(self, id: PilotId) -> PilotRecord:
        """The pilot's record; a new one with a full lease if it was not known."""
        record = self.pilots.get(id)
        if record is None:
            record = self.pilots[id] = PilotRecord(id)
            self.leases.touch(id, now=self.steady_ms_now())
        return record

    def forget(self, id: PilotId) -> None:
        """The pilot has left, or is gone."""
        self.pilots.pop(id, None)
        self.queue.leave(id)
        self.caches.forget(id)

    def own_pilots(self) -> list[PilotRecord]:
        """The pilots that are connected to this server; others are known because they might take what waits here."""
        return [pilot for pilot in self.pilots.values() if not pilot.front]

    def pilot_views(self) -> list[PilotView]:
        return [self.pilot_view(pilot) for _, pilot in sorted(self.pilots.items())]

    def pilot_view(self, pilot: PilotRecord) -> PilotView:
        lease = self.leases.lease_of(pilot.id)
        left_ms = lease.until - self.steady_ms_now() if lease else 0
        return pilot.view(self._clock.now(), left_ms, self.caches.size(pilot.id))

    def log_tail(self, id: JobId) -> str:
        """The end of a running job's log, as far as its pilot has reported it."""
        job = self.jobs.get(id)
        pilot = self.pilots.get(job.pilot) if job is not None and job.pilot is not None else None
        return pilot.log_tails.get(id, "") if pilot is not None else ""

    async def read_log(self, id: JobId, offset: int) -> LogPart | None:
        """A part of the log of the attempt that runs, asked of its pilot. None if none runs any more, or its pilot does
        not answer."""
        job = self.jobs.get(id)
        pilot = self.pilots.get(job.pilot) if job is not None and job.pilot is not None else None
        if job is None or pilot is None:
            return None
        return await self.live_logs.read(LogRequest(id, job.fence, offset), pilot)

    def running(self, id: JobId) -> RunningAttempt | None:
        """The last report on a running job: measures so far, and values that the job reports of itself."""
        job = self.jobs.get(id)
        pilot = self.pilots.get(job.pilot) if job is not None and job.pilot is not None else None
        held = pilot.held.get(id) if pilot is not None else None
        if pilot is None or held is None or held.measures is None:
            return None
        return RunningAttempt(pilot.id, held.measures, held.values or {})

    def runs(self, job: Job) -> bool:
        """Whether a granted job has begun, as far as is known: pilots prefetch short ones."""
        pilot = self.pilots.get(job.pilot) if job.pilot is not None else None
        held = pilot.held.get(job.id) if pilot is not None else None
        return held is None or held.runs

    def jobs_running(self) -> int:
        return sum(held.runs for pilot in self.pilots.values() for held in pilot.held.values())

    def jobs_waiting(self) -> int:
        """Jobs in the queue, or with a pilot that has not begun them."""
        return len(self.queue) + sum(len(pilot.held) for pilot in self.pilots.values()) - self.jobs_running()

    def waiting(self) -> list[WaitingGroup]:
        """The waiting jobs, by what they need, and since when no known pilot could ever take them."""
        now = self._clock.now()
        offers = (pilot.offer((), rounds=1, now=now) for pilot in self.pilots.values() if pilot.seen_at)
        found = self.queue.waiting(offers)
        self._unable_since = {
            each.needs: self._unable_since.get(each.needs, now) for each in found if not each.has_pilot
        }
        return [each if each.has_pilot else each.unable(self._unable_since[each.needs]) for each in found]

    def _control(self, job: Job, control: AttemptControl) -> None:
        pilot = self.pilots.get(job.pilot) if job.pilot is not None else None
        if pilot is not None:
            pilot.orders.append(AttemptOrder(job.id, job.fence, control))
            pilot.wake.set()
            if pilot.front and self.signals is not None:
                self.signals.summon(pilot)

    def full_lease_end(self, job: Job) -> int:
        """A whole lease from now, of ours or of the server that granted it, whichever is longer."""
        return self.steady_ms_now() + max(self.leases.lease_ms, job.history[-1].lease_ms)

    async def _load_known(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        """Those that were not submitted before. The others are loaded from their documents."""
        missing = [new for new in jobs if new.id not in self.jobs]
        kept = {found.id: found for found in await self._store.get_many(JOB_KIND, [new.id for new in missing])}
        for found in kept.values():
            job = _decode(found.body)
            if job.id in self.jobs:
                continue  # another task loaded it while we read
            if job.finished:
                continue  # who wants its outcome reads it
            self._ledger.known(JOB_KIND, job.id, found.version)
            self.jobs[job.id] = job
            if job.state is JobState.AVAILABLE:
                self.enqueue(job)
            else:
                assert job.pilot is not None
                holder = self.pilot(job.pilot)
                holder.held[job.id] = GrantedAttempt(job.history[-1].serial or None)
                holder.owner = holder.owner or job.history[-1].token
                begun_ms = self.promised_until(job) - self.leases.lease_ms
                self.leases.grant(job.pilot, job.id, job.fence, now=begun_ms, inherited=self.signals is not None)
                longer = job.history[-1].lease_ms < self.leases.lease_ms
                if longer:  # than the lease that a server which loads it after us would assume
                    job.history[-1] = msgspec.structs.replace(job.history[-1], lease_ms=self.leases.lease_ms)
                if self.signals is not None or longer:
                    # Renewals are not written. So that no delayed write of its last server can take the attempt from
                    # a pilot whose lease we renew, the document gets another version before we answer.
                    self._ledger.touch(JOB_KIND, job.id, job)
                if job.requeued is not None:
                    self.requeued[job.id] = 0
        return [new for new in missing if new.id not in kept and new.id not in self.jobs]

    async def _read(self, id: JobId) -> Job:
        await self._ledger.settled()
        found = await self._store.get(JOB_KIND, id)
        if found is None:
            raise NotFound(f"there is no job {id}")
        return _decode(found.body)


async def _notify(callback: Callback, id: JobId, outcome: Outcome) -> None:
    await callback(id, outcome)
