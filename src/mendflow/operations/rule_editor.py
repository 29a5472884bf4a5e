"""What an editor of rules asks: what rules would conclude and change, what is wrong with them, what can be written into
them, and how they have done. Only `change_rule` changes anything."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.parameters import NUMBER_MAX, OneOf
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import RuleChange
from mendflow.core.model.rule_views import (
    ApplyProgress,
    ContextPath,
    DifferencesView,
    EvaluationRequest,
    EvaluationView,
    ExletResults,
    FailureCounts,
    PrimitiveView,
    ReadRulesView,
    ReplayView,
    RuleCheckRequest,
    RuleCheckView,
    RuleFileView,
    RuleRevision,
    RuleTasksView,
    TaskMapping,
    TrialAgreement,
    ValueCount,
)
from mendflow.core.model.rules import RuleSet
from mendflow.operations.arguments import Body
from mendflow.operations.names import GroupName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED, REPLAYED_RULES, RULES

Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
AskedVersion = Annotated[Number | None, Meta(description="Not the newest, but this one.")]
AskedRule = Annotated[Number | None, Meta(description="The rule whose cornerstone it is compared with.")]
Since = Annotated[Instant, Meta(ge=0, le=NUMBER_MAX, description="Milliseconds since 1970; 0: all.")]
Period = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="Milliseconds; 0: at most sixty periods.")]
Most = Annotated[int, Meta(ge=1, le=1_000_000, description="Look at so many of the newest.")]
Samples = Annotated[int, Meta(ge=1, le=10_000, description="Look at so many of the newest, here and elsewhere.")]
AnyType = Annotated[str, OneOf(ExceptionType)]


class RuleEditorCalls(Calls, tag="rules"):
    @operation("POST", "/rule-previews/evaluate", AUTHORS, LISTED, repeatable=True, audited=False)
    async def evaluate_rules(self, wish: Body[EvaluationRequest]) -> EvaluationView:
        """What rules conclude from a context, and every rule that was asked. The rules are stored ones or given ones;
        nothing is done or recorded."""

    @operation("POST", "/rule-previews/replay", AUTHORS, REPLAYED_RULES, repeatable=True, audited=False)
    async def replay_rules(self, rules: Body[RuleSet], *, limit: Most = 100_000) -> ReplayView:
        """What a changed rule set would conclude about past decisions. Says which of them, and which cornerstones, get
        another conclusion than by the stored set; nothing is stored."""

    @operation("POST", "/rule-previews/check", AUTHORS, INSTALLATION, repeatable=True, audited=False)
    async def check_rules(self, wish: Body[RuleCheckRequest]) -> RuleCheckView:
        """Everything that is wrong with a rule set, or with an exlet. Nothing is stored."""

    @operation("POST", "/rule-previews/read-xrs", AUTHORS, LISTED, repeatable=True, audited=False)
    async def read_xrs(self, text: str, name: str = "") -> ReadRulesView:
        """The rules in the text of a .xrs file of YAWL's worklet service. Not stored; `name` is used instead of the one
        in the file."""

    @operation("GET", "/rules/{name}/xrs", AUTHORS, RULES)
    async def rules_as_xrs(self, name: str, version: AskedVersion = None) -> RuleFileView:
        """A rule set as the text of a .xrs file of YAWL's worklet service."""

    @operation("POST", "/rules/{name}/change", AUTHORS, RULES)
    async def change_rule(self, name: str, change: Body[RuleRevision]) -> RuleChange:
        """Change the condition, the exlet or the note of one rule. Refused with the cornerstone's name if another
        cornerstone would get another conclusion, or if the condition does not hold for the rule's own. With `try_only`
        nothing is stored."""

    @operation("GET", "/rules/{name}/paths", VIEWERS, RULES)
    async def context_paths(self, name: str, type: AnyType = "", task: str = "") -> list[ContextPath]:
        """The paths that conditions can read, with samples. Taken from the newest contexts of the flow, or of all flows
        for `*`."""

    @operation("GET", "/rules/{name}/agreement", VIEWERS, RULES)
    async def trial_agreement(self, name: str) -> list[TrialAgreement]:
        """How often each rule on trial agreed with what was done."""

    @operation("GET", "/rules/{name}/tasks", VIEWERS, RULES)
    async def rule_tasks(self, name: str) -> RuleTasksView:
        """How a rule set fits its flow. Names tasks that have rules and that the flow does not have any more, and the
        versions of the flow that the rules hold for."""

    @operation("POST", "/rules/{name}/tasks", AUTHORS, RULES, repeatable=True)
    async def map_tasks(self, name: str, mapping: Body[TaskMapping]) -> RuleTasksView:
        """Say under which names the flow has tasks now, and for which of its versions the rules hold. Makes the next
        version of the set."""

    @operation("GET", "/primitives", VIEWERS, INSTALLATION)
    async def primitives(self) -> list[PrimitiveView]:
        """The primitives of exlets, each with the JSON Schema of its step."""

    @operation("GET", "/differences", VIEWERS, LISTED)
    async def differences(
        self, decision: str = "", group: str = "", rules: str = "", rule: AskedRule = None, task: str = ""
    ) -> DifferencesView:
        """What distinguishes a decision, or the newest of a group, from a cornerstone. From that of the rule that
        decides about it now, or of the rule that is named; the most telling value first."""

    @operation("GET", "/exlets/results", VIEWERS, LISTED)
    async def exlet_results(self, *, since: Since = 0) -> list[ExletResults]:
        """What came of each exlet, over all groups of failures."""

    @operation("GET", "/failures/{group}/counts", VIEWERS, LISTED)
    async def failure_counts(self, group: GroupName, *, period_ms: Period = 0, since: Since = 0) -> FailureCounts:
        """The failures of a group over time."""

    @operation("GET", "/failures/{group}/values", VIEWERS, LISTED)
    async def failure_values(self, group: GroupName, *, path: str = "", samples: Samples = 1_000) -> list[ValueCount]:
        """How often each value occurs in a group, in other failures and in jobs that ended well. Those
        that tell the group apart best come first."""

    @operation("GET", "/failures/{group}/apply", VIEWERS, LISTED)
    async def apply_progress(self, group: GroupName) -> ApplyProgress:
        """How far the last application of rules to a group has come. Each server knows of those that it does itself,
        since it started, and all live servers are asked. Told is what the caller sees of the group."""

    @operation("POST", "/failures/{group}/apply/stop", OPERATORS, LISTED, repeatable=True)
    async def stop_apply(self, group: GroupName) -> ApplyProgress:
        """Stop the application of rules to a group. What was taken up goes on; the rest is left as it is, as far as
        the caller sees it."""
