"""One exception service for several engines at once, none of which knows anything of exceptions (EX-10)."""

import asyncio
from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.views import JobQuery
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set
from tests.services.recovery.small_engine import SmallEngine

HELP = JobActivity(name="help", command="true")


async def engines(world: World) -> tuple[SmallEngine, SmallEngine]:
    for name in ("north", "south"):
        await world.runtime.engines.register(name)
    service = world.runtime.engines
    return SmallEngine("north", service, flow="ship"), SmallEngine("south", service, flow="bake", fails=("oven",))


async def obey_until(world: World, engine: SmallEngine, check: Any) -> None:
    async def done() -> bool:
        await engine.obey()
        return bool(check())

    await world.until(done, f"engine {engine.name}")


async def test_two_engines_are_served_at_once_by_one_service(world: World) -> None:
    # EX-10
    north, south = await engines(world)
    more = exlet(
        "more",
        mend(Primitive.SUSPEND, "case"),
        HELP,
        mend(Primitive.WRITE, "case", values={"crew": "${{ jobs.help.outputs }}"}),
        mend(Primitive.CONTINUE, "case"),
    )
    again = exlet("again", mend(Primitive.RESTART))
    pre = rule_set("ship", ExceptionType.ITEM_PRE, ("case.data.crew < 5", "more"), exlets=[more], task="sail")
    await world.put(pre)
    await world.put(rule_set("bake", ExceptionType.ABORT, ("true", "again"), exlets=[again], task="oven"))
    ship, loaf = await asyncio.gather(
        north.start("s-1", ["load", "sail"], crew=3), south.start("s-1", ["dough", "oven", "cool"])
    )
    assert (ship.did, bool(ship.held)) == (["load"], True)
    await obey_until(world, north, lambda: ship.suspended)
    await obey_until(world, south, lambda: loaf.status == "completed")
    assert loaf.did == ["dough", "oven", "cool"]
    await world.take()
    await world.report(help=Outcome(outputs=7))
    await obey_until(world, north, lambda: ship.status == "completed")
    assert (ship.did, ship.data) == (["load", "sail"], {"crew": 7})
    found = await world.runtime.exceptions.decisions.search([])
    assert {(each.engine, each.case, each.exlet, each.state) for each in found} == {
        ("north", "s-1", "more", "done"),
        ("south", "s-1", "again", "done"),
    }
    exlets = await world.exlets("s-1")
    assert sorted(view.id for view in exlets) == ["north.s-1.x1", "south.s-1.x1"]


async def test_a_flow_without_rules_costs_a_foreign_engine_no_order(world: World) -> None:
    # EX-10
    north, _ = await engines(world)
    case = await north.start("s-1", ["load", "sail"])
    assert (case.status, case.did, await north.obey()) == ("completed", ["load", "sail"], 0)


async def test_a_failure_that_nothing_came_of_goes_on_in_the_foreign_engine(world: World) -> None:
    # EX-10
    _, south = await engines(world)
    look = exlet("look", mend(Primitive.NOTIFY, message="the oven"))
    await world.put(rule_set("bake", ExceptionType.ABORT, ("true", "look"), exlets=[look], task="oven"))
    case = await south.start("s-1", ["oven"])
    assert case.status == "running"
    await obey_until(world, south, lambda: case.status == "failed")
    assert south.done == ["release"]


async def test_orders_that_were_not_done_are_given_again_after_a_restart_of_the_service(world: World) -> None:
    # EX-10
    north, _ = await engines(world)
    stop = exlet("stop", mend(Primitive.SUSPEND, "case"), mend(Primitive.NOTIFY, message="stopped"))
    await world.put(rule_set("ship", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[stop], task="sail"))
    case = await north.start("s-1", ["sail"])

    async def ordered() -> Any:
        return await north.service.orders("north")

    [before] = await world.until(ordered)
    await world.restart()
    north.service = world.runtime.engines
    await world.quiet()
    [after] = await north.service.orders("north")
    assert (before.id, before.call, after) == ("1", "suspend", before)
    await obey_until(world, north, lambda: "release" in north.done)
    assert (case.suspended, north.done) == (True, ["suspend", "release"])


async def test_an_event_told_twice_is_decided_once(world: World) -> None:
    # EX-10
    north, _ = await engines(world)
    look = exlet("look", HELP)
    await world.put(rule_set("ship", ExceptionType.ABORT, ("true", "look"), exlets=[look], task="sail"))
    event = ExceptionEvent(id="e-1", type=ExceptionType.ABORT, case=CaseId("s-1"), flow="ship", task="sail")
    told = [await north.service.tell("north", event) for _ in range(3)]
    assert told == [True, True, True]
    await world.take()
    assert len(await world.exlets("s-1")) == 1
    await world.report(help=Outcome())
    await obey_until(world, north, lambda: north.done == ["release"])
    assert await north.service.tell("north", event) is False, "it was decided, and is over"


async def test_an_order_is_held_back_until_there_is_one(memory: World) -> None:
    # EX-10
    north, _ = await engines(memory)
    asking = asyncio.ensure_future(north.service.orders("north", wait_ms=5_000))
    await memory.quiet()
    assert not asking.done()
    await memory.runtime.exceptions.engines["north"].release("north:e-1")
    [order] = await asking
    assert (order.call, order.with_) == ("release", {"event": "e-1"})


async def test_what_an_engine_says_is_checked(memory: World) -> None:
    await engines(memory)
    service = memory.runtime.engines
    with pytest.raises(NotFound, match="no engine 'west'"):
        await service.orders("west")
    with pytest.raises(InvalidRequest, match="not a valid name for an engine"):
        await service.register("a b")
    with pytest.raises(NotFound, match="never given an order '7'"):
        service.done("north", "7", True)
    event = ExceptionEvent(
        id="e", type=ExceptionType.ABORT, case=CaseId("c"), flow="ship", facts={"case": {"items": 3}}
    )
    with pytest.raises(InvalidRequest, match="what its case is"):
        await service.tell("north", event)
    await service.register("west", who="ann")
    with pytest.raises(Forbidden, match="belongs to ann"):
        await service.orders("west", who="bob")
    assert [view.name for view in service.all()] == ["north", "south", "west"]


async def test_our_own_cases_and_foreign_ones_of_the_same_name_do_not_meet(memory: World) -> None:
    # EX-10
    north, _ = await engines(memory)
    stop = exlet("stop", mend(Primitive.SUSPEND, "all-cases"))
    await memory.put(rule_set("ship", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[stop], task="sail"))
    ours = await memory.start(flow(HELP, "ship"))
    theirs = await north.start("s-1", ["sail"])
    await obey_until(memory, north, lambda: theirs.suspended)
    assert await memory.status(ours) == "running"


async def test_what_a_foreign_engine_calls_a_job_is_none_of_ours(world: World) -> None:
    # EX-10
    case = await world.start(flow(JobActivity(name="a", command="sleep 100")))
    assert await world.take() == ["a"]
    await world.runtime.engines.register("evil")
    again = exlet("again", mend(Primitive.RESUBMIT, resources={"wall_ms": 1}))
    await world.put(rule_set("x", ExceptionType.ABORT, ("true", "again"), exlets=[again], task="i"))
    [ours] = await world.domain.jobs(JobQuery())
    told = ExceptionEvent(
        id="g1", type=ExceptionType.ABORT, case=CaseId("c"), flow="x", item=ItemId("i"), task="i", job=ours.id
    )
    await world.runtime.engines.tell("evil", told)

    async def over() -> bool:
        for order in await world.runtime.engines.orders("evil"):
            world.runtime.engines.done("evil", order.id, False)
        found = await world.runtime.exceptions.decisions.search([])
        return bool(found) and all(each.state != "running" for each in found)

    await world.until(over, "the repair")
    [job] = await world.domain.jobs(JobQuery())
    assert (job.id, job.state, job.spec.resources.wall_ms) == (ours.id, "running", 0)
    assert (await world.domain.case(case)).status == "running"


async def test_an_acknowledgement_of_no_order_is_refused(world: World) -> None:
    await world.runtime.engines.register("north")
    for order in ("", "x", "9" * 5_000, "7"):
        with pytest.raises(NotFound, match="never given"):
            world.runtime.engines.done("north", order)


async def test_what_a_foreign_engine_says_of_a_case_of_the_same_id_is_no_part_of_ours(world: World) -> None:
    # EX-10: cases are known by their engine
    _, south = await engines(world)
    look = exlet("look", mend(Primitive.NOTIFY, message="the oven"))
    await world.put(rule_set("f", ExceptionType.ABORT, ("history.case.exceptions > 0", "look"), exlets=[look]))
    case = await world.start(flow(JobActivity(name="a", command="true", retries=1)))
    await world.take()
    south.flow, south.fails = "f", {"a"}
    loaf = await south.start(case, ["a"])
    assert loaf.status == "failed"
    await world.report(a=FAILED)
    [ours] = await world.decisions(case)
    assert (ours.engine, ours.exlet, ours.context["history"]["case"]["exceptions"]) == ("", "", 0)
    assert ours.context["history"]["task"]["failures"] == 0, "nor is it of our flow, whatever that is called"
    assert [each.id for each in await world.domain.decisions(DecisionQuery(case=case))] == [ours.id]
    told = {entry.decision for entry in await world.domain.history(case) if entry.decision}
    assert told == {ours.id}
    [theirs] = await world.runtime.exceptions.decisions.of_case(case, "south")
    assert theirs.engine == "south"


async def test_a_try_of_a_foreign_case_does_not_end_with_a_job_of_ours(world: World) -> None:
    # EX-10: `recovered` is said of the job that was given another try
    await world.runtime.engines.register("south")
    book = world.runtime.exceptions.decisions
    case = await world.start(flow(HELP))
    await world.take()
    event = ExceptionEvent(id="south:1", type=ExceptionType.ABORT, case=case, flow="f", item=ItemId("help"), serial=1)
    elsewhere = msgspec.structs.replace(event, engine="south")
    foreign = world.runtime.exceptions.new_decision(elsewhere, {}, None, project="default")
    book.begin(foreign)
    book.mark_retrying(foreign)
    await world.report(help=Outcome())
    await world.until_status(case, "completed")
    assert foreign.result == "tried-again"


async def test_an_event_with_too_much_in_it_is_refused_with_what_to_tell_instead(memory: World) -> None:  # EX-10
    await memory.domain.register_engine("north", who="ann")
    item = {"task": "sail", "kind": "step", "status": "running"}
    many = {"items": [{"item": f"i{number}", **item} for number in range(5_001)]}
    with pytest.raises(InvalidRequest, match=r"`facts\.case\.items` has 5,001 entries, and at most 5,000 are taken"):
        await memory.domain.engine_case("north", "s-1", "ship", many, who="ann")
    with pytest.raises(InvalidRequest, match=r"`facts\.case\.statuses` has 5,001 entries"):
        statuses = {f"i{number}": "running" for number in range(5_001)}
        await memory.domain.engine_case("north", "s-1", "ship", {"statuses": statuses}, who="ann")
    large = ExceptionEvent(
        id="e", type=ExceptionType.CASE_PRE, case=CaseId("s-1"), flow="ship", facts={"values": {"x": "y" * (1 << 20)}}
    )
    with pytest.raises(InvalidRequest, match=r"bytes, and at most 1,048,576 are taken"):
        await memory.domain.engine_event("north", large, who="ann")
    assert await memory.domain.engine_cases("north") == [], "a refused event leaves nothing behind"


@pytest.mark.parametrize("place", ["fault", "facts"])
async def test_no_engine_says_that_a_person_has_rejected_a_task(memory: World, place: str) -> None:
    await engines(memory)
    fault = Fault(name="rejected", category=Category.FLOW, message="no, said ann", rejected_by="ann")
    told = {"fault": fault} if place == "fault" else {"facts": {"fault": msgspec.to_builtins(fault)}}
    about = ExceptionEvent(
        id="e", type=ExceptionType.ABORT, case=CaseId("s-1"), flow="ship", item=ItemId("sail"), task="sail"
    )
    await memory.runtime.engines.tell("north", msgspec.structs.replace(about, **told))
    [decision] = await memory.runtime.exceptions.decisions.search([])
    assert decision.fault is not None
    assert (decision.fault.message, decision.fault.rejected_by) == ("no, said ann", "")
    assert not decision.signature.endswith("was rejected")
