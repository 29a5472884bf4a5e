"""Texts of flow files that come without the files beside them: judged by themselves, and nothing here is looked at."""

import builtins
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Call, JobActivity
from mendflow.formats.flow_texts import check

GOOD = """
inputs:
  n: 3
jobs:
  make:
    run: seq ${{ inputs.n }} > out.txt
    files: {out: out.txt}
  use:
    run: wc -l out.txt
    inputs: {out.txt: "${{ jobs.make.files.out }}"}
"""

NAMES_FILES = """
inputs:
  rows: {type: table, default: /etc/hosts.csv}
  file: {type: file}
jobs:
  ext:
    run: cat a
    inputs: {a: /etc/passwd, b: "secret/*"}
    environment: /etc/requirements.txt
  code:
    python: /etc/evil.py:main
  sub:
    call: ../other.yaml
    with: {x: 1}
on:
  files: {in: ~/drop}
"""


def test_a_text_without_problems_is_the_flow() -> None:
    found = check(GOOD, "pipeline.yaml")
    assert found.ok and found.flow is not None and found.flow.name == "pipeline"
    assert [each.severity for each in found.problems if each.severity == "error"] == []


def test_every_problem_has_its_place_and_what_was_meant() -> None:
    found = check("jobs:\n  a:\n    rum: true\n  b:\n    run: echo ${{ jobs.c.outputs }}\n", "f.yaml")
    assert not found.ok and found.flow is None
    by_line = {each.line: each for each in found.problems}
    assert by_line[3].column == 5 and "run" in by_line[3].hint
    assert 5 in by_line and all(each.severity == "error" for each in found.problems)


def test_a_text_that_is_no_yaml_says_where() -> None:
    [problem] = check("jobs: [", "f.yaml").problems
    assert problem.line


def test_no_file_that_it_names_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-1
    check(NAMES_FILES, "warm.yaml")  # what is loaded on first use is loaded

    def refuse(*what: Any, **how: Any) -> NoReturn:
        raise AssertionError(f"it looked at {what}")

    for name in ("is_file", "exists", "read_text", "read_bytes", "iterdir", "stat", "resolve", "open", "glob"):
        monkeypatch.setattr(Path, name, refuse)
    for name in ("stat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    found = check(NAMES_FILES, "f.yaml")
    monkeypatch.undo()
    assert found.flow is not None, found.problems
    jobs = {each.name: each for each in getattr(found.flow.body, "branches", ())}
    assert isinstance(jobs["ext"], JobActivity) and jobs["ext"].inputs["a"] == "/etc/passwd"
    assert isinstance(jobs["sub"], Call) and jobs["sub"].flow == "other"
    assert found.flow.inputs["rows"].default == []
    assert found.flow.triggers is not None and found.flow.triggers.files is not None
    assert found.flow.triggers.files.folder.endswith("/~/drop")


@pytest.mark.parametrize("name", ["f.py", "p.bpel", "t.json"])
def test_what_would_run_or_needs_other_files_is_checked_elsewhere(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"mendflow check {name}"):
        check("import os", name)
