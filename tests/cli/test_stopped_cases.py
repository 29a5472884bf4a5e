"""A command that runs one case leaves the other unfinished cases of its folder as they are, and says so."""

import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

SLOW = """
name: slow
inputs: {who: {default: all}}
jobs:
  first: {run: 'echo x >> HERE/first; until [ -e HERE/go ]; do sleep 0.05; done; touch HERE/first-over'}
  second: {needs: first, run: 'echo x >> HERE/second'}
"""
OTHER = "name: other\njobs: {one: {run: 'touch HERE/other'}}\n"


def written(shell: Shell) -> None:
    shell.write("slow.yaml", SLOW.replace("HERE", str(shell.folder)))
    shell.write("other.yaml", OTHER.replace("HERE", str(shell.folder)))


def run_and_end(shell: Shell, number: signal.Signals, *words: str) -> str:
    """The case of a run that a signal ended while its first job ran."""
    running = shell.start("run", "slow.yaml", *words)
    shell.until((shell.folder / "first").exists)
    os.kill(running.pid, number)
    running.communicate(timeout=PATIENCE_S)
    return str(shell.json("cases")[0]["id"])


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.full
def test_a_stopped_case_is_left_alone_by_the_run_of_another_flow(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGINT)
    shell.write("go", "")
    told = shell("run", "other.yaml")
    assert told.returncode == 0, told.stderr
    advice = f"`mendflow resume {case}` continues it, `mendflow cancel {case}` ends it"
    assert f"{case} is unfinished; {advice}" in told.stderr
    assert not (shell.folder / "first-over").exists()
    assert not (shell.folder / "second").exists()
    assert f"case {case} is stopped (1 waiting); `mendflow resume {case}` continues it." in shell.ok("why", case)
    assert "mendflow pilot" not in shell.ok("why", case) + shell.ok("why", f"{case}:first")
    assert "completed in" in shell.ok("resume", case)
    assert lines(shell.folder / "second") == 1
    assert "is unfinished" not in shell("run", "other.yaml").stderr


def test_the_same_run_typed_again_continues_the_case_that_was_killed(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGKILL)
    shell.write("go", "")
    told = shell("run", "slow.yaml", "--quiet")
    assert told.returncode == 0, told.stderr
    assert f"{case} was stopped before its end and goes on now; run FLOW --new would start another case" in told.stderr
    assert f"{case} completed in" in told.stdout
    assert [each["id"] for each in shell.json("cases")] == [case]
    assert (lines(shell.folder / "first"), lines(shell.folder / "second")) == (1, 1)


@pytest.mark.full
def test_what_the_pilot_of_a_killed_run_still_runs_is_neither_lost_nor_run_twice(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGKILL)
    until = f"touch {shell.folder}/go; until [ -e {shell.folder}/first-over ]; do sleep 0.05; done"
    shell.write("other.yaml", f"name: other\njobs: {{one: {{run: '{until}'}}}}\n")
    shell.ok("run", "other.yaml", "--jobs", "2")
    assert not (shell.folder / "second").exists()
    shell.ok("resume", case, "--quiet")
    assert (lines(shell.folder / "first"), lines(shell.folder / "second")) == (1, 1)


@pytest.mark.full
def test_a_new_case_is_started_beside_a_stopped_one_if_asked_for_or_if_its_inputs_or_flow_differ(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGINT)
    shell.write("go", "")
    changed = (shell.folder / "slow.yaml").read_text().replace("echo x >> ", "echo y >> ")
    asked = shell("run", "slow.yaml", "--new")
    other = shell("run", "slow.yaml", "--input", "who=ann")
    shell.write("slow.yaml", changed)
    edited = shell("run", "slow.yaml")
    for told in (asked, other, edited):
        assert f"{case} is unfinished" in told.stderr
        assert f"{case} completed" not in told.stdout
        assert told.returncode == 0, told.stderr
    assert len(shell.json("cases")) == 4
    assert shell.json("cases", "--status", "running")[0]["id"] == case


@pytest.mark.full
def test_a_case_started_without_a_server_says_what_runs_it_and_runs_only_then(shell: Shell) -> None:
    written(shell)
    shell.write("go", "")
    shell.ok("run", "other.yaml")
    told = shell.ok("start", "slow.yaml")
    case = told.split()[0]
    assert f"{case} started; no server runs here, so nothing of it runs yet: `mendflow resume {case}` runs it" in told
    assert "`mendflow serve --jobs 2` runs all cases of this folder" in told
    shell.ok("run", "other.yaml")
    assert not (shell.folder / "first").exists()
    assert "completed in" in shell.ok("resume", case)


@pytest.mark.full
def test_a_server_continues_every_case_of_its_folder(shell: Shell) -> None:
    written(shell)
    run_and_end(shell, signal.SIGINT)
    shell.write("go", "")
    shell.start("serve", "--jobs", "2")
    shell.until((shell.folder / "second").exists)


@pytest.mark.full
def test_a_stopped_case_can_be_resumed_at_the_server_of_another_run(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGINT)
    wait = f"touch {shell.folder}/other; until [ -e {shell.folder}/end ]; do sleep 0.05; done"
    shell.write("other.yaml", f"name: other\njobs: {{one: {{run: '{wait}'}}}}\n")
    running = shell.start("run", "other.yaml", "--jobs", "2")
    shell.until((shell.folder / "other").exists)
    assert f"waits until somebody resumes its case: `mendflow resume {case}`." in shell.ok("why", f"{case}:first")
    shell.write("go", "")
    assert f"{case} is resumed" in shell.ok("resume", case)
    shell.until((shell.folder / "second").exists)
    shell.write("end", "")
    assert running.wait(PATIENCE_S) == 0


LEAVES = """
name: leaves
jobs:
  first: {run: 'echo x >> HERE/first; until [ -e HERE/go ]; do sleep 0.05; done; echo x > a.txt', files: {a: a.txt}}
outputs: {a: "${{ jobs.first.files.a }}"}
"""


@pytest.mark.full
def test_where_the_results_of_a_case_go_is_kept_with_it_until_it_is_resumed(shell: Shell) -> None:
    shell.write("slow.yaml", LEAVES.replace("HERE", str(shell.folder)))
    case = run_and_end(shell, signal.SIGKILL, "--output-dir", "results", "--report", "pages/end.html")
    shell.write("go", "")
    told = shell.ok("resume", "--quiet")
    assert "a: results/a.txt" in told and "report: pages/end.html" in told
    assert (shell.folder / "results/a.txt").exists() and (shell.folder / "pages/end.html").exists()
    assert not (shell.folder / "outputs").exists()
    assert "a: elsewhere/a.txt" in shell.ok("rerun", case, "--quiet", "--output-dir", "elsewhere")
    assert "a: results/a.txt" in shell.ok("rerun", case, "--quiet")


@pytest.mark.full
def test_a_case_that_was_to_be_held_is_held_when_it_is_resumed(shell: Shell) -> None:
    failing = f"echo x >> {shell.folder}/first; until [ -e {shell.folder}/go ]; do sleep 0.05; done; exit 3"
    shell.write("slow.yaml", f"name: failing\njobs: {{first: {{run: '{failing}'}}}}\n")
    case = run_and_end(shell, signal.SIGINT, "--on-unhandled", "hold")
    shell.write("go", "")
    assert f"{case} is held: {case}:first failed" in shell("resume", case, "--quiet").stdout


@pytest.mark.full
def test_the_run_typed_again_with_other_wishes_continues_the_case_as_now_wished(shell: Shell) -> None:
    failing = f"echo x >> {shell.folder}/first; until [ -e {shell.folder}/go ]; do sleep 0.05; done; exit 3"
    shell.write("slow.yaml", f"name: failing\njobs: {{first: {{run: '{failing}'}}}}\n")
    case = run_and_end(shell, signal.SIGINT, "--output-dir", "results")
    (shell.folder / "first").unlink()
    assert run_and_end(shell, signal.SIGINT, "--on-unhandled", "hold") == case
    shell.write("go", "")
    assert f"{case} is held" in shell("resume", "--quiet").stdout
    kept = shell.json("cases")[0]
    assert (kept["on_unhandled"], kept["origin"]["output_dir"]) == ("hold", str(shell.folder / "results"))


@pytest.mark.full
def test_a_stopped_run_says_how_it_goes_on_with_the_options_that_are_not_kept(shell: Shell) -> None:
    written(shell)
    running = shell.start("run", "slow.yaml", "--jobs", "1", "--keep", "--data-dir", "data folder")
    shell.until((shell.folder / "first").exists)
    os.kill(running.pid, signal.SIGINT)
    told = running.communicate(timeout=PATIENCE_S)[0]
    case = str(shell.json("cases", "--data-dir", "data folder")[0]["id"])
    folder = shell.folder / "data folder"
    assert f"mendflow resume {case} --jobs 1 --keep --data-dir '{folder}'" in " ".join(told.split())


@pytest.mark.full
def test_a_rerun_of_a_case_that_was_killed_continues_it_and_makes_no_second_one(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGKILL)
    shell.write("go", "")
    told = shell("rerun", case, "--quiet")
    assert told.returncode == 0, told.stderr
    assert f"{case} was stopped before its end and goes on now" in told.stderr
    assert [each["id"] for each in shell.json("cases")] == [case]
    assert (lines(shell.folder / "first"), lines(shell.folder / "second")) == (1, 1)


@pytest.mark.full
def test_a_rerun_in_another_way_of_a_case_that_was_stopped_is_refused_and_says_what_to_do(shell: Shell) -> None:
    written(shell)
    case = run_and_end(shell, signal.SIGINT)
    for words in (("--no-cache",), ("--again", "first"), ("--flow", "slow.yaml")):
        refused = shell("rerun", case, *words)
        assert refused.returncode == 6
        assert f"mendflow resume {case} continues it as it is" in " ".join(refused.stderr.split())
    assert [each["id"] for each in shell.json("cases")] == [case]


SCRIPTED = """
name: slow
jobs:
  first: {run: 'echo x >> HERE/first; until [ -e HERE/go ]; do sleep 0.05; done'}
  second: {needs: first, inputs: [s.sh], run: 'sh s.sh'}
"""


@pytest.mark.full
def test_a_case_that_is_resumed_says_which_files_of_its_flow_were_changed_since_it_was_started(shell: Shell) -> None:
    flow = SCRIPTED.replace("HERE", str(shell.folder))
    shell.write("slow.yaml", flow)
    shell.write("s.sh", f"echo one > {shell.folder}/made\n")
    case = run_and_end(shell, signal.SIGINT)
    shell.write("go", "")
    shell.write("s.sh", f"echo two > {shell.folder}/made\n")
    shell.write("slow.yaml", flow.replace("sh s.sh", "sh s.sh; true"))
    told = shell("resume", case)
    assert told.returncode == 0, told.stderr
    said = f"{case} goes on as it was started; since then s.sh and slow.yaml have changed: "
    assert f"{said}mendflow run slow.yaml starts a new case with them" in " ".join(told.stderr.split())
    assert (shell.folder / "made").read_text() == "one\n"
    assert "completed in" in shell.ok("run", "slow.yaml")
    assert (shell.folder / "made").read_text() == "two\n"


@pytest.mark.full
def test_a_python_case_that_is_resumed_says_which_modules_were_changed_since_it_was_started(shell: Shell) -> None:
    wait = (
        f"    open({str(shell.folder / 'first')!r}, 'w')\n    while not os.path.exists({str(shell.folder / 'go')!r}):"
    )
    flow = f"import os, time\nfrom mendflow import flow, job\nfrom helper import value\n\n@job\ndef one(n):\n{wait}\n"
    flow += "        time.sleep(0.05)\n    return value\n\n@flow\ndef slow(n: int = 1):\n    return one(n)\n"
    shell.write("helper.py", "value = 1\n")
    shell.write("slow.py", flow)
    running = shell.start("run", "slow.py")
    shell.until((shell.folder / "first").exists)
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    shell.write("go", "")
    shell.write("helper.py", "value = 2\n")
    told = shell("rerun", "last", "--quiet")
    said = "goes on as it was started; since then helper.py has changed: "
    assert f"{said}mendflow run slow.py starts a new case with it" in " ".join(told.stderr.split())
    assert "result: 1" in told.stdout and "made by other code" not in told.stdout
    assert "since then" not in shell("run", "slow.py", "--quiet").stderr


@pytest.mark.full
def test_a_case_that_is_resumed_says_nothing_of_files_that_are_as_they_were(shell: Shell) -> None:
    shell.write("slow.yaml", SCRIPTED.replace("HERE", str(shell.folder)))
    shell.write("s.sh", "true\n")
    case = run_and_end(shell, signal.SIGINT)
    shell.write("go", "")
    assert "since then" not in shell("resume", case).stderr


@pytest.mark.full
def test_a_case_that_nobody_runs_is_called_stopped(shell: Shell) -> None:
    # DU-7
    written(shell)
    case = run_and_end(shell, signal.SIGKILL)
    listed = shell("cases")
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [[case, "stopped"]]
    assert f"mendflow resume {case}" in listed.stderr
    assert shell.json("why", case)["state"] == "stopped"
    shell.write("go", "")
