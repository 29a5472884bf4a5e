"""What a case has completed and can be undone: listed in the order of completion, each taken off the list once."""

import pytest

from mendflow.core.engine import compensations, compile_flow, restore, snapshot, undoable
from mendflow.core.engine.messages import ForceFail, MarkCompensated, StartCase, SubmitJob
from mendflow.core.model.errors import Conflict
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Call,
    Catch,
    Compensate,
    Copy,
    Flow,
    ForEach,
    Input,
    JobActivity,
    Parallel,
    Scope,
    Sequence,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import Outcome
from tests.core.engine.world import Play, World, started

FAULT = Fault(name="forced", category=Category.JOB, message="by an exlet")


def job(name: str, command: str = "") -> JobActivity:
    return JobActivity(name=name, command=command or name)


def kept(name: str, undo: Activity | None = None) -> Scope:
    return Scope(name=f"{name}.kept", label=name, body=job(name), compensation=undo or job(f"undo-{name}"))


def names(play: World) -> list[str]:
    assert undoable(play.case) == len(compensations(play.case))
    return [each.name for each in compensations(play.case)]


def test_a_completed_activity_pushes_its_compensation() -> None:  # AD-1
    play = started(Sequence(name="s", body=(kept("a"), kept("b"), job("c"))))
    assert names(play) == []
    play.done("a")
    assert names(play) == ["a"]
    play.done("b")
    assert names(play) == ["a", "b"]
    play.crash(with_snapshot=True)
    assert names(play) == ["a", "b"]


def test_the_order_is_that_of_completion_across_branches_and_loops() -> None:  # AD-1
    each = ForEach(name="each", items=[1, 2], body=kept("turn"))
    play = started(Parallel(name="p", branches=(kept("a"), kept("b"), each, job("c"))))
    play.done("turn[1]", "b", "turn[0]", "a")
    assert [done.item for done in compensations(play.case)] == ["turn[1]", "b", "turn[0]", "a"]
    assert [done.number for done in compensations(play.case)] == [1, 2, 3, 4]


def test_the_compensation_is_a_flow_that_knows_what_was_known_then() -> None:  # AD-1
    undo = JobActivity(name="undo", command="free ${{ jobs.a.outputs.stall }} ${{ inputs.fair }} ${{ n }}")
    body = Sequence(
        name="s",
        body=(
            Assign(name="first", copies=(Copy("n", 1),)),
            kept("a", undo),
            job("c"),
        ),
    )
    play = Play(Flow(name=FlowName("fair"), body=body, inputs={"fair": Input(default="spring")}))
    play.done("a", outputs={"stall": 12})
    (done,) = compensations(play.case)
    assert done.flow is not None and done.flow.name == "fair.undo.a"
    compile_flow(done.flow)
    worklet = Play(done.flow, done.inputs)
    assert worklet.command("undo") == "free 12 spring 1"
    assert worklet.done("undo").status == "completed"


def test_a_worklet_that_came_with_the_flow_is_found_by_the_compensation() -> None:
    free = Flow(name=FlowName("free"), body=job("x"))
    undo = Call(name="undo", flow="free", inputs={"stall": "${{ jobs.a.outputs }}"})
    play = Play(Flow(name=FlowName("f"), body=Sequence(name="s", body=(kept("a", undo), job("c"))), calls=(free,)))
    play.done("a", outputs=3)
    (done,) = compensations(play.case)
    assert done.flow is not None
    (order,) = Play(done.flow, done.inputs).out.values()
    assert (getattr(order, "flow", None), getattr(order, "inputs", None)) == (free, {"stall": 3})


def test_what_was_marked_is_undone_by_nobody_again() -> None:  # AD-5
    body = Sequence(name="s", body=(kept("a"), kept("b"), job("x")))
    play = started(Scope(name="all", body=body, catches=(Catch(body=Compensate(name="undo")),)))
    play.done("a", "b")
    last = compensations(play.case)[-1]
    play.do(MarkCompensated(numbers=(last.number,), by="x/3"))
    play.crash(with_snapshot=False)
    assert names(play) == ["a"]
    assert play.do(MarkCompensated(numbers=(last.number,), by="x/3")) == []
    play.fail("x")
    assert play.jobs == ["undo-a"], "the flow's own handler undoes the rest"
    assert names(play) == []


def test_what_the_flow_undoes_itself_leaves_the_list() -> None:  # AD-5
    body = Sequence(name="s", body=(kept("a"), job("x")))
    play = started(
        Sequence(
            name="t", body=(Scope(name="all", body=body, catches=(Catch(body=Compensate(name="undo")),)), job("z"))
        )
    )
    play.done("a").fail("x")
    assert (names(play), play.jobs) == ([], ["undo-a"])
    play.done("undo-a")
    assert (names(play), play.jobs) == ([], ["z"])


def test_a_handler_answers_for_the_scopes_inside_its_own() -> None:
    inner = Sequence(name="s", body=(kept("a"), kept("b")))
    play = started(Sequence(name="t", body=(Scope(name="whole", body=inner, compensation=job("undo-whole")), job("z"))))
    play.done("a")
    assert names(play) == ["a"]
    play.done("b")
    assert names(play) == ["whole"]
    play.do(MarkCompensated(numbers=(3,)))
    assert names(play) == []


def test_a_handler_that_leaves_the_inner_scopes_to_compensate_is_listed_with_them() -> None:
    inner = Sequence(name="s", body=(kept("a"), kept("b")))
    undo = Sequence(name="u", body=(Compensate(name="rest"), job("undo-whole")))
    play = started(Sequence(name="t", body=(Scope(name="whole", body=inner, compensation=undo), job("z"))))
    play.done("a", "b")
    found = compensations(play.case)
    assert [each.name for each in found] == ["a", "b", "whole"]
    assert found[2].flow is not None and Play(found[2].flow, {}).jobs == ["undo-whole"]
    play.do(MarkCompensated(numbers=(3,)))
    assert names(play) == ["a", "b"]
    play.do(MarkCompensated(numbers=(1, 2)))
    assert names(play) == []


def test_handlers_inside_a_handler_stay_as_they_are() -> None:
    inner = Scope(name="again", body=job("try"), catches=(Catch(body=Compensate(name="back")),))
    play = started(Sequence(name="t", body=(kept("a", inner), job("z"))))
    play.done("a")
    (done,) = compensations(play.case)
    assert done.flow is not None and done.flow.body == inner
    assert Play(done.flow).fail("try").status == "completed"


def test_scopes_without_a_handler_pass_on_what_is_inside() -> None:
    inner = Scope(name="plain", body=Sequence(name="s", body=(kept("a"), kept("b"))))
    play = started(Sequence(name="t", body=(inner, job("z"))))
    play.done("a", "b")
    assert names(play) == ["a", "b"]
    play.do(MarkCompensated(numbers=(1,)))
    assert names(play) == ["b"]


def test_an_activity_that_was_made_to_fail_has_not_completed() -> None:
    play = started(Sequence(name="s", body=(kept("a"), job("z"))))
    play.do(ForceFail(item=ItemId("a"), fault=FAULT, proceed=True))
    assert (names(play), play.jobs) == ([], ["z"])


@pytest.mark.parametrize(
    ("remember", "expected"),
    [((), ["b"]), (("a",), ["a", "b"]), (("*",), ["a", "b", "c", "c"]), (("c", "b"), ["b", "c", "c"])],
)
def test_items_of_remembered_tasks_are_listed_with_their_data(
    remember: tuple[str, ...], expected: list[str]
) -> None:  # AD-1
    each = ForEach(
        name="c.all",
        items=[1, 2],
        parallel=False,
        body=JobActivity(name="c.iteration", label="c", command="c", env={"N": "${{ item }}"}),
    )
    body = Sequence(name="s", body=(job("a"), kept("b"), each, job("z")))
    play = World()
    play.do(StartCase(case=CaseId("c"), flow=Flow(name=FlowName("f"), body=body), remember=remember))
    for _ in range(4):
        (serial,) = (order.serial for order in play.out.values() if isinstance(order, SubmitJob))
        play.finish(serial, Outcome(outputs={"n": serial}))
    assert names(play) == expected
    for done in compensations(play.case):
        assert (done.flow is None) == (done.name != "b"), "what the flow says itself counts, and no library on top"
        if done.name == "c":
            assert (done.item, done.data, done.outputs) in (
                ("c[0]", {"N": "1"}, {"n": done.serial}),
                ("c[1]", {"N": "2"}, {"n": done.serial}),
            )
    assert snapshot(restore(snapshot(play.case))) == snapshot(play.case)
    play.do(MarkCompensated(numbers=tuple(each.number for each in compensations(play.case))))
    assert names(play) == []


def test_a_case_that_is_over_has_nothing_left_to_undo() -> None:
    play = started(kept("a")).done("a")
    assert names(play) == []
    with pytest.raises(Conflict):
        play.do(MarkCompensated(numbers=(1,)))
