"""A flow as a graph: what people know by name, and what leads from one to the next."""

from typing import Any

from mendflow.core.graphs.flow_graph import NODES_MAX, FlowGraph, draw_flow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Branch,
    Call,
    Catch,
    Choose,
    Copy,
    Flow,
    ForEach,
    JobActivity,
    LinkSource,
    Parallel,
    Receive,
    Scope,
    Sequence,
    While,
)
from mendflow.core.model.ids import FlowName


def job(name: str, *, command: str = "true", **more: Any) -> JobActivity:
    return JobActivity(name=name, command=command, **more)


def drawn(body: Activity, **more: Any) -> FlowGraph:
    return draw_flow(Flow(name=FlowName("f"), body=body, **more))


def edges(graph: FlowGraph) -> set[tuple[str, str, str]]:
    return {(each.source, each.target, each.kind) for each in graph.edges}


def test_steps_follow_each_other_and_what_only_holds_them_is_not_drawn() -> None:
    middle = Parallel(name="both", branches=(job("b"), job("c")))
    graph = drawn(Sequence(name="all", body=(job("a"), middle, job("d"))))
    assert [node.id for node in graph.nodes] == ["a", "b", "c", "d"]
    assert {(a, b) for a, b, _ in edges(graph)} == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}


def test_what_a_loop_collects_from_its_steps_is_no_edge_back_to_its_frame() -> None:
    steps = Sequence(name="steps", body=(job("a"), job("b")))
    loop = ForEach(name="each", items=[1, 2], body=steps, collect=Expr("jobs.b.outputs"))
    graph = drawn(Sequence(name="all", body=(loop, job("c", command="use ${{ jobs.each.outputs }}"))))
    assert edges(graph) == {("a", "b", "control"), ("each", "c", "data")}


def test_a_step_that_the_reader_made_up_leads_on_without_being_drawn() -> None:
    set_it = Assign(name="step-2", copies=(Copy("x", 1),))
    graph = drawn(Sequence(name="all", body=(job("a"), set_it, job("b"))))
    assert [node.id for node in graph.nodes] == ["a", "b"]
    assert edges(graph) == {("a", "b", "control")}


def test_links_lead_where_they_say_and_a_result_that_is_used_says_more() -> None:
    source = job("a", sources=(LinkSource("l"), LinkSource("m", Expr("x > 1"))))
    used = job("b", targets=("l",), command="cat ${{ jobs.a.files.out }}")
    graph = drawn(Parallel(name="p", branches=(source, used, job("c", targets=("m",))), links=("l", "m")))
    assert edges(graph) == {("a", "b", "data"), ("a", "c", "control")}
    assert {each.target: each.note for each in graph.edges}["c"] == "x > 1"


def test_a_loop_over_one_job_is_one_node_and_one_over_more_has_them_inside() -> None:
    one = ForEach(name="count", items=[1, 2], body=job("count.iteration", label="count"))
    many = ForEach(name="each", items="${{ jobs.count.outputs }}", body=Sequence(name="s", body=(job("a"), job("b"))))
    graph = drawn(Sequence(name="all", body=(one, many)))
    assert [(node.id, node.name, node.kind, node.parent) for node in graph.nodes] == [
        ("count", "count", "job", None),
        ("each", "each", "for-each", None),
        ("a", "a", "job", "each"),
        ("b", "b", "job", "each"),
    ]
    assert edges(graph) == {("count", "each", "data"), ("a", "b", "control")}
    assert graph.nodes[0].note == "for each item"


def test_what_decides_or_guards_has_its_parts_inside_and_says_when_they_run() -> None:
    choose = Choose(name="which", branches=(Branch(Expr("x > 1"), job("big")),), otherwise=job("small"))
    guarded = Scope(name="guarded", body=job("risky"), catches=(Catch(body=job("mop"), fault="spill"),))
    turns = While(name="again", condition=Expr("more"), body=Receive(name="hear", channel="news"))
    graph = drawn(Sequence(name="all", body=(choose, guarded, turns)))
    notes = {node.id: (node.parent, node.note) for node in graph.nodes}
    assert notes["big"] == ("which", "when x > 1") and notes["small"] == ("which", "otherwise")
    assert notes["mop"] == ("guarded", "on fault spill") and notes["risky"] == ("guarded", "")
    assert notes["again"] == (None, "while more") and notes["hear"] == ("again", "")
    assert edges(graph) == {("which", "guarded", "control"), ("guarded", "again", "control")}


def test_a_called_flow_is_drawn_inside_its_call_and_one_that_calls_itself_not_for_ever() -> None:
    inner = Flow(name=FlowName("inner"), body=Sequence(name="s", body=(job("x"), job("y"))))
    graph = drawn(Call(name="sub", flow="inner"), calls=(inner,))
    assert [(node.id, node.parent, node.flow) for node in graph.nodes] == [
        ("sub", None, "inner"),
        ("sub/x", "sub", ""),
        ("sub/y", "sub", ""),
    ]
    assert edges(graph) == {("sub/x", "sub/y", "control")}
    endless = Flow(name=FlowName("endless"), body=Call(name="sub", flow="endless"))
    assert len(draw_flow(endless, {"endless": endless}.get).nodes) == 5


def test_a_flow_that_is_too_large_is_drawn_in_part_and_says_so() -> None:
    graph = drawn(Parallel(name="p", branches=tuple(job(f"j{number}") for number in range(NODES_MAX + 1))))
    assert len(graph.nodes) == NODES_MAX and not graph.is_whole
