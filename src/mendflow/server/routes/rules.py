"""Rule sets: read, replace, extend, try out, restore. The name of a set is its flow's, or `*` for the default rules."""

from typing import Annotated

from litestar import Router, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.repair_views import RuleAddition, RuleChange, RuleSelector, RuleSetView, RuleSpec, TrialView
from mendflow.core.model.rules import RuleSet
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import TheCaller, TheDomain

TRIED_MAX = 100_000

Version = Annotated[int | None, QueryParameter(ge=0, le=2**53, description="Not the newest, but this one.")]
TrialLimit = Annotated[int, QueryParameter(ge=1, le=TRIED_MAX, description="Look at so many of the newest.")]


class PutRules(RequestBody, frozen=True):
    """The whole set, as its next version. Refused if the newest version is no longer `expected`."""

    rules: RuleSet
    note: str = ""
    expected: int | None = None


class Restore(RequestBody, frozen=True):
    version: int


@get("/rules", summary="All rule sets, each in its newest version")
async def rule_sets(domain: TheDomain) -> list[RuleSetView]:
    return await domain.rule_sets()


@get("/rules/{name:str}", summary="One rule set, whole")
async def rule_set(domain: TheDomain, name: FromPath[str], version: Version = None) -> RuleSetView:
    return await domain.rule_set(name, version)


@put("/rules/{name:str}", summary="Give a rule set its next version")
async def put_rules(domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[PutRules]) -> RuleSetView:
    """The new version is in force at once, also for running cases. Earlier decisions do not change."""
    if data.rules.name != name:
        raise InvalidRequest(
            f"the set says that it is {data.rules.name!r}; put it to /rules/{data.rules.name}", field="name"
        )
    return await domain.put_rules(data.rules, who=caller.name, note=data.note, expected=data.expected)


@get("/rules/{name:str}/versions", summary="Its versions, the newest first")
async def rule_versions(domain: TheDomain, name: FromPath[str]) -> list[RuleSetView]:
    return await domain.rule_versions(name)


@post("/rules/{name:str}/restore", status_code=200, summary="Make an earlier version the next one")
async def restore_rules(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[Restore]
) -> RuleSetView:
    return await domain.restore_rules(name, data.version, who=caller.name)


@post("/rules/{name:str}/promote", status_code=200, summary="Put a rule that was on trial in force")
async def promote_rule(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[RuleSelector]
) -> RuleChange:
    """Refused with the cornerstone's name if the rule would change what that cornerstone concludes."""
    return await domain.promote_rule(name, data, who=caller.name)


@post("/rules/{name:str}/retire", status_code=200, summary="Take a rule out of use")
async def retire_rule(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[RuleSelector]
) -> RuleChange:
    """A rule that has exceptions cannot be retired alone: retire these first, or all together with `exceptions`."""
    return await domain.retire_rule(name, data, who=caller.name)


@post("/rules/add", status_code=201, summary="Add a rule for the case at hand")
async def add_rule(domain: TheDomain, caller: TheCaller, data: JSONBody[RuleSpec]) -> RuleAddition:
    """The server finds the rule's place in the tree. Refused with the cornerstone's name if the rule would change what
    that cornerstone concludes."""
    return await domain.add_rule(data, who=caller.name)


@post("/rules/try", status_code=200, summary="Play a rule against past failures; nothing changes")
async def try_rule(domain: TheDomain, data: JSONBody[RuleSpec], limit: TrialLimit = 10_000) -> TrialView:
    return await domain.try_rule(data, limit=limit)


ROUTES = Router(
    "/",
    route_handlers=[
        rule_sets,
        rule_set,
        put_rules,
        rule_versions,
        restore_rules,
        promote_rule,
        retire_rule,
        add_rule,
        try_rule,
    ],
    tags=["rules"],
)
