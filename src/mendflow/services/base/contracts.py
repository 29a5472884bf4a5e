"""The contracts between services. Which class implements each is chosen in wiring.py, and nowhere else."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow_triggers import EndKind
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, JobState, Outcome, Resources
from mendflow.core.model.retention import SweptFiles
from mendflow.core.model.values import FileRef, Value
from mendflow.core.recovery.decision_subject import DecisionSubject

TRIES: Final = 10
"""How often a change is tried that other servers on the store make at the same time."""


class Clock(Protocol):
    """`now` never goes back while the process lives, even if the wall clock does."""

    def now(self) -> Instant: ...
    def catch_up(self, instant: Instant) -> None:
        """From here on `now` is never before this instant. A server that starts on a machine whose wall clock was set
        back continues from the latest instant in its live cases."""
        ...

    async def sleep(self, ms: int) -> None: ...


class NewJob(msgspec.Struct, frozen=True):
    id: JobId
    case: CaseId
    spec: JobSpec
    note: str = ""  # stored with the job: why its result was not taken from the cache
    not_before: Instant = 0  # the job waits until then
    key: str = ""  # what its result is found by; empty if it is never used again


class Status(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a job according to the meta-scheduler. `reason` says in a sentence why it is in that state. Pilot,
    host and site are those of its latest attempt; `asked` is what it asks for. `progress` is its state in a word for
    people, where that is known better than from `state`; `stuck`: no pilot there is could ever take it."""

    job: JobId
    state: JobState
    suspended: bool = False
    attempts: int = 0
    losses: int = 0
    reason: str = ""
    outcome: Outcome | None = None
    pilot: str = ""
    host: str = ""
    site: str = ""
    asked: Resources | None = None
    progress: str = ""
    stuck: bool = False


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


class SubmissionFailed(Exception):
    """The meta-scheduler could not be reached, was down, or refused the job; the fault says which."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def never_arrived(error: NotFound) -> SubmissionFailed:
    """A meta-scheduler does not know a job that was submitted to it."""
    message = f"it never arrived: {error.message}"
    return SubmissionFailed(Fault(name="neverArrived", category=Category.NETWORK, message=message))


class MetaScheduler(Protocol):
    """Executes jobs for the flow manager: our queue and pilots, or another domain.

    `submit` is idempotent on the id: the same job submitted twice is one job, and `reissued` says that these may have
    been submitted before. `subscribe` calls back once, also when the job is over already. Raises `SubmissionFailed` for
    a job that is not accepted."""

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None: ...
    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome: ...
    async def status(self, id: JobId) -> Status: ...
    async def subscribe(self, id: JobId, callback: Callback) -> None: ...
    async def suspend(self, id: JobId) -> None: ...
    async def resume(self, id: JobId) -> None: ...
    async def cancel(self, id: JobId, *, reason: str = "") -> None: ...
    async def capacity(self) -> CapacityReport: ...


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changes in a job that is submitted again: resources by their names in Resources, environment, the image of
    its container (`none`: it runs in none), hosts to avoid, another source for inputs by path, `files` that take the
    place of inputs by path, how files are
    transferred (`transfer`, as in JobSpec), the domain to submit to (none: the same one; `.` is our own queue), how
    long to wait before, the retry level that it has been through. `restage`: its files are to be staged again. Where
    only the publishing of files has failed, `publish_to` are the URLs that outputs go to, by name, under "" that of the
    one which the fault is about; `publish_on` is the storage element for those with logical names."""

    resources: dict[str, Value] = {}
    env: dict[str, str] = {}
    container: str = ""
    avoid_hosts: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    files: dict[str, FileRef] = {}
    transfer: dict[str, Value] = {}
    domain: str = ""
    wait_ms: int = 0
    level: int = 0
    restage: bool = False
    publish_to: dict[str, str] = {}
    publish_on: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed job, as the proxy knows it. `job` is the id that the flow uses; `real` the id of the submission that
    failed. `final`: the meta-scheduler has given it up; otherwise it would try it again by itself. `id` is the same
    when the same failure is reported again, and different for every other failure of the job."""

    id: str = ""
    job: JobId
    real: JobId
    case: CaseId
    spec: JobSpec
    fault: Fault
    outcome: Outcome
    generation: int = 1  # how many times it was submitted
    attempts: int = 0  # over all submissions
    losses: int = 0
    level: int = 0  # the retry level that it has been through
    host: str = ""
    site: str = ""
    pilot: str = ""
    pattern: str = ""  # how its conversation runs
    stage: str = ""  # staging, submission, polling, notification, execution
    domain: str = ""  # where it was submitted to; empty is our own queue
    hosts: tuple[str, ...] = ()  # all that have failed it
    final: bool = True


class Repairs(Protocol):
    """Asked by the proxy when a job has failed."""

    async def failed(self, failure: Failure) -> bool:
        """True: it is being mended. The flow is not told until another submission ends, or `pass_on` is called."""
        ...


class MendableJobs(Protocol):
    """The operations on jobs that primitives need. `key` makes a repeated call harmless. `decided` says which
    submission of the job was decided about; none: the newest."""

    async def resubmit(
        self, id: JobId, change: Change, *, key: str, decided: DecisionSubject | None = None
    ) -> None: ...
    async def repoll(self, id: JobId, *, key: str) -> None: ...
    async def reregister(self, id: JobId, *, key: str) -> None: ...
    async def ended_well(self, id: JobId) -> bool | None:
        """Whether a job that the flow no longer waits for completed; None while the flow waits for it, or if that is
        unknown."""
        ...

    async def pass_on(self, id: JobId, *, decided: DecisionSubject | None = None) -> None:
        """Report the failure to the flow after all."""
        ...

    def newest_spec(self, id: JobId) -> JobSpec | None:
        """The job as it was submitted last; None if the flow does not wait for such a job."""
        ...

    def phase_of(self, id: JobId) -> str:
        """`held` while a failure of it is kept from the flow, `running` while it is under way; empty if the flow does
        not wait for such a job."""
        ...


class FileDemand(Protocol):
    """Knows which stored files have come to a case."""

    async def demand_value(self, case: CaseId, value: Value) -> None:
        """Refuse a value of a case that refers to a file which did not come to it. Raises Forbidden."""
        ...

    def note_given(self, case: CaseId, files: Collection[FileRef]) -> None:
        """A repair gives these files to the case. Its step tells of them when it is done: that is in the journals."""
        ...


class FileStore(Protocol):
    """Stores files by their content. A stored file is complete and never changes; one that is damaged is not given."""

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef: ...
    async def keep_part(
        self, name: str, chunks: AsyncIterator[bytes], *, sha256: str, offset: int, source: str
    ) -> FileRef:
        """Go on at this byte with a file that comes from `source` piece by piece. It is stored when its end has come
        and it has this digest; what comes before a break stays for the next try. Raises `TemporarilyUnavailable` if it
        has to go on at another byte."""
        ...

    async def part_bytes(self, sha256: str, source: str) -> int:
        """How much of a file that is not stored yet has come from this source."""
        ...

    async def keep_many(self, contents: Mapping[str, bytes]) -> None:
        """Store small files, by their SHA-256: all of them, or none if one has another."""
        ...

    async def keep_path(self, path: str) -> FileRef: ...
    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        """Store a file that somebody on this machine has linked into the folder of incoming files."""
        ...

    async def path_flaw(self, path: str) -> str:
        """Why this path of this machine cannot be stored now; empty if it can."""
        ...

    def read(self, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]: ...
    async def clone(self, sha256: str, target: Path) -> bool:
        """Write a stored file to a path of this machine without copying its blocks; false where that is not
        possible."""
        ...

    async def size(self, sha256: str) -> int | None: ...
    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        """Why a stored file of this size cannot be used; empty if it can. A large one is not read for that."""
        ...

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        """The sizes of those of these files that are stored. That somebody asks is not noted: they may be removed."""
        ...

    async def sweep(self, digests: Collection[str], unused_since: Instant) -> SweptFiles:
        """Remove these files, but for those that were stored or asked for since then."""
        ...

    async def drop_removed(self) -> None:
        """Remove this server's own copies of files that another server has removed."""
        ...


class EndReceivers(Protocol):
    def receivers(self, flow: str, end: EndKind) -> list[str]:
        """Who is to be told that a case of this flow has ended so: URLs, or names of webhooks."""
        ...


class UnhandledFailure(NamedTuple):
    """Something failed, no rule took it up, and its case waits for a person since then."""

    case: CaseId
    item: ItemId | None
    message: str
    since: Instant
    group: str
    tried: str = ""  # what rules did about it before, without success

    @property
    def subject(self) -> str:
        return f"{self.case}:{self.item}"
