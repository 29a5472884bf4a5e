"""What every storage element does, on a disk and in a real S3 server."""  # FM-6, PJ-7

import asyncio
import errno
import gc
import hashlib
import os
from pathlib import Path

import fsspec
import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer import targets
from mendflow.transfer.addresses import FileAddress
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, DamagedFile, TargetOccupied, TransferFailed, WriterSuperseded
from mendflow.transfer.targets import ASIDE, DiskWriter, RenameWriter, publish
from tests.servers import s3


def made(folder: Path, content: bytes, name: str = "made") -> tuple[str, FileRef]:
    path = folder / name
    path.write_bytes(content)
    return str(path), FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name=name)


@pytest.fixture(params=["disk", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> StorageElement:
    if request.param == "s3":
        return s3.server().element()
    (tmp_path / "top").mkdir()
    return StorageElement(name="disk", url=(tmp_path / "top").as_uri())


@pytest.fixture
def element(storage: StorageElement) -> StorageClient:
    return StorageClient(storage, s3.ENVIRONMENT)


@pytest.mark.parametrize("size", [0, 1, 70_000, 21 << 20])
def test_what_is_published_is_there_whole_and_comes_back(element: StorageClient, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    source, ref = made(tmp_path, content)
    url = f"{element.storage.url}/deep/er/a b.dat"
    element.publish(source, url, ref)
    assert [(each.path, each.bytes) for each in element.list()] == [("deep/er/a b.dat", size)]
    found = element.stat(url)
    assert found is not None and (found.path, found.bytes) == ("deep/er/a b.dat", size)
    target = str(tmp_path / "back")
    assert element.fetch(url, target, ref) == (ref.sha256, size)
    assert Path(target).read_bytes() == content
    element.remove(url)
    element.remove(url)
    assert element.stat(url) is None and not element.list()


def test_nothing_is_seen_of_a_file_whose_writer_lost_its_right(element: StorageClient, tmp_path: Path) -> None:
    source, ref = made(tmp_path, os.urandom(6 << 20))
    url = f"{element.storage.url}/a"
    looks: list[bool] = []

    def lost() -> bool:
        looks.append(element.stat(url) is None)
        return False

    with pytest.raises(WriterSuperseded):
        element.publish(source, url, ref, lost, mark="job", turn=1)
    assert looks == [True] and element.stat(url) is None and not element.list()


def test_publishing_again_changes_nothing_and_asks_nobody(element: StorageClient, tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"the same")
    url = f"{element.storage.url}/a"
    element.publish(source, url, ref)
    first = element.stat(url)
    element.publish(source, url, ref, lambda: pytest.fail("there is nothing to rename"))
    assert element.stat(url) == first


def test_what_an_attempt_published_that_counts_for_nothing_is_replaced(element: StorageClient, tmp_path: Path) -> None:
    url = f"{element.storage.url}/a"
    left: list[str] = []
    for content in (b"of the first attempt", b"of the second one"):
        source, ref = made(tmp_path, content)
        element.publish(source, url, ref, replaces=left)
        left.append(ref.sha256)
    element.fetch(url, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"of the second one"


@pytest.mark.parametrize("content", [b"precious", b"", b"of that size"])
def test_what_lies_there_and_is_not_ours_is_never_written_over(  # PJ-7
    element: StorageClient, tmp_path: Path, content: bytes
) -> None:
    url = f"{element.storage.url}/a"
    element.publish(*_placed(tmp_path, content, url))
    source, ref = made(tmp_path, b"of this size")
    for replaces in ((), (hashlib.sha256(b"something else").hexdigest(),)):
        with pytest.raises(TargetOccupied, match=r"another file lies at .*/a, .*did not write") as failure:
            element.publish(source, url, ref, replaces=replaces)
        assert not failure.value.passing
        told = str(failure.value)  # SE-1: whose it is, and what, is not the job's to know
        assert f"{len(content)} bytes" not in told and hashlib.sha256(content).hexdigest()[:6] not in told
    element.fetch(url, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content and len(element.list()) == 1


@pytest.mark.parametrize("size", [0, 70_000, 21 << 20])
def test_what_comes_to_lie_there_while_we_write_stays(element: StorageClient, tmp_path: Path, size: int) -> None:
    source, ref = made(tmp_path, os.urandom(size), "ours")
    url = f"{element.storage.url}/a"

    def meanwhile() -> bool:
        element.publish(*_placed(tmp_path, b"precious", url))
        return True

    with pytest.raises(TargetOccupied):
        element.publish(source, url, ref, meanwhile, mark="job")
    element.fetch(url, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"precious"


def test_the_step_that_gives_a_file_its_name_takes_none_from_another(
    element: StorageClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between the last look and that step."""
    source, ref = made(tmp_path, os.urandom(70_000), "ours")
    url = f"{element.storage.url}/a"
    looked = element._identity

    def last_look(place: FileAddress) -> str:
        before = looked(place)
        monkeypatch.setattr(element, "_identity", looked)
        element.publish(*_placed(tmp_path, b"precious", url))
        return before

    monkeypatch.setattr(element, "_identity", last_look)
    with pytest.raises(TargetOccupied):
        element.publish(source, url, ref, mark="job")
    element.fetch(url, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"precious"


def _placed(folder: Path, content: bytes, url: str) -> tuple[str, str, FileRef]:
    source, ref = made(folder, content)
    return source, url, ref


def test_a_file_that_changed_since_it_was_hashed_is_not_published(element: StorageClient, tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"as it was hashed")
    Path(source).write_bytes(b"as it is already")
    with pytest.raises(TransferFailed, match="has changed since"):
        element.publish(source, f"{element.storage.url}/a", ref)
    assert not element.list()


def test_a_download_goes_on_where_an_earlier_one_ended(element: StorageClient, tmp_path: Path) -> None:
    content = os.urandom(9 << 20)
    source, ref = made(tmp_path, content)
    url = f"{element.storage.url}/a"
    element.publish(source, url, ref)
    (tmp_path / "back.part").write_bytes(content[: 5 << 20])
    assert element.fetch(url, str(tmp_path / "back"), ref) == (ref.sha256, ref.bytes)
    (tmp_path / "other.part").write_bytes(b"?" + content[1 : 5 << 20])
    assert element.fetch(url, str(tmp_path / "other"), ref) == (ref.sha256, ref.bytes)


def test_what_is_not_there_is_said_at_once(element: StorageClient, tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match=r"[Nn]o such file") as failure:
        element.fetch(f"{element.storage.url}/none", str(tmp_path / "back"))
    assert not failure.value.passing and not (tmp_path / "back").exists()


@pytest.mark.parametrize("way", ["/../out", "/a/../../out", "/%2e%2e/out", "x/out", "/a\0b", "/a/./b", "/a::b"])
def test_no_place_is_outside_of_the_element(element: StorageClient, tmp_path: Path, way: str) -> None:
    source, ref = made(tmp_path, b"x")
    url = element.storage.url + way
    with pytest.raises(BadFileUrl):
        element.fetch(url, str(tmp_path / "back"))
    with pytest.raises(BadFileUrl):
        element.publish(source, url, ref)
    with pytest.raises(BadFileUrl):
        element.remove(url)
    with pytest.raises(BadFileUrl):
        element.stat(url)
    with pytest.raises(BadFileUrl):
        element.fetch("file:///etc/passwd", str(tmp_path / "back"))


def test_one_that_is_only_for_reading_is_not_written_to(storage: StorageElement, tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"x")
    element = StorageClient(storage, s3.ENVIRONMENT)
    element.publish(source, f"{storage.url}/a", ref)
    closed = StorageClient(
        StorageElement(name="r", url=storage.url, options=storage.options, read_only=True), s3.ENVIRONMENT
    )
    with pytest.raises(TransferFailed, match="read-only"):
        closed.publish(source, f"{storage.url}/b", ref)
    with pytest.raises(TransferFailed, match="read-only"):
        closed.remove(f"{storage.url}/a")
    assert closed.fetch(f"{storage.url}/a", str(tmp_path / "back"), ref)[0] == ref.sha256


def test_it_says_whether_it_can_be_reached(element: StorageClient, tmp_path: Path) -> None:
    element.publish(*_placed(tmp_path, b"x", f"{element.storage.url}/a"))
    element.reach()


# On a disk


@pytest.fixture
def disk(tmp_path: Path) -> StorageClient:
    (tmp_path / "top").mkdir()
    return StorageClient(StorageElement(name="disk", url=(tmp_path / "top").as_uri()))


def test_links_do_not_lead_out_of_an_element_on_a_disk(disk: StorageClient, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("not yours")
    (tmp_path / "top" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "top" / "folder").symlink_to(tmp_path)
    source, ref = made(tmp_path, b"x")
    for path in ("link", "folder/secret"):
        url = f"{disk.storage.url}/{path}"
        with pytest.raises(BadFileUrl, match="by a link"):
            disk.fetch(url, str(tmp_path / "back"))
        with pytest.raises(BadFileUrl, match="by a link"):
            disk.publish(source, url, ref)
    assert not disk.list() and (tmp_path / "secret").read_text() == "not yours"


def test_what_earlier_attempts_left_half_is_removed_and_they_cannot_name_it_any_more(
    disk: StorageClient, tmp_path: Path
) -> None:
    source, ref = made(tmp_path, b"x" * 100)
    url = f"{disk.storage.url}/a"

    def a_later_attempt_comes() -> bool:
        disk.publish(source, url, ref, mark="job", turn=2)
        return True

    other, other_ref = made(tmp_path, b"of an attempt that was slow", "slow")
    with pytest.raises(TargetOccupied):
        disk.publish(other, url, other_ref, a_later_attempt_comes, mark="job", turn=1)
    assert (tmp_path / "top" / "a").read_bytes() == b"x" * 100 and os.listdir(tmp_path / "top") == ["a"]


def test_a_kill_right_after_a_file_got_its_name_leaves_no_second_way_to_it(
    disk: StorageClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException): ...

    def killed(target: str) -> None:
        raise Killed

    source, ref = made(tmp_path, b"x" * 100)
    url, top = f"{disk.storage.url}/a", tmp_path / "top"
    with monkeypatch.context() as patched:
        patched.setattr(targets, "discard", killed)
        with pytest.raises(Killed):
            disk.publish(source, url, ref, mark="job")
    assert len(os.listdir(top)) == 2
    other, other_ref = made(tmp_path, b"y" * 100, "other")
    with pytest.raises(TargetOccupied):
        disk.publish(other, url, other_ref, mark="job")
    DiskWriter(str(top / "a"), "job", 0).write(other, other_ref)
    assert (top / "a").read_bytes() == b"x" * 100, "what is in its place is not written to"
    disk.publish(source, url, ref, mark="job")
    assert os.listdir(top) == ["a"]


def test_a_disk_without_links_gets_files_too(
    disk: StorageClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    source, ref = made(tmp_path, b"x" * 100)
    disk.publish(source, f"{disk.storage.url}/a", ref)
    assert (tmp_path / "top" / "a").read_bytes() == b"x" * 100 and os.listdir(tmp_path / "top") == ["a"]


def test_a_disk_that_will_not_have_a_file_says_so(disk: StorageClient, tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"x")
    (tmp_path / "top" / "a").write_text("a file, where a folder would have to be")
    with pytest.raises(TransferFailed, match=r"Not a directory|File exists"):
        disk.publish(source, f"{disk.storage.url}/a/b", ref)


def test_what_is_published_can_be_read_by_whom_the_system_lets(disk: StorageClient, tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"x")
    os.chmod(source, 0o600)
    disk.publish(source, f"{disk.storage.url}/a", ref)
    assert (tmp_path / "top" / "a").stat().st_mode & 0o444 == 0o444


def test_where_a_rename_is_one_step_files_are_written_aside(tmp_path: Path) -> None:
    """As SFTP or HDFS do it: here with what fsspec has for disks, which renames likewise."""
    system, path = fsspec.filesystem("file"), str(tmp_path / "deep" / "a")
    source, ref = made(tmp_path, os.urandom(100_000))

    def told(error: Exception) -> Exception:
        return TransferFailed(str(error))

    def lost() -> bool:
        (written,) = os.listdir(tmp_path / "deep")
        return not written.startswith(ASIDE)

    with pytest.raises(WriterSuperseded):
        publish(RenameWriter(system, path, told, 10, "job", 1), source, ref, lost)
    assert not os.listdir(tmp_path / "deep")
    publish(RenameWriter(system, path, told, 10, "job", 2), source, ref, lambda: True)
    assert (
        os.listdir(tmp_path / "deep") == ["a"] and (tmp_path / "deep" / "a").read_bytes() == Path(source).read_bytes()
    )


def test_where_no_rename_is_one_step_nothing_is_written(tmp_path: Path) -> None:
    source, ref = made(tmp_path, b"x")
    element = StorageClient(StorageElement(name="web", url="https://127.0.0.1:1/top", tries=1))
    with pytest.raises(TransferFailed):
        element.publish(source, "https://127.0.0.1:1/top/a", ref)


def test_an_element_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match="does not exist"):
        StorageClient(StorageElement(name="gone", url=(tmp_path / "gone").as_uri())).reach()
    with pytest.raises(BadFileUrl, match="wants the variable NOWHERE"):
        StorageClient(StorageElement(name="s", url="s3://b", options={"key": "env:NOWHERE"}), {})
    with pytest.raises(BadFileUrl, match="is not a place"):
        StorageClient(StorageElement(name="s", url="zip::file:///x"))


async def test_a_dropped_client_of_an_object_store_leaves_the_running_loop_alone() -> None:
    client = StorageClient(s3.server().element(), s3.ENVIRONMENT)
    assert await asyncio.to_thread(client.list) == []
    before, troubles = asyncio.all_tasks(), list[dict[str, object]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    del client
    gc.collect()
    assert asyncio.all_tasks() == before
    await asyncio.sleep(0)
    gc.collect()
    assert troubles == []


def test_what_another_file_of_an_element_is_like_is_not_told(element: StorageClient, tmp_path: Path) -> None:  # SE-1
    url = f"{element.storage.url}/a"
    element.publish(*_placed(tmp_path, b"of another project", url))
    digest = hashlib.sha256(b"of another project").hexdigest()
    for size in (18, 5):
        expected = FileRef(sha256="ab" * 32, bytes=size, name="a")
        with pytest.raises(DamagedFile) as failure:
            element.fetch(url, str(tmp_path / "back"), expected)
        assert digest[:6] not in str(failure.value) and "18" not in str(failure.value)
