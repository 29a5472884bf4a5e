"""A result that was made from a part of what it needs never looks like any other."""

import re

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

GROUPS = """
name: groups
inputs: {lanes: {type: table, default: lanes.csv}}
jobs:
  clean:
    for-each:
      lane: ${{ inputs.lanes }}
      tolerate: 1
      collect: {sample: "${{ lane.sample }}", clean: "${{ jobs.clean.files.clean }}"}
    run: |
      test ${{ quote(lane.sample + lane.lane) }} != a2
      echo x > clean.txt
    files: {clean: clean.txt}
  merge:
    for-each: {group: "${{ jobs.clean.outputs.filter(o, o != null).group_by('sample') }}"}
    inputs: {parts/: "${{ group.items.map(each, each.clean) }}"}
    run: cat parts/* > merged.txt
    files: {merged: merged.txt}
"""
CANCELLED = """
name: parts
jobs:
  part:
    for-each: {n: [1, 2, 3]}
    run: |
      if [ ${{ n }} = 2 ]; then touch HERE/begun; sleep 600; fi
      echo ${{ n }} > out.txt
    files: {out: out.txt}
  merge:
    inputs: {parts/: "${{ jobs.part.files.out }}"}
    run: cat parts/* > all.txt
"""


def test_a_group_that_lost_a_member_is_told_of_at_the_end_in_why_and_in_the_report(shell: Shell) -> None:  # DU-3
    shell.write("groups.yaml", GROUPS)
    shell.write("lanes.csv", "sample,lane\na,1\na,2\nb,1\n")
    told = " ".join(shell.ok("run", "groups.yaml", "--quiet", "--report", "page.html").split())
    who = r"merge ran without the results of clean\[1\] \([^)]*\), which failed"
    pattern = rf"ncomplete: {who}; groups by sample: a incomplete"
    texts = [told, shell.ok("why", "last"), shell.ok("why", "last:merge[0]"), (shell.folder / "page.html").read_text()]
    assert [bool(re.search(pattern, text)) for text in texts] == [True] * 4


@pytest.mark.full
def test_what_follows_a_loop_of_which_one_iteration_was_cancelled_does_not_run_and_that_is_told(shell: Shell) -> None:
    # DU-3
    shell.write("parts.yaml", CANCELLED.replace("HERE", str(shell.folder)))
    running = shell.start("run", "parts.yaml", "--quiet", "--jobs", "3")
    shell.until((shell.folder / "begun").exists)
    shell.ok("cancel", "last", "part[1]", "--reason", "not needed")
    told, _ = running.communicate(timeout=PATIENCE_S)
    assert "cancelled: part[1] (2): not needed" in told
    states = {item["item"]: item["state"] for item in shell.json("items", "last")}
    assert states == {"part[0]": "completed", "part[1]": "cancelled", "part[2]": "completed", "merge": "skipped"}


LOOP_WITHOUT_A_LIST = """
name: lists
jobs:
  tol:
    for-each: {n: [1, 2, 3], tolerate: 1, collect: {g: "${{ n }}"}}
    run: test ${{ n }} != 2
  fine:
    for-each: {group: "${{ jobs.tol.outputs.group_by('g') }}"}
    run: echo ${{ group.key }}
  grp:
    for-each: {g: "${{ jobs.tol.outputs.map(o, o.g + 1) }}"}
    run: echo ${{ g }}
  bad: {run: exit 7}
"""


@pytest.mark.full
def test_a_loop_whose_list_cannot_be_evaluated_is_told_of_by_name_and_tolerated_failures_apart(shell: Shell) -> None:
    # DU-3
    shell.write("lists.yaml", LOOP_WITHOUT_A_LIST)
    told = shell("run", "lists.yaml", "--quiet").stdout
    went_on, _, failed = told.partition("\nfailed:\n")
    assert "failed, and the flow went on:\n  tol[1] (2)" in went_on
    assert "  grp: `jobs.tol.outputs.map" in failed and "bad: it ended with exit code 7" in failed
    assert "tol[1] (2): it ended" not in failed and ":tol[1]'" not in failed
    states = {item["item"]: item["state"] for item in shell.json("items", "last")}
    assert (states["grp"], states["fine[0]"], states["fine[1]"]) == ("failed", "completed", "completed")
    assert "grp has failed: " in shell("why", "last:grp").stdout
    assert "tol[1] (2): it ended" not in shell("why", "last").stdout.partition("no repair")[0]
