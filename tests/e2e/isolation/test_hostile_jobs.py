"""A hostile job in each way of isolation: what it gets of the server, of its pilot, and of another's job."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import descendants
from tests.e2e.isolation.conftest import INTRUDER, NOBODY, OWNER, PYTHON, Installation
from tests.e2e.isolation.hostile import PROBE, VICTIM, python_flow, shell_flow
from tests.patience import PATIENCE_S

UID = pwd.getpwnam("nobody").pw_uid
NOTHING = {
    "token_in_environment": False,
    "password_in_environment": False,
    "secrets_in_files": False,
    "files_of_the_pilot_or_server": False,
    "files_of_another_job": False,
    "memory_of_the_pilot": False,
    "signals_to_the_pilot": False,
    "signals_to_the_server": False,
    "answer_of_the_server": 401,
    "visible": "",
    "passed": "",
}
"""What a job gets that reaches nothing: of the server the answer that it wants a token."""


def target_of(installation: Installation, agent: int = 0) -> dict[str, Any]:
    agent = agent or installation.processes["pilot"].pid
    victims = list(installation.work.glob("attempts/*/secret.txt"))
    return {
        "work": str(installation.work),
        "data": str(installation.data),
        "tokens": str(installation.token_file),
        "url": installation.url,
        "agent": agent,
        "slots": [
            pid for pid in descendants(agent) if b"mendflow.pilot.slot" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ],
        "server": installation.processes["server"].pid,
        "secrets": [installation.tokens["farm"][::-1], installation.tokens["root-of-all"][::-1]],
        "password": installation.password[::-1],
        "victims": [str(path) for path in victims],
    }


def let_victim_run(installation: Installation) -> None:
    installation.begin(OWNER, "victim", VICTIM)
    installation.until(lambda: list(installation.work.glob("attempts/*/secret.txt")), "the other job to run")


def loot_of(installation: Installation, kind: str, agent: int = 0) -> dict[str, Any]:
    """What the hostile job got; its file was collected."""
    name, target = f"hostile-{kind}", target_of(installation, agent)
    if kind == "shell":
        case = installation.begin(INTRUDER, name, shell_flow(name, target, PYTHON))
        loot = installation.end_of(INTRUDER, case)["hostile"]
        assert isinstance(loot, dict)
        found: dict[str, Any] = loot["loot"]
        return found
    case = installation.begin(INTRUDER, name, python_flow(name, target), probe=PROBE)
    got = installation.end_of(INTRUDER, case)["hostile"]
    assert isinstance(got, dict)
    return got


def reached(loot: dict[str, Any]) -> dict[str, Any]:
    """What differs from nothing."""
    return {name: loot[name] for name, none in NOTHING.items() if loot[name] != none}


def no_intruder(installation: Installation) -> bool:
    return "intruder" not in installation.token_file.read_text()


def own_folder_of(installation: Installation, before: list[str] | None) -> None:
    """A pilot that is not root's needs a work folder of its own."""
    if before:
        installation.work.mkdir()
        os.chown(installation.work, UID, UID)


@pytest.mark.parametrize("kind", ["shell", "python"])
def test_a_job_under_one_account_for_all_reaches_nothing_but_other_jobs(
    installation: Installation, kind: str
) -> None:  # SE-2
    installation.serve()
    installation.pilot("--jobs-as", "nobody", "--pass-env", "VISIBLE_*")
    let_victim_run(installation)
    loot = loot_of(installation, kind)
    assert reached(loot) == {"files_of_another_job": True, "visible": "yes"}
    assert loot["user"] == UID and no_intruder(installation)


@pytest.mark.parametrize("kind", ["shell", "python"])
def test_a_job_under_the_account_of_its_owner_reaches_nothing(installation: Installation, kind: str) -> None:  # SE-2
    installation.serve()
    installation.pilot("--jobs-as", "owner", "--accounts", f"{OWNER},{INTRUDER}")
    let_victim_run(installation)
    loot = loot_of(installation, kind)
    assert reached(loot) == {} and no_intruder(installation)
    assert loot["user"] == pwd.getpwnam(INTRUDER).pw_uid


@pytest.mark.parametrize("kind", ["shell", "python"])
@pytest.mark.parametrize("before", [None, NOBODY], ids=["root", "nobody"])
def test_a_job_in_a_sandbox_reaches_nothing(
    installation: Installation, kind: str, before: list[str] | None
) -> None:  # SE-2
    installation.serve()
    own_folder_of(installation, before)
    installation.pilot("--sandbox", "bubblewrap", before=before)
    let_victim_run(installation)
    loot = loot_of(installation, kind)
    assert reached(loot) == {} and no_intruder(installation)
    assert loot["user"] == UID and Path(loot["home"]).parent == installation.work / "attempts"


def test_a_sandbox_may_have_no_network(installation: Installation) -> None:  # SE-2
    installation.serve()
    installation.pilot("--sandbox", "bubblewrap", "--sandbox-network", "none")
    installation.until(lambda: installation.work.joinpath("attempts").exists(), "the pilot's folder")
    assert reached(loot_of(installation, "shell")) == {"answer_of_the_server": 0}


@pytest.mark.parametrize("kind", ["shell", "python"])
def test_a_job_as_the_pilot_itself_gets_no_secret_from_memory_or_environment(
    installation: Installation, kind: str
) -> None:  # SE-2
    """What it does get is why a server for several people refuses to start jobs so."""
    installation.serve()
    own_folder_of(installation, NOBODY)
    installation.pilot(before=NOBODY)
    let_victim_run(installation)
    loot = loot_of(installation, kind)
    assert reached(loot) == {
        "files_of_the_pilot_or_server": True,
        "files_of_another_job": True,
        "signals_to_the_pilot": True,
    }
    assert no_intruder(installation)


@pytest.mark.parametrize("words", [("--jobs-as", "nobody"), ("--sandbox", "bubblewrap")], ids=["account", "sandbox"])
def test_a_server_for_several_runs_jobs_itself_only_apart_from_itself(
    installation: Installation, words: tuple[str, ...]
) -> None:  # SE-2
    installation.start("refused", "serve", "--tokens", str(installation.token_file), "--jobs", "2")
    assert installation.processes.pop("refused").wait(PATIENCE_S) != 0
    for way in ("--jobs-as ACCOUNT", "--sandbox bubblewrap", "--sandbox containers"):
        assert way in installation.said()
    installation.serve("--jobs", "2", *words)
    installation.work = Path(f"{installation.data}.jobs")
    installation.until(lambda: bool(installation.client("root-of-all").pilots()), "its pilot")
    below = descendants(installation.processes["server"].pid)
    agents = [pid for pid in below if b"mendflow.pilot\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    loot = loot_of(installation, "shell", agent=agents[0])
    assert reached(loot) == {} and no_intruder(installation)
