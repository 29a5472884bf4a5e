"""Meta-schedulers with troubles: ours behind a bad line, and another domain's.

Both implement the contract that the flow manager knows (services/base/contracts.MetaScheduler), so whatever stands
between them and the flow is tried as it is."""

import asyncio
from collections.abc import Sequence

from bench.recovery.nature import FailureModel, LostMessages, SchedulerOutage, Trouble
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.services.base.contracts import Callback, CapacityReport, MetaScheduler, NewJob, Status, SubmissionFailed

MESSAGES = {
    Category.NETWORK: ("unreachable", "the meta-scheduler could not be reached: connection timed out"),
    Category.SCHEDULER_DOWN: ("schedulerDown", "the meta-scheduler is down: connection refused"),
    Category.REFUSED: ("refused", "the meta-scheduler takes no jobs now: the queue is closed"),
}
CONNECT_S = 5.0


class SchedulerLink:
    """The way to one domain's meta-scheduler: what does not get through, and how often that was tried."""

    def __init__(self, domain: str, troubles: Sequence[Trouble]) -> None:
        self._domain = domain
        self._away = [trouble for trouble in troubles if isinstance(trouble, SchedulerOutage)]
        self._silent = {trouble.what: trouble.times for trouble in troubles if isinstance(trouble, LostMessages)}
        self.refusals = 0

    async def pass_job(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for away in self._away:
            if away.holds(self._domain, now_s):
                self.refusals += 1
                await asyncio.sleep(CONNECT_S)
                name, message = MESSAGES[away.category]
                raise SubmissionFailed(
                    Fault(name=name, category=away.category, message=message, stage=AttemptStage.SUBMISSION)
                )

    def swallows(self, what: str) -> bool:
        left = self._silent.get(what, 0)
        self._silent[what] = max(0, left - 1)
        return left > 0


class LinkedScheduler:
    """A meta-scheduler as it is seen over a line."""

    def __init__(self, inner: MetaScheduler, line: SchedulerLink) -> None:
        self._inner = inner
        self._line = line

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        await self._line.pass_job()
        await self._inner.submit(jobs, reissued=reissued)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        await self._line.pass_job()
        return await self._inner.run(job, reissued=reissued)

    async def status(self, id: JobId) -> Status:
        if self._line.swallows("polls"):
            name, message = MESSAGES[Category.NETWORK]
            raise SubmissionFailed(Fault(name=name, category=Category.NETWORK, message=message))
        return await self._inner.status(id)

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        if self._line.swallows("callbacks"):
            return
        await self._inner.subscribe(id, callback)

    async def suspend(self, id: JobId) -> None:
        await self._inner.suspend(id)

    async def resume(self, id: JobId) -> None:
        await self._inner.resume(id)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        await self._inner.cancel(id, reason=reason)

    async def capacity(self) -> CapacityReport:
        return await self._inner.capacity()


class FarScheduler:
    """Another domain's: it runs what it is given at once, on a host of its own."""

    HOST = "far-away"

    def __init__(self, nature: FailureModel) -> None:
        self._model = nature
        self._running: dict[JobId, asyncio.Task[Outcome]] = {}
        self._tellers: list[asyncio.Task[None]] = []

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        for job in jobs:
            if job.id not in self._running:
                self._running[job.id] = asyncio.create_task(self._work(job))

    async def _work(self, job: NewJob) -> Outcome:
        ending = self._model.attempt(job.spec, self.HOST, asyncio.get_running_loop().time())
        await asyncio.sleep(ending.after_s)
        return self._model.ended(job.spec, ending)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        await self.submit([job], reissued=reissued)
        return await self._running[job.id]

    async def status(self, id: JobId) -> Status:
        work = self._running[id]
        if not work.done():
            return Status(job=id, state=JobState.RUNNING, attempts=1)
        outcome = work.result()
        state = JobState.COMPLETED if outcome.ok else JobState.FAILED
        return Status(job=id, state=state, attempts=1, outcome=outcome)

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        async def tell() -> None:
            await callback(id, await self._running[id])

        self._tellers.append(asyncio.create_task(tell()))

    async def suspend(self, id: JobId) -> None: ...
    async def resume(self, id: JobId) -> None: ...

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        self._running[id].cancel()

    async def capacity(self) -> CapacityReport:
        return CapacityReport(
            pilots=1, slots=8, slots_free=8, cpus=8.0, memory_bytes=64 << 30, gpus=0, waiting=0, running=0, sites=[]
        )

    async def close(self) -> None:
        tasks = [*self._running.values(), *self._tellers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
