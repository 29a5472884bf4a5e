"""`domain` on jobs and calls, in YAML and in Python: the same model. FM-4"""

from pathlib import Path

import pytest

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.formats import load
from mendflow.formats.check import check


def domains_of(flow: Flow) -> dict[str, str]:
    return {each.name: each.domain for each in walk_activities(flow) if isinstance(each, JobActivity | Call)}


def written(folder: Path, text: str, name: str = "f.yaml") -> str:
    (folder / "sub.yaml").write_text("name: sub\njobs:\n  only: {run: echo 1}\n")
    (folder / name).write_text(text)
    return str(folder / name)


def test_jobs_and_calls_say_their_domain_in_yaml(tmp_path: Path) -> None:
    flow = load(
        written(
            tmp_path,
            """name: f
jobs:
  here: {run: echo 1}
  there: {run: echo 1, domain: south}
  free: {run: echo 1, domain: any}
  far: {call: sub.yaml, domain: west}
""",
        )
    )
    assert domains_of(flow) == {"here": "", "there": "south", "free": "any", "far": "west"}


def test_the_flows_default_is_that_of_each_job(tmp_path: Path) -> None:
    flow = load(
        written(
            tmp_path,
            "name: f\ndefaults: {domain: any}\njobs:\n  a: {run: echo 1}\n  b: {run: echo 1, domain: south}\n",
        )
    )
    assert domains_of(flow) == {"a": "any", "b": "south"}


def test_jobs_and_calls_say_their_domain_in_python(tmp_path: Path) -> None:
    flow = load(
        written(
            tmp_path,
            """from mendflow import call, flow, job, shell


@job(domain="south")
def there(n: int) -> int:
    return n


@job
def here(n: int) -> int:
    return n


@flow
def inner(n: int) -> int:
    return here(n)


@flow
def outer(n: int = 1) -> int:
    call.options(domain="west")("sub.yaml")
    inner.options(domain="east")(n)
    shell("echo 1", name="free", domain="any")
    return there(n)
""",
            "f.py",
        )
        + ":outer"
    )
    assert domains_of(flow) == {"there": "south", "free": "any", "sub": "west", "inner": "east"}


@pytest.mark.parametrize("name", ["'a/b'", "'.'", "ANY", "'a b'", "${{ inputs.x }}"])
@pytest.mark.parametrize("what", ["run: echo 1", "call: sub.yaml"])
def test_what_is_no_name_of_a_domain_is_told_by_check(tmp_path: Path, name: str, what: str) -> None:
    text = f"name: f\ninputs: {{x: 1}}\njobs:\n  a:\n    {what}\n    domain: {name}\n"
    [problem] = check([written(tmp_path, text)])
    assert "domain" in problem.message
