"""What is counted by the name of a flow is counted for the project whose flow it is."""

import pytest

from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import AttemptReport
from mendflow.server.runner import HttpServer
from mendflow.services.observe.monitor_settings import MonitorSettings
from tests.patience import until
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import do_jobs, job_flow, sync_request
from tests.server.people import As, KnownPeople


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


async def runs(people: As, who: str, outer: str) -> None:
    """A case that brings along a flow which is called as one of red is."""
    sent = (Flow(name=FlowName("night"), body=JobActivity(name=f"of-{who}", command="x")),)
    flow = Flow(name=FlowName(outer), body=Call(name="inner", flow="night"), calls=sent)
    case = (await people(who).start_with_flow(flow)).id
    await do_jobs(people("root"), 1, measures=Measurements(peak_bytes=1_000_000, ran_ms=1_000))
    await people("root").wait(case)


async def test_se_1_cases_are_counted_for_the_project_of_their_flow(people: As) -> None:
    await people("ann").deploy(job_flow("night"))
    await runs(people, "ann", "reds")
    await runs(people, "boris", "blues")
    await runs(people, "clerk", "defaults")
    counted = {}
    for who in ("vera", "boris", "guest", "root"):
        [stats] = await people(who).stats()
        counted[who] = stats.cases_started
        assert {each.flow: each.cases for each in stats.cases_ended} == stats.cases_started, who
    assert counted == {
        "vera": {"reds": 1, "night": 1},
        "boris": {"blues": 1, "night@blue": 1},
        "guest": {"defaults": 1, "night@default": 1},
        "root": {"reds": 1, "night": 1, "blues": 1, "night@blue": 1, "defaults": 1, "night@default": 1},
    }


async def test_se_1_cases_are_counted_for_the_project_that_a_removed_flow_was_of(people: As) -> None:
    await people("ann").deploy(job_flow("night"))
    await people("root").remove_flow("night")
    await runs(people, "clerk", "defaults")
    [stats] = await people("root").stats()
    assert stats.cases_started == {"defaults": 1, "night@default": 1}
    [stats] = await people("vera").stats()
    assert (stats.cases_started, stats.cases_ended) == ({}, [])


async def test_se_1_a_case_is_counted_by_one_name_whoever_has_it_at_its_end(people: As) -> None:
    sent = (job_flow("night"),)
    flow = Flow(name=FlowName("defaults"), body=Call(name="inner", flow="night"), calls=sent)
    case = (await people("clerk").start_with_flow(flow)).id
    await until(lambda: _started(people, "night"))
    await people("ann").deploy(job_flow("night"))
    await do_jobs(people("root"), 1)
    await people("root").wait(case)
    [stats] = await people("root").stats()
    assert {each.flow: each.cases for each in stats.cases_ended} == stats.cases_started == {"defaults": 1, "night": 1}


async def _started(people: As, flow: str) -> bool:
    [stats] = await people("root").stats()
    return flow in stats.cases_started


async def test_se_1_work_is_learned_of_for_the_project_of_its_flow(people: As) -> None:
    await people("ann").deploy(job_flow("night"))
    for who in ("boris", "boris", "clerk"):
        await runs(people, who, f"of-{who}")
    for _ in range(2):
        told = {who: (await people(who).learning_report()).jobs for who in ("vera", "boris", "guest", "root")}
        assert told == {"vera": 0, "boris": 2, "guest": 1, "root": 3}
        assert (await people("vera").learning_report(flow="night")).jobs == 0
        await people("root").recount_learning()
    await runs(people, "ann", "of-ann")
    await people("root").recount_learning()
    assert {each.name for each in await people("vera").sizes()} == {"of-ann"}
    assert {each.name for each in await people("root").sizes()} == {"of-ann", "of-boris", "of-clerk"}


async def test_se_1_how_long_jobs_take_is_learned_in_the_project_of_their_flow(
    people: As, domain: DomainUnderTest
) -> None:
    await people("ann").deploy(job_flow("night"))
    ran = Outcome(measures=Measurements(ran_ms=1_000))
    serial = 0
    for _ in range(MonitorSettings().learn_min):
        flow = Flow(name=FlowName("blues"), body=Call(name="inner", flow="night"), calls=(job_flow("night"),))
        case = (await people("boris").start_with_flow(flow)).id
        [granted] = (await people("root").sync(sync_request(serial + 1, want=1, wait_ms=60_000))).jobs
        serial += 2
        await people("root").sync(sync_request(serial, reports=(AttemptReport(granted.job, granted.fence, ran),)))
        await people("root").wait(case)
    runtimes = domain._server.runtime.monitor.runtimes
    await runtimes.merge(1)
    assert await runtimes.expected_ms("night@blue", "work") > 0
    assert await runtimes.expected_ms("night", "work") == 0
