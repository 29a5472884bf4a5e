"""Failures grouped by cause, the decisions about them, rejections by people, patterns, and retry levels."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.parameters import NUMBER_MAX, Limit
from mendflow.core.model.repair_views import (
    ApplyResult,
    CompensationView,
    DecisionQuery,
    DecisionView,
    DrainResult,
    FailureGroup,
    FailureView,
    LevelView,
    RejectRequest,
    RepairRequest,
)
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import Patterns
from mendflow.operations.arguments import Body, Spread
from mendflow.operations.names import CaseName, GroupName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import READERS, USERS

Since = Annotated[Instant, Meta(ge=0, le=NUMBER_MAX, description="Milliseconds since 1970; 0: all.")]


class RepairCalls(Calls, tag="repairs"):
    @operation("GET", "/failures", READERS)
    async def failures(self, *, since: Since = 0, flow: str = "", limit: Limit = 100) -> list[FailureGroup]:
        """Failures, grouped by their cause."""

    @operation("GET", "/failures/{group}", READERS)
    async def failure(self, group: GroupName) -> FailureView:
        """One group, looked at closely."""

    @operation("POST", "/failures/{group}/apply", USERS)
    async def apply_rules(self, group: GroupName, *, retry: bool = False, skip: list[str] = []) -> ApplyResult:
        """Ask the rules again for those of a group that wait, or that their cases failed by. Cases that failed go on
        from where they stood, but for those in `skip`. With `retry`, what no rule takes up is tried again as it is."""

    @operation("GET", "/decisions", READERS)
    async def decisions(self, query: Annotated[DecisionQuery, Spread()] = DecisionQuery()) -> list[DecisionView]:
        """Decisions, the newest first."""

    @operation("GET", "/decisions/{decision:path}", READERS)
    async def decision(self, decision: str) -> DecisionView:
        """One decision with its context. A decision's id may have slashes, brackets and the like; percent-encode
        them."""

    @operation("POST", "/decisions/reject", USERS)
    async def reject_choice(self, wish: Body[RejectRequest]) -> DecisionView:
        """Say that a choice was wrong, and what is right instead. Suspends the case, corrects the rule if a condition
        is given, and starts the right exlet or worklet instead."""

    @operation("POST", "/cases/{case}/raise", USERS)
    async def raise_trigger(self, case: CaseName, trigger: str, item: str = "", *, data: Value = None) -> DecisionView:
        """Say that something has happened to a case or an item. A trigger that no rule knows suspends the case."""

    @operation("POST", "/cases/{case}/mend", USERS)
    async def mend(self, case: CaseName, wish: Body[RepairRequest]) -> DecisionView:
        """Run an exlet on a case now, and make a rule of it if wanted."""

    @operation("GET", "/patterns", READERS)
    async def patterns(self) -> Patterns:
        """The patterns. Those of conversations with the meta-scheduler, and those of repairs by name."""

    @operation("POST", "/patterns", USERS, status=201, repeatable=True)
    async def add_patterns(self, patterns: Body[Patterns]) -> Patterns:
        """Add patterns. A pattern with an existing name is replaced. Patterns are in force at once; rules conclude
        repairs by their names."""

    @operation("GET", "/compensations", READERS)
    async def compensations(self) -> list[CompensationView]:
        """The flows that undo tasks."""

    @operation("POST", "/compensations", USERS, repeatable=True)
    async def register_compensation(self, task: str, flow: str = "") -> list[CompensationView]:
        """Let a flow undo a task; without a flow, none does. It applies to cases that start from now on."""

    @operation("GET", "/levels", READERS)
    async def levels(self) -> list[LevelView]:
        """Levels of retries, and how many wait in each."""

    @operation("POST", "/levels/{level}/drain", USERS)
    async def drain(self, level: str) -> DrainResult:
        """Let all that waits in a level go on now."""
