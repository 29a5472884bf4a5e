"""An argument of an operation, as it is declared: its type, with marks that say where it stands in a request."""

import inspect
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from mendflow.core.data.paths import logical_name
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.parameters import OneOf

T = TypeVar("T")
M = TypeVar("M")
Place = Literal["path", "query", "field", "body"]
REQUIRED: Any = inspect.Parameter.empty


class Named(NamedTuple):
    """The argument's name in a request, where that is another than in Python."""

    name: str


class Spread(NamedTuple):
    """Each field of the argument is a parameter of the query, but these."""

    without: tuple[str, ...] = ()


class IdParts(NamedTuple):
    """The argument is an id `CASE/SERIAL`, whose parts stand in the path one by one."""

    case: Any
    serial: Any


class _Mark:
    """Says something of the argument that it stands beside."""


WHOLE, STRICT, IN_QUERY, LOGICAL, IDEMPOTENCY = _Mark(), _Mark(), _Mark(), _Mark(), _Mark()
Body = Annotated[T, WHOLE]
"""The argument is the whole body."""
StrictBody = Annotated[T, WHOLE, STRICT]
"""The whole body, in which a field that its type does not know is refused."""
Query = Annotated[T, IN_QUERY]
LogicalName = Annotated[str, LOGICAL]
"""The name of a logical file, with `lfn:` or without."""
IdempotencyKey = Annotated[str, IDEMPOTENCY]
"""What makes a repeated request the same one. A client that is given none makes one up."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a request. `key` is its name there; `field` is the field of the argument that it is, if it is not
    the whole argument."""

    argument: str
    field: str = ""
    key: str
    place: Place
    type: Any
    default: Any = REQUIRED
    marks: tuple[Any, ...] = ()

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_logical(self) -> bool:
        return LOGICAL in self.marks

    @property
    def is_strict(self) -> bool:
        return STRICT in self.marks

    def mark(self, kind: type[M]) -> M | None:
        return next((mark for mark in self.marks if isinstance(mark, kind)), None)

    @property
    def checked_type(self) -> Any:
        """The type that a request is held to. A text of which only some words are allowed may be left out."""
        words = self.mark(OneOf)
        return words.words | None if words is not None else self.type

    def checked(self, value: Any) -> Any:
        """The value as it arrives elsewhere: through JSON, and within the bounds that its type has."""
        if LOGICAL in self.marks:
            return logical_name(value)
        if self.mark(IdParts) is not None:
            split_id(value)
        if self.mark(OneOf) is not None:
            return check_value(self.key, value or None, self.checked_type) or self.default
        return check_value(self.key, value, self.checked_type)


def check_value(key: str, value: Any, type: Any) -> Any:
    """The value after JSON, if it is of that type and within its bounds."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=type)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{key}: {error}", field=key) from error


def split_id(id: str) -> tuple[str, str]:
    """The case and the serial: only the last slash parts the two. A job that was submitted again has `~2` after it."""
    case, _, serial = id.rpartition("/")
    if not case or not serial.replace("~", "", 1).isdecimal():
        raise NotFound(
            f"{id!r} names no job or user task; such an id is CASE/NUMBER, for example align-7f3k/12, or CASE:ITEM, for"
            " example last:align",
            id=id,
        )
    return case, serial


_OWN_MARKS = (Named, Spread, IdParts, OneOf, _Mark)


def unmarked(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type without our marks, and these."""
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    type, *more = get_args(annotation)
    marks = tuple(each for each in more if isinstance(each, _OWN_MARKS))
    kept = tuple(each for each in more if not isinstance(each, _OWN_MARKS))
    return (Annotated[(type, *kept)] if kept else type), marks
