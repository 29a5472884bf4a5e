"""Values of Python in flow files: the same as in flows in Python."""

import pytest

from tests.cli.conftest import Shell

WORK = """
from dataclasses import dataclass
from datetime import date
import numpy as np

@dataclass
class Fit:
    day: date
    weights: np.ndarray

def make(count: int, day: date) -> Fit:
    return Fit(day, np.arange(count))

def use(fit):
    return {"sum": int(fit.weights.sum()), "year": fit.day.year}
"""
FLOW = """
name: fits
inputs:
  day: 2026-03-01
jobs:
  make:
    python: work.py:make
    with: {count: 100000, day: "${{ inputs.day }}"}
  use:
    python: work.py:use
    with: ["${{ jobs.make.outputs }}"]
  size:
    run: echo "bytes=$(wc -c < a.npy)" >> "$MENDFLOW_OUTPUT"
    inputs: {a.npy: "${{ jobs.make.outputs.weights }}"}
outputs:
  used: ${{ jobs.use.outputs }}
  bytes: ${{ jobs.size.outputs.bytes }}
  day: ${{ jobs.make.outputs.day }}
"""


@pytest.mark.full
def test_jobs_of_a_flow_file_pass_on_values_and_use_them_again(shell: Shell) -> None:  # DU-8
    shell.write("work.py", WORK)
    shell.write("fits.yaml", FLOW)
    out = shell.ok("run", "fits.yaml")
    assert 'used: {"sum":4999950000,"year":2026}' in out and "bytes: 800128" in out and "day: 2026-03-01" in out
    shell.write("work.py", WORK.replace("int(fit", "1 + int(fit"))
    out = shell.ok("run", "fits.yaml")
    assert "2 done, 1 cached" in out and '"sum":4999950001' in out, out


DATED = """
from datetime import date, datetime
from pathlib import Path
from mendflow import flow, job


@job
def tell(since: datetime, day: date | None) -> str:
    return f"{since} {day}"


@flow
def dated(since: datetime, day: date | None = None, any: datetime | str = "now"):
    return tell(since, day)
"""


def test_inputs_that_are_dates_are_checked_before_anything_runs(shell: Shell) -> None:  # DU-8
    shell.write("dated.py", DATED)
    refused = shell("run", "dated.py", "--input", "since=yesterday", "--input", "day=2026-13-01", "--quiet")
    told = " ".join(refused.stderr.split())
    assert refused.returncode == 2 and not (shell.folder / ".mendflow").exists()
    assert "input since is a date and a time such as 2026-03-01T08:30:00+01:00, or a date; 'yesterday' is not" in told
    assert "input day is a date such as 2026-03-01; '2026-13-01' is not" in told
    done = shell.json("run", "dated.py", "--input", "since=20260301", "--input", "any=yesterday", "--quiet")
    assert done["outputs"]["result"] == "2026-03-01 00:00:00 None"
