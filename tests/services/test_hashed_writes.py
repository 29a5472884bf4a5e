"""What is sent is hashed and written by threads, unless it is little."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from mendflow.stores import lasting_writes
from mendflow.stores.files import FolderFileStore
from mendflow.stores.lasting_writes import BATCH_BYTES, HashedWriter


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Those that hash."""
    found, make = set[int](), hashlib.sha256

    class WatchedHash:
        def __init__(self) -> None:
            self._real = make()
            self.hexdigest = self._real.hexdigest

        def update(self, data: bytes) -> None:
            found.add(threading.get_ident())
            self._real.update(data)

    class Hashes:
        sha256 = WatchedHash

    monkeypatch.setattr(lasting_writes, "hashlib", Hashes)
    return found


async def sent(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.mark.parametrize("extra", [0, 1, BATCH_BYTES // 2])
async def test_a_large_file_is_hashed_and_written_beside_the_loop(  # SE-3
    tmp_path: Path, threads: set[int], extra: int
) -> None:
    store, content = FolderFileStore(tmp_path), b"0123456789abcdef" * (BATCH_BYTES // 4) + b"x" * extra
    store.open()
    stored = await store.keep("f", sent(content, 1 << 16))
    assert (stored.sha256, stored.bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert b"".join([each async for each in store.read(stored.sha256)]) == content
    assert threads - {threading.get_ident()}, "threads have hashed it"


async def test_a_small_file_needs_no_thread(threads: set[int]) -> None:  # SE-3
    writer, out = HashedWriter(target := BytesIO()), b"little"
    await writer.take(out)
    writer.flush()
    assert threads == {threading.get_ident()} and target.getvalue() == out
    assert writer.digest() == hashlib.sha256(out).hexdigest()


async def test_nothing_is_written_after_whoever_sent_it_has_left() -> None:  # SE-3
    begun, may_end = threading.Event(), threading.Event()

    class SlowFile(BytesIO):
        def write(self, data: Any, /) -> int:
            begun.set()
            may_end.wait()
            return super().write(data)

    writer = HashedWriter(out := SlowFile())
    task = asyncio.create_task(writer.take(b"x" * BATCH_BYTES))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done(), "it waits for what is being written"
    may_end.set()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled() and len(out.getvalue()) == BATCH_BYTES
