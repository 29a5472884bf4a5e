"""Writes values of Python as plain data."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from mendflow.core.model.values import Value
from mendflow.python_values import arrays, scalars
from mendflow.python_values.contents import ContentWriter
from mendflow.python_values.errors import BadPythonValue, unknown_type
from mendflow.python_values.records import ENUM, record_kind, write_enum, write_record
from mendflow.python_values.tags import looks_reserved, tagged

_AS_THEY_ARE: Final[frozenset[type]] = frozenset({str, bool, type(None)})
_ordered = msgspec.json.Encoder(order="deterministic").encode


class PythonEncoder:
    """Writes values for one result or one set of arguments. What is large goes to files of `writer`."""

    _as_they_are: frozenset[type] = _AS_THEY_ARE

    def __init__(self, writer: ContentWriter) -> None:
        self._writer = writer

    def encode(self, value: Any) -> Value:
        """Plain data that stands for the value. Raises `BadPythonValue`, which says where and why not."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is int or kind is float:
            return scalars.number(value)
        if kind is list or kind is tuple:
            return self._list(value)
        if kind is dict:
            return self._dict(value)
        write = scalars.WRITERS.get(kind)
        if write is None:
            return self._other(value)
        if (kind is bytes or kind is bytearray) and len(value) > self._writer.inline_bytes:
            return self._writer.write("content.bin", kind.__name__, lambda file: _fill(file, value))
        return write(value)

    def _other(self, value: Any) -> Value:
        if record := record_kind(type(value)):
            return write_enum(value, self.encode) if record == ENUM else write_record(value, record, self.encode)
        if isinstance(value, (set, frozenset)):
            return tagged(
                "frozenset" if isinstance(value, frozenset) else "set", sorted(self._keys(value), key=_ordered)
            )
        if isinstance(value, Path):
            return self._writer.take(value)
        if kind := arrays.array_kind(value):
            return arrays.write_array(value, kind, self._writer)
        if arrays.is_numpy_scalar(value):
            return self.encode(arrays.plain_number(value))
        return self._of_subclass(value)

    def _of_subclass(self, value: Any) -> Value:
        """Classes that are made from those of JSON mean the same to a reader."""
        if isinstance(value, dict):
            return self._dict(value)
        plain: Any = next((each for each in (str, int, float, list, tuple) if isinstance(value, each)), None)
        if plain is not None:
            return self.encode(plain(value))
        raise unknown_type(value)

    def _list(self, values: Iterable[Any]) -> list[Value]:
        written: list[Value] = []
        try:
            for each in values:
                written.append(each if type(each) in self._as_they_are else self.encode(each))
        except BadPythonValue as error:
            raise error.inside(f"[{len(written)}]") from None
        return written

    def _dict(self, values: dict[Any, Any]) -> Value:
        if any(type(key) is not str for key in values) or looks_reserved(values):
            return tagged("dict", self._pairs(values))
        written: dict[str, Value] = {}
        for key, each in values.items():
            try:
                written[key] = each if type(each) in self._as_they_are else self.encode(each)
            except BadPythonValue as error:
                raise error.inside(f"[{key!r:.60}]") from None
        return written

    def _pairs(self, values: dict[Any, Any]) -> list[Value]:
        written: list[Value] = []
        for key, each in values.items():
            try:
                written.append([self._key(key), self.encode(each)])
            except BadPythonValue as error:
                raise error.inside(f"[{key!r:.60}]") from None
        return written

    def _keys(self, values: Iterable[Any]) -> list[Value]:
        return [self._key(each) for each in values]

    def _key(self, value: Any) -> Value:
        """A key of a dict or an element of a set. A tuple stays one there: a list could not be read as either."""
        if type(value) is tuple:
            return tagged("tuple", self._keys(value))
        return self.encode(value)


def _fill(file: BinaryIO, content: bytes) -> None:
    file.write(content)
