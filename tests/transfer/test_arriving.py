"""A file that arrives: cut anywhere it goes on from there, and is not seen before all of it is right."""  # FM-6

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.model.values import FileRef
from mendflow.transfer import fetch as fetching
from mendflow.transfer import partial_files as arriving
from mendflow.transfer.errors import CannotResume, TransferFailed
from mendflow.transfer.fetch import fetch_file
from mendflow.transfer.partial_files import ALONGSIDE_BYTES, PART
from mendflow.transfer.sources import write_all
from tests.examples import examples

LARGE = bytes(range(256)) * (ALONGSIDE_BYTES // 200)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)


def ref_of(content: bytes) -> FileRef:
    return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name="file")


class Cut:
    """Gives a content, and breaks off where it is told to: after so many bytes of each try."""

    def __init__(self, content: bytes, cuts: list[int], *, piece: int = 7, ranges: bool = True) -> None:
        self.content, self.cuts, self.piece, self.ranges = content, list(cuts), piece, ranges
        self.size, self.identity = len(content), "as it is"
        self.sent = 0
        self.begun_at: list[int] = []

    def send(self, descriptor: int, offset: int, grown: Callable[[int], None]) -> None:
        if offset and not self.ranges:
            raise CannotResume
        self.begun_at.append(offset)
        left = self.cuts.pop(0) if self.cuts else len(self.content)
        while offset < len(self.content):
            if left <= 0:
                raise TransferFailed("the line was cut", passing=True)
            piece = self.content[offset : offset + min(self.piece, left)]
            offset = write_all(descriptor, piece, offset)
            left -= len(piece)
            self.sent += len(piece)
            grown(offset)


@given(
    st.binary(min_size=1, max_size=200), st.lists(st.integers(0, 250), max_size=6), st.integers(1, 40), st.booleans()
)
@settings(max_examples=examples(150), deadline=None)
def test_cut_at_any_byte_it_goes_on_from_there_and_is_whole(
    content: bytes, cuts: list[int], piece: int, known: bool
) -> None:
    origin = Cut(content, cuts, piece=piece)
    with TemporaryDirectory() as folder:
        target = f"{folder}/file"
        ref = ref_of(content)
        assert fetch_file(lambda: origin, target, ref if known else None, tries=20) == (ref.sha256, len(content))
        assert Path(target).read_bytes() == content and os.listdir(folder) == ["file"]
    assert origin.sent == len(content), "no byte was sent twice"


def test_what_another_process_has_brought_is_not_brought_again(tmp_path: Path) -> None:
    target = str(tmp_path / "file")
    (tmp_path / f"file{PART}").write_bytes(LARGE[: len(LARGE) // 2 + 1])
    origin = Cut(LARGE, [], piece=1 << 20)
    fetch_file(lambda: origin, target, ref_of(LARGE), tries=1)
    assert origin.begun_at == [len(LARGE) // 2 + 1] and Path(target).read_bytes() == LARGE


@pytest.mark.parametrize("left", [b"\0" * 1000, LARGE[:-1] + b"?", LARGE + b"more", LARGE[:5] + b"?"])
def test_what_was_left_by_another_content_is_found_out_and_brought_anew(tmp_path: Path, left: bytes) -> None:
    target = str(tmp_path / "file")
    (tmp_path / f"file{PART}").write_bytes(left)
    origin = Cut(LARGE, [], piece=1 << 20)
    fetch_file(lambda: origin, target, ref_of(LARGE), tries=2)
    assert Path(target).read_bytes() == LARGE


def test_a_whole_part_is_only_looked_at(tmp_path: Path) -> None:
    (tmp_path / f"file{PART}").write_bytes(LARGE)
    origin = Cut(LARGE, [])
    fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(LARGE), tries=1)
    assert not origin.begun_at and (tmp_path / "file").read_bytes() == LARGE


def test_a_source_that_cannot_begin_in_the_middle_begins_anew(tmp_path: Path) -> None:
    origin = Cut(LARGE, [len(LARGE) - 5, len(LARGE)], piece=1 << 20, ranges=False)
    fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(LARGE), tries=3)
    assert origin.begun_at == [0, 0] and (tmp_path / "file").read_bytes() == LARGE


def test_wrong_content_never_comes_to_its_place(tmp_path: Path) -> None:
    ref = ref_of(b"right")
    with pytest.raises(TransferFailed, match="damaged, or is another file"):
        fetch_file(lambda: Cut(b"wrong", []), str(tmp_path / "file"), ref, tries=3)
    with pytest.raises(TransferFailed, match="6 bytes instead of 5"):
        fetch_file(lambda: Cut(b"longer", []), str(tmp_path / "file"), ref, tries=3)
    assert not os.listdir(tmp_path)


def test_a_file_is_not_seen_before_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("what was there before")
    seen = set()

    class Watched(Cut):
        def send(self, descriptor: int, offset: int, grown: Callable[[int], None]) -> None:
            def look(size: int) -> None:
                seen.add(target.read_text())
                grown(size)

            super().send(descriptor, offset, look)

    fetch_file(lambda: Watched(b"something new", []), str(target), ref_of(b"something new"), tries=1)
    assert seen == {"what was there before"} and target.read_bytes() == b"something new"


def test_a_source_that_changes_between_two_tries_is_not_mixed(tmp_path: Path) -> None:
    """Nothing is known of its content, so only what it says of itself can tell."""
    old, new = Cut(b"old " * 50, [30]), Cut(b"new " * 50, [])
    new.identity = "another"
    turns = iter([old, new])
    fetch_file(lambda: next(turns), str(tmp_path / "file"), None, tries=3)
    assert (tmp_path / "file").read_bytes() == b"new " * 50


def test_tries_that_bring_much_do_not_count(tmp_path: Path) -> None:
    step = fetching.PROGRESS_BYTES
    content = os.urandom(5 * step)
    origin = Cut(content, [step] * 4, piece=step)
    fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(content), tries=2)
    assert origin.begun_at == [step * turn for turn in range(5)]
    still = Cut(content, [10] * 4, piece=step)
    with pytest.raises(TransferFailed, match="cut"):
        fetch_file(lambda: still, str(tmp_path / "other"), ref_of(content), tries=2)
    assert still.begun_at == [0, 10] and (tmp_path / f"other{PART}").stat().st_size == 20, "it stays for the next call"


def test_what_is_no_longer_wanted_ends_soon_and_stays_for_later(tmp_path: Path) -> None:
    origin = Cut(LARGE, [], piece=1000)
    with pytest.raises(TransferFailed, match="no longer wanted"):
        fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(LARGE), tries=5, wanted=lambda: origin.sent < 5000)
    assert origin.sent <= 6000 and os.listdir(tmp_path) == [f"file{PART}"]


def test_a_link_in_the_place_of_a_part_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / f"file{PART}").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        fetch_file(lambda: Cut(b"x", []), str(tmp_path / "file"), ref_of(b"x"), tries=1)
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the disk, in its order; all of it is done."""
    seen: list[str] = []

    def noted(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            seen.append(name)
            return call(*arguments)

        return step

    for name in ("posix_fadvise", "fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    return seen


def test_what_must_outlive_a_crash_is_on_the_disk_before_it_has_its_name(tmp_path: Path, steps: list[str]) -> None:
    fetch_file(lambda: Cut(LARGE, [], piece=1 << 20), str(tmp_path / "file"), ref_of(LARGE), tries=1)
    assert steps == ["fsync", "replace", "fsync"], "the content, the name, the folder that has it"


@pytest.mark.parametrize("ranges", [True, False])
def test_what_is_hashed_again_after_a_crash_does_not_wait_for_the_disk(
    tmp_path: Path, steps: list[str], ranges: bool
) -> None:
    origin = Cut(LARGE, [len(LARGE) // 2], piece=1 << 20, ranges=ranges)
    fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(LARGE), tries=2, durable=False)
    assert steps == ["replace"] and (tmp_path / "file").read_bytes() == LARGE


def test_the_disk_begins_before_all_is_there_and_the_digest_is_the_same(
    tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "WRITE_BACK_BYTES", 1 << 20)
    origin = Cut(LARGE, [len(LARGE) // 3], piece=300_000)
    fetch_file(lambda: origin, str(tmp_path / "file"), ref_of(LARGE), tries=2)
    assert (tmp_path / "file").read_bytes() == LARGE
    assert steps == ["posix_fadvise"] * 4 + ["fsync", "replace", "fsync"]
