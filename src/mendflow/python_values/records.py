"""Records: dataclasses, msgspec's Structs and NamedTuples are maps of their fields; members of enums go by name."""

import dataclasses
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.core.model.values import Value
from mendflow.python_values.errors import BadPythonValue, name_of
from mendflow.python_values.tags import TAG, VALUE, is_kind

DATACLASS: Final = "dataclass"
STRUCT: Final = "struct"
NAMEDTUPLE: Final = "namedtuple"
ENUM: Final = "enum"
RECORDS: Final = (DATACLASS, STRUCT, NAMEDTUPLE)

Encode = Callable[[Any], Value]
Decode = Callable[[Value, Any], Any]


class Field(NamedTuple):
    name: str
    annotation: Any
    required: bool


def record_kind(kind: Any) -> str:
    """Which kind of record a class is, or nothing."""
    if not isinstance(kind, type):
        return ""
    if issubclass(kind, msgspec.Struct):
        return STRUCT
    if dataclasses.is_dataclass(kind):
        return DATACLASS
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_field_defaults"):
        return NAMEDTUPLE
    return ENUM if issubclass(kind, Enum) else ""


def write_record(value: Any, kind: str, encode: Encode) -> dict[str, Value]:
    """The fields, and what they are fields of."""
    _demand_importable(type(value))
    fields: dict[str, Value] = {TAG: f"{kind} {name_of(type(value))}"}
    for name in field_names(type(value), kind):
        try:
            fields[name] = encode(getattr(value, name))
        except AttributeError:
            raise BadPythonValue(f"is a {name_of(type(value))} without its field `{name}`") from None
        except BadPythonValue as error:
            raise error.inside(f".{name}") from None
    return fields


def write_enum(value: Enum, encode: Encode) -> dict[str, Value]:
    _demand_importable(type(value))
    name = value.name if value.name in type(value).__members__ else None  # a combination of flags has none
    return {TAG: f"{ENUM} {name_of(type(value))}", "name": name, VALUE: encode(value.value)}


def _demand_importable(kind: type) -> None:
    if "<locals>" in kind.__qualname__:
        raise BadPythonValue(
            f"is a {name_of(kind)}, a class inside a function, which no other job can know; move it to the top of its"
            " file"
        )


def field_names(kind: type, record: str) -> Iterable[str]:
    if record == STRUCT:
        return kind.__struct_fields__  # type: ignore[attr-defined,no-any-return]  # a Struct
    if record == NAMEDTUPLE:
        return kind._fields  # type: ignore[attr-defined,no-any-return]  # a NamedTuple
    return [each.name for each in dataclasses.fields(kind)]


def fields_of(kind: type, record: str) -> list[Field]:
    """The fields with their annotations, evaluated where that is possible."""
    hints = hints_of(kind)
    if record == STRUCT:
        return [
            Field(each.name, hints.get(each.name, each.type), each.required) for each in msgspec.structs.fields(kind)
        ]
    if record == NAMEDTUPLE:
        defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined]  # a NamedTuple
        return [Field(name, hints.get(name, Any), name not in defaults) for name in field_names(kind, record)]
    missing = dataclasses.MISSING
    return [
        Field(each.name, hints.get(each.name, Any), each.default is missing and each.default_factory is missing)
        for each in dataclasses.fields(kind)
    ]


def hints_of(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - the text of an annotation may raise anything
        return {}


def read_record(fields: dict[str, Value], kind: type, decode: Decode) -> Any:
    """A record of this class from its fields. A map of the user's may have them, too."""
    record = record_kind(kind)
    declared = {each.name: each for each in fields_of(kind, record)}
    if unknown := sorted(fields.keys() - declared.keys()):
        known = ", ".join(declared) or "none"
        raise BadPythonValue(f"has the field `{unknown[0]}`, which {name_of(kind)} has not; its fields are: {known}")
    if missing := [each.name for each in declared.values() if each.required and each.name not in fields]:
        raise BadPythonValue(f"lacks the field `{missing[0]}` of {name_of(kind)}")
    values = {}
    for name, value in fields.items():
        try:
            values[name] = decode(value, declared[name].annotation)
        except BadPythonValue as error:
            raise error.inside(f".{name}") from None
    return _made_dataclass(kind, values) if record == DATACLASS else _made(kind, values)


def _made(kind: type, values: dict[str, Any]) -> Any:
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise BadPythonValue(f"cannot be made into a {name_of(kind)}: {error}") from None


def _made_dataclass(kind: type, values: dict[str, Any]) -> Any:
    """By its constructor, as its own code may do more there; then each field has the value that it had."""
    given = {each.name: values[each.name] for each in dataclasses.fields(kind) if each.init and each.name in values}
    made = _made(kind, given)
    for name, value in values.items():
        if getattr(made, name, made) is not value:
            object.__setattr__(made, name, value)
    return made


def read_enum(value: Value, kind: type[Enum]) -> Enum:
    """A member by what was written of it, or by its value or name."""
    if is_kind(value):
        name = value.get("name")
        if isinstance(name, str):
            if name in kind.__members__:
                return kind.__members__[name]
            raise BadPythonValue(f"is {name}, which {name_of(kind)} has not; it has {', '.join(kind.__members__)}")
        value = value.get(VALUE)
    try:
        return kind(value)
    except ValueError:
        if isinstance(value, str) and value in kind.__members__:
            return kind.__members__[value]
    raise BadPythonValue(
        f"is {value!r:.60}, which is none of {', '.join(kind.__members__)} of {name_of(kind)}"
    ) from None
