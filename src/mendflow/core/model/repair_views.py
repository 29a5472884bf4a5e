"""Views of recovery: failures by cause, rules, decisions, and the history of a case.

Like all views they are made from state and documents, and never used for decisions."""

from typing import Annotated, Literal

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, item_text
from mendflow.core.model.parameters import Limit, Offset, OneOf
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import Conclusion, DecisionState, ExceptionType, Handling, Primitive, RuleError
from mendflow.core.model.rule_views import DifferencesView, DifferenceView, LeftReason
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.model.views import Reason, View


class TrailStep(View, frozen=True):
    """A rule in a trail with its condition, so that it can be read without the rule set."""

    rule: int
    held: bool
    condition: str = ""
    values: dict[str, Value] = {}
    error: str = ""


RetryState = Literal["", "left", "spent", "none"]
"""Whether a job that failed is tried again because its author said so, was as often as he said, or never is, as he
said."""


class DecisionView(View, frozen=True):
    """An exception, its conclusion and its result. `context` is included when one decision is requested."""

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
    trigger: str = ""  # the trigger that somebody raised
    condition: str = ""
    reason: str = ""  # what the author of the rule says of it
    exlet: str = ""
    exlet_case: CaseId | None = None
    trail: list[TrailStep] = []
    others: int = 0  # further rules that did not hold and are not in the trail
    trials: list[Conclusion] = []
    errors: list[RuleError] = []  # rules whose conditions could not be evaluated
    ended_at: Instant = 0
    result: str = ""
    note: str = ""
    tried: str = ""  # of what no rule takes up any more: what rules did about the same item before, in words
    replaced_by: str = ""
    undone: list[str] = []  # the items that it undid; it began to, if it runs or has failed
    context: dict[str, Value] = {}
    element: str = ""  # what the item is for, of the loops that it is in
    retries: RetryState = ""
    handling: Handling | Literal[""] = ""  # who has taken it up, where that was looked up

    @property
    def about(self) -> str:
        """What people call its case: one of another engine with that engine's name before it."""
        return f"{self.engine}:{self.case}" if self.engine else str(self.case)

    @property
    def shown(self) -> str:
        """The item, with the element that it is for; empty if it is about the whole case."""
        return item_text(self.item, self.element) if self.item is not None else ""


class Explanation(Reason, frozen=True):
    """A reason, and the repairs that concern it, the newest first."""

    repairs: list[DecisionView] = []


class DecisionQuery(View, frozen=True):
    case: str = ""
    item: str = ""
    group: str = ""
    state: Annotated[str, OneOf(DecisionState)] = ""
    rules: str = ""
    handling: Annotated[str, OneOf(Handling)] = ""  # of a group
    limit: Limit = 100
    offset: Offset = 0


AdministrationTaskKind = Literal["failure", "unexpected-event", "no-worklet", "rejected-choice"]
AdministrationTaskState = Literal["open", "running", "closed"]
"""open: it waits for a person. running: the repair that somebody ordered is not over. closed: it is."""


class AdministrationOutcome(View, frozen=True):
    """Who handled an administration task, and how. Without an exlet nothing was done: the case went on, or is over."""

    by: str = ""
    at: Instant = 0
    exlet: str = ""
    rules: str = ""
    rule: int | None = None
    result: str = ""
    ended_at: Instant = 0
    replaced_by: str = ""  # the decision that took the place of a rejected one
    note: str = ""


class AdministrationTaskView(View, frozen=True):
    """What a person is asked to handle: who asks, in which scenario, what is suggested, and what came of it. Its id is
    that of the decision that it is about."""

    id: str
    kind: AdministrationTaskKind
    state: AdministrationTaskState
    asked_by: str
    asked_at: Instant
    scenario: str
    suggestion: str
    case: CaseId
    flow: str
    item: ItemId | None = None
    engine: str = ""
    group: str = ""
    outcome: AdministrationOutcome | None = None

    @property
    def about(self) -> str:
        """What people call its subject."""
        case = f"{self.engine}:{self.case}" if self.engine else str(self.case)
        return f"{case}:{self.item}" if self.item is not None else case


class AdministrationQuery(View, frozen=True):
    state: Annotated[str, OneOf(AdministrationTaskState)] = ""
    case: str = ""
    limit: Limit = 100
    offset: Offset = 0


class HandlingCount(View, frozen=True):
    """How often a rule handled failures of one cause, and the results, by word. `tree` is the task whose tree the rule
    is in: numbers are per tree."""

    rules: str
    rule: int
    exlet: str
    count: int
    results: dict[str, int]
    passive: bool = False
    tree: str = ""


class FailureGroup(View, frozen=True):
    """Failures of one cause over all cases: the same type, category and message, without numbers and names. `waiting`
    are decisions that wait for a person; their cases are suspended until then. No rule took up the `unhandled`, and
    nobody has run their cases again; of `run_again` somebody has, and the cases of `settled` have completed all the
    same, or were cancelled. `rejected` are decisions of people, who rejected a user task. Of `told` a person was told,
    and nothing else was done."""

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
    run_again: int = 0
    settled: int = 0
    rejected: int = 0
    told: int = 0
    handled: list[HandlingCount] = []


class CandidateView(View, frozen=True):
    """A condition that holds for the case at hand and not for those that it is compared with."""

    condition: str
    reason: str = ""


class FailureView(View, frozen=True):
    """One group in detail: its newest decisions, characteristic values of their contexts, and conditions that separate
    them from others of the same type. `values` has each value with how many of the samples have it. `compared` is what
    distinguishes the newest from the case that is nearest to it in the rules. Rules can still be applied to
    `open_waiting` failures that wait, and to `open_failed` whose cases have failed and were not run again."""

    group: FailureGroup
    samples: list[DecisionView]
    values: dict[str, dict[str, int]]
    candidates: list[CandidateView]
    compared: DifferencesView | None = None
    open_waiting: int = 0
    open_failed: int = 0


class RuleSetView(View, frozen=True):
    """A version of a rule set. `rules` is included when one is requested, and then `decided` has how often each rule
    has decided, by type, task and rule: `abort/align/3`; `tried` has how often it would have, on trial. Of rules in
    `hidden_cornerstones` the cornerstone is left out: its case is in a project that the caller does not see."""

    name: str
    version: int
    at: Instant = 0
    author: str = ""
    project: str = DEFAULT_PROJECT
    note: str = ""
    rule_count: int = 0
    passive_count: int = 0
    types: list[str] = []
    exlets: list[str] = []
    newest: bool = True
    rules: RuleSet | None = None
    decided: dict[str, int] = {}
    tried: dict[str, int] = {}
    hidden_cornerstones: list[str] = []


class RuleSpec(View, frozen=True, forbid_unknown_fields=True):
    """A rule to add. `decision` (or `group`: its newest decision) is the case at hand: it gives type, task and place,
    and is stored as the cornerstone. Without one, `type` and `task` select the tree. `exlet` names an exlet of the set,
    or the one in `flow`. `expected` is the version of the set that the rule was made for; 0: there was none."""

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
    expected: int | None = None


class RuleAddition(View, frozen=True):
    """Where a new rule was added: below which rule, on its true or its false side. `candidates` are conditions that
    would separate the case at hand from the cornerstone of the rule `neighbour`; it differs from that in `differences`.
    `promoted`: it existed on trial, and is in force now. `warning` says who reads it besides the case's project."""

    rules: str
    version: int
    type: ExceptionType
    task: str
    rule: int
    under: int | None = None
    side: Literal["true", "false", ""] = ""
    candidates: list[CandidateView] = []
    promoted: bool = False
    neighbour: int | None = None
    differences: list[DifferenceView] = []
    warning: str = ""


class RuleSelector(View, frozen=True, forbid_unknown_fields=True):
    """A rule of a set, by its number. Numbers are per tree: if several have that number, `type` and `task` select one.
    `exceptions`: also its exceptions, when it is retired."""

    rule: int
    type: ExceptionType | None = None
    task: str = ""
    exceptions: bool = False
    note: str = ""


class RuleChange(View, frozen=True):
    """A rule of a set is changed or retired from this version on."""

    rules: str
    version: int
    type: ExceptionType
    task: str
    rule: int


class TrialEntry(View, frozen=True):
    """A past failure in a trial, and how it was handled: by which rule, if by one. `group` is its cause."""

    decision: str
    case: CaseId
    item: ItemId | None
    exlet: str
    state: DecisionState
    result: str = ""
    rules: str = ""
    rule: int | None = None
    group: str = ""


class TrialView(View, frozen=True):
    """A trial of a rule on past failures. `of` are the failures that it is for: those of the group, or those that no
    rule handled. `otherwise` are others that it would have taken from the rule that handled them. `others` are failures
    of other causes than the group's that it would have held for, whoever handled them. `breaks` names the cornerstone
    that prevents adding it. `rules`, `version`, `type`, `task`, `under` and `side` say where it would go: into the
    tree of which set, below which rule, on its true or its false side. `missing_bounds` says what the
    condition lacks if the exlet runs the job again, by the primitive that does so, the one that counts first: the
    condition holds each time that the job fails again, and the server ends that only after `repairs_max` repairs of
    the item."""

    caught: int
    of: int
    looked_at: int
    caught_ids: list[TrialEntry]
    missed_ids: list[TrialEntry]
    otherwise: list[TrialEntry]
    others: list[TrialEntry] = []
    breaks: str = ""
    rules: str = ""
    version: int = 0
    type: ExceptionType | None = None
    task: str = ""
    under: int | None = None
    side: Literal["true", "false", ""] = ""
    missing_bounds: dict[Primitive, str] = {}
    repairs_max: int = 0


class ApplyResult(View, frozen=True):
    """What came of applying the rules now to those of a group that wait, or that their cases failed by, told in
    failures, by the ids of their decisions: `refused` are those that could not be taken up, with the reason; `left` are
    those that stay as they are, and `why_left` has the reason of each. Only `cases` are cases, those that had failed
    and go on from where they stood."""

    group: str
    taken_up: list[str]
    left: list[str]
    why_left: dict[str, LeftReason] = {}
    cases: list[str] = []
    refused: dict[str, str] = {}


class TriggerView(View, frozen=True):
    """A trigger that the rules know."""

    trigger: str
    level: Literal["case", "item"]
    task: str = ""
    rules: str = ""


class RepairRequest(View, frozen=True, forbid_unknown_fields=True):
    """An exlet that a person provides, for what waits in a case, or for the case as it is. `exlet` names one of the
    rule sets, or the one in `flow`. With a `condition` it also becomes a rule."""

    exlet: str = ""
    flow: Flow | None = None
    item: str = ""
    decision: str = ""
    condition: str = ""
    rules: str = ""
    note: str = ""


class RejectRequest(View, frozen=True, forbid_unknown_fields=True):
    """A wrong decision, and the right exlet (or worklet) instead, by name or included. Without one it is a request to
    an author, and the note says what was wrong; `withdraw` ends such a request, and the note says why."""

    decision: str
    exlet: str = ""
    flow: Flow | None = None
    condition: str = ""
    note: str = ""
    withdraw: bool = False


class CompensationView(View, frozen=True):
    """The deployed flow that undoes a task. It gets the task's data and results, as far as it has inputs of those
    names. Without a flow, the entry is removed."""

    task: str
    flow: str = ""
    author: str = ""
    at: Instant = 0


class LevelView(View, frozen=True):
    """A retry level: its wait, how many wait now, and how many of those in memory only."""

    level: int
    wait_ms: int
    waiting: int
    express: int = 0
    next_at: Instant = 0
    jobs: list[JobId] = []


class DrainResult(View, frozen=True):
    """How many were released early; from one level, or from all if `level` is 0."""

    level: int
    let_go: int


HistorySource = Literal["engine", "service", "pilot", "person"]


class HistoryEntry(View, frozen=True):
    """One entry of the history that engine and exception service make together. `lifecycle` is the standard term of
    process mining, `by` the actor. `element` is what the item is for, where it is submitted or offered."""

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
    element: str = ""
