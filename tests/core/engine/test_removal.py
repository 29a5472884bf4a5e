"""A removed item is cancelled, and nothing more runs on the path that it stands on; paths beside it go on. # EX-2"""

from typing import Any

import pytest

from mendflow.core.engine import compensations, evolve, live_items, restore, snapshot, validate
from mendflow.core.engine.messages import CancelJob, Event, ItemSkipped, RemoveItem, Suspend
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Branch,
    Catch,
    Choose,
    Compensate,
    Flow,
    ForEach,
    JobActivity,
    LinkSource,
    OnMessage,
    Parallel,
    Pick,
    Receive,
    Scope,
    Sequence,
    Stage,
    Until,
    While,
)
from mendflow.core.model.ids import FlowName, ItemId
from tests.core.engine.world import Play, started

A = ItemId("a")


def job(name: str, **more: object) -> JobActivity:
    return JobActivity(name=name, command=name, **more)  # type: ignore[arg-type]  # the fields are the model's own


def sequence(name: str, *body: Activity) -> Sequence:
    return Sequence(name=name, body=body)


def beside(path: Activity) -> Sequence:
    """The path has another beside it, and then something follows both."""
    return sequence("all", Parallel(name="p", branches=(path, job("other"))), job("last"))


IN_A_PATH: dict[str, Activity] = {
    "sequence": sequence("s", job("a"), job("then")),
    "sequence in a sequence": sequence("s", sequence("t", job("a"), job("then")), job("later")),
    "while": sequence("s", While(name="w", condition=Expr("true"), body=job("a")), job("then")),
    "until": sequence("s", Until(name="u", condition=Expr("false"), body=job("a")), job("then")),
    "turns in sequence": sequence("s", ForEach(name="f", items=[1, 2], parallel=False, body=job("a")), job("then")),
    "one turn": sequence("s", ForEach(name="f", items=[1], body=job("a")), job("then")),
    "a parallel of one": sequence("s", Parallel(name="q", branches=(job("a"),)), job("then")),
    "choose": sequence("s", Choose(name="c", branches=(Branch(Expr("true"), job("a")),)), job("then")),
    "choose many, one chosen": sequence(
        "s",
        Choose(name="c", many=True, branches=(Branch(Expr("true"), job("a")), Branch(Expr("false"), job("x")))),
        job("then"),
    ),
    "scope": sequence("s", Scope(name="c", body=sequence("t", job("a"), job("then"))), job("later")),
    "isolated scope": sequence("s", Scope(name="c", isolated=True, body=job("a")), job("then")),
}


@pytest.mark.parametrize("path", IN_A_PATH.values(), ids=IN_A_PATH)
def test_what_would_follow_on_its_path_does_not_run_and_the_path_beside_it_does(path: Activity) -> None:
    play = started(beside(path))
    (item,) = (ItemId(each) for each in play.jobs if each.partition("[")[0] == "a")
    play.do(RemoveItem(item=item))
    assert (play.jobs, play.cancelled) == (["other"], 1)
    play.crash(with_snapshot=True)
    play.done("other")
    assert play.jobs == ["last"], "what follows all paths runs as usual"
    assert play.done("last").status == "completed"


@pytest.mark.parametrize("path", IN_A_PATH.values(), ids=IN_A_PATH)
def test_a_case_whose_one_path_was_removed_is_over(path: Activity) -> None:
    play = started(path)
    (item,) = (ItemId(each) for each in play.jobs)
    play.do(RemoveItem(item=item))
    assert (play.status, play.jobs, play.ended.fault) == ("completed", [], None)


def test_the_removed_item_is_cancelled_and_what_follows_is_skipped() -> None:
    play = started(sequence("s", job("a"), job("b"), sequence("t", job("c"), job("d"))))
    orders = play.do(RemoveItem(item=A))
    assert orders[0] == CancelJob(serial=1)
    assert play.skipped == ["b", "c", "d"]


def test_an_item_that_nobody_must_be_told_to_stop_is_told_of_as_cancelled() -> None:
    play = started(beside(Stage(name="a", files={"f": "path"})))
    (told,) = (order for order in play.do(RemoveItem(item=A)) if isinstance(order, ItemSkipped))
    assert (told.item, told.cancelled, told.reason) == (A, True, "it was removed")


def test_links_of_a_removed_path_are_false_and_dead_paths_are_walked_to_their_end() -> None:
    branches = (
        sequence("s", job("a", sources=(LinkSource("l"),)), job("b", sources=(LinkSource("m"),))),
        job("c", targets=("l",), join="all", sources=(LinkSource("n"),)),
        job("d", targets=("m", "n"), join="any"),
        job("e"),
    )
    play = started(Parallel(name="p", links=("l", "m", "n"), branches=branches))
    play.do(RemoveItem(item=A))
    assert sorted(play.skipped) == ["b", "c", "d"]
    assert play.jobs == ["e"]
    assert play.done("e").status == "completed"


@pytest.mark.parametrize("bound", [{"tolerate": 1}, {"tolerate_percent": 40.0}], ids=str)
def test_turns_in_parallel_are_paths_of_their_own(bound: dict[str, Any]) -> None:
    body = sequence("t", job("a"), job("b"))
    each = ForEach(name="f", items=[1, 2, 3], body=body, collect=Expr("jobs.b.outputs"), **bound)
    play = started(sequence("s", each, JobActivity(name="last", command="${{ jobs.f.outputs }}")))
    play.do(RemoveItem(item=ItemId("a[1]")))
    play.done("a[0]", "a[2]")
    assert play.jobs == ["b[0]", "b[2]"]
    play.done("b[0]", "b[2]", outputs=7)
    assert play.command("last") == "[7, null, 7]"


@pytest.mark.parametrize("bound", [{}, {"tolerate": 0}, {"tolerate": 1}], ids=str)
def test_what_follows_a_loop_does_not_work_on_a_part_of_it_unless_the_flow_says_that_some_may_be_missing(
    bound: dict[str, Any],
) -> None:  # DU-3
    each = ForEach(name="f", items=[1, 2, 3], body=job("a"), collect=Expr("jobs.a.outputs"), **bound)
    play = started(beside(sequence("s", each, job("then"))))
    play.do(RemoveItem(item=ItemId("a[1]")))
    if bound.get("tolerate"):
        play.do(RemoveItem(item=ItemId("a[2]")))
    assert "a[0]" in play.jobs, "the other iterations come to their end"
    play.crash(with_snapshot=True)
    play.done("a[0]", *(["a[2]"] if not bound.get("tolerate") else []))
    assert play.jobs == ["other"]
    assert "then" in play.skipped


def test_branches_chosen_together_are_paths_of_their_own() -> None:
    branches = (Branch(Expr("true"), job("a")), Branch(Expr("true"), job("b")))
    play = started(sequence("s", Choose(name="c", many=True, branches=branches), job("last")))
    play.done("b")
    play.do(RemoveItem(item=A))
    assert play.jobs == ["last"], "also when the other one has ended before"


def test_a_picked_branch_is_a_path() -> None:
    picked = Pick(name="k", messages=(OnMessage(channel="m", body=job("a")),))
    play = started(beside(sequence("s", picked, job("then")))).send("m")
    play.do(RemoveItem(item=A))
    assert play.jobs == ["other"]


def test_event_handlers_are_paths_beside_the_body_of_their_scope() -> None:
    handler = OnMessage(channel="m", body=sequence("h", job("h1"), job("h2")))
    scope = Scope(name="c", body=sequence("b", job("a"), job("b1")), messages=(handler,))
    play = started(sequence("s", scope, job("then"))).send("m")
    play.do(RemoveItem(item=ItemId("h1[0]")))
    assert play.jobs == ["a"]
    play.send("m").do(RemoveItem(item=A))
    assert play.jobs == ["h1[1]"], "a handler that has begun comes to its end"
    play.done("h1[1]", "h2[1]")
    assert (play.status, play.jobs) == ("completed", []), "and then the scope's path is removed"


def test_a_fault_handler_stands_on_the_path_of_its_scope() -> None:
    scope = Scope(name="c", body=job("x"), catches=(Catch(body=job("a")),))
    play = started(beside(sequence("s", scope, job("then")))).fail("x")
    play.do(RemoveItem(item=A))
    assert play.jobs == ["other"]


def test_what_else_is_compensated_is_another_path() -> None:
    def undoable(name: str) -> Scope:
        return Scope(
            name=name,
            body=job(f"{name}-do"),
            compensation=sequence(f"{name}-s", job(f"{name}-undo"), job(f"{name}-more")),
        )

    body = sequence("s", undoable("one"), undoable("two"), job("x"))
    catch = Catch(body=sequence("h", Compensate(name="undo"), job("after")))
    play = started(Scope(name="c", body=body, catches=(catch,)))
    play.done("one-do", "two-do").fail("x")
    play.do(RemoveItem(item=ItemId("two-undo")))
    assert play.jobs == ["one-undo"]
    play.done("one-undo", "one-more")
    assert play.jobs == ["after"]


def test_a_removed_scope_is_not_compensated_and_what_completed_inside_it_is() -> None:
    inner = Scope(name="inner", body=job("done"), compensation=job("undo-inner"))
    outer = Scope(name="outer", body=sequence("b", inner, job("a")), compensation=job("undo-outer"))
    work = sequence("w", Parallel(name="p", branches=(outer, job("other"))), job("x"))
    play = started(Scope(name="c", body=work, catches=(Catch(body=Compensate(name="undo")),)))
    play.done("done")
    play.do(RemoveItem(item=A))
    assert [each.name for each in compensations(play.case)] == ["inner"]
    play.done("other").fail("x")
    assert play.jobs == ["undo-inner"]
    assert play.done("undo-inner").status == "completed"


def test_an_item_of_a_suspended_case_is_removed_when_the_case_goes_on() -> None:
    play = started(beside(sequence("s", job("a"), job("b"))))
    play.do(Suspend())
    play.do(RemoveItem(item=A))
    assert "a" in play.jobs
    play.crash(with_snapshot=True)


def test_a_journal_of_an_earlier_version_removes_the_item_alone() -> None:
    play = started(sequence("s", job("a"), job("b")))
    evolve(play.case, Event(play.now, RemoveItem(item=A)))
    validate(play.case)
    assert [each.item for each in live_items(play.case)] == ["b"]


def test_outputs_of_a_removed_path_are_given_as_far_as_they_can_be_worked_out() -> None:
    flow = Flow(name=FlowName("f"), body=sequence("s", job("a"), job("b")), outputs={"n": "${{ jobs.b.outputs }}"})
    play = Play(flow)
    play.do(RemoveItem(item=A))
    assert (play.status, play.ended.outputs) == ("completed", {})


def test_a_receive_that_is_removed_hears_nothing_more() -> None:
    play = started(beside(sequence("s", Receive(name="a", channel="m"), job("b"))))
    play.do(RemoveItem(item=A))
    play.send("m")
    assert play.jobs == ["other"]
    assert snapshot(restore(snapshot(play.case))) == snapshot(play.case)
