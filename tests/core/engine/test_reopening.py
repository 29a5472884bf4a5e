"""A case that failed goes on from where it stood: its journal is played without the failures that it ended by."""

import msgspec
import pytest

from mendflow.core.engine import Replay, outstanding_orders, plan_reopening, snapshot, validate
from mendflow.core.engine.messages import Event, FinishItem, SubmitJob
from mendflow.core.engine.reopening import play
from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import (
    Activity,
    Catch,
    ForEach,
    JobActivity,
    LinkSource,
    Parallel,
    Scope,
    Sequence,
    Throw,
    UserTask,
)
from mendflow.core.model.jobs import Outcome
from tests.core.engine.world import Play, failed, started


def job(name: str, **parts: object) -> JobActivity:
    return msgspec.structs.replace(JobActivity(name=name, command=f"run {name}"), **parts)


def reopened(world: Play) -> Play:
    """The same world, with the case reopened as a server would do it."""
    plan = plan_reopening(world.journal)
    event = Event(world.now, plan.fact("somebody"))
    replay = Replay()
    for each in [*world.journal, event]:
        replay.take(each)
    world.journal.append(event)
    world.case = replay.case
    validate(world.case)
    world.out = {order.serial: order for order in outstanding_orders(world.case) if isinstance(order, SubmitJob)}
    return world


def in_order(*names: str) -> Sequence:
    return Sequence(name="all", body=tuple(job(name) for name in names))


def test_a_failed_job_waits_again_and_what_was_completed_stays() -> None:
    # DU-7
    world = started(in_order("a", "b", "c"))
    world.finish(1, Outcome(outputs={"n": 1}))
    world.finish(2, failed())
    assert world.status == "failed"
    reopened(world)
    assert (world.status, world.jobs, sorted(world.out)) == ("running", ["b"], [2])
    world.finish(2, Outcome())
    world.finish(3, Outcome())
    assert world.status == "completed"


def test_a_case_can_be_reopened_again_and_again() -> None:
    world = started(in_order("a", "b"))
    world.finish(1, Outcome())
    for _ in range(3):
        world.finish(2, failed())
        assert world.status == "failed"
        reopened(world)
    world.finish(2, Outcome())
    assert world.status == "completed"


def test_a_reopening_that_was_cut_short_by_a_kill_is_made_again() -> None:
    world = started(Parallel(name="all", branches=(job("a"), job("b"))))
    world.finish(1, failed())
    assert world.status == "failed"
    for _ in range(2):  # the entry is in the journal, and the case is still a failed one
        world.journal.append(Event(world.now, plan_reopening(world.journal).fact("somebody")))
    reopened(world)
    assert (world.status, world.jobs) == ("running", ["a", "b"])
    for serial in sorted(world.out):
        world.finish(serial, Outcome())
    assert world.status == "completed"


def test_a_job_that_was_cancelled_with_the_case_begins_again_under_a_new_number() -> None:
    world = started(Parallel(name="both", branches=(job("a"), job("b"))))
    world.finish(1, failed())
    assert world.status == "failed"
    reopened(world)
    submitted = {serial: order for serial, order in world.out.items() if isinstance(order, SubmitJob)}
    assert {order.spec.item: serial for serial, order in submitted.items()} == {"a": 1, "b": 3}


@pytest.mark.parametrize("last", [1, 2])
def test_what_ran_on_beside_the_failure_is_kept(last: int) -> None:
    body = Parallel(
        name="all",
        on_fault="finish",
        branches=(
            job("a", sources=(LinkSource(link="ab"),)),
            job("b", targets=("ab",)),
            job("c", sources=(LinkSource(link="cd"),)),
            job("d", targets=("cd",)),
        ),
        links=("ab", "cd"),
    )
    world = started(body)
    world.finish(1, failed())
    for _ in range(last):
        if world.status != "failed":
            world.finish(next(serial for serial in world.out if serial != 1), Outcome())
    while world.status != "failed":
        world.finish(next(iter(world.out)), Outcome())
    reopened(world)
    assert "a" in world.jobs
    while world.status != "completed":
        world.finish(next(iter(world.out)), Outcome())
    done = [
        event.fact.serial for event in world.journal if isinstance(event.fact, FinishItem) and event.fact.outcome.ok
    ]
    assert len(done) == len(set(done))


def test_the_journal_of_a_reopened_case_gives_its_state_each_time_that_it_is_played() -> None:
    world = started(in_order("a", "b", "c"))
    world.finish(1, Outcome())
    world.finish(2, failed())
    reopened(world)
    world.finish(2, Outcome())
    replay = Replay()
    for event in world.journal:
        replay.take(event)
    assert snapshot(replay.case) == snapshot(world.case)
    assert replay.case.position == len(world.journal)


def test_iterations_that_completed_are_not_run_again() -> None:
    body = ForEach(name="loop", items="${{ [1, 2, 3] }}", body=job("a"))
    world = started(body)
    world.finish(1, Outcome())
    while world.status == "running":
        world.finish(next(iter(world.out)), failed())
    reopened(world)
    assert "a[0]" not in world.jobs
    while world.status == "running":
        world.finish(next(iter(world.out)), Outcome())
    assert world.status == "completed"


HANDLED = Scope(
    name="scope",
    body=job("a"),
    catches=(Catch(body=Sequence(name="h", body=(job("cleanup"), Throw(name="t", fault="again")))),),
)


@pytest.mark.parametrize(
    ("body", "outcomes", "reason"),
    [
        (in_order("a"), [Outcome()], "has not failed"),
        (HANDLED, [failed(), Outcome()], "has gone on after its failure"),
        (Sequence(name="s", body=(job("a"), Throw(name="t", fault="own"))), [Outcome()], "failed by itself"),
    ],
)
def test_a_case_that_cannot_go_on_says_why(body: Activity, outcomes: list[Outcome], reason: str) -> None:
    world = started(body)
    for outcome in outcomes:
        world.finish(next(iter(world.out)), outcome)
    with pytest.raises(Conflict, match=reason):
        plan_reopening(world.journal)


def test_a_user_task_that_was_open_is_offered_again() -> None:
    task = UserTask(name="ask", title="Publish?", role="editor")
    world = started(Parallel(name="both", branches=(job("a"), task)))
    world.fail("a")
    plan = plan_reopening(world.journal)
    assert [each.item for each in plan.restarted] == ["ask"]
    assert [each.item for each in plan.failed] == ["a"]


def test_played_without_a_failure_the_case_is_as_before_it() -> None:
    world = started(in_order("a", "b"))
    world.finish(1, Outcome())
    before = snapshot(world.case)
    world.finish(2, failed())
    case = play(world.journal, {2})
    case.position = 2
    assert snapshot(case) == before
