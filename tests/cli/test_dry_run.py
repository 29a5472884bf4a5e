"""A dry run says for each job whether it would run and why, or whose result would be used; then the run does so."""

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

FLOW = """
name: lengths
inputs: {samples: {type: list}, note: {type: file, default: note.txt}}
jobs:
  count:
    for-each: {sample: "${{ inputs.samples }}"}
    inputs: {in.txt: "samples/${{ sample }}.txt", note.txt: note.txt}
    run: wc -l < in.txt > lines.txt
    files: {lines: lines.txt}
  add:
    inputs: {parts/: "${{ jobs.count.files.lines }}"}
    run: cat parts/* > sum.txt
    files: {sum: sum.txt}
  told:
    inputs: {sum.txt: "${{ jobs.add.files.sum }}", note.txt: "${{ inputs.note }}"}
    run: cat sum.txt > told.txt
    files: {told: told.txt}
"""
PYTHON = """
from mendflow import flow, job
from beside import FACTOR

@job
def twice(n):
    return n * FACTOR

@flow
def doubled(n: int = 2):
    return twice(twice(n))
"""


def rows(told: str) -> dict[str, str]:
    return {line.split()[0]: line for line in told.splitlines() if " job " in line}


def written(shell: Shell, *samples: str) -> list[str]:
    (shell.folder / "samples").mkdir(exist_ok=True)
    for sample in samples:
        shell.write(f"samples/{sample}.txt", f"{sample}\n")
    shell.write("lengths.yaml", FLOW)
    shell.write("note.txt", "note\n")
    return ["run", "lengths.yaml", "--input", f"samples={list(samples)}".replace("'", '"')]


@pytest.mark.full
@pytest.mark.parametrize("there", ["folder", "server"])
def test_a_dry_run_names_the_results_that_the_run_then_uses(shell: Shell, there: str) -> None:  # DU-2
    asked = ["--server", served(shell, "--jobs", "2", "--files-root", str(shell.folder))] if there == "server" else []
    run = [*written(shell, "one", "two"), *asked]
    before = shell.ok(*run, "--dry-run")
    assert "2 items would start at once; nothing was started" in before
    assert "would run after count" in rows(before)["add"]
    shell.ok(*run, "--quiet")
    told = rows(shell.ok(*run, "--dry-run"))
    assert "found: 2 results of lengths-" in told["count"] and "found: result of lengths-" in told["add"]
    assert "found: result of lengths-" in told["told"]
    assert "0 done, 4 cached" in shell.ok(*run, "--quiet")


@pytest.mark.full
def test_a_dry_run_says_why_jobs_would_run_and_what_runs_after_them(shell: Shell) -> None:  # DU-2
    shell.ok(*written(shell, "one", "two"), "--quiet")
    run = written(shell, "one", "two", "new")
    shell.write("samples/two.txt", "changed\n")
    told = shell.ok(*run, "--dry-run")
    assert "found: result of lengths-" in rows(told)["count"] and "2 at once" in rows(told)["count"]
    assert "would run after add" in rows(told)["told"]
    assert "count: 1 of them would run, because no earlier case had new here" in told
    assert "count: 1 of them would run again, because its input in.txt has other content since case lengths-" in told
    jobs = {job["item"]: job for item in shell.json(*run, "--dry-run") for job in item.get("jobs", [])}
    assert jobs["count[0] (one)"]["found"].startswith("lengths-") and "found" not in jobs["count[2] (new)"]
    assert "because no earlier results are to be used" in shell.ok(*run, "--dry-run", "--no-cache")
    done = shell.ok(*run, "--quiet")
    assert "4 done, 1 cached" in done


@pytest.mark.full
def test_a_dry_run_leaves_store_and_results_as_they_are(shell: Shell) -> None:  # DU-2
    run = written(shell, "one")
    shell.ok(*run, "--quiet")
    before = shell.json("cache", "list"), shell.json("cases"), shell.json("flows", "list")
    stored = sorted((shell.folder / ".mendflow" / "files").rglob("*"))
    shell.write("samples/one.txt", "changed\n")
    shell.ok(*run, "--dry-run")
    assert (shell.json("cache", "list"), shell.json("cases"), shell.json("flows", "list")) == before
    assert sorted((shell.folder / ".mendflow" / "files").rglob("*")) == stored


@pytest.mark.full
def test_a_dry_run_of_a_python_flow_sees_its_code_and_the_modules_beside_it(shell: Shell) -> None:  # DU-2
    shell.write("doubled.py", PYTHON)
    shell.write("beside.py", "FACTOR = 2\n")
    shell.ok("run", "doubled.py", "--quiet")
    assert "2 results of earlier cases would be used" in shell.ok("run", "doubled.py", "--dry-run")
    shell.write("beside.py", "FACTOR = 3\n")
    told = shell.ok("run", "doubled.py", "--dry-run")
    assert "would run again, because beside.py changed since case doubled-" in told
    shell.write("doubled.py", PYTHON + "\n# a comment\n")
    assert "because doubled.py and beside.py changed since case" in shell.ok("run", "doubled.py", "--dry-run")


@pytest.mark.full
@pytest.mark.parametrize("given", [(), ("--input", "rows=@s.csv")])
def test_a_dry_run_knows_the_files_of_a_table_by_their_content(shell: Shell, given: tuple[str, ...]) -> None:  # DU-2
    shell.write("s.csv", "name,reads\na,a.fq\nb,b.fq\n")
    for name in ("a.fq", "b.fq"):
        shell.write(name, name)
    shell.write(
        "f.yaml",
        "inputs: {rows: {type: table, default: s.csv, columns: {reads: file}}}\n"
        'jobs: {x: {for-each: {r: "${{ inputs.rows }}"}, inputs: {in.fq: "${{ r.reads }}"}, run: wc in.fq > n,'
        " files: {n: n}}}\n",
    )
    run = ["run", "f.yaml", *given]
    shell.ok(*run, "--quiet")
    assert "2 results of earlier cases would be used" in shell.ok(*run, "--dry-run")
    shell.write("b.fq", "other")
    told = shell.ok(*run, "--dry-run")
    assert "1 result of earlier cases would be used" in told and "in.fq has other content since case" in told
    assert "1 done, 1 cached" in shell.ok(*run, "--quiet")


def test_jobs_are_listed_as_they_stand_in_the_flow(shell: Shell) -> None:
    told = shell.ok(*written(shell, "a", "b"), "--dry-run")
    assert list(rows(told)) == ["count", "add", "told"]


def test_a_python_function_of_a_yaml_flow_is_named_as_the_flow_names_it(shell: Shell) -> None:
    shell.write("steps.py", "def count():\n    return 1\n")
    shell.write("py.yaml", "name: py\njobs:\n  trim: {run: 'true'}\n  count: {python: steps.py:count, needs: trim}\n")
    told = shell.ok("run", "py.yaml", "-n")
    assert "steps.py:count" in told
    assert "FunctionRef" not in told
