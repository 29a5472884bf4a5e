"""Writes the rows of a group, in few statements and in as few columns as are needed.

Each column that a statement writes costs SQLite a part of the row, and work in every index that it is in, also if it
has the same value as before. Most documents that are written again are in another state, and the same in every other
column; many have no column at all. So the columns of what was written last are remembered. That is safe because the
file lock keeps every other writer out, and because all of it is forgotten when a transaction fails.

Bodies are handed over as `bytearray`: for `bytes`, sqlite3 looks each time whether somebody has registered an adapter,
which takes longer than to copy a body and to bind it."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mendflow.stores.sqlite import queries as sql
from mendflow.stores.sqlite.searched_columns import (
    CASE,
    COLUMNS,
    COLUMNS_OF_MOST,
    NOTHING,
    UNSEARCHED,
    PlainColumn,
    plain_columns,
    searched_columns,
)

Key = tuple[str, str]

REMEMBERED_MAX: Final = 20_000
"""For so many documents the columns are remembered."""

_ROWS: Final = (256, 128, 64, 32, 16, 8, 4, 2, 1)
_STATE: Final = COLUMNS.index("by_state")


class _Statements:
    """One statement for several numbers of rows, so that it stays prepared."""

    def __init__(self, width: int, row: tuple[str, str, str]) -> None:
        self._width = width
        self._sized = [(rows * width, sql.many(row, rows)) for rows in _ROWS]

    def execute(self, connection: sqlite3.Connection, params: list[Any]) -> None:
        start = 0
        for span, statement in self._sized:
            while len(params) - start >= span:
                connection.execute(statement, params[start : start + span])
                start += span


_APPEND: Final = _Statements(3, sql.APPEND)
_OF_CASE: Final = _Statements(sql.PUT_WIDTH + len(COLUMNS), sql.put(COLUMNS))
_OF_MOST: Final = _Statements(sql.PUT_WIDTH + len(COLUMNS_OF_MOST), sql.put(COLUMNS_OF_MOST))
_NOT_SEARCHED: Final = _Statements(sql.PUT_WIDTH, sql.put((), empty=COLUMNS_OF_MOST))
_IN_ANOTHER_STATE: Final = _Statements(sql.PUT_WIDTH + 1, sql.put(("by_state",)))
_SAME_COLUMNS: Final = _Statements(sql.PUT_WIDTH, sql.put(()))


class RowWriter:
    """Writes within the transaction that is open on the connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._committed: dict[Key, tuple[PlainColumn, ...] | None] = {}
        self._written: dict[Key, tuple[PlainColumn, ...] | None] = {}

    def write(self, bodies: Mapping[Key, bytes | None], versions: Mapping[Key, int]) -> None:
        """Put the documents, and delete those without a body."""
        written = self._written = {}
        gone: list[Key] = []
        full, state, same, nothing, cases = list[Any](), list[Any](), list[Any](), list[Any](), list[Any]()
        for key, body in bodies.items():
            if body is None:
                gone.append(key)
                written[key] = None
                continue
            kind, version = key[0], versions[key]
            if kind in UNSEARCHED:  # its columns are empty, and have been since it is there
                same += (*key, version, bytearray(body))
                continue
            columns = written[key] = plain_columns(kind, body)
            before = self._committed.get(key) if columns is not None else None
            if columns is None:
                rows = cases if kind == CASE else full
                rows += (*key, version, *searched_columns(kind, body), bytearray(body))
            elif before is not None and columns == before:
                same += (*key, version, bytearray(body))
            elif before is not None and _is_alike_but_for_state(columns, before):
                state += (*key, version, columns[_STATE], bytearray(body))
            elif columns == NOTHING:
                nothing += (*key, version, bytearray(body))
            else:
                rows = cases if kind == CASE else full
                rows += (*key, version, *columns, bytearray(body))
        if gone:
            self._connection.execute(sql.DELETE, (msgspec.json.encode(gone).decode(),))
        for statements, params in (
            (_SAME_COLUMNS, same),
            (_IN_ANOTHER_STATE, state),
            (_NOT_SEARCHED, nothing),
            (_OF_MOST, full),
            (_OF_CASE, cases),
        ):
            if params:
                statements.execute(self._connection, params)

    def append(self, entries: list[str | int | bytearray]) -> None:
        """Add entries to streams: the stream, the position and the entry of each."""
        _APPEND.execute(self._connection, entries)

    def remember(self) -> None:
        """What was written last is committed."""
        if len(self._committed) > REMEMBERED_MAX:
            self._committed.clear()
        self._committed.update(self._written)

    def forget(self) -> None:
        """It may not be."""
        self._committed.clear()
        self._written = {}


def _is_alike_but_for_state(one: Sequence[PlainColumn], other: Sequence[PlainColumn]) -> bool:
    return one[:_STATE] == other[:_STATE] and one[_STATE + 1 :] == other[_STATE + 1 :]
