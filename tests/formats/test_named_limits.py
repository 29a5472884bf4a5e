"""Named limits in flow files and in Python are the same, and those of the defaults stay unless a job says otherwise."""

from pathlib import Path

import pytest

from mendflow.core.engine.flow_needs import jobs_of, limits_named
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.named_limits import NamedLimits
from mendflow.formats import load

YAML = """
name: limited
defaults: {limits: {licence-x: 1, open-files: 64}}
jobs:
  a: echo a
  b: {run: echo b, limits: {licence-x: 2, db: 1, processes: 9}}
  c: {run: echo c, limits: {licence-x: 0}}
  d: {run: echo d, limits: [gpu-host]}
"""
PYTHON = """
from mendflow import flow, shell

@flow(defaults={"limits": {"licence-x": 1}, "open_files": 64})
def limited():
    shell("echo a", name="a")
    shell("echo b", name="b", limits={"licence-x": 2, "db": 1}, processes=9)
    shell("echo c", name="c", limits={"licence-x": 0})
    shell("echo d", name="d", limits=["gpu-host"])
"""
EXPECTED: dict[str, NamedLimits] = {
    "a": (("licence-x", 1),),
    "b": (("db", 1), ("licence-x", 2)),
    "c": (),
    "d": (("gpu-host", 1), ("licence-x", 1)),
}


@pytest.mark.parametrize(("file", "text"), [("f.yaml", YAML), ("f.py", PYTHON)])
def test_jobs_use_the_limits_that_they_or_the_defaults_name(tmp_path: Path, file: str, text: str) -> None:  # DU-6
    (tmp_path / file).write_text(text)
    flow = load(tmp_path / file)
    jobs = {job.name: job for job in jobs_of(flow)}
    assert {name: job.limits.named for name, job in jobs.items()} == EXPECTED
    assert {job.limits.open_files for job in jobs.values()} == {64}, "the other defaults stay"
    assert jobs["b"].limits.processes == 9
    assert set(limits_named(flow)) == {"licence-x", "db", "gpu-host"}


@pytest.mark.parametrize("given", ["{'x': 1.5}", "{'x': -1}", "3", "{'open-fils': 1}", "[1]"])
def test_python_refuses_what_is_no_limit(tmp_path: Path, given: str) -> None:
    text = f"from mendflow import flow, shell\n\n@flow\ndef f():\n    shell('echo', name='a', limits={given})\n"
    (tmp_path / "f.py").write_text(text)
    with pytest.raises(BadFlow, match="limit"):
        load(tmp_path / "f.py")
