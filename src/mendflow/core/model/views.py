"""Views: the answers of the HTTP API, the client and the CLI.

Views are made from state and documents; no decision uses them."""

from typing import Annotated, Final, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.flow_triggers import FlowTriggers
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId, item_text
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.parameters import AfterPage, Condition, Count, Limit, Offset, OneOf, Order
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import Value

CaseStatus = Literal["running", "suspended", "completed", "failed", "cancelled"]
ItemState = Literal[
    "staging", "waiting", "running", "suspended", "completed", "failed", "skipped", "cancelled", "cached"
]

CASE_END_STATES: Final = frozenset({"completed", "failed", "cancelled"})
ITEM_END_STATES: Final = frozenset({"completed", "failed", "skipped", "cancelled", "cached"})
CachePolicy = Literal["", "none", "declared", "all"]
"""Which results of other cases stand for jobs of a case: those of jobs that declare enough, or of all that do not
forbid it. Empty: none, unless the case runs another one again, whose results it uses then."""
UserTaskState = Literal["offered", "claimed", "completed", "rejected", "expired", "withdrawn"]


class View(msgspec.Struct, frozen=True, kw_only=True):
    pass


class FlowView(View, frozen=True):
    """A deployed flow. `digest` distinguishes versions; `version` counts them from 1. `deployed_by` is who deployed
    this version. `triggers` are those in effect. `tentative`: nobody has deployed it, it is known by a case that was
    started from its file, and the next such file replaces it."""

    name: str
    digest: str
    version: int
    deployed_at: Instant
    deployed_by: str = ""
    project: str = DEFAULT_PROJECT
    description: str = ""
    triggers: FlowTriggers | None = None
    tentative: bool = False
    flow: Flow | None = None  # only when one flow is requested


class NameCount(View, frozen=True):
    """Progress of all items of a named activity in this case. `mended` counts those among `done` that took more than
    one attempt, or were restarted; `cached` are not among `done`."""

    name: str
    kind: str
    done: int = 0
    running: int = 0
    waiting: int = 0
    failed: int = 0
    cancelled: int = 0
    mended: int = 0
    cached: int = 0
    skipped: int = 0


class CaseHold(View, frozen=True):
    """Who suspends a case, or one of its items. `over`: the holder is gone, and will not release it."""

    item: ItemId | None = None
    by: str = ""
    over: bool = False


class CaseOrigin(View, frozen=True):
    """Where a case came from, on the machine of whoever started it: the flow's file, the inputs that name files there,
    as they were given on the command line, with absolute paths, and the file with the other inputs (`--inputs`); and
    where its results are to go there. `told_by` is who said so, as the server knows him; commands use these paths for
    nobody else."""

    flow: str = ""
    inputs: dict[str, str] = {}
    inputs_file: str = ""
    output_dir: str = ""
    report: str = ""
    told_by: str = ""


class CaseTask(View, frozen=True):
    """A user task that a case waits for: of itself, or of a case that it called."""

    id: str
    case: CaseId
    item: ItemId
    title: str
    role: str = ""
    claimed_by: str = ""


class CaseView(View, frozen=True):
    id: CaseId
    flow: str
    digest: str
    status: CaseStatus
    started_at: Instant
    ended_at: Instant = 0
    inputs: dict[str, Value] = {}
    defaults: dict[str, Value] = {}  # of inputs that nobody gave it: what its flow has for them, unless it is large
    outputs: dict[str, Value] = {}
    fault: Fault | None = None
    parent: CaseId | None = None
    owner: str = ""
    schedule: str = ""  # the schedule that started it, at a due time or because somebody asked
    project: str = DEFAULT_PROJECT
    rerun_of: CaseId | None = None  # the case whose results it uses, unless its cache is none
    stands_for: CaseId | None = None  # the case that it was run in place of: what that failed by is taken up
    cache: CachePolicy = ""
    again: list[str] = []  # jobs that use no earlier results, nor does what depends on them
    on_unhandled: UnhandledPolicy = ""  # as whoever started it said: that comes before what its flow says
    counts: list[NameCount] = []
    to_come: int = 0  # names of its flow's work that have not begun; of a case that ended otherwise, that never began
    mends: CaseId | None = None  # an exlet's case: the case that it mends, the item there, and the decision behind it
    mends_item: ItemId | None = None
    decision: str = ""
    holds: list[CaseHold] = []  # of a live case: who suspends it, or items of it
    held: list[str] = []  # of a live case: items that failed, no rule took up, and wait for a person: CASE:ITEM
    tasks: list[CaseTask] = []  # of a live case: the first of the user tasks that are open in it, or below it
    tasks_open: int = 0  # and how many there are
    origin: CaseOrigin | None = None
    server: str = ""  # of a live case on a store with several servers: where it lives, as that server itself says
    stopped: bool = False  # of a live case: its jobs wait until somebody resumes it
    engine: str = ""  # the engine of another system that runs it, and is named in its id, ENGINE:CASE
    left_out: list[str] = []  # in lists: `inputs.NAME`, `outputs.NAME` that are too large; the case itself has them


class AttemptView(View, frozen=True):
    number: int
    pilot: PilotId
    granted_at: Instant
    started_at: Instant
    ended_at: Instant
    end: str
    fault: Fault | None
    cpu_ms: int
    peak_bytes: int
    ran_ms: int = 0  # without what it waited, or was suspended
    cached_files: int = 0  # inputs from the caches of pilots, and of these from other pilots' (shared)
    cached_bytes: int = 0
    shared_files: int = 0
    shared_bytes: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0
    stage_in_ms: int = 0
    stage_out_ms: int = 0
    read_bytes: int = 0  # from disks, and written to them
    written_bytes: int = 0
    printed_bytes: int = 0
    host: str = ""
    folder: str = ""  # where its pilot keeps its folder, for a time, if it failed


class RunView(View, frozen=True):
    """One run of an item, before a restart. `ran_ms`: how long its job ran, all attempts together."""

    serial: int
    state: ItemState
    job: JobId | None
    attempts: int
    created_at: Instant
    ended_at: Instant
    fault: Fault | None
    ran_ms: int = 0


class ItemView(View, frozen=True):
    """One item of a case, with a job's attempts, over all runs of a restarted one. `held`: it waits for a person, as it
    failed and nobody has taken that up, or as no rule knows what was raised about it, or what it is to call. `why`, in
    lists, says in a few words what it waits for or why it failed. `place` is its position in the case, for reading the
    next items. `element` is what it is for, of the loops that it is in, in a few words."""

    case: CaseId
    item: ItemId
    name: str
    kind: str
    serial: int
    state: ItemState
    job: JobId | None = None
    pilot: PilotId | None = None
    attempts: list[AttemptView] = []
    created_at: Instant = 0
    ended_at: Instant = 0
    fault: Fault | None = None
    outputs: Value = None
    files: dict[str, Value] = {}
    cache_reason: str = ""  # why its result was taken from the cache, or was not
    cached_from: str = ""  # the job that made its result, if another did
    code_mismatch: str = ""  # in which way the code that made its result was not the code that its job names
    left_running: str = ""  # what its script had not waited for, and what was ended with it
    reason: str = ""  # why it was skipped
    held: bool = False
    why: str = ""
    command: str = ""
    container: str = ""  # the image that its command runs in
    image: str = ""  # the digest of that image, once it has run
    log_tail: str = ""
    earlier_runs: list[RunView] = []
    place: str = ""
    element: str = ""

    @property
    def shown(self) -> str:
        """The item, with the element that it is for."""
        return item_text(self.item, self.element)


class ResultView(View, frozen=True):
    """A result that can be used again. `declared`: without being asked for; else `reason` says why not. `made_from` has
    the parts of what it was made from, where one result is asked for. `used_at` is to the minute."""

    key: str
    job: JobId
    case: CaseId
    item: ItemId
    name: str
    flow: str
    made_at: Instant
    used_at: Instant = 0
    files: int = 0
    bytes: int = 0
    declared: bool = False
    reason: str = ""
    made_from: dict[str, Value] = {}


class UserTaskView(View, frozen=True):
    """A person's work. `id` is `CASE/SERIAL`."""

    id: str
    case: CaseId
    item: ItemId
    role: str
    title: str
    description: str
    data: Value
    fields: dict[str, str]
    state: UserTaskState
    offered_at: Instant
    deadline: Instant = 0
    claimed_by: str = ""
    ended_at: Instant = 0
    ended_by: str = ""
    outputs: Value = None
    comment: str = ""
    element: str = ""


class PilotView(View, frozen=True):
    id: PilotId
    host: str
    site: str
    capacity: Capacity
    free_slots: int
    running: list[JobId]
    state: Literal["active", "silent", "gone"]
    seen_ms_ago: int
    lease_ms_left: int
    front: str = ""  # the server that it talks to
    submission: str = ""  # its name in a batch system, if it was submitted
    cache_files: int = 0  # bytes in its cache
    cache_bytes: int = 0
    projects: list[str] = []  # those whose jobs it gets; empty: all
    drained: str = ""  # who wants that it gets no new jobs, and why
    busy_slots: int = 0  # those in which something runs; what it has beside that, it has fetched ahead


class ServerView(View, frozen=True):
    """A server on the store, as the asked server sees it. `own` is the asked one itself."""

    id: str
    url: str
    host: str
    version: str
    state: Literal["alive", "silent", "ended"]
    beat_ms_ago: int
    started_at: Instant
    cases: int
    waiting: int
    running: int
    pilots: int
    own: bool = False


class Reason(View, frozen=True):
    """The reason of something's present state: one sentence, then the facts behind it, most telling first. `output` is
    the end of what a failed job printed. `stuck`: a job waits that no pilot there is could ever take. `until`: it waits
    in a retry level, and is tried again then. `needs_limit`: it is stuck at a named limit, which an administrator
    sets. `items`: those of the case that the sentence and the facts name, by what they are called there."""

    subject: str
    state: str
    sentence: str
    facts: list[str] = []
    output: list[str] = []
    stuck: bool = False
    needs_limit: bool = False
    until: Instant = 0
    items: dict[str, ItemId] = {}


ChangeKind = Literal["case", "item", "user-task", "alert", "message", "repair"]


class LogView(View, frozen=True):
    """A part of what an attempt printed: the bytes from `offset` to `next`, as text, and where they are no text (UTF-8)
    also as they are, in `data`. Where `offset` is later than what
    was asked for, the bytes between were left out, because the log is longer than its bound. `size` were printed so
    far, and it is `over` when no more will be, `job_over` when the job will not be tried again either. `silent`: its
    pilot does not answer, and `text` is the end of the log as it told that last. `note` says why there is none yet.
    `folder` is where the pilot on `host`
    keeps the folder of an attempt that failed."""

    job: JobId
    attempt: int
    offset: int
    text: str
    next: int
    size: int
    over: bool
    job_over: bool = False
    silent: bool = False
    host: str = ""
    folder: str = ""
    data: bytes = b""
    note: str = ""


class ChangeEvent(View, frozen=True):
    """One change in the event stream. `serial` grows within a case."""

    serial: int
    at: Instant
    kind: ChangeKind
    case: CaseId
    item: ItemId | None = None
    state: str = ""
    message: str = ""


class Health(View, frozen=True):
    status: Literal["ok", "store-away"]
    version: str
    uptime_ms: int
    store: str
    cases_live: int
    jobs_waiting: int
    jobs_running: int
    pilots: int
    message: str = ""


class JobQuery(View, frozen=True):
    """`where` is a condition in CEL; docs/reference/search.md has the names. Without an order the newest come first.
    `after` is the `next` of the page before, with which no offset is given: what that page has not skipped of its own,
    it says. `also` is a further condition, which must hold besides `where`: what a page adds to what a person typed."""

    case: str = ""
    state: Annotated[str, OneOf(JobState)] = ""
    name: str = ""
    owner: str = ""
    pilot: str = ""
    attempts_min: Count = 0
    limit: Limit = 100
    offset: Offset = 0
    where: Condition = ""
    also: Condition = ""
    order: Order = ""
    after: AfterPage = ""


class CaseQuery(View, frozen=True):
    """`also` is a further condition, which must hold besides `where`: what a page adds to what a person typed."""

    flow: str = ""
    status: Annotated[str, OneOf(CaseStatus)] = ""
    limit: Limit = 100
    offset: Offset = 0
    where: Condition = ""
    also: Condition = ""
    order: Order = ""
    after: AfterPage = ""


class CountsView(View, frozen=True):
    """How many there are per value of a name, or all under the empty one. With `next`, the search stopped there and
    there are more: continue from it."""

    counts: dict[str, int]
    next: str = ""
    looked_at: int = 0


JobView = Job


class ListedJob(Job, kw_only=True):
    """`why` says in a few words what it waits for, or why it failed; it is empty where there is nothing to say."""

    why: str = ""


class JobPage(View, frozen=True):
    """The results, and where to continue; without `next` there are no more. A search over very many documents stops
    early and returns fewer results with a `next`."""

    rows: list[ListedJob]
    next: str = ""
    looked_at: int = 0


class CasePage(View, frozen=True):
    rows: list[CaseView]
    next: str = ""
    looked_at: int = 0


class ItemPage(View, frozen=True):
    """`next` is the place of the last item that was examined, with what is left to skip of the page's offset."""

    rows: list[ItemView]
    next: str = ""
    looked_at: int = 0
