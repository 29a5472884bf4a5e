"""Failures grouped by cause, the decisions about them, rejections by people, and retry levels."""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody, PathParameter, QueryParameter

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import DecisionState
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
    TriggerView,
)
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import Patterns
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import CaseName, Limit, Offset, Text, TheCaller, TheDomain

Since = Annotated[Instant, QueryParameter(ge=0, le=2**53, description="Milliseconds since 1970; 0: all.")]
GroupName = Annotated[str, PathParameter(description="A group's id, or its beginning.")]


class Raised(RequestBody, frozen=True):
    """What happened, to the case or to one item of it. A trigger that no rule knows suspends the case."""

    trigger: str
    item: str = ""
    data: Value = None


class GroupRepairRequest(RequestBody, frozen=True):
    """`retry`: what no rule takes up is tried again as it is."""

    retry: bool = False


@get("/failures", summary="Failures, grouped by their cause")
async def failures(domain: TheDomain, since: Since = 0, flow: Text = "", limit: Limit = 100) -> list[FailureGroup]:
    return await domain.failures(since=since, flow=flow, limit=limit)


@get("/failures/{group:str}", summary="One group, looked at closely")
async def failure(domain: TheDomain, group: GroupName) -> FailureView:
    return await domain.failure(group)


@post(
    "/failures/{group:str}/apply",
    status_code=200,
    summary="Ask the rules again for those of a group that wait, or that their cases failed by",
)
async def apply_rules(
    domain: TheDomain, caller: TheCaller, group: GroupName, data: JSONBody[GroupRepairRequest | None] = None
) -> ApplyResult:
    return await domain.apply_rules(group, who=caller.name, retry=(data or GroupRepairRequest()).retry)


@get("/decisions", summary="Decisions, the newest first")
async def decisions(
    domain: TheDomain,
    case: Text = "",
    item: Text = "",
    group: Text = "",
    decision_state: Annotated[DecisionState | None, QueryParameter(name="state")] = None,
    rules: Text = "",
    limit: Limit = 100,
    offset: Offset = 0,
) -> list[DecisionView]:
    wanted = DecisionQuery(
        case=case, item=item, group=group, state=decision_state or "", rules=rules, limit=limit, offset=offset
    )
    return await domain.decisions(wanted)


@get("/decisions/{decision:path}", summary="One decision with its context")
async def decision(domain: TheDomain, decision: FromPath[str]) -> DecisionView:
    """A decision's id may have slashes, brackets and the like; percent-encode them."""
    return await domain.decision(decision.removeprefix("/"))


@post("/decisions/reject", status_code=200, summary="Say that a choice was wrong, and what is right instead")
async def reject_choice(domain: TheDomain, caller: TheCaller, data: JSONBody[RejectRequest]) -> DecisionView:
    """Suspends the case, corrects the rule if a condition is given, and starts the right exlet or worklet instead."""
    return await domain.reject_choice(data, who=caller.name)


@get("/cases/{case:str}/triggers", summary="What can be said to have happened")
async def triggers(domain: TheDomain, case: CaseName, item: FromQuery[str] = "") -> list[TriggerView]:
    return await domain.triggers(case, item)


@post("/cases/{case:str}/raise", status_code=200, summary="Say that something has happened to a case or an item")
async def raise_trigger(domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[Raised]) -> DecisionView:
    return await domain.raise_trigger(case, data.trigger, data.item, who=caller.name, data=data.data)


@post("/cases/{case:str}/mend", status_code=200, summary="Run an exlet on a case now, and make a rule of it if wanted")
async def mend(domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[RepairRequest]) -> DecisionView:
    return await domain.mend(case, data, who=caller.name)


@get("/patterns", summary="How conversations run, and repairs by name")
async def patterns(domain: TheDomain) -> Patterns:
    return await domain.patterns()


@post("/patterns", status_code=201, summary="Add patterns")
async def add_patterns(domain: TheDomain, caller: TheCaller, data: JSONBody[Patterns]) -> Patterns:
    """A pattern with an existing name is replaced. Patterns are in force at once; rules conclude repairs by their
    names."""
    return await domain.add_patterns(data, who=caller.name)


@get("/compensations", summary="What undoes which task")
async def compensations(domain: TheDomain) -> list[CompensationView]:
    return await domain.compensations()


@post("/compensations", status_code=200, summary="Let a flow undo a task; without a flow, none does")
async def register_compensation(
    domain: TheDomain, caller: TheCaller, data: JSONBody[CompensationView]
) -> list[CompensationView]:
    """It applies to cases that start from now on."""
    return await domain.register_compensation(data, who=caller.name)


@get("/levels", summary="Levels of retries, and how many wait in each")
async def levels(domain: TheDomain) -> list[LevelView]:
    return await domain.levels()


@post("/levels/{level:str}/drain", status_code=200, summary="Let all that waits in a level go on now")
async def drain(domain: TheDomain, caller: TheCaller, level: FromPath[str]) -> DrainResult:
    return await domain.drain(level, who=caller.name)


ROUTES = Router(
    "/",
    route_handlers=[
        *(failures, failure, apply_rules, decisions, decision, reject_choice),
        *(triggers, raise_trigger, mend, patterns, add_patterns, levels, drain),
        *(compensations, register_compensation),
    ],
    tags=["repairs"],
)
