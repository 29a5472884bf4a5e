"""Tokens, as an administrator handles them at the command line."""  # SE-1

import os
import signal

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served
from tests.patience import PATIENCE_S

STRONG = "0123456789-abcdefghij-xyz"


@pytest.mark.full
def test_tokens_are_created_listed_and_revoked_at_a_server(shell: Shell) -> None:
    boss = shell.ok("admin", "tokens", "line", "boss", "--role", "admin", "--append", "tokens").strip()
    shell.environment |= {"MENDFLOW_SERVER": served(shell, "--tokens", "tokens"), "MENDFLOW_TOKEN": boss}
    made = shell("admin", "tokens", "create", "ann", "--project", "genomics:author", "--expires", "30d")
    token = made.stdout.strip()
    assert "of ann holds until" in made.stderr and token not in made.stderr
    assert shell("cases", MENDFLOW_TOKEN=token).returncode == 0
    refused = shell("admin", "tokens", MENDFLOW_TOKEN=token)
    assert refused.returncode == 6 and "this is for admin" in refused.stderr
    (listed,) = shell.json("admin", "tokens")
    assert (listed["name"], listed["roles"], listed["projects"]) == ("ann", ["user"], {"genomics": "author"})
    assert listed["made_by"] == "boss" and listed["used_at"] > 0
    assert "genomics:author" in shell.ok("admin", "tokens", "list", COLUMNS="200")
    short = shell("admin", "tokens", "create", "eve", "--expires", "1ms").stdout.strip()
    over = shell("cases", MENDFLOW_TOKEN=short).stderr
    assert "the token 'eve' expired on" in over and "UTC; give yours by MENDFLOW_TOKEN" in over
    assert shell.ok("admin", "tokens", "revoke", "ann") == f"token {listed['id']} of ann is revoked\n"
    wrong = shell("cases", MENDFLOW_TOKEN=token)
    assert wrong.returncode == 6 and "does not know that token" in wrong.stderr


def test_tokens_of_a_folder_are_handled_without_a_server(shell: Shell) -> None:
    made = shell.json("admin", "tokens", "create", "ann", "--role", "pilot")
    assert made["view"]["roles"] == ["pilot"] and len(made["token"]) > 40
    assert [each["name"] for each in shell.json("admin", "tokens")] == ["ann"]
    assert "never" in shell.ok("admin", "tokens", COLUMNS="200")
    shell.ok("admin", "tokens", "revoke", made["view"]["id"])
    assert "There are no tokens" in shell.ok("admin", "tokens")
    assert shell("admin", "tokens", "revoke", "ann").returncode == 5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ann", "--project", "genomics"), "write PROJECT:ROLE"),
        (("ann", "--project", "genomics:boss"), "viewer, operator, author, admin"),
        (("ann", "--expires", "soon"), "is no time"),
        (("a b",), "is not a valid name"),
    ],
)
def test_what_makes_no_token_is_told(shell: Shell, words: tuple[str, ...], told: str) -> None:
    refused = shell("admin", "tokens", "create", *words)
    assert refused.returncode != 0 and told in " ".join(refused.stderr.split())


@pytest.mark.full
def test_a_server_reads_its_token_file_again_on_sighup(shell: Shell) -> None:
    def line(name: str) -> str:
        return shell.ok("admin", "tokens", "line", name, "--role", "admin", "--append", "tokens").strip()

    first = line("first")
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--tokens", "tokens")
    second = line("second")
    assert shell("cases", MENDFLOW_TOKEN=second).returncode == 6
    server = shell.started[0]
    server.send_signal(signal.SIGHUP)
    shell.until(lambda: shell("cases", MENDFLOW_TOKEN=second).returncode == 0)
    tokens = shell.folder / "tokens"
    tokens.chmod(0o644)
    server.send_signal(signal.SIGHUP)  # refused: the tokens stay as they were
    tokens.chmod(0o600)
    tokens.write_text(tokens.read_text().splitlines()[1])
    server.send_signal(signal.SIGHUP)
    shell.until(lambda: shell("cases", MENDFLOW_TOKEN=first).returncode == 6)
    assert shell("cases", MENDFLOW_TOKEN=second).returncode == 0


@pytest.mark.full
def test_a_closed_terminal_ends_a_server_without_a_token_file_in_good_order(shell: Shell) -> None:
    served(shell)
    server = shell.started[0]
    server.send_signal(signal.SIGHUP)
    told, _ = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0 and "stopping; nothing is lost" in told


def test_a_token_file_that_others_may_read_or_write_is_refused(shell: Shell) -> None:
    shell.ok("admin", "tokens", "line", "ann", "--append", "tokens")
    for mode in (0o640, 0o604, 0o620, 0o602):
        (shell.folder / "tokens").chmod(mode)
        refused = shell("serve", "--port", "0", "--tokens", "tokens")
        assert refused.returncode == 6 and "chmod 600 tokens" in refused.stderr
    shell.write("empty", "# nobody yet\n").chmod(0o600)
    refused = shell("serve", "--port", "0", "--tokens", "empty")
    assert refused.returncode != 0 and "has no tokens" in refused.stderr
    if os.geteuid() == 0:
        (shell.folder / "tokens").chmod(0o600)
        os.chown(shell.folder / "tokens", 65534, 65534)
        refused = shell("serve", "--port", "0", "--tokens", "tokens")
        assert refused.returncode == 6 and "belongs to another account" in refused.stderr


@pytest.mark.parametrize("weak", ["short", "a" * 40, STRONG[:19], "ababababababababababab"])
def test_a_token_that_could_be_guessed_is_refused(shell: Shell, weak: str) -> None:
    refused = shell("serve", "--port", "0", MENDFLOW_TOKEN=weak)
    assert refused.returncode != 0
    assert "could be guessed" in refused.stderr and "openssl rand -hex 32" in refused.stderr
    assert weak not in refused.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--oidc-issuer", "https://login.example.org"), "--oidc-audience"),
        (("--oidc-audience", "mendflow"), "give --oidc-issuer"),
        (("--oidc-issuer", "http://login.example.org", "--oidc-audience", "m"), "is not the https address"),
        (("--oidc-issuer", "https://l.example", "--oidc-audience", "m", "--oidc-map", "staff"), "VALUE=ROLE"),
        (("--oidc-client", "web"), "give --oidc-issuer"),
        (
            ("--oidc-issuer", "https://l.example", "--oidc-audience", "m", "--oidc-client-secret", "tokens"),
            "give --oidc-client",
        ),
        (
            ("--oidc-issuer", "https://l.example", "--oidc-audience", "m", "--oidc-client", "w", "--oidc-session", "x"),
            "is no time",
        ),
    ],
)
def test_an_issuer_that_is_half_described_is_refused(shell: Shell, words: tuple[str, ...], told: str) -> None:
    refused = shell("serve", "--port", "0", *words)
    assert refused.returncode != 0 and told in " ".join(refused.stderr.split())


@pytest.mark.parametrize("word", ["token", "tokens"])
def test_who_looks_for_tokens_on_top_is_told_where_they_are(shell: Shell, word: str) -> None:
    assert "mendflow admin tokens create NAME" in shell(word).stderr
