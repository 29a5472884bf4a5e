"""What an attempt prints, in its file: whole up to a bound, and both ends beyond it."""

import gzip
import os
import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.pilot.slot import logs
from mendflow.pilot.slot.logs import BLOCK_BYTES, LogFile, LogTail, pack_log, read_log


@given(st.lists(st.binary(max_size=400), max_size=40))
def test_a_tail_is_the_end_of_what_came(pieces: list[bytes]) -> None:
    tail = LogTail(100)
    for piece in pieces:
        tail.feed(piece)
    assert tail.content() == b"".join(pieces)[-100:]


def pieces_of(count: int, bytes_each: int) -> list[bytes]:
    return [b"%08d" % number * (bytes_each // 8) for number in range(count)]


@given(st.integers(0, 40), st.sampled_from([8, 4_000, 20_000]))
def test_a_log_within_its_bound_is_whole_and_a_longer_one_keeps_both_ends(count: int, bytes_each: int) -> None:  # DU-4
    pieces, bound = pieces_of(count, bytes_each), 100_000
    whole = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        log = LogFile(f"{folder}/log", bytes_max=bound)
        for piece in pieces:
            log.feed(piece)
        log.close()
        if not whole:
            assert not log.made
            return
        packed = pack_log(f"{folder}/log", f"{folder}/log.gz")
        content = gzip.decompress(Path(folder, "log.gz").read_bytes())
        disk_bytes = os.stat(f"{folder}/log").st_blocks * 512
    size, start, end = packed.extent
    assert size == log.seen == len(whole) and content == whole[:start] + whole[end:]
    if len(whole) <= bound or content == whole:
        assert content == whole and len(whole) <= bound + 2 * BLOCK_BYTES
    else:
        assert start >= bound // 2 <= size - end and disk_bytes <= bound + 4 * BLOCK_BYTES


def test_a_log_is_read_from_any_place_while_it_grows_past_what_is_left_out(
    tmp_path: Path,
) -> None:  # DU-4
    log, path, seen, at = LogFile(str(tmp_path / "log"), bytes_max=100_000), str(tmp_path / "log"), b"", 0
    for piece in pieces_of(20, 4_000):
        log.feed(piece)
        start, data, size = read_log(path, at, 1 << 20)
        assert start == at and size == log.seen
        seen, at = seen + data, start + len(data)
    assert seen == b"".join(pieces_of(20, 4_000))
    for piece in pieces_of(200, 4_000):
        log.feed(piece)
    log.close()
    start, data, size = read_log(path, 60_000, 1 << 20)
    assert start > 60_000 and start + len(data) == size == 880_000 and data.endswith(b"00000199")
    assert read_log(path, size, 1 << 20) == (size, b"", size)


def test_where_a_file_system_cannot_leave_out_the_middle_the_end_is_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-4
    monkeypatch.setattr(logs, "give_back_middle", lambda *_: False)
    log = LogFile(str(tmp_path / "log"), bytes_max=100_000)
    for piece in pieces_of(100, 20_000):
        log.feed(piece)
    log.close()
    content = (tmp_path / "log").read_bytes()
    assert content.startswith(b"00000000") and content.endswith(b"00000099")
    assert b"bytes were left out here" in content and len(content) < 200_000


def test_a_log_that_cannot_be_written_hurts_nobody() -> None:
    log = LogFile("/dev/full")
    log.feed(b"x" * 100_000)
    log.feed(b"y")
    log.close()
    assert log.seen == 100_001


def test_what_a_full_disk_takes_no_more_is_written_when_there_is_room_again(tmp_path: Path) -> None:  # DU-4
    pieces = [b"a" * 6_000, b"b" * 6_000, b"c" * 6_000]
    log = LogFile(str(tmp_path / "log"))
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, bounds[1]))  # the second piece is written in part
    try:
        for piece in pieces:
            log.feed(piece)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
    log.close()
    assert (tmp_path / "log").read_bytes() == b"".join(pieces)
