"""What a site's settings name and what is not there is told when it is added, not when its first pilot is wanted."""

from pathlib import Path

import pytest

from mendflow.batch import router as systems
from mendflow.batch.router import COMMANDS, BatchSystemRouter
from mendflow.batch.site_folders import SiteFolders
from mendflow.core.model.sites import BatchSettings, Site


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchSystemRouter:
    """On a machine that has no command at all, and PSI/J."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(systems, "find_spec", lambda name: object())
    return BatchSystemRouter(SiteFolders(tmp_path))


def site(kind: str, **settings: object) -> Site:
    return Site(name="t0", batch=BatchSettings(kind=kind, **settings))  # type: ignore[arg-type]  # as a test gives them


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind != "local"])
async def test_commands_that_are_not_there_are_named_with_what_to_do(
    made: BatchSystemRouter, kind: str, tmp_path: Path
) -> None:  # PJ-8
    (told,) = await made.lacks(site(kind))
    assert told.startswith(", ".join(COMMANDS[kind])) and "`commands`" in told
    for command in COMMANDS[kind][:2]:
        (tmp_path / command).write_text("#!/bin/sh\n")
        (tmp_path / command).chmod(0o755)
    (told,) = await made.lacks(site(kind, commands=str(tmp_path)))
    assert told.startswith(f"{COMMANDS[kind][2]} of {kind} cannot be found on {tmp_path} or on the PATH")


async def test_what_only_another_machine_can_know_is_not_told(made: BatchSystemRouter) -> None:
    assert await made.lacks(site("slurm", host="elsewhere")) == []
    assert len(await made.lacks(site("slurm", host=made.host))) == 1
    assert await made.lacks(site("local")) == []


async def test_what_submits_and_variables_are_looked_for_too(
    made: BatchSystemRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    told = await made.lacks(site("pbs", environment={"X": "env:NOT_THERE_AT_ALL"}))
    assert "mendflow[batch]" in told[1] and "NOT_THERE_AT_ALL" in told[2]
    assert len(await made.lacks(site("htcondor"))) == 1, "that one is spoken to by its own commands"
