"""Large files that a server stores on the pilot's own disk: read where they are, and only if they are what they say."""

import hashlib
import os
from pathlib import Path

import pytest

from mendflow.core.model.values import FileRef
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.cache import entries
from mendflow.pilot.files.stored_here import LINKED_BYTES_MIN, StoredHere

CONTENT = b"7" * LINKED_BYTES_MIN
REF = FileRef(sha256=hashlib.sha256(CONTENT).hexdigest(), bytes=len(CONTENT), name="a.npy")


class _Taking(FileClient):
    """A server on this machine that takes every file as it is."""

    def give(self, sha256: str, name: str, path: str) -> bool:
        assert self._incoming is not None and name == "a.npy"
        stored = self._incoming.parent / sha256[:2] / sha256
        stored.parent.mkdir(exist_ok=True)
        os.link(path, stored)
        return True


@pytest.fixture
def client(tmp_path: Path) -> _Taking:
    (tmp_path / "files/incoming").mkdir(parents=True)
    return _Taking(ServerAddress("http://127.0.0.1:1", ""), tmp_path / "files/incoming")


def given(client: FileClient, folder: Path, content: bytes = CONTENT) -> StoredHere:
    """What is stored here, after a job's file was handed over."""
    (folder / "made").write_bytes(content)
    found = StoredHere(client, folder / "links")
    assert found.give(str(folder / "made"), REF, "a.npy")
    (folder / "made").unlink()
    return found


def test_a_file_that_was_handed_over_is_linked_and_not_hashed_again(
    client: _Taking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-8
    here = given(client, tmp_path)
    monkeypatch.setattr(entries, "digest_of", None)
    link = tmp_path / "links" / REF.sha256
    for _ in range(2):
        here.hold(REF.sha256)
        assert here.link(REF)
        assert link.samefile(client.stored_path(REF.sha256))
    here.release(REF.sha256)
    os.unlink(client.stored_path(REF.sha256))
    assert link.read_bytes() == CONTENT, "whoever holds it still has it when the server has removed its own"
    here.release(REF.sha256)
    assert not link.exists()


def test_a_file_that_was_changed_since_is_not_used(client: _Taking, tmp_path: Path) -> None:  # DU-8
    here = given(client, tmp_path)
    with open(client.stored_path(REF.sha256), "r+b") as stored:
        stored.write(b"8")
    here.hold(REF.sha256)
    assert not here.link(REF) and not os.listdir(tmp_path / "links")
    here.release(REF.sha256)


def test_a_file_that_another_pilot_handed_over_is_hashed_once(client: _Taking, tmp_path: Path) -> None:  # DU-8
    given(client, tmp_path)
    another = StoredHere(client, tmp_path / "others")
    another.hold(REF.sha256)
    assert another.link(REF) and another.link(REF)
    assert not another.link(FileRef(sha256="0" * 64, bytes=REF.bytes, name="unknown"))
    assert not another.link(FileRef(sha256=REF.sha256, bytes=10, name="small"))


def test_a_link_in_the_place_of_a_stored_file_is_not_followed(client: _Taking, tmp_path: Path) -> None:  # DU-5
    (tmp_path / "elsewhere").write_bytes(CONTENT)
    stored = tmp_path / "files" / REF.sha256[:2] / REF.sha256
    stored.parent.mkdir()
    stored.symlink_to(tmp_path / "elsewhere")
    here = StoredHere(client, tmp_path / "links")
    here.hold(REF.sha256)
    assert not here.link(REF)


def test_links_of_an_earlier_agent_stay_until_none_of_its_calls_runs(client: _Taking, tmp_path: Path) -> None:  # DU-8
    first = given(client, tmp_path)
    first.hold(REF.sha256)
    assert first.link(REF)
    second = StoredHere(client, tmp_path / "links")
    second.hold(REF.sha256)
    second.release(REF.sha256)
    assert os.listdir(tmp_path / "links") == [REF.sha256]
    second.tidy()
    assert not os.listdir(tmp_path / "links")


def test_a_job_gets_a_copy_that_it_may_write_to(client: _Taking, tmp_path: Path) -> None:  # DU-8
    here = given(client, tmp_path)
    assert here.copy(REF, str(tmp_path / "input"))
    with (tmp_path / "input").open("r+b") as own:
        own.write(b"changed")
    assert Path(client.stored_path(REF.sha256)).read_bytes() == CONTENT
    assert not os.listdir(tmp_path / "links"), "nothing is left of it beside the cache"
    assert not here.copy(FileRef(sha256="0" * 64, bytes=REF.bytes, name="unknown"), str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_what_is_changed_while_it_is_copied_is_not_handed_over(
    client: _Taking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-8
    here, real = given(client, tmp_path), entries.copy

    def copy(source: str, target: str) -> None:
        with open(source, "r+b") as stored:
            stored.write(b"8")
        real(source, target)

    monkeypatch.setattr(entries, "copy", copy)
    assert not here.copy(REF, str(tmp_path / "input")) and not (tmp_path / "input").exists()
