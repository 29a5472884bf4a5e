"""Which words may be the keys of a mapping: the schemas that are made from types leave that out."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

_INTEGER: Final = "^(0|-?[1-9][0-9]{0,17})$"


def say_keys(types: Iterable[Any], schemas: dict[str, Any]) -> None:
    """Add the words to the schemas of the structs that these types are made of."""
    for struct in _structs(kinds.multi_type_info(types)):
        said = schemas.get(struct.cls.__name__, {}).get("properties", {})
        for field in struct.fields:
            if isinstance(field.type, kinds.DictType) and field.encode_name in said:
                said[field.encode_name] |= _names(field.type)


def _names(mapping: kinds.DictType) -> dict[str, Any]:
    key = mapping.key_type
    if isinstance(key, kinds.EnumType):
        return {"propertyNames": {"enum": [each.value for each in key.cls]}}
    if isinstance(key, kinds.IntType):
        return {"propertyNames": {"pattern": _INTEGER}}
    return {"propertyNames": {"enum": list(key.values)}} if isinstance(key, kinds.LiteralType) else {}


def _structs(given: Iterable[kinds.Type]) -> Iterator[kinds.StructType]:
    """All structs in there, each once."""
    waiting: list[kinds.Type] = list(given)
    seen: set[type[msgspec.Struct]] = set()
    while waiting:
        match waiting.pop():
            case kinds.StructType() as struct if struct.cls not in seen:
                seen.add(struct.cls)
                yield struct
                waiting += [field.type for field in struct.fields]
            case kinds.DictType(value_type=inner) | kinds.CollectionType(item_type=inner):
                waiting.append(inner)
            case kinds.UnionType(types=several) | kinds.TupleType(item_types=several):
                waiting += several
            case kinds.Metadata(type=inner):
                waiting.append(inner)
