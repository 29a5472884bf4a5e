"""Which data folder a command uses: the one here, else the nearest above, and it says which."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.in_process import run_command

FLOW = "name: one\njobs: {a: {run: echo hello}}\n"


def below(shell: Shell) -> Shell:
    """The same user, in a subfolder."""
    inner = Shell(shell.folder / "deep" / "er")
    inner.folder.mkdir(parents=True)
    inner.environment = shell.environment
    return inner


@pytest.mark.full
def test_commands_in_a_subfolder_find_the_cases_of_the_folder_above_and_say_so(shell: Shell) -> None:  # DU-4
    shell.write("one.yaml", FLOW)
    shell.ok("run", "one.yaml", "--quiet")
    inner = below(shell)
    listed = inner("cases")
    assert "one-" in listed.stdout and f"{shell.folder}/.mendflow is used" in listed.stderr
    assert inner.ok("logs", "last:a") == "hello\n"
    again = inner("rerun", "last", "--quiet")
    assert again.returncode == 0 and f"{shell.folder}/.mendflow is used" in again.stderr
    assert len(shell.json("cases")) == 2
    assert not (inner.folder / ".mendflow").exists()


def test_what_is_set_or_removed_in_a_subfolder_is_not_set_in_the_folder_above_unless_it_is_named(
    shell: Shell,
) -> None:  # DU-4
    shell.ok("limits", "set", "gate", "3")
    shell.write("one.yaml", FLOW)
    inner = below(shell)
    for words in (
        ("limits", "set", "gate", "1"),
        ("limits", "remove", "gate"),
        ("flows", "deploy", "../../one.yaml"),
        ("prune", "--older-than", "1d", "--yes"),
        ("prune", "set", "month", "--older-than", "30d"),
    ):
        refused = run_command(list(words), folder=inner.folder, environment=inner.environment)
        told = " ".join(refused.stderr.split())
        assert refused.returncode == 2, words
        assert f"this would change {shell.folder}/.mendflow" in told, words
        assert "--data-dir ../../.mendflow or by --data-dir .mendflow" in told, words
    seen = run_command(["limits", "--json"], folder=inner.folder, environment=inner.environment)
    assert '"count": 3' in seen.stdout and "is used (--data-dir names another)" in " ".join(seen.stderr.split())
    inner.ok("limits", "set", "gate", "1", "--data-dir", ".mendflow")
    assert [view["count"] for view in shell.json("limits")] == [3]
    assert [view["count"] for view in inner.json("limits")] == [1]


@pytest.mark.full
def test_a_run_in_a_subfolder_keeps_its_cases_there_and_says_that_others_are_above(shell: Shell) -> None:  # DU-4
    shell.write("one.yaml", FLOW)
    shell.ok("run", "one.yaml", "--quiet")
    inner = below(shell)
    told = inner("run", "../../one.yaml")
    assert f"apart from those of {shell.folder}; --data-dir {shell.folder}/.mendflow" in " ".join(told.stderr.split())
    assert (inner.folder / ".mendflow" / "store.db").exists()
    assert len(inner.json("cases")) == 1
    assert "apart from" not in inner("run", "../../one.yaml").stderr


def test_a_data_folder_of_another_user_is_not_opened(shell: Shell, tmp_path: Path) -> None:  # DU-4
    (shell.folder / ".mendflow").mkdir()
    (shell.folder / ".mendflow" / "store.db").touch()
    inner = below(shell)
    if os.getuid() == 0:
        os.chown(shell.folder / ".mendflow", 65534, 65534)
    else:
        (shell.folder / ".mendflow" / "store.db").unlink()
    refused = run_command(["cases"], folder=inner.folder, environment=inner.environment)
    assert refused.returncode and "there is nothing at" in refused.stderr
