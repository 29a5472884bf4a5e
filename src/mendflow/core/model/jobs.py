"""A job: what a pilot executes for an item, and what became of it."""

from enum import StrEnum
from typing import Literal

import msgspec

from mendflow.core.model.data import Publication
from mendflow.core.model.faults import AttemptStage, Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId
from mendflow.core.model.values import FileRef, Value


class Resources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job needs of the pilot that takes it. Zero means: nothing asked. `avoid_hosts` are hosts whose pilots do
    not get it; `hosts`, if any are named, those whose pilots alone do. `system` and `machine` are what the pilot must
    run on, in the words of core/model/platforms."""

    cpus: float = 1.0
    memory_bytes: int = 0
    disk_bytes: int = 0
    gpus: int = 0
    wall_ms: int = 0
    site: str = ""
    avoid_hosts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    system: str = ""
    machine: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job may not exceed while it runs; zero means no limit. Time and memory come from its resources. All but
    `processes` hold for each process of it. Core dumps of nothing are a limit too, so that one is None if there is
    none."""

    open_files: int = 0
    file_bytes: int = 0
    processes: int = 0
    cpu_ms: int = 0
    stack_bytes: int = 0
    data_bytes: int = 0
    locked_bytes: int = 0
    virtual_bytes: int = 0
    core_bytes: int | None = None


class FunctionRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Python function by name, with its module's source as a stored file. Never a pickle."""

    module: str
    name: str
    code: FileRef | None = None
    folder: str = ""


class Submission(StrEnum):
    """The four ways to hand a job to the meta-scheduler."""

    WAIT = "wait"  # one call that returns when the job is over
    POLL = "poll"  # submit, then ask
    NOTIFY = "notify"  # submit, then be told
    FORGET = "forget"  # submit, and let the flow go on whatever becomes of it


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a pilot must know to run a job; every expression is resolved already.

    At most one of `command` and `function` is given. `inputs` maps a path in the job's folder to the file that
    is to stand there; `files` maps an output's name to the path, in that folder, where the job leaves it.

    `replicas` maps a path to the places where that input can be had, best first: `kept:SHA256` is a file in the
    server's keeping, anything else a URL (http, https, file) or an absolute path that the pilot can read. Only the
    first is tried, and the fault of stage-in names it and the others, so that a repair can choose (`from_source`). An
    input without replicas comes from the server's keeping. What comes from elsewhere must have the content that
    `inputs` says; a path that only `replicas` has is taken as it is. `transfer` says how files are brought, where the
    pilot's usual way did not do: `tries`, `timeout_ms`, `chunk_bytes`.

    An input with a logical name and no replicas here is looked for in the pilot's caches first, then where the
    catalogue says. With `link_inputs` the job gets its inputs as links into the cache and promises only to read them;
    otherwise each is a copy of its own. `publish` says which of `files` go to a storage element instead of the server's
    keeping. `stage_in` says whether inputs are brought together or one after another. A job without a command only has
    files brought and taken on: so copies between storage elements are made."""

    item: ItemId
    command: str | None = None
    function: FunctionRef | None = None
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    env: dict[str, str] = {}
    inputs: dict[str, FileRef] = {}
    replicas: dict[str, tuple[str, ...]] = {}
    transfer: dict[str, Value] = {}
    files: dict[str, str] = {}
    publish: dict[str, Publication] = {}
    link_inputs: bool = False
    resources: Resources = Resources()
    limits: Limits = Limits()
    priority: int = 0
    owner: str = ""
    expected_ms: int = 0
    retries: int = 0
    retry_wait_ms: int = 0
    submission: Submission = Submission.NOTIFY
    stage_in: Literal["parallel", "sequence"] = "parallel"


KEPT_PREFIX = "kept:"
"""What the name of a source begins with that is a file stored on the server."""


def sources_of(spec: JobSpec, path: str) -> tuple[str, ...]:
    """The places where an input can be had, the one that is tried first; none if the job has no such input."""
    kept = spec.inputs.get(path)
    return spec.replicas.get(path) or ((KEPT_PREFIX + kept.sha256,) if kept is not None else ())


def from_source(spec: JobSpec, path: str, source: str) -> JobSpec:
    """The same job with this input from another place. The place it came from is now the last to be tried, so that
    taking the next one again and again goes round all of them."""
    before = sources_of(spec, path)
    others = [each for each in (*before[1:], *before[:1]) if each != source]
    return msgspec.structs.replace(spec, replicas={**spec.replicas, path: (source, *others)})


class Measurements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the pilot measured of an attempt, when it was over or so far. Moments are by the pilot's wall clock, for
    people, never for deciding. `ran_ms` leaves out the time that it stood still. `memory_bytes` is what it has now, and
    said only while it runs. Of its inputs so many came from the pilot's caches (`cached`), of these so many from
    another pilot's (`shared`), and so many from elsewhere (`fetched`); its outputs took `stage_out_ms` to be safe.
    `damaged` are replicas that were not what the catalogue says and were gone by, each with what is wrong with it."""

    started_at: Instant = 0
    ended_at: Instant = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    memory_bytes: int = 0
    ran_ms: int = 0
    printed_bytes: int = 0
    cached_files: int = 0
    cached_bytes: int = 0
    shared_files: int = 0
    shared_bytes: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0
    stage_in_ms: int = 0
    stage_out_ms: int = 0
    damaged: tuple[str, ...] = ()


class StoredLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole log of an attempt, compressed by gzip as a stored file: `bytes` were printed; of a log over its bound
    the `left_out_bytes` that were printed from `left_out_at` on are not in it."""

    file: FileRef
    bytes: int
    left_out_at: int = 0
    left_out_bytes: int = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job ended: with outputs and files, or with a fault. `values` are the last that it reported of itself.
    `log_tail` is the end of its log, and all of it unless there is a `log`. `folder` is where its pilot has kept its
    working folder, for people to look into: that of a failed attempt, and for some time."""

    fault: Fault | None = None
    outputs: Value = None
    files: dict[str, FileRef] = {}
    exit_code: int | None = None
    log_tail: str = ""
    measures: Measurements = Measurements()
    cached_from: str = ""
    values: dict[str, Value] = {}
    log: StoredLog | None = None
    folder: str = ""

    @property
    def ok(self) -> bool:
        return self.fault is None

    @property
    def has_rescued_files(self) -> bool:
        """Whether the job has done its work and what it made is stored, and only could not be taken to its place."""
        return self.fault is not None and self.fault.stage == AttemptStage.STAGE_OUT and bool(self.files)


class JobState(StrEnum):
    AVAILABLE = "available"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Requeue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person has taken the present attempt from its pilot. Whatever that reports counts for nothing; the job waits
    until it is certain that the attempt has ended."""

    by: str
    at: Instant
    reason: str = ""

    def sentence(self) -> str:
        return f"requeued by {self.by}" + (f": {self.reason}" if self.reason else "")


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One grant of a job, kept in its history."""

    fence: int
    number: int = 0  # which try it is, from 1; one that came back unbegun has the number of the next. 0: the fence
    pilot: PilotId
    host: str = ""  # where the pilot runs
    site: str = ""
    token: str = ""  # the name of the token that the pilot spoke under: no other may report
    serial: int = 0  # of the answer that gave it to the pilot
    lease_ms: int = 0  # the longest term that the pilot may have been promised at a time
    granted_at: Instant
    ended_at: Instant = 0
    end: str = ""  # completed, failed, lost, cancelled; requeued by a person; returned by its pilot unbegun
    fault: Fault | None = None
    measures: Measurements = Measurements()
    requeue: Requeue | None = None  # a person took it from its pilot
    because: str = ""  # why this pilot got it, where its data had a say in that
    log: StoredLog | None = None  # if it is longer than the end of it, which its fault or the job's outcome has
    folder: str = ""  # where its pilot keeps its working folder, if it failed

    @property
    def shown(self) -> int:
        """What people know it by. Older documents have no number of their own."""
        return self.number or self.fence


class Job(msgspec.Struct, kw_only=True):
    """The job's document. Changed only by core/scheduling/jobs.py; written whole, by compare-and-set on its version."""

    id: JobId
    case: CaseId
    spec: JobSpec
    name: str = ""  # the item's, without the iterations of its loops; to be found by
    state: JobState = JobState.AVAILABLE
    created_at: Instant = 0
    available_at: Instant = 0  # not before this, after a failed attempt
    fence: int = 0  # how often it was granted
    unbegun: int = 0  # how many of these grants came back before anybody began it
    pilot: PilotId | None = None
    suspended: bool = False
    failures: int = 0  # own failed attempts; bounded by spec.retries
    losses: int = 0  # infrastructure; bounded by the server's budget
    history: list[Attempt] = []
    outcome: Outcome | None = None
    finished_at: Instant = 0
    cache_reason: str = ""  # why its result was, or was not, taken from an earlier case
    requeued: Requeue | None = None  # while its attempt is being stopped because somebody requeued it

    @property
    def tries(self) -> int:
        """How often it was tried; while a pilot has it, which try that is."""
        return self.fence - self.unbegun

    @property
    def finished(self) -> bool:
        return self.state is JobState.COMPLETED or self.state is JobState.FAILED
