"""Texts of flow files that come without the files beside them: judged by themselves, and nothing here is looked at."""

import builtins
import os
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from mendflow.core.data.url_passwords import hide_passwords
from mendflow.core.engine.files_beside import stored_beside, unsent_files
from mendflow.core.engine.inserted_inputs import InputVariables
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Call, JobActivity
from mendflow.core.model.flow_files import FileBeside
from mendflow.core.model.values import FileRef
from mendflow.formats.check import problems_of
from mendflow.formats.flow_texts import check
from mendflow.formats.yaml import read_flow_alone

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


def test_a_remark_stands_where_the_command_is() -> None:
    steps = "  one:\n    resources: {cpus: 1}\n    run: echo ${{ inputs.who }}\n"
    loop = "  all:\n    for-each: [1, 2]\n    run: echo ${{ inputs.who }}\n"
    found = check(f"inputs: {{who: Ada}}\njobs:\n{steps}{loop}", "f.yaml")
    assert [(each.severity, each.line, each.message.partition(":")[0]) for each in found.problems] == [
        ("remark", 5, "one"),
        ("remark", 8, "all"),
    ]


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
    found, flow = check(NAMES_FILES, "f.yaml"), read_flow_alone(NAMES_FILES, "f.yaml")
    monkeypatch.undo()
    assert [each.line for each in found.problems] == [3, 8, 9, 11] and found.flow is None
    jobs = {each.name: each for each in getattr(flow.body, "branches", ())}
    assert isinstance(jobs["ext"], JobActivity) and jobs["ext"].inputs["a"] == "/etc/passwd"
    assert isinstance(jobs["sub"], Call) and jobs["sub"].flow == "other"
    assert flow.inputs["rows"].default == []
    assert flow.triggers is not None and flow.triggers.files is not None
    assert flow.triggers.files.folder.endswith("/~/drop")


BESIDE = """
inputs:
  reads: {type: file, default: data/reads.txt}
jobs:
  run:
    inputs: {sim.py: sim.py, genome.fa: /data/genome.fa, reads.txt: "${{ inputs.reads }}"}
    run: python sim.py
  more:
    inputs: {sim.py: old/sim.py, all/: "parts/*.txt"}
    environment: [numpy]
    run: python sim.py
"""


def _stored(name: str) -> FileRef:
    return FileRef(sha256="a" * 64, bytes=3, name=name)


def test_a_file_beside_the_text_that_was_not_sent_is_a_problem_where_it_is_named() -> None:
    found = check(BESIDE, "f.yaml", {"reads.txt": _stored("reads.txt")})
    assert not found.ok and found.flow is None
    assert [(each.line, each.message.partition(",")[0].partition(":")[0]) for each in found.problems] == [
        (6, "`sim.py` is beside the flow's file"),
        (9, "`old/sim.py` is beside the flow's file"),
        (9, "`parts/*.txt` may be several files beside the flow's file"),
    ]
    assert "add it here, or deploy with `mendflow flows deploy FILE`" in found.problems[0].message
    assert [each.path for each in found.beside if each.file is None] == ["sim.py", "old/sim.py"]


def test_a_file_that_was_sent_stands_for_its_path() -> None:
    text = BESIDE.replace(', all/: "parts/*.txt"', "")
    by_name = check(text, "f.yaml", {name: _stored(name) for name in ("sim.py", "reads.txt")})
    assert [each.path for each in by_name.beside if each.file is None] == ["old/sim.py"], "a name is one file"
    given = {name: _stored(PurePosixPath(name).name) for name in ("sim.py", "old/sim.py", "reads.txt")}
    found = check(text, "f.yaml", given)
    assert found.ok and found.flow is not None, found.problems
    jobs = {each.name: each for each in getattr(found.flow.body, "branches", ())}
    assert jobs["run"].inputs["sim.py"] == _stored("sim.py").as_value()
    assert jobs["run"].inputs["genome.fa"] == "/data/genome.fa", "a path from the root is one of the server's machine"
    assert jobs["more"].software is not None, "packages are told without a file"
    reads = found.flow.inputs["reads"]
    assert (reads.default, reads.read_from) == (_stored("reads.txt").as_value(), "data/reads.txt")


EDITED = """
# from https://me:old@host
inputs:
  db: postgres://u:word@db/x
jobs:
  load:
    inputs: {in.txt: "https://${{ inputs.db }}:word@host/in.txt"}
    run: |
      set -e
      psql postgres://u:word@db/x
      curl ${{ 'https://me:word@host' }} && curl http://host:80/@x
  more:
    run: echo "mail (hidden)@host :(hidden)@"
"""


def test_a_password_that_was_hidden_where_the_text_was_shown_is_a_problem_at_its_line(tmp_path: Path) -> None:
    assert check(EDITED, "f.yaml").ok
    shown = hide_passwords(EDITED)
    assert shown.count("https://me:(hidden)@host") == 2, "in the comment, and in the expression"
    found = check(shown, "f.yaml")
    assert not found.ok and [each.line for each in found.problems] == [4, 7, 10, 11]
    assert all("write the password again, or better" in each.message for each in found.problems)
    path = tmp_path / "f.yaml"
    path.write_text(shown)
    assert [(each.line, each.message) for each in problems_of(str(path))] == [
        (each.line, each.message) for each in found.problems
    ]


TWO_OF_A_NAME = """
jobs:
  one:
    inputs: {in.txt: a/x.txt}
    run: cat in.txt
  two:
    inputs: {in.txt: ./b/x.txt, y.txt: c/y.txt}
    run: cat in.txt
"""


@pytest.mark.parametrize(
    ("sent", "missing"),
    [
        (["x.txt", "y.txt"], ["a/x.txt", "./b/x.txt"]),
        (["a/x.txt", "c/y.txt"], ["./b/x.txt"]),
        (["b/x.txt", "x.txt", "y.txt"], ["a/x.txt"]),
        (["./a/x.txt", "b/x.txt", "y.txt"], []),
        (["d/y.txt", "a/x.txt", "b/x.txt"], ["c/y.txt"]),
    ],
)
def test_a_bare_name_stands_for_the_only_path_of_that_name(sent: list[str], missing: list[str]) -> None:
    found = check(TWO_OF_A_NAME, "f.yaml", {path: _stored(path) for path in sent})
    assert [each.path for each in found.beside if each.file is None] == missing
    assert [each.message.split("`")[1] for each in found.problems if each.severity == "error"] == missing
    assert found.ok == (not missing)


SEVERAL = """
inputs:
  reads: {type: files, default: data/a.txt}
  more:
    type: files
    default:
      - data/b.txt
      - lfn:/store/c.txt
      - /data/d.txt
  all: {type: files, default: "data/*.txt"}
jobs:
  count:
    for-each: {read: "${{ inputs.reads + inputs.more + inputs.all }}"}
    inputs: {in.txt: "${{ read }}"}
    run: wc -l in.txt
"""


def test_files_that_are_a_default_are_asked_for_each_and_a_pattern_says_what_to_do() -> None:
    found = check(SEVERAL, "f.yaml")
    assert not found.ok
    instead = "leave the default out, and give the files when a case is started"
    assert [(each.line, each.message) for each in found.problems] == [
        (3, f"`data/a.txt` is beside the flow's file, and was not sent: add it here, or {instead}"),
        (7, f"`data/b.txt` is beside the flow's file, and was not sent: add it here, or {instead}"),
        (
            10,
            "`data/*.txt` may be several files beside the flow's file, and none is sent by that: list their paths here,"
            f" and add the files, or {instead}",
        ),
    ]
    assert [each.path for each in found.beside if each.file is None] == ["data/a.txt", "data/b.txt"]


def test_files_that_were_sent_stand_for_the_paths_of_a_default() -> None:
    text = SEVERAL.replace('"data/*.txt"', '"/data/*.txt"')
    found = check(text, "f.yaml", {name: _stored(name) for name in ("a.txt", "b.txt")})
    assert found.ok and found.flow is not None, found.problems
    inputs = found.flow.inputs
    assert inputs["reads"].default == [_stored("a.txt").as_value()]
    assert inputs["more"].default == [_stored("b.txt").as_value(), "lfn:/store/c.txt", "/data/d.txt"]
    assert inputs["all"].default == "/data/*.txt"
    assert [each.file for each in stored_beside(found.flow)] == [_stored("a.txt"), _stored("b.txt")]
    assert unsent_files(found.flow) == []


TWICE_NAMED = "jobs:\n  run:\n    inputs: {a: a/x.txt, b: ./b/x.txt}\n    run: cat a b\n"


def test_files_of_one_name_are_kept_by_their_paths() -> None:
    one, other = _stored("x.txt"), replace(_stored("x.txt"), sha256="b" * 64)
    found = check(TWICE_NAMED, "f.yaml", {"a/x.txt": one, "b/x.txt": other})
    assert found.flow is not None, found.problems
    kept = [FileBeside(path="a/x.txt", file=one), FileBeside(path="b/x.txt", file=other)]
    assert stored_beside(found.flow) == kept
    again = check(TWICE_NAMED, "f.yaml", {each.path: each.file for each in kept if each.file is not None})
    assert again.flow == found.flow, "the next version needs nothing that was not kept"


def test_a_file_that_stands_for_two_paths_is_kept_by_both() -> None:
    same = _stored("other-name.txt")
    found = check(TWICE_NAMED, "f.yaml", {"a/x.txt": same, "b/x.txt": same})
    assert found.flow is not None, found.problems
    assert [each.path for each in stored_beside(found.flow)] == ["a/x.txt", "b/x.txt"]


def test_of_a_flow_that_knows_no_paths_files_are_kept_by_their_names() -> None:
    found = check(TWICE_NAMED, "f.yaml", {"a/x.txt": _stored("x.txt"), "b/x.txt": _stored("x.txt")})
    assert found.flow is not None
    assert stored_beside(replace(found.flow, beside={})) == [FileBeside(path="x.txt", file=_stored("x.txt"))]
    text = TWICE_NAMED.replace("a/x", "x").replace("./b/x", "y")
    plain = check(text, "f.yaml", {name: _stored(name) for name in ("x.txt", "y.txt")})
    assert plain.flow is not None and plain.flow.beside == {}, "names say it"


@pytest.mark.parametrize("name", ["f.py", "p.bpel", "t.json"])
def test_what_would_run_or_needs_other_files_is_checked_elsewhere(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"mendflow check {name}"):
        check("import os", name)


def _with_inputs(count: int, step: Callable[[int], str]) -> str:
    inputs = "".join(f"  in{number}: {{type: string}}\n" for number in range(count))
    return f"name: big\ninputs:\n{inputs}jobs:\n" + "".join(map(step, range(count)))


LARGE: dict[str, Callable[[int], str]] = {
    "used": lambda number: f"  j{number}:\n    run: echo ${{{{ inputs.in{number} }}}} $INPUT_IN{number}\n",
    "unknown": lambda number: f"  j{number}:\n    run: echo ${{{{ inputs.other{number} }}}}\n",
    "loops": lambda number: (
        f"  j{number}:\n    for-each: {{from: 1, to: 2, as: k{number}}}\n    run: echo ${{{{ k{number} }}}}\n"
    ),
}


@pytest.mark.parametrize("step", LARGE.values(), ids=LARGE)
def test_a_text_four_times_as_large_takes_about_four_times_as_long(step: Callable[[int], str]) -> None:
    """And not sixteen times, as where each step looks at each input."""
    took_s: list[float] = []
    for count in (800, 3_200):
        text = _with_inputs(count, step)
        begun_s = time.thread_time()
        check(text, "big.yaml")
        took_s.append(time.thread_time() - begun_s)
    assert took_s[1] < 8 * took_s[0] + 0.5, took_s


def test_variables_of_inputs_are_told_in_the_order_of_the_inputs_as_a_shell_reads_them() -> None:
    names = {"sample": "string", "reads": "file", "a-b": "string", "a_b": "string", "in": "number"}
    variables = InputVariables(names)
    assert variables.used_in("$INPUT_IN ${INPUT_SAMPLE%.x} $INPUT_READS ${#INPUT_A_B} $$INPUT_IN") == {
        "INPUT_SAMPLE": "${{ inputs.sample }}",
        "INPUT_A_B": "${{ inputs.a_b }}",
        "INPUT_IN": "${{ inputs.in }}",
    }
    assert list(variables.used_in("$INPUT_IN ${INPUT_SAMPLE%.x}")) == ["INPUT_SAMPLE", "INPUT_IN"]
    for command in ("INPUT_SAMPLE", "$INPUT_SAMPLES", "$ INPUT_SAMPLE", "${x-INPUT_SAMPLE}", "echo"):
        assert variables.used_in(command) == {}, command
