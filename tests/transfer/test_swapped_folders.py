"""Whoever may write to a folder puts a link in place of another folder in it, at any moment of a transfer: nothing
outside is read, written or removed."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, TransferFailed

STEPS = ("open", "stat", "lstat", "mkdir", "link", "unlink", "fsync", "close")
MOMENTS = 60
"""More than any transfer takes steps until it has written."""


class Swapper:
    """After so many steps of the transfer the folder `top/deep` is a link to `outside`."""

    def __init__(self, folder: Path, after: int) -> None:
        self._folder, self._after = folder, after
        self._steps = 0
        self.has_swapped = False

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for step in STEPS:
            monkeypatch.setattr(os, step, self._followed(getattr(os, step)))

    def _followed(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **more: Any) -> Any:
            try:
                return real(*arguments, **more)
            finally:
                self._steps += 1
                if self._steps == self._after:
                    self._swap()

        return step

    def _swap(self) -> None:
        deep = self._folder / "top" / "deep"
        if deep.is_dir():
            self.has_swapped = True
            deep.rename(self._folder / "top" / "away")
            deep.symlink_to(self._folder / "outside")


@pytest.fixture
def element(tmp_path: Path) -> StorageClient:
    (tmp_path / "top").mkdir()
    return StorageClient(StorageElement(name="disk", url=(tmp_path / "top").as_uri(), tries=1))


def world(folder: Path, content: bytes = b"") -> Path:
    """A folder in the element, which has `a` if there is content for it, and one outside with a secret `a`."""
    for name in ("top/deep", "top/away", "outside"):
        place = folder / name
        if place.is_symlink():
            place.unlink()
        elif place.exists():
            for each in place.iterdir():
                each.unlink()
            place.rmdir()
    for name in ("top/deep", "outside"):
        (folder / name).mkdir()
    (folder / "outside" / "a").write_bytes(b"secret")
    if content:
        (folder / "top" / "deep" / "a").write_bytes(content)
    return folder


def tried(swapper: Swapper, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    with monkeypatch.context() as patched:
        swapper.watch(patched)
        try:
            work()
        except (TransferFailed, BadFileUrl):
            pass  # refusing is well, too


def outside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "outside").iterdir()}


@pytest.mark.parametrize("name", ["a", "new"])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, element: StorageClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:  # SE-2
    source = tmp_path / "made"
    source.write_bytes(b"published")
    ref = FileRef(sha256=hashlib.sha256(b"published").hexdigest(), bytes=9, name="made")
    url, swaps = f"{element.storage.url}/deep/{name}", 0
    for moment in range(MOMENTS):
        swapper = Swapper(world(tmp_path), moment)
        tried(swapper, monkeypatch, lambda: element.publish(str(source), url, ref, mark="job", overwrite=True))
        assert outside(tmp_path) == {"a": b"secret"}
        swaps += swapper.has_swapped
    assert swaps > 10


def test_nothing_is_read_through_a_link(
    tmp_path: Path, element: StorageClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    url, target, swaps, read = f"{element.storage.url}/deep/a", tmp_path / "fetched", 0, 0
    for moment in range(MOMENTS):
        target.unlink(missing_ok=True)
        swapper = Swapper(world(tmp_path, b"public"), moment)
        tried(swapper, monkeypatch, lambda: element.fetch(url, str(target), resume=False))
        assert not target.exists() or target.read_bytes() == b"public"
        swaps, read = swaps + swapper.has_swapped, read + target.exists()
    assert swaps > 10 and read > 0


def test_nothing_is_read_through_a_link_out_of_what_jobs_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    (tmp_path / "top").mkdir()
    path, target, swaps = tmp_path / "top/deep/a", tmp_path / "fetched", 0
    client = StorageClient(StorageElement(name="", url=str(path), tries=1))
    for moment in range(MOMENTS):
        target.unlink(missing_ok=True)
        swapper = Swapper(world(tmp_path, b"public"), moment)
        tried(
            swapper,
            monkeypatch,
            lambda: client.fetch(str(path), str(target), resume=False, within=str(tmp_path / "top")),
        )
        assert not target.exists() or target.read_bytes() == b"public"
        swaps += swapper.has_swapped
    assert swaps > 10


def test_nothing_is_removed_through_a_link(
    tmp_path: Path, element: StorageClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    for moment in range(MOMENTS):
        swapper = Swapper(world(tmp_path, b"public"), moment)
        tried(swapper, monkeypatch, lambda: element.remove(f"{element.storage.url}/deep/a"))
        assert outside(tmp_path) == {"a": b"secret"}


def test_a_link_that_stays_inside_is_followed(tmp_path: Path, element: StorageClient) -> None:  # SE-2
    world(tmp_path, b"public")
    (tmp_path / "top" / "short").symlink_to("deep")
    (tmp_path / "top" / "b").symlink_to("deep/a")
    target = tmp_path / "fetched"
    for name in ("short/a", "b"):
        element.fetch(f"{element.storage.url}/{name}", str(target), resume=False)
        assert target.read_bytes() == b"public"
