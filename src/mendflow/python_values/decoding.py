"""Reads plain data as the values of Python that they stand for, and as what an annotation asks for."""

import datetime
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from mendflow.core.model.values import FileRef, Value, content_kind, file_of
from mendflow.python_values import arrays, scalars
from mendflow.python_values.annotations import KnownClasses, bare, is_union, says_nothing
from mendflow.python_values.contents import ContentReader
from mendflow.python_values.errors import BadPythonValue, name_of
from mendflow.python_values.records import ENUM, RECORDS, read_enum, read_record, record_kind
from mendflow.python_values.tags import PATH, TAG, VALUE, is_kind, kind_of

_SETS: Final[dict[str, type]] = {"set": set, "frozenset": frozenset}
_LISTS: Final = (list, typing.Sequence, typing.Iterable)


class PythonDecoder:
    """`reader` knows where contents lie, `known` which classes there are."""

    def __init__(self, reader: ContentReader, known: KnownClasses) -> None:
        self._reader = reader
        self._known = known

    def decode(self, value: Value, annotation: Any = Any) -> Any:
        """The value that plain data stand for. Raises `BadPythonValue`."""
        wanted = bare(annotation)
        if says_nothing(wanted):
            return self._natural(value)
        return self._as_wanted(value, wanted)

    # what the data say themselves

    def _natural(self, value: Value) -> Any:
        if type(value) is list:
            return self._each(value, Any)
        if type(value) is not dict:
            return value
        if kind := content_kind(value):
            ref = file_of(value)
            assert ref is not None, "it has a kind"
            return self._content(ref, kind)
        if TAG in value:
            return self._of_kind(value)
        return self._map(value, Any)

    def _of_kind(self, value: dict[str, Value]) -> Any:
        kind, name = kind_of(value)
        try:
            if kind in scalars.READERS:
                return scalars.READERS[kind](value)
            if kind == arrays.NUMPY:
                return arrays.read_inline(value)
            if kind == "tuple":
                return tuple(self._each(value[VALUE], Any))
            if kind in _SETS:
                return _SETS[kind](self._each(value[VALUE], Any))
            if kind == "dict":
                return {self._natural(key): self.decode(each) for key, each in value[VALUE]}
        except BadPythonValue:
            raise
        except scalars.MALFORMED as error:
            raise BadPythonValue(
                f"has the key `{TAG}` like a value of the kind {kind!r:.40}, and is none: {error}"
            ) from None
        if kind in RECORDS or kind == ENUM:
            return self._of_class(value, kind, name)
        raise BadPythonValue(f"has the key `{TAG}`, which mendflow uses itself, with the unknown kind {kind!r:.60}")

    def _of_class(self, value: dict[str, Value], kind: str, name: str) -> Any:
        found = self._known.find(name, kind)
        if found is None:
            raise BadPythonValue(
                f"is a {name}, which the function does not know; annotate its parameter with that class, or import the"
                " class in its file"
            )
        return self._member(value, found)

    def _member(self, value: Value, kind: type) -> Any:
        """A record or a member of an enum of this class."""
        if issubclass(kind, Enum):
            return read_enum({**value, VALUE: self._natural(value.get(VALUE))} if is_kind(value) else value, kind)
        return read_record({key: each for key, each in value.items() if key != TAG}, kind, self.decode)

    def _content(self, ref: FileRef, kind: str) -> Any:
        if kind == PATH:
            return self._reader.own_copy(ref)
        if kind in arrays.KINDS:
            return arrays.read_array(ref, kind, self._reader)
        if kind not in ("bytes", "bytearray"):
            raise BadPythonValue(f"is a file of the unknown kind {kind!r:.60}")
        with open(self._reader.local_path(ref), "rb") as file:
            content = file.read()
        return content if kind == "bytes" else bytearray(content)

    def _each(self, values: list[Value], annotation: Any) -> list[Any]:
        read: list[Any] = []
        try:
            for each in values:
                read.append(self.decode(each, annotation))
        except BadPythonValue as error:
            raise error.inside(f"[{len(read)}]") from None
        return read

    def _map(self, values: dict[str, Value], annotation: Any) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for key, each in values.items():
            try:
                read[key] = self.decode(each, annotation)
            except BadPythonValue as error:
                raise error.inside(f"[{key!r:.60}]") from None
        return read

    # what an annotation asks for

    def _as_wanted(self, value: Value, wanted: Any) -> Any:
        origin, parts = get_origin(wanted), get_args(wanted)
        if is_union(origin):
            return self._as_one_of(value, parts)
        if origin is not None or wanted in (list, tuple, set, frozenset, dict):
            return self._as_container(value, origin or wanted, parts)
        if record := record_kind(wanted):
            return self._as_member(value, wanted, record)
        found = self._natural(value)
        if isinstance(found, str):
            return _from_text(found, wanted)
        if isinstance(found, list) and _is_array(wanted):
            return arrays.library_for(arrays.NUMPY).asarray(found)
        return found

    def _as_member(self, value: Value, wanted: type, record: str) -> Any:
        """A record or a member of an enum of the class that is asked for, or of one made from it."""
        if is_kind(value):
            kind, name = kind_of(value)
            if kind != record:
                return self._natural(value)
            found = self._known.find(name, kind)
            return self._member(value, found if found is not None and issubclass(found, wanted) else wanted)
        if record == ENUM:
            return None if value is None else read_enum(value, wanted)
        if isinstance(value, list) and record == "namedtuple":
            names: tuple[str, ...] = wanted._fields  # type: ignore[attr-defined]  # a NamedTuple
            value = dict(zip(names, value, strict=False)) if len(value) <= len(names) else value
        if type(value) is dict and not content_kind(value):
            return self._member(value, wanted)
        if value is None:
            return None
        raise BadPythonValue(f"is {_shown(value)}, and a {name_of(wanted)} is wanted: give a map of its fields")

    def _as_one_of(self, value: Value, members: tuple[Any, ...]) -> Any:
        if value is None:
            return None
        flaws: list[BadPythonValue] = []
        for each in sorted(members, key=lambda member: not self._is_meant(value, bare(member))):
            if each is type(None):
                continue
            try:
                found = self.decode(value, each)
            except BadPythonValue as flaw:
                flaws.append(flaw)
                continue
            if _fits(found, bare(each)):
                return found
        if flaws:
            raise flaws[0]
        return self._natural(value)

    def _is_meant(self, value: Value, member: Any) -> bool:
        """Whether the data name this class."""
        if not is_kind(value) or not (record := record_kind(member)):
            return False
        kind, name = kind_of(value)
        found = self._known.find(name, kind) if kind == record else None
        return found is not None and issubclass(found, member)

    def _as_container(self, value: Value, origin: Any, parts: tuple[Any, ...]) -> Any:
        if not isinstance(origin, type):
            return self._natural(value)
        values = value[VALUE] if is_kind(value) and kind_of(value)[0] in ("tuple", *_SETS) else value
        if issubclass(origin, tuple) and type(values) is list:
            return self._as_tuple(values, parts)
        if issubclass(origin, (set, frozenset)) and type(values) is list:
            return origin(self._each(values, parts[0] if parts else Any))
        if type(value) is list and origin in (list, *(get_origin(each) for each in _LISTS)):
            return self._each(value, parts[0] if parts else Any)
        if issubclass(origin, Mapping) and type(value) is dict and not content_kind(value):
            return self._as_map(value, parts)
        if type(value) is list and _is_array(origin):
            return arrays.library_for(arrays.NUMPY).asarray(self._natural(value))
        return self._natural(value)

    def _as_tuple(self, values: list[Value], parts: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(self._each(values, parts[0]))
        if not parts or len(parts) != len(values):
            return tuple(self._each(values, Any))
        return tuple(self.decode(each, part) for each, part in zip(values, parts, strict=True))

    def _as_map(self, value: dict[str, Value], parts: tuple[Any, ...]) -> Any:
        key, element = parts if len(parts) == 2 else (Any, Any)
        if is_kind(value):
            if kind_of(value)[0] != "dict":
                return self._natural(value)
            return {self.decode(name, key): self.decode(each, element) for name, each in value[VALUE]}
        read = self._map(value, element)
        return {_key_from_text(name, bare(key)): each for name, each in read.items()}


def _from_text(text: str, wanted: Any) -> Any:
    if wanted is Path:
        return Path(text)
    if wanted not in scalars.HAS_TEXT:
        return text
    try:
        return scalars.from_text(text, wanted)
    except scalars.MALFORMED:
        example = " such as 2026-03-01" if wanted is datetime.date else ""
        raise BadPythonValue(f"is {text!r:.60}, which is no {name_of(wanted)}{example}") from None


def _key_from_text(text: str, wanted: Any) -> Any:
    if wanted not in (int, float):
        return _from_text(text, wanted) if isinstance(wanted, type) else text
    try:
        return wanted(text)
    except ValueError:
        return text


def _fits(found: Any, member: Any) -> bool:
    origin = get_origin(member) or member
    if origin is float:
        return isinstance(found, (int, float)) and not isinstance(found, bool)
    return not isinstance(origin, type) or isinstance(found, origin)


def _is_array(wanted: Any) -> bool:
    numpy = arrays.loaded(arrays.NUMPY)
    return numpy is not None and wanted is numpy.ndarray


def _shown(value: Value) -> str:
    return f"{value!r:.60}" if not isinstance(value, dict) else "a map"
