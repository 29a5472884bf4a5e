"""An input that is a symbolic link has the name of the link, by whichever way it comes in."""

import pytest

from tests.cli.conftest import Shell

FLOW = """\
name: linked
inputs: {reads: {type: files, default: reads/*.fq}}
jobs:
  name:
    for-each: {s: "${{ inputs.reads }}"}
    inputs: ["${{ s }}"]
    run: echo "text=${{ s.name }} $(ls)" >> "$MENDFLOW_OUTPUT"
outputs: {names: "${{ jobs.name.outputs.map(n, n.text) }}"}
"""
PYTHON_FLOW = """\
from pathlib import Path
from mendflow import flow, job

@job
def name(path: Path) -> str:
    return path.name

@flow
def linked(paths: list[Path] = [Path("reads/S01.fq"), Path("reads/S02.fq")]) -> dict:
    return {"names": name.map(paths)}
"""


def _link_reads(shell: Shell) -> None:
    for folder in ("store", "reads"):
        (shell.folder / folder).mkdir()
    for number in ("1", "2"):
        shell.write(f"store/run17_{number}.fq", number)
        (shell.folder / "reads" / f"S0{number}.fq").symlink_to(f"../store/run17_{number}.fq")


@pytest.mark.full
def test_a_linked_file_of_a_default_has_the_name_of_the_link(shell: Shell) -> None:  # DU-1
    _link_reads(shell)
    shell.write("linked.yaml", FLOW)
    expected = ["S01.fq S01.fq", "S02.fq S02.fq"]
    assert shell.json("run", "linked.yaml")["outputs"]["names"] == expected
    assert shell.json("run", "linked.yaml", "--input", "reads=reads/*.fq")["outputs"]["names"] == expected


def test_a_linked_file_of_a_default_in_python_has_the_name_of_the_link(shell: Shell) -> None:  # DU-1
    _link_reads(shell)
    shell.write("linked.py", PYTHON_FLOW)
    assert shell.json("run", "linked.py")["outputs"]["names"] == ["S01.fq", "S02.fq"]
