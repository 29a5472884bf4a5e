"""The state of one case: a tree of live activity instances, the environments with their data, and little else.

References are numbers, so the state is plain data: a snapshot is its encoding, and a restored case continues exactly as
the original. An instance is dropped when its activity ends; what remains are its results, its variables, and a record
if it can be compensated."""

from collections.abc import Iterable
from enum import IntEnum
from functools import cache, cached_property
from typing import Literal, Union

import msgspec

from mendflow.core.engine.messages import Deliver, Event, Order
from mendflow.core.engine.plan import Plan, compile_flow
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseStatus


class InstancePhase(IntEnum):
    NEW = 0  # scheduled by its parent; not started
    JOINING = 1  # it waits for its links to be decided
    RUNNING = 2
    STOPPING = 3  # it was told to end and waits for its children
    DONE = 4  # ended; its parent has not been notified


class InstanceEnd(IntEnum):
    """How an instance ended."""

    COMPLETED = 0
    SKIPPED = 1
    STOPPED = 2
    FAULTED = 3
    REMOVED = 4  # cancelled by itself: what would follow on its path does not run
    FAILED = 5  # made to fail, and what follows runs


class ScopeStage(IntEnum):
    """The stage of a scope's life."""

    QUEUED = 0  # isolated, and another isolated scope is running
    BODY = 1  # its body and its event handlers run
    CLOSING = 2  # its body has ended; event handlers that started are still running
    FAULTING = 3  # a fault was thrown; what still runs is being stopped
    HANDLING = 4  # a fault handler runs
    ENDING = 5  # the termination handler runs


class Env(msgspec.Struct, array_like=True, gc=False):
    """Names and values of one scope, one iteration of a for-each or one run of a handler.

    `holds` counts its users: its owner, environments inside it, and records of scopes that ended inside it. `home`
    marks those that keep open requests: `requests` maps a channel to a message. In flows with XML, `node` is the scope,
    handler or loop that it belongs to, which gives its declarations; -1 elsewhere."""

    id: int
    parent: int
    variables: dict[str, Value]
    results: dict[str, dict[str, Value]]
    holds: int = 1
    home: bool = False
    requests: dict[str, str] | None = None
    node: int = -1
    ends: dict[str, str] | None = None  # of activities that failed or were removed, by name


class CompensationRecord(msgspec.Struct, array_like=True, gc=False):
    """A completed scope that can be compensated: its data as of then, and such scopes inside it. `number` is its place
    in the order of completions."""

    node: int
    path: str
    env: int
    inner: list["CompensationRecord"]
    number: int = 0


class CompletedItem(msgspec.Struct, array_like=True, gc=False):
    """A completed item that somebody outside may want to undo. `data` is what it was given."""

    node: int
    item: ItemId
    serial: int
    data: dict[str, Value]
    outputs: Value


class Instance(msgspec.Struct, array_like=True, gc=False, tag="instance"):
    """One live activity of the tree. `path` has the indexes of the loop iterations around it: `3` or `3,0`."""

    id: int
    node: int
    parent: int
    env: int
    scope: int
    path: str
    phase: InstancePhase = InstancePhase.NEW
    end: InstanceEnd = InstanceEnd.COMPLETED
    undecided: int = 0  # links that it waits for


class Structure(Instance, tag="structure", gc=False):
    """An activity with children. `children` maps a child to its position; `next` is the position of the child to start
    next."""

    children: dict[int, int] = {}
    next: int = 0


class Graph(Structure, tag="graph", gc=False):
    """A parallel: the states of its decided links, and who waits for which."""

    links: dict[int, bool] = {}
    waiting: dict[int, int] = {}
    fault: Fault | None = None


class ForEachInstance(Structure, tag="turns", gc=False):
    """A for-each. `elements` is None when it counts from `first`, or goes over the lists of `axes`. `files`
    are those of the iterations, by name, as far as they have ended; of its `failed` ones, and of those that somebody
    `removed`, so many are `tolerated`."""

    elements: list[Value] | None = None
    first: int = 0
    total: int = 0
    enough: int = -1
    ended: int = 0
    counted: int = 0
    collected: list[Value] = []
    fault: Fault | None = None
    over: bool = False  # enough iterations have ended; the others are being stopped
    axes: dict[str, list[Value]] = {}
    files: dict[str, list[Value]] = {}
    failed: int = 0
    tolerated: int = -1
    removed: int = 0


class Alarm(msgspec.Struct, array_like=True, gc=False):
    place: int
    at: Instant
    every_ms: int = 0


class ScopeInstance(Structure, tag="scope", gc=False):
    """A scope, or a handler, which is a scope of its own. `inner` is its environment. `records` are scopes that
    completed inside it; `targets` are those that a handler may compensate. `handler_arguments` are put into its
    environment when it begins, and so is the `message` of an event handler. `is_terminating`: it was told to end while
    it handled a fault, which it may finish."""

    stage: ScopeStage = ScopeStage.BODY
    inner: int = 0
    held: int = 0
    fault: Fault | None = None
    records: list[CompensationRecord] = []
    targets: list[CompensationRecord] = []
    handler_arguments: dict[str, Value] = {}
    request: tuple[str, str] | None = None
    timers: dict[int, Alarm] = {}
    listening: list[tuple[str, str]] = []
    links: dict[int, bool] = {}
    handlers_begun: int = 0
    is_terminating: bool = False
    is_isolating: bool = False
    ticket: int = 0  # its number in the queue of isolated scopes
    is_removed: bool = False  # an item of its body was removed, and with it the rest of the path
    is_failed: bool = False  # its body is an item that was made to fail
    message: Deliver | None = None  # in flows with XML


class CompensateInstance(Structure, tag="compensating", gc=False):
    targets: list[CompensationRecord] = []


class Item(Instance, tag="item", gc=False):
    """An activity that waits for the outside world. `order` is its request, with its data as of its start; `serial` is
    the number of the outstanding order, or 0. `facts` are kept while it is suspended."""

    item: ItemId = ItemId("")
    serial: int = 0
    order: Order | None = None
    suspended: bool = False
    facts: list[Event] = []


class JobItem(Item, tag="job", gc=False):
    """`sources` are files that are staged before the job is submitted, `data` values that are written to files."""

    sources: dict[str, str] = {}
    staging: bool = False
    data: dict[str, Value] = {}

    @property
    def needs_staging(self) -> bool:
        return bool(self.sources or self.data)


class ReceiveItem(Item, tag="receive", gc=False):
    """`listening` names its own listeners, by channel and correlation."""

    correlation: Value = None
    listening: list[tuple[str, str]] = []


class TimedItem(Item, tag="timed", gc=False):
    """An item with its own timers: a wait, a task with a deadline."""

    timers: dict[int, Alarm] = {}
    duration_ms: int = -1
    until: Instant = 0


class TransformItem(Item, tag="transforming", gc=False):
    """An assign with style sheets: what they made so far, by what they were given; `pending` is being made."""

    pending: str = ""
    made: dict[str, Value] = {}


class PickInstance(Structure, tag="picking", gc=False):
    """A pick; it has picked when it has no timers and no listeners left."""

    timers: dict[int, Alarm] = {}
    listening: list[tuple[str, str]] = []


AnyInstance = Union[
    Instance,
    Structure,
    Graph,
    ForEachInstance,
    ScopeInstance,
    CompensateInstance,
    PickInstance,
    Item,
    JobItem,
    ReceiveItem,
    TimedItem,
    TransformItem,
]


class Listener(msgspec.Struct, array_like=True, gc=False):
    """A receiver of messages: a receive, a branch of a pick, an event handler."""

    instance: int
    place: int


class CaseIndex:
    """Derived from the state: instances by serial, and by item."""

    __slots__ = ("items", "serials")

    def __init__(self, instances: Iterable[Instance]) -> None:
        self.serials: dict[int, int] = {}
        self.items: dict[str, int] = {}
        for instance in instances:
            if isinstance(instance, Item) and instance.phase is InstancePhase.RUNNING:
                self.items[instance.item] = instance.id
                if instance.serial:
                    self.serials[instance.serial] = instance.id
            if isinstance(instance, (TimedItem, ScopeInstance, PickInstance)):
                self.serials.update(dict.fromkeys(instance.timers, instance.id))


class XmlMeter:
    """The work that one event did on XML, in units of about a microsecond: nodes that expressions looked at, texts
    that were read and written. A text is read once in an event, if at all: most are known from before, so not all of
    its length counts. `cut` is the step before which the event was cut, if it was. None of this is part of the state:
    journals hold where events were cut, so what something counts for may change."""

    __slots__ = ("_read", "cut", "work")

    def __init__(self) -> None:
        self.work = 0
        self.cut = 0
        self._read: set[str] = set()

    def begin(self) -> None:
        """Start another event."""
        self.work = 0
        self.cut = 0

    def end(self) -> None:
        """Drop the parsed texts; keep the count."""
        self._read.clear()

    def spend(self, units: int) -> None:
        self.work += units

    def look(self, text: str) -> None:
        if text not in self._read:
            self._read.add(text)
            self.work += len(text) // 16

    def write(self, text: str) -> None:
        self.work += len(text) // 4


class Case(msgspec.Struct, kw_only=True, dict=True):
    """One case. Changed by `evolve` alone."""

    id: CaseId = CaseId("")
    flow: Flow | None = None
    status: CaseStatus | Literal["blank"] = "blank"
    inputs: dict[str, Value] = {}
    outputs: dict[str, Value] = {}
    fault: Fault | None = None
    started_at: Instant = 0
    ended_at: Instant = 0
    parent: CaseId | None = None
    position: int = 0
    last_id: int = 0
    last_serial: int = 0
    instances: dict[int, AnyInstance] = {}
    envs: dict[int, Env] = {}
    root: int = 0
    backlog: list[tuple[int, int]] = []
    continuation: int = 0  # the serial of the outstanding ContinueLater
    listeners: dict[str, dict[str, Listener]] = {}  # by channel, then by correlation
    mailbox: dict[str, list[Deliver]] = {}
    message_ids: dict[str, None] = {}
    isolated: int = 0  # the running isolated scope
    isolated_next: dict[int, int] = {}  # waiting isolated scopes, by ticket
    tickets: int = 0  # how many tickets were given
    tickets_served: int = 0  # how many of them have been called
    facts: list[Event] = []  # kept while the case is suspended
    answered: dict[int, None] = {}  # serials that kept facts are about
    posted: dict[int, Order] = {}  # posted orders that are not acknowledged yet
    taken: dict[str, None] = {}  # accepted control commands, by step
    holders: dict[str, None] = {}  # who suspends the case; if empty while suspended, a person
    item_holders: dict[int, dict[str, None]] = {}  # who suspends which item
    at_start: dict[int, Order] = {}  # the orders of items as they were sent, if their data has changed since
    written_outputs: dict[int, dict[str, Value]] = {}  # what is written into answers that are held, by serial and path
    restarts: dict[int, int] = {}  # how often live items were restarted
    levels: dict[int, int] = {}  # the last retry levels of restarted live items
    variables: dict[str, Value] = {}  # the flow's variables, before its start and after its end
    external_digest: str = msgspec.field(default="", name="heard")  # of what it was told from outside
    early_writes: dict[str, Value] = {}  # writes to them before the start, by path, in order
    remember: tuple[str, ...] = ()
    completions: int = 0
    completed_items: dict[int, CompletedItem] = {}  # completed items of remembered tasks, in order
    has_created: bool = False  # in flows with XML: the message that starts the case was taken
    exited: bool = False  # in flows with XML: the flow itself has ended it at once
    undelivered: list[str] = []  # in flows with XML: unread messages at its end
    final_results: dict[str, dict[str, Value]] = {}  # what items left, of a case that has completed

    @classmethod
    def blank(cls, plan: Plan | None = None) -> "Case":
        """A case before its start, with the plan of its flow if whoever starts it has that."""
        case = cls()
        if plan is not None:
            case.plan = plan
        return case

    @cached_property
    def plan(self) -> Plan:
        assert self.flow is not None, "a blank case has no plan"
        return compile_flow(self.flow, taken=True)

    @cached_property
    def index(self) -> CaseIndex:
        return CaseIndex(self.instances.values())

    @cached_property
    def telling_columns(self) -> dict[int, tuple[str, ...]]:
        """Of loops over rows, by their instance: the columns that tell the rows apart. Found when asked for."""
        return {}

    @cached_property
    def meter(self) -> XmlMeter:
        return XmlMeter()

    @property
    def over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def messages_waiting(self) -> list[str]:
        """The messages that nobody has taken yet."""
        kept = [event.fact.id for event in self.facts if isinstance(event.fact, Deliver)]
        return [message.id for messages in self.mailbox.values() for message in messages] + kept


_encoder = msgspec.msgpack.Encoder()


def snapshot(case: Case) -> bytes:
    """The whole case as bytes."""
    return _encoder.encode(case)


@cache
def _decoder() -> msgspec.msgpack.Decoder[Case]:
    """Made for the first snapshot that is read: it has to know every kind of activity."""
    return msgspec.msgpack.Decoder(Case)


def restore(data: bytes) -> Case:
    """The case of a snapshot; it continues as the original would have."""
    case = _decoder().decode(data)
    if not case.completions:
        _number(case)
    return case


def restore_beside(data: bytes, known: Case) -> Case:
    """The same, of a case whose flow is known already: it is neither kept nor compiled twice."""
    return beside(restore(data), known)


def beside(case: Case, known: Case) -> Case:
    """The case with the flow of another of the same flow."""
    case.flow = known.flow
    case.__dict__["plan"] = known.plan
    return case


def _number(case: Case) -> None:
    """Earlier versions did not count completions: number the records, inner ones before their scope's."""
    pending = [each.records for each in case.instances.values() if isinstance(each, ScopeInstance)]
    order: list[CompensationRecord] = []
    while pending:
        records = pending.pop()
        order.extend(reversed(records))
        pending.extend(record.inner for record in records)
    for record in reversed(order):
        case.completions += 1
        record.number = case.completions


def kept_answer_serial(case: Case, instance: Instance) -> int:
    """The serial of an item's order that was answered, if the answer is kept for later; else 0."""
    return instance.serial if isinstance(instance, Item) and instance.serial in case.answered else 0
