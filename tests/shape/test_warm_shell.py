"""A shell that forks `mendflow` is to its commands what any other shell is: tests/servers/warm_shell.py."""

import os
from pathlib import Path

import pytest

from tests.servers.warm_shell import Command
from tests.servers.warm_starts import WORDS_MAX
from tests.shape.pages import Shell
from tests.shape.test_docs import environ

PATIENCE_S = 100.0


def said(commands: list[str], folder: Path, *, warm: bool) -> list[tuple[int, str]]:
    folder.mkdir(parents=True)
    home = folder / "home"
    home.mkdir()
    shell = Shell(folder, environ(home), warm=warm)
    try:
        return [shell.run(each, PATIENCE_S) for each in commands]
    finally:
        shell.close()


@pytest.mark.full
def test_commands_say_and_end_with_what_they_do_in_any_shell(tmp_path: Path) -> None:
    commands = [
        "mendflow --version",
        "mendflow no-such-command",
        "mendflow cases --help | cat",
        "x=$(mendflow check nothing.yaml 2>&1); echo $? $x",
        "printf 'jobs: {a: {run: echo hello}}' > a.yaml; cd . && mendflow check a.yaml < /dev/null",
        "type -t mendflow",
    ]
    warm, cold = (said(commands, tmp_path / name / "reader", warm=name == "warm") for name in ("warm", "cold"))
    assert warm == cold


@pytest.mark.parametrize(("sent", "code"), [("TERM", 0), ("KILL", 128 + 9)])
def test_signals_reach_what_was_forked(sent: str, code: int, tmp_path: Path) -> None:
    place = f"server-{os.urandom(4).hex()}"
    serve = f"mendflow serve --port 0 --data-dir {place} > log 2>&1 & until grep -q serves log; do sleep 0.1; done"
    find = f"pgrep -f 'serve --port 0 --data-dir {place}' > pids; wc -l < pids"
    gone = "for pid in $(cat pids); do while kill -0 $pid 2> /dev/null; do sleep 0.1; done; done"
    commands = [serve, find, f"kill -{sent} $!; wait $!; echo $?", gone]
    _, (_, found), (_, ended), _ = said(commands, tmp_path / "reader", warm=True)
    assert int(found) >= 2  # what stands for it, and the server
    assert int(ended.split()[-1]) == code  # after what bash says of one that was killed


def test_one_with_a_secret_in_its_environment_is_started() -> None:
    usual = Command(["cases"], ".", {"HOME": "/home/somebody"}, [])
    assert not usual.cold
    assert usual._replace(environment={**usual.environment, "MENDFLOW_TOKEN": "x"}).cold
    assert usual._replace(words=["x" * WORDS_MAX]).cold
