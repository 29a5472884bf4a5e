"""The folder of a failed attempt is kept without the secrets of its job, wherever the job has written them."""

import base64
import bz2
import gzip
import lzma
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mendflow.core.model.text_masks import TextMask
from mendflow.pilot.slot.secret_masking import REMOVED, mask_kept

SECRET = "tell-nobody-42-and-never"
MASK = TextMask.of_secrets([SECRET])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "attempt"
    (folder / "inner").mkdir(parents=True)
    return folder


def test_names_of_files_folders_and_links_are_masked(folder: Path) -> None:  # SE-1
    stars = "*" * len(SECRET)
    (folder / f"{SECRET}.txt").write_text("a")
    (folder / "inner" / SECRET).mkdir()
    (folder / "inner" / SECRET / "x").write_text("b")
    (folder / f"{stars}.txt").write_text("there before")
    (folder / "link").symlink_to(f"/nowhere/{SECRET}")
    mask_kept(str(folder), MASK)
    assert sorted(os.listdir(folder)) == sorted([f"{stars}.txt", f"{stars}.txt-2", "inner"])
    assert (folder / f"{stars}.txt-2").read_text() == "a"
    assert (folder / "inner" / stars / "x").read_text() == "b"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_stay_only_if_they_have_no_secret(folder: Path, pack: Callable[[bytes], bytes]) -> None:  # SE-1
    (folder / "with").write_bytes(pack(f"x {SECRET} x".encode()))
    (folder / "without").write_bytes(plain := pack(b"nothing"))
    (folder / "damaged").write_bytes(pack(os.urandom(5000))[:-20])
    mask_kept(str(folder), MASK)
    assert (folder / "with").read_bytes() == (folder / "damaged").read_bytes() == REMOVED
    assert (folder / "without").read_bytes() == plain


def test_packed_files_that_are_not_searched_do_not_stay(folder: Path) -> None:  # SE-1
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("x", SECRET)
    mask_kept(str(folder), MASK)
    assert (folder / "a.zip").read_bytes() == REMOVED


def test_hard_links_are_masked_and_what_is_outside_stays_as_it_is(folder: Path, tmp_path: Path) -> None:  # SE-1
    (folder / "one").write_text(SECRET)
    os.link(folder / "one", folder / "inner" / "two")
    (tmp_path / "outside").write_text(f"it is {SECRET}")
    os.link(tmp_path / "outside", folder / "shared")
    (tmp_path / "input").write_text("plain")
    os.link(tmp_path / "input", folder / "input")
    mask_kept(str(folder), MASK)
    for path in (folder / "one", folder / "inner" / "two", folder / "shared"):
        assert SECRET not in path.read_text() and "***" in path.read_text()
    assert (tmp_path / "outside").read_text() == f"it is {SECRET}"
    assert os.stat(folder / "input").st_nlink == 2, "an input without a secret is not copied"


def test_files_that_are_only_for_reading_are_masked(folder: Path) -> None:  # SE-1
    (folder / "a").write_text(SECRET)
    (folder / "a").chmod(0o400)
    (folder / "b").write_text(base64.encodebytes(b"x" * 50 + SECRET.encode()).decode())
    mask_kept(str(folder), MASK)
    assert (folder / "a").read_text() == "*" * len(SECRET)
    text = base64.b64decode((folder / "b").read_text().replace("*", "A"))
    assert SECRET.encode() not in text


NOBODY = 65534


@contextmanager
def as_its_owner(folder: Path) -> Iterator[None]:
    """As a user whom the mode of a file keeps out, which root is not."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_files_and_folders_that_their_job_has_closed_are_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-1
    (folder / "with").write_bytes(gzip.compress(SECRET.encode()))
    (folder / "without").write_bytes(plain := gzip.compress(b"nothing"))
    (folder / "inner" / "a").write_text(SECRET)
    for path in (folder / "with", folder / "without", folder / "inner"):
        path.chmod(0)
    monkeypatch.chdir(folder)
    with as_its_owner(folder):
        mask_kept(".", MASK)
        assert Path("with").read_bytes() == REMOVED
        assert Path("without").read_bytes() == plain
        assert Path("inner/a").read_text() == "*" * len(SECRET)
