"""Learned sizes, whatever was learned: within the bound, above what failed, and more if more was used."""

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.learning.sizes import FinishedRun, SizeModel, estimates
from mendflow.core.learning.sizes_requests import JobSizes, LearnedRun
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, Resources

amounts = st.integers(1, 10**12)
bounds = st.one_of(st.just(0), amounts)
runs = st.builds(FinishedRun, st.integers(0, 10**13), amounts, bounds, st.floats(1, 1e9))
learned = st.builds(LearnedRun, st.integers(0, 10**13), amounts, st.integers(1, 10**9), bounds, bounds)


@given(st.lists(runs, max_size=30), st.integers(0, 10**13), amounts)
def test_a_first_attempt_never_asks_for_more_than_its_bound(known: list[FinishedRun], inputs: int, bound: int) -> None:
    # LE-2
    assert 0 <= SizeModel(runs=known).ask(inputs, bound).amount <= bound


@given(st.lists(runs, max_size=30), amounts, bounds)
def test_a_further_attempt_always_asks_for_more(known: list[FinishedRun], last: int, bound: int) -> None:  # LE-2
    asked = SizeModel(runs=known).ask_more(last, bound).amount
    assert asked > last
    assert bound <= last or asked <= bound


@given(st.lists(learned, max_size=20), amounts, st.lists(amounts, max_size=3), bounds)
def test_a_job_stays_within_its_bound_and_above_what_failed_it(
    known: list[LearnedRun], least: int, limits: list[int], bound: int
) -> None:  # LE-2
    needs = Resources(memory_auto=True, memory_bytes=least, memory_max_bytes=bound)
    history = [
        Attempt(
            fence=1,
            pilot=PilotId("p"),
            granted_at=1,
            fault=Fault(name="memoryLimit", category=Category.MEMORY, message="", data={"limit_bytes": limit}),
        )
        for limit in limits
    ]
    spec = JobSpec(item=ItemId("a"), resources=needs)
    job = Job(id=JobId("f-1/1"), case=CaseId("f-1"), spec=spec, name="a", history=history)
    asked = JobSizes(known).request(job).memory_bytes
    floor = max([least, *(limit + 1 for limit in limits)])
    assert asked >= (min(floor, bound) if bound else floor)
    assert not bound or asked <= bound


@given(st.lists(runs, min_size=1, max_size=30), st.integers(0, 10**13), st.data())
def test_who_used_more_is_never_estimated_lower(known: list[FinishedRun], inputs: int, data: st.DataObject) -> None:
    # LE-2
    at = data.draw(st.integers(0, len(known) - 1))
    more = data.draw(st.integers(known[at].used, 2 * 10**12))
    run = known[at]
    raised = [*known[:at], FinishedRun(run.input_bytes, more, run.bound, run.weight), *known[at + 1 :]]
    before, after = estimates(known, inputs), estimates(raised, inputs)
    assert after["largest"] >= before["largest"] and after["similar input"] >= before["similar input"]


@given(st.lists(runs, min_size=3, max_size=30), st.integers(0, 10**13), amounts)
def test_the_same_history_gives_the_same_request(known: list[FinishedRun], inputs: int, bound: int) -> None:  # LE-2
    assert SizeModel(runs=known).ask(inputs, bound) == SizeModel(runs=known).ask(inputs, bound)
