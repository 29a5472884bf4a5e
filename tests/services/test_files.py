"""Stored files: whole or not at all, and nothing outside their folder."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.problems import Mistake, NotFound
from mendflow.stores.files import FolderKeeper


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
def keeper(tmp_path: Path) -> FolderKeeper:
    keeper = FolderKeeper(tmp_path / "files")
    keeper.open()
    return keeper


async def test_what_was_kept_comes_back_whole(keeper: FolderKeeper) -> None:
    # FM-6
    ref = await keeper.keep("a.txt", pieces(b"one", b"two"))
    assert ref.sha256 == hashlib.sha256(b"onetwo").hexdigest()
    assert b"".join([chunk async for chunk in keeper.kept(ref.sha256)]) == b"onetwo"
    assert await keeper.size(ref.sha256) == 6


async def test_content_that_is_not_what_was_announced_is_refused_whole(keeper: FolderKeeper, tmp_path: Path) -> None:
    announced = hashlib.sha256(b"good").hexdigest()
    with pytest.raises(Mistake, match="send it again"):
        await keeper.keep("a", pieces(b"bad"), sha256=announced)
    assert await keeper.size(announced) is None
    assert list((tmp_path / "files" / "incoming").iterdir()) == []


async def test_a_broken_upload_leaves_nothing(keeper: FolderKeeper, tmp_path: Path) -> None:
    async def torn() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(Mistake):
        await keeper.keep("a", torn())
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "0" * 63, "0" * 64 + "/.."])
async def test_only_digests_are_names(keeper: FolderKeeper, name: str) -> None:
    with pytest.raises(Mistake, match="not a sha-256"):
        await keeper.size(name)


async def test_a_file_that_is_not_kept_is_not_found(keeper: FolderKeeper) -> None:
    with pytest.raises(NotFound):
        async for _ in keeper.kept("0" * 64):
            pass


async def test_the_same_content_twice_is_one_file(keeper: FolderKeeper, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"same")
    one = await keeper.keep("a", pieces(b"same"))
    two = await keeper.keep_path(str(tmp_path / "x"))
    assert (one.sha256, two.name) == (two.sha256, "x")
