"""A handle stands for a value that is not known yet: an input of the flow, or a job's result.

It can be passed on, indexed, and put into a text. Its value cannot be used while the flow is being built; trying to
raises an error that says so."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from mendflow.core.expressions import RESERVED, ExpressionError, template_parts
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value
from mendflow.formats.python.problems import bad_flow

MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Handle:
    """`h["rows"]`, `h.rows` and `h[0]` are parts of the value; in an f-string it becomes `${{ expression }}`."""

    __slots__ = ("_expression", "_files", "_owner")

    def __init__(self, owner: object, expression: str, files: str = "") -> None:
        self._owner = owner
        self._expression = expression
        self._files = files

    def file(self, name: str) -> "Handle":
        """A file of the job's result, by its name in the job's `files`."""
        if not self._files:
            raise bad_flow(f"`{self._expression}` is not a job, and leaves no files")
        return Handle(self._owner, self._files + step(name))

    def __getitem__(self, key: str | int) -> "Handle":
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            raise bad_flow(f"a part of a value has a name or a number, not {key!r}; do this inside a job")
        return Handle(self._owner, self._expression + step(key))

    def __getattr__(self, name: str) -> "Handle":
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __str__(self) -> str:
        return f"${{{{ {self._expression} }}}}"

    def __format__(self, _spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<what will be {self._expression}>"

    def __iter__(self) -> Iterator[Any]:
        self._unknown("cannot be iterated", "use job.map(...) to do something for each element")

    def __len__(self) -> int:
        self._unknown("has no length", "take it inside a job")

    def __bool__(self) -> bool:
        self._unknown("cannot be tested", 'use job.options(when=f"{value} > 3") to run a job or not')

    def __contains__(self, _: object) -> bool:
        self._unknown("cannot be searched", "do it inside a job")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        self._unknown("cannot be called", "pass it to a job")

    def _unknown(self, what: str, instead: str) -> NoReturn:
        raise bad_flow(f"`{self._expression}` is not known while the flow is being built: it {what}; {instead}")


for _operator in (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "int",
    "float",
):

    def _refuse(self: Handle, *_: object, _name: str = _operator) -> NoReturn:
        self._unknown("cannot be computed with", 'do it inside a job, or in an expression: when=f"{value} > 3"')

    setattr(Handle, f"__{_operator}__", _refuse)


def step(key: str | int) -> str:
    """One step of a path in an expression."""
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if MEMBER.fullmatch(key) and key not in RESERVED else f"[{json.dumps(key)}]"


def template_of(value: Any, owner: object, what: str) -> Value:
    """Plain data with its handles as templates. Anything that is not JSON-serializable is refused."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Handle():
            if value._owner is not owner:
                raise bad_flow(f"{what}: `{value._expression}` belongs to another flow; pass it in as an input")
            return str(value)
        case list() | tuple():
            return [template_of(part, owner, what) for part in value]
        case Mapping() if all(isinstance(key, (str, Handle)) for key in value):
            return {str(key): template_of(part, owner, what) for key, part in value.items()}
    raise bad_flow(
        f"{what} is {type(value).__name__}, which is not plain data; "
        "give None, true or false, numbers, texts, lists or dicts with texts as keys"
    )


def condition_of(given: Any, owner: object) -> Expr:
    """A condition: true or false, a handle, or a text such as f"{rows} > 3"."""
    if isinstance(given, bool):
        return Expr(str(given).lower())
    text = template_of(given, owner, "when")
    if not isinstance(text, str):
        raise bad_flow('when is a text with an expression, such as f"{rows} > 3"')
    try:
        parts = template_parts(text)
    except ExpressionError as error:
        raise bad_flow(f"when: {error.message}") from None
    if len(parts) == 1:
        return Expr(parts[0].text)
    return Expr("".join(f"({part.text})" if part.is_expression else part.text for part in parts))
