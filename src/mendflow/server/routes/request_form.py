"""What an operation's request looks like to the framework, and the arguments that become of one."""

import inspect
import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec
from litestar import Response
from litestar.datastructures import MultiDict
from litestar.params import PathParameter, QueryParameter, RawBody

from mendflow.core.model.errors import InvalidRequest
from mendflow.operations.arguments import IdParts, Parameter
from mendflow.operations.operation import ApiOperation
from mendflow.server.routes.json_body import decode_json
from mendflow.server.routes.parameters import TheApplication, TheCaller, TheDomain, TheOpenRequests

_KEY = "in_{}"
"""The name in Python of what stands in the query: some names of the API mean something else to the framework."""
KEYS_SHOWN = 5
_BOUNDS = ("ge", "le", "min_length", "description")


def signature_of(operation: ApiOperation, *, is_joint: bool = False) -> inspect.Signature:
    """The parameters that the framework is to find in a request. `is_joint`: several servers may do it together."""
    found = [*_dependencies(operation, is_joint), *_in_path(operation), *_in_query(operation), *_in_body(operation)]
    result = operation.result if operation.rows is None else types.GenericAlias(Response, (operation.rows,))
    return inspect.Signature(found, return_annotation=result)


def _wanted(name: str, type: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type, default=default)


def _dependencies(operation: ApiOperation, is_joint: bool) -> Iterator[inspect.Parameter]:
    yield _wanted("domain", TheDomain)
    yield _wanted("caller", TheCaller)
    if operation.waits:
        yield _wanted("open_requests", TheOpenRequests)
    if is_joint:
        yield _wanted("application", TheApplication)


def _in_path(operation: ApiOperation) -> Iterator[inspect.Parameter]:
    for name, type in path_types(operation).items():
        yield _wanted(name, Annotated[_plain(type), PathParameter(**_bounds(type))])


def _in_query(operation: ApiOperation) -> Iterator[inspect.Parameter]:
    for each in operation.parameters:
        if each.place == "query":
            type, default = each.checked_type, each.default
            if type is not each.type and not each.required:
                default = None
            told = QueryParameter(name=each.key, **_bounds(type))
            yield _wanted(_KEY.format(each.key), Annotated[_plain(type), told], default)


def _in_body(operation: ApiOperation) -> Iterator[inspect.Parameter]:
    """The body comes as its bytes: the framework would read `"3"` as a number, and 0 as false."""
    if body_type(operation) is not None:
        yield _wanted("body", RawBody)


def path_types(operation: ApiOperation) -> dict[str, Any]:
    """The parts of the path that are filled in, and their types."""
    found: dict[str, Any] = {field or name: str for name, field, _ in operation.placeholders}
    for each in operation.parameters if operation.is_call else ():
        if each.place == "path":
            parts = each.mark(IdParts)
            found |= {each.argument: each.type} if parts is None else parts._asdict()
    return found


def route_path(operation: ApiOperation) -> str:
    """The path as the router wants it, each part with its type."""
    path, kinds = operation.described_path, {field or name: kind for name, field, kind in operation.placeholders}
    for name, type in path_types(operation).items():
        kind = kinds[name] or ("int" if _plain(type) is int else "str")
        path = path.replace(f"{{{name}}}", f"{{{name}:{kind}}}")
    return path


@cache
def body_type(operation: ApiOperation) -> Any:
    """The type of the body: that of the argument which is all of it, or a struct of its fields that knows no other
    field, so that a misspelt one is not ignored."""
    whole = next((each for each in operation.parameters if each.place == "body"), None)
    if whole is not None and not whole.is_strict:
        return whole.type
    if whole is not None:
        return _strict_struct(whole.type.__name__, [], whole.type)
    fields = [each for each in operation.parameters if each.place == "field"]
    name = "".join(word.capitalize() for word in operation.name.split("_"))
    known = [(each.key, each.type, *(() if each.required else (each.default,))) for each in fields]
    return _strict_struct(name, known) if fields else None


def wants_body(operation: ApiOperation) -> bool:
    """Whether a request without a body is refused."""
    return any(each.required for each in operation.parameters if each.place in ("field", "body"))


@cache
def _decoder_of(operation: ApiOperation) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(body_type(operation))


def _body_of(operation: ApiOperation, given: dict[str, Any]) -> Any:
    if body_type(operation) is None or (not given["body"] and not wants_body(operation)):
        return None
    return decode_json(_decoder_of(operation), given["body"])


def _strict_struct(name: str, fields: list[Any], base: type[msgspec.Struct] = msgspec.Struct) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        f"{name}Body", fields, bases=(base,), module=__name__, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def arguments_of(operation: ApiOperation, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the domain's function, from what the framework has found."""
    found: dict[str, Any] = {}
    spread: dict[str, dict[str, Any]] = {}
    body = _body_of(operation, given)
    for each in operation.parameters:
        fields = spread.setdefault(each.argument, {}) if each.field else found
        fields[each.field or each.argument] = _value(each, given, body)
    found |= {argument: operation.struct_of(argument)(**fields) for argument, fields in spread.items()}
    for argument, field, _ in operation.placeholders:
        if field and (told := getattr(found[argument], field)) != given[field]:
            meant = operation.request(found).path
            raise InvalidRequest(
                f"its {field} is {told!r} in the body and {given[field]!r} in the path; put it to {meant}", field=field
            )
    return found


def _value(parameter: Parameter, given: dict[str, Any], body: Any) -> Any:
    if parameter.place == "query":
        value = given[_KEY.format(parameter.key)]
        return parameter.default if value is None and not parameter.required else value
    if parameter.place == "path":
        if parameter.mark(IdParts) is not None:
            return f"{given['case']}/{given['serial']}"
        value = given[parameter.argument]
        # The rest of a path begins with a slash: so does a logical name, but no other id.
        return value if parameter.is_logical or not isinstance(value, str) else value.removeprefix("/")
    if parameter.place == "body":
        return parameter.type(**msgspec.structs.asdict(body)) if parameter.is_strict else body
    return parameter.default if body is None else getattr(body, parameter.key)


def query_keys(signature: inspect.Signature) -> dict[str, bool]:
    """The names that a query may have, and of each whether it is null where it is left out."""
    return {
        mark.name or each.name: types.NoneType in get_args(get_args(each.annotation)[0])
        for each in signature.parameters.values()
        for mark in (get_args(each.annotation)[1:] if get_origin(each.annotation) is Annotated else ())
        if isinstance(mark, QueryParameter)
    }


def demand_known_keys(operation: ApiOperation, known: Iterable[str], query: MultiDict[Any]) -> None:
    """Refuse what nobody would look at: who writes it means something by it."""
    unknown = sorted(query.keys() - set(known))
    if not unknown:
        return
    in_body = [each.key for each in operation.parameters if each.place == "field"] if operation.is_call else []
    names = ", ".join(f"`{each:.40}`" for each in unknown[:KEYS_SHOWN])
    known_here = ", ".join(sorted(known)) or "none"
    body = f"; in the body: {', '.join(in_body)}" if in_body else ""
    told = f"{operation.method} {operation.path} does not know {names} in the query; it knows: {known_here}{body}"
    raise InvalidRequest(told, field=unknown[0], problems=[{"field": unknown[0], "message": told}])


def demand_no_null(keys: frozenset[str], query: MultiDict[Any]) -> None:
    """The framework takes the word `null` for what is left out, where that may be; whoever sends it means a word."""
    for key in keys & query.keys():
        if any(str(value).lower() == "null" for value in query.getall(key)):
            told = "leave it out, or give it a value; `null` is none"
            raise InvalidRequest(f"{key}: {told}", field=key, problems=[{"field": key, "message": told}])


def _plain(type: Any) -> Any:
    """The type without its bounds, of which the framework is told separately."""
    if get_origin(type) is Annotated:
        return _plain(get_args(type)[0])
    bounded = [each for each in get_args(type) if get_origin(each) is Annotated]
    return _plain(bounded[0]) | None if bounded else type


def _bounds(type: Any) -> dict[str, Any]:
    """The bounds and the description of a type."""
    found = {name: value for each in get_args(type) for name, value in _bounds(each).items()}
    for mark in get_args(type)[1:] if get_origin(type) is Annotated else ():
        if isinstance(mark, msgspec.Meta):
            told = {name: getattr(mark, name) for name in _BOUNDS}
            found |= {name: value for name, value in told.items() if value is not None}
    return found
