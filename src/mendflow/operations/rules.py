"""Rule sets: read, replace, extend, try out, restore. The name of a set is its flow's, or `*` for the default rules."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.parameters import NUMBER_MAX
from mendflow.core.model.repair_views import RuleAddition, RuleChange, RuleSelector, RuleSetView, RuleSpec, TrialView
from mendflow.core.model.rules import RuleSet
from mendflow.operations.arguments import Body
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, VIEWERS
from mendflow.operations.subjects import LISTED, NEW_RULES, RULE_DRAFT, RULES, TRIED_RULE

Version = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
AskedVersion = Annotated[Version | None, Meta(description="Not the newest, but this one.")]
TrialLimit = Annotated[int, Meta(ge=1, le=100_000, description="Look at so many of the newest.")]


class RuleCalls(Calls, tag="rules"):
    @operation("GET", "/rules", VIEWERS, LISTED)
    async def rule_sets(self) -> list[RuleSetView]:
        """All rule sets, each in its newest version."""

    @operation("GET", "/rules/{name}", VIEWERS, RULES)
    async def rule_set(self, name: str, version: AskedVersion = None) -> RuleSetView:
        """One rule set, whole."""

    @operation("PUT", "/rules/{rules.name}", AUTHORS, NEW_RULES)
    async def put_rules(
        self, rules: RuleSet, *, note: str = "", expected: int | None = None, project: ProjectName = ""
    ) -> RuleSetView:
        """Give a rule set its next version. The new version is in force at once, also for running cases. Earlier
        decisions do not change. Refused if the newest version is no longer `expected`."""

    @operation("GET", "/rules/{name}/versions", VIEWERS, RULES)
    async def rule_versions(self, name: str) -> list[RuleSetView]:
        """Its versions, the newest first."""

    @operation("POST", "/rules/{name}/restore", AUTHORS, RULES)
    async def restore_rules(self, name: str, version: int) -> RuleSetView:
        """Make an earlier version the next one."""

    @operation("POST", "/rules/{name}/promote", AUTHORS, RULES)
    async def promote_rule(self, name: str, meant: Body[RuleSelector]) -> RuleChange:
        """Put a rule that was on trial in force. Refused with the cornerstone's name if the rule would change what that
        cornerstone concludes."""

    @operation("POST", "/rules/{name}/retire", AUTHORS, RULES)
    async def retire_rule(self, name: str, meant: Body[RuleSelector]) -> RuleChange:
        """Take a rule out of use. A rule that has exceptions cannot be retired alone: retire these first, or all
        together with `exceptions`."""

    @operation("POST", "/rule-drafts", AUTHORS, RULE_DRAFT, status=201)
    async def add_rule(self, wish: Body[RuleSpec]) -> RuleAddition:
        """Add a rule for the case at hand. The server finds the rule's place in the tree. Refused with the
        cornerstone's name if the rule would change what that cornerstone concludes."""

    @operation("POST", "/rule-drafts/try", AUTHORS, TRIED_RULE, repeatable=True, audited=False)
    async def try_rule(self, wish: Body[RuleSpec], *, limit: TrialLimit = 10_000) -> TrialView:
        """Play a rule against past failures; nothing changes."""
