"""Secrets that a job gets as files: in its folder only while it runs, and readable by its owner alone.

A folder on the way to such a file may be a link, to an input that other jobs read too. Nothing is written through one:
each folder is opened in the one before it, and only if it is a folder itself."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mendflow.pilot.files.staging_faults import StagingFailed, staging_fault

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_secret_files(folder: str, contents: Mapping[str, str]) -> None:
    """Write them anew, by path in the job's folder."""
    for path, content in contents.items():
        try:
            with _opened_parent(folder, path, create=True) as parent:
                name = os.path.basename(path)
                _remove(name, parent)
                with os.fdopen(os.open(name, _NEW_FILE, 0o600, dir_fd=parent), "wb") as file:
                    file.write(content.encode())
        except (NotADirectoryError, FileExistsError):
            text = f"no secret can be written to {path}: an input of the job is in its place, or above it"
            raise StagingFailed(staging_fault("badPath", f"{text}; give it another path", path)) from None


def remove_secret_files(folder: str, paths: Iterable[str]) -> None:
    """The job is over: they go before anybody looks for its outputs, or keeps its folder."""
    for path in paths:
        try:
            with _opened_parent(folder, path) as parent:
                _remove(os.path.basename(path), parent)
        except OSError:
            continue  # the job has removed the folder, or has put something else in its place


@contextmanager
def _opened_parent(folder: str, path: str, *, create: bool = False) -> Iterator[int]:
    """The folder of a file, by its path in the job's folder. A link on the way is no folder."""
    if create:
        os.makedirs(folder, 0o700, exist_ok=True)
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in path.split("/")[:-1]:
            if create:
                _make_folder(part, found)
            inner = os.open(part, _FOLDER, dir_fd=found)
            os.close(found)
            found = inner
        yield found
    finally:
        os.close(found)


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass  # whether it is a folder is seen when it is opened


def _remove(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        pass  # the job has removed it, or has put something else in its place
