"""What may be given to an input of a flow, by the type that it declares."""

from collections.abc import Callable
from functools import partial
from typing import Final

from mendflow.core.data.table_files import is_table
from mendflow.core.expressions import is_template
from mendflow.core.model.flow import FILE, FILES, TABLE, Input
from mendflow.core.model.moments import MOMENTS, is_moment
from mendflow.core.model.values import Value, file_of

TABLE_ENDINGS: Final = (".csv", ".tsv", ".json", ".yaml", ".yml")
_TYPES: Final[dict[str, Callable[[Value], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    TABLE: is_table,
    FILE: lambda value: (isinstance(value, str) and value != "") or file_of(value) is not None,
    FILES: lambda value: all(
        isinstance(each, str) or file_of(each) is not None for each in (value if isinstance(value, list) else [value])
    ),
    **{moment: partial(is_moment, moment) for moment in MOMENTS},
}
_EXPECTED: Final = {FILES: "a pattern of files, or a list of them", **MOMENTS}
_BY_PATH: Final = {
    FILE: "the path of a file",
    TABLE: f"the path of a table, which ends in {', '.join(TABLE_ENDINGS)}, or a list of maps",
}


def is_of_type(declared: Input, value: Value) -> bool:
    check = _TYPES.get(declared.type)
    return check is None or check(value) or (value is None and not declared.required)


def expected_text(type: str) -> str:
    return _EXPECTED.get(type) or f"a {type}"


def is_table_path(declared: Input, value: Value) -> bool:
    """Whether this names a table, whose rows the input gets when a case begins."""
    return declared.type == TABLE and isinstance(value, str) and value.endswith(TABLE_ENDINGS)


def planned_value_flaw(declared: Input, value: Value) -> str:
    """Why cases that begin later cannot be given this value; empty if they can, or if an expression decides."""
    if (isinstance(value, str) and is_template(value)) or is_table_path(declared, value):
        return ""
    if is_of_type(declared, value):
        return ""
    return f"it must be {_BY_PATH.get(declared.type) or expected_text(declared.type)}, not {value!r:.80}"
