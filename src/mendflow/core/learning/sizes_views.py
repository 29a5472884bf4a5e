"""What was learned of a name's jobs, put together for people."""

from collections.abc import Sequence
from typing import Final

from mendflow.core.learning.sizes_requests import (
    MEMORY_STEP_BYTES,
    TIME_STEP_MS,
    JobSizes,
    LearnedRun,
    rounded_up,
)
from mendflow.core.model.size_views import SizeView

GB_HOUR: Final = 1e9 * 3_600_000
"""Bytes and milliseconds of one GB hour."""


def size_view(flow: str, name: str, jobs: int, runs: Sequence[LearnedRun]) -> SizeView:
    """`runs` are the latest, in the order in which they ended; at least one."""
    last, sizes = runs[-1], JobSizes(runs)
    usual = sorted(run.input_bytes for run in runs)[len(runs) // 2]
    memory = sizes.memory.ask(usual, last.memory_max_bytes)
    time = sizes.time.ask(usual, last.wall_max_ms)
    return SizeView(
        flow=flow,
        name=name,
        jobs=jobs,
        runs=len(runs),
        memory_asked_bytes=last.asked_bytes,
        memory_max_bytes=last.memory_max_bytes,
        memory_used_bytes=max(run.peak_bytes for run in runs),
        memory_next_bytes=rounded_up(memory.amount, MEMORY_STEP_BYTES, last.memory_max_bytes),
        memory_basis=memory.basis,
        wall_asked_ms=last.asked_ms,
        wall_max_ms=last.wall_max_ms,
        wall_used_ms=max(run.ran_ms for run in runs),
        wall_next_ms=rounded_up(time.amount, TIME_STEP_MS, last.wall_max_ms),
        wall_basis=time.basis,
        saved_gb_hours=sum(_saved(run) for run in runs) / GB_HOUR,
    )


def _saved(run: LearnedRun) -> float:
    return max(0, run.memory_max_bytes - run.asked_bytes) * run.ran_ms if run.asked_bytes else 0.0
