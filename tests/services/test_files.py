"""Stored files: whole or not at all, and nothing outside their folder."""

import hashlib
import mmap
import os
from collections.abc import AsyncIterator
from io import BufferedReader
from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound, RequestError, StoreUnavailable
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
    assert b"".join([chunk async for chunk in file_store.read(ref.sha256)]) == b"onetwo"
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
        async for _ in file_store.read("0" * 64):
            pass


async def test_the_same_content_twice_is_one_file(file_store: FolderFileStore, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"same")
    one = await file_store.keep("a", pieces(b"same"))
    two = await file_store.keep_path(str(tmp_path / "x"))
    assert (one.sha256, two.name) == (two.sha256, "x")


@pytest.mark.parametrize("damage", [b"on", b"0netwo"], ids=["cut off", "changed"])
async def test_a_damaged_file_is_refused_with_advice_and_healed_by_the_next_upload(
    file_store: FolderFileStore, tmp_path: Path, damage: bytes
) -> None:  # FM-6
    ref = await file_store.keep("a.txt", pieces(b"onetwo"))
    place = tmp_path / "files" / ref.sha256[:2] / ref.sha256
    place.write_bytes(damage)
    with pytest.raises(NotFound, match=r"was damaged, and is put aside as .* run the flow that made it again"):
        _ = [chunk async for chunk in file_store.read(ref.sha256)]
    assert await file_store.size(ref.sha256) is None
    assert (tmp_path / "files" / "damaged" / ref.sha256).read_bytes() == damage
    await file_store.keep("a.txt", pieces(b"onetwo"))
    assert b"".join([chunk async for chunk in file_store.read(ref.sha256)]) == b"onetwo"


async def test_an_upload_heals_a_damaged_file_that_nobody_has_read(file_store: FolderFileStore, tmp_path: Path) -> None:
    ref = await file_store.keep("a.txt", pieces(b"onetwo"))
    (tmp_path / "files" / ref.sha256[:2] / ref.sha256).write_bytes(b"0netwo")
    await file_store.keep("a.txt", pieces(b"onetwo"))
    assert b"".join([chunk async for chunk in file_store.read(ref.sha256)]) == b"onetwo"


async def test_a_restarted_server_hashes_a_file_once_before_it_gives_it(
    file_store: FolderFileStore, tmp_path: Path
) -> None:
    ref = await file_store.keep("a.txt", pieces(b"onetwo"))
    place = tmp_path / "files" / ref.sha256[:2] / ref.sha256
    status = place.stat()
    place.write_bytes(b"0netwo")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = FolderFileStore(tmp_path / "files")
    again.open()
    assert await again.size(ref.sha256) is None


async def test_a_content_counts_as_stored_only_when_its_name_lasts(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, folder = {hashlib.sha256(b"one").hexdigest(): b"one"}, tmp_path / "files"
    synced, fsync = list[Path](), os.fsync

    def failing(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if len(synced) < 2 and path.is_dir() and path != folder:
            synced.append(path)
            raise OSError(5, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    for _ in range(2):  # the second finds the file in its place, and nobody has synced its name
        with pytest.raises(StoreUnavailable):
            await file_store.keep_many(content)
    await file_store.keep_many(content)
    assert synced == [folder / next(iter(content))[:2]] * 2


async def test_a_new_folder_lasts_before_a_file_in_it_is_acknowledged(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = list[str](), os.fsync

    def noting(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noting)
    ref = await file_store.keep("a", pieces(b"one"))
    assert synced[1:] == [str(tmp_path / "files"), str(tmp_path / "files" / ref.sha256[:2])]


async def test_a_file_that_cannot_be_read_is_no_problem_of_the_store(
    file_store: FolderFileStore, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="/proc/self/mem cannot be read: Input/output error"):
        await file_store.keep_path("/proc/self/mem")


async def test_an_upload_that_breaks_off_is_no_problem_of_the_store(file_store: FolderFileStore) -> None:
    async def torn() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError("the peer has gone")

    with pytest.raises(RequestError, match="did not arrive completely") as refused:
        await file_store.keep("a", torn())
    assert not isinstance(refused.value, StoreUnavailable)


async def test_a_file_that_is_stored_again_while_the_damaged_one_is_hashed_is_whole(
    file_store: FolderFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await file_store.keep("a", pieces(b"onetwo"))
    place, draft, hash_file = tmp_path / "files" / ref.sha256[:2] / ref.sha256, tmp_path / "new", hashlib.file_digest
    place.write_bytes(b"0netw")
    draft.write_bytes(b"onetwo")

    def slowly(source: BufferedReader, name: str) -> object:
        found = hash_file(source, name)
        if draft.exists():
            draft.rename(place)
        return found

    monkeypatch.setattr(hashlib, "file_digest", slowly)
    assert await file_store.size(ref.sha256) == 6
    assert not (tmp_path / "files" / "damaged").exists()


async def test_a_file_that_is_linked_into_the_folder_is_stored_without_a_copy(
    file_store: FolderFileStore, tmp_path: Path
) -> None:  # DU-6
    made = tmp_path / "out.bin"
    made.write_bytes(b"large")
    sha256 = hashlib.sha256(b"large").hexdigest()
    os.link(made, tmp_path / "files" / "incoming" / ("0" * 16 + ".linked"))
    ref = await file_store.keep_linked("out.bin", "0" * 16, sha256)
    place = tmp_path / "files" / sha256[:2] / sha256
    assert (ref.bytes, place.stat().st_ino, place.stat().st_nlink) == (5, made.stat().st_ino, 2)
    assert list((tmp_path / "files" / "incoming").iterdir()) == []
    made.unlink()
    assert await file_store.size(sha256) == 5


async def test_somebody_who_writes_to_a_linked_file_afterwards_is_noticed_before_it_is_used(
    file_store: FolderFileStore, tmp_path: Path
) -> None:  # DU-6
    made = tmp_path / "out.bin"
    made.write_bytes(b"large")
    sha256 = hashlib.sha256(b"large").hexdigest()
    os.link(made, tmp_path / "files" / "incoming" / ("0" * 16 + ".linked"))
    await file_store.keep_linked("out.bin", "0" * 16, sha256)
    made.chmod(0o644)
    made.write_bytes(b"other")
    assert await file_store.size(sha256) is None
    assert "damaged" in await file_store.stored_flaw(sha256, 5)


@pytest.mark.parametrize("mapped", [False, True])
async def test_a_linked_file_that_somebody_may_still_write_to_is_copied(
    file_store: FolderFileStore, tmp_path: Path, *, mapped: bool
) -> None:  # DU-6
    made = tmp_path / "out.bin"
    made.write_bytes(b"large")
    sha256 = hashlib.sha256(b"large").hexdigest()
    os.link(made, tmp_path / "files" / "incoming" / ("0" * 16 + ".linked"))
    writer = made.open("r+b", buffering=0)
    memory = mmap.mmap(writer.fileno(), 5) if mapped else None
    if memory is not None:
        writer.close()
    ref = await file_store.keep_linked("out.bin", "0" * 16, sha256)
    if memory is not None:
        memory[:] = b"other"
        memory.close()
    else:
        writer.write(b"other")
        writer.close()
    assert made.read_bytes() == b"other" and ref.name == "out.bin"
    assert b"".join([chunk async for chunk in file_store.read(sha256)]) == b"large"
    assert list((tmp_path / "files" / "incoming").iterdir()) == []


async def test_nobody_may_open_a_linked_file_for_writing_afterwards(
    file_store: FolderFileStore, tmp_path: Path
) -> None:
    made = tmp_path / "out.bin"
    made.write_bytes(b"large")
    os.link(made, tmp_path / "files" / "incoming" / ("0" * 16 + ".linked"))
    await file_store.keep_linked("out.bin", "0" * 16, hashlib.sha256(b"large").hexdigest())
    assert made.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("link", ["../x", "", "0" * 15, "1" * 16])
async def test_only_what_is_linked_into_the_folder_is_taken(file_store: FolderFileStore, link: str) -> None:
    with pytest.raises(RequestError):
        await file_store.keep_linked("x", link, "0" * 64)


async def test_a_linked_file_with_another_content_is_refused_and_removed(
    file_store: FolderFileStore, tmp_path: Path
) -> None:
    (tmp_path / "files" / "incoming" / ("2" * 16 + ".linked")).write_bytes(b"other")
    with pytest.raises(RequestError, match=r"has the digest .* not 0000"):
        await file_store.keep_linked("x", "2" * 16, "0" * 64)
    assert list((tmp_path / "files" / "incoming").iterdir()) == []
