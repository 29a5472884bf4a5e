"""The log of a SQLite store is copied into its file beside the commits, and begins anew."""

import itertools
import shutil
import sqlite3
from pathlib import Path

import pytest

from mendflow.stores.contract import Put
from mendflow.stores.sqlite import checkpoints
from mendflow.stores.sqlite.store import SqliteStore
from tests.contract.documents import done
from tests.patience import until


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def write(store: SqliteStore, first: int, count: int, size: int = 20_000) -> None:
    for number in range(first, first + count):
        await done(store, Put("job", f"j-{number}", b'{"x": "%s"}' % (b"a" * size), 0))


async def test_the_log_begins_anew_and_does_not_grow_with_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "FRAMES_MAX", 50)
    store, seen = await opened(tmp_path / "store.db"), list[int]()
    checkpointer = store._ready().checkpointer
    for first in range(0, 600, 10):
        await write(store, first, 10)
        seen.append(checkpointer.frames())
        await until(lambda: not checkpointer._is_copying)
    assert sum(after < before for before, after in itertools.pairwise(seen)) >= 3, seen
    assert max(seen) < 2000, "600 documents are 3,600 pages and more"
    await store.close()
    assert not (tmp_path / "store.db-wal").exists()


async def test_what_was_committed_is_there_whatever_a_checkpoint_had_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # JS-1
    monkeypatch.setattr(checkpoints, "FRAMES_MAX", 20)
    store = await opened(tmp_path / "store.db")
    for turn in range(20):
        await write(store, turn * 5, 5)
        copy = tmp_path / f"copy-{turn}"
        copy.mkdir()
        for name in ("store.db", "store.db-wal"):  # as a machine that stops leaves it: the log was synced first
            shutil.copy(tmp_path / name, copy / name)
        with sqlite3.connect(copy / "store.db") as found:
            assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert found.execute("SELECT count(*) FROM documents WHERE kind = 'job'").fetchone() == ((turn + 1) * 5,)
        found.close()
    await store.close()


async def test_a_checkpoint_that_fails_is_tried_again_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "FRAMES_MAX", 20)
    store = await opened(tmp_path / "store.db")
    checkpointer = store._ready().checkpointer
    copy, failed = checkpointer._copy, list[bool]()

    def full() -> None:
        if len(failed) < 2:
            failed.append(True)
            raise OSError(28, "No space left on device")
        copy()

    monkeypatch.setattr(checkpointer, "_copy", full)
    number = 0

    async def goes_on() -> bool:
        nonlocal number
        before = checkpointer.frames()
        await write(store, number, 5)
        number += 5
        return checkpointer.frames() < before

    await until(goes_on)
    assert len(failed) == 2 and len(await store.search("job", limit=10_000)) == number
    await store.close()
