"""Copies of a whole store as it is at one moment, made while servers work on it, and stores made of such copies.

A copy is a folder: `store.db` has the documents and streams, in SQLite whatever the store was; `files` the stored files
of a data folder; `backup.json` says what it is of, and is written last: a folder without it is no copy. Nothing that
was acknowledged before the moment is missing, and nothing of what came later is there by halves: the database itself
gives the view of one moment. Stored files never change, so they are copied before and after it: what a case of that
moment refers to was there in one of the two."""

import hashlib
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.stores.file_lock import FileLock
from mendflow.stores.lasting_writes import sync_path
from mendflow.stores.schema_versions import SCHEMA_SQL
from mendflow.stores.sqlite import migrations as sqlite_migrations
from mendflow.stores.urls import STORE_FILE

DESCRIPTION: Final = "backup.json"
FILES: Final = "files"
_DIGEST_CHARS: Final = 64

StoreKind = Literal["sqlite", "postgresql"]


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy has. `taken_at` is its moment, in milliseconds since 1970."""

    kind: StoreKind
    mendflow: str
    schema: int
    taken_at: int
    documents: int
    entries: int
    files: int
    file_bytes: int
    sha256: str


# Making one


def back_up_sqlite(source: Path, to: Path, mendflow: str) -> Backup:
    """Copy the store that is a file, and the stored files beside it."""
    files = source.parent / FILES
    if not source.exists():
        raise NotFound(f"there is no store at {source}")
    draft = begin_backup(to)
    copied = _copy_files(files, to / FILES)
    taken_at = now_ms()
    with closing(open_copy(source)) as connection, closing(sqlite3.connect(draft)) as copy:
        connection.backup(copy)
        counted = count_rows(copy)
        [schema] = copy.execute(SCHEMA_SQL).fetchone()
    copied |= _copy_files(files, to / FILES)
    return describe_backup(to, "sqlite", mendflow, schema, taken_at, counted, copied)


def begin_backup(to: Path) -> Path:
    """A new folder for its owner alone; gives the place of the store's copy."""
    if to.exists() and any(to.iterdir()):
        raise Conflict(f"{to} is not empty: name a new folder for the backup")
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = to / STORE_FILE
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return draft


def describe_backup(
    to: Path,
    kind: StoreKind,
    mendflow: str,
    schema: int,
    taken_at: int,
    counted: tuple[int, int],
    copied: dict[str, int],
) -> Backup:
    sync_path(to / STORE_FILE)
    made = Backup(
        kind=kind,
        mendflow=mendflow,
        schema=schema,
        taken_at=taken_at,
        documents=counted[0],
        entries=counted[1],
        files=len(copied),
        file_bytes=sum(copied.values()),
        sha256=_sha256(to / STORE_FILE),
    )
    draft = to / f"{DESCRIPTION}.draft"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(made)))
    sync_path(draft)
    draft.rename(to / DESCRIPTION)
    sync_path(to)
    return made


def _copy_files(source: Path, to: Path) -> dict[str, int]:
    """Copy the stored files that are not there yet; gives the sizes of all. A file that goes meanwhile belongs to no
    case any more."""
    found: dict[str, int] = {}
    for path in _stored(source):
        target = to / path.relative_to(source)
        try:
            if not target.exists():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy2(path, target.with_suffix(".draft"))
                sync_path(target.with_suffix(".draft"))
                target.with_suffix(".draft").rename(target)
            found[path.name] = target.stat().st_size
        except FileNotFoundError:
            continue
    return found


def _stored(folder: Path) -> list[Path]:
    """Stored files are named by their digests, in folders named by the first characters of these."""
    if not folder.is_dir():
        return []
    below = [each for each in sorted(folder.iterdir()) if each.is_dir() and len(each.name) == 2]
    return [path for each in below for path in sorted(each.iterdir()) if len(path.name) >= _DIGEST_CHARS - 2]


# Making a store of one


def read_backup(folder: Path) -> Backup:
    """What a copy has, after a look whether it is whole."""
    try:
        found = msgspec.json.decode((folder / DESCRIPTION).read_bytes(), type=Backup)
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidRequest(f"{folder} is no backup, or was not finished: {DESCRIPTION} cannot be read") from error
    if _sha256(folder / STORE_FILE) != found.sha256:
        raise InvalidRequest(f"{folder / STORE_FILE} has changed since the backup was made: use another backup")
    sizes = [path.stat().st_size for path in _stored(folder / FILES)]
    if (len(sizes), sum(sizes)) != (found.files, found.file_bytes):
        raise InvalidRequest(
            f"{folder / FILES} has {len(sizes)} stored files of {sum(sizes)} bytes, and the backup was made with"
            f" {found.files} of {found.file_bytes}: copy the whole folder again, or use another backup"
        )
    return found


def restore_sqlite(backup: Path, place: Path) -> Backup:
    """Make a store of a copy, with the stored files beside it. There must be none yet."""
    found, data = backup_of_kind(backup, "sqlite", sqlite_migrations.NEWEST), place.parent
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(place)
    lock.acquire()
    try:
        if place.exists():
            raise Conflict(f"there is a store at {place} already: name another folder by --data-dir")
        _copy_files(backup / FILES, data / FILES)
        draft = place.with_name(f"{place.name}.restoring")
        shutil.copyfile(backup / STORE_FILE, draft)
        draft.chmod(0o600)
        sync_path(draft)
        draft.rename(place)
        sync_path(data)
    finally:
        lock.release()
    return found


def backup_of_kind(backup: Path, kind: StoreKind, newest: int) -> Backup:
    """A copy that can be restored to a store of this kind, whose schemas are known up to `newest`."""
    found = read_backup(backup)
    if found.kind != kind:
        wanted = "--store postgresql://..." if found.kind == "postgresql" else "--data-dir DIR, without --store"
        raise InvalidRequest(f"{backup} is of a store in {found.kind}: restore it with {wanted}")
    if found.schema > newest:
        raise InvalidRequest(
            f"{backup} is of a newer mendflow (schema {found.schema}, made by mendflow {found.mendflow}; this one knows"
            f" up to {newest}): upgrade mendflow, or use another backup"
        )
    return found


def open_copy(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)


def count_rows(copy: sqlite3.Connection) -> tuple[int, int]:
    [documents] = copy.execute("SELECT count(*) FROM documents").fetchone()
    [entries] = copy.execute("SELECT count(*) FROM entries").fetchone()
    return documents, entries


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from error


def now_ms() -> int:
    return time.time_ns() // 1_000_000
