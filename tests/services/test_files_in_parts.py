"""Files that come over a bad line: what has come stays, and the next try goes on there."""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import RequestError, TemporarilyUnavailable, TooLarge, Unreachable
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.stores.partial_files import KEPT_S
from mendflow.stores.shared_files import PIECE_BYTES, SharedFileStore

CONTENT = b"0123456789" * 150_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def broken(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    raise Unreachable("the line is cut")


@pytest.fixture
def files(tmp_path: Path) -> FolderFileStore:
    store = FolderFileStore(tmp_path / "files")
    store.open()
    return store


async def keep_half(files: FolderFileStore | SharedFileStore, source: str = "south") -> None:
    with pytest.raises(Unreachable):
        await files.keep_part("f", broken(CONTENT[:HALF]), sha256=DIGEST, offset=0, source=source)


async def test_a_file_that_broke_off_goes_on_where_it_did_also_after_a_restart(
    files: FolderFileStore, tmp_path: Path
) -> None:  # DM-1
    await keep_half(files)
    assert await files.size(DIGEST) is None
    again = FolderFileStore(tmp_path / "files")
    again.open()
    assert await again.part_bytes(DIGEST, "south") == HALF
    kept = await again.keep_part("f", pieces(CONTENT[HALF:]), sha256=DIGEST, offset=HALF, source="south")
    assert (kept.sha256, kept.bytes) == (DIGEST, len(CONTENT))
    assert b"".join([chunk async for chunk in again.read(DIGEST)]) == CONTENT
    assert await again.part_bytes(DIGEST, "south") == 0


async def test_what_one_sends_is_not_gone_on_with_by_another(files: FolderFileStore) -> None:
    await keep_half(files)
    assert await files.part_bytes(DIGEST, "west") == 0
    with pytest.raises(TemporarilyUnavailable, match="only 0 bytes"):
        await files.keep_part("f", pieces(CONTENT[HALF:]), sha256=DIGEST, offset=HALF, source="west")


async def test_parts_that_do_not_fit_together_are_all_asked_for_again(files: FolderFileStore) -> None:
    await keep_half(files)
    with pytest.raises(TemporarilyUnavailable, match="send it again"):
        await files.keep_part("f", pieces(b"wrong"), sha256=DIGEST, offset=HALF, source="south")
    assert await files.part_bytes(DIGEST, "south") == 0
    with pytest.raises(RequestError, match="send it again") as refused:
        await files.keep_part("f", pieces(b"wrong"), sha256=DIGEST, offset=0, source="south")
    assert not isinstance(refused.value, Unreachable)


async def test_of_two_connections_the_newer_goes_on_with_a_file(files: FolderFileStore) -> None:
    is_going_on = asyncio.Event()

    async def hanging() -> AsyncIterator[bytes]:
        yield CONTENT[:HALF]
        await is_going_on.wait()
        yield b"too late"

    older = asyncio.create_task(
        files.keep_part("f", hanging(), sha256=DIGEST, offset=0, source="south"), name="the older"
    )
    while await files.part_bytes(DIGEST, "south") < HALF:
        await asyncio.sleep(0)
    await files.keep_part("f", pieces(CONTENT[HALF:]), sha256=DIGEST, offset=HALF, source="south")
    is_going_on.set()
    with pytest.raises(TemporarilyUnavailable, match="another connection"):
        await older
    assert b"".join([chunk async for chunk in files.read(DIGEST)]) == CONTENT


async def test_what_is_too_large_leaves_nothing(files: FolderFileStore) -> None:
    async def too_large() -> AsyncIterator[bytes]:
        yield CONTENT
        raise TooLarge("too large")

    with pytest.raises(TooLarge):
        await files.keep_part("f", too_large(), sha256=DIGEST, offset=0, source="south")
    assert await files.part_bytes(DIGEST, "south") == 0


async def test_what_nobody_goes_on_with_is_removed(files: FolderFileStore, tmp_path: Path) -> None:
    await keep_half(files)
    [part] = (tmp_path / "files" / "parts").iterdir()
    long_ago = time.time() - KEPT_S - 1
    os.utime(part, (long_ago, long_ago))
    await keep_half(files, "west")
    assert not part.exists()


@pytest.mark.parametrize("offset", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(CONTENT)])
async def test_a_file_is_read_from_any_byte_on(tmp_path: Path, offset: int) -> None:
    store = MemoryStore()
    await store.open()
    one, two = (SharedFileStore(store, FolderFileStore(tmp_path / name)) for name in ("one", "two"))
    for each in (one, two):
        each.open()
    await keep_half(one)
    await one.keep_part("f", pieces(CONTENT[HALF:]), sha256=DIGEST, offset=HALF, source="south")
    for each in (one, two):  # two reads it from the store
        assert b"".join([chunk async for chunk in each.read(DIGEST, offset)]) == CONTENT[offset:]
