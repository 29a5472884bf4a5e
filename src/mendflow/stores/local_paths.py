"""Paths of this machine that a flow names: what is in them, or what is wrong with them."""

import fcntl
import os
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from mendflow.core.model.errors import NotFound

CHUNK_BYTES: Final = 1 << 20
NAMES_MAX: Final = 10_000
"""How many names of a folder a misspelt one is compared with."""


def content_of(source: BinaryIO, path: Path) -> Iterator[bytes]:
    """What is in a file of this machine. If it cannot be read, nothing is wrong with the store."""
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise NotFound(path_flaw_of(path, error)) from error


def is_sealed(fd: int) -> bool:
    """Make a file that is open for reading read-only; whether nobody has it open for writing, or mapped so. Where that
    cannot be told, as on network file systems and of another user's file, the answer is no.

    The kernel grants a read lease only on a file that nobody may write to. The lease is given back at once: from then
    on the file's mode keeps writers away."""
    try:
        os.fchmod(fd, 0o444)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except (OSError, AttributeError):  # other systems than Linux have no leases
        return False
    return True


def flaw_now(path: Path) -> str:
    try:
        path.open("rb").close()
        return ""
    except OSError as error:
        return path_flaw_of(path, error)


def path_flaw_of(path: Path, error: OSError) -> str:
    """What is wrong with a path that could not be opened. A misspelt one is told with the name that was meant."""
    if not isinstance(error, FileNotFoundError):
        return f"{path} cannot be read: {error.strerror}"
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    try:
        close = get_close_matches(missing.name, islice(os.listdir(missing.parent), NAMES_MAX), 1)
    except OSError:
        close = []
    meant = f" (did you mean {missing.parent / close[0]}?)" if close else ""
    if missing != path:
        return f"there is no file {path}: there is no folder {missing}{meant}"
    return f"there is no file {path}{meant}"
