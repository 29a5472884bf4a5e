"""The key `shell` of flows and jobs, in YAML and in Python."""

from pathlib import Path

import pytest

from mendflow import flow, job, shell
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.formats.yaml import read_flow

KEYS = """\
shell: sh
defaults: {DEFAULTS}
jobs:
  own: {shell: "Rscript {0}", run: cat(1)}
  usual: {run: echo 1}
"""


def messages(error: BadFlow) -> str:
    return "\n".join(str(problem) for problem in error.problems)


def shells(found: Flow) -> dict[str, str]:
    return {each.name: each.shell for each in walk_activities(found) if isinstance(each, JobActivity)}


@pytest.mark.parametrize(
    ("defaults", "usual"), [("cpus: 1", "sh"), ("shell: python", "python"), ("shell: 'bash -e {0}'", "bash -e {0}")]
)
def test_a_jobs_shell_comes_before_the_defaults_and_those_before_the_flows(defaults: str, usual: str) -> None:  # DU-1
    found = shells(read_flow(KEYS.replace("DEFAULTS", defaults), "shells.yaml"))
    assert found == {"own": "Rscript {0}", "usual": usual}
    assert shells(read_flow("steps: [echo 1]", "plain.yaml")) == {"step-1": ""}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs: {a: {run: x, shell: zsh}}", "write `zsh {0}`"),
        ("jobs: {a: {run: x, shell: ''}}", "a template such as"),
        ("jobs: {a: {run: x, shell: [sh]}}", "a template such as"),
        ("jobs: {a: {run: x, shell: '${{ inputs.s }} {0}'}}", "no expression"),
        ("shell: 3\njobs: {a: x}", "a template such as"),
        ("jobs: {a: {python: 'm:f', shell: sh}}", "`shell` goes with `run`"),
        ("jobs: {a: {shell: echo hello}}", "did you mean `run`"),
    ],
)
def test_a_shell_that_cannot_be_is_refused_with_what_to_write(text: str, told: str) -> None:
    with pytest.raises(BadFlow) as refusal:
        read_flow(text, "shells.yaml")
    assert told in messages(refusal.value)


@job
def nothing() -> None:
    pass


def test_python_flows_choose_shells_too() -> None:  # DU-1
    @flow(shell="sh")
    def chosen() -> None:
        shell("echo 1", name="usual")
        shell("cat(1)", name="own", shell="Rscript {0}")
        nothing()

    assert shells(chosen.build()) == {"usual": "sh", "own": "Rscript {0}", "nothing": ""}

    @flow
    def wrong() -> None:
        shell("echo 1", shell="zsh")
        job(shell="sh")(nothing.function)()

    with pytest.raises(BadFlow) as refusal:
        wrong.build()
    assert "write `zsh {0}`" in messages(refusal.value) and "is for shell(...)" in messages(refusal.value)
    assert Path(__file__).name in messages(refusal.value)
