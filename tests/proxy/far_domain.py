"""Another domain, in the test's hands: it takes jobs or not, answers or not, and ends them when it is told to. What it
has taken it knows even while nobody can reach it."""

import asyncio
from collections.abc import Sequence

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.services.base.contracts import Callback, CapacityReport, NewJob, Status, SubmissionFailed


class FarDomain:
    """`fault` is what every call meets while it is set; with `deaf` the next submission is taken, and only the answer
    is lost. While `slow` is there and not set, it thinks before it answers."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.deaf: Fault | None = None
        self.slow: asyncio.Event | None = None
        self.jobs: dict[JobId, NewJob] = {}
        self.outcomes: dict[JobId, Outcome] = {}
        self.callbacks: dict[JobId, Callback] = {}
        self.suspended: set[JobId] = set()
        self.cancelled: list[JobId] = []

    async def _think(self) -> None:
        if self.slow is not None:
            await self.slow.wait()

    def _answer(self) -> None:
        if self.fault is not None:
            raise SubmissionFailed(self.fault)

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        await self._think()
        self._answer()
        for job in jobs:
            self.jobs.setdefault(job.id, job)
        if self.deaf is not None:
            lost, self.deaf = self.deaf, None
            raise SubmissionFailed(lost)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        raise AssertionError("whoever waits, waits at the proxy")

    async def status(self, id: JobId) -> Status:
        await self._think()
        self._answer()
        if id not in self.jobs:
            raise NotFound(f"there is no job {id}")
        outcome = self.outcomes.get(id)
        state = JobState.RUNNING if outcome is None else JobState.COMPLETED if outcome.ok else JobState.FAILED
        return Status(job=id, state=state, attempts=1, outcome=outcome, host="far-host", site="far-site", pilot="far-1")

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        self._answer()
        if id not in self.jobs:
            raise NotFound(f"there is no job {id}")
        if id in self.outcomes:
            await callback(id, self.outcomes[id])
        else:
            self.callbacks[id] = callback

    async def suspend(self, id: JobId) -> None:
        self._answer()
        self.suspended.add(id)

    async def resume(self, id: JobId) -> None:
        self._answer()
        self.suspended.discard(id)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        self._answer()
        self.cancelled.append(id)

    async def capacity(self) -> CapacityReport:
        raise AssertionError("nobody asks for it here")

    async def end(self, id: JobId, outcome: Outcome, *, silently: bool = False) -> None:
        """The job ends; silently: and the word of it gets lost."""
        self.outcomes[id] = outcome
        callback = self.callbacks.pop(id, None)
        if callback is not None and not silently:
            await callback(id, outcome)
