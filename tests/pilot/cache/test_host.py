"""Caches of several pilots on one machine, which share by hard links."""

import os
import threading
from pathlib import Path

import pytest

from mendflow.core.caching.sizes import cache_bytes
from mendflow.core.model.data import Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.contract import CacheOrigin
from mendflow.pilot.cache.entries import seal_of
from mendflow.pilot.cache.host_sharing import LINGER_S, HostSharing
from mendflow.pilot.cache.shared import CacheOptions, SharedCache
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import bringing, digest_of, fill, folder_bytes, never, pilots_of_a_host, read

SPACE = CacheOptions(space_bytes=1_000, threshold_bytes=100)


def test_a_job_finds_what_another_pilot_of_the_host_has_by_a_link(tmp_path: Path) -> None:  # PJ-6
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    two.disk.pin(digest)
    entry = two.disk.take_in(digest, never, size=6)
    assert entry.origin is CacheOrigin.SHARED
    assert os.path.samefile(tmp_path / "p0" / digest, entry.path)


def test_what_is_new_with_a_neighbour_is_linked_before_anybody_asks(tmp_path: Path) -> None:  # PJ-6
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    two.rebalance()
    assert os.path.samefile(tmp_path / "p0" / digest, tmp_path / "p1" / digest)
    news = two.news(0)
    assert news is not None and [file.sha256 for file in news.added] == [digest], "and told"


def test_a_file_lives_until_its_last_link_goes_and_each_removal_is_told(tmp_path: Path) -> None:  # PJ-6
    caches = pilots_of_a_host(tmp_path, 3, SPACE)
    digest = fill(caches[0].disk, b"shared")
    for cache in caches:
        cache.rebalance()
    seen = [cache.version for cache in caches]
    for number, cache in enumerate(caches):
        assert read(cache.disk, digest) == b"shared"
        cache.disk.resize(0)
        news = cache.news(seen[number])
        assert news is not None and news.gone == [digest]
    assert folder_bytes(*(tmp_path / f"p{number}" for number in range(3))) == 0


def test_what_two_pilots_have_fetched_at_once_is_soon_on_the_disk_once(tmp_path: Path) -> None:  # PJ-6
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = digest_of(b"shared")

    def fetch_too(target: str) -> None:
        fill(two.disk, b"shared")
        Path(target).write_bytes(b"shared")

    one.disk.pin(digest)
    one.disk.take_in(digest, fetch_too)
    assert folder_bytes(tmp_path / "p0", tmp_path / "p1") == 12
    two.disk.pin(digest)
    for cache in (one, two):
        cache.rebalance()
    assert folder_bytes(tmp_path / "p0", tmp_path / "p1") == 12, "what is in use is left as it is"
    two.disk.release([digest])
    for cache in (one, two):
        cache.rebalance()
    assert folder_bytes(tmp_path / "p0", tmp_path / "p1") == 6
    assert read(one.disk, digest) == read(two.disk, digest) == b"shared"


def test_what_a_neighbour_let_go_and_has_again_as_another_file_takes_room_again(tmp_path: Path) -> None:  # PJ-5
    """It was a link to ours when it was last looked at, and has the same name now."""
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    two.rebalance()
    assert two.room({digest}) == (1_900, 900), "one file, which both have"
    one.disk.resize(0)
    one.disk.resize(900)
    (tmp_path / "made").write_bytes(b"shared")
    one.disk.adopt(str(tmp_path / "made"), digest)
    assert not os.path.samefile(tmp_path / "p0" / digest, tmp_path / "p1" / digest)
    assert two.room({digest}) == (1_900 - len(b"shared"), 900), "the disk has it twice"
    two.rebalance()
    assert os.path.samefile(tmp_path / "p0" / digest, tmp_path / "p1" / digest), "and soon once"
    assert two.room({digest}) == (1_900, 900)


def test_what_two_neighbours_have_takes_room_twice_until_it_is_one_file(tmp_path: Path) -> None:  # PJ-5
    name, host = digest_of(b"xyz"), HostSharing()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / name).write_bytes(b"xyz")
        os.utime(folder / name, (0, seal_of(name)))
    host.set_neighbours([Neighbour(PilotId(folder.name), "here", str(folder)) for folder in folders])
    host.look()
    assert host.elsewhere_bytes(set(), "") == 6
    (folders[1] / name).unlink()
    os.link(folders[0] / name, folders[1] / name)
    host.look()
    assert host.elsewhere_bytes(set(), "") == 3


def test_a_file_that_is_being_fetched_holds_up_nobody_who_looks_around(tmp_path: Path) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)

    def fetch(target: str) -> None:
        fill(two.disk, b"shared")
        looking = threading.Thread(target=one.rebalance)
        looking.start()
        looking.join(PATIENCE_S)
        assert not looking.is_alive()
        Path(target).write_bytes(b"shared")

    one.disk.pin(digest_of(b"shared"))
    assert one.disk.take_in(digest_of(b"shared"), fetch).origin is CacheOrigin.FETCHED


def test_what_was_brought_in_part_goes_when_a_neighbour_has_the_whole(tmp_path: Path) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = digest_of(b"shared")

    def broken(target: str) -> None:
        Path(target + ".part").write_bytes(b"sha")
        raise ConnectionError

    two.disk.pin(digest)
    with pytest.raises(ConnectionError):
        two.disk.take_in(digest, broken, size=6)
    fill(one.disk, b"shared")
    assert two.disk.take_in(digest, never, size=6).origin is CacheOrigin.SHARED
    assert os.listdir(tmp_path / "p1") == [digest]


def test_a_file_that_this_pilot_let_go_is_not_linked_again_unless_a_job_wants_it(tmp_path: Path) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    two.rebalance()
    two.disk.resize(0)
    two.rebalance()
    assert two.disk.digests() == set()
    two.disk.pin(digest)
    assert two.disk.take_in(digest, never).origin is CacheOrigin.SHARED


def test_pilots_that_share_have_the_room_of_all_of_them(tmp_path: Path) -> None:  # PJ-5
    caches = pilots_of_a_host(tmp_path, 3, SPACE)
    for cache in caches:
        cache.rebalance()
    digests = [fill(caches[0].disk, bytes([number]) * 290) for number in range(10)]
    assert caches[0].disk.digests() == set(digests), "more than one pilot's space"
    for cache in caches[1:]:
        cache.rebalance()
        assert cache.disk.digests() == set(digests)
    assert folder_bytes(tmp_path / "p0", tmp_path / "p1", tmp_path / "p2") == 2_900
    assert cache_bytes(1_000, 100, pilots=3) == 2_900


def test_together_they_keep_to_the_size_of_the_host_whoever_has_what(tmp_path: Path) -> None:  # PJ-5
    caches = pilots_of_a_host(tmp_path, 3, SPACE)
    for turn in range(12):
        for number, cache in enumerate(caches):
            fill(cache.disk, bytes([number, turn]) * 100)
        for cache in caches:
            cache.rebalance()
    for _ in range(3):
        for cache in caches:
            cache.rebalance()
    assert 900 <= folder_bytes(*(tmp_path / f"p{number}" for number in range(3))) <= 2_900


def test_a_neighbour_that_is_gone_does_not_count(tmp_path: Path) -> None:  # PJ-5, PJ-6
    one, _ = pilots_of_a_host(tmp_path, 2, SPACE)
    one.rebalance()
    for number in range(9):
        fill(one.disk, bytes([number]) * 200)
    assert one.disk.held_bytes == 1_800
    (tmp_path / "p1").rmdir()
    one.rebalance()
    assert one.disk.held_bytes <= 900


def test_a_server_that_knows_nobody_yet_costs_no_file(tmp_path: Path) -> None:
    """It was restarted, and the pilots come back to it one after the other."""
    moment = [0.0]
    (theirs := tmp_path / "theirs").mkdir()
    known = [Neighbour(PilotId("p"), "here", str(theirs))]
    host = HostSharing(clock=lambda: moment[0])
    host.set_neighbours(known)
    assert host.look() == 1
    host.set_neighbours([])
    (theirs / digest_of(b"x")).write_bytes(b"x")
    os.utime(theirs / digest_of(b"x"), (0, seal_of(digest_of(b"x"))))
    assert host.look() == 1, "it counts for a while"
    assert host.elsewhere_bytes(set(), "") == 1
    assert host.bring(digest_of(b"x"), str(tmp_path / "target")) is None, "but nothing is taken from it"
    moment[0] = LINGER_S
    assert host.look() == 0
    host.set_neighbours(known)
    assert host.look() == 1


def test_a_pilot_that_comes_back_has_room_for_what_it_shared(tmp_path: Path) -> None:  # PJ-5
    options = CacheOptions(space_bytes=1_000, threshold_bytes=100)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    known = [Neighbour(PilotId("p"), "here", str(tmp_path / "two"))]

    def started() -> SharedCache:
        return SharedCache(tmp_path / "one", options, host="here", first_version=1, memory=tmp_path)

    cache = started()
    cache.set_neighbours(known, mark=1)
    cache.rebalance()
    for number in range(9):
        fill(cache.disk, bytes([number]) * 200)
    assert cache.disk.held_bytes == 1_800
    again = started()
    again.rebalance()
    assert again.disk.held_bytes == 1_800


def test_a_neighbours_file_that_was_changed_is_neither_linked_nor_given(tmp_path: Path) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    two.rebalance()
    path = tmp_path / "p0" / digest
    path.chmod(0o644)
    path.write_bytes(b"shar3d")
    assert read(two.disk, digest) is None, "its link was changed with it"
    two.disk.pin(digest)
    assert two.disk.take_in(digest, bringing(b"shared")).origin is CacheOrigin.FETCHED
    assert (tmp_path / "p1" / digest).read_bytes() == b"shared"


def test_a_file_that_one_has_no_room_for_and_another_has_linked_is_no_jobs_to_write_to(tmp_path: Path) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, CacheOptions(space_bytes=60, threshold_bytes=0))
    content = b"x" * 50
    digest = fill(one.disk, content)
    two.disk.resize(10)
    two.disk.pin(digest)
    entry = two.disk.take_in(digest, bringing(content), size=50)
    assert os.path.samefile(tmp_path / "p0" / digest, entry.path)
    two.disk.give(digest, str(tmp_path / "input"), link=False)
    (tmp_path / "input").write_bytes(b"y" * 50)
    assert read(one.disk, digest) == content


def test_a_neighbours_file_with_a_forged_seal_is_found_out_by_its_content(tmp_path: Path) -> None:
    _, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = digest_of(b"shared")
    (tmp_path / "p0" / digest).write_bytes(b"forged")
    os.utime(tmp_path / "p0" / digest, (0, seal_of(digest)))
    two.disk.pin(digest)
    assert two.disk.take_in(digest, bringing(b"shared")).origin is CacheOrigin.FETCHED
    assert read(two.disk, digest) == b"shared"


@pytest.mark.parametrize("kind", ["symbolic link", "folder", "pipe"])
def test_only_plain_files_are_linked(tmp_path: Path, kind: str) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    path = theirs / digest_of(b"x")
    if kind == "symbolic link":
        path.symlink_to("/etc/passwd")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    host = HostSharing()
    host.set_neighbours([Neighbour(PilotId("p"), "here", str(theirs))])
    assert host.bring(digest_of(b"x"), str(tmp_path / "target")) is None
    assert host.look() == 1 and not (tmp_path / "target").exists()


def test_files_of_other_users_are_not_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pilots_of_a_host(tmp_path, 2, SPACE)
    digest = fill(one.disk, b"shared")
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    monkeypatch.setattr(os, "getegid", lambda: 54_321)
    monkeypatch.setattr(os, "getgroups", list)
    two.rebalance()
    assert two.disk.digests() == set()
    two.disk.pin(digest)
    assert not two.disk._sharers[0].bring(digest, str(tmp_path / "target"))


def test_files_on_another_disk_are_copied_and_hashed_on_the_way(tmp_path: Path) -> None:
    shared_memory = Path("/dev/shm")
    other = shared_memory / f"mendflow-test-{os.getpid()}"
    assert other.parent.is_dir() and os.stat(shared_memory).st_dev != os.stat(tmp_path).st_dev
    other.mkdir()
    try:
        theirs = SharedCache(other, SPACE, host="here", first_version=1)
        (one,) = pilots_of_a_host(tmp_path, 1, SPACE)
        one.set_neighbours([Neighbour(PilotId("p"), "here", str(other))], mark=1)
        digest = fill(theirs.disk, b"far away")
        one.rebalance()
        assert one.disk.digests() == set(), "a copy takes room, so it is not made before somebody asks"
        one.disk.pin(digest)
        assert one.disk.take_in(digest, never).origin is CacheOrigin.SHARED
        assert read(one.disk, digest) == b"far away"
    finally:
        for path in other.iterdir():
            path.unlink()
        other.rmdir()


def test_a_pilot_that_does_not_share_neither_tells_its_folder_nor_looks_into_others(tmp_path: Path) -> None:
    options = CacheOptions(space_bytes=1_000, threshold_bytes=100, share="none")
    one, two = pilots_of_a_host(tmp_path, 2, options)
    digest = fill(one.disk, b"own")
    two.rebalance()
    news = one.news(0)
    assert news is not None and (news.folder, news.address, news.key) == ("", "", "")
    assert digest not in two.disk.digests()
