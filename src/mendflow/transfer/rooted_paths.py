"""Opens what lies in a folder, and nothing that a link leads to elsewhere.

A path is looked at with all its links followed, and must end in the folder. Whoever may write to that folder could put
a link there a moment later. So each folder on the way is opened in the one before it, and only if it is a folder
itself: what is opened is what was looked at. A place is reached so only where /proc tells open files, as on Linux;
elsewhere a path is looked at, and then used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mendflow.transfer.errors import BadFileUrl

_NAMED: Final = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens what one may pass through, and need not read."""

_FOLDER: Final = _NAMED | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENED: Final = "/proc/self/fd"
_TELLS_OPENED: Final = os.path.exists(_OPENED)


def escapes_root(root: str, path: str) -> bool:
    """Whether links on this machine lead out of a folder."""
    top = os.path.realpath(root)
    return os.path.commonpath([top, os.path.realpath(path)]) != top


def open_inside(root: str, path: str, flags: int = _NAMED) -> int:
    """Open a file in a folder or below it. Raises BadFileUrl if it is elsewhere by a link, and OSError."""
    top, real = os.path.realpath(root), os.path.realpath(path)
    _demand_inside(top, real, path)
    if real == top:
        return os.open(real, flags | os.O_CLOEXEC)
    folder = _opened_parent(top, real)
    try:
        return os.open(os.path.basename(real), flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


@contextmanager
def place_inside(root: str, path: str, *, create: bool = False) -> Iterator[str]:
    """A path by which a place below a folder is reached as long as this lasts: whatever becomes of the folders on the
    way. Its last part may be a link. With `create` missing folders are made. Raises BadFileUrl if it is elsewhere by a
    link, and OSError."""
    top = os.path.realpath(root)
    name = os.path.basename(path)
    real = os.path.join(os.path.realpath(os.path.dirname(path)), name)
    _demand_inside(top, os.path.realpath(path), path)
    if real == top or not _TELLS_OPENED:
        if create:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        yield path
        return
    _demand_inside(top, os.path.dirname(real), path)
    folder = _opened_parent(top, real, create=create)
    try:
        yield f"{_OPENED}/{folder}/{name}"
    finally:
        os.close(folder)


def _demand_inside(top: str, real: str, path: str) -> None:
    if os.path.commonpath([top, real]) != top:
        raise BadFileUrl(f"{path!r} leads out of {top} by a link")


def _opened_parent(top: str, real: str, *, create: bool = False) -> int:
    """The folder of a path below `top`, open; neither has links."""
    if create:
        os.makedirs(top, exist_ok=True)
    found = os.open(top, _FOLDER)
    try:
        for part in os.path.relpath(os.path.dirname(real), top).split(os.sep):
            if part == os.curdir:
                continue
            if create:
                _make_folder(part, found)
            inner = os.open(part, _FOLDER, dir_fd=found)
            os.close(found)
            found = inner
        return found
    except BaseException:
        os.close(found)
        raise


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        pass  # whether it is a folder is seen when it is opened
