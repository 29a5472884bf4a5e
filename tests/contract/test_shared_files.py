"""Files that go through one server are given by every server on the same store."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound, RequestError, StoreUnavailable
from mendflow.stores.contract import Append, Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.shared_files import PIECE_BYTES, SharedFileStore


def file_store(store: Store, folder: Path) -> SharedFileStore:
    made = SharedFileStore(store, FolderFileStore(folder))
    made.open()
    return made


async def chunks(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def content_of(file_store: SharedFileStore, sha256: str) -> bytes:
    return b"".join([chunk async for chunk in file_store.read(sha256)])


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1])
async def test_a_file_kept_by_one_server_is_given_by_another(store: Store, tmp_path: Path, size: int) -> None:  # JS-5
    content = (b"mendflow" * (size // 8 + 1))[:size]
    one, other = file_store(store, tmp_path / "one"), file_store(store, tmp_path / "other")
    ref = await one.keep("data.bin", chunks(content))
    assert (ref.sha256, ref.bytes) == (hashlib.sha256(content).hexdigest(), size)
    assert await content_of(other, ref.sha256) == content == await content_of(one, ref.sha256)
    assert await other.size(ref.sha256) == size
    assert await other.keep("again.bin", chunks(content), sha256=ref.sha256) is not None
    assert await content_of(other, ref.sha256) == content


async def test_files_that_come_together_are_given_by_another_server_too(store: Store, tmp_path: Path) -> None:
    made = [b"", b"one", b"two", b"x" * PIECE_BYTES, b"y" * (PIECE_BYTES + 1)]
    contents = {hashlib.sha256(content).hexdigest(): content for content in made}
    one, other = file_store(store, tmp_path / "one"), file_store(store, tmp_path / "other")
    half = hashlib.sha256(b"two").hexdigest()
    await store.write([Append(f"file/{half}/{PIECE_BYTES}", [b"two"], 0)])
    await one.keep_many(contents)
    await one.keep_many(contents)
    assert {sha256: await content_of(other, sha256) for sha256 in contents} == contents
    assert [await other.size(sha256) for sha256 in contents] == [len(content) for content in made]


async def test_of_files_that_come_together_none_is_kept_if_one_is_not_what_it_says(
    store: Store, tmp_path: Path
) -> None:
    files, right = file_store(store, tmp_path), hashlib.sha256(b"right").hexdigest()
    with pytest.raises(RequestError, match="does not have the digest"):
        await files.keep_many({right: b"right", "0" * 64: b"wrong"})
    assert await files.size(right) is None
    assert await FolderFileStore(tmp_path).size(right) is None


async def test_a_file_that_is_only_half_there_is_not_kept_and_goes_on_where_it_ends(
    store: Store, tmp_path: Path
) -> None:
    content = bytes(range(256)) * (3 * PIECE_BYTES // 256)
    sha256 = hashlib.sha256(content).hexdigest()
    await store.write([Append(f"file/{sha256}/{PIECE_BYTES}", [content[:PIECE_BYTES]], 0)])
    one, other = file_store(store, tmp_path / "one"), file_store(store, tmp_path / "other")
    assert await other.size(sha256) is None
    with pytest.raises(NotFound):
        await content_of(other, sha256)
    await one.keep("data.bin", chunks(content))
    assert await content_of(other, sha256) == content
    assert await store.length(f"file/{sha256}/{PIECE_BYTES}") == 3


async def test_a_file_that_lies_here_and_never_reached_the_store_does_not_count(store: Store, tmp_path: Path) -> None:
    ref = await FolderFileStore(tmp_path / "one").keep("data.bin", chunks(b"here only"))
    assert await file_store(store, tmp_path / "one").size(ref.sha256) is None


async def test_what_is_no_digest_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="not a sha-256 digest"):
        await file_store(store, tmp_path).size("../../etc/passwd")


async def test_a_file_is_not_kept_while_the_store_is_away(store: Store, tmp_path: Path) -> None:
    await store.close()
    try:
        with pytest.raises(StoreUnavailable):
            await file_store(store, tmp_path).keep("data.bin", chunks(b"x"))
    finally:
        await store.open()
