"""A result that was made from a part of what it needs never looks like any other."""

import re

import pytest

from tests.cli.conftest import Shell

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
    pattern = r"ncomplete: merge works without clean\[1\] \([^)]*\), which failed; groups incomplete by sample: a"
    texts = [told, shell.ok("why", "last"), shell.ok("why", "last:merge[0]"), (shell.folder / "page.html").read_text()]
    assert [bool(re.search(pattern, text)) for text in texts] == [True] * 4


@pytest.mark.full
def test_what_follows_a_loop_of_which_one_iteration_was_cancelled_does_not_run_and_that_is_told(shell: Shell) -> None:
    # DU-3
    shell.write("parts.yaml", CANCELLED.replace("HERE", str(shell.folder)))
    running = shell.start("run", "parts.yaml", "--quiet", "--jobs", "3")
    shell.until((shell.folder / "begun").exists)
    shell.ok("cancel", "last", "part[1]", "--reason", "not needed")
    told, _ = running.communicate(timeout=60)
    assert "cancelled: part[1] (2): not needed" in told
    states = {item["item"]: item["state"] for item in shell.json("items", "last")}
    assert states == {"part[0]": "completed", "part[1]": "cancelled", "part[2]": "completed", "merge": "skipped"}
