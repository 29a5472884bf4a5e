"""Explains SQLite's errors: which file, what is wrong, and what to do."""

import sqlite3
from pathlib import Path

from mendflow.core.model.errors import StoreUnavailable

_WHAT_TO_DO = {
    sqlite3.SQLITE_FULL: "there is no space left: free some; writing then continues by itself",
    sqlite3.SQLITE_IOERR: "reading or writing the disk fails: check its space, its quota and its health",
    sqlite3.SQLITE_BUSY: "another program holds it locked: close that program, then try again",
    sqlite3.SQLITE_LOCKED: "another program holds it locked: close that program, then try again",
    sqlite3.SQLITE_CORRUPT: "it is damaged: put it away for inspection and restore a backup",
    sqlite3.SQLITE_NOTADB: "it is not a mendflow store: give another file",
    sqlite3.SQLITE_READONLY: "it may not be written: give yourself write permission to the file and its folder",
    sqlite3.SQLITE_PERM: "it may not be opened: give yourself permission to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that its folder exists and that you may write there",
    sqlite3.SQLITE_NOMEM: "this process has no memory left: give it more",
}
_PRIMARY = 0xFF  # the low byte of an extended error code names its family


def is_environment_error(error: sqlite3.Error) -> bool:
    """Whether the environment failed, rather than the request."""
    return getattr(error, "sqlite_errorcode", -1) & _PRIMARY in _WHAT_TO_DO


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the file locked, which may pass."""
    return getattr(error, "sqlite_errorcode", -1) & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    """The message for an error of the environment."""
    if isinstance(error, OSError):
        what = f"it cannot be used ({error.strerror}): check that its folder exists and that you may write there"
        return StoreUnavailable(f"{path}: {what}", path=str(path))
    advice = _WHAT_TO_DO.get(getattr(error, "sqlite_errorcode", -1) & _PRIMARY, "SQLite refused")
    return StoreUnavailable(f"{path}: {advice} ({error})", told=f"the store of this server: {advice}", path=str(path))


def removed(path: Path) -> StoreUnavailable:
    """The message for a file that is no longer the one that was opened."""
    what = (
        "it was removed or replaced while it was in use, and nothing can be stored: end this program, put the file "
        "(with its -wal beside it) or a backup back, and start again"
    )
    return StoreUnavailable(f"{path}: {what}", path=str(path))
