"""A job: what a pilot executes for an item, and its result."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.data import LOGICAL_PREFIX, Publication
from mendflow.core.model.faults import AttemptStage, Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId, item_text
from mendflow.core.model.named_limits import NamedLimits
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.secrets import SecretUse
from mendflow.core.model.software import Software
from mendflow.core.model.values import FileRef, Value


class Resources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """What a job needs of its pilot. Zero means: no requirement. Pilots on `avoid_hosts` do not get it; if `hosts` are
    named, only pilots on them do. `system` and `machine` are the required platform, in the words of
    core/model/platforms. `runtimes` are those that can run its container; the queue finds them by its image.

    With `memory_auto` the queue says how much memory the job asks for, from what such jobs have used: at least the
    `memory_bytes` that it comes with, and no more than `memory_max_bytes`, unless that is 0. `wall_auto` does the same
    for time."""

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
    runtimes: tuple[str, ...] = ()
    memory_auto: bool = False
    memory_max_bytes: int = 0
    wall_auto: bool = False
    wall_max_ms: int = 0

    @property
    def is_learned(self) -> bool:
        return self.memory_auto or self.wall_auto

    @property
    def named_limits(self) -> NamedLimits:
        """What it uses of named limits, which are no resources of a pilot."""
        return ()

    @property
    def project(self) -> str:
        """The project that it belongs to: some pilots work only for some."""
        return DEFAULT_PROJECT


class LimitedResources(Resources, frozen=True, kw_only=True, omit_defaults=True):
    """What a job needs in the queue that uses named limits, or belongs to a project: these count together with what it
    needs of its pilot."""

    named_limits: NamedLimits = ()
    project: str = DEFAULT_PROJECT


class JobSizing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the queue has sized a job: the least that it came with, and a sentence for each amount."""

    memory_least_bytes: int = 0
    wall_least_ms: int = 0
    reasons: tuple[str, ...] = ()


class LearnedRequest(msgspec.Struct, frozen=True):
    """The memory and the time that a job asks for, and how they were found."""

    memory_bytes: int
    wall_ms: int
    sizing: JobSizing


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of a running job; zero means no limit. Time and memory limits come from its resources. All but
    `processes` apply to each of its processes. A core dump limit of 0 is a real limit, so None means no limit there.
    `named` are the limits of all jobs together that it counts against."""

    open_files: int = 0
    file_bytes: int = 0
    processes: int = 0
    cpu_ms: int = 0
    stack_bytes: int = 0
    data_bytes: int = 0
    locked_bytes: int = 0
    virtual_bytes: int = 0
    core_bytes: int | None = None
    named: NamedLimits = ()


MARK_CHARS = 16
"""So much of a module's digest stands before its path."""


CHANGED_BESIDE: Final = " beside the flow was changed after the flow was deployed"
"""Behind the path of a module, as `Outcome.code_mismatch` says it."""


class FunctionRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Python function by name, with its module's source as a stored file. Never a pickle. `imports` is a digest of
    the modules beside it that the module imports, and those import; `modules` are these: for each the beginning of its
    digest and its path, so that a worker can tell whether it has loaded the same. `bundle`
    has the modules themselves, as they were when the flow was deployed. `uses` is a digest of what the function depends
    on of all this; empty if that cannot be told."""

    module: str
    name: str
    code: FileRef | None = None
    folder: str = ""
    imports: str = ""
    modules: tuple[str, ...] = ()
    bundle: FileRef | None = None
    uses: str = ""


class Submission(StrEnum):
    """The four ways to submit a job to the meta-scheduler."""

    WAIT = "wait"  # one call that returns when the job has ended
    POLL = "poll"  # submit, then poll
    NOTIFY = "notify"  # submit, then get a callback
    FORGET = "forget"  # submit, and let the flow continue whatever happens


class RetryRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """After a failure of the job's own for one of these causes (exit codes, categories, names of faults; none: any) it
    is tried again so many times, each wait longer than the last by the factor."""

    times: int
    wait_ms: int = 0
    factor: float = 2.0
    on: tuple[str, ...] = ()


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a pilot must know to run a job; all expressions are evaluated.

    At most one of `command` and `function` is given. `inputs` maps a path in the job's folder to its file; `files` maps
    an output's name to the path, in that folder, where the job leaves it.

    `replicas` maps a path to the sources of that input, best first: `kept:SHA256` is a file stored on the server,
    anything else a URL (http, https, file) or an absolute path that the pilot can read. Only the first is tried, and
    the fault of stage-in names it and the others, so that a repair can choose (`from_source`). An input without
    replicas comes from the server. What comes from elsewhere must have the digest in `inputs`; a path that only
    `replicas` has is not verified. `transfer` overrides the pilot's transfer settings: `tries`, `timeout_ms`,
    `chunk_bytes`.

    An input with a logical name and no replicas here is looked for in the pilot's caches first, then where the
    catalogue says. With `link_inputs` the job gets its inputs as links into the cache and promises only to read them;
    otherwise each is a copy of its own. `publish` says which of `files` go to a storage element instead of the server's
    keeping. `stage_in` says whether inputs are brought together or one after another. A job without a command only has
    files brought and taken on: so copies between storage elements are made. `cache` says whether its result may stand
    for that of another job made from the same; None leaves that to what it declares (core/results/reuse_checks).

    `shell` says what runs the command, in the words of core/model/shells, and `container` which image it runs in; None:
    it runs on the pilot's machine itself. `unstaged` are files beside the flow that the
    command names and that are not among its inputs: a failure tells of them. `file_lists` are those of `files` whose
    path is a folder (it ends with `/`) or a pattern, in the words of core/data/path_patterns: each becomes a list of
    files, in the order of their paths. `folders` are those of its inputs that no file stands in.

    `retry` says how often it is tried again, and after which failures; the first rule that speaks of a failure counts.
    Without any it is `retries` times after any. `spent` are the failures of earlier submissions, for each rule;
    `earlier_attempts` are all that they had, from which the job's own number goes on, and `earlier_losses` those that
    the infrastructure failed: the queue's waits grow on from there.

    `secrets` are the secrets that it uses, by name; their values come with the job to its pilot, and stand nowhere.

    `element` says for people which element of its loops the job is for. `software` is what it runs with, beside what
    its pilot has. `domain` is the domain that is to run it, or `any`; empty: this one. `project` is that of its case:
    pilots whose token names projects get only jobs of these. `account` is whoever started the case, where the flow
    names another owner: accounts of machines are theirs."""

    item: ItemId
    element: str = ""
    command: str | None = None
    shell: str = ""
    container: JobContainer | None = None
    unstaged: tuple[str, ...] = ()
    file_lists: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
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
    account: str = ""
    project: str = DEFAULT_PROJECT
    expected_ms: int = 0
    retries: int = 0
    retry_wait_ms: int = 0
    retry: tuple[RetryRule, ...] = ()
    spent: tuple[int, ...] = ()
    earlier_losses: int = 0
    earlier_attempts: int = 0
    submission: Submission = Submission.NOTIFY
    stage_in: Literal["parallel", "sequence"] = "parallel"
    cache: bool | None = None
    software: Software | None = None
    domain: str = ""
    secrets: tuple[SecretUse, ...] = ()

    @property
    def shown(self) -> str:
        """The item, with the element that it is for."""
        return item_text(self.item, self.element)


KEPT_PREFIX = "kept:"
"""Prefix of a source that is a file stored on the server."""


def digest_in(source: str) -> str:
    """The digest that a stored file must have; empty for other sources."""
    return source.removeprefix(KEPT_PREFIX) if source.startswith(KEPT_PREFIX) else ""


def sources_of(spec: JobSpec, path: str) -> tuple[str, ...]:
    """The sources of an input, in order; empty if the job has no such input. The server does not keep a file that has
    a logical name: its source is that name."""
    if (named := spec.replicas.get(path)) or (ref := spec.inputs.get(path)) is None:
        return named or ()
    return (LOGICAL_PREFIX + ref.logical,) if ref.logical else (KEPT_PREFIX + ref.sha256,)


def from_source(spec: JobSpec, path: str, source: str) -> JobSpec:
    """The same job with this input from another source. The previous source becomes the last, so that repeated
    switching tries all of them in turn."""
    before = sources_of(spec, path)
    others = [each for each in (*before[1:], *before[:1]) if each != source]
    return msgspec.structs.replace(spec, replicas={**spec.replicas, path: (source, *others)})


class Measurements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pilot's measures of an attempt, final or so far. Times are by the pilot's wall clock, for people, never for
    decisions. `ran_ms` excludes suspended time. `memory_bytes` is the current usage, only while it runs.
    `read_bytes` and `written_bytes` went from and to disks, as the kernel counts them when its processes have ended.
    Of its inputs, `cached` came from pilots' caches, of these `shared` from another pilot's, and `fetched` from
    elsewhere; storing its outputs took `stage_out_ms`. `damaged` are replicas whose content was wrong and that were
    skipped, each with the reason; `changed_inputs` are links into the pilot's cache that were written to while it
    ran."""

    started_at: Instant = 0
    ended_at: Instant = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    memory_bytes: int = 0
    ran_ms: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
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
    changed_inputs: tuple[str, ...] = ()


class StoredLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole log of an attempt, compressed by gzip as a stored file: `bytes` were printed; of a log over its bound
    the `left_out_bytes` that were printed from `left_out_at` on are not in it."""

    file: FileRef
    bytes: int
    left_out_at: int = 0
    left_out_bytes: int = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job ended: with outputs and files, or with a fault. `file_lists` are its outputs that are several files,
    each under its name below their folder. `values` are the last that it reported of itself. `log_tail` is the end of
    its log, and all of it unless there is a `log`. `folder` is where its pilot has kept its working folder, for people
    to look into: that of a failed attempt, and for some time.

    `image` is the digest of the image that it ran in, as the pilot's runtime tells it.

    `contents` are files that its outputs refer to and that it made with them: an array, a file whose path it returned.

    `code_mismatch` says in which way the code that ran was not the code that the job names: then its result stands for
    no other job's. `undeclared_reads` says what a function read or loaded that the job does not name: a file beside its
    flow or elsewhere, a variable, something of the network. `left_running` names what a script had not waited for when
    it ended, and what was ended with it."""

    fault: Fault | None = None
    outputs: Value = None
    files: dict[str, FileRef] = {}
    file_lists: dict[str, list[FileRef]] = {}
    exit_code: int | None = None
    log_tail: str = ""
    measures: Measurements = Measurements()
    cached_from: str = ""
    values: dict[str, Value] = {}
    log: StoredLog | None = None
    folder: str = ""
    code_mismatch: str = ""
    undeclared_reads: str = ""
    left_running: str = ""
    image: str = ""
    contents: tuple[FileRef, ...] = ()

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
    """A person has requeued the job. Reports of the current attempt are ignored; the job waits until that attempt has
    certainly ended."""

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
    token: str = ""  # the name of the pilot's token: no other may report
    serial: int = 0  # serial of the answer that assigned it
    lease_ms: int = 0  # the longest lease that the pilot may have been promised
    granted_at: Instant
    ended_at: Instant = 0
    end: str = ""  # completed, failed, lost, cancelled; requeued by a person; returned by its pilot unbegun
    fault: Fault | None = None
    measures: Measurements = Measurements()
    requeue: Requeue | None = None  # requeued by a person
    because: str = ""  # why this pilot got it, if data locality mattered
    log: StoredLog | None = None  # if it is longer than the end of it, which its fault or the job's outcome has
    folder: str = ""  # where its pilot keeps its working folder, if it failed
    asked_bytes: int = 0  # the memory that it asked for, if that was learned
    asked_ms: int = 0  # the time

    @property
    def shown(self) -> int:
        """The number that people see. Older documents have none."""
        return self.number or self.fence


class Job(msgspec.Struct, kw_only=True):
    """The job's document. Changed only by core/scheduling/jobs.py; written as a whole, by compare-and-set on its
    version."""

    id: JobId
    case: CaseId
    spec: JobSpec
    name: str = ""  # the item's name, without loop iterations; for searches
    state: JobState = JobState.AVAILABLE
    created_at: Instant = 0
    available_at: Instant = 0  # not before this, after a failed attempt
    fence: int = 0  # how often it was granted
    unbegun: int = 0  # how many of these grants were returned before the start
    pilot: PilotId | None = None
    suspended: bool = False
    failures: int = 0  # its own failed attempts; bounded by spec.retries
    losses: int = 0  # lost attempts; bounded by the server's budget
    history: list[Attempt] = []
    outcome: Outcome | None = None
    finished_at: Instant = 0
    cache_reason: str = ""  # why its result was, or was not, taken from the cache
    key: str = ""  # what its result is found by; empty if it is never used again
    requeued: Requeue | None = None  # while its attempt is being stopped because somebody requeued it
    sizing: JobSizing | None = None  # why it asks for so much, if that was learned

    @property
    def tries(self) -> int:
        """How many tries there were; while a pilot has it, the number of the current one."""
        return self.fence - self.unbegun

    @property
    def finished(self) -> bool:
        return self.state is JobState.COMPLETED or self.state is JobState.FAILED
