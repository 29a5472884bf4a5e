"""A name stays in its project when what it names is removed: cases, rules and statistics are found by it."""

from collections.abc import Awaitable

import pytest

from mendflow.core.model.errors import Conflict, Forbidden, NotFound
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.server.runner import HttpServer
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs, job_flow, task_flow
from tests.server.people import As, KnownPeople


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


def nightly(flow: str, name: str = "nightly") -> ScheduleSpec:
    return ScheduleSpec(name=name, flow=flow, cron="0 3 * * *")


async def is_taken(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except Forbidden as error:
        return "belongs to another project" in error.message
    return False


async def test_the_name_of_a_removed_flow_stays_in_its_project(people: As) -> None:  # SE-1
    ann, boris, root = people("ann"), people("boris"), people("root")
    await ann.deploy(job_flow("night"))
    case = (await ann.start("night")).id
    await root.remove_flow("night")
    assert await is_taken(boris.deploy(task_flow("night")))
    assert await is_taken(boris.put_rules(RuleSet(name="night")))
    with pytest.raises(Conflict, match="another project"):
        await root.deploy(task_flow("night"), project="blue")
    with pytest.raises(NotFound, match="in your projects"):
        await boris.flow("night")
    assert (await root.put_rules(RuleSet(name="night"))).project == "red"
    assert ((await ann.deploy(task_flow("night"))).version, (await ann.case(case)).project) == (2, "red")


async def test_what_was_counted_for_a_removed_flow_stays_in_its_project(people: As) -> None:  # SE-1
    ann, clerk, root = people("ann"), people("clerk"), people("root")
    await ann.deploy(job_flow("night"))
    case = (await ann.start("night")).id
    await do_jobs(root, 1)
    await ann.wait(case)
    for is_removed in (False, True):
        if is_removed:
            await root.remove_flow("night")
        [seen], [hidden] = await ann.stats(), await clerk.stats()
        assert [each.flow for each in seen.cases_ended] == ["night"] and seen.cases_started == {"night": 1}
        assert (hidden.cases, hidden.cases_ended, hidden.cases_started) == ([], [], {}), is_removed
        assert ((await ann.learning_report()).jobs, (await clerk.learning_report()).jobs) == (1, 0), is_removed


async def test_whoever_asks_for_a_removed_flow_is_not_told_which_flows_others_have(people: As) -> None:  # SE-1
    await people("boris").deploy(job_flow("hidden"))
    await people("ann").deploy(job_flow("night"))
    await people("root").remove_flow("night")
    with pytest.raises(NotFound) as refused:
        await people("ann").start("night")
    assert "hidden" not in refused.value.message


async def test_the_name_of_a_removed_schedule_stays_in_its_project(people: As) -> None:  # SE-1
    ann, boris = people("ann"), people("boris")
    await ann.deploy(job_flow("of-ann"))
    await boris.deploy(job_flow("of-boris"))
    await ann.put_schedule(nightly("of-ann"))
    await ann.remove_schedule("nightly")
    assert await is_taken(boris.put_schedule(nightly("of-boris")))
    with pytest.raises(NotFound, match="in your projects"):
        await boris.backfill_schedule("nightly", "2020-01-01", "2020-01-02", dry_run=True)
    with pytest.raises(NotFound, match="there is no schedule"):
        await ann.schedule("nightly")
    assert (await ann.put_schedule(nightly("of-ann"))).owner == "ann"


async def test_a_schedule_goes_to_no_other_project_and_takes_no_name_of_anothers_flow(people: As) -> None:  # SE-1
    ann, boris, root = people("ann"), people("boris"), people("root")
    await ann.deploy(job_flow("of-ann"))
    await boris.deploy(job_flow("of-boris"))
    await ann.put_schedule(nightly("of-ann"))
    with pytest.raises(Conflict, match="another project"):
        await root.put_schedule(nightly("of-boris"))
    assert await is_taken(boris.put_schedule(nightly("of-boris", name="of-ann")))
