"""Whoever reads a stored file while another removes it finds it whole, or hears that it is gone; neither disturbs the
other."""

import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from mendflow.core.model.retention import GRACE_MIN_MS
from mendflow.stores.contract import Put
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.stores.shared_files import FILE_KIND, FileDocument, SharedFileStore
from mendflow.stores.used_files import UsedFiles

MINE = hashlib.sha256(b"mine").hexdigest()
LATER = 2**52
"""No file was stored or asked for since this moment."""


@pytest.fixture
async def file_store(tmp_path: Path) -> FolderFileStore:
    file_store = FolderFileStore(tmp_path)
    file_store.open()
    await file_store.keep("mine", _mine())
    (tmp_path / "condemned").mkdir()
    return file_store


async def _mine() -> AsyncIterator[bytes]:
    yield b"mine"


async def test_a_file_that_a_reader_takes_back_first_is_in_use(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    aside, place = tmp_path / "condemned" / MINE, tmp_path / MINE[:2] / MINE

    def asked_meanwhile(self: UsedFiles, sha256: str, moment_ms: int) -> bool:
        if not aside.exists():
            return False
        os.rename(aside, place)
        return True

    monkeypatch.setattr(UsedFiles, "used_since", asked_meanwhile)
    swept = await file_store.sweep([MINE], LATER)
    assert (swept.removed, swept.in_use) == (0, [MINE])
    assert await file_store.size(MINE) == 4


async def test_a_file_that_is_in_use_is_not_even_put_aside(
    file_store: FolderFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[object] = []
    monkeypatch.setattr("mendflow.stores.files.os.rename", lambda *paths: moved.append(paths))
    assert (await file_store.sweep([MINE], 1)).in_use == [MINE]
    assert moved == []


async def test_a_file_that_its_remover_takes_back_first_is_stored(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    _put_aside(tmp_path)
    _others_rename_first(monkeypatch)
    assert await file_store.size(MINE) == 4
    _put_aside(tmp_path)
    assert await file_store.stored_flaw(MINE, 4) == ""
    assert (tmp_path / "used" / MINE).exists(), "it is known to be in use"


async def test_a_file_that_is_put_aside_and_taken_back_while_it_is_opened_is_read_whole(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    size = FolderFileStore.size

    async def then_put_aside(self: FolderFileStore, sha256: str) -> int | None:
        found = await size(self, sha256)
        _put_aside(tmp_path)
        return found

    monkeypatch.setattr(FolderFileStore, "size", then_put_aside)
    _others_rename_first(monkeypatch)
    assert b"".join([chunk async for chunk in file_store.read(MINE)]) == b"mine"


async def test_a_store_opens_while_another_process_takes_back_what_was_put_aside(
    tmp_path: Path, file_store: FolderFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put_aside(tmp_path)
    _others_rename_first(monkeypatch)
    other = FolderFileStore(tmp_path)
    other.open()
    assert await other.size(MINE) == 4


async def test_a_file_that_was_asked_for_ten_minutes_ago_and_now_stays_with_the_shortest_grace(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    assert await file_store.size(MINE) == 4
    ago_s, now_s = time.time() - 600, time.monotonic()
    for path in (tmp_path / "used" / MINE, tmp_path / MINE[:2] / MINE):
        os.utime(path, (ago_s, ago_s))
    monkeypatch.setattr("mendflow.stores.used_files.time", SimpleNamespace(monotonic=lambda: now_s + 600))
    assert await file_store.size(MINE) == 4
    assert (await file_store.sweep([MINE], int(time.time() * 1000) - GRACE_MIN_MS)).in_use == [MINE]


async def test_a_shared_file_that_was_asked_for_ten_minutes_ago_and_now_stays_with_the_shortest_grace(
    tmp_path: Path,
) -> None:  # DU-6
    store, now = MemoryStore(), int(time.time() * 1000)
    await store.open()
    shared = SharedFileStore(store, FolderFileStore(tmp_path))
    await shared.keep_many({MINE: b"mine"})
    old = FileDocument(bytes=4, pieces=1, used_at=now - 600_000)
    await store.write([Put(FILE_KIND, MINE, msgspec.json.encode(old), 1)])
    assert await shared.size(MINE) == 4
    assert (await shared.sweep([MINE], now - GRACE_MIN_MS)).in_use == [MINE]


def _put_aside(folder: Path) -> None:
    os.replace(folder / MINE[:2] / MINE, folder / "condemned" / MINE)


def _others_rename_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever this process moves a file, another has just done so."""

    def rename(source: Path, target: Path) -> None:
        os.replace(source, target)
        raise FileNotFoundError(source)

    monkeypatch.setattr("mendflow.stores.files.os.rename", rename)
