"""A flow that is sent along is called as its author likes, also as a flow of another project: the two never meet."""

import asyncio
import gzip
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, Flow, JobActivity, Parallel, PrimitiveStep
from mendflow.core.model.forecasts import ResultForecast, WantedResult
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionView, RepairRequest, RuleSpec
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.server.runner import HttpServer
from tests.patience import until
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs
from tests.server.people import As, KnownPeople
from tests.services.recovery.kit import exlet

REDS_OWN = "make-reds-secret"
BLUES_OWN = "make-blue"
FAULT = Fault(name="exit", category=Category.JOB, message="the disk is full", exit_code=3)


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


def night(command: str) -> Flow:
    return Flow(name=FlowName("night"), body=JobActivity(name="work", command=command))


def outer(command: str) -> Flow:
    """It brings a flow along that is called as a flow of red is."""
    return Flow(name=FlowName("outer"), body=Call(name="inner", flow="night"), calls=(night(command),))


async def reds_case(people: As) -> str:
    """Red has the flow, and a rule for it."""
    await people("ann").deploy(night(REDS_OWN))
    tree = RuleTree({1: Rule(id=1, condition=f"'{REDS_OWN}' != ''", exlet="look")}, 1)
    rules = RuleSet(name="night", trees={ExceptionType.ABORT: {"*": tree}}, exlets={"look": exlet("look")})
    await people("ann").put_rules(rules)
    case = (await people("ann").start("night")).id
    await _fail(people, case)
    return case


async def blues_case(people: As) -> str:
    """A case of blue that calls a flow of the same name."""
    case = (await people("boris").start_with_flow(outer(BLUES_OWN))).id
    await _fail(people, case)
    return case


async def _fail(people: As, case: str) -> None:
    await do_jobs(people("root"), 1, fail=True, fault=FAULT)
    await people("root").wait(case)


async def _archive(client: Client, path: Path, cases: list[str]) -> bytes:
    await client.export(path, cases)
    return gzip.decompress(await asyncio.to_thread(path.read_bytes))


async def test_se_1_an_archive_has_the_flows_and_rules_of_its_own_project(people: As, tmp_path: Path) -> None:
    red, blue = await reds_case(people), await blues_case(people)
    for who in ("boris", "root"):
        content = await _archive(people(who), tmp_path / f"{who}.archive", [blue])
        assert BLUES_OWN.encode() in content
        assert REDS_OWN.encode() not in content, who
    both = await _archive(people("root"), tmp_path / "both.archive", [blue, red])
    assert REDS_OWN.encode() in both
    assert b'"rules-version"' in await _archive(people("ann"), tmp_path / "red.archive", [red])


async def test_se_1_rules_are_tried_on_the_past_of_their_own_project(people: As) -> None:
    red, blue = await reds_case(people), await blues_case(people)
    catches = RuleSet(
        name="night",
        trees={ExceptionType.ABORT: {"*": RuleTree({1: Rule(id=1, condition="true", exlet="other")}, 1)}},
        exlets={"other": exlet("other")},
    )
    for who in ("ann", "root"):
        found = await people(who).replay_rules(catches)
        assert (found.looked_at, [each.case for each in found.changed]) == (1, [red]), who
        paths = {each.path: each for each in await people(who).context_paths("night")}
        assert (paths["case.id"].of, paths["case.id"].samples) == (1, [red]), who
        wish = RuleSpec(condition="true", exlet="other", rules="night", type=ExceptionType.ABORT)
        assert (await people(who).try_rule(wish)).looked_at == 1, who
    free = msgspec.structs.replace(catches, name="outer")
    assert (await people("ann").replay_rules(msgspec.structs.replace(catches, name="unknown"))).looked_at == 0
    with pytest.raises(NotFound):
        await people("ann").replay_rules(free)
    assert (await people("boris").replay_rules(free)).looked_at == 1
    assert blue not in msgspec.json.encode(await people("ann").replay_rules(catches)).decode()


async def test_se_1_the_past_of_a_name_that_nobody_has_is_told_to_those_who_see_it(people: As) -> None:
    body = Call(name="inner", flow="free")
    sent = (Flow(name=FlowName("free"), body=JobActivity(name="work", command=REDS_OWN)),)
    case = (await people("ann").start_with_flow(Flow(name=FlowName("outer"), body=body, calls=sent))).id
    await _fail(people, case)
    rules = RuleSet(
        name="free",
        trees={ExceptionType.ABORT: {"*": RuleTree({1: Rule(id=1, condition="true", exlet="other")}, 1)}},
        exlets={"other": exlet("other")},
    )
    assert (await people("ann").replay_rules(rules)).looked_at == 1
    assert (await people("boris").replay_rules(rules)).looked_at == 0


async def test_se_1_how_often_a_default_rule_decided_is_counted_in_ones_own_projects(people: As) -> None:
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="look")}, 1)
    rules = RuleSet(name=DEFAULT_RULES, trees={ExceptionType.ABORT: {"*": tree}}, exlets={"look": exlet("look")})
    await people("root").put_rules(rules)
    await people("ann").deploy(night(REDS_OWN))
    await people("ann").start("night")
    await do_jobs(people("root"), 1, fail=True, fault=FAULT)
    await until(lambda: _decided(people("ann")))
    counted = {who: (await people(who).rule_set(DEFAULT_RULES)).decided for who in ("ann", "root", "boris")}
    assert counted == {"ann": {"abort/*/1": 1}, "root": {"abort/*/1": 1}, "boris": {}}


async def _decided(client: Client) -> bool:
    return bool(await client.decisions())


async def test_se_1_a_rule_that_chooses_a_flow_of_another_project_is_refused(people: As) -> None:
    """In the words for what is not there: so it does not tell that there is one."""
    await people("ann").deploy(night(REDS_OWN))
    await people("boris").deploy(Flow(name=FlowName("own"), body=Call(name="c")))
    for chosen in ("night", "nothing"):
        wish = RuleSpec(condition="true", exlet=chosen, rules="own", type=ExceptionType.SELECTION, task="c")
        with pytest.raises(InvalidRequest, match=f"there is no flow '{chosen}' here"):
            await people("boris").add_rule(wish)


async def test_se_1_a_forecast_of_results_compares_with_jobs_of_its_own_project(people: As) -> None:
    body = Call(name="inner", flow="free")
    sent = (Flow(name=FlowName("free"), body=JobActivity(name="work", command=REDS_OWN)),)
    case = (await people("ann").start_with_flow(Flow(name=FlowName("outer"), body=body, calls=sent))).id
    await do_jobs(people("root"), 1)
    await people("root").wait(case)
    changed = WantedResult(JobSpec(item=ItemId("work"), command=f"{REDS_OWN} -v", project="red"))
    same = WantedResult(JobSpec(item=ItemId("work"), command=REDS_OWN, project="red"))

    async def forecast(who: str) -> list[ResultForecast]:
        return await people(who).forecast_results("free", [changed, same], cache="all")

    for each in await forecast("boris"):
        assert each.outcome is None
        assert "no earlier case had a job of its name" in each.reason
    told, found = await forecast("olga")
    assert "its command changed since case" in told.reason
    assert found.outcome is not None
    with pytest.raises(Forbidden):
        await people("vera").forecast_results("outer", [same], cache="all")


async def test_se_1_what_rules_read_of_the_past_is_of_their_own_project(people: As) -> None:
    await reds_case(people)
    await people("ann").start("night")
    await do_jobs(people("root"), 1, fail=True, fault=FAULT)
    await blues_case(people)
    [blue] = [each for each in await people("boris").decisions() if each.flow == "night"]
    newest, *_ = await people("ann").decisions()
    red, blue = await people("ann").decision(newest.id), await people("boris").decision(blue.id)
    assert (red.group, red.flow) == (blue.group, blue.flow)
    told = [_history(each) for each in (red, blue)]
    assert [each["cause"]["count"] for each in told] == [1, 0]
    assert [each["cause"]["lately"] for each in told] == [1, 0]
    assert [each["task"]["failures"] for each in told] == [1, 0]
    assert [each["flow"]["cases"] for each in told] == [1, 0]


def _history(decision: DecisionView) -> Any:
    assert decision.context is not None
    return decision.context["history"]


async def test_se_1_whoever_says_a_project_is_not_told_what_another_has(people: As) -> None:
    await people("ann").deploy(night(REDS_OWN))
    wanted = WantedResult(JobSpec(item=ItemId("work"), command="x"))
    with pytest.raises(NotFound, match="there is no flow 'night' in your projects"):
        await people("boris").forecast_results("night", [wanted], project="blue")
    with pytest.raises(Conflict, match="belongs to another project"):
        await people("root").forecast_results("night", [wanted], project="blue")


async def free_case(people: As, who: str) -> DecisionView:
    """What was decided about a case of a flow that is deployed nowhere."""
    sent = (Flow(name=FlowName("free"), body=JobActivity(name="work", command="x")),)
    outer = Flow(name=FlowName(f"outer-of-{who}"), body=Call(name="inner", flow="free"), calls=sent)
    case = (await people(who).start_with_flow(outer)).id
    await _fail(people, case)
    [found] = [each for each in await people(who).decisions() if each.flow == "free"]
    return found


async def test_se_1_rules_for_a_name_that_is_free_are_made_in_the_project_of_the_case(people: As) -> None:
    decision = await free_case(people, "boris")
    wish = RuleSpec(condition="true", exlet="other", decision=decision.id, flow=exlet("other"))
    added = await people("boris").add_rule(wish)
    assert (await people("boris").rule_set(added.rules)).project == "blue"
    assert added.rules not in {each.name for each in await people("guest").rule_sets()}
    other = await free_case(people, "ann")
    with pytest.raises(Forbidden, match="belongs to another project"):
        await people("ann").add_rule(msgspec.structs.replace(wish, decision=other.id))
    made = RuleSpec(condition="true", exlet="other", rules="new", type=ExceptionType.ABORT, flow=exlet("other"))
    await people("boris").add_rule(made)
    assert (await people("boris").rule_set("new")).project == "blue"


async def test_se_1_a_flow_of_another_project_is_no_exlet(people: As) -> None:
    """Not even where the name of the flow that is mended is nobody's, or of that project."""
    steps = Flow(name=FlowName("of-default"), body=JobActivity(name="secret", command=REDS_OWN))
    await people("clerk").deploy(steps)
    await people("clerk").deploy(night(REDS_OWN))
    outer = Flow(name=FlowName("outer"), body=Call(name="inner", flow="free"), calls=(_waits("free"), _waits("night")))
    both = Parallel(name="both", branches=(Call(name="a", flow="free"), Call(name="b", flow="night")))
    await people("boris").start_with_flow(msgspec.structs.replace(outer, body=both))
    for flow in ("free", "night"):
        case = await until(partial(_case_of, people("boris"), flow))
        with pytest.raises(NotFound, match="there is no exlet 'of-default'"):
            await people("boris").mend(case, RepairRequest(exlet="of-default"))


async def _case_of(client: Client, flow: str) -> str:
    return next((each.id for each in await client.cases() if each.flow == flow), "")


def _waits(name: str) -> Flow:
    return Flow(name=FlowName(name), body=JobActivity(name="work", command="x"))


async def test_se_1_a_repair_of_all_cases_of_a_flow_leaves_those_of_others_alone(people: As) -> None:
    await people("ann").deploy(night(REDS_OWN))
    red = (await people("ann").start("night")).id
    stops = PrimitiveStep(name="stop", do=Primitive.SUSPEND, target="all-cases")
    for who in ("ann", "boris"):
        outer = Flow(name=FlowName(f"outer-{who}"), body=Call(name="inner", flow="night"), calls=(_waits("night"),))
        started = (await people(who).start_with_flow(outer)).id
        inner = await until(partial(_called_by, people(who), started))
        if who == "boris":
            wish = RepairRequest(flow=exlet("stop-all", stops), rules="outer-boris")
            repair = await people("boris").mend(inner, wish)
            await people("root").wait(repair.exlet_case or "")
            assert (await people("boris").case(inner)).status == "suspended"
    assert (await people("ann").case(red)).status == "running"


async def _called_by(client: Client, case: str) -> str:
    return next((each.id for each in await client.cases() if each.id.startswith(f"{case}.")), "")


async def test_se_1_the_histories_of_a_flow_are_those_of_its_project(
    people: As, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    red, blue = await reds_case(people), await blues_case(people)
    for who in ("vera", "root"):
        headers = {"Authorization": f"Bearer {who}"}
        async with http.get(f"{served.url}/api/v1/flows/night/history", headers=headers) as response:
            told = await response.text()
        assert red in told and blue not in told, who
