"""Stored files: whole or not at all, and nothing outside their folder."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound, RequestError
from mendflow.stores.files import FolderFileStore


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
def file_store(tmp_path: Path) -> FolderFileStore:
    file_store = FolderFileStore(tmp_path / "files")
    file_store.open()
    return file_store


async def test_what_was_kept_comes_back_whole(file_store: FolderFileStore) -> None:
    # FM-6
    ref = await file_store.keep("a.txt", pieces(b"one", b"two"))
    assert ref.sha256 == hashlib.sha256(b"onetwo").hexdigest()
    assert b"".join([chunk async for chunk in file_store.kept(ref.sha256)]) == b"onetwo"
    assert await file_store.size(ref.sha256) == 6


async def test_content_that_is_not_what_was_announced_is_refused_whole(
    file_store: FolderFileStore, tmp_path: Path
) -> None:
    announced = hashlib.sha256(b"good").hexdigest()
    with pytest.raises(RequestError, match="send it again"):
        await file_store.keep("a", pieces(b"bad"), sha256=announced)
    assert await file_store.size(announced) is None
    assert list((tmp_path / "files" / "incoming").iterdir()) == []


async def test_a_broken_upload_leaves_nothing(file_store: FolderFileStore, tmp_path: Path) -> None:
    async def torn() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(RequestError):
        await file_store.keep("a", torn())
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "0" * 63, "0" * 64 + "/.."])
async def test_only_digests_are_names(file_store: FolderFileStore, name: str) -> None:
    with pytest.raises(RequestError, match="not a sha-256"):
        await file_store.size(name)


async def test_a_file_that_is_not_kept_is_not_found(file_store: FolderFileStore) -> None:
    with pytest.raises(NotFound):
        async for _ in file_store.kept("0" * 64):
            pass


async def test_the_same_content_twice_is_one_file(file_store: FolderFileStore, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"same")
    one = await file_store.keep("a", pieces(b"same"))
    two = await file_store.keep_path(str(tmp_path / "x"))
    assert (one.sha256, two.name) == (two.sha256, "x")
