"""An operation: how it is asked for, and what becomes of its arguments on the way.

Each part of the path's template is an argument, a field of one (`{site.name}`), or half of an id that has two parts.
The others are the query of a GET or DELETE, and the fields of a JSON body of a POST or PUT, unless one of them is the
whole body: then the rest is the query."""

import inspect
import re
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import cached_property, wraps
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast
from urllib.parse import quote

import msgspec

from mendflow.core.data.paths import logical_name
from mendflow.lazy import lazy_pattern
from mendflow.operations.arguments import (
    IDEMPOTENCY,
    IN_QUERY,
    LOGICAL,
    REQUIRED,
    WHOLE,
    IdParts,
    Named,
    Parameter,
    Place,
    Spread,
    split_id,
    unmarked,
)
from mendflow.operations.roles import ADMINISTRATORS, AllowedRoles
from mendflow.operations.subjects import Subject

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Calls")
Method = Literal["GET", "HEAD", "PUT", "POST", "DELETE"]

_PLACEHOLDER = lazy_pattern(r"\{(\w+)(?:\.(\w+))?(?::(\w+))?\}")
_SENTENCE_END = lazy_pattern(r"(?<=\w)\.(?:\s+|$)")


class Request(NamedTuple):
    """An operation with its arguments, as HTTP has it."""

    path: str
    query: dict[str, str | int]
    body: object


class ApiOperation:
    """One entry of the table. `waits` names the argument by which the answer may be held back, in milliseconds; `id` is
    the name in the description, where that is not the function's. `on` is what it is about; without that it is for
    administrators. `audited`: whether the audit log has it; that is what changes anything, unless it says
    otherwise. `streams`: it lasts as long as whoever reads or sends its parts takes. `stores_body`: what it is sent is
    stored as it comes, in parts, with bounds of its own."""

    def __init__(
        self,
        name: str,
        method: Method,
        path: str,
        allowed: AllowedRoles,
        on: Subject | None = None,
        *,
        doc: str,
        tag: str = "",
        repeatable: bool = False,
        status: int = 200,
        waits: str = "",
        id: str = "",
        audited: bool | None = None,
        streams: bool = False,
        stores_body: bool = False,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.method, self.path = name, method, path
        self.subject = on
        self.allowed = allowed if on is not None else ADMINISTRATORS
        self.repeatable, self.status, self.waits = repeatable or method == "GET", status, waits
        self.id, self.tag = id or name, tag
        self.streams, self.stores_body = streams, stores_body
        self.audited = method not in ("GET", "HEAD") if audited is None else audited
        self._doc = doc
        self._function = function

    # What people read

    @property
    def summary(self) -> str:
        return self._texts[0]

    @property
    def description(self) -> str:
        more = self._texts[1]
        if self.allowed is ADMINISTRATORS and "or administrators" not in more:
            more = f"{more} For administrators.".lstrip()
        return more

    @cached_property
    def _texts(self) -> tuple[str, str]:
        """The first sentence without its full stop, and the rest."""
        text = " ".join(self._doc.split())
        first, *rest = _SENTENCE_END.split(text, maxsplit=1)
        return first, "".join(rest)

    # What goes in and out

    @property
    def is_call(self) -> bool:
        return self._function is not None

    @cached_property
    def signature(self) -> inspect.Signature:
        assert self._function is not None, f"{self.name} is no call"
        return inspect.signature(self._function)

    @property
    def result(self) -> Any:
        return self.signature.return_annotation

    @cached_property
    def rows(self) -> Any:
        """The type of the rows, if the answer is a page: over HTTP the rows, and in a header where to go on."""
        if not isinstance(self.result, type) or not issubclass(self.result, msgspec.Struct):
            return None
        types = {field.name: field.type for field in msgspec.structs.fields(self.result)}
        return types["rows"] if {"rows", "next"} <= types.keys() else None

    def arguments(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(None, *given, **named)
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        found = [each for name, each in self.signature.parameters.items() if name != "self"]
        return tuple(parameter for each in found for parameter in self._parameters_of(each))

    def _parameters_of(self, declared: inspect.Parameter) -> Iterator[Parameter]:
        type, marks = unmarked(declared.annotation)
        place: Place = self._place(declared.name, marks)
        spread = next((mark for mark in marks if isinstance(mark, Spread)), None)
        if spread is None:
            key, default = (
                next((mark.name for mark in marks if isinstance(mark, Named)), declared.name),
                declared.default,
            )
            yield Parameter(argument=declared.name, key=key, place=place, type=type, default=default, marks=marks)
            return
        for field in msgspec.structs.fields(type):
            if field.name not in spread.without:
                inner, more = unmarked(field.type)
                yield Parameter(
                    argument=declared.name,
                    field=field.name,
                    key=field.name,
                    place="query",
                    type=inner,
                    default=REQUIRED if field.required else field.default,
                    marks=more,
                )

    def struct_of(self, argument: str) -> type[msgspec.Struct]:
        """The type of an argument that is spread over the query."""
        found: type[msgspec.Struct] = unmarked(self.signature.parameters[argument].annotation)[0]
        return found

    def _place(self, name: str, marks: tuple[Any, ...]) -> Place:
        if WHOLE in marks:
            return "body"
        parts = next((mark for mark in marks if isinstance(mark, IdParts)), None)
        if parts is not None or any(first == name and not field for first, field, _ in self.placeholders):
            return "path"
        in_query = IN_QUERY in marks or self.method in ("GET", "DELETE") or self._has_whole_body
        return "query" if in_query else "field"

    @cached_property
    def idempotency_keys(self) -> tuple[str, ...]:
        """The arguments that make a repeated request the same one."""
        return tuple(each.argument for each in self.parameters if IDEMPOTENCY in each.marks)

    @cached_property
    def _has_whole_body(self) -> bool:
        return any(WHOLE in unmarked(each.annotation)[1] for each in self.signature.parameters.values())

    @cached_property
    def placeholders(self) -> list[tuple[str, str, str]]:
        """(name, field, kind) of each part of the path that is filled in."""
        return _PLACEHOLDER.findall(self.path)

    @cached_property
    def described_path(self) -> str:
        """The path as it is written for people: `/sites/{name}`."""
        return _PLACEHOLDER.sub(lambda found: f"{{{found[2] or found[1]}}}", self.path)

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """What says no more than its default is left out of a body: an older server may not know such a field."""
        query: dict[str, str | int] = {}
        body: Any = None
        for each in self.parameters:
            value = arguments[each.argument]
            if each.place == "query":
                query[each.key] = _query_text(getattr(value, each.field) if each.field else value)
            elif each.place == "body":
                body = value
            elif each.place == "field":
                body = body or {}
                if each.required or value != each.default:
                    body[each.key] = value
        return Request(self._filled(arguments), query, body)

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as they would arrive in another process, or an error that says which of them is wrong."""
        found: dict[str, Any] = {}
        for each in self.parameters:
            value = arguments[each.argument]
            if each.field:
                field = {each.field: each.checked(getattr(value, each.field))}
                found[each.argument] = msgspec.structs.replace(found.get(each.argument, value), **field)
            else:
                found[each.argument] = each.checked(value)
        return found

    def _filled(self, arguments: Mapping[str, Any]) -> str:
        parts: dict[str, str] = {}
        for each in self.parameters:
            value = arguments[each.argument]
            if each.place == "path" and each.mark(IdParts) is not None:
                case, serial = split_id(value)
                parts |= {"case": quote(case, safe=""), "serial": serial}
            elif LOGICAL in each.marks:
                # A name that is none is refused here: on its way it might become another.
                parts[each.argument] = quote(logical_name(value), safe="/").removeprefix("/")
            elif each.place == "path":
                parts[each.argument] = quote(str(value), safe="")

        def part(found: re.Match[str]) -> str:
            name, field = found[1], found[2]
            return quote(getattr(arguments[name], field), safe="") if field else parts[name]

        return _PLACEHOLDER.sub(part, self.path)


def _query_text(value: Any) -> str | int:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else cast(str | int, value)


class Calls(ABC):
    """Base of the declarations. Whoever inherits it says how an operation is asked for."""

    def __init_subclass__(cls, *, tag: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        for each in declared_by(cls) if tag else ():
            each.tag = tag

    @abstractmethod
    async def _ask(self, operation: ApiOperation, arguments: dict[str, Any]) -> Any:
        """The operation's answer."""


def operation(
    method: Method,
    path: str,
    allowed: AllowedRoles,
    on: Subject | None = None,
    *,
    repeatable: bool = False,
    status: int = 200,
    waits: str = "",
    id: str = "",
    audited: bool | None = None,
) -> Callable[
    [Callable[Concatenate[S, P], Coroutine[Any, Any, T]]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
]:
    """Declares an operation by a method without a body. The first sentence of its docstring is the summary."""

    def declare(
        function: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
        entry = ApiOperation(
            function.__name__,
            method,
            path,
            allowed,
            on,
            doc=function.__doc__ or "",
            repeatable=repeatable,
            status=status,
            waits=waits,
            id=id,
            audited=audited,
            function=function,
        )

        @wraps(function)
        async def ask(self: S, /, *given: P.args, **named: P.kwargs) -> T:
            return cast(T, await self._ask(entry, entry.arguments(given, named)))

        ask.__dict__["operation"] = entry
        return ask

    return declare


def declared_by(kind: type) -> list[ApiOperation]:
    """The operations that a class declares itself."""
    found = (getattr(each, "operation", None) for each in vars(kind).values() if isinstance(each, types.FunctionType))
    return [each for each in found if isinstance(each, ApiOperation)]
