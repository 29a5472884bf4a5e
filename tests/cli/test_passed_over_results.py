"""A job that runs although its result is there is named, with the reason, at the end of the run."""

import pytest

from tests.cli.conftest import Shell

FLOW = """
name: again
jobs:
  list: {run: printf 'b\\na\\n' > list.txt, files: {list: list.txt}}
  load: {run: echo 1 > rows.txt, files: {rows: rows.txt}}
  sort: {inputs: {in.txt: "${{ jobs.list.files.list }}"}, run: sort in.txt > out.txt, files: {out: out.txt}}
  tell: {for-each: {n: [1, 2]}, run: "echo ${{ n }}"}
"""


def test_jobs_that_ran_although_their_results_are_there_are_named_once_with_the_reason(shell: Shell) -> None:  # DU-2
    shell.write("again.yaml", FLOW)
    assert "there are results" not in shell.ok("run", "again.yaml", "--quiet")
    told = shell.ok("run", "again.yaml", "--quiet")
    [line] = [line for line in told.splitlines() if line.startswith("ran although there are results")]
    assert "which --cached uses: list, load (it declares no inputs, so nothing tells what it is made from)" in line
    assert "; tell (it declares no `files`, so what it does is done elsewhere)" in line
    assert "cached: 1 result" in told and "sort" not in line
    why = " ".join(shell.ok("why", "last:load").split())
    assert "not taken from the cache, although there is a result: it declares no inputs" in why
    assert "--cached, or `cache: true` in the job, uses it" in why


@pytest.mark.full
def test_a_run_that_uses_all_or_no_results_names_no_job_that_ran_in_spite_of_one(shell: Shell) -> None:  # DU-2
    shell.write("again.yaml", FLOW)
    shell.ok("run", "again.yaml", "--quiet")
    told = shell.ok("run", "again.yaml", "--quiet", "--no-cache") + shell.ok("run", "again.yaml", "--quiet", "--cached")
    assert "there are results" not in told
