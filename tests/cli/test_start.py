"""`mendflow start` gives a case to a server with the defaults and options that `mendflow run` has."""

import json

import pytest

from tests.cli.conftest import Shell

MADE = """
name: made
jobs:
  make: {run: 'wc -c < in.txt > out.txt', inputs: {in.txt: in.txt}, files: {out: out.txt}}
outputs: {out: "${{ jobs.make.files.out }}"}
"""
FAILS = "name: fails\njobs: {a: {run: exit 3}}\n"


@pytest.mark.full
def test_a_case_that_is_waited_for_brings_its_outputs_and_uses_results_as_a_run_does(shell: Shell) -> None:  # DU-2
    shell.write("made.yaml", MADE)
    shell.write("in.txt", "four")
    shell.write("fails.yaml", FAILS)
    shell.start("serve", "--port", "0", "--data-dir", "server", "--jobs", "1")
    file = shell.folder / "server" / "server.json"
    shell.until(file.exists)
    shell.environment["MENDFLOW_SERVER"] = json.loads(file.read_text())["url"]
    told = shell.ok("start", "made.yaml", "--wait", "--quiet", "--output-dir", "got")
    assert "1 done" in told and (shell.folder / "got" / "out.txt").read_text().strip() == "4"
    assert "1 cached" in shell.ok("start", "made.yaml", "--wait", "--quiet")
    assert "1 cached" in shell.ok("start", "made", "--wait", "--quiet"), "also by the name of the deployed flow"
    assert "1 cached" not in shell.ok("start", "made.yaml", "--wait", "--quiet", "--no-cache")
    assert "1 cached" not in shell.ok("start", "made.yaml", "--wait", "--quiet", "--again", "make")
    assert shell("start", "fails.yaml", "--wait", "--quiet").returncode == 1


def test_a_case_whose_input_is_no_amount_is_refused_before_a_job_runs(shell: Shell) -> None:  # DU-3
    shell.write(
        "reduce.yaml",
        "inputs: {size: 200 MB}\njobs:\n  split: {run: touch ran}\n"
        "  reduce: {needs: split, run: echo x, memory: '${{ inputs.size }}'}\n",
    )
    refused = shell("run", "reduce.yaml", "-i", "size=lots", "--quiet")
    assert refused.returncode == 2
    assert "job reduce: memory is 'lots' (from inputs.size); write a size such as 200 MB" in refused.stderr
    assert "reduce" not in shell("cases").stdout


def test_what_needs_the_end_of_a_case_is_refused_where_it_is_not_waited_for(shell: Shell) -> None:  # DU-2
    shell.write("made.yaml", MADE)
    shell.write("in.txt", "four")
    refused = shell("start", "made.yaml", "--output-dir", "got")
    assert refused.returncode and "add --wait" in " ".join(refused.stderr.split())
    refused = shell("start", "made.yaml", "--wait")
    assert refused.returncode and "mendflow run FLOW runs it by itself" in " ".join(refused.stderr.split())
