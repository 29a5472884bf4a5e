"""`mendflow admin doctor` says what is wrong with an installation, and changes nothing."""

import json
import sqlite3
import stat

import pytest

from mendflow.client.server_file import find_server
from tests.cli.conftest import Shell
from tests.servers.certificates import self_signed

FLOW = "jobs: {a: {run: echo hello}}\n"


def found(shell: Shell, exit_code: int = 0) -> dict[str, tuple[str, str]]:
    done = shell("admin", "doctor", "--json")
    assert done.returncode == exit_code, done.stderr
    return {each["topic"]: (each["state"], each["text"]) for each in json.loads(done.stdout)}


@pytest.mark.full
def test_a_sound_folder_is_told_to_be_one_and_a_new_store_is_for_its_owner_alone(shell: Shell) -> None:  # SE-7
    assert "does not exist yet" in found(shell)["data folder"][1]
    assert not (shell.folder / ".mendflow").exists(), "it only looks"
    shell.write("a.yaml", FLOW)
    shell.ok("run", "a.yaml", "--quiet")
    store = shell.folder / ".mendflow" / "store.db"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    told = found(shell)
    assert told["store"][0] == told["data folder"][0] == "ok" and "schema" in told["store"][1]
    assert "none runs" in told["server"][1]


@pytest.mark.full
def test_what_others_may_read_is_told_with_the_command_that_mends_it(shell: Shell) -> None:  # SE-7
    shell.write("a.yaml", FLOW)
    shell.ok("run", "a.yaml", "--quiet")
    folder = shell.folder / ".mendflow"
    folder.chmod(0o755)
    (folder / "store.db").chmod(0o644)
    key = folder / "secrets.key"
    key.write_text("k" * 40)
    key.chmod(0o644)
    done = shell("admin", "doctor")
    assert done.returncode == 3
    for path, mode in ((folder, 700), (folder / "store.db", 600), (key, 600)):
        assert f"chmod {mode} {path}" in done.stdout.replace("\n", "")
    assert "1 problems, " in done.stdout


def test_a_store_that_is_damaged_newer_or_older_is_told(shell: Shell) -> None:  # SE-7
    shell.write("a.yaml", FLOW)
    shell.ok("run", "a.yaml", "--quiet")
    store = shell.folder / ".mendflow" / "store.db"
    with sqlite3.connect(store) as connection:
        connection.execute("INSERT INTO schema_version VALUES (999, 'later')")
    connection.close()
    state, text = found(shell, exit_code=3)["store"]
    assert state == "problem" and "from a newer mendflow" in text
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM schema_version WHERE number > 1")
    connection.close()
    state, text = found(shell)["store"]
    assert state == "warning" and "has schema 1; the next start" in text
    assert "mendflow admin backup FOLDER" in shell.ok("admin", "doctor")
    store.write_bytes(b"no store at all" * 1000)
    state, text = found(shell, exit_code=3)["store"]
    assert state == "problem" and "cannot be read as a store" in text


@pytest.mark.full
def test_a_server_that_signed_its_certificate_itself_is_no_problem(shell: Shell) -> None:  # SE-7
    cert, key = self_signed(shell.folder)
    shell.start("serve", "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    shell.until(lambda: find_server(shell.folder / ".mendflow"))
    state, text = found(shell)["server"]
    assert state == "ok" and text.startswith("https://")
