"""What the command line says before and while something runs: what would run, what waits, whom it asks."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

LARGE = """
name: large
jobs:
  small: echo small
  large: {run: echo large, memory: 900 TB}
  later: {needs: large, run: echo later}
  each: {needs: small, for-each: [1, 2], run: "echo ${{ item }}"}
"""
RULES = """
abort:
  "*":
    - if: fault.exit_code == 9
      do: again
exlets:
  again:
    steps: [re-submit]
"""


def test_a_dry_run_says_what_would_run_and_why_and_writes_nothing(shell: Shell) -> None:
    shell.write("large.yaml", LARGE)
    told = shell.ok("run", "large.yaml", "--dry-run")
    rows = {line.split()[0]: line for line in told.splitlines() if line.split()}
    assert "at once" in rows["small"]
    assert "after large" in rows["later"]
    assert "after small, once for each element" in rows["each"]
    assert "large: it could not run here: it asks for 900 TB of memory, and this machine has" in told
    assert [path.name for path in shell.folder.iterdir()] == ["large.yaml"]
    planned = {item["name"]: item for item in shell.json("run", "large.yaml", "--dry-run")}
    assert planned["small"]["items"] == 1
    assert "items" not in planned["later"]


@pytest.mark.full
@pytest.mark.parametrize("quiet", [["--quiet"], []])
def test_a_job_that_no_pilot_can_ever_take_is_told_of_at_once_with_figures(shell: Shell, quiet: list[str]) -> None:
    shell.write("large.yaml", LARGE)
    running = shell.start("run", "large.yaml", *quiet)
    assert running.stdout is not None
    told = ""
    while "no pilot can take it" not in told:
        line = running.stdout.readline()
        assert line, f"it ended without a word: {told}"
        told += line
    assert "large: no pilot can take it: it asks for 900 TB of memory; the largest pilot" in told
    [case] = [each for each in shell.json("cases") if each["flow"] == "large"]
    assert f"{case['id']} is cancelled" in shell.ok("cancel", "last")
    assert running.wait(PATIENCE_S) == 1


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["cases", "--data-dir", "here"], {"MENDFLOW_SERVER": "http://127.0.0.1:9"}, "name two places to ask"),
        (["why", "--server", "http://127.0.0.1:9", "--data-dir", "here"], {}, "name two places to ask"),
        (["rerun", "last", "--data-dir", "here"], {"MENDFLOW_SERVER": "http://127.0.0.1:9"}, "name two places"),
    ],
)
def test_a_folder_beside_a_server_is_an_error(
    shell: Shell, words: list[str], variables: dict[str, str], said: str
) -> None:
    done = shell(*words, **variables)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_folder_and_a_server_that_both_come_from_the_environment_are_none(shell: Shell) -> None:
    done = shell("cases", MENDFLOW_SERVER="http://127.0.0.1:9", MENDFLOW_DATA_DIR="here")
    assert done.returncode == 4


@pytest.mark.full
def test_run_says_that_it_does_not_follow_the_variable_and_follows_the_option(shell: Shell, tmp_path: Path) -> None:
    shell.write("hello.yaml", "name: hello\njobs: {hello: echo hello}\n")
    told = shell("run", "hello.yaml", "-q", MENDFLOW_SERVER="http://127.0.0.1:9")
    assert told.returncode == 0
    assert "MENDFLOW_SERVER is not followed" in told.stderr
    serving = shell.start("serve", "--port", "0", "--data-dir", "there", "--jobs", "1")
    assert serving.stdout is not None
    url = ""
    while not url:
        url = next((word.strip(".,") for word in serving.stdout.readline().split() if word.startswith("http")), "")
    there = shell("run", "hello.yaml", "-q", "--server", url)
    assert there.returncode == 0, there.stderr
    assert "hello-" in there.stdout and "completed" in there.stdout
    assert len(shell.json("cases", "--server", url)) == 1
    assert len(shell.json("cases")) == 1


@pytest.mark.full
def test_rules_flows_and_archives_can_be_the_first_things_in_an_empty_folder(shell: Shell) -> None:
    shell.write("hello.yaml", "name: hello\njobs: {hello: echo hello}\n")
    shell.write("hello.rules.yaml", RULES)
    assert "version 1" in shell.ok("rules", "import", "hello.rules.yaml", "--data-dir", "one")
    assert "hello version 1" in shell.ok("flows", "deploy", "hello.yaml", "--data-dir", "two")
    shell.ok("run", "hello.yaml", "-q", "--data-dir", "three")
    shell.ok("admin", "export", "last", "--data-dir", "three", "--to", "hello.archive")
    assert "1 case imported" in shell.ok("admin", "import", "hello.archive", "--data-dir", "four")


@pytest.mark.full
def test_the_report_of_a_running_case_shows_the_present(shell: Shell) -> None:
    shell.write("slow.yaml", "name: slow\njobs: {slow: sleep 300}\n")
    shell.start("run", "slow.yaml", "-q")
    shell.until(lambda: any(item["state"] == "running" for item in _items(shell)))
    shell.ok("report", "last", "-o", "slow.html")
    page = (shell.folder / "slow.html").read_text()
    assert "as of" in page
    assert "running" in page
    shell.ok("cancel", "last")


def _items(shell: Shell) -> list[dict[str, object]]:
    done = shell("items", "last", "--json")
    if done.returncode:
        return []
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found
