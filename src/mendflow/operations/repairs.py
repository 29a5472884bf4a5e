"""Failures grouped by cause, the decisions about them, rejections by people, patterns, and retry levels."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.parameters import NUMBER_MAX, Limit
from mendflow.core.model.repair_views import (
    AdministrationQuery,
    AdministrationTaskView,
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
from mendflow.operations.roles import ADMINISTRATORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import ADMINISTRATION_TASK, CASE, DECISION, INSTALLATION, LISTED, REJECTED

Since = Annotated[Instant, Meta(ge=0, le=NUMBER_MAX, description="Milliseconds since 1970; 0: all.")]


class RepairCalls(Calls, tag="repairs"):
    @operation("GET", "/failures", VIEWERS, LISTED)
    async def failures(self, *, since: Since = 0, flow: str = "", limit: Limit = 100) -> list[FailureGroup]:
        """Failures, grouped by their cause."""

    @operation("GET", "/failures/{group}", VIEWERS, LISTED)
    async def failure(self, group: GroupName) -> FailureView:
        """One group, looked at closely."""

    @operation("POST", "/failures/{group}/apply", OPERATORS, LISTED)
    async def apply_rules(
        self,
        group: GroupName,
        *,
        retry: bool = False,
        skip: list[str] = [],
    ) -> ApplyResult:
        """Ask the rules again for those of a group that wait, or that their cases failed by. Cases that failed go on
        from where they stood, but for those in `skip`. With `retry`, what no rule takes up is tried again as it is."""

    @operation("GET", "/decisions", VIEWERS, LISTED)
    async def decisions(self, query: Annotated[DecisionQuery, Spread()] = DecisionQuery()) -> list[DecisionView]:
        """Decisions, the newest first."""

    @operation("GET", "/decisions/{decision:path}", VIEWERS, DECISION)
    async def decision(self, decision: str) -> DecisionView:
        """One decision with its context. A decision's id may have slashes, brackets and the like; percent-encode
        them."""

    @operation("POST", "/decisions/reject", OPERATORS, REJECTED)
    async def reject_choice(self, wish: Body[RejectRequest]) -> DecisionView:
        """Say that a choice was wrong, and what is right instead. Suspends the case and starts the right exlet or
        worklet instead. Only with a condition a rule is made of it, in the flow's own set; refused with the
        cornerstone's name if it would change what that cornerstone concludes. Without an exlet it is a request: what
        was wrong, by `note`, becomes an administration task, and nothing else changes. `withdraw` ends that."""

    @operation("POST", "/cases/{case}/raise", OPERATORS, CASE)
    async def raise_trigger(
        self,
        case: CaseName,
        trigger: str,
        item: str = "",
        *,
        data: Value = None,
        scenario: str = "",
        suggestion: str = "",
    ) -> DecisionView:
        """Say that something has happened to a case or an item. A trigger that no rule knows suspends the case, and is
        an administration task, for which `scenario` says in what situation, and `suggestion` what should be done."""

    @operation("GET", "/administration-tasks", VIEWERS, LISTED)
    async def administration_tasks(
        self, query: Annotated[AdministrationQuery, Spread()] = AdministrationQuery()
    ) -> list[AdministrationTaskView]:
        """What people were asked to handle, and what came of it. The newest first; all, or in one state."""

    @operation("GET", "/administration-tasks/{task:path}", VIEWERS, ADMINISTRATION_TASK)
    async def administration_task(self, task: str) -> AdministrationTaskView:
        """One administration task. Its id is that of a decision; percent-encode what is in it."""

    @operation("POST", "/cases/{case}/mend", OPERATORS, CASE)
    async def mend(self, case: CaseName, wish: Body[RepairRequest]) -> DecisionView:
        """Run an exlet on a case now, and make a rule of it if wanted."""

    @operation("GET", "/patterns", VIEWERS, INSTALLATION)
    async def patterns(self) -> Patterns:
        """The patterns. Those of conversations with the meta-scheduler, and those of repairs by name."""

    @operation("POST", "/patterns", ADMINISTRATORS, INSTALLATION, status=201, repeatable=True)
    async def add_patterns(self, patterns: Body[Patterns]) -> Patterns:
        """Add patterns. A pattern with an existing name is replaced. Patterns are in force at once; rules conclude
        repairs by their names."""

    @operation("GET", "/compensations", VIEWERS, INSTALLATION)
    async def compensations(self) -> list[CompensationView]:
        """The flows that undo tasks."""

    @operation("POST", "/compensations", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def register_compensation(self, task: str, flow: str = "") -> list[CompensationView]:
        """Let a flow undo a task; without a flow, none does. It applies to cases that start from now on."""

    @operation("GET", "/levels", VIEWERS, LISTED)
    async def levels(self) -> list[LevelView]:
        """Levels of retries, and how many wait in each."""

    @operation("POST", "/levels/{level}/drain", OPERATORS, LISTED)
    async def drain(self, level: str) -> DrainResult:
        """Let all that waits in a level go on now."""
