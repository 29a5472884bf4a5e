"""Values that jobs exchange: plain data, and files by reference.

A value is JSON-serializable. Its size is bounded; a larger one is stored as a file, and the value is then a reference
to it. Expressions see references, never the content.

A map is a reference only if it is well-formed: whatever else has the key `$file` is plain data, and names no file."""

import math
from typing import Any, Final

import msgspec

from mendflow.lazy import lazy_pattern

Value = Any
"""None, bool, int, float, str, list of values, dict from str to value: JSON."""

VALUE_BYTES_MAX = 64 * 1024
"""A value whose JSON is longer than this is spilled to a file by its producer."""

LEVELS_MAX: Final = 64
"""The maximum nesting of lists and maps."""

PARTS_MAX: Final = 250_000
"""The maximum number of parts of a value that somebody gives."""

MADE_PARTS_MAX: Final = 1_000_000
"""The same of a value that a case makes, which detects one that contains itself many times. A replay refuses what was
refused, and nothing else: it stays as it is."""

FILE_BYTES_MAX: Final = 2**53
"""No file is larger."""

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""Integers that all our JSON readers accept."""

SMALL_MIN, SMALL_MAX = -(2**60), 2**60


PART_BYTES: Final = 60
LIST_BYTES: Final = 60
MAP_BYTES: Final = 220
"""About what a part of a value takes in memory, beside its text, and what a list and a map take beside their parts."""


def memory_of(value: Value) -> int:
    """About how many bytes of memory a value takes."""
    found, pending = 0, [value]
    while pending:
        each = pending.pop()
        kind = type(each)
        if kind is str:
            found += len(each)
        elif kind is dict:
            found += MAP_BYTES + PART_BYTES * len(each) + sum(map(len, each))
            pending.extend(each.values())
        elif kind is list:
            found += LIST_BYTES + PART_BYTES * len(each)
            pending.extend(each)
    return found


def check_made_value(value: Value) -> str:
    """The same as check_value, of a value that a case has made."""
    return check_value(value, MADE_PARTS_MAX)


def check_value(value: Value, parts_max: int = PARTS_MAX) -> str:
    """Empty, or why this value cannot be stored and sent. Iterative, because a value may be nested deeper than the
    recursion limit; depth first, so that a cycle ends at the last level."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return "" if kind is int and SMALL_MIN < value < SMALL_MAX else _check_scalar(value)
    pending: list[tuple[Value, int]] = [(value, 1)]
    parts = 0
    while pending:
        each, level = pending.pop()
        parts += len(each)
        if level > LEVELS_MAX:
            return f"it is nested deeper than {LEVELS_MAX} levels; make it flatter, or give it as a file"
        if parts > parts_max:
            return f"it has more than {parts_max:,} parts; give it as a file"
        if type(each) is dict:
            for key in each:
                if not isinstance(key, str):
                    return f"the key {key!r:.80} of a map is not text; write it as text"
                if reason := _check_scalar(key):
                    return reason
            each = each.values()
        for part in each:
            kind = type(part)
            if kind is dict or kind is list:
                pending.append((part, level + 1))
            elif (kind is int and SMALL_MIN < part < SMALL_MAX) or (kind is str and part.isascii()):
                continue  # most parts are such: this is run for every job
            elif part is not None and (reason := _check_scalar(part)):
                return reason
    return ""


def _check_scalar(value: Value) -> str:
    if value is None or value is True or value is False:
        return ""
    if isinstance(value, str):
        return "" if value.isascii() or _is_unicode(value) else "a text in it is not Unicode; give such data as a file"
    if type(value) is int:
        if INT_MIN <= value <= INT_MAX:
            return ""
        return f"a whole number of {value.bit_length()} bits is too large for JSON, which has 64; give it as text"
    if type(value) is float:
        return "" if math.isfinite(value) else f"{value} is not a number that JSON can represent; give null or text"
    return f"JSON cannot represent a {type(value).__name__}; give plain data: text, numbers, lists, maps"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file known by its content. In a value it stands as a dict with the key `$file`. The server keeps it, unless it
    has a `logical` name: then the catalogue knows where it lies. One that is `executable` is so wherever it is put.
    `folder` is where it lay in the folder of the job that left it, if not at the top."""

    sha256: str
    bytes: int
    name: str
    logical: str = ""
    executable: bool = False
    folder: str = ""

    def as_value(self) -> dict[str, Value]:
        value: dict[str, Value] = {"$file": self.sha256, "bytes": self.bytes, "name": self.name}
        if self.logical:
            value["logical"] = self.logical
        if self.executable:
            value["executable"] = True
        if self.folder:
            value["folder"] = self.folder
        return value


CONTENT_KIND: Final = "python"
"""Beside `$file` in a reference: what the content of the file is to Python."""

_DIGEST = lazy_pattern(r"[0-9a-f]{64}")


def is_digest(text: Value) -> bool:
    """Whether this is the SHA-256 of a content, and so safe to use in paths."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def is_size(number: Value) -> bool:
    """Whether this can be the size of a file."""
    return type(number) is int and 0 <= number <= FILE_BYTES_MAX


def file_of(value: Value) -> FileRef | None:
    """The file that a value refers to, if it is a reference."""
    if not isinstance(value, dict) or not is_digest(value.get("$file")):
        return None
    size, name, logical = value.get("bytes", 0), value.get("name", ""), value.get("logical", "")
    if not is_size(size) or not isinstance(name, str) or not isinstance(logical, str):
        return None
    executable, folder = value.get("executable") is True, value.get("folder")
    return FileRef(
        sha256=value["$file"],
        bytes=size,
        name=name,
        logical=logical,
        executable=executable,
        folder=folder if isinstance(folder, str) else "",
    )


def content_kind(value: Value) -> str:
    """What the content of a file is to Python, if the reference says so: an array, bytes, a path. The value is then
    that, and not the reference."""
    if type(value) is not dict or "$file" not in value or file_of(value) is None:
        return ""
    kind = value.get(CONTENT_KIND)
    return kind if isinstance(kind, str) else ""


def has_files(value: Value) -> bool:
    """Whether a value is, or contains, a reference to a file."""
    if not isinstance(value, (dict, list)):
        return False
    pending: list[Value] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if file_of(each) is not None:
                return True
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
    return False


def is_executable(mode: int) -> bool:
    """Whether the mode of a file lets its owner execute it."""
    return bool(mode & 0o100)


def spilled_value(ref: FileRef) -> dict[str, Value]:
    """The placeholder of a spilled value: a reference to a file with its JSON."""
    return {"$spilled": ref.sha256, "bytes": ref.bytes}


def is_spilled(value: Value) -> bool:
    """Whether the value says that it stands for one that is stored, and so cannot be read here."""
    return isinstance(value, dict) and isinstance(value.get("$spilled"), str)


def spilled_file(value: Value) -> FileRef | None:
    """The file with the JSON of a spilled value."""
    if not isinstance(value, dict) or not is_digest(value.get("$spilled")) or not is_size(value.get("bytes", 0)):
        return None
    return FileRef(sha256=value["$spilled"], bytes=value.get("bytes", 0), name="value.json")
