"""A tree of files goes to a job's account and back, while another job of that account puts links in place of folders
between any two steps of the pilot: nothing outside of the tree is touched."""

import os
import pwd
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mendflow.pilot.files.work_folder import remove_tree
from mendflow.pilot.isolation.accounts import Account, account_named, give_tree, reclaim_tree
from tests.e2e.isolation.conftest import Installation

ACCOUNT = account_named("nobody")
OTHER = pwd.getpwnam("daemon")
FILES = 6
MOMENTS = 80
"""More than the pilot takes steps."""

STEPS = ("lchown", "chmod", "fchown", "fchmod", "listdir", "lstat", "scandir", "open", "unlink", "rmdir")


class Swapper:
    """Another job of the account: from one step of the pilot on it tries, after each, to put a link in place of a
    folder, with its own rights. `at` is an open folder: one that it works in, which nobody can take away from it."""

    def __init__(self, at: int, target: Path, *, waits: int = 0, name: str = "deeper") -> None:
        self._at, self._target, self._waits, self._name = at, target, waits, name
        self._steps = 0
        self.has_swapped = False

    def try_to_swap(self) -> None:
        self._steps += 1
        if self.has_swapped or self._steps <= self._waits:
            return
        os.setegid(ACCOUNT.gid)
        os.seteuid(ACCOUNT.uid)
        try:
            os.rename(self._name, "away", src_dir_fd=self._at, dst_dir_fd=self._at)
            os.symlink(self._target, self._name, dir_fd=self._at)
            self.has_swapped = True
        except OSError:
            pass  # it may not, this time
        finally:
            os.seteuid(0)
            os.setegid(0)

    def after_each_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for step in STEPS:
            monkeypatch.setattr(os, step, self._followed(getattr(os, step)))

    def _followed(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **more: Any) -> Any:
            try:
                return real(*arguments, **more)
            finally:
                self.try_to_swap()

        return step


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in folder.rglob("*")}


def made(folder: Path, account: Account | None = None, mode: int = 0o755) -> Path:
    """A tree with files in a folder in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "deep" / "deeper").mkdir(parents=True)
    for number in range(FILES):
        (folder / "deep" / "deeper" / f"{number}").write_text("x")
    for path in (folder, folder / "deep", folder / "deep" / "deeper"):
        path.chmod(mode)
    if account is not None:
        give_tree(str(folder), account)
    return folder


def opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


@pytest.fixture
def outside(installation: Installation) -> Path:
    """Files of somebody else's, of the same names."""
    folder = installation.folder / "outside"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}").write_text("not yours")
        os.chown(folder / f"{number}", OTHER.pw_uid, OTHER.pw_gid)
        (folder / f"{number}").chmod(0o4755)
    return folder


def test_a_link_in_place_of_a_folder_gets_no_job_another_file(
    installation: Installation, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    for moment in range(MOMENTS):
        tree = made(installation.folder / "attempt")
        swapper = Swapper(at := opened(tree / "deep"), outside, waits=moment)
        with monkeypatch.context() as patched:
            swapper.after_each_step(patched)
            give_tree(str(tree), ACCOUNT)
        assert owners(outside) == {OTHER.pw_uid}
        os.close(at)
    assert owners(tree) == {ACCOUNT.uid}


def test_a_link_in_place_of_a_folder_takes_no_file_from_anybody_when_a_job_is_over(
    installation: Installation, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    swaps = 0
    for moment in range(MOMENTS):
        tree = made(installation.folder / "attempt", ACCOUNT, mode=0o777)
        swapper = Swapper(at := opened(tree / "deep"), outside, waits=moment)
        with monkeypatch.context() as patched:
            swapper.after_each_step(patched)
            reclaim_tree(str(tree), ACCOUNT)
        assert owners(outside) == {OTHER.pw_uid}
        assert {path.stat().st_mode & 0o7777 for path in outside.iterdir()} == {0o4755}
        swaps += swapper.has_swapped
        late = Swapper(at, outside)
        late.try_to_swap()
        os.close(at)
        assert not late.has_swapped, "whoever is still in the folder changes nothing of it any more"
    assert 0 < swaps < MOMENTS and owners(tree) == {0}


def test_a_link_in_place_of_a_folder_removes_no_file_of_anybody(
    installation: Installation, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    swaps = 0
    for moment in range(MOMENTS):
        tree = made(installation.folder / "attempt", ACCOUNT, mode=0o777)
        swapper = Swapper(at := opened(tree), outside, waits=moment, name="deep")
        with monkeypatch.context() as patched:
            swapper.after_each_step(patched)
            remove_tree(str(tree))
        os.close(at)
        assert len(list(outside.iterdir())) == FILES
        swaps += swapper.has_swapped
    assert 0 < swaps < MOMENTS


def test_a_hard_link_to_a_file_of_somebody_else_takes_it_from_nobody(
    installation: Installation, outside: Path
) -> None:  # SE-2
    tree = made(installation.folder / "attempt", ACCOUNT)
    os.link(outside / "0", tree / "deep" / "linked")
    reclaim_tree(str(tree), ACCOUNT)
    status = (outside / "0").stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (OTHER.pw_uid, 0o4755)


def test_a_file_that_runs_as_its_owner_does_not_run_as_the_pilot(installation: Installation) -> None:  # SE-2
    tree = made(installation.folder / "attempt", ACCOUNT)
    (tree / "deep" / "0").write_text("#!/bin/sh\n")
    os.chown(tree / "deep" / "0", ACCOUNT.uid, ACCOUNT.gid)
    (tree / "deep" / "0").chmod(0o6755)
    reclaim_tree(str(tree), ACCOUNT)
    status = (tree / "deep" / "0").stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (0, 0o755)
