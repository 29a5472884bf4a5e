"""Jobs that go to a batch system one by one, without a queue of ours and without pilots: what pilots are compared with.

Each job is submitted, waits in the batch system's queue, runs on a host with all its files from the storage element,
and its end is noticed some time later. Whether it is submitted again after a failure is decided by the product's own
rules for the life of a job."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Job, JobState, Outcome
from mendflow.core.scheduling import jobs as life
from mendflow.core.scheduling.jobs import Policy
from mendflow.services.base.contracts import Callback, CapacityReport, NewJob, Status
from mendflow.sim.grid.batch import Yard
from mendflow.sim.grid.courses import Course, Spot
from mendflow.sim.grid.elements import drawn
from mendflow.sim.grid.ground import Ground
from mendflow.sim.machines import BEGINNING


class DirectSubmission:
    """A `MetaScheduler`. Jobs go to the site that they name, and otherwise to the first."""

    def __init__(self, ground: Ground, yards: Iterable[Yard]) -> None:
        self._ground = ground
        self._yards = {yard.site.name: yard for yard in yards}
        self._policy = Policy(losses_max=ground.scene.losses_max)
        self._jobs: dict[JobId, Job] = {}
        self._courses: dict[JobId, tuple[Yard, Course]] = {}
        self._callbacks: dict[JobId, Callback] = {}
        self._line: dict[str, deque[Job]] = {name: deque() for name in self._yards}

    async def submit(self, jobs: Sequence[NewJob], *, again: bool = False) -> None:
        for new in jobs:
            if new.id not in self._jobs:
                job = life.create(new.id, new.case, new.spec, now=self._now(), not_before=new.not_before)
                self._jobs[job.id] = job
                self._send(job)

    async def run(self, job: NewJob, *, again: bool = False) -> Outcome:
        over: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        async def tell(_: JobId, outcome: Outcome) -> None:
            over.set_result(outcome)

        await self.submit([job], again=again)
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
        """A batch system is not asked for that."""

    async def resume(self, id: JobId) -> None: ...

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        job = self._jobs.get(id)
        if job is None or job.finished:
            return
        self._callbacks.pop(id, None)
        self._apply(job, life.cancel(job, now=self._now(), reason=reason))
        if id in self._courses:
            yard, course = self._courses.pop(id)
            course.stop("cancelled")
            self._free(yard, course)

    async def capacity(self) -> CapacityReport:
        running = len(self._courses)
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
            sites=sorted(self._yards),
        )

    # the way of a job

    def _send(self, job: Job) -> None:
        yard = self._yard(job)
        chance = self._ground.chance("direct", job.id, job.fence)
        batch = yard.site.batch
        wait_s = max(0, job.available_at - self._now()) / 1000
        self._ground.pending += 1
        self._ground.after(wait_s + drawn(batch.submit_s, chance) + drawn(batch.queue_s, chance), self._start, job)

    def _start(self, job: Job) -> None:
        yard = self._yard(job)
        host = "" if job.finished else yard.place()
        if job.finished:
            self._ground.pending -= 1
        elif not host:
            self._line[yard.site.name].append(job)
        else:
            self._ground.pending -= 1
            self._apply(job, life.grant(job, PilotId(host), now=self._now(), host=host, site=yard.site.name))
            spot = Spot(yard.site, host, PilotId(host))
            course = Course(self._ground, spot, job.id, job.fence, job.spec, self._over)
            self._courses[job.id] = (yard, course)
            course.begin()

    def _over(self, course: Course) -> None:
        yard, _ = self._courses.pop(course.job)
        self._free(yard, course)
        chance = self._ground.chance("notify", course.job, course.fence)
        self._ground.pending += 1
        self._ground.after(drawn(yard.site.batch.notify_s, chance), self._noticed, course)

    def _free(self, yard: Yard, course: Course) -> None:
        yard.leave(course.host)
        if self._line[yard.site.name]:
            self._start(self._line[yard.site.name].popleft())

    def _noticed(self, course: Course) -> None:
        self._ground.pending -= 1
        job = self._jobs[course.job]
        assert course.outcome is not None
        if job.finished:
            return
        verdict = life.report(
            job, PilotId(course.host), course.fence, course.outcome, now=self._now(), policy=self._policy
        )
        self._apply(job, verdict.events)
        if job.finished:
            self._ground.loop.create_task(self._tell(job))
        else:
            self._send(job)

    async def _tell(self, job: Job) -> None:
        callback = self._callbacks.pop(job.id, None)
        if callback is not None:
            assert job.outcome is not None
            await callback(job.id, job.outcome)

    def _apply(self, job: Job, events: Iterable[life.Event]) -> None:
        for event in events:
            life.evolve(job, event)

    def _yard(self, job: Job) -> Yard:
        return self._yards.get(job.spec.resources.site) or next(iter(self._yards.values()))

    def _now(self) -> int:
        return BEGINNING + round(self._ground.now_s * 1000)
