"""Caches keep to their sizes at every moment: it is looked into the folders of real pilots while they work."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mendflow.core.model.ids import JobId
from mendflow.pilot.cache.contract import CacheOrigin
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.cache.shared import CacheOptions
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import bringing, digest_of, fill, folder_bytes, pilots_of_a_host
from tests.pilot.cache.sharing import SharingServer
from tests.pilot.conftest import Pilot

Hire = Callable[..., Pilot]
LOOK_S = 0.003
CONTENTS = [bytes([number]) * 3_000_000 for number in range(16)]


@contextmanager
def watched(*folders: Path) -> Iterator[list[int]]:
    """What lay in these folders at each of many looks, every file once."""
    seen, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            try:
                seen.append(folder_bytes(*(folder for folder in folders if folder.exists())))
            except FileNotFoundError:
                continue  # a file went while it was looked at

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(PATIENCE_S)


async def reading_all(server: SharingServer, *, link: bool = False) -> list[JobId]:
    refs = [server.keep(content) for content in CONTENTS]
    return [await server.shell("wc -c < in", inputs={"in": ref}, link_inputs=link) for ref in refs]


@pytest.mark.full
@pytest.mark.parametrize("link", [False, True], ids=["copies", "links"])
async def test_a_pilot_that_fetches_for_jobs_ahead_keeps_to_the_size_of_its_cache(
    server: SharingServer, hire: Hire, tmp_path: Path, link: bool
) -> None:  # PJ-5
    hire("--jobs", "4", "--cache-size", "10MB", "--min-free", "500kB")
    with watched(tmp_path / "work" / "cache") as seen:
        for job in await reading_all(server, link=link):
            assert (await server.outcome(job)).ok
    assert 6_000_000 <= max(seen) <= 9_500_000


@pytest.mark.full
async def test_pilots_that_share_keep_to_their_size_together_while_all_of_them_fetch(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:  # PJ-5, PJ-6
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        hire("--jobs", "4", "--host", "h", "--cache-size", "5MB", "--min-free", "500kB", work=folder)
    await server.until(lambda: server.know_each_other(3), "all to know each other")
    with watched(*(folder / "cache" for folder in folders)) as seen:
        for _ in range(2):
            for job in await reading_all(server):
                assert (await server.outcome(job)).ok
    assert 6_000_000 <= max(seen) <= 14_500_000


def test_pilots_that_all_found_the_host_empty_do_not_each_take_all_its_room(tmp_path: Path) -> None:  # PJ-5
    caches = pilots_of_a_host(tmp_path, 3, CacheOptions(space_bytes=100, threshold_bytes=20))
    for cache in caches:
        cache.rebalance()
    for turn in range(12):
        for number, cache in enumerate(caches):
            fill(cache.disk, bytes([turn, number]) * 15)
            assert folder_bytes(*(tmp_path / f"p{each}" for each in range(3))) <= 280


def test_a_file_waits_for_the_room_of_another_that_is_being_brought(tmp_path: Path) -> None:  # PJ-5
    cache = made(tmp_path, 100)
    first, second = b"1" * 60, b"2" * 60
    may_end, order = threading.Event(), list[str]()

    def slowly(target: str) -> None:
        may_end.wait(PATIENCE_S)
        order.append("first")
        Path(target).write_bytes(first)

    def soon(target: str) -> None:
        order.append("second")
        Path(target).write_bytes(second)

    def bring(content: bytes, fetch: Callable[[str], None]) -> None:
        with cache.using(digest_of(content)):
            cache.take_in(digest_of(content), fetch, size=60)

    threads = [threading.Thread(target=bring, args=each) for each in ((first, slowly), (second, soon))]
    threads[0].start()
    while cache.free_bytes == 100:
        os.sched_yield()
    threads[1].start()
    while not cache.waiting:
        os.sched_yield()
    may_end.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert order == ["first", "second"] and cache.digests() == {digest_of(second)}


def test_a_file_that_is_no_longer_wanted_waits_for_no_room(tmp_path: Path) -> None:
    cache = made(tmp_path, 100)
    kept = fill(cache, b"1" * 60)
    with cache.using(kept), pytest.raises(ConnectionError):
        cache.take_in(digest_of(b"2"), refusing, size=60, wanted=lambda: False)


def refusing(target: str) -> None:
    raise ConnectionError


def test_what_is_in_use_for_long_is_not_waited_for_and_the_file_goes_past_the_cache(tmp_path: Path) -> None:
    cache = made(tmp_path, 100)
    kept = fill(cache, b"1" * 60)
    cache.pin(kept)
    content = b"2" * 60
    with cache.using(digest_of(content)):
        entry = cache.take_in(digest_of(content), bringing(content), size=60)
        assert entry.origin is CacheOrigin.FETCHED and Path(entry.path).read_bytes() == content
        assert os.listdir(tmp_path / "cache") == [kept]
    assert not os.path.exists(entry.path)


def test_a_file_of_unknown_size_is_in_the_cache_only_once_it_has_room_there(tmp_path: Path) -> None:
    cache = made(tmp_path, 100)
    seen: list[list[str]] = []

    def fetch(target: str) -> None:
        Path(target).write_bytes(b"1" * 60)
        seen.append(os.listdir(tmp_path / "cache"))

    with cache.using(digest_of(b"1" * 60)):
        cache.take_in(digest_of(b"1" * 60), fetch)
    assert seen == [[]] and cache.digests() == {digest_of(b"1" * 60)}


def made(tmp_path: Path, size: int) -> DiskCache:
    (tmp_path / "cache").mkdir(exist_ok=True)
    return DiskCache(tmp_path / "cache", size)
