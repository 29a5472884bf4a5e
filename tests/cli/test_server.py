"""A server that stays, a pilot beside it, and commands that find it by its address."""

import json
import os
import re
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from mendflow import wiring
from mendflow.cli import announced_wait
from mendflow.stores.file_lock import FileLock
from mendflow.wiring import ServerAnnouncement
from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

HELLO = """\
name: hello
jobs:
  say: {run: echo hello}
"""
HUNGRY = """\
name: hungry
jobs:
  eat: {run: echo never, memory: 900 TB}
"""


def served(shell: Shell, *words: str) -> str:
    """Start a server; its address."""
    shell.start("serve", "--port", "0", "--data-dir", "server", *words)
    file = shell.folder / "server" / "server.json"
    shell.until(file.exists)
    url: str = json.loads(file.read_text())["url"]
    return url


@pytest.mark.full
def test_flows_are_deployed_started_and_watched_on_a_server(shell: Shell) -> None:
    url = served(shell)
    shell.environment["MENDFLOW_SERVER"] = url
    shell.start("pilot", "--jobs", "2", "--work", "pilot-1")
    shell.write("hello.yaml", HELLO)
    assert "hello version 1" in shell.ok("flows", "deploy", "hello.yaml")
    started = shell.json("start", "hello")
    assert "completed in" in shell.ok("watch", started["id"], "--quiet")
    assert shell.ok("logs", f"{started['id']}:say") == "hello\n"
    (pilot,) = shell.json("admin", "pilots")
    assert pilot["capacity"]["slots"] == 2
    again = shell.json("rerun", "last")
    assert again["rerun_of"] == started["id"]
    assert "completed in" in shell.ok("watch", "last", "--quiet")
    assert len(shell.json("cases", "--flow", "hello")) == 2
    assert shell.json("alerts") == []
    typed = {"_MENDFLOW_COMPLETE": "complete_bash", "COMP_WORDS": "mendflow items hello-", "COMP_CWORD": "2"}
    assert started["id"] in shell(**typed).stdout.split()
    typed["COMP_WORDS"], typed["COMP_CWORD"] = "mendflow cases --flow he", "3"
    assert shell(**typed).stdout.split() == ["hello"]
    assert shell(**typed, MENDFLOW_SERVER="http://127.0.0.1:9").stdout.split() == []


@pytest.mark.full
def test_a_server_without_pilots_is_told_of_with_the_commands_that_help(shell: Shell) -> None:
    url = served(shell)
    shell.write("hello.yaml", HELLO)
    refused = shell("run", "hello.yaml", "--data-dir", "server")
    assert refused.returncode != 0
    assert "a server, process" in refused.stderr and "mendflow start FLOW gives it the flow" in refused.stderr
    shell.ok("start", "hello.yaml", "--data-dir", "server")
    for words in (["--data-dir", "server"], ["--server", url]):
        assert f"`mendflow pilot --server {url}` starts one" in shell.ok("why", "last:say", *words)
    server = shell.started[0]
    server.send_signal(signal.SIGTERM)
    told, _ = server.communicate(timeout=PATIENCE_S)
    assert f"it runs no jobs itself: start it with --jobs N, or start pilots: mendflow pilot --server {url}" in told


@pytest.mark.full
def test_a_case_is_suspended_continued_and_removed(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("hello.yaml", HELLO)
    shell.ok("start", "hello.yaml", "--key", "k")
    assert shell.json("start", "hello.yaml", "--key", "k")["id"] == shell.json("cases")[0]["id"]
    case = shell.json("cases")[0]["id"]
    assert shell.ok("suspend", "last", "say") == f"item say of {case} is suspended\n"
    assert shell.ok("resume", "last", "say") == f"item say of {case} is resumed\n"
    assert shell.json("suspend", "last")["status"] == "suspended"
    assert shell.json("resume", "last")["status"] == "running"
    assert "is cancelled" in shell.ok("cancel", "last", "--reason", "enough")
    assert shell("cancel", "last").returncode == 6


@pytest.mark.full
def test_a_message_is_said_to_be_sent_where_it_was_sent(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("bell.yaml", "name: bell\nsteps:\n  - receive: start\n")
    case = shell.json("start", "bell.yaml")["id"]
    assert shell.ok("send", "last", "start", "ding") == f"sent to channel start of {case}\n"


@pytest.mark.full
def test_why_names_what_no_pilot_has(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--jobs", "1")
    shell.until(lambda: shell.json("admin", "pilots"))
    shell.write("hungry.yaml", HUNGRY)
    shell.ok("start", "hungry.yaml")
    shell.until(lambda: shell("items", "last", "--json").stdout.strip() not in ("", "[]"))
    told = shell.ok("why", "last:eat")
    assert "memory" in told
    assert shell.json("admin", "pilots")[0]["id"] in told
    assert shell("logs", "last:eat").returncode in (0, 5)


@pytest.mark.full
def test_a_server_with_tokens_lets_in_only_whom_it_knows(shell: Shell) -> None:
    token = shell.ok("admin", "tokens", "line", "ann", "--role", "user", "--append", "tokens").strip()
    assert stat.S_IMODE(os.stat(shell.folder / "tokens").st_mode) == 0o600
    assert token not in (shell.folder / "tokens").read_text()
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--tokens", "tokens")
    refused = shell("cases")
    assert refused.returncode == 6
    assert "MENDFLOW_TOKEN or --token-file" in refused.stderr
    Path(shell.folder / "mine").write_text(token + "\n")
    assert shell("cases", "--token-file", "mine").returncode == 0
    told = shell("cases", MENDFLOW_TOKEN=token)
    assert told.returncode == 0
    wrong = shell("cases", MENDFLOW_TOKEN="guess")
    assert wrong.returncode == 6
    assert "guess" not in wrong.stderr
    assert "does not know that token; give yours by MENDFLOW_TOKEN" in wrong.stderr
    pilot = shell.apart("pilot", MENDFLOW_TOKEN=token)
    assert "it has the roles user" in pilot.stderr
    assert "A pilot needs a token of the role pilot: mendflow admin tokens create NAME --role pilot" in pilot.stderr


def test_a_server_refuses_to_be_open_to_the_world(shell: Shell) -> None:
    refused = shell("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 6
    assert "token" in refused.stderr


@pytest.mark.full
def test_a_port_that_is_taken_is_a_matter_of_the_machine(shell: Shell) -> None:
    port = served(shell).rpartition(":")[2]
    refused = shell("serve", "--port", port, "--data-dir", "another")
    assert refused.returncode == 3
    assert "Choose another port" in refused.stderr


@pytest.mark.full
def test_files_beside_a_flow_go_to_the_server_with_it(shell: Shell) -> None:
    token = shell.ok("admin", "tokens", "line", "ann", "--role", "admin", "--append", "tokens").strip()
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--tokens", "tokens")
    shell.environment["MENDFLOW_TOKEN"] = token
    shell.start("pilot", "--jobs", "1", "--work", "pilot-1")
    (shell.folder / "flows").mkdir()
    shell.write("flows/taking.yaml", "name: taking\njobs:\n  show: {run: cat in.txt, inputs: {in.txt: beside.txt}}\n")
    refused = shell("start", "flows/taking.yaml")
    assert refused.returncode in (2, 5)
    assert "beside.txt" in refused.stderr
    assert shell.json("flows") == []
    shell.write("flows/beside.txt", "it came along")
    shell.ok("start", "flows/taking.yaml")
    shell.ok("watch", "last", "--quiet")
    assert shell.ok("logs", "last:show") == "it came along", "as the job printed it"


@pytest.mark.full
def test_a_server_ends_in_good_order(shell: Shell) -> None:
    served(shell, "--jobs", "1")
    (process,) = shell.started
    os.kill(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, out
    assert re.match(r"mendflow serves http://127\.0\.0\.1:\d+ from ", out)
    assert not (shell.folder / "server" / "server.json").exists()


@pytest.mark.full
def test_shells_complete_flows_subjects_jobs_and_tasks(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("mixed.yaml", "name: mixed\njobs:\n  say: {run: echo hello}\n  ask: {user-task: ok?, role: pi}\n")
    case = shell.json("start", "mixed.yaml")["id"]

    def offered(typed: str) -> list[str]:
        words = {"_MENDFLOW_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        return shell(**words).stdout.split()

    assert offered("mendflow start mi") == ["mixed"]
    assert offered("mendflow why ") == ["last", case]
    assert sorted(offered(f"mendflow why {case}:")) == [f"{case}:ask", f"{case}:say"]
    assert offered("mendflow logs l") == ["last:say"], "a person's work prints nothing"
    (task,) = shell.json("worklist")
    assert offered("mendflow worklist complete ") == [task["id"]]


@pytest.mark.full
def test_jobs_wait_by_the_same_word_as_items(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("hello.yaml", HELLO)
    shell.ok("start", "hello.yaml")
    assert shell.json("items", "last")[0]["state"] == "waiting"
    assert "waiting" in shell.ok("jobs", "--state", "waiting")
    assert "available" not in shell.ok("jobs")


@pytest.mark.full
def test_a_long_log_is_shown_whole(shell: Shell) -> None:  # DU-4
    shell.write(
        "long.yaml", "jobs:\n  much: {shell: sh, run: yes 0123456789 | head -c 3000000}\n  little: {run: echo done}\n"
    )
    shell.ok("run", "long.yaml", "--quiet")
    told = shell("logs", "last:much")
    assert len(told.stdout.rstrip("\n")) in (3_000_000, 2_999_999) and told.stderr == ""
    assert shell("logs", "last:little").stdout == "done\n"


def test_a_server_that_does_not_reach_its_store_says_that_it_has_ended(shell: Shell) -> None:
    ended = shell(
        "serve", "--port", "0", "--data-dir", "server", MENDFLOW_STORE="postgresql://me@127.0.0.1:9/x?patience=0.1"
    )
    assert ended.returncode != 0
    told = " ".join(ended.stderr.split())
    assert "This server has ended: start it again when its store is there" in told and "continues by itself" not in told


def test_an_address_at_which_nobody_can_be_asked_is_refused(shell: Shell) -> None:
    for url in ("nonsense", "http://", "ftp://one.example.org", "http://one.example.org:port"):
        ended = shell("serve", "--port", "0", "--data-dir", "server", "--url", url)
        assert ended.returncode != 0 and "write one such as http://one.example.org:8642" in " ".join(
            ended.stderr.split()
        )


@pytest.mark.full
def test_commands_that_find_no_server_open_the_store_that_the_variable_names(shell: Shell) -> None:
    shell.environment["MENDFLOW_STORE"] = f"sqlite://{shell.folder}/flows.db"
    shell.write("hello.yaml", HELLO)
    shell.ok("run", "hello.yaml", "--quiet", "--data-dir", "first")
    (case,) = shell.json("cases")
    assert case["status"] == "completed" and not (shell.folder / ".mendflow").exists()
    shell.ok("admin", "export", "--all", "--to", "all.archive")
    told = shell.json("admin", "import", "all.archive", "--as-new")
    assert len(told["imported"]) == 1 and len(shell.json("cases")) == 2


def test_whoever_puts_a_password_among_the_words_of_a_command_is_told(shell: Shell) -> None:
    url = "postgresql://me:secret@127.0.0.1:9/x?patience=0.1"
    for words in (("admin", "export", "--all", "--to", "a"), ("serve", "--port", "0")):
        told = shell(*words, "--store", url)
        assert told.returncode != 0 and "can read the password in --store" in " ".join(told.stderr.split())
        assert "secret" not in told.stderr
        assert "--store" not in shell(*words, MENDFLOW_STORE=url).stderr


PATIENT = """\
name: patient
jobs:
  wait: {run: 'touch $HOME/begun; while [ ! -e $HOME/go ]; do sleep 0.05; done'}
"""


def stopped_amid_a_job(shell: Shell) -> subprocess.Popen[str]:
    """A server that was told to stop, with a job in its slot that does not end by itself."""
    shell.environment["MENDFLOW_DATA_DIR"] = "server"
    served(shell, "--jobs", "1", "--grace", "3600")
    shell.write("patient.yaml", PATIENT)
    shell.ok("start", "patient.yaml")
    shell.until((shell.folder / "begun").exists)
    server = shell.started[-1]
    server.send_signal(signal.SIGTERM)
    assert server.stdout is not None
    while "stopping" not in server.stdout.readline():
        pass
    return server


@pytest.mark.full
def test_a_server_that_is_stopped_lets_the_jobs_in_its_slots_end(shell: Shell) -> None:
    server = stopped_amid_a_job(shell)
    (shell.folder / "go").touch()
    assert server.wait(PATIENCE_S) == 0
    (job,) = shell.json("jobs")
    assert job["state"] == "completed" and job["fence"] == 1


@pytest.mark.full
def test_a_server_that_is_told_twice_to_stop_does_not_wait_for_its_jobs(shell: Shell) -> None:
    server = stopped_amid_a_job(shell)
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0
    (job,) = shell.json("jobs")
    assert job["state"] == "available" and [each["end"] for each in job["history"]] == ["lost"]


def test_a_command_waits_for_a_server_that_is_just_ending_and_then_opens_its_folder(shell: Shell) -> None:
    """It still holds the folder and has its address there, but does not listen any more."""
    ended = _ends_after(shell, 0.5)
    assert "hello" in shell.ok("flows", "list")
    ended.join()


def test_a_command_says_what_it_waits_for(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announced_wait, "SAY_AFTER_S", 0.2)
    ended = _ends_after(shell, 1.5)
    done = shell("flows", "list")
    assert "hello" in done.stdout
    assert done.stderr.count("a server is starting or ending there; waiting for it, 30 s at most") == 1
    ended.join()


def _ends_after(shell: Shell, seconds: float) -> threading.Timer:
    """A server that has its folder and its address there, does not listen, and is gone after so long."""
    shell.write("hello.yaml", HELLO)
    shell.ok("flows", "deploy", "hello.yaml")
    folder = shell.folder / ".mendflow"
    ending = FileLock(folder / "store.db")
    ending.acquire()
    wiring.write_server_file(folder, ServerAnnouncement(url=f"http://127.0.0.1:{free_port()}", pid=os.getpid()))

    def end() -> None:
        (folder / "server.json").unlink()
        ending.release()

    timer = threading.Timer(seconds, end)
    timer.start()
    return timer
