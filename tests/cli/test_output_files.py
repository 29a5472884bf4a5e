"""Where the output files of a case stand: each keeps its name when samples come and go."""

from pathlib import Path

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


def test_files_of_a_loop_keep_the_folders_that_their_jobs_left_them_in(shell: Shell) -> None:
    _run(shell, IN_FOLDERS, "S02")
    assert _written(shell.folder / "results") == {"S02/counts.tsv": "S02"}
    told = _run(shell, IN_FOLDERS, "S01", "S02")
    assert "counts[1]: results/S02/counts.tsv" in told
    assert _written(shell.folder / "results") == {"S01/counts.tsv": "S01", "S02/counts.tsv": "S02"}


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
