"""Which paths of input files are known before a case begins (FM-6)."""

from pathlib import Path

import pytest

from mendflow.core.engine import files_at_start as module
from mendflow.core.engine.files_at_start import files_at_start
from mendflow.core.model.values import FileRef, Value
from mendflow.formats.check import absent_defaults
from tests.formats.conftest import Reader

INPUTS: dict[str, Value] = {"folder": "data", "names": ["a", "b"]}
HEAD = "inputs: {folder: {type: string}, names: {type: list}, mode: {type: string, default: fast}}\n"


def found(read: Reader, jobs: str) -> list[str]:
    return [f"{each.item} {each.key} {each.source}" for each in files_at_start(read(HEAD + jobs), INPUTS)]


@pytest.mark.parametrize(
    ("flow", "paths"),
    [
        ("jobs: {x: {run: y, inputs: {i: '${{ inputs.folder }}/a'}}}", ["x i data/a"]),
        ("jobs: {x: {run: y, inputs: {i: 'd/${{ inputs.mode }}'}}}", ["x i d/fast"]),
        ("steps: [{name: x, run: y, inputs: {i: '${{ inputs.folder }}/a'}}]", ["x i data/a"]),
        ("jobs: {x: {run: y, inputs: {i: '${{ inputs.folder }}/a'}, on-failure: z}}", ["x i data/a"]),
        (
            "jobs: {x: {for-each: {n: '${{ inputs.names }}'}, run: y, inputs: {i: 'd/${{ n }}'}}}",
            ["x[0] i d/a", "x[1] i d/b"],
        ),
        (
            "jobs: {x: {for-each: {n: '${{ inputs.names }}', m: [1, 2]}, run: y, inputs: {i: '${{ n }}${{ m }}'}}}",
            ["x[0] i a1", "x[1] i a2", "x[2] i b1", "x[3] i b2"],
        ),
        ("jobs: {x: {run: y, inputs: {in/: '${{ inputs.names }}'}}}", ["x in/a a", "x in/b b"]),
    ],
)
def test_a_path_that_follows_from_the_inputs_is_known(read: Reader, flow: str, paths: list[str]) -> None:
    assert found(read, flow) == paths


@pytest.mark.parametrize(
    "flow",
    [
        "jobs: {a: b, x: {needs: a, run: y, inputs: {i: '${{ inputs.folder }}/a'}}}",
        "steps: [a, {name: x, run: y, inputs: {i: '${{ inputs.folder }}/a'}}]",
        "jobs: {x: {if: inputs.mode == 'slow', run: y, inputs: {i: '${{ inputs.folder }}/a'}}}",
        "jobs: {a: b, x: {run: y, inputs: {i: '${{ jobs.a.outputs.path }}'}}}",
        "jobs: {x: {run: y, inputs: {i: 'lfn:/${{ inputs.folder }}/a'}}}",
        "jobs: {x: {run: y, inputs: {i: 'https://host/${{ inputs.folder }}/a'}}}",
        "jobs: {a: b, x: {for-each: {n: '${{ jobs.a.outputs.list }}'}, run: y, inputs: {i: '${{ n }}'}}}",
    ],
)
def test_what_another_job_may_make_or_may_never_run_is_not_looked_for(read: Reader, flow: str) -> None:
    assert found(read, flow) == []


def test_a_stored_file_has_no_path(read: Reader) -> None:
    flow = read("inputs: {f: {type: file}}\njobs: {x: {run: y, inputs: {i: '${{ inputs.f }}'}}}")
    assert files_at_start(flow, {"f": FileRef(sha256="0" * 64, bytes=1, name="a").as_value()}) == []


def test_of_a_very_long_loop_the_first_iterations_are_looked_at(read: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATHS_MAX", 3)
    flow = "jobs: {x: {for-each: {n: [0, 1, 2, 3, 4]}, run: y, inputs: {i: 'd/${{ n }}'}}}"
    assert found(read, flow) == ["x[0] i d/0", "x[1] i d/1", "x[2] i d/2"]


def test_check_names_what_is_not_there_with_the_defaults(read: Reader, tmp_path: Path) -> None:
    flow = read(
        "inputs: {d: data, t: {type: file, default: t.csv}, m: {type: files, default: '*.fq'}, r: {type: string}}\n"
        "jobs: {x: {run: y, inputs: {a: '${{ inputs.d }}/a', b: '${{ inputs.t }}', c: '${{ inputs.r }}/c'}}}\n"
    )
    assert absent_defaults(flow) == [
        f"job x, input a: with the defaults of the inputs there is no file data/a in {tmp_path}",
        f"job x, input b: with the defaults of the inputs there is no file t.csv in {tmp_path}",
        f"input t: there is no file t.csv, its default, in {tmp_path}",
        f"input m: no file matches its default *.fq in {tmp_path}",
    ]
    (tmp_path / "data").mkdir()
    for name in ("data/a", "t.csv", "m.fq"):
        (tmp_path / name).write_text("x")
    assert absent_defaults(flow) == []
