"""An engine is of one project. It chooses what its cases and flows are called, and those of other projects may be
called the same: they never meet."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import Flow, Input, JobActivity, PrimitiveStep
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.principals import Principal
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, RepairRequest
from mendflow.core.model.rule_views import EvaluationRequest
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.sources import SourceSpec
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import FAULT, do_jobs, job_flow
from tests.server.people import PEOPLE, As, KnownPeople

ENGINE = Principal("yawl", frozenset({"engine"}))
"""Its project is the default one, where clerk is an author, and guest looks on; ann is an author in red."""
SAID = "what the engine says"


@pytest.fixture
async def people(serving: Serving) -> AsyncIterator[As]:
    served = await serving(KnownPeople([*PEOPLE.values(), ENGINE]))
    async with AsyncExitStack() as stack:
        names = [*PEOPLE, ENGINE.name]
        clients = {name: await stack.enter_async_context(Client(served.url, token=name)) for name in names}
        await clients["yawl"].register_engine("yawl")
        yield clients.__getitem__


async def failed_case(people: As, flow: str = "night") -> str:
    """One of ann's, in red."""
    await people("ann").deploy(job_flow(flow))
    case = (await people("ann").start(flow)).id
    await do_jobs(people("root"), 1, fail=True)
    await people("ann").wait(case)
    return case


async def fails_there(
    people: As, case: str = "s-1", flow: str = "night", message: str = SAID, data: str = "{}"
) -> DecisionView:
    """A failure of a case of the engine, and what was decided about it."""
    event = ExceptionEvent(
        id=f"{case}/{flow}",
        type=ExceptionType.ABORT,
        case=CaseId(case),
        flow=flow,
        item=ItemId("work"),
        task="work",
        fault=msgspec.structs.replace(FAULT, message=message),
        facts={"case": {"data": msgspec.json.decode(data)}},
    )
    await people("yawl").engine_event("yawl", event)
    found = await people("root").decisions(DecisionQuery())
    return next(each for each in found if each.engine and each.case == case)


def taught(condition: str = "true", flow: str = "night") -> RuleSet:
    step = PrimitiveStep(name="note", do=Primitive.NOTIFY, settings={"message": "of red"})
    exlet = Flow(name=FlowName("of-red"), exlet=True, inputs={"context": Input(type="map", required=True)}, body=step)
    tree = RuleTree({1: Rule(id=1, condition=condition, exlet="of-red")}, 1)
    return RuleSet(name=flow, trees={ExceptionType.ABORT: {"work": tree}}, exlets={"of-red": exlet})


async def told(people: As, who: str) -> list[str]:
    """The alerts and messages, and what of them came in the feed."""
    seen = await people(who).alerts(severity="info", every=True)
    return [each.sentence for each in seen] + [each.message for each in await people(who).notifications()]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_what_an_engine_says_of_a_case_that_is_called_as_one_of_another_project_is_not_told_there(
    people: As,
) -> None:  # SE-1, EX-10
    case = await failed_case(people)
    await fails_there(people, case, message=SAID)
    assert not [each for each in await told(people, "vera") if SAID in each]
    [alert] = [each for each in await people("root").alerts() if SAID in each.sentence]
    assert alert.case == f"yawl:{case}"
    assert f"mendflow why yawl:{case}:work" in alert.sentence


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_the_members_of_its_project_hear_of_failures_of_an_engine(people: As) -> None:  # SE-1, EX-10
    await fails_there(people)
    assert [each for each in await told(people, "guest") if SAID in each]
    assert not [each for each in await told(people, "vera") if SAID in each]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_a_failure_that_an_engine_has_told_of_first_hides_none_of_another_project(
    people: As, domain: DomainUnderTest
) -> None:  # SE-1, EX-10
    await people("ann").deploy(job_flow("night"))
    await fails_there(people, message=FAULT.message)
    case = await failed_case(people)
    assert [each.case for each in await people("vera").alerts() if each.kind == "failure"] == [case]
    assert [each.case for each in await people("guest").alerts() if each.kind == "failure"] == ["yawl:s-1"]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_rules_of_another_project_are_not_asked_about_a_flow_of_the_same_name(people: As) -> None:  # SE-1
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_rules(taught("fault.exit_code == 3 && case.data.secret_of_red == 1"))
    found = await fails_there(people, data='{"secret_of_red": 1}')
    assert (found.state, found.exlet, found.rules, found.trail) == ("ignored", "", "", [])
    case = await failed_case(people)
    [own] = await people("vera").decisions(DecisionQuery(case=case))
    assert "secret_of_red" in str(own.trail or own.errors), "its own are asked"


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_rules_that_were_there_before_the_flow_are_those_of_their_project(people: As) -> None:  # SE-1
    await people("ann").put_rules(taught())
    assert (await fails_there(people)).exlet == ""
    await people("clerk").put_rules(taught(flow="day"))
    assert (await fails_there(people, "s-2", "day")).exlet == "of-red", "those of its own project are"


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_nor_are_they_shown_or_taught_by_what_an_engine_tells(people: As) -> None:  # SE-1
    await people("ann").deploy(job_flow("night"))
    await failed_case(people)
    [own] = await people("vera").decisions(DecisionQuery())
    await people("ann").put_rules(taught("fault.exit_code == 99"))
    found = await fails_there(people)
    clerk = people("clerk")
    assert "99" not in str(await clerk.evaluate_rules(EvaluationRequest(decision=found.id)))
    assert own.id not in str(await clerk.differences(found.id)), "nor is another failure there"
    with pytest.raises(NotFound):
        await clerk.mend("yawl:s-1", RepairRequest(exlet="of-red"))
    body = JobActivity(name="help", command="true")
    steps = Flow(name=FlowName("mine"), exlet=True, inputs={"context": Input(type="map", required=True)}, body=body)
    for wish in (RepairRequest(exlet="mine", flow=steps), RepairRequest(exlet="mine", flow=steps, condition="true")):
        with pytest.raises(Conflict, match="belongs to another project"):
            await clerk.mend("yawl:s-1", wish)
    assert [each.version for each in await people("ann").rule_sets() if each.name == "night"] == [1]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_what_those_rules_would_ask_elsewhere_is_not_asked(people: As) -> None:  # SE-1
    await people("root").put_rule_source(
        SourceSpec(name="weather", kind="file", address="/nowhere", away="value", value=7)
    )
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_rules(taught("sources.weather == 7"))
    found = await fails_there(people)
    assert "weather" not in str(await people("clerk").decision(found.id))
