"""A case, an item or a job is named in the same forms in all commands."""

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

FLOW = """
name: many
jobs:
  say: {for-each: [a, b], run: 'echo "this is ${{ item }}"'}
  twice: {needs: say, retries: 1, run: 'echo "attempt $MENDFLOW_ATTEMPT"; [ $MENDFLOW_ATTEMPT = 2 ]'}
  bar: {run: "printf '10%%\\\\r50%%\\\\r100%%\\\\ndone'"}
"""
WAITING = """
name: waiting
jobs:
  j: {run: 'until [ -e HERE/go ]; do sleep 0.05; done'}
  k: {run: 'until [ -e HERE/go ]; do sleep 0.05; done'}
"""


def ran(shell: Shell) -> str:
    shell.write("many.yaml", FLOW)
    shell.ok("run", "many.yaml", "--quiet")
    return str(shell.json("cases")[0]["id"])


@pytest.mark.full
def test_a_job_is_named_by_its_item_or_its_number_in_every_command_that_takes_one(shell: Shell) -> None:
    case = ran(shell)
    number = shell.json("items", "last", "--name", "bar")[0]["job"].rpartition("/")[2]
    for form in ("last:bar", "last/bar", f"last/{number}", f"{case}:bar", f"{case}/bar", f"{case}/{number}"):
        assert shell.ok("logs", form) == "10%\r50%\r100%\ndone"
        assert "completed" in shell.ok("why", form)
        assert "bar" in shell.ok("history", form) and "twice" not in shell.ok("history", form)
        assert f"made by {case}:bar" in shell.ok("cache", "show", form)
        assert "is not kept: only those of failed attempts are" in " ".join(shell("shell", form).stderr.split())
        assert f"case {case} is over: completed" in shell("cancel", form).stderr


@pytest.mark.full
def test_an_item_of_a_loop_is_named_by_its_element_too(shell: Shell) -> None:  # DU-4
    case = ran(shell)
    for form in ("last:say[b]", "last:b", f"{case}/b", "last:say[1]"):
        assert shell.ok("logs", form) == "this is b\n" and "say[1] (b) completed" in shell.ok("why", form)
    assert "say[1] (b) completed" in shell.ok("why", "last", "b")
    refused = " ".join(shell("why", "last:bar", "b").stderr.split())
    assert "names the item bar, and b is given beside it" in refused
    assert "has no item 'nope'" in " ".join(shell("why", "last:nope").stderr.split())
    assert "has no item 'say[nope]'" in " ".join(shell("logs", "last:say[nope]").stderr.split())
    assert {job["id"] for job in shell.json("jobs", "last")} == {job["id"] for job in shell.json("jobs")}


def test_an_element_of_two_loops_is_asked_back(shell: Shell) -> None:  # DU-4
    shell.write("two.yaml", "name: two\njobs:\n  x: {for-each: [a], run: 'true'}\n  y: {for-each: [a], run: 'true'}\n")
    shell.ok("run", "two.yaml", "--quiet")
    refused = shell("why", "last:a")
    assert refused.returncode == 2 and "a is the element of x[0], y[0]; name one" in " ".join(refused.stderr.split())


@pytest.mark.full
def test_an_item_that_runs_is_cancelled_suspended_and_resumed_by_one_word(shell: Shell) -> None:
    shell.write("waiting.yaml", WAITING.replace("HERE", str(shell.folder)))
    shell.start("serve", "--jobs", "2", "--port", "0")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    case = shell.ok("start", "waiting.yaml").split()[0]
    assert f"item j of {case} is suspended" in shell.ok("suspend", "last:j")
    assert f"item j of {case} is resumed" in shell.ok("resume", "last/j")
    assert f"item j of {case} is cancelled" in shell.ok("cancel", "last:j")
    refused = shell("cancel", "last:j", "k")
    assert refused.returncode == 2 and "last:j names the item j, and k is given beside it" in refused.stderr
    shell.write("go", "")
    shell("watch", "last", "--quiet")
    assert {item["item"]: item["state"] for item in shell.json("items", "last")} == {"j": "cancelled", "k": "completed"}


@pytest.mark.full
def test_the_logs_of_a_loop_of_all_attempts_and_of_a_whole_case_have_a_head_line_each(shell: Shell) -> None:
    ran(shell)
    assert shell.ok("logs", "last:say") == "==> say[0] (a) <==\nthis is a\n\n==> say[1] (b) <==\nthis is b\n"
    attempts = shell.ok("logs", "last:twice")
    assert attempts.startswith("==> twice, attempt 1 of 2: failed, ")
    assert attempts.endswith("==> twice, attempt 2 of 2: completed <==\nattempt 2\n")
    assert shell.ok("logs", "last:twice", "--attempt", "1") == "attempt 1\n"
    whole = shell.ok("logs", "last")
    assert [line for line in whole.splitlines() if line.startswith("==> say")] == [
        "==> say[0] (a) <==",
        "==> say[1] (b) <==",
    ]
    assert [each["log"] for each in shell.json("logs", "last:say")] == ["this is a\n", "this is b\n"]
    assert shell.json("logs", "last:twice")["log"] == "attempt 2\n"
    refused = shell("logs", "-f", "last:say")
    assert refused.returncode == 2 and "say are 2 jobs; follow one of them" in refused.stderr


@pytest.mark.full
def test_the_log_of_a_cached_item_is_that_of_the_job_that_made_its_result(shell: Shell) -> None:
    first = ran(shell)
    shell.ok("run", "many.yaml", "--cached", "--quiet")
    told = shell("logs", "last:say[0]")
    assert told.stdout == "this is a\n"
    assert f"cached: this is what {first}/" in " ".join(told.stderr.split())


@pytest.mark.full
@pytest.mark.parametrize("form", ["last:nothing", "last/nothing"])
def test_a_name_that_nothing_has_is_refused_with_where_to_look(shell: Shell, form: str) -> None:
    case = ran(shell)
    for command in ("logs", "shell"):
        done = shell(command, form)
        assert done.returncode == 5 and f"`mendflow items {case}` lists them" in " ".join(done.stderr.split())


@pytest.mark.full
def test_who_follows_a_job_that_is_tried_again_sees_where_the_next_attempt_begins(shell: Shell) -> None:
    waits = f"echo first words; until [ -e {shell.folder}/go ]; do sleep 0.05; done; [ $MENDFLOW_ATTEMPT = 2 ]"
    shell.write("again.yaml", f"name: again\njobs: {{j: {{retries: 1, run: '{waits}'}}}}\n")
    shell.start("serve", "--jobs", "1", "--port", "0")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    shell.ok("start", "again.yaml")
    shell.until(lambda: shell.json("items", "last"))
    following = shell.start("logs", "-f", "last:j")
    assert following.stdout is not None and following.stdout.readline() == "first words\n"
    shell.write("go", "")
    assert following.communicate(timeout=PATIENCE_S)[0] == "\n==> attempt 2 <==\nfirst words\n"
