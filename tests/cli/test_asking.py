"""Asking, with the real command line: what a failed job said is told, and failures of one cause are one group."""

import re

import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.full

KINDS = """
name: kinds
inputs: {number: 1}
jobs:
  fine: echo fine
  script:
    needs: fine
    run: |
      echo reading
      python3 -c 'raise KeyError("row${{ inputs.number }}")'
  missing: no-such-program --number ${{ inputs.number }}
  spoken: "echo 'Error: cannot open /data/run${{ inputs.number }}.db: it is locked' >&2; exit 1"
  silent: exit 1
"""

DONE = """
name: done
jobs:
  one: echo "n=1" >> $MENDFLOW_OUTPUT
  two: {needs: one, run: echo two}
outputs: {number: "${{ jobs.one.outputs.n }}"}
"""


def test_why_shows_the_error_itself_and_not_an_exit_code(shell: Shell) -> None:
    # DU-4
    shell.write("kinds.yaml", KINDS)
    assert shell("run", "kinds.yaml", "--quiet").returncode == 1
    told = shell.ok("why", "last:script")
    assert "script: it failed: KeyError: 'row1' (exit code 1)" in told
    assert "| reading" in told
    assert "| KeyError: 'row1'" in told
    assert "command not found: no-such-program (exit code 127" in shell.ok("why", "last:missing")
    assert "spoken: it failed: Error: cannot open /data/run1.db: it is locked (exit code 1)" in shell.ok(
        "why", "last:spoken"
    )
    assert "silent: it failed: it ended with exit code 1" in shell.ok("why", "last:silent")
    assert "jobs: 1 completed, 4 failed" in shell.ok("why", "last")


def test_failures_are_grouped_by_what_was_raised_and_a_rule_is_offered_over_the_log(shell: Shell) -> None:
    # DU-4 EX-7
    shell.write("kinds.yaml", KINDS)
    for number in (1, 22):
        assert shell("run", "kinds.yaml", "--quiet", "--input", f"number={number}").returncode == 1
    groups = {each["message"]: each for each in shell.json("failures")}
    assert {
        message: each["count"]
        for message, each in groups.items()
        if "exit code 1]" in message or message.endswith("code 1")
    } == {
        "KeyError: <name> [exit code 1]": 2,
        "Error: cannot open <path> it is locked [exit code 1]": 2,
        "it ended with exit code 1": 2,
    }
    group = groups["Error: cannot open <path> it is locked [exit code 1]"]["id"]
    view = shell.json("failures", "show", group)
    assert view["candidates"][0]["condition"].startswith("job.log_tail.contains(")
    assert view["candidates"][0]["reason"] == "holds in 2 of 2"
    told = shell.ok("failures", "show", group)
    assert f"mendflow rules add --from {group} --if 'job.log_tail.contains(" in told
    assert told.count("no rule fits") == 2
    assert len(told.splitlines()) <= 18, "short: the rest is behind --all"
    whole = shell.ok("failures", "show", group, "--all")
    assert "typical values" in whole
    assert "typical values" not in told


def test_why_of_a_completed_case_says_what_it_did(shell: Shell) -> None:
    shell.write("done.yaml", DONE)
    shell.ok("run", "done.yaml", "--quiet")
    told = shell.ok("why", "last")
    assert "has completed after" in told
    assert "jobs: 2 completed" in told
    assert "output number: 1" in told


def test_items_of_a_loop_are_shown_with_their_elements(shell: Shell) -> None:
    shell.write(
        "clean.yaml",
        "jobs:\n  clean:\n    for-each: {sample: [data/s1.txt, data/s2.txt]}\n"
        "    run: 'test ${{ index }} = 0 || { echo \"error: gone\" >&2; exit 3; }'\n    retries: 0\n",
    )
    shell.environment["COLUMNS"] = "200"
    done = shell("run", "clean.yaml", "--quiet")
    assert "  clean[1] (s2.txt): error: gone (exit code 3)" in done.stdout
    assert re.search(r"clean\[0\] \(s1\.txt\)\s+job\s+completed", shell.ok("items", "last"))
    assert "clean[1] (s2.txt)" in shell.ok("jobs")
    assert "clean[1] (s2.txt): error: gone" in shell.ok("why", "last")
    told = shell.ok("why", "last:clean[1]")
    assert "clean[1] (s2.txt): it failed: error: gone" in told
    assert re.search(r"clean\[1\] \(s2\.txt\) failed +error: gone", told)
    assert "no rule fits this failure, and the built-in rules leave it alone, as its flow says `retries: 0`; " in told
    [group] = shell.json("failures")
    assert f"mendflow rules add --from {group['id']} --if CONDITION --exlet EXLET adds one" in told
    assert "clean[1] (s2.txt)" in shell.ok("failures", "show", group["id"])
    assert re.search(r"submitted +clean\[1\] \(s2\.txt\)", shell.ok("history", "last"))
    [report] = (shell.folder / ".mendflow" / "reports").iterdir()
    assert "clean[1] (s2.txt)" in report.read_text()


def test_a_failure_that_is_tried_again_says_so(shell: Shell) -> None:
    shell.write("often.yaml", "jobs:\n  a: {run: exit 3, retries: 1}\n")
    shell("run", "often.yaml", "--quiet")
    told = shell.ok("why", "last")
    assert "no rule fits this failure; it is tried again, as its `retries` say" in told
    assert "the built-in rules leave it alone, as its `retries` are used up; " in told


def test_who_forbids_retries_is_told_what_the_rules_would_have_done(shell: Shell) -> None:
    shell.write("big.yaml", "jobs:\n  big: {run: 'head -c 400M /dev/zero | tail', memory: 50MB, retries: 0}\n")
    shell("run", "big.yaml", "--quiet")
    told = shell.ok("why", "last")
    assert "as its flow says `retries: 0` (else they would have given it more memory); mendflow failures show" in told
