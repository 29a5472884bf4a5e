"""People's tasks on the command line: told of with what answers them, and named as people know them."""

import pytest

from mendflow.cli.task_reminders import task_lines
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.views import UserTaskView
from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

RELEASE = """
jobs:
  approve: {user-task: Go?, role: boss, fields: {approved: yes or no}}
  go: {if: jobs.approve.outputs.approved, run: echo gone}
"""


@pytest.mark.full
def test_a_task_is_named_by_its_case_and_item_and_answered_by_yes_or_no(shell: Shell) -> None:  # AD-6
    shell.write("release.yaml", RELEASE)
    running = shell.start("run", "release.yaml")
    shell.until(lambda: "Go?" in shell("worklist").stdout)
    assert "wants approved: yes or no" in shell.ok("worklist", "show", "last:approve")
    assert shell.json("worklist", "claim", "last:approve")["state"] == "claimed"
    other = shell("worklist", "complete", "last:aprove")
    assert "no user task of last is called aprove; `mendflow worklist --case last` lists them" in other.stderr
    bare = shell("worklist", "complete", "last:approve", "approved=yes")
    assert "mendflow worklist complete TASK -o approved=yes" in bare.stderr
    shell.ok("worklist", "complete", "last:approve", "-o", "approved=yes")
    assert running.wait(PATIENCE_S) == 0
    assert shell.ok("logs", "last:go") == "gone\n"


def test_a_task_that_waits_is_told_of_with_the_commands_that_answer_it() -> None:
    task = UserTaskView(
        id="f-1/3",
        case=CaseId("f-1"),
        item=ItemId("approve"),
        role="boss",
        title="Go?",
        description="",
        data=None,
        fields={"approved": "yes or no", "note": "why"},
        state="offered",
        offered_at=0,
        deadline=1_700_000_000_000,
    )
    first, second = task_lines(task)
    assert first.startswith("waits for a person (boss), until 2023-11-14 ")
    assert first.endswith(": Go?")
    assert second == (
        "  answer with mendflow worklist complete f-1/3 -o approved=yes -o note=VALUE, "
        "or mendflow worklist reject f-1/3"
    )
