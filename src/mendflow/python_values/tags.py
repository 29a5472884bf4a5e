"""How a value of Python stands in plain data.

A map with the key `$python` is a value of a kind: `{"$python": "date", "value": "2026-03-01"}`. A record (a dataclass,
a Struct, a NamedTuple) is the map of its fields with that key beside them, so that an expression can ask for a field:
`{"$python": "dataclass shapes.Point", "x": 1, "y": 2}`.
A reference to a file that has the key `python` is a value whose content is that file: an array, bytes, a path.

A dict of the user's that looks like any of this is written as the list of its pairs, so it is read as what it was."""

from collections.abc import Mapping
from typing import Any, Final

from mendflow.core.data.path_arguments import PLACED
from mendflow.core.model.references import FILE_KEY, SEALED_KEY, SPILLED_KEY
from mendflow.core.model.values import CONTENT_KIND, Value, content_kind, file_of

TAG: Final = "$python"
VALUE: Final = "value"
RESERVED: Final = frozenset({TAG, PLACED, SPILLED_KEY, SEALED_KEY})

PATH: Final = "path"


def tagged(kind: str, value: Value, **others: Value) -> dict[str, Value]:
    return {TAG: kind, VALUE: value, **others}


def is_kind(value: Value) -> bool:
    """Whether this is plain data that stands for a value of Python: not for one in a file."""
    return type(value) is dict and TAG in value


def kind_of(value: dict[str, Value]) -> tuple[str, str]:
    """The kind of a value, and of a record or a member of an enum the name of its class."""
    kind, _, name = str(value[TAG]).partition(" ")
    return kind, name


def looks_reserved(value: Mapping[Any, Any]) -> bool:
    """Whether a dict of the user's could be taken for something of ours."""
    return not RESERVED.isdisjoint(value) or (FILE_KEY in value and file_of(value) is None)


def has_tags(value: Value) -> bool:
    """Whether something in plain data stands for a value of Python."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) is list:
            pending.extend(each)
        elif type(each) is dict:
            if TAG in each or (CONTENT_KIND in each and content_kind(each)):
                return True
            pending.extend(each.values())
    return False
