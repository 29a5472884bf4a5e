"""Jobs and calls follow the same rules: the own name means here, nothing goes to a domain that is being disconnected,
and nothing goes back to where it has been. FM-4, FM-8"""

import asyncio

import pytest

from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.contracts import SubmissionFailed
from mendflow.services.domains import router
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot
from tests.services.domains.conftest import Settle
from tests.services.domains.neighbours import LocalLines, Neighbour
from tests.services.domains.test_router import connect, job, router_of

GOOD = Outcome(outputs={"x": 1})


def calling(name: str, called: Flow, domain: str) -> Flow:
    return Flow(name=FlowName(name), body=Call(name="far", flow=called.name, domain=domain), calls=(called,))


def leaf(domain: str = "") -> Flow:
    return Flow(name=FlowName("leaf"), body=JobActivity(name="a", command="true", domain=domain))


async def start(one: Neighbour, flow: Flow) -> CaseId:
    await one.domain.deploy(flow)
    return (await one.domain.start(flow.name, {}, who="ann")).id


async def test_a_call_that_names_the_own_domain_runs_here(north: Neighbour) -> None:
    case = await start(north, calling("outer", leaf(), "north"))
    await HandPilot(north.domain).run_all(lambda _: GOOD)
    assert (await north.domain.case(case)).status == "completed"
    told = await north.domain.why(f"{case}:far")
    assert "it stayed here: it names north, which is this domain" in told.facts


@pytest.mark.parametrize("what", ["job", "call"])
async def test_nothing_goes_to_a_domain_that_is_being_disconnected(
    what: str, north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    await connect(north, south, lines)
    await router_of(north).submit([job("south", "c-9/1")])  # it is under way, so the connection is not removed yet
    await north.connections.drain("south")
    flow = leaf("south") if what == "job" else calling("outer", leaf(), "south")
    case = await start(north, flow)
    faults = await _faults(north, case, "is being disconnected, and gets no new work")
    assert faults
    assert north.server.runtime.domains.sent.works_at("south") == 1


async def _faults(one: Neighbour, case: CaseId, wanted: str) -> list[str]:
    """What went wrong in a case, once it says this."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            view = await one.domain.case(case)
            said = [view.fault.message] if view.fault is not None else []
            said += [each.fault.message for each in await one.domain.items(case) if each.fault is not None]
            if found := [each for each in said if wanted in each]:
                return found
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("what", ["job", "call"])
async def test_what_went_through_two_domains_does_not_come_back_to_the_first(
    what: str, settle: Settle, north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    east = await settle("east")
    for one, other in ((north, south), (south, east), (east, north)):
        await connect(one, other, lines)
    lines.idle = False
    back = leaf("north") if what == "job" else calling("last", leaf(), "north")
    await start(north, calling("outer", calling("middle", back, "east"), "south"))
    async with asyncio.timeout(PATIENCE_S):
        while not (there := await east.domain.cases()):
            await asyncio.sleep(0.01)
    hosted = await east.server.runtime.manager.document(there[0].id)
    assert hosted is not None and hosted.way == ("north", "south")
    await _faults(east, there[0].id, "it came from north, and does not go back (its way: north, south, east)")
    assert not north.server.runtime.domains.hosted.held("east")


async def test_a_way_has_a_bound_whatever_its_domains_are_called(
    north: Neighbour, south: Neighbour, lines: LocalLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connect(north, south, lines)
    way = tuple(f"d{number}" for number in range(router.WAY_MAX))
    monkeypatch.setattr(router_of(north), "_way_of", lambda _: way)
    with pytest.raises(SubmissionFailed, match="has come through 8 domains, and goes no further"):
        await router_of(north).submit([job("south")])
