"""What the system that recorded a trace took for itself: submission, queue and staging, as far as its total tells.

Traces say how long each task computed and how long all took together, and rarely when a task began. So one amount is
learned for a trace: what each task must have cost beside its own time for the total to be what was recorded."""

import heapq
from collections.abc import Sequence
from typing import Final

import msgspec

from mendflow.formats.wfformat import Trace

HALVINGS: Final = 50


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A trace as it was recorded. `overhead_s` is what each task cost beside its own time on so many slots; `added`
    says whether that is simulated."""

    makespan_s: float
    machines: int
    system: str
    overhead_s: float
    added: bool


def recorded_run(trace: Trace, slots: int, *, scale: float, added: bool) -> RecordedRun | None:
    """None if the trace does not say how long it took."""
    if not trace.makespan_s or not trace.tasks:
        return None
    return RecordedRun(
        makespan_s=trace.makespan_s * scale,
        machines=trace.machines,
        system=trace.system,
        overhead_s=implied_overhead_s(trace, slots) * scale,
        added=added,
    )


def implied_overhead_s(trace: Trace, slots: int) -> float:
    """What each task must have cost beside its own time on so many slots; 0 if the tasks alone explain the total."""
    least, most = 0.0, trace.makespan_s
    if makespan_s(trace, slots, 0.0) >= trace.makespan_s:
        return 0.0
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        if makespan_s(trace, slots, middle) < trace.makespan_s:
            least = middle
        else:
            most = middle
    return least


def makespan_s(trace: Trace, slots: int, overhead_s: float) -> float:
    """How long the tasks take on so many slots, each begun as soon as there is one and what it needs is over."""
    missing = {task.id: len(set(task.needs)) for task in trace.tasks.values()}
    followers: dict[str, list[str]] = {}
    for task in trace.tasks.values():
        for needed in set(task.needs):
            followers.setdefault(needed, []).append(task.id)
    ready = [id for id, count in missing.items() if not count]
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        begun, ready = ready[: max(0, slots - len(running))], ready[max(0, slots - len(running)) :]
        for id in begun:
            heapq.heappush(running, (now + (trace.tasks[id].runtime_s or 0.0) + overhead_s, id))
        now, ended = heapq.heappop(running)
        ready += _now_ready(followers.get(ended, ()), missing)
    return now


def _now_ready(waiting: Sequence[str], missing: dict[str, int]) -> list[str]:
    for id in waiting:
        missing[id] -= 1
    return [id for id in waiting if not missing[id]]
