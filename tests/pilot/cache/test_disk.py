"""One pilot's cache on a real disk."""

import os
import threading
from pathlib import Path

import pytest

from mendflow.pilot.cache import entries
from mendflow.pilot.cache.contract import Cache, CacheOrigin, LinkState
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.cache.entries import REST, DamagedEntry, seal_of, wait_for_tick
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import bringing, digest_of, fill, never, read


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return made(tmp_path)


def made(tmp_path: Path, size: int = 100) -> DiskCache:
    folder = tmp_path / "cache"
    folder.mkdir(exist_ok=True)
    return DiskCache(folder, size)


def forge(path: Path, content: bytes) -> None:
    """Write into a file that is only meant to be read."""
    path.chmod(0o644)
    path.write_bytes(content)


def test_it_is_what_staging_asks_for(cache: DiskCache) -> None:
    asked: Cache = cache
    assert asked.lookup(digest_of(b"x")) is None


def test_a_file_is_fetched_once_and_its_origin_told(cache: DiskCache) -> None:  # FM-6
    digest = digest_of(b"one")
    cache.pin(digest)
    assert cache.take_in(digest, bringing(b"one")).origin is CacheOrigin.FETCHED
    entry = cache.take_in(digest, never)
    assert entry.origin is CacheOrigin.OWN and entry.bytes == 3 and Path(entry.path).read_bytes() == b"one"


def test_asked_by_many_at_a_time_a_file_is_fetched_once(cache: DiskCache) -> None:
    digest, fetched, begun = digest_of(b"one"), [], threading.Barrier(8)

    def fetch(target: str) -> None:
        fetched.append(target)
        Path(target).write_bytes(b"one")

    def ask() -> None:
        cache.pin(digest)
        begun.wait(PATIENCE_S)
        cache.take_in(digest, fetch)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(fetched) == 1


def test_what_was_not_used_for_longest_goes_and_never_what_is_in_use(cache: DiskCache, tmp_path: Path) -> None:  # PJ-5
    first, second = fill(cache, b"1" * 40), fill(cache, b"2" * 40)
    cache.pin(first)
    third = fill(cache, b"3" * 40)
    assert read(cache, second) is None and read(cache, first) == b"1" * 40 and read(cache, third) == b"3" * 40
    assert sorted(os.listdir(tmp_path / "cache")) == sorted([first, third])


def test_what_there_is_no_room_for_is_given_to_its_job_and_does_not_stay(cache: DiskCache, tmp_path: Path) -> None:
    kept = fill(cache, b"k" * 10)
    content = b"x" * 200
    digest = digest_of(content)
    cache.pin(digest)
    entry = cache.take_in(digest, bringing(content), size=200)
    assert entry.bytes == 200 and cache.held_bytes == 10, "it drives nothing out, and is not counted"
    cache.give(digest, str(tmp_path / "input"), link=False)
    assert (tmp_path / "input").read_bytes() == content and os.access(tmp_path / "input", os.W_OK)
    cache.release([digest])
    assert os.listdir(tmp_path / "cache") == [kept]
    assert digest not in {file.sha256 for file in cache.news_since(0)[1]}, "and nobody hears of it"


def test_a_guest_of_two_jobs_is_copied_for_each(cache: DiskCache, tmp_path: Path) -> None:
    content = b"x" * 200
    digest = digest_of(content)
    for _ in range(2):
        cache.pin(digest)
        cache.take_in(digest, bringing(content), size=200)
    for name in ("a", "b"):
        cache.give(digest, str(tmp_path / name), link=False)
        assert (tmp_path / name).read_bytes() == content
        cache.release([digest])
    assert os.stat(tmp_path / "a").st_ino != os.stat(tmp_path / "b").st_ino
    assert os.listdir(tmp_path / "cache") == []


def test_a_copy_is_the_jobs_own_and_a_link_is_the_file_itself(cache: DiskCache, tmp_path: Path) -> None:
    digest = fill(cache, b"content")
    cache.pin(digest)
    cache.give(digest, str(tmp_path / "copy"), link=False)
    cache.give(digest, str(tmp_path / "link"), link=True)
    (tmp_path / "copy").write_bytes(b"mine now")
    assert read(cache, digest) == b"content"
    entry = cache.lookup(digest)
    assert entry is not None and os.path.samefile(entry.path, tmp_path / "link")
    assert not os.stat(tmp_path / "link").st_mode & 0o222


def test_a_job_that_writes_into_a_linked_input_spoils_it_for_nobody_else(cache: DiskCache, tmp_path: Path) -> None:
    digest = fill(cache, b"content")
    cache.pin(digest)
    cache.give(digest, str(tmp_path / "link"), link=True)
    forge(tmp_path / "link", b"c0ntent")
    cache.look_at_links()
    assert cache.news_since(0)[1] == [], "it is told that the file is gone"
    assert cache.lookup(digest) is None
    assert cache.take_in(digest, bringing(b"content")).origin is CacheOrigin.FETCHED


def test_a_linked_input_that_has_gone_with_its_job_is_not_taken_for_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # PJ-6
    """One that went past the cache, and one that others have driven out."""
    cache = made(tmp_path, 8)
    for content in (b"too large for it", b"fits"):
        digest = digest_of(content)
        with cache.using(digest):
            cache.take_in(digest, bringing(content), size=len(content))
            cache.give(digest, str(tmp_path / f"{digest}.given"), link=True)
    cache.resize(0)
    cache.look_at_links()
    assert not caplog.text and not cache.held_bytes


def test_a_changed_file_is_never_given(cache: DiskCache, tmp_path: Path) -> None:
    digest = fill(cache, b"content")
    forge(tmp_path / "cache" / digest, b"c0ntent")
    cache.pin(digest)
    with pytest.raises(DamagedEntry):
        cache.give(digest, str(tmp_path / "input"), link=False)
    assert not (tmp_path / "input").exists() and read(cache, digest) is None


def test_after_a_restart_what_is_there_is_used_once_it_was_hashed(tmp_path: Path) -> None:
    digest = fill(made(tmp_path), b"content")
    again = made(tmp_path)
    assert [file.sha256 for file in again.news_since(0)[1]] == [digest]
    assert read(again, digest) == b"content"


def test_after_a_restart_a_file_with_a_whole_seal_and_another_content_is_found_out(tmp_path: Path) -> None:
    digest = fill(made(tmp_path), b"content")
    path = tmp_path / "cache" / digest
    forge(path, b"c0ntent")
    os.utime(path, (0, seal_of(digest)))
    again = made(tmp_path)
    assert read(again, digest) is None and not path.exists()
    assert again.news_since(0)[1] == []


def test_a_restart_removes_litter_and_what_was_changed_meanwhile(tmp_path: Path) -> None:
    digest = fill(made(tmp_path), b"content")
    other = fill(made(tmp_path), b"other")
    forge(tmp_path / "cache" / other, b"0ther")
    (tmp_path / "cache" / (digest_of(b"x") + ".new")).write_bytes(b"half")
    (tmp_path / "cache" / digest_of(b"y")).symlink_to("/etc/passwd")
    (tmp_path / "cache" / "README").write_text("what is this")
    (tmp_path / "cache" / "folder" / "below").mkdir(parents=True)
    (tmp_path / "cache" / "folder" / "below" / "file").write_text("and this")
    made(tmp_path)
    assert os.listdir(tmp_path / "cache") == [digest]


def test_a_restart_with_less_room_keeps_the_newest(tmp_path: Path) -> None:  # PJ-5
    cache = made(tmp_path)
    digests = [fill(cache, bytes([number]) * 30) for number in range(3)]
    for number, digest in enumerate(digests):
        os.utime(tmp_path / "cache" / digest, (1_000 + number, seal_of(digest)))
    smaller = made(tmp_path, size=60)
    assert smaller.digests() == set(digests[1:]) and smaller.held_bytes == 60


def test_after_a_restart_it_is_known_what_was_used_last(tmp_path: Path) -> None:
    (folder := tmp_path / "cache").mkdir()
    cache = DiskCache(folder, 100, memory=tmp_path / "uses")
    digests = [fill(cache, bytes([number]) * 30) for number in range(3)]
    assert read(cache, digests[0]) is not None
    cache.remember()
    again = DiskCache(folder, 100, memory=tmp_path / "uses")
    fill(again, b"new" * 10)
    assert again.digests() >= {digests[0], digests[2]} and digests[1] not in again.digests()
    (tmp_path / "uses").write_bytes(b"nonsense")
    assert DiskCache(folder, 100, memory=tmp_path / "uses").digests() == again.digests(), "it can do without"


def test_what_was_brought_so_far_stays_for_the_next_try_and_counts(tmp_path: Path) -> None:  # FM-6
    cache = made(tmp_path)
    digest = digest_of(b"x" * 50)

    def broken(target: str) -> None:
        Path(target + ".part").write_bytes(b"x" * 30)
        raise ConnectionError

    cache.pin(digest)
    with pytest.raises(ConnectionError):
        cache.take_in(digest, broken, size=50)
    assert (tmp_path / "cache" / (digest + REST)).stat().st_size == 30
    again = made(tmp_path)
    fill(again, b"y" * 70)
    assert (tmp_path / "cache" / (digest + REST)).exists()
    fill(again, b"z" * 20)
    assert not (tmp_path / "cache" / (digest + REST)).exists(), "it gives way before files do"
    assert again.held_bytes == 90


def test_what_a_job_made_is_adopted_by_a_link_and_hashed_when_it_is_asked_for(cache: DiskCache, tmp_path: Path) -> None:
    made = tmp_path / "output"
    made.write_bytes(b"made")
    cache.adopt(str(made), digest_of(b"made"))
    assert os.path.samefile(made, tmp_path / "cache" / digest_of(b"made"))
    assert read(cache, digest_of(b"made")) == b"made"
    made.unlink()
    assert read(cache, digest_of(b"made")) == b"made"


def test_an_output_that_changes_after_it_was_adopted_is_not_given(cache: DiskCache, tmp_path: Path) -> None:
    made = tmp_path / "output"
    made.write_bytes(b"made")
    cache.adopt(str(made), digest_of(b"made"))
    forge(made, b"mad3")
    assert read(cache, digest_of(b"made")) is None


def test_that_a_guest_was_hashed_says_nothing_of_a_file_that_comes_after_it(cache: DiskCache, tmp_path: Path) -> None:
    content = b"x" * 200
    digest = fill(cache, content)
    (tmp_path / "output").write_bytes(b"y" * 20)
    cache.adopt(str(tmp_path / "output"), digest)
    assert read(cache, digest) is None


def test_an_output_of_another_content_than_was_said_is_not_given(cache: DiskCache, tmp_path: Path) -> None:
    made = tmp_path / "output"
    made.write_bytes(b"made otherwise")
    cache.adopt(str(made), digest_of(b"made"))
    assert read(cache, digest_of(b"made")) is None


def test_a_link_out_of_the_folder_is_not_adopted_and_others_files_are_left_as_they_are(
    cache: DiskCache, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"data")
    before = theirs.stat()
    (tmp_path / "symbolic").symlink_to(theirs)
    os.link(theirs, tmp_path / "hard")
    cache.adopt(str(tmp_path / "symbolic"), digest_of(b"data"))
    assert cache.digests() == set()
    cache.adopt(str(tmp_path / "hard"), digest_of(b"data"))
    assert read(cache, digest_of(b"data")) == b"data", "a copy"
    assert (theirs.stat().st_mode, theirs.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_adopting_what_is_too_large_drives_nothing_out(cache: DiskCache, tmp_path: Path) -> None:
    kept = fill(cache, b"k" * 60)
    (tmp_path / "output").write_bytes(b"o" * 101)
    cache.adopt(str(tmp_path / "output"), digest_of(b"o" * 101))
    assert cache.digests() == {kept}


def test_a_smaller_size_takes_effect_at_once_but_for_what_is_in_use(cache: DiskCache) -> None:  # PJ-5
    first, second = fill(cache, b"1" * 40), fill(cache, b"2" * 40)
    cache.pin(first)
    cache.resize(0)
    assert cache.digests() == {first} and read(cache, second) is None
    cache.release([first])
    assert cache.digests() == set() and cache.held_bytes == 0


def test_what_an_earlier_agents_jobs_may_still_read_stays_until_they_are_over(tmp_path: Path) -> None:
    left = fill(made(tmp_path), b"1" * 60)
    cache = made(tmp_path)
    pins = cache.pin_all()
    fill(cache, b"2" * 60)
    assert cache.digests() == {left}
    cache.release(pins)
    second = fill(cache, b"2" * 60)
    assert cache.digests() == {second}


def test_the_server_is_told_what_came_and_went_since_what_it_knows(cache: DiskCache) -> None:  # PJ-6
    first = fill(cache, b"1" * 60)
    seen = cache.news.version
    second = fill(cache, b"2" * 60)
    base, added, gone = cache.news_since(seen)
    assert (base, [file.sha256 for file in added], gone) == (seen, [second], [first])
    assert [file.sha256 for file in cache.news_since(0)[1]] == [second]
    assert cache.news_since(seen + 1_000)[0] == 0, "a server that knows of a future is told everything"
    assert cache.news_since(cache.news.version) == (cache.news.version, [], [])


def write_back(path: Path, content: bytes) -> None:
    """Write into a file and set its times back, so that only the kernel's own shows it."""
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    path.chmod(0o444)


@pytest.mark.parametrize("link", [False, True], ids=["copy", "link"])
def test_a_file_that_was_written_to_and_dated_back_is_never_given(
    cache: DiskCache, tmp_path: Path, link: bool
) -> None:  # PJ-6
    digest = fill(cache, b"content")
    cache.pin(digest)
    cache.give(digest, str(tmp_path / "first"), link=True)
    wait_for_tick()
    write_back(tmp_path / "first", b"c0ntent")
    assert cache.lookup(digest) is None
    fill(cache, b"content")
    cache.give(digest, str(tmp_path / "second"), link=link)
    assert (tmp_path / "second").read_bytes() == b"content"


def test_links_that_the_cache_gives_and_takes_back_cost_no_second_hashing(
    cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = fill(cache, b"content")
    read: list[str] = []
    monkeypatch.setattr(entries, "digest_of", read.append)
    cache.pin(digest)
    for number in range(10):
        target = tmp_path / f"in{number}"
        cache.give(digest, str(target), link=True)
        assert cache.check_link(digest, str(target), target.stat().st_ino) is LinkState.INTACT
        cache.unlink(digest, str(target))
        assert cache.lookup(digest) is not None
    assert not read


def test_a_link_of_somebody_else_has_the_file_hashed_once_more(cache: DiskCache, tmp_path: Path) -> None:
    digest = fill(cache, b"content")
    wait_for_tick()
    os.link(tmp_path / "cache" / digest, tmp_path / "neighbour")
    assert read(cache, digest) == b"content"
