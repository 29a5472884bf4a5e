"""A case drawn as its flow, with how far each part is; another engine's as its items."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Call,
    Flow,
    ForEach,
    JobActivity,
    Parallel,
    Receive,
    Scope,
    Sequence,
    UserTask,
    While,
)
from mendflow.core.model.graphs import GraphNode, GraphView
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


def node(graph: GraphView, id: str) -> GraphNode:
    return next(each for each in graph.nodes if each.id == id)


def pairs(graph: GraphView) -> set[tuple[str, str, str]]:
    return {(each.source, each.target, each.kind) for each in graph.edges}


async def test_each_part_has_the_counts_of_its_items(world: World) -> None:
    loop = ForEach(name="each", first=1, last=3, body=A)
    case = await world.start(flow(Sequence(name="s", body=(loop, B))))
    await world.take(items=3)
    await world.pilot.exchange({"a[0]": Outcome()})
    await world.quiet()
    graph = await world.domain.case_graph(case)
    assert node(graph, "each").counts == {"completed": 1, "running": 2} and node(graph, "each").state == "running"
    assert set(node(graph, "each").items_sample) == {"a[0]", "a[1]", "a[2]"}
    assert node(graph, "b").counts == {} and node(graph, "b").state == ""
    assert pairs(graph) == {("each", "b", "control")} and graph.is_whole


async def test_a_called_flow_is_counted_inside_its_call(world: World) -> None:
    inner = Flow(name=FlowName("inner"), body=Sequence(name="s", body=(A, B)))
    await world.domain.deploy(inner)
    case = await world.start(flow(ForEach(name="each", first=1, last=2, body=Call(name="sub", flow="inner"))))
    await world.take(items=2)
    await world.pilot.exchange({"a": Outcome()})
    await world.quiet()
    graph = await world.domain.case_graph(case)
    sub = node(graph, "each")
    assert (sub.name, sub.kind, sub.flow, sub.counts) == ("sub", "call", "inner", {"running": 2})
    assert len(sub.cases) == 2
    assert node(graph, "each/a").parent == "each" and node(graph, "each/a").counts == {"completed": 2}
    assert node(graph, "each/b").counts == {"waiting": 2}


async def test_an_exlet_stands_beside_what_it_mended_with_its_steps_inside(world: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.take(items=2)
    graph = await world.domain.case_graph(case)
    repair = node(graph, "exlet:a:again")
    assert (repair.kind, repair.exlet, repair.items_sample) == ("exlet", "again", ["a"])
    assert ("a", "exlet:a:again", "repair") in pairs(graph)
    assert [each.kind for each in graph.nodes if each.parent == repair.id] == ["restart"]
    assert repair.cases == [each.id for each in await world.exlets(case)]


async def test_what_waits_for_a_person_is_counted_as_that_alone(world: World) -> None:
    case = await world.start(flow(A, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    found = node(await world.domain.case_graph(case), "a")
    assert found.counts == {"held": 1} and found.state == "held" and found.items_sample == ["a"]


async def test_a_repair_whose_job_has_not_ended_is_under_way_and_not_done(world: World) -> None:  # UI-1
    again = exlet("again", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "done")
    graph = await world.domain.case_graph(case)
    repair = node(graph, "exlet:a:again")
    assert (repair.counts, repair.state, repair.note) == ({"repairing": 1}, "repairing", "1 under way")
    assert node(graph, "a").state == "repairing"
    told = [(each.what, each.message) for each in await world.domain.history(case) if each.exlet]
    assert "repaired" not in dict(told) and "has not ended" in dict(told)["repairing"]
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    told = [(each.what, each.message) for each in await world.domain.history(case) if each.exlet]
    assert dict(told)["repaired"] == "again: recovered" and "repairing" not in dict(told)
    assert node(await world.domain.case_graph(case), "exlet:a:again").counts == {"completed": 1}


async def test_an_exlet_that_never_helped_has_failed_and_the_case_says_what_was_in_vain(world: World) -> None:
    again = exlet("again", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation <= 2", "again"), exlets=[again]))
    case = await world.start(flow(A))
    for _ in range(3):
        await world.take()
        await world.report(a=FAILED)
    await world.until_status(case, "failed")
    repair = node(await world.domain.case_graph(case), "exlet:a:again")
    assert (repair.counts, repair.state, repair.note) == ({"failed": 2}, "failed", "2 failed")
    facts = " ".join((await world.domain.why(case)).facts)
    assert "tells what rules did in vain" in facts and "teach a rule" not in facts


async def test_an_open_user_task_waits_for_a_person_also_inside_a_call(world: World) -> None:  # UI-1
    ask = UserTask(name="ask", role="clerk", title="Sign it")
    await world.domain.deploy(Flow(name=FlowName("inner"), body=ask))
    case = await world.start(flow(Parallel(name="p", branches=(ask, Call(name="sub", flow="inner")))))
    await world.quiet()
    graph = await world.domain.case_graph(case)
    asked = node(graph, "ask")
    assert (asked.counts, asked.state, asked.items_sample) == ({"asked": 1}, "asked", ["ask"])
    assert node(graph, "sub/ask").counts == {"asked": 1}


async def test_scopes_and_messages_of_a_live_case_are_shown(world: World) -> None:
    hear = Receive(name="hear", channel="news")
    loop = While(name="turns", condition=Expr("true"), body=Scope(name="inside", body=hear))
    case = await world.start(flow(loop))
    await world.domain.send(case, "news", {"n": 1})
    await world.quiet()
    graph = await world.domain.case_graph(case)
    assert node(graph, "turns").counts == {"running": 1} and node(graph, "inside").parent == "turns"
    assert node(graph, "inside").counts == {"running": 1}
    assert node(graph, "hear").counts == {"completed": 1, "waiting": 1}
    [message] = graph.messages
    assert (message.direction, message.name) == ("in", "news") and message.at


async def test_a_case_that_is_over_is_drawn_as_it_was(world: World) -> None:
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    await world.domain.deploy(flow(B))
    graph = await world.domain.case_graph(case)
    assert [(each.id, each.state) for each in graph.nodes] == [("a", "completed")]


async def test_another_engine_s_case_is_drawn_as_its_items(world: World) -> None:
    await world.domain.register_engine("yawl", who="yawl")
    facts = {"case": {"data": {}}, "items": [{"item": "Show.1", "task": "Show", "kind": "task", "status": "running"}]}
    await world.domain.engine_case("yawl", "17", "concert", facts, who="yawl")
    graph = await world.domain.case_graph("yawl:17")
    assert not graph.is_whole and graph.edges == [] and graph.flow == "concert"
    timeline = await world.domain.case_timeline("yawl:17")
    assert timeline.total == len(timeline.rows) == sum(sum(each.counts.values()) for each in graph.nodes)


async def test_a_flow_is_drawn_without_counts(world: World) -> None:
    await world.domain.deploy(flow(Sequence(name="s", body=(A, B))))
    graph = await world.domain.flow_graph("f")
    assert [(each.id, each.counts, each.state) for each in graph.nodes] == [("a", {}, ""), ("b", {}, "")]
    with pytest.raises(NotFound, match="no flow"):
        await world.domain.flow_graph("g")
