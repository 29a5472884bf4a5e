"""Where the output files of a case stand: each keeps its name when samples come and go."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell

IN_FOLDERS = """\
name: n
inputs: {s: {type: table, default: s.csv}}
jobs:
  count:
    for-each: {r: "${{ inputs.s }}"}
    run: mkdir -p ${{ r.sample }} && echo ${{ r.sample }} > ${{ r.sample }}/counts.tsv
    files: {o: "${{ r.sample }}/counts.tsv"}
outputs: {counts: "${{ jobs.count.files.o }}"}
"""
OF_ONE_NAME = """\
name: n
inputs: {s: {type: table, default: s.csv}}
jobs:
  count:
    for-each: {r: "${{ inputs.s }}"}
    run: echo same > counts.tsv && echo ${{ r.sample }} > lines.tsv
    files: {o: counts.tsv, lines: lines.tsv}
  again:
    for-each: {r: "${{ inputs.s }}"}
    run: echo ${{ r.sample }} > lines.tsv
    files: {lines: lines.tsv}
outputs:
  counts: "${{ jobs.count.files.o }}"
  lines: "${{ jobs.count.files.lines }}"
  second: "${{ jobs.count.files.o[1] }}"
  again: "${{ jobs.again.files.lines }}"
"""


def _run(shell: Shell, flow: str, *samples: str) -> str:
    shell.write("n.yaml", flow)
    shell.write("s.csv", "\n".join(["sample", *samples, ""]))
    return shell.ok("run", "n.yaml", "--quiet", "--output-dir", "results")


def _written(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_text().strip() for path in sorted(paths)}


@pytest.mark.full
def test_files_of_a_loop_keep_the_folders_that_their_jobs_left_them_in(shell: Shell) -> None:
    _run(shell, IN_FOLDERS, "S02")
    assert _written(shell.folder / "results") == {"S02/counts.tsv": "S02"}
    told = _run(shell, IN_FOLDERS, "S01", "S02")
    assert "counts[1]: results/S02/counts.tsv" in told
    assert _written(shell.folder / "results") == {"S01/counts.tsv": "S01", "S02/counts.tsv": "S02"}


@pytest.mark.full
def test_files_of_a_loop_with_one_path_are_named_by_what_they_are_for(shell: Shell) -> None:
    _run(shell, OF_ONE_NAME, "S01", "S02")
    assert _written(shell.folder / "results") == {
        "S01-counts.tsv": "same",
        "S02-counts.tsv": "same",
        "S01-lines.tsv": "S01",
        "S02-lines.tsv": "S02",
        "again-S01-lines.tsv": "S01",
        "again-S02-lines.tsv": "S02",
        "counts.tsv": "same",
    }


@pytest.mark.full
def test_files_of_earlier_cases_that_this_one_did_not_write_are_named_and_kept(shell: Shell) -> None:
    assert "left from" not in _run(shell, IN_FOLDERS, "S01", "S02")
    told = _run(shell, IN_FOLDERS, "S01")
    assert "left from earlier cases in results/: S02/counts.tsv\n" in told
    assert "replaced" not in told
    assert "S02/counts.tsv" in _written(shell.folder / "results")
    assert "left from earlier cases in results/: S02/counts.tsv\n" in _run(shell, IN_FOLDERS, "S01")
    (shell.folder / "results/S02/counts.tsv").unlink()
    assert "left from" not in _run(shell, IN_FOLDERS, "S01")


@pytest.mark.full
def test_a_file_of_ones_own_is_replaced_only_if_that_was_said(shell: Shell) -> None:
    (shell.folder / "results" / "S01").mkdir(parents=True)
    shell.write("results/S01/counts.tsv", "by hand")
    shell.write("n.yaml", IN_FOLDERS)
    shell.write("s.csv", "sample\nS01\nS02\n")
    spared = shell("run", "n.yaml", "--quiet", "--output-dir", "results")
    assert spared.returncode != 0
    assert "files in results/ that no case had written are not replaced: S01/counts.tsv" in spared.stderr
    assert "--overwrite replaces files that no case had written" in spared.stderr
    assert _written(shell.folder / "results") == {"S01/counts.tsv": "by hand", "S02/counts.tsv": "S02"}
    told = shell.ok("watch", "last", "--output-dir", "results", "--overwrite")
    assert "replaced in results/, though no case had written them: S01/counts.tsv\n" in told
    assert _written(shell.folder / "results") == {"S01/counts.tsv": "S01", "S02/counts.tsv": "S02"}
    assert "replaced" not in _run(shell, IN_FOLDERS, "S01", "S02")


OVER_ITS_SOURCES = """\
name: n
inputs: {s: {type: file, default: s.csv}}
jobs:
  spoil:
    run: echo spoilt > n.yaml && echo lost > s.csv.new && mkdir -p made && mv s.csv.new made/s.csv
    files: {flow: n.yaml, table: made/s.csv}
outputs: {flow: "${{ jobs.spoil.files.flow }}", table: "${{ jobs.spoil.files.table }}"}
"""


@pytest.mark.full
def test_the_flow_file_and_the_inputs_of_a_case_are_never_replaced_by_its_outputs(shell: Shell) -> None:
    shell.write("n.yaml", OVER_ITS_SOURCES)
    shell.write("s.csv", "sample\nS01\n")
    spared = shell("run", "n.yaml", "--quiet", "--output-dir", ".", "--overwrite")
    assert spared.returncode != 0
    assert "the case's own flow file or inputs in ./ are not replaced: n.yaml, s.csv" in spared.stderr
    assert (shell.folder / "n.yaml").read_text() == OVER_ITS_SOURCES
    assert (shell.folder / "s.csv").read_text() == "sample\nS01\n"


def test_outputs_that_cannot_be_written_leave_the_summary_and_can_be_written_later(shell: Shell) -> None:  # DU-1
    (shell.folder / "results").mkdir()
    shell.write("results/S01", "a file where a folder is needed")
    shell.write("n.yaml", IN_FOLDERS)
    shell.write("s.csv", "sample\nS01\n")
    failed = shell("run", "n.yaml", "--quiet", "--output-dir", "results")
    assert failed.returncode != 0
    assert "completed in" in failed.stdout and "1 done" in failed.stdout
    case = failed.stdout.split()[0]
    assert f"output files of {case} could not be written" in failed.stderr
    assert f"mendflow watch {case} --output-dir DIR writes them" in failed.stderr
    shell.ok("watch", case, "--output-dir", "other")
    assert _written(shell.folder / "other") == {"S01/counts.tsv": "S01"}
