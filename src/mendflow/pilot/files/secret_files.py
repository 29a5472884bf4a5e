"""Secrets that a job gets as files: in its folder only while it runs, and readable by its owner alone. Where the
machine has a file system in memory the content lies there, and the job's folder has links to it: so no disk keeps it.

A folder on the way to such a file may be a link, to an input that other jobs read too. Nothing is written through one:
each folder is opened in the one before it, and only if it is a folder itself."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mendflow.pilot.files.memory_folders import make_attempt_memory, remove_attempt_memory
from mendflow.pilot.files.staging_faults import StagingFailed, staging_fault

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_secret_files(
    folder: str, contents: Mapping[str, str], *, shared: bool = True, passable: bool = False
) -> None:
    """Write them anew, by path in the job's folder. See `make_attempt_memory` for the rest."""
    remove_attempt_memory(folder)
    memory = make_attempt_memory(folder, shared=shared, passable=passable)
    for number, (path, content) in enumerate(contents.items()):
        try:
            with _opened_parent(folder, path, create=True) as parent:
                name = os.path.basename(path)
                _remove(name, parent)
                if target := _written_in_memory(memory, number, content):
                    os.symlink(target, name, dir_fd=parent)
                else:
                    _write(name, content, dir_fd=parent)
        except (NotADirectoryError, FileExistsError):
            text = f"no secret can be written to {path}: an input of the job is in its place, or above it"
            raise StagingFailed(staging_fault("badPath", f"{text}; give it another path", path)) from None


def _written_in_memory(memory: str, number: int, content: str) -> str:
    """Where the content lies now; empty if it has no place in memory."""
    path = os.path.join(memory, str(number))
    try:
        if memory:
            _write(path, content)
            return path
    except OSError:
        _discard(path)  # that memory is full
    return ""


def _write(path: str, content: str, *, dir_fd: int | None = None) -> None:
    with os.fdopen(os.open(path, _NEW_FILE, 0o600, dir_fd=dir_fd), "wb") as file:
        file.write(content.encode())


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def remove_secret_files(folder: str, paths: Iterable[str]) -> None:
    """The job is over: they go before anybody looks for its outputs, or keeps its folder."""
    paths = list(paths)
    if paths:
        remove_attempt_memory(folder)
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
