"""Jobs that go to a batch system one by one, without our queue and pilots: the baseline for comparisons.

Each job is submitted, waits in the batch queue, runs on a host with all its files from the storage element, and its end
is noticed some time later. The product's own retry rules decide whether it is submitted again after a failure."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Job, JobState, Outcome
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as life
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.services.base.contracts import Callback, CapacityReport, NewJob, Status
from mendflow.sim.grid.attempts import AttemptLocation, SimulatedAttempt
from mendflow.sim.grid.batch import HostPool
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.elements import draw_seconds
from mendflow.sim.machines import BEGINNING


class DirectSubmission:
    """A `MetaScheduler`. A job goes to the site that it names, otherwise to the first."""

    def __init__(self, context: GridContext, pools: Iterable[HostPool]) -> None:
        self._context = context
        self._pools = {pool.site.name: pool for pool in pools}
        self._policy = RetryPolicy(losses_max=context.scene.losses_max)
        self._jobs: dict[JobId, Job] = {}
        self._attempts: dict[JobId, tuple[HostPool, SimulatedAttempt]] = {}
        self._callbacks: dict[JobId, Callback] = {}
        self._line: dict[str, deque[Job]] = {name: deque() for name in self._pools}

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        for new in jobs:
            if new.id not in self._jobs:
                job = life.create(new.id, new.case, new.spec, now=self._now(), not_before=new.not_before)
                self._jobs[job.id] = job
                self._send(job)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        over: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        async def tell(_: JobId, outcome: Outcome) -> None:
            over.set_result(outcome)

        await self.submit([job], reissued=reissued)
        await self.subscribe(job.id, tell)
        return await over

    async def status(self, id: JobId) -> Status:
        job = self._jobs[id]
        return Status(job=id, state=job.state, attempts=job.fence, losses=job.losses, outcome=job.outcome)

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        self._callbacks[id] = callback
        if self._jobs[id].finished:
            await self._tell(self._jobs[id])

    async def suspend(self, id: JobId) -> None:
        """Not supported by batch systems."""

    async def resume(self, id: JobId) -> None: ...

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        job = self._jobs.get(id)
        if job is None or job.finished:
            return
        self._callbacks.pop(id, None)
        self._apply(job, life.cancel(job, now=self._now(), reason=reason))
        if id in self._attempts:
            pool, attempt = self._attempts.pop(id)
            attempt.stop("cancelled")
            self._release_host(pool, attempt)

    async def capacity(self) -> CapacityReport:
        running = len(self._attempts)
        waiting = sum(job.state is JobState.AVAILABLE for job in self._jobs.values())
        return CapacityReport(
            pilots=0,
            slots=0,
            slots_free=0,
            cpus=0.0,
            memory_bytes=0,
            gpus=0,
            waiting=waiting,
            running=running,
            sites=sorted(self._pools),
        )

    # the life of a job

    def _send(self, job: Job) -> None:
        pool = self._pool_of(job)
        chance = self._context.chance("direct", job.id, job.fence)
        batch = pool.site.batch
        wait_s = max(0, job.available_at - self._now()) / 1000
        self._context.pending += 1
        self._context.after(
            wait_s + draw_seconds(batch.submit_s, chance) + draw_seconds(batch.queue_s, chance), self._start, job
        )

    def _start(self, job: Job) -> None:
        pool = self._pool_of(job)
        host = "" if job.finished else pool.place()
        if job.finished:
            self._context.pending -= 1
        elif not host:
            self._line[pool.site.name].append(job)
        else:
            self._context.pending -= 1
            self._apply(job, life.grant(job, PilotId(host), now=self._now(), host=host, site=pool.site.name))
            spot = AttemptLocation(pool.site, host, PilotId(host))
            attempt = SimulatedAttempt(self._context, spot, job.id, job.fence, job.spec, self._over)
            self._attempts[job.id] = (pool, attempt)
            attempt.begin()

    def _over(self, attempt: SimulatedAttempt) -> None:
        pool, _ = self._attempts.pop(attempt.job)
        self._release_host(pool, attempt)
        chance = self._context.chance("notify", attempt.job, attempt.fence)
        self._context.pending += 1
        self._context.after(draw_seconds(pool.site.batch.notify_s, chance), self._notify_end, attempt)

    def _release_host(self, pool: HostPool, attempt: SimulatedAttempt) -> None:
        pool.leave(attempt.host)
        if self._line[pool.site.name]:
            self._start(self._line[pool.site.name].popleft())

    def _notify_end(self, attempt: SimulatedAttempt) -> None:
        self._context.pending -= 1
        job = self._jobs[attempt.job]
        assert attempt.outcome is not None
        if job.finished:
            return
        verdict = life.report(
            job, PilotId(attempt.host), attempt.fence, attempt.outcome, now=self._now(), policy=self._policy
        )
        self._apply(job, verdict.events)
        if job.finished:
            self._context.loop.create_task(self._tell(job))
        else:
            self._send(job)

    async def _tell(self, job: Job) -> None:
        callback = self._callbacks.pop(job.id, None)
        if callback is not None:
            assert job.outcome is not None
            await callback(job.id, job.outcome)

    def _apply(self, job: Job, events: Iterable[job_events.JobEvent]) -> None:
        for event in events:
            job_events.evolve(job, event)

    def _pool_of(self, job: Job) -> HostPool:
        return self._pools.get(job.spec.resources.site) or next(iter(self._pools.values()))

    def _now(self) -> int:
        return BEGINNING + round(self._context.now_s * 1000)
