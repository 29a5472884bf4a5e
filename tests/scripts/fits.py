"""A flow with values of Python, as a script has it."""

import os
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mendflow import FlowFailed, Runner, flow, job


@dataclass
class Fit:
    slope: float
    day: date
    residuals: NDArray[np.float64]


@job
def fit(xs: NDArray[np.float64], day: date) -> Fit:
    return Fit(float(xs.mean()), day, xs - xs.mean())


@job
def plot(fit: Fit) -> Path:
    Path("plot.txt").write_text(f"{fit.slope} {fit.day}")
    return Path("plot.txt")


@job
def count(table: Path, weights: dict[int, float]) -> int:
    return len(table.read_text().split()) * len(weights)


@job
def fail(fit: Any) -> None:
    print("about to fail")
    raise ValueError(f"the slope is {fit.slope}")


@job
def doze(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@job
def halves(number: int) -> NDArray[np.float64]:
    return np.full(number, 0.5)


@job
def where(values: NDArray[np.float64]) -> dict[str, Any]:
    """The sum, and the file that the array is mapped from, with the number of its links."""
    mapped: Any = values.base
    return {"sum": float(values.sum()), "read": [str(mapped.filename), os.stat(mapped.filename).st_nlink]}


@flow
def handing_on(number: int) -> dict[str, Any]:
    return where(halves(number))


@flow
def study(xs: NDArray[np.float64], table: Path, day: date = date(2026, 3, 1)) -> dict[str, Any]:
    fitted = fit(xs, day)
    return {"fit": fitted, "plot": plot(fitted), "slope": fitted.slope, "count": count(table, {1: 0.5, 2: 1.5})}


@flow
def single(xs: Any) -> Fit:
    return fit(xs, date(2026, 1, 1))


@flow
def failing(xs: Any) -> None:
    fail(fit(xs, date(2026, 1, 1)))


@flow
def dozing(seconds: float) -> float:
    return doze(seconds)


def main() -> None:
    """What tests/scripts/test_runs.py looks for in the output."""
    Path("table.txt").write_text("a b c")
    found = study.run(np.arange(100_000.0), table=Path("table.txt"))
    assert type(found["fit"]) is Fit and found["fit"].day == date(2026, 3, 1), found
    assert found["fit"].residuals.shape == (100_000,) and found["slope"] == 49999.5 and found["count"] == 6
    print("plot:", found["plot"].read_text())
    handle = single.submit([1.0, 2.0])
    assert handle.wait(progress=False) == "completed" and handle.done
    print("single:", handle.result())
    slow = dozing.submit(600)
    try:
        slow.wait(0.1, progress=False)
    except TimeoutError as error:
        print("timeout:", error)
    print("why:", slow.why().partition("\n")[0])
    slow.cancel()
    print("cancelled:", slow.wait(progress=False))
    with Runner(folder="elsewhere", jobs=1, progress=False) as runner:
        print("elsewhere:", runner.run(dozing, 0.0))
    try:
        slow.result()
    except FlowFailed as error:
        print("failed:", error)
    if "fail" in sys.argv:
        failing.run([1.0, 2.0])


if __name__ == "__main__":
    main()
