"""What the system that recorded a trace took for itself is learned from the trace, and told."""

from mendflow.formats.wfformat import Trace, TraceTask
from mendflow.sim.recorded_overheads import implied_overhead_s, makespan_s, recorded_run


def trace(makespan: float) -> Trace:
    """One task, then four beside each other, then one; each takes ten seconds."""
    middle = {f"m{n}": TraceTask(id=f"m{n}", needs=("a",), runtime_s=10) for n in range(4)}
    ends = {"a": TraceTask(id="a", runtime_s=10), "z": TraceTask(id="z", needs=tuple(middle), runtime_s=10)}
    return Trace(name="t", version="1.5", tasks={**ends, **middle}, makespan_s=makespan, machines=1, system="Pegasus")


def test_tasks_begin_when_there_is_a_slot_and_what_they_need_is_over() -> None:
    assert [makespan_s(trace(0), slots, 0) for slots in (1, 2, 4, 100)] == [60, 40, 30, 30]
    assert makespan_s(trace(0), 4, 5) == 45


def test_what_a_task_cost_beside_its_own_time_follows_from_the_recorded_total() -> None:  # PJ-10
    assert abs(implied_overhead_s(trace(90), 4) - 20) < 1e-6
    assert abs(implied_overhead_s(trace(90), 2) - 12.5) < 1e-6
    assert implied_overhead_s(trace(25), 4) == 0  # the tasks alone took longer: nothing is left to explain


def test_a_trace_that_does_not_say_how_long_it_took_tells_nothing() -> None:
    assert recorded_run(trace(0), 4, scale=1.0, added=True) is None
    found = recorded_run(trace(90), 4, scale=0.1, added=True)
    assert found is not None and round(found.overhead_s, 6) == 2 and found.makespan_s == 9
