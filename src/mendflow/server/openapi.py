"""The OpenAPI description, made from the routes, plus what the routes cannot express. The schemas come from the very
types that are decoded and encoded, so the description always matches the server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec
from litestar import Litestar, Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.routes import HTTPRoute

from mendflow.core.model.data import LocateAnswer, LocateRequest, PlaceAnswer, PlaceRequest, StoreAnswer, StoreRequest
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.sessions import SignInRequest
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import ChangeEvent
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import API, CALLS, OPERATIONS
from mendflow.server.openapi_keys import say_keys
from mendflow.server.routes.request_form import body_type, wants_body
from mendflow.version import VERSION

Json = dict[str, Any]

_REF = "#/components/schemas/"


class ErrorView(msgspec.Struct, frozen=True):
    """The body of every error: a stable code, a sentence that says what to do, and the fields that it is about."""

    code: str
    message: str
    fields: dict[str, Any]


_PACKED = {
    "sync": (SyncRequest, SyncAnswer),
    "locate": (LocateRequest, LocateAnswer),
    "place": (PlaceRequest, PlaceAnswer),
    "keep_many": (StoreRequest, StoreAnswer),
}
_TYPES = [ErrorView, ChangeEvent, HistoryEntry, *(type for both in _PACKED.values() for type in both)]
"""What is read and written without a route that says so."""

# Two types are called Job: the activity of a flow, and the document that a pilot works on.
_RENAMED = {
    "mendflow.core.model.flow.Job": "JobActivity",
    "mendflow.core.model.jobs.Job": "Job",
    "flow_Job": "JobActivity",
    "jobs_Job": "Job",
}
_BINARY = {"type": "string", "format": "binary"}
_BY_ID = {each.id: each for each in OPERATIONS.values()}
_ERRORS = {
    400: "Something in the request is wrong, or means nothing; `fields` says what",
    401: "The server wants a token that it knows",
    403: "This token may not do that",
    404: "There is no such thing",
    408: "The request came too slowly",
    409: "It cannot be done as things are now",
    413: "The body is too large",
    422: "The document can be read, and has errors; `fields` has each with its place",
    429: "Too many requests; Retry-After says when to come back",
    431: "The headers are too large",
    500: "The server has a bug; its log has the reason under the id in `fields`",
    503: "The server, or its store, cannot answer now; nothing was changed",
}
_OF_ALL = {400, 401, 403, 404, 408, 409, 429, 431, 500, 503}
_WITH_BODY = {413, 422}


def describe(routes: Sequence[HTTPRouteHandler], dependencies: Mapping[str, Provide]) -> Json:
    """Builds an application around the routes only to describe them; the one that serves has none of the framework's
    own pages."""
    config = OpenAPIConfig(
        title="mendflow",
        version=VERSION,
        description="What has the character NUL in a name, an id or another text of its form is refused (400).",
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _path: handler.handler_name,
    )
    router = Router(API, route_handlers=routes)
    app = Litestar([router], dependencies=dependencies, openapi_config=config, logging_config=None)
    base = app.openapi_schema.to_schema()
    paths: Json = _rewritten(base["paths"])
    for path in paths.values():
        for operation in path.values():
            _tidy(operation)
    for name, (asked, told) in _PACKED.items():
        paths[f"{API}{OPERATIONS[name].path}"] = {"post": _packed(OPERATIONS[name], asked, told)}
    bodies = _body_types()
    types = [*bodies.values(), *_TYPES, *_route_types(app)]
    shown, schemas = msgspec.json.schema_components(types, ref_template=_REF + "{name}")
    say_keys(types, schemas)
    for name, schema in zip(bodies, shown, strict=False):
        operation = paths[f"{API}{OPERATIONS[name].described_path}"][OPERATIONS[name].method.lower()]
        operation["requestBody"] = _json_body(OPERATIONS[name], _rewritten(schema))
    named = {_RENAMED.get(name, name): _rewritten(schema) for name, schema in schemas.items()}
    bearer = {"type": "http", "scheme": "bearer", "description": "Wanted where the server has tokens."}
    return {
        "openapi": "3.1.0",
        "info": base["info"],
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": named, "securitySchemes": {"token": bearer}},
    }


def _route_types(app: Litestar) -> Iterator[type]:
    """What the routes give."""
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            yield from _structs_in(handler.parsed_fn_signature.return_type.annotation)


def _body_types() -> dict[str, Any]:
    """The type of each JSON body, by its operation. Routes get the bytes, and decode them as these."""
    found = {each.name: body_type(each) for each in CALLS}
    return {**{name: type for name, type in found.items() if type is not None}, "sign_in": SignInRequest}


def _json_body(operation: ApiOperation, schema: Json) -> Json:
    required = not operation.is_call or wants_body(operation)
    return {"content": {"application/json": {"schema": schema}}, "required": required}


def _structs_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for part in get_args(annotation):
        yield from _structs_in(part)


def _rewritten(value: Any) -> Any:
    """The same document, with every reference replaced by our name for the type."""
    if isinstance(value, list):
        return [_rewritten(one) for one in value]
    if not isinstance(value, dict):
        return value
    ref = value.get("$ref")
    if isinstance(ref, str):
        name = ref.removeprefix(_REF)
        return {"$ref": _REF + _RENAMED.get(name, name)}
    return {key: _rewritten(one) for key, one in value.items()}


def _tidy(operation: Json) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
        parameter.pop("deprecated", None)
        parameter.pop("allowEmptyValue", None)
        parameter.pop("allowReserved", None)
    operation["responses"] |= _refusals(_BY_ID[operation["operationId"]])
    operation.pop("deprecated", None)
    if _BY_ID[operation["operationId"]].allowed.anybody:
        operation["security"] = []
    if special := _SPECIAL.get(operation["operationId"]):
        special(operation)


def _without_null(schema: Json) -> Json:
    """In a query, leaving a value out means null."""
    either = schema.get("oneOf", [])
    if {"type": "null"} in either:
        rest = [one for one in either if one != {"type": "null"}]
        return rest[0] if len(rest) == 1 else {"oneOf": rest}
    if isinstance(schema.get("enum"), list) and None in schema["enum"]:
        return {"type": "string", "enum": [one for one in schema["enum"] if one is not None]}
    return schema


def _refusal(description: str) -> Json:
    return _content(description, "application/json", {"$ref": _REF + "ErrorView"})


def _content(description: str, media_type: str, schema: Json) -> Json:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _packed(operation: ApiOperation, asked: type, answered: type) -> Json:
    """The MessagePack requests of pilots, which the routes do not include."""
    request, answer = {"$ref": _REF + asked.__name__}, {"$ref": _REF + answered.__name__}
    media_type = "application/vnd.msgpack"
    return {
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "operationId": operation.id,
        "requestBody": {"content": {media_type: {"schema": request}}, "required": True},
        "responses": {
            "200": _content(answered.__doc__ or "", media_type, answer),
            **_refusals(operation),
        },
    }


def _refusals(operation: ApiOperation) -> Json:
    """The errors that an operation can answer with, by its place in the table."""
    found = set(_OF_ALL)
    if operation.allowed.anybody:
        found -= {401, 403}
    if operation.method in ("POST", "PUT"):
        found |= _WITH_BODY
    return {str(status): _refusal(_ERRORS[status]) for status in sorted(found)}


def _store_file(operation: Json) -> None:
    operation["requestBody"] = {"content": {"application/octet-stream": {"schema": _BINARY}}, "required": True}


def _kept(operation: Json) -> None:
    operation["responses"]["200"] = _content("The content", "application/octet-stream", _BINARY)


def _export(operation: Json) -> None:
    operation["responses"]["200"] = _content("The archive", "application/gzip", _BINARY)


def _import(operation: Json) -> None:
    operation["requestBody"] = {"content": {"application/gzip": {"schema": _BINARY}}, "required": True}


def _file_size(operation: Json) -> None:
    operation["responses"]["200"] = {"description": "It is kept; Content-Length tells its size"}


def _stream(operation: Json) -> None:
    text = {"type": "string"}
    told = {"anyOf": [{"$ref": _REF + "ChangeEvent"}, {"type": "object", "maxProperties": 0}]}
    data = {**text, "contentMediaType": "application/json", "contentSchema": told}
    event = {"type": "object", "properties": {"id": text, "event": text, "data": data}}
    operation["responses"]["200"] = _content("Server-sent events, each of this form", "text/event-stream", event)


def _lines(operation: Json) -> None:
    operation["responses"]["200"] = _content("JSON lines", "application/jsonl", {"type": "string"})


def _history(operation: Json) -> None:
    entries = {"type": "array", "items": {"$ref": _REF + "HistoryEntry"}}
    operation["responses"]["200"] = _content("What happened, in order", "application/json", entries)
    operation["responses"]["200"]["content"]["application/xml"] = {"schema": {"type": "string"}}


def _flow_history(operation: Json) -> None:
    operation["responses"]["200"] = _content("An XES log", "application/xml", {"type": "string"})


def _health(operation: Json) -> None:
    operation["responses"]["503"] = _content("The store is away", "application/json", {"$ref": _REF + "Health"})


def _sign_in(operation: Json) -> None:
    operation["responses"]["204"].pop("content", None)
    operation["responses"] |= {str(status): _refusal(_ERRORS[status]) for status in (401, 403)}


_SPECIAL: dict[str, Callable[[Json], None]] = {
    "store_file": _store_file,
    "read_file": _kept,
    "file_size": _file_size,
    "export": _export,
    "import_archive": _import,
    "case_events": _stream,
    "all_events": _stream,
    "export_audit": _lines,
    "health": _health,
    "sign_in": _sign_in,
    "sign_out": _sign_in,
    "history": _history,
    "flow_history": _flow_history,
}
