"""What the system that recorded a trace took for itself: submission, queue and staging, as far as its total tells.

Traces say how long each task computed and how long all took together, and rarely when a task began. From one trace one
amount can be told: what each task must have cost beside its own time for the total to be what was recorded. That is a
fit, and says nothing of other traces. From several traces of a system two amounts are learned, what each job costs and
how far apart jobs begin, and these predict another trace of it."""

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from mendflow.formats.wfformat import Trace

HALVINGS: Final = 50
JOB_S_MAX: Final = 4_096.0
GAP_S_MAX: Final = 256.0
STEPS: Final = 10
"""Into how many parts each way the amounts between 0 and their most are searched first; each finer search halves the
steps around the best."""
REFINEMENTS: Final = 5


class SystemOverhead(msgspec.Struct, frozen=True, kw_only=True):
    """What a system takes for itself: `job_s` for each job, and jobs begin at least `gap_s` apart."""

    job_s: float = 0.0
    gap_s: float = 0.0


NO_OVERHEAD: Final = SystemOverhead()


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A trace as it was recorded. `overhead` is what its system took for itself; `added` says whether that is
    simulated, and `learned_from` from which other traces it was learned: none, if from its own total."""

    makespan_s: float
    machines: int
    system: str
    overhead: SystemOverhead
    added: bool
    learned_from: tuple[str, ...] = ()


def recorded_run(
    trace: Trace, slots: int, *, scale: float, added: bool, like: Sequence[Trace] = ()
) -> RecordedRun | None:
    """None if the trace does not say how long it took. With `like` the overhead is learned from those traces."""
    if not trace.makespan_s or not trace.tasks:
        return None
    found = learned_overhead(like) if like else SystemOverhead(job_s=implied_overhead_s(trace, slots))
    return RecordedRun(
        makespan_s=trace.makespan_s * scale,
        machines=trace.machines,
        system=trace.system,
        overhead=SystemOverhead(job_s=found.job_s * scale, gap_s=found.gap_s * scale),
        added=added,
        learned_from=tuple(each.name for each in like),
    )


def learned_overhead(traces: Sequence[Trace]) -> SystemOverhead:
    """The overhead with which the totals of these traces are told best, each on a slot for each core of its machines:
    their factors of error, together, are least."""
    assert all(trace.makespan_s and trace.tasks for trace in traces), "only what says how long it took teaches"

    def error(job_s: float, gap_s: float) -> float:
        overhead = SystemOverhead(job_s=job_s, gap_s=gap_s)
        made = [(makespan_s(each, max(1, each.machine_cores), overhead), each.makespan_s) for each in traces]
        return sum(abs(math.log(max(simulated_s, 1e-3) / recorded_s)) for simulated_s, recorded_s in made)

    return _least(error)


def _least(error: Callable[[float, float], float]) -> SystemOverhead:
    """Search on a grid whose steps are factors, and again in finer steps around what was best."""
    least_s = 0.25
    tried: dict[tuple[float, float], float] = {}

    def best_of(jobs: Sequence[float], gaps: Sequence[float]) -> tuple[float, float]:
        for pair in ((job_s, gap_s) for job_s in jobs for gap_s in gaps):
            if pair not in tried:
                tried[pair] = error(*pair)
        return min(tried, key=lambda pair: (tried[pair], pair))

    def grid(most: float) -> list[float]:
        factor = (most / least_s) ** (1 / STEPS)
        return [0.0, *(least_s * factor**step for step in range(STEPS + 1))]

    job_s, gap_s = best_of(grid(JOB_S_MAX), grid(GAP_S_MAX))
    factor = 2.0
    for _ in range(REFINEMENTS):
        factor = math.sqrt(factor)
        job_s, gap_s = best_of([job_s / factor, job_s, job_s * factor], [gap_s / factor, gap_s, gap_s * factor])
    return SystemOverhead(job_s=job_s, gap_s=gap_s)


def implied_overhead_s(trace: Trace, slots: int) -> float:
    """What each task must have cost beside its own time on so many slots; 0 if the tasks alone explain the total."""
    least, most = 0.0, trace.makespan_s
    if makespan_s(trace, slots) >= trace.makespan_s:
        return 0.0
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        if makespan_s(trace, slots, SystemOverhead(job_s=middle)) < trace.makespan_s:
            least = middle
        else:
            most = middle
    return least


def makespan_s(trace: Trace, slots: int, overhead: SystemOverhead = NO_OVERHEAD) -> float:
    """How long the tasks take on so many slots, each begun as soon as there is one, what it needs is over, and the one
    before it was begun long enough ago."""
    missing = {task.id: len(set(task.needs)) for task in trace.tasks.values()}
    followers: dict[str, list[str]] = {}
    for task in trace.tasks.values():
        for needed in set(task.needs):
            followers.setdefault(needed, []).append(task.id)
    ready = [id for id, count in missing.items() if not count]
    running: list[tuple[float, str]] = []
    now = begun_s = 0.0
    while ready or running:
        begun, ready = ready[: max(0, slots - len(running))], ready[max(0, slots - len(running)) :]
        for id in begun:
            begun_s = max(now, begun_s) + overhead.gap_s
            heapq.heappush(running, (begun_s + (trace.tasks[id].runtime_s or 0.0) + overhead.job_s, id))
        now, ended = heapq.heappop(running)
        ready += _now_ready(followers.get(ended, ()), missing)
    return now


def _now_ready(waiting: Sequence[str], missing: dict[str, int]) -> list[str]:
    for id in waiting:
        missing[id] -= 1
    return [id for id in waiting if not missing[id]]
