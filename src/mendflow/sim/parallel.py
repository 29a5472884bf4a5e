"""Runs many simulations in parallel, one process each; they share nothing, so the results do not depend on it."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_parallel(
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int, *, chunk: int = 1
) -> Iterator[Result]:
    """The results in the order of the tasks. `chunk` is how many tasks a process gets at a time."""
    if processes <= 1 or len(tasks) <= 1:
        yield from map(work, tasks)
        return
    # A fresh interpreter each: a fork would copy the caller's threads and loops.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(processes, len(tasks)), mp_context=context) as pool:
        yield from pool.map(work, tasks, chunksize=chunk)
