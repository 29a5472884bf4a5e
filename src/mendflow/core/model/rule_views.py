"""Views for an editor of rules: what a rule set would conclude, what distinguishes cases, what an exlet may contain.

Like all views they are made from state and documents, and never used for decisions."""

from typing import Literal

from mendflow.core.model.errors import Problem
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.repair import Conclusion, DecisionState, ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.model.views import View


class DifferenceView(View, frozen=True):
    """A value of the case at hand that differs from the case that it is compared with. `missing` says on which side
    there is none; `conditions` hold here and not there, ready for a rule."""

    path: str
    here: Value = None
    there: Value = None
    missing: Literal["", "here", "there"] = ""
    conditions: list[str] = []


class DifferencesView(View, frozen=True):
    """What distinguishes a decision from the case that it is compared with, the most telling first: the cornerstone of
    a rule, or, where there is none, another failure of the same type (`other`)."""

    decision: str
    rules: str = ""
    version: int = 0
    type: ExceptionType | None = None
    task: str = ""
    rule: int | None = None
    other: str = ""
    differences: list[DifferenceView] = []


class EvaluationRequest(View, frozen=True, forbid_unknown_fields=True):
    """What is to be concluded: from a context, or from that of a decision, by the rules of a flow as they are stored
    (`name`, and `version` if not the newest) or as they are given (`rules`). `only`: the default rules are not asked
    where these conclude nothing."""

    name: str = ""
    version: int | None = None
    rules: RuleSet | None = None
    type: ExceptionType | None = None
    task: str = ""
    context: dict[str, Value] | None = None
    decision: str = ""
    only: bool = False


class EvaluatedRule(View, frozen=True):
    """A rule that was asked, with its condition, the values that it read, and whether it held."""

    rules: str
    task: str
    rule: int
    condition: str
    held: bool
    values: dict[str, Value] = {}
    error: str = ""


class EvaluationView(View, frozen=True):
    """The conclusion, if there is one, and every rule that was asked on the way; `trials` are what rules on trial would
    have concluded. Nothing was done, and nothing is recorded."""

    conclusion: Conclusion | None = None
    trail: list[EvaluatedRule] = []
    trials: list[Conclusion] = []
    others: int = 0  # further rules that did not hold and are not in the trail


class ChangedConclusion(View, frozen=True):
    """A past decision that the changed rules would conclude otherwise. An empty exlet means: nothing."""

    decision: str
    case: CaseId
    item: ItemId | None
    type: ExceptionType
    task: str
    state: DecisionState
    result: str
    exlet: str
    rules: str
    rule: int | None
    new_exlet: str
    new_rules: str
    new_rule: int | None


class ChangedCornerstone(View, frozen=True):
    """A rule whose cornerstone the changed rules would conclude otherwise."""

    type: ExceptionType
    task: str
    rule: int
    exlet: str
    new_exlet: str


class ReplayView(View, frozen=True):
    """What a changed rule set would have concluded about past decisions, beside what the stored one concludes about
    them. `looked_at` without `same` are those that change; `changed` has at most a thousand of them. `erred` has the
    decisions about which a condition could not be evaluated, with the error; `problems` are why the set would be
    refused."""

    name: str
    version: int
    looked_at: int
    same: int
    changed: list[ChangedConclusion]
    cornerstones: list[ChangedCornerstone]
    erred: dict[str, str] = {}
    problems: list[str] = []


class RuleCheckRequest(View, frozen=True, forbid_unknown_fields=True):
    """A rule set to check, or an exlet, for the types of exceptions that are to conclude it."""

    rules: RuleSet | None = None
    exlet: Flow | None = None
    types: list[ExceptionType] = []


class RuleCheckView(View, frozen=True):
    """With a problem it would be refused. A warning is allowed, and seldom meant."""

    problems: list[str]
    warnings: list[str] = []


class PrimitiveView(View, frozen=True):
    """A primitive of exlets: what it does, what it may be applied to, and at which exceptions. `schema` is the JSON
    Schema of its step."""

    primitive: Primitive
    about: str
    targets: list[str]
    types: list[ExceptionType]
    schema: dict[str, Value]


class ContextPath(View, frozen=True):
    """A path that conditions can read: the types that its value has had, samples of it, and how many of the contexts
    that were looked at have it."""

    path: str
    types: list[str]
    samples: list[Value] = []
    count: int = 0
    of: int = 0


class RuleFileView(View, frozen=True):
    """A rule set as the text of a file of YAWL's worklet service. `problems` are what the format cannot say."""

    name: str
    version: int
    text: str
    problems: list[Problem] = []


class ReadRulesView(View, frozen=True):
    """The rules in the text of such a file, not stored. `problems` are what has no counterpart here."""

    rules: RuleSet
    problems: list[Problem] = []


class RuleRevision(View, frozen=True, forbid_unknown_fields=True):
    """A change of one rule: only what is given changes. `exlet` names an exlet of the set, or the one in `flow`; empty
    for nothing. `expected` is the version that the change was made for; `try_only`: nothing is stored."""

    rule: int
    type: ExceptionType | None = None
    task: str = ""
    condition: str | None = None
    exlet: str | None = None
    flow: Flow | None = None
    note: str | None = None
    expected: int | None = None
    try_only: bool = False


class PeriodCount(View, frozen=True):
    """Failures from a moment on, until the next period begins."""

    at: Instant
    count: int
    waiting: int = 0
    unhandled: int = 0
    recovered: int = 0


class FailureCounts(View, frozen=True):
    """The failures of a group over time. Periods without any are there too."""

    group: str
    period_ms: int
    periods: list[PeriodCount]


class ValueCount(View, frozen=True):
    """How often a value of the context occurs in a group of failures, in failures of other causes, and in jobs of the
    same flows that `succeeded`. In `known_elsewhere` and `known_succeeded` of these the path has a value at all:
    without any, nothing is compared."""

    path: str
    value: Value
    here: int
    of_here: int
    elsewhere: int
    of_elsewhere: int
    known_elsewhere: int = 0
    succeeded: int = 0
    known_succeeded: int = 0
    conditions: list[str] = []


class ExletResults(View, frozen=True):
    """What came of an exlet over all groups: `recovered` of those whose result is known."""

    exlet: str
    count: int
    groups: int
    known: int
    recovered: int
    results: dict[str, int]


class TrialAgreement(View, frozen=True):
    """How often a rule on trial would have decided, and how that agrees with what was done: by the same exlet
    (`agreed`), by another (`otherwise`, the newest first), or not at all (`nothing`)."""

    type: ExceptionType
    task: str
    rule: int
    condition: str
    exlet: str
    fired: int
    agreed: int
    nothing: int
    otherwise: list[str] = []
    helped: int = 0  # of the agreed ones, those that recovered


LeftReason = Literal["no-rule", "next-try", "passed", "run-again", "stopped", "elsewhere"]
"""Why a failure is left as it is when rules are applied: no rule takes it up; it waits for its next try, which no rule
changes; it is not what its case failed by; its case was run again since this began; a person has stopped this before
its turn; another server has its case."""


class ApplyProgress(View, frozen=True):
    """How far the application of rules to a group has come. It is over when `running` is false; `stopped`: a person has
    stopped it. Where `started_at` is 0 nobody has applied any since the server started. All is told, and counted, in
    failures, by the ids of their decisions; only `cases` are cases, those that had failed and go on. `why_left` has the
    reason of each of `left`, those that stay as they are. Who sees some of the group's failures is told of these alone.
    Servers that do it together call it by the same `application`, and tell each other which they took part in
    `earlier`."""

    group: str
    by: str
    started_at: Instant
    running: bool
    total: int
    done: int
    application: str = ""
    earlier: list[str] = []
    taken_up: list[str] = []
    left: list[str] = []
    why_left: dict[str, LeftReason] = {}
    cases: list[str] = []
    refused: dict[str, str] = {}
    stopped: bool = False
    ended_at: Instant = 0


class UnknownTaskView(View, frozen=True):
    """A task that rules are for and that the newest version of the flow does not have; `meant` is the one that it was
    probably renamed to."""

    task: str
    types: list[ExceptionType]
    meant: str = ""


class RuleTasksView(View, frozen=True):
    """How a rule set fits its flow: tasks that the flow does not have, those that were renamed, and whether the rules
    hold for the newest version. `deployed` is false if there is no such flow here, and then nothing can be said of
    that. `unknown_sources` are those that its rules read and nobody has registered."""

    rules: str
    version: int
    deployed: bool
    flow_version: str = ""
    holds: bool = True
    flow_versions: list[str] = []
    renamed: dict[str, str] = {}
    unknown: list[UnknownTaskView] = []
    unknown_sources: list[str] = []


class TaskMapping(View, frozen=True, forbid_unknown_fields=True):
    """Names of tasks that have changed, new by old; an empty new name ends a mapping. `flow_versions` are all versions
    that the rules hold for from now on, where `newest` is the newest one; an empty list: all versions; null: as it
    was."""

    renamed: dict[str, str] = {}
    flow_versions: list[str] | None = None
