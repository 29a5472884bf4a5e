"""The files that a table names: cells of columns that are declared as files, each with a path or a list of paths."""

from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.model.values import Value

FILE_COLUMN: Final = "file"
COLUMN_KINDS: Final = ("string", "number", "boolean", FILE_COLUMN)
ROW_NAMES: Final = ("name", "id", "sample", "title", "key")
"""Columns that tell a row from others; the first that it has is shown."""


def is_table(value: Value) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def paths_in(rows: Value, columns: Mapping[str, str]) -> set[str]:
    """The paths that the rows name. What is a stored file already, and a URL, which a pilot fetches, is none."""
    return {path for row in rows for path in _paths_of(row, columns)} if columns and is_table(rows) else set()


def with_files(rows: Value, columns: Mapping[str, str], files: Mapping[str, Value]) -> list[Value]:
    """The rows with each path replaced by the file that it has among `files`."""

    def changed(cell: Value) -> Value:
        if isinstance(cell, list):
            return [changed(part) for part in cell]
        return files.get(cell, cell) if isinstance(cell, str) else cell

    names = _file_columns(columns)
    return [{name: changed(cell) if name in names else cell for name, cell in row.items()} for row in rows]


def _paths_of(row: dict[str, Value], columns: Mapping[str, str]) -> Iterator[str]:
    for name in _file_columns(columns):
        cells = row.get(name)
        for cell in cells if isinstance(cells, list) else [cells]:
            if isinstance(cell, str) and cell and "://" not in cell:
                yield cell


def _file_columns(columns: Mapping[str, str]) -> set[str]:
    return {name for name, kind in columns.items() if kind == FILE_COLUMN}
