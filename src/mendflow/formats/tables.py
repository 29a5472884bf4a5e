"""Tables, such as the sheet of the samples of a study: a list of maps, one for each row.

Cells of CSV and TSV files are texts, whatever they look like, unless the flow declares what is in a column: one column
never has numbers in some rows and texts in others. Rows in YAML and JSON are the data that they are."""

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from mendflow.core.data.input_types import TABLE_ENDINGS
from mendflow.core.data.table_files import FILE_COLUMN
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import BadFlow, InvalidRequest, Problem
from mendflow.core.model.text_data import declared_number
from mendflow.core.model.values import Value
from mendflow.core.model.yes_no import boolean_of
from mendflow.formats import data_files
from mendflow.formats.spelling import nearest_word

SEPARATED: Final = {".csv": ",", ".tsv": "\t"}
ENDINGS: Final = TABLE_ENDINGS
TABLE_BYTES_MAX: Final = 10_000_000
PROBLEMS_MAX: Final = 20


class BadTable(BadFlow):
    """A table with problems; `problems` lists them, each with its line."""

    code = "bad-table"
    refused = "the table was refused"


class Row(NamedTuple):
    line: int
    cells: dict[str, Value]


def read_table(path: Path, columns: Mapping[str, str], folder: str = "") -> list[Value]:
    """The rows of a file. Paths in columns of files are relative to the folder of the table, and must exist. They come
    absolute, or relative to `folder`, which has the table. Raises BadTable."""
    text = _text(path)
    rows = list(_separated(text, path)) if path.suffix in SEPARATED else _data(text, path)
    problems: list[Problem] = []
    if not rows:
        raise _bad(path, 0, "the table has no rows")
    known = dict.fromkeys(name for row in rows for name in row.cells)
    for name in columns:
        if name not in known:
            likely = nearest_word(name, known)
            problems.append(Problem(file=str(path), message=f"the table has no column `{name}`", suggestion=likely))
    problems.extend(islice(_type_cells(rows, columns, path, folder), PROBLEMS_MAX))
    if problems:
        raise BadTable(problems=problems[:PROBLEMS_MAX])
    return [row.cells for row in rows]


def digest_of(path: Path) -> str:
    """The digest of a table as it is now; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _type_cells(rows: list[Row], columns: Mapping[str, str], path: Path, folder: str) -> Iterator[Problem]:
    """Make each cell what its column has; yield the problem of each that cannot be."""
    place = _Place(path.parent, folder)
    for row in rows:
        for name in (each for each in columns if each in row.cells):
            try:
                row.cells[name] = _typed(row.cells[name], columns[name], place)
            except ValueError as flaw:
                yield Problem(file=str(path), line=row.line, message=f"column {name}: {flaw}")


def _bad(path: Path, line: int, message: str) -> BadTable:
    return BadTable(problems=[Problem(file=str(path), line=line, message=message)])


def _text(path: Path) -> str:
    if path.suffix not in ENDINGS:
        raise _bad(path, 0, f"a table is a file that ends in {', '.join(ENDINGS)}")
    try:
        if path.stat().st_size > TABLE_BYTES_MAX:
            raise _bad(path, 0, "the table is larger than 10 MB; give it as an input of type file")
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        likely = nearest_word(path.name, _names_in(path.parent))
        missing = Problem(file=str(path), message="there is no such file", suggestion=likely)
        raise BadTable(problems=[missing]) from None
    except OSError as error:
        raise _bad(path, 0, f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _bad(path, line, "this is not UTF-8 text; save the table as UTF-8") from None


def _separated(text: str, path: Path) -> Iterator[Row]:
    """The rows of CSV or TSV. Spaces around a cell do not count, and a line without any cell is passed over; a cell in
    quotes is one, also if it is empty."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    sign = SEPARATED[path.suffix]
    if sign == "," and "," not in first and ";" in first:
        sign = ";"
    written = list(io.StringIO(text, newline=""))
    lines = csv.reader(written, delimiter=sign, skipinitialspace=True, strict=True)
    header: list[str] = []
    at = 1
    try:
        for cells in lines:
            line, at = at, lines.line_num + 1
            given = [cell.strip() for cell in cells]
            if not any(given) and '"' not in written[line - 1]:
                continue
            if not header:
                header = _header(given, path, line, sign)
            elif len(given) != len(header):
                raise _bad(path, line, _count_flaw(given, header))
            else:
                yield Row(line, dict(zip(header, given, strict=True)))
    except csv.Error as error:
        raise _bad(path, lines.line_num, f"this is not {path.suffix[1:].upper()}: {error}") from None
    if not header:
        raise _bad(path, 0, "the table is empty; its first line has the names of its columns")


def _header(names: list[str], path: Path, line: int, sign: str) -> list[str]:
    for number, name in enumerate(names, 1):
        if not name:
            raise _bad(path, line, f"column {number} has no name; the first line has the names of the columns")
        if name in names[: number - 1]:
            raise _bad(path, line, f"column {number} is called `{name}`, as column {names.index(name) + 1} is")
    if len(names) == 1 and "\t" in names[0] and sign != "\t":
        raise _bad(path, line, "the columns are separated by tabs; such a table ends in .tsv")
    return names


def _count_flaw(given: list[str], header: list[str]) -> str:
    if len(given) < len(header):
        return f"it has {len(given)} of {len(header)} columns; `{header[len(given)]}` is missing"
    return (
        f"it has {len(given)} columns, and the first line names {len(header)}; put a value with the separator in quotes"
    )


def _data(text: str, path: Path) -> list[Row]:
    try:
        rows = data_files.data_of(text, str(path))
    except InvalidRequest as invalid:
        raise BadTable(problems=[Problem(message=invalid.message)]) from None
    if not isinstance(rows, list):
        raise _bad(path, 0, "a table is a list of maps, one for each row")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise _bad(path, 0, f"row {number} is not a map; a table is a list of maps, one for each row")
    return [Row(0, row) for row in rows]


class _Place:
    """The folder of a table, in which its files are, and the folder that their paths become relative to."""

    def __init__(self, beside: Path, folder: str) -> None:
        self._beside = beside
        self._folder = folder
        self._names: dict[Path, list[str]] = {}

    def file(self, cell: Value) -> str:
        """The path of the file in the cell. Raises ValueError."""
        if not isinstance(cell, str):
            raise ValueError(f"{cell!r:.60} is not the path of a file")
        if "://" in cell or cell.startswith(LOGICAL_PREFIX):
            return cell
        path = self._beside / cell
        if not os.path.isfile(path):
            likely = nearest_word(path.name, self._names_beside(path))
            meant = f" (did you mean {likely}?)" if likely else ""
            raise ValueError(f"there is no file `{cell}` in {self._beside.absolute()}, the folder of the table{meant}")
        within = self._folder and not Path(cell).is_absolute()
        return os.path.relpath(path, self._folder) if within else str(path.absolute())

    def _names_beside(self, path: Path) -> list[str]:
        folder = path.parent
        if folder not in self._names:
            self._names[folder] = _names_in(folder)
        return self._names[folder]


def _names_in(folder: Path) -> list[str]:
    """The names in a folder; none if it cannot be listed."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def _typed(cell: Value, kind: str, place: _Place) -> Value:
    """The cell as what its column has; nothing is null, but for a text. Raises ValueError."""
    if kind == "string":
        return cell
    if cell is None or cell == "":
        return None
    if kind == FILE_COLUMN:
        return [place.file(each) for each in cell] if isinstance(cell, list) else place.file(cell)
    return _boolean(cell) if kind == "boolean" else _number(cell)


def _number(cell: Value) -> Value:
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return cell
    return declared_number(cell if isinstance(cell, str) else str(cell))


def _boolean(cell: Value) -> bool:
    if (found := boolean_of(str(cell))) is None:
        raise ValueError(f"{cell!r:.60} is neither true nor false")
    return found
