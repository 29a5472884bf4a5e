"""Sequence, parallel, choose, while, until."""

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Branch,
    Choose,
    Copy,
    Empty,
    Exit,
    JobActivity,
    Parallel,
    Scope,
    Sequence,
    Until,
    While,
)
from tests.core.engine.world import started


def job(name: str, **more: object) -> JobActivity:
    return JobActivity(name=name, command=f"run {name}", **more)  # type: ignore[arg-type]  # the fields are the model's own


def sequence(name: str, *body: Activity) -> Sequence:
    return Sequence(name=name, body=body)


def test_a_sequence_runs_its_parts_one_after_the_other() -> None:  # FM-1
    play = started(sequence("s", job("a"), job("b"), job("c")))
    assert play.jobs == ["a"]
    play.done("a")
    assert play.jobs == ["b"]
    play.done("b", "c")
    assert play.status == "completed"


def test_an_empty_sequence_is_over_at_once() -> None:
    assert started(sequence("s")).status == "completed"


def test_branches_of_a_parallel_run_at_once_and_it_ends_with_the_last() -> None:  # FM-1
    play = started(sequence("s", Parallel(name="p", branches=(job("a"), job("b"))), job("c")))
    assert play.jobs == ["a", "b"]
    play.done("b")
    assert play.jobs == ["a"]
    play.done("a")
    assert play.jobs == ["c"]


def test_a_fault_in_one_branch_stops_the_others() -> None:
    play = started(Parallel(name="p", branches=(job("a"), job("b"), sequence("s", job("c"), job("d")))))
    play.fail("a")
    assert play.status == "failed"
    assert play.cancelled == 2
    assert play.ended.fault is not None and play.ended.fault.name == "broken"


def test_with_on_fault_finish_the_other_branches_end_first() -> None:
    play = started(Parallel(name="p", on_fault="finish", branches=(job("a"), sequence("s", job("b"), job("c")))))
    play.fail("a")
    assert play.status == "running"
    play.done("b", "c")
    assert play.status == "failed"
    assert play.cancelled == 0


def choose(*conditions: str, many: bool = False, otherwise: bool = True) -> Choose:
    branches = tuple(Branch(Expr(text), job(f"b{place}")) for place, text in enumerate(conditions))
    return Choose(name="ch", branches=branches, otherwise=job("else") if otherwise else None, many=many)


@pytest.mark.parametrize(
    ("activity", "chosen", "skipped"),
    [
        (choose("1 > 2", "1 < 2", "2 < 3"), ["b1"], ["b0", "b2", "else"]),
        (choose("1 > 2", "2 > 3"), ["else"], ["b0", "b1"]),
        (choose("1 > 2", otherwise=False), [], ["b0"]),
        (choose("1 < 2", "1 > 2", "2 < 3", many=True), ["b0", "b2"], ["b1", "else"]),
        (choose("1 > 2", many=True), ["else"], ["b0"]),
    ],
)
def test_choose_takes_the_first_branch_that_holds_or_all_that_do(
    activity: Choose, chosen: list[str], skipped: list[str]
) -> None:  # FM-1
    play = started(activity)
    assert play.jobs == chosen
    assert play.skipped == skipped
    play.run_out()
    assert play.status == "completed"


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ("nobody.knows", "uninitializedVariable"),
        ("1 + 1", "invalidExpressionValue"),
        ("dyn('a') > 1", "subLanguageExecutionFault"),
    ],
)
def test_a_condition_that_is_neither_true_nor_false_is_a_fault_of_the_flow(condition: str, fault: str) -> None:
    play = started(choose(condition))
    assert play.ended.fault is not None
    assert (play.ended.fault.name, play.ended.fault.category) == (fault, "flow")


DOUBLED = "[range(9000)]" + ".map(a, a + a)" * 7


def test_too_much_work_is_a_fault_of_the_flow_and_again_when_it_is_replayed() -> None:  # SE-3
    play = started(choose(f"{DOUBLED}.size() > 0"))
    while play.status == "running":
        play.proceed(next(iter(play.out)))  # the rest of the event, which was cut after so much work
    fault = play.ended.fault
    assert fault is not None
    assert (fault.name, "too much work: more than 200,000 units" in fault.message) == (
        "subLanguageExecutionFault",
        True,
    )
    assert play.replayed().status == play.status


def test_expressions_that_take_long_cut_an_event_short() -> None:  # SE-3
    heavy = Assign(name="count", copies=(Copy("n", "${{ range(9000).map(a, a + n).size() - 9000 + n + 1 }}"),))
    play = started(counting(While(name="w", condition=Expr("n < 20"), body=heavy)))
    pieces = 1
    while play.status == "running":
        assert play.case.meter.work < 400_000
        play.crash(with_snapshot=bool(pieces % 2))
        play.proceed(next(iter(play.out)))
        pieces += 1
    assert pieces > 2
    assert play.status == "completed"


def counting(loop: Activity) -> Scope:
    return Scope(name="scope", variables={"n": 0}, body=loop)


COUNT = Assign(name="count", copies=(Copy("n", "${{ n + 1 }}"),))


@pytest.mark.parametrize(("turns", "ran"), [(0, 0), (1, 1), (3, 3)])
def test_while_tests_before_each_turn(turns: int, ran: int) -> None:  # FM-1
    body = sequence("s", COUNT, job("a"))
    play = started(counting(While(name="w", condition=Expr(f"n < {turns}"), body=body)))
    items = []
    while play.jobs:
        items += play.jobs
        play.done(*play.jobs)
    assert items == [f"a[{turn}]" for turn in range(ran)]
    assert play.status == "completed"


@pytest.mark.parametrize(("turns", "ran"), [(0, 1), (1, 1), (3, 3)])
def test_until_tests_after_each_turn(turns: int, ran: int) -> None:  # FM-1
    body = sequence("s", COUNT, job("a"))
    play = started(counting(Until(name="u", condition=Expr(f"n >= {turns}"), body=body)))
    play.run_out()
    assert sum(getattr(order, "spec", None) is not None for order in play.given) == ran


def test_items_in_nested_loops_carry_the_numbers_of_their_turns() -> None:
    inner = While(name="inner", condition=Expr("n < 2"), body=sequence("s", COUNT, job("a")))
    play = started(counting(While(name="outer", condition=Expr("n < 2"), body=inner)))
    assert play.jobs == ["a[0,0]"]
    play.done("a[0,0]")
    assert play.jobs == ["a[0,1]"]


def test_nesting_has_no_bound_that_the_engine_sets() -> None:  # FM-1
    body: Activity = job("deep")
    for level in range(400):
        body = sequence(f"s{level}", body)
    play = started(body)
    play.done("deep")
    assert play.status == "completed"


def test_exit_ends_the_case_at_once_and_runs_no_handler() -> None:
    scope = Scope(name="sc", body=Empty(name="e"), compensation=job("undo"), termination=job("term"))
    body = Parallel(name="p", branches=(job("a"), sequence("s", scope, Exit(name="x"))))
    play = started(body, {"done": "yes"})
    assert play.status == "completed"
    assert play.cancelled == 1
    assert play.case.outputs == {"done": "yes"}


def test_an_endless_loop_does_not_hold_the_engine() -> None:
    play = started(While(name="w", condition=Expr("1 < 2"), body=Empty(name="e")))
    for _ in range(3):
        assert play.status == "running"
        [serial] = play.out
        play.proceed(serial)
    assert len(play.case.instances) < 10
