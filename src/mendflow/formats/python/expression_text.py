"""The text of expressions that are made from handles and plain data by Python's operators."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from mendflow.core.model.values import INT_MAX, INT_MIN
from mendflow.formats.python.problems import bad_flow

FORMS: Final[dict[str, str]] = {
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
    "eq": "{a} == {b}",
    "ne": "{a} != {b}",
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "mul": "{a} * {b}",
    "truediv": "{a} / {b}",
    "mod": "({a} % {b} + {b}) % {b}",
    "floordiv": "({a} - ({a} % {b} + {b}) % {b}) / {b}",
    "and": "{a} && {b}",
    "or": "{a} || {b}",
}
"""Each operator as an expression says it. There a remainder has the sign of the dividend; the forms give what Python
gives."""

COMPARISONS: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
CONDITIONS: Final = frozenset({"and", "or"})


def literal_text(value: Any) -> str:
    """Plain data as it stands in an expression."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if INT_MIN <= value <= INT_MAX:
            return str(value) if value >= 0 else f"({value})"
        case float() if math.isfinite(value):
            return repr(value) if value >= 0 else f"({value!r})"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(map(literal_text, value))}]"
        case Mapping() if all(isinstance(key, str) for key in value):
            return f"{{{', '.join(f'{literal_text(key)}: {literal_text(part)}' for key, part in value.items())}}}"
    raise bad_flow(
        f"{value!r:.80} cannot stand in an expression; compare and compute with None, true or false, numbers, texts, "
        "lists or dicts"
    )
