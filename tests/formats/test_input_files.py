"""Folders and patterns among the files that a job takes in and leaves, as a flow file says them."""

from pathlib import Path

import pytest

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.formats.python.loader import load_python
from mendflow.formats.yaml import read_flow

CSV = ["samples/Gr\u00f6\u00dfe.csv", "samples/a.csv", "samples/b.csv"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*CSV, "samples/sub/c.csv", "run.sh", "odd[1].txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(name)
    (tmp_path / "empty").mkdir()
    return tmp_path


def job_of(flow: Flow) -> JobActivity:
    return next(each for each in walk_activities(flow) if isinstance(each, JobActivity))


def problems_of(text: str, folder: Path) -> str:
    with pytest.raises(BadFlow) as refusal:
        read_flow(text, folder / "flow.yaml")
    return "\n".join(str(problem) for problem in refusal.value.problems)


INPUTS = [
    ("run.sh", {"run.sh": "run.sh"}),
    ("[run.sh]", {"run.sh": "run.sh"}),
    ("['samples/*.csv']", {path: path for path in CSV}),
    ("[samples/]", {path: path for path in [*CSV, "samples/sub/c.csv"]}),
    ("['samples/**/*.csv']", {path: path for path in [*CSV, "samples/sub/c.csv"]}),
    ("['samples/s*']", {"samples/sub/c.csv": "samples/sub/c.csv"}),
    ("{data/: 'samples/[ab].csv'}", {"data/a.csv": "samples/a.csv", "data/b.csv": "samples/b.csv"}),
    ("{data: samples/sub/}", {"data/c.csv": "samples/sub/c.csv"}),
    ("{d/: samples/}", {f"d/{path.removeprefix('samples/')}": path for path in [*CSV, "samples/sub/c.csv"]}),
    ("['odd[1].txt']", {"odd[1].txt": "odd[1].txt"}),
]


@pytest.mark.parametrize(("given", "inputs"), INPUTS)
def test_inputs_are_files_beside_the_flow_in_order(given: str, inputs: dict[str, str], folder: Path) -> None:  # DU-3
    found = job_of(read_flow(f"jobs: {{a: {{run: x, inputs: {given}}}}}", folder / "flow.yaml")).inputs
    assert list(found.items()) == sorted(inputs.items())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("inputs: ['samples/*.tsv']", "matches `samples/*.tsv`"),
        ("inputs: [sample/]", "there is no folder `sample/`"),
        ("inputs: [empty/]", "no file in the folder `empty/`"),
        ("inputs: {one.csv: 'samples/*.csv'}", "write `one.csv/` to have a folder of them"),
        ("inputs: {'d*/': 'samples/*.csv'}", "name a folder"),
        ("inputs: ['../*.csv']", "inside the job's folder"),
        ("files: /tmp/a", "inside the job's folder"),
        ("files: {r: r/}, publish: {r: /store/r}", "several files, and one file is published"),
    ],
)
def test_what_cannot_work_is_told_by_check(given: str, told: str, folder: Path) -> None:  # DU-3
    assert told in problems_of(f"jobs: {{a: {{run: x, {given}}}}}", folder)


def test_a_list_of_files_is_not_taken_for_one(folder: Path) -> None:
    text = "jobs: {a: {run: x, files: {r: r/}}, b: {run: x, inputs: {PATH: '${{ jobs.a.files.r }}'}}}"
    assert "`x/`, a folder of them" in problems_of(text.replace("PATH", "x"), folder)
    read_flow(text.replace("PATH", "x/"), folder / "flow.yaml")
    text = "jobs: {a: {run: x, files: {r: r/}}, b: {run: 'x ${{ jobs.a.files.r.name }}'}}"
    assert "is a list of files, and has no `name`" in problems_of(text, folder)


@pytest.mark.parametrize(
    ("given", "files", "lists"),
    [
        ("merged.txt", {"merged.txt": "merged.txt"}, ()),
        ("[a.txt, out/]", {"a.txt": "a.txt", "out/": "out/"}, ("out/",)),
        (
            "{t: t.txt, r: r/, g: 'g/*.csv', q: 'q?'}",
            {"t": "t.txt", "r": "r/", "g": "g/*.csv", "q": "q?"},
            ("r", "g", "q"),
        ),
        ("{t: '${{ inputs.x }}.txt'}", {"t": "${{ inputs.x }}.txt"}, ()),
        ("{t: '${{ inputs.x }}/'}", {"t": "${{ inputs.x }}/"}, ("t",)),
        ('{t: "${{ [inputs.x][0] }}.txt"}', {"t": "${{ [inputs.x][0] }}.txt"}, ()),
    ],
)
def test_files_are_single_or_lists_by_how_they_are_written(
    given: str, files: dict[str, str], lists: tuple[str, ...], folder: Path
) -> None:  # DU-3
    job = job_of(read_flow(f"inputs: {{x: y}}\njobs: {{a: {{run: x, files: {given}}}}}", folder / "flow.yaml"))
    assert (job.files, job.file_lists) == (files, lists)


def test_python_flows_take_lists_folders_and_patterns_too(folder: Path) -> None:  # DU-3
    (folder / "flow.py").write_text(
        "from mendflow import flow, shell\n"
        "@flow\n"
        "def all():\n"
        "    shell('x', inputs=['run.sh', 'samples/*.csv'], files=['out/', 'a.txt'])\n"
    )
    job = job_of(load_python(folder / "flow.py", "all")["all"])
    assert list(job.inputs) == ["run.sh", *CSV] and job.file_lists == ("out/",)
    (folder / "flow.py").write_text(
        "from mendflow import flow, shell\n"
        "@flow\n"
        "def all():\n"
        "    shell('x', inputs=['*.tsv'])\n"
        "    shell('x', inputs=3)\n"
    )
    with pytest.raises(BadFlow) as refusal:
        load_python(folder / "flow.py", "all")
    told = "\n".join(str(problem) for problem in refusal.value.problems)
    assert "matches `*.tsv`" in told and "inputs is a dict, or a list of paths, not 3" in told
