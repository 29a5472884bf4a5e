"""`Table("samples.csv", fastq="file")`: the rows of a table beside the flow, as dicts.

It is read when its rows are first asked for, and not where a job's function is imported: a pilot has no such file. As
the default of a flow's parameter it makes that an input of the type table."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mendflow.core.data.table_files import COLUMN_KINDS, FILE_COLUMN
from mendflow.core.model.flow import TABLE, Input
from mendflow.formats.python.handles import Handle, Holds, step
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.spelling import nearest_word
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats import tables
else:
    tables = LazyModule("mendflow.formats.tables")  # a function that runs as a job needs no YAML


class Table(Sequence[dict[str, Any]]):
    """The rows of a CSV, TSV, JSON or YAML file beside the Python file. Cells are texts, unless `columns` say `number`,
    `boolean` or `file`; a file is a Path, relative to the table."""

    def __init__(self, path: str | Path, **columns: str) -> None:
        if wrong := next((name for name, kind in columns.items() if kind not in COLUMN_KINDS), ""):
            raise bad_flow(f"Table({path!s}): column {wrong} is one of {', '.join(COLUMN_KINDS)}")
        beside = sys._getframe(1).f_globals.get("__file__", "")
        self.path = (Path(beside).resolve().parent if beside else Path()) / path
        self.columns = columns
        self._rows: list[dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r})"

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._read())

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        """A row, rows, or a column by its name."""
        rows = self._read()
        return [row[key] for row in rows] if isinstance(key, str) else rows[key]

    def as_input(self, folder: Path) -> Input:
        """The input of a flow that has this table unless another is given."""
        rows = tables.read_table(self.path, self.columns, str(folder))
        source, digest = os.path.relpath(self.path, folder), tables.digest_of(self.path)
        return Input(type=TABLE, default=rows, columns=self.columns, read_from=source, read_digest=digest)

    def _read(self) -> list[dict[str, Any]]:
        if self._rows is None:
            files = [name for name, kind in self.columns.items() if kind == FILE_COLUMN]
            rows = tables.read_table(self.path, self.columns)
            self._rows = [{**row, **{name: as_path(row[name]) for name in files if name in row}} for row in rows]
        return self._rows


def as_path(cell: Any) -> Any:
    if isinstance(cell, list):
        return [as_path(each) for each in cell]
    return Path(cell) if isinstance(cell, str) and os.path.isabs(cell) else cell


class TableHandle(Handle):
    """A table that is not known yet: `samples["fastq"]` is the list of the cells of a column, `samples[0]` a row."""

    __slots__ = ("_input",)

    def __init__(self, owner: object, expression: str, given: Input) -> None:
        super().__init__(owner, expression)
        self._input = given

    def __getitem__(self, key: str | int) -> Handle:
        if not isinstance(key, str):
            return super().__getitem__(key)
        known = {name for row in self._input.default or () for name in row}
        if known and key not in known:
            raise bad_flow(f"the table `{self._expression}` has no column `{key}`", nearest_word(key, known))
        holds: Holds = "files" if self._input.columns.get(key) == FILE_COLUMN else ""
        return Handle(self._owner, f"{self._expression}.map(row, row{step(key)})", holds=holds)
