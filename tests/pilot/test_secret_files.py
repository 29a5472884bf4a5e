"""Secrets as files of a job: written for its owner alone, never through a link, and removed when it is over."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.secrets import SecretUse
from mendflow.pilot.files import memory_folders
from mendflow.pilot.files.memory_folders import attempt_memory, remove_memory
from mendflow.pilot.files.secret_files import remove_secret_files, write_secret_files
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.slot.process_tags import find_slots
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import pids_in


def test_files_of_secrets_are_written_for_their_owner_alone_and_removed(tmp_path: Path) -> None:  # DU-6
    for value in ("first", "second"):
        write_secret_files(str(tmp_path / "job"), {"conf/deep/token.txt": value, "key": value})
        assert (tmp_path / "job/conf/deep/token.txt").read_text() == value
        assert (tmp_path / "job/key").stat().st_mode & 0o777 == 0o600
    remove_secret_files(str(tmp_path / "job"), ["conf/deep/token.txt", "key", "never/there"])
    assert not [path for path in (tmp_path / "job").rglob("*") if path.is_file()]


@pytest.mark.parametrize("path", ["data/token.txt", "data/deep/token.txt"])
def test_no_secret_is_written_or_removed_through_a_link(tmp_path: Path, path: str) -> None:  # DU-6
    (tmp_path / "shared/deep").mkdir(parents=True)
    (tmp_path / "shared/token.txt").write_text("of others")
    (tmp_path / "job").mkdir()
    (tmp_path / "job/data").symlink_to(tmp_path / "shared")
    with pytest.raises(StagingFailed) as refused:
        write_secret_files(str(tmp_path / "job"), {path: "tell-nobody-42"})
    assert f"no secret can be written to {path}: an input of the job" in refused.value.fault.message
    remove_secret_files(str(tmp_path / "job"), [path])
    assert (tmp_path / "shared/token.txt").read_text() == "of others"
    assert not (tmp_path / "shared/deep/token.txt").exists()


Hire = Callable[..., Pilot]


def test_the_content_lies_in_memory_and_goes_with_the_job(tmp_path: Path) -> None:  # DU-6
    folder = tmp_path / "work/attempts/one.1"
    write_secret_files(str(folder), {"conf/token.txt": "tell-nobody-42", "key": "another-one"})
    place = Path(attempt_memory(str(folder)))
    assert place.is_relative_to("/dev/shm") and place.parent.stat().st_mode & 0o777 == 0o700
    assert (folder / "conf/token.txt").readlink().parent == place
    assert (folder / "key").read_text() == "another-one"
    write_secret_files(str(tmp_path / "work/attempts/two.1"), {"key": "of another job"})
    remove_memory(str(tmp_path / "work"), but=frozenset({"two.1"}))
    assert not place.exists() and (tmp_path / "work/attempts/two.1/key").read_text() == "of another job"
    remove_secret_files(str(tmp_path / "work/attempts/two.1"), ["key"])
    assert not place.parent.exists()


def test_a_folder_in_memory_that_somebody_else_made_is_not_used(tmp_path: Path) -> None:  # DU-6
    folder = tmp_path / "work/attempts/one.1"
    home = Path(memory_folders._homes(str(tmp_path / "work"))[0])
    (tmp_path / "theirs").mkdir()
    home.symlink_to(tmp_path / "theirs")
    try:
        write_secret_files(str(folder), {"key": "tell-nobody-42"})
        assert not list((tmp_path / "theirs").iterdir()), "it would be read there"
        assert not str((folder / "key").resolve()).startswith("/dev/shm")
        remove_secret_files(str(folder), ["key"])
    finally:
        home.unlink()


def test_without_memory_it_is_a_file_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # DU-6
    monkeypatch.setattr(memory_folders, "MOUNTS", str(tmp_path / "none"))
    write_secret_files(str(tmp_path / "work/attempts/one.1"), {"key": "tell-nobody-42"})
    key = tmp_path / "work/attempts/one.1/key"
    assert not key.is_symlink() and key.stat().st_mode & 0o777 == 0o600


def contents_below(folder: Path) -> list[str]:
    return [each.read_text() for each in folder.rglob("*") if each.is_file()]


@pytest.mark.parametrize("killed", ["nobody", "agent", "slot", "agent and slot"])
async def test_secrets_in_memory_are_gone_with_the_job_whoever_is_killed(
    server: Server, hire: Hire, tmp_path: Path, killed: str
) -> None:  # DU-6
    server.ledger.secrets["api-token"] = "tell-nobody-42"
    pilot = hire()
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; cat key >/dev/null"
    command = f"stat -L -c %a key; readlink -f key; echo $$ > {tmp_path}/pid; {wait}"
    job = await server.shell(command, secrets=(SecretUse(name="api-token", path="key"),))
    await pids_in(server, tmp_path / "pid")
    home = Path(memory_folders._homes(str(pilot.work))[0])
    assert contents_below(home) == ["tell-nobody-42"]
    slots = find_slots(str(pilot.work))
    assert slots
    if "slot" in killed:
        server.ledger.secrets.clear()  # the next attempt is none of this
        server.ledger.lease_ms = 3_000
    if "agent" in killed:
        pilot.kill()
    if "slot" in killed:
        for pid in slots:
            os.kill(pid, signal.SIGKILL)
    else:
        (tmp_path / "go").touch()
    await server.until(lambda: not home.exists(), "the secret to be gone from memory")
    if killed == "nobody":
        told = (await server.outcome(job)).log_tail.splitlines()
        assert told[0] == "600" and told[1].startswith("/dev/shm/")
