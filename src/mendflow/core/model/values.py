"""What flows between jobs: plain data, and files by reference.

A value is what JSON can say. Its size is bounded; what is larger travels as a file, and the value then is a
reference to it. Expressions see references, never the content."""

from typing import Any

import msgspec

Value = Any
"""None, bool, int, float, str, list of values, dict from str to value: what JSON can say."""

VALUE_BYTES_MAX = 64 * 1024
"""A value whose JSON is longer than this is spilled to a file by whoever made it."""


class FileRef(msgspec.Struct, frozen=True, kw_only=True):
    """A file the server keeps, known by its content. In a value it stands as a dict with the key `$file`."""

    sha256: str
    bytes: int
    name: str

    def as_value(self) -> dict[str, Value]:
        return {"$file": self.sha256, "bytes": self.bytes, "name": self.name}


def file_of(value: Value) -> FileRef | None:
    """The file that a value refers to, if it is a reference to one."""
    if isinstance(value, dict) and isinstance(value.get("$file"), str):
        return FileRef(sha256=value["$file"], bytes=int(value.get("bytes", 0)), name=str(value.get("name", "")))
    return None


def spilled(ref: FileRef) -> dict[str, Value]:
    """The value that stands for a spilled one: a reference whose content is the JSON of the real value."""
    return {"$spilled": ref.sha256, "bytes": ref.bytes}
