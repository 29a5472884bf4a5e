"""The SQLite schema, as numbered steps.

A released step is never changed; a new need is a new step. A newer schema is refused, because this mendflow does not
know what it would break."""

import logging
import shutil
import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.errors import StoreUnavailable

log = logging.getLogger("mendflow.store")


class SqliteMigration(msgspec.Struct, frozen=True):
    """`copies`: it writes all documents anew."""

    number: int
    why: str
    statements: tuple[str, ...]
    copies: bool = False


def _searched_in_5(field: str) -> str:
    """A column of step 5, with a field of the documents that people search."""
    return f"GENERATED ALWAYS AS (CASE WHEN kind <> 'snapshot' THEN json_extract(body, '$.{field}') END)"


_SEARCHED_IN_6 = "by_case, by_state, by_status, by_created, by_started, by_project, by_key"

MIGRATIONS = (
    SqliteMigration(
        1,
        "Documents and streams. The fields that people search by are columns that SQLite fills itself from the JSON. "
        "They stand before the body, so that reading them does not read the body; they have no type, so that a number "
        "stays a number. Few documents have a status: the others pay nothing for its index.",
        (
            """CREATE TABLE documents (
                 kind       TEXT NOT NULL,
                 id         TEXT NOT NULL,
                 version    INTEGER NOT NULL,
                 by_case    GENERATED ALWAYS AS (json_extract(body, '$.case')) STORED,
                 by_state   GENERATED ALWAYS AS (json_extract(body, '$.state')) STORED,
                 by_status  GENERATED ALWAYS AS (json_extract(body, '$.status')) STORED,
                 body       TEXT NOT NULL,
                 UNIQUE (kind, id)
               )""",
            "CREATE INDEX documents_by_case ON documents (kind, by_case, by_state) WHERE by_case IS NOT NULL",
            "CREATE INDEX documents_by_state ON documents (kind, by_state)",
            "CREATE INDEX documents_by_status ON documents (kind, by_status) WHERE by_status IS NOT NULL",
            """CREATE TABLE entries (
                 stream    TEXT NOT NULL,
                 position  INTEGER NOT NULL,
                 body      BLOB NOT NULL,
                 PRIMARY KEY (stream, position)
               ) WITHOUT ROWID""",
        ),
    ),
    SqliteMigration(
        2,
        "A version is never given twice, not even to a document that was deleted and made again: they all come from "
        "one row of numbers, of which blocks are reserved.",
        (
            "CREATE TABLE versions (upto INTEGER NOT NULL)",
            "INSERT INTO versions SELECT coalesce(max(version), 0) FROM documents",
        ),
    ),
    SqliteMigration(
        3,
        "The newest documents of a kind are found by an index: a list of jobs begins with them, and without it every "
        "job was read for a page of a hundred. It holds the whole order, because the jobs of a loop are all made at "
        "the same instant.",
        (
            "ALTER TABLE documents ADD COLUMN"
            " by_created GENERATED ALWAYS AS (json_extract(body, '$.created_at')) VIRTUAL",
            "CREATE INDEX documents_by_created ON documents (kind, by_created, length(id), id)"
            " WHERE by_created IS NOT NULL",
        ),
    ),
    SqliteMigration(
        4,
        "So are the newest cases, of all projects and of each: a few large cases of one project made everybody wait "
        "for a list. No other kind pays for these.",
        (
            "ALTER TABLE documents ADD COLUMN"
            " by_started GENERATED ALWAYS AS (json_extract(body, '$.started_at')) VIRTUAL",
            "ALTER TABLE documents ADD COLUMN by_project GENERATED ALWAYS AS (json_extract(body, '$.project')) VIRTUAL",
            "CREATE INDEX cases_by_started ON documents (by_started, length(id), id) WHERE kind = 'case'",
            "CREATE INDEX cases_by_project ON documents (by_project, by_started, length(id), id) WHERE kind = 'case'",
        ),
    ),
    SqliteMigration(
        5,
        "A case is found by the key that it was started under: without an index each start read all cases. And the "
        "columns of snapshots are empty. Nobody searches them, and their field `state` is a whole case: as a key of "
        "the indexes, megabytes of it were read by whoever wrote a document of another kind nearby.",
        (
            "ALTER TABLE documents RENAME TO documents_before",
            f"""CREATE TABLE documents (
                 kind        TEXT NOT NULL,
                 id          TEXT NOT NULL,
                 version     INTEGER NOT NULL,
                 by_case     {_searched_in_5("case")} STORED,
                 by_state    {_searched_in_5("state")} STORED,
                 by_status   {_searched_in_5("status")} STORED,
                 by_created  {_searched_in_5("created_at")} VIRTUAL,
                 by_started  {_searched_in_5("started_at")} VIRTUAL,
                 by_project  {_searched_in_5("project")} VIRTUAL,
                 by_key      {_searched_in_5("key")} VIRTUAL,
                 body        TEXT NOT NULL,
                 UNIQUE (kind, id)
               )""",
            "INSERT INTO documents (kind, id, version, body)"
            " SELECT kind, id, version, body FROM documents_before ORDER BY rowid",
            "DROP TABLE documents_before",
            "CREATE INDEX documents_by_case ON documents (kind, by_case, by_state) WHERE by_case IS NOT NULL",
            "CREATE INDEX documents_by_state ON documents (kind, by_state)",
            "CREATE INDEX documents_by_status ON documents (kind, by_status) WHERE by_status IS NOT NULL",
            "CREATE INDEX documents_by_created ON documents (kind, by_created, length(id), id)"
            " WHERE by_created IS NOT NULL",
            "CREATE INDEX cases_by_started ON documents (by_started, length(id), id) WHERE kind = 'case'",
            "CREATE INDEX cases_by_project ON documents (by_project, by_started, length(id), id) WHERE kind = 'case'",
            "CREATE INDEX cases_by_key ON documents (by_key) WHERE kind = 'case' AND by_key > ''",
        ),
        copies=True,
    ),
    SqliteMigration(
        6,
        "The writer fills the columns itself: SQLite parsed a document for each of them, and again when it was "
        "replaced, which took a second for one of 40 MB. And cases that were run in place of others are found by an "
        "index: whoever looked at failures read every case. No document of before says in whose place it stands.",
        (
            "ALTER TABLE documents RENAME TO documents_before",
            """CREATE TABLE documents (
                 kind        TEXT NOT NULL,
                 id          TEXT NOT NULL,
                 version     INTEGER NOT NULL,
                 by_case,
                 by_state,
                 by_status,
                 by_created,
                 by_started,
                 by_project,
                 by_key,
                 by_stands_for,
                 body        TEXT NOT NULL,
                 UNIQUE (kind, id)
               )""",
            f"INSERT INTO documents (kind, id, version, {_SEARCHED_IN_6}, body)"
            f" SELECT kind, id, version, {_SEARCHED_IN_6}, body FROM documents_before ORDER BY rowid",
            "DROP TABLE documents_before",
            "CREATE INDEX documents_by_case ON documents (kind, by_case, by_state) WHERE by_case IS NOT NULL",
            "CREATE INDEX documents_by_state ON documents (kind, by_state)",
            "CREATE INDEX documents_by_status ON documents (kind, by_status) WHERE by_status IS NOT NULL",
            "CREATE INDEX documents_by_created ON documents (kind, by_created, length(id), id)"
            " WHERE by_created IS NOT NULL",
            "CREATE INDEX cases_by_started ON documents (by_started, length(id), id) WHERE kind = 'case'",
            "CREATE INDEX cases_by_project ON documents (by_project, by_started, length(id), id) WHERE kind = 'case'",
            "CREATE INDEX cases_by_key ON documents (by_key) WHERE kind = 'case' AND by_key > ''",
            "CREATE INDEX cases_by_stands_for ON documents (by_stands_for)"
            " WHERE kind = 'case' AND by_stands_for IS NOT NULL",
        ),
        copies=True,
    ),
)

NEWEST = MIGRATIONS[-1].number

COPY_TAKES: Final = 3.1
"""How often a step that copies the documents has them on disk beside the file as it was: what is written and what is
freed in the log, and then what was written in the file, too."""

LOG_TAKES_BYTES: Final = 1 << 18
"""What the log has beside them: its index, and some pages of the schema."""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest schema, each step in a transaction."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version (number INTEGER NOT NULL PRIMARY KEY, why TEXT NOT NULL)"
    )
    present = connection.execute("SELECT coalesce(max(number), 0) FROM schema_version").fetchone()[0]
    if present > NEWEST:
        raise StoreUnavailable(
            f"{path} was written by a newer mendflow (schema {present}; this one knows up to {NEWEST}): "
            "upgrade mendflow, or give it another file",
            path=str(path),
            schema=present,
        )
    if 0 < present < NEWEST:
        _announce(connection, path, present)
    for step in MIGRATIONS[present:]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in step.statements:
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version (number, why) VALUES (?, ?)", (step.number, step.why))
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if step.copies and present:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else the next one takes as much again


def _announce(connection: sqlite3.Connection, path: Path, present: int) -> None:
    """Say what begins now. Refused if the disk has no room for it: it would fail when it has taken minutes."""
    needed = _needed_bytes(connection) if any(step.copies for step in MIGRATIONS[present:]) else 0
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        needed = min(needed, _needed_for_documents(connection))
    size, room = f"{path.stat().st_size / 1e6:,.1f} MB", f"{needed / 1e6:,.1f} MB"
    if free < needed:
        raise StoreUnavailable(
            f"{path} ({size}) has to be brought from schema {present} to {NEWEST}, which takes about {room} more of its"
            f" disk for a time, and {free / 1e6:,.1f} MB are free there: make room, or move the file to a larger disk;"
            " nothing was changed",
            path=str(path),
            needed_bytes=needed,
            free_bytes=free,
        )
    log.warning(
        "%s (%s) is brought from schema %d to %d; a large file takes minutes, and for a time about %s more of its disk",
        path,
        size,
        present,
        NEWEST,
        room,
    )


def _needed_bytes(connection: sqlite3.Connection) -> int:
    """At most so much is needed, whatever is in the file."""
    size, pages, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
    )
    return int(COPY_TAKES * size * (pages - free))


def _needed_for_documents(connection: sqlite3.Connection) -> int:
    """What the documents and their indexes need, for nothing else is copied. To find out takes as long as to read the
    whole file. Where SQLite was compiled without its page statistics, all pages count."""
    try:
        [pages] = connection.execute(
            "SELECT sum(pgsize) FROM dbstat"
            " WHERE aggregate = 1 AND name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'documents')"
        ).fetchone()
    except sqlite3.OperationalError:
        return _needed_bytes(connection)
    return int(COPY_TAKES * pages) + LOG_TAKES_BYTES
