"""What the flow manager keeps of each case besides the engine's state: its document, and the counts of item states.

The document is for people and for finding live cases after a restart; the journal is what decides."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mendflow.core.data.case_origins import bounded_origin
from mendflow.core.engine import Case
from mendflow.core.engine.dependents import with_dependents
from mendflow.core.engine.state import Item
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.ids import CaseId, Instant, ItemId, item_name
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import Value
from mendflow.core.model.views import (
    CachePolicy,
    CaseOrigin,
    CaseStatus,
    CaseView,
    ItemState,
    NameCount,
)
from mendflow.core.recovery.ids import GENERATION_MARK, serial_of
from mendflow.core.results.earlier_results import EarlierResults, NamedJobs
from mendflow.core.schedules.planning import schedule_of_key
from mendflow.services.base.cluster import JOURNALS, LIVE_STATUSES

ITEM_KIND = "item"
RUNS_KIND = "runs"
SNAPSHOT_KIND = "snapshot"


def journal_of(case: CaseId) -> str:
    return f"{JOURNALS}{case}"


class EndAmendments(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What exlets changed in a case between its end in the engine and its publication."""

    holders: list[str] = []
    outputs: dict[str, Value] = {}
    removed: str = ""
    done: list[str] = []  # by which steps: the same step counts once


class Confinement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a case that another domain has sent may use here, and whatever it calls: pilots of `sites` only, if some are
    named, and the `flows` that its domain may start (`*` is any)."""

    sites: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()


class CaseDocument(msgspec.Struct, kw_only=True):
    id: CaseId
    flow: str
    digest: str
    status: CaseStatus = "running"
    started_at: Instant = 0
    ended_at: Instant = 0
    inputs: dict[str, Value] = {}
    defaults: dict[str, Value] | None = None  # of inputs that nobody gave it; None: it is of before
    outputs: dict[str, Value] = {}
    fault: Fault | None = None
    parent: CaseId | None = None
    parent_serial: int = 0
    parent_item: ItemId | None = None  # the item of the call
    parent_element: str = ""  # what the call is for, of the loops that it is in
    owner: str = ""
    project: str = DEFAULT_PROJECT  # that of the whole tree
    counted_as: str = ""  # by what its flow is counted, whoever has that name later; empty: its name alone
    rerun_of: CaseId | None = None  # where results come from
    stands_for: CaseId | None = None  # what that case failed by is taken up by this one
    cache: CachePolicy = ""
    again: list[str] = []  # names of what uses no earlier results, nor does what depends on it
    on_unhandled: UnhandledPolicy = ""
    key: str = ""
    port: str = ""  # the port of the server that it was requested at
    way: tuple[str, ...] = ()  # the domains that it has come through, if another one has sent it
    notify: str = ""  # a URL that gets a notification of its end
    origin: CaseOrigin | None = None
    counts: list[NameCount] = []
    to_come: int = 0  # of a case that is over and has not completed: how many names of its flow's work never began
    serials: int = 0  # of a case that is over: how many serials there are
    posted: bool = False  # it is over, and a job that nobody waits for is still under way
    mends: CaseId | None = None  # of an exlet: the case that it mends, the item there, and its decision
    mends_item: ItemId | None = None
    mends_engine: str = ""  # empty: of this very server
    decision: str = ""
    ending: EndAmendments | None = None
    reopened: int = 0  # how often it went on after it had failed
    void: bool | None = None  # it never began, and only reserves its name
    confined: Confinement | None = None  # of a root that another domain has sent
    engine: str = ""  # of a case that is only listed here: the engine that runs it

    @property
    def live(self) -> bool:
        return self.status in LIVE_STATUSES

    @property
    def counted_flow(self) -> str:
        """By what the flow of the case is counted, and learned of."""
        return self.counted_as or self.flow

    @property
    def counted_project(self) -> str:
        """The project whose quota of cases it counts against; empty if it mends a case, or undoes what one did."""
        is_wanted = self.parent is None or self.parent_item is not None or bool(self.port)
        return self.project if self.mends is None and is_wanted else ""

    def view(self, counts: list[NameCount] | None = None) -> CaseView:
        return CaseView(
            id=self.id,
            flow=self.flow,
            digest=self.digest,
            status=self.status,
            started_at=self.started_at,
            ended_at=self.ended_at,
            inputs=self.inputs,
            defaults=self.defaults or {},
            outputs=self.outputs,
            fault=self.fault,
            parent=self.parent,
            owner=self.owner,
            schedule=schedule_of_key(self.key),
            project=self.project,
            rerun_of=self.rerun_of,
            stands_for=self.stands_for,
            origin=bounded_origin(self.origin) if self.origin is not None else None,
            cache=self.cache,
            again=self.again,
            on_unhandled=self.on_unhandled,
            counts=self.counts if counts is None else counts,
            to_come=self.to_come,
            mends=self.mends,
            mends_item=self.mends_item,
            decision=self.decision,
            engine=self.engine,
        )


class ItemDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An item that is neither a job nor a user task: a staging, a called case, a skipped item. `place` is the serial
    that would have been the next, which gives its position in the list."""

    case: CaseId
    item: ItemId
    name: str
    kind: str
    serial: int
    state: ItemState
    place: int
    created_at: Instant = 0
    ended_at: Instant = 0
    fault: Fault | None = None
    outputs: Value = None
    reason: str = ""
    element: str = ""


class ItemRuns(msgspec.Struct, kw_only=True):
    """An item that was restarted: the serials of the runs before its last, the oldest first."""

    case: CaseId
    item: ItemId
    serials: list[int]


_STATES_BY_IMPORTANCE = (
    "failed",
    "suspended",
    "running",
    "staging",
    "waiting",
    "cancelled",
    "completed",
    "cached",
    "skipped",
)


class Snapshot(msgspec.Struct, kw_only=True):
    """The engine's state after `position` events of the journal."""

    case: CaseId
    position: int
    state: bytes


class Interception:
    """An action of a case that waits for the exception service. `patient`: it also waits while its item, or the case,
    is suspended; other actions are held by the engine then. `outcome` is the answer whose arrival is held."""

    __slots__ = ("event", "go", "item", "outcome", "patient", "released")

    def __init__(
        self,
        event: str,
        item: ItemId | None,
        go: Callable[[], Awaitable[None]],
        *,
        patient: bool,
        outcome: Outcome | None = None,
    ) -> None:
        self.outcome = outcome
        self.event = event
        self.item = item
        self.go = go
        self.patient = patient
        self.released = False


class Tally:
    """Counts by name, updated as items move from state to state."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, int]] = {}
        self._kinds: dict[str, str] = {}
        self._mended: dict[str, int] = {}
        self.moved = False  # since it was last reset by the reader of the counts

    def move(self, name: str, kind: str, before: str, after: str) -> None:
        self.moved = True
        states = self._states.get(name)
        if states is None:
            states = self._states[name] = {}
            self._kinds[name] = kind
        if before:
            states[before] -= 1
        if after:
            states[after] = states.get(after, 0) + 1

    def status(self, name: str) -> str:
        """The state of a name's items in one word: the one that needs most attention."""
        states = self._states.get(name, {})
        return next((state for state in _STATES_BY_IMPORTANCE if states.get(state)), "")

    def names(self) -> list[str]:
        return list(self._states)

    def statuses(self) -> dict[str, str]:
        return {name: word for name in self._states if (word := self.status(name))}

    def has_run_jobs(self) -> bool:
        """Whether any item but people's tasks has run, and not only been taken from an earlier case."""
        return any(
            states.get("completed") or states.get("failed")
            for name, states in self._states.items()
            if self._kinds[name] != "user-task"
        )

    def count_mended(self, name: str) -> None:
        self._mended[name] = self._mended.get(name, 0) + 1

    def counts(self) -> list[NameCount]:
        return [
            NameCount(
                name=name,
                kind=self._kinds[name],
                done=states.get("completed", 0),
                running=states.get("running", 0),
                waiting=states.get("waiting", 0) + states.get("staging", 0) + states.get("suspended", 0),
                failed=states.get("failed", 0),
                cancelled=states.get("cancelled", 0),
                mended=self._mended.get(name, 0),
                cached=states.get("cached", 0),
                skipped=states.get("skipped", 0),
            )
            for name, states in self._states.items()
        ]


def state_of(job: Job, *, runs: bool = True) -> ItemState:
    """The job's state in the words that people are shown. A granted job that has not begun is waiting."""
    if job.state is JobState.COMPLETED:
        return "cached" if job.outcome is not None and job.outcome.cached_from else "completed"
    if job.state is JobState.FAILED:
        cancelled = job.outcome is not None and job.outcome.fault is not None and job.outcome.fault.name == "cancelled"
        return "cancelled" if cancelled else "failed"
    if job.suspended:
        return "suspended"
    return "running" if runs and job.state is JobState.RUNNING else "waiting"


def was_mended(job: Job) -> bool:
    """Whether it completed after something had gone wrong. An attempt that ended because a person stopped its pilot is
    nothing wrong."""
    if job.state is not JobState.COMPLETED or not job.failures + job.losses:
        return False
    stopped = sum(each.fault is not None and each.fault.data == STOPPED_BY_PERSON for each in job.history)
    return bool(job.failures + job.losses > stopped)


STOPPED_BY_PERSON: Final = {"left": "told"}
"""What the fault of an attempt says whose pilot was told to leave, as by Ctrl-C."""


class LiveCase:
    """A case that is not over, in memory."""

    def __init__(self, case: Case, document: CaseDocument) -> None:
        self.case = case
        self.document = document
        self.journal = journal_of(document.id)
        self.is_started_here = False  # and not loaded from the store: everything about it is in memory
        self.tally = Tally()
        self.position = 0
        self.snapshot_due = 0
        self.work = 0  # steps in XML since the last snapshot; negative after a large one
        self.away: asyncio.Event | None = None  # while a step is done aside
        self.earlier: EarlierResults | None = None  # of the case that it runs again
        self.equal_jobs: dict[int, int] | None = None  # the counts of its tree, by what jobs are made from
        self.stored_keys: dict[int, str] = {}  # by serial: of its jobs that were loaded and whose orders are open
        self.compared: dict[str, NamedJobs] = {}  # by name: jobs of earlier cases, to tell what has changed since
        self.passed_over: dict[str, str] = {}  # by name: why results that are there are not used, once it was looked
        # the cases that the earlier case called, once they were read
        self.earlier_calls: dict[ItemId, CaseId] | None = None
        self.states: dict[int, tuple[str, str, str]] = {}
        self.failed: dict[int, str] = {}  # the end states of items that may be retried, or count as something else
        self.noted: set[str] = set()  # ids of item documents that were written
        self.runs: dict[ItemId, ItemRuns] = {}  # of items that were restarted
        self.past: set[int] = set()  # the serials of those runs, which no longer count
        self.held: dict[str, Interception] = {}  # actions that wait for the exception service, by event
        self._again: frozenset[int] | None = None  # the nodes that use no earlier results, once they were needed
        self.inputs_digest = ""  # of what it works on, once a person is asked about it
        self.unanswered: dict[int, int] = {}  # of calls that got no answer, by instance: the first serial of each

    @property
    def id(self) -> CaseId:
        return self.document.id

    @property
    def counted_project(self) -> str:
        return self.document.counted_project

    @property
    def flow(self) -> Flow:
        assert self.case.flow is not None, f"case {self.id} was not started"
        return self.case.flow

    def runs_again(self, serial: int) -> bool:
        """Whether an item uses no earlier results, because whoever started the case wants it to run, or something that
        it depends on."""
        if not self.document.again:
            return False
        if self._again is None:
            self._again = with_dependents(self.case.plan, self.document.again)
        instance = self.case.instances.get(self.case.index.serials.get(serial, 0))
        return isinstance(instance, Item) and instance.node in self._again

    def owned(self, spec: JobSpec, element: str = "") -> JobSpec:
        """The job as it is submitted, for this element of its loops: its owner is the one that the flow names, else
        whoever started the case; its account and project are those of the case, whatever the flow says."""
        owner, project = spec.owner or self.document.owner, self.document.project
        account = self.document.owner if owner != self.document.owner else ""
        return msgspec.structs.replace(spec, owner=owner, account=account, project=project, element=element)

    def move(self, serial: int, name: str, kind: str, state: str) -> None:
        """An item of this case is now in this state; in none, if it continues under another serial. Items that are over
        are forgotten here."""
        before = self.states.get(serial)
        self.tally.move(name, kind, before[2] if before else "", state)
        if state in ("waiting", "running", "staging", "suspended"):
            self.states[serial] = (name, kind, state)
        elif before is not None:
            del self.states[serial]
        if state == "failed" or state == "cancelled" or state == "completed":
            self.failed[serial] = state

    def note_told(self, serial: int) -> None:
        """The flow was told of an item that is over: a completed one stays completed, unless the item itself is
        suspended."""
        if self.failed.get(serial) == "completed" and serial not in self.case.index.serials:
            del self.failed[serial]

    def state_counted(self, serial: int) -> str:
        """The state that an item was last counted in."""
        known = self.states.get(serial)
        return known[2] if known is not None else self.failed.get(serial, "")

    @property
    def place(self) -> int:
        """The position of an item that begins now and gives no order."""
        return self.case.last_serial + 1

    def record_restart(self, item: ItemId, name: str, kind: str, serial: int) -> ItemRuns:
        """An item was restarted: its run so far no longer counts."""
        if before := self.take_back(serial):
            self.tally.move(name, kind, before, "")
        runs = self.runs.setdefault(item, ItemRuns(case=self.id, item=item, serials=[]))
        runs.serials.append(serial)
        self.past.add(serial)
        return runs

    def take_back(self, serial: int) -> str:
        """Return the state that an item was last counted in, and no longer count it there."""
        if (known := self.states.pop(serial, None)) is not None:
            return known[2]
        return self.failed.pop(serial, "")

    def move_job(self, job: Job, state: ItemState) -> bool:
        """A job of this case is now in this state; returns whether that is a change. A new submission takes the place
        of the one before."""
        id, name = job.id, job.name or item_name(job.spec.item)
        again = GENERATION_MARK in id
        serial = serial_of(id) if again else int(id.rpartition("/")[2])  # asked thrice of every job
        if serial in self.past:
            return False
        if again and serial not in self.states and serial in self.failed:
            self.states[serial] = (name, "job", self.failed.pop(serial))
        before = self.states.get(serial)
        if before is not None and before[2] == state and not again:
            return False  # it still waits, now with a pilot
        self.move(serial, name, "job", state)
        if job.state is JobState.COMPLETED and (was_mended(job) or again or job.spec.item in self.runs):
            self.tally.count_mended(name)
        return before is None or before[2] != state

    def count_call(self, item: ItemId, name: str) -> None:
        """A partner has answered. That is no work of its own, and is counted only if the call had to be mended."""
        if item in self.runs:
            self.tally.move(name, "invoke", "", "completed")
            self.tally.count_mended(name)

    def view(self) -> CaseView:
        return msgspec.structs.replace(self.document.view(self.tally.counts()), to_come=self.to_come)

    @property
    def to_come(self) -> int:
        """How many names of the flow's work nothing has begun of, nor been skipped. A loop counts as one until then."""
        return len(self.case.plan.work.difference(self.tally.names()))
