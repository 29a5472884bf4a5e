"""Who corrects an input file and goes on means the corrected one: it is taken, or its absence is told."""

import pytest

from tests.cli.conftest import Shell

FLOW = """
name: sift
inputs: {table: {type: file}, level: {type: number, default: 1}}
jobs:
  first: {run: "echo ${{ inputs.level }} > out", files: {out: out}}
  sift: {run: "grep -q good table", inputs: {table: "${{ inputs.table }}", level: "${{ jobs.first.files.out }}"}}
"""
HELD = FLOW.replace("name: sift", "name: sift\non-unhandled: hold")


@pytest.fixture
def failed(shell: Shell) -> Shell:
    shell.write("sift.yaml", FLOW)
    shell.write("bad.txt", "bad\n")
    shell.write("other.txt", "nothing\n")
    for name in ("bad", "other"):
        assert shell("run", "sift.yaml", "--quiet", "--input", f"table={name}.txt").returncode == 1
    return shell


def the_group(shell: Shell) -> str:
    [group] = shell.json("failures")
    return str(group["id"])


@pytest.mark.full
def test_a_group_is_run_again_with_the_input_that_was_corrected_and_goes_on_with_the_others(failed: Shell) -> None:
    # DU-7
    failed.write("bad.txt", "good\n")
    done = failed("rerun", "--group", the_group(failed), "--quiet")
    told = " ".join((done.stdout + done.stderr).split())
    assert "input table has changed since sift-" in told and "its inputs have changed" in told
    assert "1 case goes on from where it stood" in told
    cases = failed.json("cases")
    assert sorted(case["status"] for case in cases) == ["completed", "failed", "failed"]


@pytest.mark.full
def test_a_group_goes_on_as_it_was_if_that_is_said(failed: Shell) -> None:  # DU-7
    failed.write("bad.txt", "good\n")
    done = failed("rerun", "--group", the_group(failed), "--quiet", "--unchanged")
    assert "2 cases go on from where they stood" in done.stdout
    assert [case["status"] for case in failed.json("cases")] == ["failed", "failed"]


@pytest.mark.full
def test_a_group_whose_flow_was_corrected_does_not_go_on_with_the_old_one(failed: Shell) -> None:  # DU-7
    failed.write("sift.yaml", FLOW.replace("grep -q good", "grep -q ."))
    refused = failed("rerun", "--group", the_group(failed), "--quiet")
    assert refused.returncode == 6 and "sift.yaml has changed since sift-" in " ".join(refused.stderr.split())


@pytest.mark.full
def test_a_case_that_goes_on_says_which_of_its_inputs_were_changed_meanwhile(shell: Shell) -> None:  # DU-7
    shell.write("sift.yaml", HELD)
    shell.write("bad.txt", "bad\n")
    shell("run", "sift.yaml", "--quiet", "--input", "table=bad.txt")
    shell.write("bad.txt", "good\n")
    told = " ".join(shell("resume", "last", "--quiet").stderr.split())
    assert "goes on as it was started; since then bad.txt has changed" in told
    assert f"mendflow run sift.yaml --input table={shell.folder}/bad.txt starts a new case with it" in told


@pytest.mark.full
def test_a_file_of_inputs_that_was_corrected_is_read_again_by_a_rerun(shell: Shell) -> None:  # DU-2
    shell.write("sift.yaml", FLOW)
    shell.write("good.txt", "good\n")
    shell.write("values.yaml", "table: good.txt\nlevel: 2\n")
    shell.ok("run", "sift.yaml", "--quiet", "--inputs", "values.yaml")
    shell.write("values.yaml", "table: good.txt\nlevel: 3\n")
    done = shell("rerun", "last", "--quiet")
    assert "input level has changed since sift-" in " ".join(done.stderr.split())
    assert "table has changed" not in done.stderr
    assert shell.json("cases")[0]["inputs"]["level"] == 3


@pytest.mark.full
def test_a_file_of_inputs_that_names_another_path_is_followed_by_a_rerun(shell: Shell) -> None:  # DU-2
    shell.write("sift.yaml", FLOW)
    shell.write("old.txt", "good\n")
    shell.write("new.txt", "good, and new\n")
    shell.write("values.yaml", "table: old.txt\n")
    shell.ok("run", "sift.yaml", "--quiet", "--inputs", "values.yaml")
    shell.write("values.yaml", "table: new.txt\nlevel: 4\n")
    told = " ".join(shell("rerun", "last", "--quiet").stderr.split())
    assert "input table has changed since sift-" in told and "input level has changed since sift-" in told
    inputs = shell.json("cases")[0]["inputs"]
    assert inputs["table"]["name"] == "new.txt" and inputs["level"] == 4


def test_an_input_of_the_command_line_stays_before_the_one_of_the_file(shell: Shell) -> None:  # DU-2
    shell.write("sift.yaml", FLOW)
    shell.write("given.txt", "good\n")
    shell.write("other.txt", "good, but not this\n")
    shell.write("values.yaml", "table: other.txt\n")
    shell.ok("run", "sift.yaml", "--quiet", "--inputs", "values.yaml", "--input", "table=given.txt")
    shell.write("values.yaml", "table: other.txt\nlevel: 2\n")
    assert "input table" not in shell("rerun", "last", "--quiet").stderr
    assert shell.json("cases")[0]["inputs"]["table"]["name"] == "given.txt"
