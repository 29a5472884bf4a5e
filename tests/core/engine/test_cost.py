"""The work of one event does not grow with the case. Calls are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from mendflow.core.engine import Case, decide, evolve, snapshot
from mendflow.core.engine.messages import Command, ContinueLater, FinishItem, Order, Proceed, StartCase, SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, ForEach, JobActivity, Parallel, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from tests.core.engine.world import flow

OK = Outcome(outputs=1)


def calls(do: Callable[[], object]) -> int:
    """How many calls, of Python's and of C's, it takes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


def give(case: Case, command: Command) -> list[Order]:
    return [order for event in decide(case, command, 1) for order in evolve(case, event)]


def all_begun(body: Activity) -> tuple[Case, list[SubmitJob]]:
    case = Case.blank()
    orders = give(case, StartCase(case=CaseId("c"), flow=flow(body)))
    for order in orders:
        if isinstance(order, ContinueLater):
            orders += give(case, Proceed(serial=order.serial))
    return case, [order for order in orders if isinstance(order, SubmitJob)]


def wide(turns: int) -> Activity:
    work = Sequence(
        name="s", body=(JobActivity(name="a", command="run ${{ item }}"), JobActivity(name="b", command="then"))
    )
    return ForEach(name="each", first=1, last=turns, body=work, collect=Expr("jobs.a.outputs"))


def bounded(turns: int) -> Activity:
    return ForEach(
        name="each", items=list(range(turns)), max_parallel=50, body=JobActivity(name="a", command="${{ item }}")
    )


def flat(turns: int) -> Activity:
    return Parallel(name="p", branches=tuple(JobActivity(name=f"a{n}", command="run") for n in range(turns)))


@pytest.mark.full
@pytest.mark.parametrize("shape", [wide, bounded, flat])
def test_an_events_work_is_the_same_in_a_large_case_as_in_a_small_one(shape: Callable[[int], Activity]) -> None:
    counts = []
    for turns in (1_000, 20_000):
        case, jobs = all_begun(shape(turns))
        for job in jobs[:5]:
            give(case, FinishItem(serial=job.serial, outcome=OK))
        middle = jobs[len(jobs) // 2].serial
        counts.append(calls(lambda serial=middle, live=case: give(live, FinishItem(serial=serial, outcome=OK))))  # type: ignore[misc]  # bound now, on purpose
    assert counts[1] <= counts[0] + 3


def test_a_case_holds_what_is_live_and_not_what_has_been() -> None:
    sizes = []
    for turns in (100, 2_000):
        case, jobs = all_begun(
            ForEach(name="e", first=1, last=turns, max_parallel=10, body=JobActivity(name="a", command="x"))
        )
        while len(jobs) > 10 or case.position < turns - 20:
            for order in give(case, FinishItem(serial=jobs.pop(0).serial, outcome=OK)):
                assert isinstance(order, SubmitJob)
                jobs.append(order)
        sizes.append(len(snapshot(case)))
        assert len(case.envs) < 20
    assert sizes[1] < sizes[0] * 1.2


def test_one_event_begins_a_bounded_number_of_activities() -> None:
    case = Case.blank()
    orders = give(case, StartCase(case=CaseId("c"), flow=flow(wide(100_000))))
    assert sum(isinstance(order, SubmitJob) for order in orders) <= 500
    assert isinstance(orders[-1], ContinueLater)
