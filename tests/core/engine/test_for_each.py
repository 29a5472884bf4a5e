"""For-each: in sequence and in parallel, over lists and numbers, with a completion condition."""

from typing import Any

import pytest

from mendflow.core.engine.messages import SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Assign, Catch, Copy, Empty, ForEach, JobActivity, Scope, Sequence
from tests.core.engine.world import Play, pieces_of, started

WORK = JobActivity(name="a", command="run ${{ item }} ${{ index }}")


def each(body: Activity = WORK, **more: object) -> ForEach:
    return ForEach(name="each", body=body, **more)  # type: ignore[arg-type]  # the fields are the model's own


def fault_of(play: Play) -> str:
    assert play.ended.fault is not None
    return play.ended.fault.name


def test_a_turn_for_each_element_of_a_list_that_is_known_only_now() -> None:  # FM-1
    first = JobActivity(name="list", command="ls")
    play = started(Sequence(name="s", body=(first, each(items="${{ jobs.list.outputs }}"))))
    play.done("list", outputs=["x", "y", "z"])
    assert [play.command(item) for item in play.jobs] == ["run x 0", "run y 1", "run z 2"]


def test_in_sequence_a_turn_begins_when_the_one_before_has_ended() -> None:
    play = started(each(items=["x", "y"], parallel=False))
    assert play.jobs == ["a[0]"]
    play.done("a[0]")
    assert play.jobs == ["a[1]"]
    play.done("a[1]")
    assert play.status == "completed"


def test_numbers_are_counted_from_first_to_last_both_included() -> None:
    play = started(each(first=3, last=5))
    assert [play.command(item) for item in play.jobs] == ["run 3 0", "run 4 1", "run 5 2"]


@pytest.mark.parametrize("bounds", [{"items": []}, {"first": 5, "last": 4}])
def test_no_elements_no_turns(bounds: dict[str, Any]) -> None:
    assert started(each(**bounds)).status == "completed"


@pytest.mark.parametrize(
    "bounds",
    [
        {"items": "${{ 'text' }}"},
        {"first": Expr("-1"), "last": 2},
        {"first": Expr("1.5"), "last": 2},
        {"first": 1, "last": Expr("'two'")},
    ],
)
def test_bounds_that_make_no_sense_are_faults(bounds: dict[str, Any]) -> None:
    assert fault_of(started(each(**bounds))) == "invalidExpressionValue"


def test_turns_at_once_bounds_how_many_run_and_the_next_begins_as_one_ends() -> None:
    play = started(each(items=list(range(5)), max_parallel=2))
    assert play.jobs == ["a[0]", "a[1]"]
    play.done("a[1]")
    assert play.jobs == ["a[0]", "a[2]"]
    play.done("a[0]", "a[2]", "a[3]", "a[4]")
    assert play.status == "completed"


def test_what_turns_collect_is_in_the_order_of_turns_whatever_order_they_end_in() -> None:
    play = started(each(items=[1, 2, 3], collect=Expr("jobs.a.outputs")), {"all": "${{ jobs.each.outputs }}"})
    for item, value in (("a[2]", "c"), ("a[0]", "a"), ("a[1]", "b")):
        play.done(item, outputs=value)
    assert play.case.outputs == {"all": ["a", "b", "c"]}


def test_turns_do_not_see_each_other() -> None:
    body = Sequence(name="s", body=(WORK, JobActivity(name="b", command="got ${{ jobs.a.outputs }}")))
    play = started(each(body, items=[1, 2]))
    play.done("a[0]", outputs="first").done("a[1]", outputs="second")
    assert [play.command(item) for item in play.jobs] == ["got first", "got second"]


def test_a_turn_may_change_its_own_counter_and_no_other() -> None:
    change = Assign(name="change", copies=(Copy("item", "${{ item + 10 }}"),))
    body = Sequence(name="s", body=(change, WORK))
    play = started(each(body, items=[1, 2], parallel=False))
    assert play.command("a[0]") == "run 11 0"
    play.done("a[0]")
    assert play.command("a[1]") == "run 12 1"


def test_when_enough_turns_have_ended_the_others_are_stopped() -> None:
    play = started(each(items=[1, 2, 3], min_ended=2, collect=Expr("item")), {"all": "${{ jobs.each.outputs }}"})
    play.done("a[2]")
    assert play.status == "running"
    play.done("a[0]")
    assert (play.status, play.cancelled) == ("completed", 1)
    assert play.case.outputs == {"all": [1, None, 3]}, "a turn that did not complete leaves its place empty"


def test_in_sequence_enough_means_that_later_turns_never_begin() -> None:
    play = started(each(items=[1, 2, 3], min_ended=2, parallel=False))
    play.done("a[0]", "a[1]")
    assert play.status == "completed"


def test_more_than_there_are_turns_is_never_enough() -> None:
    assert fault_of(started(each(items=[1, 2], min_ended=3))) == "invalidBranchCondition"


def test_counting_only_turns_that_went_well_it_fails_as_soon_as_they_cannot_be_enough() -> None:
    play = started(each(items=[1, 2, 3], min_success=2, on_fault="finish"))
    play.fail("a[0]")
    assert play.status == "running"
    play.fail("a[1]")
    assert fault_of(play) == "completionConditionFailure"
    assert play.cancelled == 1


def test_a_fault_that_a_turn_handles_itself_counts_as_a_good_end() -> None:
    body = Scope(name="sc", body=WORK, catches=(Catch(body=Empty(name="e")),))
    play = started(each(body, items=[1, 2], min_success=1))
    play.fail("a[0]")
    assert play.status == "completed"


def test_one_failing_turn_stops_the_others_unless_they_may_finish() -> None:
    play = started(each(items=[1, 2]))
    play.fail("a[0]")
    assert (play.status, play.cancelled) == ("failed", 1)
    play = started(each(items=[1, 2], on_fault="finish"))
    play.fail("a[0]")
    assert play.status == "running"
    play.done("a[1]")
    assert (play.status, play.cancelled) == ("failed", 0)


def test_a_long_list_is_begun_in_pieces() -> None:
    play = started(each(items=list(range(1_200))))
    begun = [len(play.jobs)]
    while play.case.continuation:
        play.proceed(play.case.continuation)
        begun.append(len(play.jobs))
    assert begun[-1] == 1_200
    assert all(later - earlier <= 500 for earlier, later in zip([0, *begun], begun, strict=False))


def test_turns_that_end_while_others_are_still_to_begin_are_counted() -> None:
    with pieces_of(10):
        play = started(each(items=list(range(50))))
        play.run_out()
    assert play.status == "completed"
    assert sum(isinstance(order, SubmitJob) for order in play.given) == 50
