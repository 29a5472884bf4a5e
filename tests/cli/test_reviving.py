"""Steering, with the real command line: cases that failed go on, and cases are held for a person."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.full

LOCKED = """
name: load
on-unhandled: WORD
inputs: {number: 1}
jobs:
  prepare: echo prepared ${{ inputs.number }} >> ${{ inputs.folder }}/prepared
  load:
    needs: prepare
    run: |
      test -n "${SPARE:-}" || { echo "Error: cannot open /data/run${{ inputs.number }}.db: it is locked" >&2; exit 3; }
  beside: echo beside >> ${{ inputs.folder }}/beside
  report: {needs: load, run: "echo reported >> ${{ inputs.folder }}/reported"}
"""
SPARE = """
steps:
  - re-submit:
    env: {SPARE: "yes"}
"""
CALLER = """
name: caller
inputs: {folder: ""}
jobs:
  first: echo first >> ${{ inputs.folder }}/first
  inner:
    needs: first
    call: load.yaml
    with: {folder: "${{ inputs.folder }}"}
  last: {needs: inner, run: "echo last >> ${{ inputs.folder }}/last"}
"""
CONDITION = 'job.log_tail.contains("it is locked")'


def lines(shell: Shell, name: str) -> int:
    path = shell.folder / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def write_flow(shell: Shell, word: str = "fail") -> None:
    text = LOCKED.replace("WORD", word).replace("inputs: {number: 1}", "inputs: {number: 1, folder: {type: string}}")
    shell.write("load.yaml", text)
    shell.write("spare.yaml", SPARE)


def the_group(shell: Shell) -> str:
    [group] = shell.json("failures")
    return str(group["id"])


def test_a_rule_made_today_mends_all_cases_that_failed_yesterday_from_where_they_stood(shell: Shell) -> None:
    # DU-7
    write_flow(shell)
    for number in (1, 2, 3):
        assert shell("run", "load.yaml", "-q", "-i", f"number={number}", "-i", f"folder={shell.folder}").returncode == 1
    group = the_group(shell)
    shell.ok("rules", "add", "--from", group, "--if", CONDITION, "--exlet", "spare.yaml")
    done = shell("rerun", "--group", group, "--quiet")
    assert (done.returncode, f"the group {group} has 3 cases to go on: 3 of load" in done.stderr) == (0, True)
    told = done.stdout
    assert "3 cases go on from where they stood" in told
    cases = shell.json("cases")
    assert [case["status"] for case in cases] == ["completed"] * 3
    assert {name: lines(shell, name) for name in ("prepared", "beside", "reported")} == {
        "prepared": 3,
        "beside": 3,
        "reported": 3,
    }
    [mended] = shell.json("failures")
    assert (mended["count"], mended["handled"][0]["results"]) == (3, {"recovered": 3})


def test_rules_are_applied_to_failed_cases_and_the_cases_then_resumed(shell: Shell) -> None:
    # DU-7
    write_flow(shell)
    assert shell("run", "load.yaml", "-q", "-i", f"folder={shell.folder}").returncode == 1
    group = the_group(shell)
    nothing = shell.ok("rules", "apply", group)
    assert "1 failure is left as it is:" in nothing and "taken up by no rule: " in nothing
    assert shell.json("cases")[0]["status"] == "failed"
    applied = shell.ok("rules", "add", "--from", group, "--if", CONDITION, "--exlet", "spare.yaml", "--apply")
    assert "1 case goes on from where it stood" in applied
    shell.ok("resume", "last", "-q")
    history = [(entry["what"], entry.get("item")) for entry in shell.json("history", "last")]
    order = [history.index(each) for each in (("failed", "load"), ("reopened", None), ("decided", "load"))]
    assert order == sorted(order)
    repaired, again = history.index(("repaired", "load")), [place for place, e in enumerate(history) if e[0] == "began"]
    assert repaired > again[-2], "a repair is told of after the attempt that shows that it helped"


def test_a_case_that_was_called_goes_on_with_its_caller(shell: Shell) -> None:
    # DU-7
    write_flow(shell)
    shell.write("caller.yaml", CALLER)
    assert shell("run", "caller.yaml", "-q", "-i", f"folder={shell.folder}").returncode == 1
    group = the_group(shell)
    shell.ok("rules", "add", "--from", group, "--if", CONDITION, "--exlet", "spare.yaml")
    shell.ok("rerun", "--group", group, "-q")
    statuses = {case["flow"]: case["status"] for case in shell.json("cases") if not case.get("mends")}
    assert statuses == {"caller": "completed", "load": "completed"}
    assert {name: lines(shell, name) for name in ("first", "prepared", "last")} == {
        "first": 1,
        "prepared": 1,
        "last": 1,
    }


def test_a_group_can_be_tried_again_without_a_rule(shell: Shell) -> None:
    write_flow(shell)
    (shell.folder / "load.yaml").write_text(
        (shell.folder / "load.yaml").read_text().replace('test -n "${SPARE:-}"', f"test -e {shell.folder}/there")
    )
    assert shell("run", "load.yaml", "-q", "-i", f"folder={shell.folder}").returncode == 1
    (shell.folder / "there").touch()
    shell.ok("rerun", "--group", the_group(shell), "-q")
    assert shell.json("cases")[0]["status"] == "completed"
    assert lines(shell, "prepared") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rerun"], "say which case to run again"),
        (["rerun", "last", "--group", "abc"], "say which case to run again"),
        (["rerun", "--group", "abc", "--from-failed"], "are for one case"),
    ],
)
def test_a_rerun_says_what_it_needs(shell: Shell, words: list[str], said: str) -> None:
    done = shell(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_run_that_is_to_fail_is_not_held_whatever_its_flow_says(shell: Shell) -> None:
    write_flow(shell, "hold")
    done = shell("run", "load.yaml", "-q", "-i", f"folder={shell.folder}", "--on-unhandled", "fail")
    assert done.returncode == 1
    [case] = shell.json("cases")
    assert (case["status"], case["held"]) == ("failed", [])


@pytest.mark.parametrize("how", ["flow", "option"])
@pytest.mark.parametrize("then", ["rule", "resume", "mend", "cancel"])
def test_a_failure_that_nobody_takes_up_is_held_for_a_person(shell: Shell, how: str, then: str) -> None:
    # DU-7
    write_flow(shell, "hold" if how == "flow" else "fail")
    if how == "option":
        text = (shell.folder / "load.yaml").read_text().replace("on-unhandled: fail\n", "")
        (shell.folder / "load.yaml").write_text(text)
    option = ["--on-unhandled", "hold"] if how == "option" else []
    done = shell("run", "load.yaml", "-q", "-i", f"folder={shell.folder}", *option)
    assert done.returncode == 1
    assert "is held" in done.stdout
    [case] = shell.json("cases")
    assert (case["status"], case["held"]) == ("running", [f"{case['id']}:load"])
    assert "held" in shell.ok("cases")
    listed = " ".join(shell.ok("worklist", COLUMNS="200").split())
    group = the_group(shell)
    assert f"{case['id']}:load" in listed and "Error: cannot open /data/run1.db: it is locked" in listed
    for command in (
        f"rules apply {group}",
        f"resume {case['id']}",
        f"mend {case['id']} --exlet",
        f"cancel {case['id']}",
    ):
        assert f"mendflow {command}" in listed
    assert [held["item"] for held in shell.json("worklist", "--held")] == ["load"]
    why = shell.ok("why", "last")
    assert (
        "is held for a person: load failed and no rule took it up: Error: cannot open /data/run1.db: it is locked"
        in why
    )
    if then == "rule":
        shell.ok("rules", "add", "--from", the_group(shell), "--if", CONDITION, "--exlet", "spare.yaml", "--apply")
    elif then == "mend":
        shell.ok("mend", "last", "--exlet", "spare.yaml")
    elif then == "cancel":
        shell.ok("cancel", "last")
    if then == "resume":
        assert shell("resume", "last", "-q").returncode == 1
    elif then != "cancel":
        shell.ok("resume", "last", "-q")
    status = json.loads(shell.ok("cases", "--json"))[0]["status"]
    expected = {"rule": "completed", "mend": "completed", "cancel": "cancelled"}
    assert status == expected.get(then, "running"), "it is held again, as the flow or its first run said"
    assert lines(shell, "prepared") == 1


def test_at_a_terminal_a_group_of_several_cases_is_asked_for_and_nothing_begins_without_a_yes(shell: Shell) -> None:
    write_flow(shell)
    for number in (1, 2):
        shell("run", "load.yaml", "-q", "-i", f"number={number}", "-i", f"folder={shell.folder}")
    group = the_group(shell)
    terminal, inner = pty.openpty()
    program = [sys.executable, "-m", "mendflow", "rerun", "--group", group, "-q"]
    asked = subprocess.Popen(
        program, cwd=shell.folder, env=shell.environment, stdin=inner, stderr=inner, stdout=subprocess.DEVNULL
    )
    os.close(inner)
    os.write(terminal, b"n\n")
    told = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while piece := os.read(terminal, 4096):
            told += piece
    os.close(terminal)
    assert asked.wait(PATIENCE_S) == 130
    assert b"2 of load" in told and b"Nothing was begun" in told
    assert [case["status"] for case in shell.json("cases")] == ["failed", "failed"]
