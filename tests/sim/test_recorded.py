"""What the system that recorded a trace took for itself is learned from the trace, and told."""

import msgspec

from mendflow.formats.wfformat import Trace, TraceTask
from mendflow.sim.recorded_overheads import (
    SystemOverhead,
    implied_overhead_s,
    learned_overhead,
    makespan_s,
    recorded_run,
)


def trace(makespan: float) -> Trace:
    """One task, then four beside each other, then one; each takes ten seconds."""
    middle = {f"m{n}": TraceTask(id=f"m{n}", needs=("a",), runtime_s=10) for n in range(4)}
    ends = {"a": TraceTask(id="a", runtime_s=10), "z": TraceTask(id="z", needs=tuple(middle), runtime_s=10)}
    return Trace(name="t", version="1.5", tasks={**ends, **middle}, makespan_s=makespan, machines=1, system="Pegasus")


def test_tasks_begin_when_there_is_a_slot_and_what_they_need_is_over() -> None:
    assert [makespan_s(trace(0), slots) for slots in (1, 2, 4, 100)] == [60, 40, 30, 30]
    assert makespan_s(trace(0), 4, SystemOverhead(job_s=5)) == 45
    assert makespan_s(trace(0), 4, SystemOverhead(gap_s=2)) == 12 + 8 + 10 + 12
    assert makespan_s(trace(0), 4, SystemOverhead(job_s=5, gap_s=2)) == 12 + 8 + 10 + 12 + 15


def test_what_a_task_cost_beside_its_own_time_follows_from_the_recorded_total() -> None:  # PJ-10
    assert abs(implied_overhead_s(trace(90), 4) - 20) < 1e-6
    assert abs(implied_overhead_s(trace(90), 2) - 12.5) < 1e-6
    assert implied_overhead_s(trace(25), 4) == 0  # the tasks alone took longer: nothing is left to explain


def test_a_trace_that_does_not_say_how_long_it_took_tells_nothing() -> None:
    assert recorded_run(trace(0), 4, scale=1.0, added=True) is None
    found = recorded_run(trace(90), 4, scale=0.1, added=True)
    assert found is not None and round(found.overhead.job_s, 6) == 2 and found.makespan_s == 9


def wide(tasks: int, overhead: SystemOverhead) -> Trace:
    """Tasks beside each other on as many cores, as a system with this overhead would have recorded them."""
    beside = {f"t{n}": TraceTask(id=f"t{n}", runtime_s=30) for n in range(tasks)}
    made = Trace(name=f"w{tasks}", version="1.5", tasks=beside, machines=1, machine_cores=tasks, system="Pegasus")
    return msgspec.structs.replace(made, makespan_s=makespan_s(made, tasks, overhead))


def test_what_several_traces_of_a_system_cost_foretells_another_one() -> None:  # PJ-10
    true = SystemOverhead(job_s=20, gap_s=6)
    found = learned_overhead([wide(1, true), wide(3, true), wide(40, true)])
    assert abs(found.job_s + found.gap_s - 26) < 2 and abs(found.gap_s - 6) < 0.5
    foretold = makespan_s(wide(100, true), 100, found)
    assert abs(foretold / wide(100, true).makespan_s - 1) < 0.05
    fit = SystemOverhead(job_s=implied_overhead_s(wide(3, true), 3))
    assert makespan_s(wide(100, true), 100, fit) < 0.2 * wide(100, true).makespan_s, "one trace's fit foretells nothing"


def test_a_run_says_from_which_other_traces_its_overhead_was_learned() -> None:
    true = SystemOverhead(job_s=20, gap_s=6)
    found = recorded_run(wide(9, true), 9, scale=2.0, added=True, like=[wide(1, true), wide(40, true)])
    assert found is not None and found.learned_from == ("w1", "w40") and found.makespan_s == 2 * (9 * 6 + 30 + 20)
    assert abs(found.overhead.job_s + found.overhead.gap_s - 52) < 4
