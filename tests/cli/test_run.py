"""`mendflow run` and what one does after it, with a real server, a real pilot and real jobs."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S
from tests.servers.warm_starts import usual_starts

NIGHT = """\
name: night
inputs:
  who: {type: string, default: world}
jobs:
  greet:
    run: |
      echo "hello ${{ inputs.who }}" > greeting.txt
      printf 'said \\033[31mhello\\033[0m\\n'
      echo "length=5" >> $MENDFLOW_OUTPUT
    files: {greeting: greeting.txt}
  shout:
    needs: greet
    inputs: {in.txt: "${{ jobs.greet.files.greeting }}"}
    run: tr a-z A-Z < in.txt > out.txt
    files: {loud: out.txt}
outputs:
  length: ${{ jobs.greet.outputs.length }}
  loud: ${{ jobs.shout.files.loud }}
"""
FAILING = """\
name: broken
jobs:
  good: {run: echo fine}
  bad:
    run: |
      test -e FOLDER/mended && exit 0
      printf '\\033[31mno such table\\033[0m\\n' >&2
      exit 3
  after: {needs: bad, run: echo after}
"""
WAITING = """\
name: wait
jobs:
  hold:
    run: |
      echo begun >> FOLDER/begun
      while ! test -e FOLDER/go; do sleep 0.05; done
  end: {needs: hold, run: echo ended}
"""
LEFT = """\
name: left
jobs:
  ff: {run: sleep 1; exit 4, submit: forget}
  quick: {run: echo quick}
"""
RELEASE = """\
name: release
jobs:
  approve:
    user-task: Release it?
    role: manager
    fields: {version: the number}
  publish:
    needs: approve
    run: echo "publishing ${{ jobs.approve.outputs.version }}"
"""


def test_a_flow_runs_to_its_summary_outputs_files_and_report(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    done = shell("run", "night.yaml", "--input", "who=moon")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^night-\S+ completed in ", done.stdout, re.MULTILINE)
    assert "2 done" in done.stdout
    assert "length: 5" in done.stdout
    assert "greet: 1 done" in done.stderr
    (loud,) = shell.folder.glob("outputs/night-*/out.txt")
    assert loud.read_text() == "HELLO MOON\n"
    (page,) = shell.folder.glob(".mendflow/reports/night-*.html")
    assert "shout" in page.read_text()
    assert str(page.relative_to(shell.folder)) in done.stdout
    assert not (shell.folder / ".mendflow" / "server.json").exists()


def test_json_is_all_that_standard_output_has(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    told = json.loads(shell("run", "night.yaml", "--json", "--report", "r.html", "--output-dir", "out").stdout)
    assert told["status"] == "completed"
    assert told["outputs"]["length"] == 5
    assert told["output_files"] == {"loud": str(shell.folder / "out" / "out.txt")}
    assert told["report"] == str(shell.folder / "r.html")
    assert (shell.folder / "r.html").exists()


@pytest.mark.full
def test_reading_commands_work_after_the_run_has_ended(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    shell.ok("run", "night.yaml", "--quiet")
    (case,) = shell.json("cases")
    assert case["status"] == "completed"
    assert {item["item"] for item in shell.json("items", "last")} == {"greet", "shout"}
    assert shell.ok("logs", "last:greet") == "said \x1b[31mhello\x1b[0m\n", "into a file, as the job wrote it"
    assert shell.ok("logs", "last:greet", "--raw") == "said \x1b[31mhello\x1b[0m\n"
    assert shell.json("why", "last")["state"] == "completed"
    assert [job["state"] for job in shell.json("jobs", "--case", case["id"])] == ["completed"] * 2
    assert [flow["name"] for flow in shell.json("flows")] == ["night"]
    shell.ok("report", "last", "-o", "again.html")
    assert "greet" in (shell.folder / "again.html").read_text()
    for words in (["cases"], ["items", "last"]):
        table = shell.ok(*words)
        assert case["id"] in table or "greet" in table
        assert max(map(len, table.splitlines())) <= 80


@pytest.mark.full
def test_a_failed_case_says_why_and_reruns_from_what_failed(shell: Shell) -> None:
    shell.write("broken.yaml", FAILING.replace("FOLDER", str(shell.folder)))
    done = shell("run", "broken.yaml")
    assert done.returncode == 1
    assert re.search(r"^broken-\S+ failed in ", done.stdout, re.MULTILINE)
    assert "    | no such table" in done.stdout
    assert "\x1b" not in done.stdout
    why = shell.json("why", "last:bad")
    assert "3" in why["sentence"] + " ".join(why["facts"])
    shell.write("mended", "")
    told = shell("rerun", "last", "--from-failed")
    assert told.returncode == 0, told.stderr
    states = {item["item"]: item["state"] for item in shell.json("items", "last")}
    assert states == {"good": "cached", "bad": "completed", "after": "completed"}
    refused = shell("rerun", "last", "--from-failed")
    assert refused.returncode == 6
    assert refused.stdout == ""


@pytest.mark.full
def test_a_corrected_flow_is_run_by_what_the_hint_says(shell: Shell) -> None:
    shell.write("broken.yaml", FAILING.replace("FOLDER", str(shell.folder)))
    failed = shell("run", "broken.yaml", "--quiet")
    assert "fix it and mendflow run broken.yaml\n" in failed.stdout
    shell.write("broken.yaml", FAILING.replace("FOLDER", str(shell.folder)).replace("exit 3", "exit 0"))
    again = shell("rerun", "last", "--from-failed", "--unchanged", "--quiet")
    assert again.returncode == 1
    assert re.search(r"fix it and mendflow rerun broken-\S+ --from-failed\n", again.stdout)
    done = shell("rerun", "last", "--from-failed", "--quiet")
    assert "broken.yaml has changed since broken-" in " ".join(done.stderr.split())
    assert "2 done, 1 cached" in done.stdout
    assert "3 cached" in shell.ok("run", "broken.yaml", "--cached", "--quiet")
    assert shell("rerun", "last", "--from-failed", "--flow", "broken.yaml").returncode == 6


def test_a_place_that_results_cannot_go_to_is_told_before_anything_runs(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    shell.write("taken", "a file")
    for words in (["--report", "taken/r.html"], ["--report", "."], ["--output-dir", "taken"]):
        told = shell("run", "night.yaml", *words)
        assert told.returncode == 3, told.stderr
        assert words[0] in told.stderr
    assert not (shell.folder / ".mendflow").exists()


@pytest.mark.full
def test_a_job_that_outlives_its_case_is_waited_for_and_told_about(shell: Shell) -> None:
    shell.write("left.yaml", LEFT)
    done = shell("run", "left.yaml")
    assert done.returncode == 0, done.stderr
    assert "left behind: ff failed: it ended with exit code 4" in done.stdout
    (page,) = shell.folder.glob(".mendflow/reports/left-*.html")
    assert "exit code 4" in page.read_text()


@pytest.mark.full
def test_called_cases_are_told_with_their_counts(shell: Shell) -> None:
    shell.write("inner.yaml", "name: inner\njobs:\n  a: {run: echo a}\n  b: {run: echo b}\n")
    shell.write("outer.yaml", "name: outer\njobs:\n  own: {run: echo own}\n  deep: {call: inner.yaml}\n")
    told = shell.ok("run", "outer.yaml", "--quiet")
    assert "jobs         3 done in 2 cases" in told
    assert "calls        1 done" in told
    assert re.search(r"^  outer-\S+ \(inner\) completed: 2 done$", told, re.MULTILINE)
    (page,) = shell.folder.glob(".mendflow/reports/outer-*.html")
    assert "Called cases" in page.read_text()


@pytest.mark.full
def test_an_unchanged_flow_run_again_with_reuse_runs_nothing(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    shell.ok("run", "night.yaml", "--quiet")
    assert "2 cached" in shell.ok("run", "night.yaml", "--quiet", "--cached")
    shell.write("night.yaml", NIGHT.replace("tr a-z A-Z", "tr -s a-z A-Z"))
    changed = shell.ok("run", "night.yaml", "--quiet", "--cached")
    assert "1 cached" in changed
    assert "ran again: shout: " in changed


@pytest.mark.full
def test_a_stopped_case_is_gone_on_with(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    running = shell.start("run", "wait.yaml")
    shell.until((shell.folder / "begun").exists)
    os.kill(running.pid, signal.SIGINT)
    out, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, out
    assert "mendflow resume wait-" in out
    assert "Traceback" not in out
    (case,) = shell.json("cases")
    assert case["status"] == "running"
    alone = shell("watch", "last")
    assert alone.returncode == 6
    assert f"mendflow resume {case['id']}" in alone.stderr
    assert f"`mendflow resume {case['id']}` continues it" in shell.ok("why", "last")
    assert f"mendflow resume {case['id']}" in shell("cases").stderr
    shell.write("go", "")
    assert "completed in" in shell.ok("resume")
    refused = shell("resume", "last")
    assert refused.returncode == 6
    assert "rerun" in refused.stderr


@pytest.mark.full
def test_a_case_that_ends_while_it_is_being_stopped_is_told_to_its_end(shell: Shell) -> None:
    shell.write("last.yaml", f"steps: [{{run: touch {shell.folder}/begun; sleep 1.5, name: one}}]\n")
    running = shell.start("run", "last.yaml")
    shell.until((shell.folder / "begun").exists)
    os.kill(running.pid, signal.SIGINT)
    out, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, out
    assert "completed in" in out
    assert list((shell.folder / ".mendflow" / "reports").glob("last-*.html"))


@pytest.mark.full
def test_resume_takes_the_newest_case_that_is_not_over(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    running = shell.start("run", "wait.yaml")
    shell.until((shell.folder / "begun").exists)
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    shell.write("brief.yaml", "name: brief\nsteps: ['true']\n")
    shell.ok("run", "brief.yaml", "--quiet", "--jobs", "2")
    shell.write("go", "")
    assert "wait-" in shell.ok("resume")


def test_an_output_too_large_to_show_is_left_as_a_file(shell: Shell) -> None:
    many = 'python3 -c \'print("rows=" + "x" * 100000)\' > $MENDFLOW_OUTPUT'
    flow = {"jobs": {"much": {"run": many}}, "outputs": {"rows": "${{ jobs.much.outputs.rows }}"}}
    shell.write("much.yaml", json.dumps(flow))
    out = shell.ok("run", "much.yaml", "--quiet")
    (left,) = (shell.folder / "outputs").glob("*/rows.json")
    assert json.loads(left.read_text()) == "x" * 100_000
    assert f"rows: {left.relative_to(shell.folder)}" in out


@pytest.mark.full
def test_a_second_run_on_the_same_folder_is_refused_and_others_look_at_the_first(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    running = shell.start("run", "wait.yaml")
    shell.until((shell.folder / "begun").exists)
    second = shell("run", "wait.yaml")
    assert second.returncode == 6
    assert "--data-dir" in second.stderr
    (case,) = shell.json("cases")
    why = shell.json("why", "last:hold")
    assert why["state"] == "running"
    assert shell.json("admin", "pilots")[0]["state"] == "active"
    watching = shell.start("watch", "last")
    shell.write("go", "")
    assert running.wait(PATIENCE_S) == 0
    watched, _ = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 0
    assert f"{case['id']} completed in" in watched


@pytest.mark.full
def test_a_person_completes_a_task_by_the_command_line(shell: Shell) -> None:  # AD-6
    shell.write("release.yaml", RELEASE)
    running = shell.start("run", "release.yaml", "--quiet")
    shell.until(lambda: "Release it?" in shell("worklist").stdout)
    (task,) = shell.json("worklist", "--role", "manager")
    assert shell.json("worklist", "claim", task["id"])["state"] == "claimed"
    assert shell.json("worklist", "release", task["id"])["state"] == "offered"
    assert "the number" in shell.ok("worklist", "show", task["id"])
    shell.ok("worklist", "complete", task["id"], "--output", "version=1.4", "--comment", "fine")
    assert running.wait(PATIENCE_S) == 0
    assert shell.ok("logs", "last:publish") == "publishing 1.4\n"
    again = shell("worklist", "complete", task["id"])
    assert again.returncode == 6


@pytest.mark.full
def test_a_rejected_task_fails_the_case(shell: Shell) -> None:  # AD-6
    shell.write("release.yaml", RELEASE)
    running = shell.start("run", "release.yaml", "--quiet")
    shell.until(lambda: "Release it?" in shell("worklist").stdout)
    (task,) = shell.json("worklist")
    shell.ok("worklist", "reject", task["id"], "--comment", "not yet")
    assert running.wait(PATIENCE_S) == 1
    assert shell.json("why", "last")["state"] == "failed"


def run_in_terminal(shell: Shell, flow: str) -> tuple[int, "subprocess.Popen[bytes]"]:
    terminal, inner = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "mendflow", "run", flow],
        cwd=shell.folder,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=shell.environment,
        start_new_session=True,
    )
    os.close(inner)
    return terminal, running


@pytest.mark.full
def test_ctrl_c_at_a_terminal_asks_first(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    terminal, running = run_in_terminal(shell, "wait.yaml")
    try:
        shell.until((shell.folder / "begun").exists)
        os.kill(running.pid, signal.SIGINT)
        read_until(terminal, "o on here?")
        os.write(terminal, b"g\n")
        read_until(terminal, "hold")  # the live lines are there again
        os.kill(running.pid, signal.SIGINT)
        read_until(terminal, "o on here?")
        os.write(terminal, b"s\n")
        read_until(terminal, "mendflow resume wait-")
        assert running.wait(PATIENCE_S) == 130
    finally:
        running.kill()
        running.wait()
        os.close(terminal)


def read_until(terminal: int, text: str) -> None:
    seen = ""
    while text not in seen:
        chunk = os.read(terminal, 65536).decode(errors="replace")
        assert chunk, f"{text!r} did not come; there was:\n{seen}"
        seen += chunk


@pytest.mark.full
def test_a_detached_case_goes_on_in_the_background(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    terminal, running = run_in_terminal(shell, "wait.yaml")
    try:
        shell.until((shell.folder / "begun").exists)
        os.kill(running.pid, signal.SIGINT)
        read_until(terminal, "o on here?")
        os.write(terminal, b"d\n")
        assert running.wait(PATIENCE_S) == 0
        shell.write("go", "")
        log = shell.folder / ".mendflow" / "detached.log"
        shell.until(lambda: "completed in" in log.read_text())
    finally:
        running.kill()
        running.wait()
        os.close(terminal)
    assert shell.json("cases")[0]["status"] == "completed"


@pytest.mark.full
def test_what_is_wrong_is_told_in_a_sentence_with_its_number(shell: Shell) -> None:
    nothing = shell("cases")
    assert (nothing.returncode, nothing.stdout) == (5, "")
    assert "mendflow run" in nothing.stderr
    away = shell("cases", "--server", "http://127.0.0.1:9")
    assert (away.returncode, away.stdout) == (4, "")
    assert "127.0.0.1:9" in away.stderr
    assert shell("run", "nowhere.yaml").returncode in (2, 5)
    shell.write("wrong.yaml", "name: wrong\njobs:\n  a:\n    rnu: echo\n")
    wrong = shell("run", "wrong.yaml")
    assert wrong.returncode == 2
    assert "wrong.yaml:4:5" in wrong.stderr
    assert "^" in wrong.stderr
    assert not (shell.folder / ".mendflow").exists()
    checked = shell("check", "wrong.yaml")
    assert checked.returncode == 2
    assert "did you mean" in checked.stderr
    shell.write("night.yaml", NIGHT)
    assert shell("run", "night.yaml", "--input", "whom=x").returncode == 2
    shell.ok("run", "night.yaml", "--quiet")
    assert shell("items", "nobody-1").returncode == 5
    assert shell("why", "last:nothing").returncode == 5


def test_a_data_folder_that_cannot_be_made_is_told(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    shell.write("taken", "a file")
    told = shell("run", "night.yaml", "--data-dir", "taken/data")
    assert told.returncode == 3
    assert "taken/data" in told.stderr


@pytest.mark.full
def test_a_pilot_that_cannot_live_here_is_told_about(shell: Shell) -> None:
    shell.write("night.yaml", NIGHT)
    work = shell.folder / ".mendflow" / "work"
    work.mkdir(parents=True)
    with (work / "agent.lock").open("w") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        told = shell("run", "night.yaml", "--quiet")
    assert told.returncode == 3, told.stderr
    assert "the pilot ends as soon as it is started" in told.stderr
    assert "completed in" in shell.ok("resume", "--quiet")


@pytest.mark.full
def test_a_pilot_that_was_killed_is_replaced(shell: Shell) -> None:
    shell.write("wait.yaml", WAITING.replace("FOLDER", str(shell.folder)))
    with usual_starts():
        running = shell.start("run", "wait.yaml", "--quiet")
    shell.until((shell.folder / "begun").exists)
    (pilot,) = children(running.pid)
    os.kill(pilot, signal.SIGKILL)
    shell.until(lambda: set(children(running.pid)) - {pilot})
    shell.write("go", "")
    assert running.wait(PATIENCE_S) == 0


def children(pid: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    states = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] for child in found]
    return [int(child) for child, state in zip(found, states, strict=True) if state != "Z"]


@pytest.mark.full
def test_a_misspelt_path_that_follows_from_the_inputs_is_told_at_once(shell: Shell) -> None:
    # FM-6: it was waited for, in every retry level
    shell.write("sample.txt", "here")
    shell.write(
        "read.yaml", "inputs: {name: {type: string}}\njobs: {x: {run: cat in, inputs: {in: '${{ inputs.name }}'}}}\n"
    )
    done = shell("run", "read.yaml", "--quiet", "--input", "name=sampel.txt")
    assert done.returncode == 2
    assert " ".join(done.stderr.split()).startswith("mendflow: job x, input in: there is no file ")
    assert f"did you mean {shell.folder / 'sample.txt'}?" in " ".join(done.stderr.split())
    assert shell("run", "read.yaml", "--quiet", "--input", "name=sample.txt").returncode == 0
