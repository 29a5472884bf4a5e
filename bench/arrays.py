"""How long an array takes from one Python job to the next, beside np.save and np.load alone: `python -m bench.arrays`.

Both are done in the same folder, so on the same disk. The jobs are those of a flow on a server with one pilot that is
already up. The first run of the flow is not counted: it loads numpy."""

import argparse
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mendflow import Runner, flow, job


@job(cache=False)
def make(count: int, seed: int) -> NDArray[np.float64]:
    """Other content each time: what a pilot has already costs nothing."""
    values = np.full(count, 0.5)
    values[0] = seed
    return values


@job(cache=False)
def add(values: NDArray[np.float64]) -> float:
    return float(values.sum())


@job(cache=False)
def make_and_add(count: int, seed: int) -> float:
    values = np.full(count, 0.5)
    values[0] = seed
    return float(values.sum())


@flow
def through(count: int, seed: int) -> float:
    return add(make(count, seed))


@flow
def within(count: int, seed: int) -> float:
    return make_and_add(count, seed)


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def plain(folder: Path, count: int, *, sync: bool) -> float:
    """Save and load it, as two programs would do by themselves; with `sync` it is on the disk before it is told of."""
    path = folder / "plain.npy"
    values = np.full(count, 0.5)

    def work() -> None:
        with path.open("wb") as file:
            np.save(file, values)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        assert float(np.load(path).sum()) == count / 2

    try:
        return seconds(work)
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[1, 100, 1000])
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="bench-arrays-") as place:
        folder = Path(place)
        with Runner(folder=folder / "data", jobs=2, progress=False, cache="none") as runner:
            runner.run(through, 10, 0)
            print(f"{'MB':>6} {'save+load':>10} {'with fsync':>10} {'two jobs':>10} {'one job':>10} {'passing on':>10}")
            for megabytes in given.megabytes:
                count = megabytes * 1_000_000 // 8
                rows = [
                    (
                        plain(folder, count, sync=False),
                        plain(folder, count, sync=True),
                        seconds(functools.partial(runner.run, through, count, seed)),
                        seconds(functools.partial(runner.run, within, count, seed)),
                    )
                    for seed in range(given.times)
                ]
                alone, synced, two, one = (statistics.median(column) for column in zip(*rows, strict=True))
                print(
                    f"{megabytes:6} {alone:10.2f} {synced:10.2f} {two:10.2f} {one:10.2f} {two - one:10.2f}", flush=True
                )


if __name__ == "__main__":
    main()
