"""One exception service serves several engines at once, remotely, and neither knows of the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, Input, PrimitiveStep, Sequence
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.server.access import AccessControl, read_tokens, token_hash
from mendflow.server.runner import HttpServer
from mendflow.services.api.domain import Domain
from tests.patience import PATIENCE_S
from tests.server.conftest import Serving
from tests.server.foreign_engine import ForeignCase, ForeignEngine

TOKENS = read_tokens(
    "\n".join(
        f"{name} {role} {token_hash('t-' + name)}"
        for name, role in (("yawl", "engine"), ("petri", "engine"), ("ann", "user"), ("rita", "reader"))
    )
)


def exlet(name: str, *steps: PrimitiveStep) -> Flow:
    body = Sequence(name=f"{name}.steps", body=steps)
    return Flow(name=FlowName(name), exlet=True, inputs={"context": Input(type="map", required=True)}, body=body)


def concert() -> RuleSet:
    """Too few tickets: the show is moved to a smaller place; none at all: the case is ended."""
    move = exlet(
        "move",
        PrimitiveStep(name="halt", do=Primitive.SUSPEND, target="case"),
        PrimitiveStep(name="book", do=Primitive.WRITE, target="case", settings={"values": {"venue": "club"}}),
        PrimitiveStep(name="go", do=Primitive.CONTINUE, target="case"),
    )
    end = exlet("end", PrimitiveStep(name="end", do=Primitive.REMOVE, target="case"))
    few = Rule(id=1, condition="case.data.tickets < 100", exlet="move", on_true=2)
    none = Rule(id=2, condition="case.data.tickets == 0", exlet="end")
    trees = {ExceptionType.ITEM_PRE: {"show": RuleTree({1: few, 2: none}, 1)}}
    return RuleSet(name="concert", trees=trees, exlets={"move": move, "end": end})


@pytest.fixture
async def guarded(serving: Serving) -> HttpServer:
    return await serving(AccessControl(TOKENS))


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


async def an_engine(stack: AsyncExitStack, served: HttpServer, name: str) -> ForeignEngine:
    client = await stack.enter_async_context(Client(served.url, f"t-{name}"))
    await client.register_engine(name)
    engine = ForeignEngine(name, client)
    serving = asyncio.create_task(engine.serve())
    stack.callback(serving.cancel)
    return engine


async def held_to_the_end(*engines: ForeignEngine) -> None:
    """Until every engine has done what it was ordered."""
    async with asyncio.timeout(PATIENCE_S):
        for engine in engines:
            while await engine.client.engine_orders(engine.name):
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_two_engines_are_served_at_once_and_never_meet(
    domain: Domain, guarded: HttpServer, stack: AsyncExitStack
) -> None:
    # EX-10
    ann = await stack.enter_async_context(Client(guarded.url, "t-ann"))
    await ann.put_rules(concert())
    yawl, petri = [await an_engine(stack, guarded, name) for name in ("yawl", "petri")]
    sold = ForeignCase("17", "concert", ["plan", "show", "pay"], {"tickets": 500})
    few = ForeignCase("17", "concert", ["plan", "show", "pay"], {"tickets": 40})
    none = ForeignCase("18", "concert", ["show", "pay"], {"tickets": 0})
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(yawl.run(sold), petri.run(few), petri.run(none))
    assert sold.story == [f"{point} {item}" for item in sold.items for point in ("item-pre", "item-post")] + [
        "completed"
    ]
    assert few.data["venue"] == "club"
    assert [word for word in few.story if " " not in word] == ["suspend", "write", "continue", "completed"]
    assert few.story.index("write") < few.story.index("item-pre show")
    assert none.story == ["cancel", "cancelled"]
    await held_to_the_end(yawl, petri)
    assert yawl.done == []
    assert {order.call for order in petri.done} == {"suspend", "write", "continue", "cancel", "release"}
    decisions = await ann.decisions(DecisionQuery(rules="concert"))
    assert {(each.engine, each.case, each.exlet, each.state) for each in decisions} == {
        ("petri", "17", "move", "done"),
        ("petri", "18", "end", "done"),
    }
    assert [engine.name for engine in await ann.engines()] == ["petri", "yawl"]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_an_event_told_again_is_decided_once(domain: Domain, guarded: HttpServer, stack: AsyncExitStack) -> None:
    # EX-10
    ann = await stack.enter_async_context(Client(guarded.url, "t-ann"))
    await ann.put_rules(concert())
    petri = await an_engine(stack, guarded, "petri")
    few = ForeignCase("17", "concert", ["show"], {"tickets": 40})
    async with asyncio.timeout(PATIENCE_S):
        await petri.run(few)
    await held_to_the_end(petri)
    assert len(await ann.decisions()) == 1
    assert len([case for case in await ann.cases() if case.mends]) == 1


async def test_an_engine_belongs_to_whoever_registered_it(guarded: HttpServer, stack: AsyncExitStack) -> None:
    # EX-10
    yawl, petri = [await stack.enter_async_context(Client(guarded.url, f"t-{name}")) for name in ("yawl", "petri")]
    view = await yawl.register_engine("one")
    assert (view.name, view.owner) == ("one", "yawl")
    assert (await yawl.register_engine("one")).registered_at == view.registered_at
    event = ExceptionEvent(id="1", type=ExceptionType.CASE_PRE, case=CaseId("17"), flow="concert")
    with pytest.raises(Forbidden):
        await petri.engine_event("one", event)
    with pytest.raises(Forbidden):
        await petri.engine_orders("one")
    with pytest.raises(NotFound):
        await petri.engine_event("two", event)
    assert (await yawl.engine_event("one", event)).held is False


async def test_only_engines_speak_as_engines_and_they_do_nothing_else(
    guarded: HttpServer, stack: AsyncExitStack
) -> None:
    ann, yawl, rita = [
        await stack.enter_async_context(Client(guarded.url, f"t-{name}")) for name in ("ann", "yawl", "rita")
    ]
    with pytest.raises(Forbidden):
        await ann.register_engine("mine")
    assert await rita.engines() == []
    for refused in (
        yawl.cases(),
        yawl.rule_sets(),
        yawl.put_rules(RuleSet(name="x")),
        rita.put_rules(RuleSet(name="x")),
    ):
        with pytest.raises(Forbidden):
            await refused
    assert [each.name for each in await rita.rule_sets()] == ["*"]


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_what_is_no_event_is_refused_with_the_reason(
    domain: Domain, guarded: HttpServer, stack: AsyncExitStack
) -> None:
    yawl = await stack.enter_async_context(Client(guarded.url, "t-yawl"))
    with pytest.raises(InvalidRequest, match="not a valid name for an engine"):
        await yawl.register_engine("../up")
    await yawl.register_engine("one")
    odd = ExceptionEvent(id="1", type=ExceptionType.CASE_PRE, case=CaseId("17"), flow="concert", facts={"case": "what"})
    with pytest.raises(InvalidRequest, match="is a map"):
        await yawl.engine_event("one", odd)
    with pytest.raises(NotFound, match="never given an order"):
        await yawl.engine_done("one", "77")


async def test_a_server_that_stops_lets_held_engines_go(serving: Serving) -> None:
    served = await serving()
    async with Client(served.url, user="yawl") as client:
        await client.register_engine("one")
        held = asyncio.create_task(client.engine_orders("one", wait_ms=60_000))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(PATIENCE_S):
            await served.stop()
            assert await held == []
