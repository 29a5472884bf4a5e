"""The facts that scheduling publishes through the hub, and the contracts that it asks higher services for. Those that
are published for every job are of the kind of object that is created fastest."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, LearnedRequest, Outcome
from mendflow.core.model.named_limits import NamedLimits
from mendflow.core.model.sync import SyncRequest
from mendflow.core.scheduling import job_events
from mendflow.services.base.contracts import NewJob
from mendflow.services.scheduling.pilot_records import PilotRecord


class JobMoved(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The state of a job has changed."""

    job: Job


class JobEnded(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A job is over, and `JobMoved` has told so. Published once for each job, for those who want to know only this."""

    job: Job


class JobRequeued(NamedTuple):
    """An attempt has ended, and the job waits for another."""

    job: Job


class AttemptEnding(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Published before an event of a job is applied to it."""

    job: Job
    event: job_events.JobEvent


class FailedAttempts(Protocol):
    """Asked when an attempt failed that would be retried."""

    async def attempt_failed(self, job: Job, outcome: Outcome) -> bool:
        """True: end the job with that outcome instead."""
        ...


class JobSizer(Protocol):
    """Says how much memory and time jobs ask for whose flow leaves that to be learned."""

    async def load(self, jobs: Sequence[NewJob]) -> None:
        """Read what the store knows of such jobs. If it cannot be read, they are sized by what is known here."""
        ...

    def size_of(self, job: Job) -> LearnedRequest | None:
        """What it is to ask for; None: as it does."""
        ...


class JobQuotas(Protocol):
    """Knows the quotas of projects, and what jobs use of them."""

    def uses(self, job: Job) -> NamedLimits:
        """The named limits that a job uses while it runs, and the quotas of its project."""
        ...

    def admits(self, job: Job) -> bool:
        """Whether the job may enter the queue now; otherwise it does later."""
        ...


class FarWaits(Protocol):
    """Jobs that are in other domains."""

    def stuck_jobs(self) -> Iterator[tuple[Job, Instant]]:
        """Those that no pilot there could ever take, each with when that was first seen."""
        ...

    def log_note(self, id: JobId) -> str:
        """Why there is no log of a job yet; empty if it is in no other domain."""
        ...


class WorkAnnouncer(Protocol):
    """Announces work to the other servers on the store."""

    def work_waits(self) -> None: ...
    def summon(self, pilot: PilotRecord) -> None: ...


class AttemptHeartbeats(NamedTuple):
    """A pilot reports that it still runs attempts of these jobs."""

    jobs: Sequence[JobId]


class PilotLost(NamedTuple):
    """A pilot's lease has ended, and the pilot has not signed off."""

    pilot: PilotRecord


class PilotPaused(NamedTuple):
    """A pilot takes no new job for now, because of its disk."""

    pilot: PilotRecord


class SubmittedPilots(Protocol):
    """Pilots that were submitted to batch systems."""

    async def has_submitted(self, name: str, secret: str) -> bool:
        """Whether a pilot with this secret was submitted under this name. A name that is not made like those of a
        site's pilots is nobody's."""
        ...

    def pilot_reported(self, request: SyncRequest) -> None:
        """One of them has arrived, or leaves."""
        ...

    def idle_exit_ms(self, submission: str) -> int:
        """After how long without a job such a pilot is to leave; 0: never."""
        ...


class LogTails(Protocol):
    """Whoever hears of pilots what running jobs print."""

    def log_tail(self, id: JobId) -> str:
        """The end of a running job's log, as far as its pilot has reported it."""
        ...


class BorrowedWork(Protocol):
    """Work that this server may do for another domain only while that lets it. Asked before pilots are answered."""

    def is_due(self) -> bool:
        """Whether some of it must be stopped before a pilot gets it, or keeps it."""
        ...

    async def stop_due(self) -> None: ...
