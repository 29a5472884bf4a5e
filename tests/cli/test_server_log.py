"""The log of a server that runs: where it is told to go, and what a SIGHUP does. SE-7"""

import json
import signal

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served


@pytest.mark.full
def test_a_hangup_opens_the_log_again_and_reads_the_tokens(shell: Shell) -> None:
    boss = shell.ok("admin", "tokens", "line", "boss", "--role", "admin", "--append", "tokens").strip()
    words = ("--tokens", "tokens", "--log-format", "json", "--log-file", "server.log", "--log-level", "info")
    shell.environment |= {"MENDFLOW_SERVER": served(shell, *words), "MENDFLOW_TOKEN": boss}
    shell.ok("cases")
    log, moved = shell.folder / "server.log", shell.folder / "server.log.old"
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(each.get("who") == "boss" and "GET /api/v1/cases: 200" in each["message"] for each in asked), asked
    log.rename(moved)
    ann = shell.ok("admin", "tokens", "line", "ann", "--role", "user", "--append", "tokens").strip()
    assert shell("cases", MENDFLOW_TOKEN=ann).returncode == 6
    shell.started[-1].send_signal(signal.SIGHUP)
    shell.until(lambda: log.exists() and "was read again: it has 2 tokens" in log.read_text())
    assert shell("cases", MENDFLOW_TOKEN=ann).returncode == 0
    assert any(json.loads(line).get("who") == "ann" for line in log.read_text().splitlines())


@pytest.mark.full
def test_a_server_without_tokens_lives_on_if_it_has_a_log_file(shell: Shell) -> None:
    url = served(shell, "--log-file", "server.log")
    log = shell.folder / "server.log"
    log.rename(shell.folder / "old.log")
    shell.started[-1].send_signal(signal.SIGHUP)
    shell.until(lambda: log.exists() and "opened again" in log.read_text())
    shell.ok("cases", MENDFLOW_SERVER=url)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--log-format", "xml"), "it is one of text, json"),
        (("--log-level", "loud"), "it is one of debug, info, warning, error"),
        (("--log-file", "none/log"), "cannot be written: No such file or directory"),
        (("--log-file", "log", "--log-file-size", "much"), "--log-file-size 'much' is not a size"),
    ],
)
def test_what_makes_no_log_is_told(shell: Shell, words: tuple[str, ...], told: str) -> None:
    refused = shell("serve", "--port", "0", *words)
    assert refused.returncode != 0 and told in " ".join(refused.stderr.split())
