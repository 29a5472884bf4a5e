"""What people and programs are shown of repairs: failures by their cause, rules, decisions, and the story of a case.

Like all views they are made from state and documents, and nothing is decided from them."""

from typing import Annotated, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.core.model.parameters import Limit, Offset, OneOf
from mendflow.core.model.repair import Conclusion, DecisionState, ExceptionType
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.model.views import Reason, View


class TrailStep(View, frozen=True):
    """A rule on the way to a conclusion, with its condition, so that the trail can be read without the rule set."""

    rule: int
    held: bool
    condition: str = ""
    values: dict[str, Value] = {}
    error: str = ""


class DecisionView(View, frozen=True):
    """An exception, what was concluded from it, and what came of it. `context` is there when one is asked for."""

    id: str
    case: CaseId
    flow: str
    type: ExceptionType
    at: Instant
    state: DecisionState
    item: ItemId | None = None
    task: str = ""
    job: JobId | None = None
    engine: str = ""
    fault: Fault | None = None
    group: str = ""
    rules: str = ""
    version: int = 0
    tree: str = ""
    rule: int | None = None
    ordered_by: str = ""  # the person who ordered it, where no rule concluded it
    trigger: str = ""  # what somebody said has happened
    condition: str = ""
    exlet: str = ""
    exlet_case: CaseId | None = None
    trail: list[TrailStep] = []
    others: int = 0  # further rules on the way that did not hold and have no line in the trail
    trials: list[Conclusion] = []
    ended_at: Instant = 0
    result: str = ""
    note: str = ""
    replaced_by: str = ""
    context: dict[str, Value] = {}


class Explanation(Reason, frozen=True):
    """A reason, and the repairs that have to do with it, the newest first."""

    repairs: list[DecisionView] = []


class DecisionQuery(View, frozen=True):
    case: str = ""
    item: str = ""
    group: str = ""
    state: Annotated[str, OneOf(DecisionState)] = ""
    rules: str = ""
    limit: Limit = 100
    offset: Offset = 0


class HandlingCount(View, frozen=True):
    """How often a rule took up failures of one cause, and what came of it, by the word for the result."""

    rules: str
    rule: int
    exlet: str
    count: int
    results: dict[str, int]
    passive: bool = False


class FailureGroup(View, frozen=True):
    """Failures of one cause over all cases: the same type, category and message, numbers and names left out.
    `waiting` are decisions that wait for a person, whose cases stand still until then."""

    id: str
    type: ExceptionType
    category: str
    message: str
    count: int
    cases: int
    first_at: Instant
    last_at: Instant
    flows: list[str]
    tasks: list[str]
    waiting: int = 0
    unhandled: int = 0
    handled: list[HandlingCount] = []


class CandidateView(View, frozen=True):
    """A condition that holds for the case at hand and not for what it is told apart from."""

    condition: str
    reason: str = ""


class FailureView(View, frozen=True):
    """One group looked at closely: its newest decisions, values of their contexts that are telling, and conditions that
    tell them from others of the same type. `values` has each value with how many of the samples have it."""

    group: FailureGroup
    samples: list[DecisionView]
    values: dict[str, dict[str, int]]
    candidates: list[CandidateView]


class RuleSetView(View, frozen=True):
    """A rule set, in one of its versions. `rules` is there when one is asked for, and `decided` then says how often
    each rule has decided, by type, task and rule: `abort/align/3`; `tried` says how often it would have, on trial."""

    name: str
    version: int
    at: Instant = 0
    author: str = ""
    note: str = ""
    rule_count: int = 0
    passive_count: int = 0
    types: list[str] = []
    exlets: list[str] = []
    newest: bool = True
    rules: RuleSet | None = None
    decided: dict[str, int] = {}
    tried: dict[str, int] = {}


class RuleSpec(View, frozen=True, forbid_unknown_fields=True):
    """A rule to be made. `decision` (or `group`: its newest decision) is the case at hand: it says type, task and
    place, and is kept as cornerstone. Without one, `type` and `task` say which tree. `exlet` names an exlet of the set,
    or one that comes with it in `flow`."""

    condition: str
    exlet: str
    decision: str = ""
    group: str = ""
    rules: str = ""
    type: ExceptionType | None = None
    task: str = ""
    flow: Flow | None = None
    passive: bool = False
    note: str = ""


class RuleAddition(View, frozen=True):
    """Where a new rule went: below which rule, on its true or its false side. `candidates` are conditions that would
    tell the case at hand from its neighbour's. `promoted`: it was there on trial, and is in force now."""

    rules: str
    version: int
    type: ExceptionType
    task: str
    rule: int
    under: int | None = None
    side: Literal["true", "false", ""] = ""
    candidates: list[CandidateView] = []
    promoted: bool = False


class RuleSelector(View, frozen=True, forbid_unknown_fields=True):
    """A rule of a set, by its number. Each tree counts its own: where several have that number, `type` and `task` say
    which is meant. `exceptions`: those to it, too, where it is retired."""

    rule: int
    type: ExceptionType | None = None
    task: str = ""
    exceptions: bool = False
    note: str = ""


class RuleChange(View, frozen=True):
    """A rule of a set is another, or out of use, from this version on."""

    rules: str
    version: int
    type: ExceptionType
    task: str
    rule: int


class TrialEntry(View, frozen=True):
    """A past failure in a trial, and what was done about it then."""

    decision: str
    case: CaseId
    item: ItemId | None
    exlet: str
    state: DecisionState
    result: str = ""


class TrialView(View, frozen=True):
    """A rule played against what happened. `of` are the failures that it is meant for: those of the group, or those
    that no rule took up. `otherwise` are others that it would have taken from the rule which handled them. `breaks`
    says which cornerstone is in the way of adding it."""

    caught: int
    of: int
    looked_at: int
    caught_ids: list[TrialEntry]
    missed_ids: list[TrialEntry]
    otherwise: list[TrialEntry]
    breaks: str = ""


class ApplyResult(View, frozen=True):
    """What came of applying the rules now to those of a group that wait."""

    group: str
    taken_up: list[str]
    left: list[str]


class TriggerView(View, frozen=True):
    """Something that may be said to have happened to a case or an item, as the rules know it."""

    trigger: str
    level: Literal["case", "item"]
    task: str = ""
    rules: str = ""


class RepairRequest(View, frozen=True, forbid_unknown_fields=True):
    """An exlet made on the spot, for what waits in a case, or for the case as it is. `exlet` names one of the rule
    sets, or comes with it in `flow`. With a `condition` it also becomes a rule."""

    exlet: str = ""
    flow: Flow | None = None
    item: str = ""
    decision: str = ""
    condition: str = ""
    rules: str = ""
    note: str = ""


class RejectRequest(View, frozen=True, forbid_unknown_fields=True):
    """A choice that was wrong, and what is right instead: an exlet (or worklet) by name, or one that comes along."""

    decision: str
    exlet: str = ""
    flow: Flow | None = None
    condition: str = ""
    note: str = ""


class CompensationView(View, frozen=True):
    """In the library: the deployed flow that undoes a task. It gets what the task was given and what it left, as far as
    it has inputs of those names. Without a flow, the task is to have none any more."""

    task: str
    flow: str = ""
    author: str = ""
    at: Instant = 0


class LevelView(View, frozen=True):
    """A level of retries: how long what comes here waits, how many wait now, and how many of those in memory only."""

    level: int
    wait_ms: int
    waiting: int
    express: int = 0
    next_at: Instant = 0
    jobs: list[JobId] = []


class DrainResult(View, frozen=True):
    """How many were let go before their time; of one level, or of all if `level` is 0."""

    level: int
    let_go: int


class EngineView(View, frozen=True):
    """An engine of another system that this service serves."""

    name: str
    registered_at: Instant
    seen_at: Instant
    waiting: int = 0
    owner: str = ""


class EngineOrder(View, frozen=True):
    """One call of interface B for a foreign engine. It is given again until it is said to be done."""

    id: str
    call: str
    case: CaseId = CaseId("")
    item: ItemId | None = None
    with_: dict[str, Value] = msgspec.field(default={}, name="with")


class EventAnswer(View, frozen=True):
    """The answer to an event: whether to hold what was about to happen until the order `release` comes."""

    event: str
    held: bool


HistorySource = Literal["engine", "service", "pilot", "person"]


class HistoryEntry(View, frozen=True):
    """One thing that happened in a case, in the words of the one history that engine and service make together.
    `lifecycle` is the standard word of process mining for it, `by` whoever did it."""

    at: Instant
    case: CaseId
    source: HistorySource
    what: str
    name: str = ""
    item: ItemId | None = None
    lifecycle: str = ""
    by: str = ""
    message: str = ""
    decision: str = ""
    exlet: str = ""
