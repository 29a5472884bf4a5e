"""The contracts between services. Whoever implements one is chosen in wiring.py, and nowhere else."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.jobs import JobSpec, JobState, Outcome


class Clock(Protocol):
    """`now` never goes back while the process lives, whatever happens to the machine's wall clock."""

    def now(self) -> Instant: ...
    async def sleep(self, ms: int) -> None: ...


class Status(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the meta-scheduler says of a job. `reason` tells, in a sentence, why it is where it is."""

    job: JobId
    state: JobState
    suspended: bool = False
    attempts: int = 0
    reason: str = ""
    outcome: Outcome | None = None


class CapacityReport(msgspec.Struct, frozen=True, kw_only=True):
    pilots: int
    slots: int
    slots_free: int
    cpus: float
    memory_bytes: int
    gpus: int
    waiting: int
    running: int
    sites: list[str]


Callback = Callable[[JobId, Outcome], Awaitable[None]]


class MetaScheduler(Protocol):
    """What the flow manager sees of whoever executes jobs: our queue and pilots, a peer domain, another server.

    `submit` is idempotent on the id: the same job given twice is one job. A failure to take the job raises a
    `SubmissionFailed` with the fault."""

    async def submit(self, id: JobId, case: CaseId, spec: JobSpec) -> JobId: ...
    async def run(self, id: JobId, case: CaseId, spec: JobSpec) -> Outcome: ...
    async def status(self, id: JobId) -> Status: ...
    async def subscribe(self, id: JobId, callback: Callback) -> None: ...
    async def suspend(self, id: JobId) -> None: ...
    async def resume(self, id: JobId) -> None: ...
    async def cancel(self, id: JobId) -> None: ...
    async def capacity(self) -> CapacityReport: ...
