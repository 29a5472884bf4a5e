"""A trace in the simulator takes what its own order and the slots make it take, and a probe tells what jobs cost."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.formats.wfformat import Scale, Trace, TraceFlow, as_flow, by_name, load_trace
from mendflow.sim.compare import MachineSize, TraceComparison, fitted_cost_s, probe_of, simulate_trace
from tests.formats.wfformat.traces import OURS, REAL, made_up

SECOND = Scale(time=1.0, size=0.0)
GIGABYTES = 64 * 1024**3


def here(slots: int) -> MachineSize:
    return MachineSize(slots=slots, cpus=float(slots), memory_bytes=GIGABYTES)


def ready(trace: Trace, scale: Scale = SECOND) -> TraceFlow:
    return as_flow(trace, scale, by_name)


@pytest.mark.parametrize(("slots", "seconds"), [(1, 8.0), (2, 5.0), (6, 3.0)])
def test_a_fork_and_join_takes_as_many_rounds_as_the_slots_make_it(slots: int, seconds: float) -> None:
    middle = {f"m{n}": ["first"] for n in range(6)}
    trace = made_up({"first": [], **middle, "last": list(middle)})
    result = simulate_trace(ready(trace), here(slots), cost_s=0.0)
    assert result.status == "completed"
    assert result.turnaround_s == pytest.approx(seconds, abs=0.1)


def test_what_a_job_costs_is_added_to_each() -> None:
    chain = made_up({"a": [], "b": ["a"], "c": ["b"]})
    assert simulate_trace(ready(chain), here(2), cost_s=0.5).turnaround_s == pytest.approx(4.5, abs=0.1)


def test_cores_that_a_task_asks_for_are_held_in_the_simulator_too() -> None:
    """Two tasks of two cores each fit one after the other into two slots with two cores."""
    trace = load_trace(OURS)
    result = simulate_trace(ready(trace, Scale(time=0.1, size=0.0)), here(2), cost_s=0.0)
    assert result.turnaround_s == pytest.approx(2.0 + 3.0 + 2.55 + 1.0, abs=0.1)
    wide = simulate_trace(ready(trace, Scale(time=0.1, size=0.0)), here(4), cost_s=0.0)
    assert wide.turnaround_s == pytest.approx(2.0 + 3.0 + 1.0, abs=0.1)


def test_the_probe_is_like_the_trace_and_tells_what_a_job_costs() -> None:
    trace = load_trace(OURS)
    scale = Scale(time=0.01)
    probe = probe_of(trace, scale, slots=3)
    mean_s = sum(task.runtime_s or 0 for task in trace.tasks.values()) / 4
    assert all(0.5 * mean_s <= (task.runtime_s or 0) <= 1.5 * mean_s for task in probe.tasks.values())
    assert {(len(task.reads), len(task.makes)) for task in probe.tasks.values()} == {(2, 1)}
    made = ready(probe, scale)
    measured_s = simulate_trace(made, here(3), cost_s=0.123).turnaround_s
    assert fitted_cost_s(made, here(3), measured_s) == pytest.approx(0.123, abs=0.002)


def compared_with(**changed: float) -> TraceComparison:
    made = TraceComparison(
        trace="t",
        jobs=1,
        slots=1,
        scale=SECOND,
        mean_s=1.0,
        probes_s=(1.0,),
        cost_s=0.1,
        real_s=10.0,
        simulated_s=10.9,
    )
    return msgspec.structs.replace(made, **changed)


def test_a_comparison_says_by_how_much_the_simulator_is_off() -> None:
    assert compared_with().deviation == pytest.approx(0.09)
    assert compared_with().holds
    assert not compared_with(simulated_s=8.9).holds
    assert not compared_with(simulated_s=11.1).holds


def test_a_comparison_of_jobs_that_cost_more_than_they_take_says_so() -> None:
    assert not compared_with().of_costs
    assert compared_with(mean_s=0.1).of_costs


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_trace_ends_well_in_the_simulator_and_no_sooner_than_it_can(path: Path) -> None:
    """With its own times and sizes. No schedule is shorter than the longest way through, or than the work by the
    slots."""
    trace = load_trace(path)
    slots = 8
    result = simulate_trace(ready(trace, Scale(size=1.0, cores_most=1, memory_bytes_most=1)), here(slots), cost_s=0.0)
    assert result.status == "completed"
    assert len(result.records) == len(trace.tasks)
    work_s = sum(task.runtime_s or 0 for task in trace.tasks.values())
    assert result.turnaround_s >= max(longest_way_s(trace), work_s / slots) - 0.01


@given(st.data())
def test_whatever_waits_for_what_no_task_begins_before_what_it_needs_is_over(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    tasks = {
        f"t{number}": [f"t{each}" for each in sorted(data.draw(st.sets(st.integers(0, number - 1), max_size=3)))]
        if number
        else []
        for number in range(count)
    }
    made = {task: [f"{task}.out"] for task in tasks}
    read = {task: [f"{need}.out" for need in needs] for task, needs in tasks.items()}
    trace = made_up(tasks, reads=read, makes=made, seconds=data.draw(st.sampled_from([0.0, 0.01, 5.0])))
    result = simulate_trace(ready(trace), here(data.draw(st.integers(1, 4))), cost_s=0.02)
    begun = {record.item: record.granted_s for record in result.records}
    ended = {record.item: record.ended_s for record in result.records}
    assert len(ended) == count
    assert all(begun[task] >= ended[need] for task, needs in tasks.items() for need in needs)


def longest_way_s(trace: Trace) -> float:
    ends: dict[str, float] = {}
    pending = dict(trace.tasks)
    while pending:
        for id, task in list(pending.items()):
            if all(need in ends for need in task.needs):
                ends[id] = max((ends[need] for need in task.needs), default=0.0) + (task.runtime_s or 0.0)
                del pending[id]
    return max(ends.values())


def test_the_same_seed_gives_the_same_records() -> None:
    made = ready(load_trace(OURS), Scale(size=1.0))
    first, second = (simulate_trace(made, here(2), cost_s=0.01, seed=5) for _ in range(2))
    assert json.dumps([str(each) for each in first.records]) == json.dumps([str(each) for each in second.records])
