"""The report's drawing and its figures say what happened, in the words of the flow file."""

import re

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Assign,
    Branch,
    Call,
    Catch,
    Choose,
    Compensate,
    Copy,
    Flow,
    JobActivity,
    OnAlarm,
    Pick,
    Scope,
    Sequence,
    Throw,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId, PilotId
from mendflow.core.model.views import AttemptView, CaseView, ItemView, NameCount
from mendflow.pages.graph import graph
from mendflow.pages.page import render
from mendflow.pages.timeline import timeline


def count(name: str, kind: str = "job", **numbers: int) -> NameCount:
    return NameCount(name=name, kind=kind, **numbers)


def state_of(drawing: str, title: str) -> str:
    """The state that a box is drawn in."""
    [found] = re.findall(rf'<g class="s-(\w+)"><title>{re.escape(title)} ', drawing)
    return str(found)


def frames(drawing: str) -> list[str]:
    return re.findall(r'<g><title>([^<]*)</title><rect class="frame"', drawing)


def test_small_steps_are_drawn_as_skipped_only_where_nothing_was_reached() -> None:
    fails = Scope(
        name="risky",
        body=Sequence(name="in", body=(JobActivity(name="try", command="x"), Throw(name="give-up", fault="no"))),
        catches=(
            Catch(body=Sequence(name="c", body=(Compensate(name="undo-all"), JobActivity(name="tidy", command="x")))),
        ),
    )
    set_it = Assign(name="remember", copies=(Copy(to="x", value=1),))
    never = Sequence(name="n", body=(JobActivity(name="never", command="x"), Throw(name="stop", fault="no")))
    choice = Choose(name="which", branches=(Branch(when=Expr("false"), body=never),))
    flow = Flow(name=FlowName("f"), body=Sequence(name="all", body=(set_it, fails, choice)))
    drawn = graph(flow, [count("try", done=1), count("tidy", done=1), count("never", skipped=1)])
    assert [state_of(drawn, name) for name in ("remember", "give-up", "undo-all")] == ["step"] * 3
    assert [state_of(drawn, name) for name in ("never", "stop")] == ["skipped", "none"]
    assert "remember (set)" in drawn and "assign" not in drawn


def test_a_frame_without_a_name_of_its_own_is_told_by_its_kind_once() -> None:
    inside = Sequence(name="s.1", body=(JobActivity(name="a", command="x"), JobActivity(name="b", command="x")))
    pick = Pick(name="step-2", alarms=(OnAlarm(body=JobActivity(name="late", command="x"), duration=1),))
    flow = Flow(name=FlowName("f"), body=Sequence(name="f.s", body=(Scope(name="step-1", body=inside), pick)))
    assert {"scope", "pick"} <= set(frames(graph(flow, [])))
    assert not [title for title in frames(graph(flow, [])) if title in ("scope · scope", "pick · pick")]


def test_a_drawing_that_is_wider_than_the_page_says_so() -> None:
    def of(number: int) -> str:
        jobs = tuple(JobActivity(name=f"job-{n}", command="x") for n in range(number))
        return graph(Flow(name=FlowName("f"), body=Sequence(name="s", body=jobs)), [])

    assert "wider than the page" in of(20)
    assert "wider than the page" not in of(3)


def a_case(id: str, *counts: NameCount, parent: str = "") -> CaseView:
    return CaseView(
        id=CaseId(id),
        flow="f",
        digest="d",
        status="completed",
        started_at=1_000,
        ended_at=2_000,
        counts=list(counts),
        parent=CaseId(parent) if parent else None,
    )


def an_item(case: str, name: str, *, cpu_ms: int) -> ItemView:
    attempt = AttemptView(
        number=1,
        pilot=PilotId("p"),
        granted_at=1_100,
        started_at=1_100,
        ended_at=1_200,
        end="completed",
        fault=None,
        cpu_ms=cpu_ms,
        peak_bytes=1_000_000,
    )
    return ItemView(
        case=CaseId(case), item=ItemId(name), name=name, kind="job", serial=1, state="completed", attempts=[attempt]
    )


def figures(page: str) -> dict[str, str]:
    found = re.findall(r'<div class="figure[^"]*"><b>([^<]*)</b><span>([^<]*)</span>', page)
    return {word: value for value, word in found}


FLOW = Flow(name=FlowName("f"), body=Call(name="go", flow="inner"))


def test_figures_count_the_work_of_called_cases_and_not_the_calls() -> None:
    case, called = (
        a_case("f-1", count("a", done=1), count("go", "call", done=1)),
        a_case("f-1.1", count("b", done=2), parent="f-1"),
    )
    ours, theirs = (
        [an_item("f-1", "a", cpu_ms=10)],
        [an_item("f-1.1", "b", cpu_ms=30), an_item("f-1.1", "b", cpu_ms=60)],
    )
    told = figures(render(case, FLOW, ours, called=[called], called_items=theirs))
    assert (told["done"], told["attempts"], told["CPU time"]) == ("3", "3", "100 ms")
    cut = figures(render(case, FLOW, ours, called=[called], called_items=[]))
    assert (cut["done"], cut["attempts"]) == ("3", "1+"), "more were made than are known here"


def test_what_was_reused_is_counted_beside_what_is_done() -> None:
    told = figures(render(a_case("f-1", count("a", done=1, cached=9)), FLOW, []))
    assert (told["done"], told["cached"]) == ("1", "9")


def test_the_legend_has_every_colour() -> None:
    item = an_item("f-1", "a", cpu_ms=1)
    assert 'class="key cached"></span>cached' in timeline(a_case("f-1"), [item], 2_000)
