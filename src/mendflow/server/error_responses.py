"""Error responses, the same on every route: {code, message, fields}, with the HTTP status of the error.

An unexpected exception is a bug of ours: the caller gets an id, and the log has the traceback under the same id."""

import re
import traceback
from collections.abc import Mapping
from typing import Any

from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, ValidationException

from mendflow.core.model.errors import (
    InvalidRequest,
    NotFound,
    RequestError,
    TooLarge,
)
from mendflow.core.model.values import LEVELS_MAX
from mendflow.operations.table import methods_at
from mendflow.server.error_bodies import BAD_TEXT, ClientDisconnected, WrongMethod, body_of, headers_of, log_unforeseen

AnyRequest = Request[Any, Any, Any]


_TOO_DEEP = (
    f"the body is nested too deeply: lists and maps may stand in each other at most {LEVELS_MAX} levels deep;"
    " make it flatter, or give it as a file"
)
_BODY_READERS = ("decode_json", "decode_msgpack")
_DISCONNECTED = "client disconnected prematurely"


def _from_litestar(error: HTTPException, path: str) -> RequestError | None:
    """An error that the framework raised before the handler was called; None if it is not the caller's error."""
    if isinstance(error, ValidationException):
        return _first_bad_field(error)
    if isinstance(error, MethodNotAllowedException):
        return WrongMethod("this address does not know that method", methods=methods_at(path))
    if error.status_code == 404:
        return NotFound("there is nothing at this address; see /api/v1/openapi.json for what there is")
    if error.status_code == 413:
        return TooLarge("the body is too large; put large values into files")
    if error.status_code < 500:
        return InvalidRequest(_sentence(error.detail))
    return ClientDisconnected(_DISCONNECTED) if error.detail == _DISCONNECTED else None


_EXTRA_KEY = re.compile(r"^data\.?")


def _first_bad_field(error: ValidationException) -> InvalidRequest:
    """The first field that is invalid, with its path and what was expected."""
    found = error.extra if isinstance(error.extra, list) else []
    first: Mapping[str, Any] = found[0] if found and isinstance(found[0], dict) else {}
    place = _EXTRA_KEY.sub("", str(first.get("key", ""))) or "body"
    text = str(first.get("message", "")) or _sentence(error.detail)
    fields = [{"field": str(one.get("key", "")), "message": str(one.get("message", ""))} for one in found]
    return InvalidRequest(f"{place}: {text}", field=place, problems=fields)


def _sentence(detail: str) -> str:
    """The reason alone: the framework appends the names of its own types."""
    return detail.removeprefix("Failed to decode JSON: ") or "the request is malformed"


def on_error(_: AnyRequest, error: RequestError) -> Response[bytes]:
    return Response(body_of(error), status_code=error.status, media_type=MediaType.JSON, headers=headers_of(error))


def on_refusal(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    refusal = _from_litestar(error, request.scope["path"])
    return on_error(request, refusal or log_unforeseen(error, request.method, request.scope["path"]))


def on_deep_nesting(request: AnyRequest, error: RecursionError) -> Response[bytes]:
    """The error for an oversized body, if one was being read; otherwise a bug of ours."""
    refusal = (
        InvalidRequest(_TOO_DEEP, field="body")
        if _is_reading(error)
        else log_unforeseen(error, request.method, request.scope["path"])
    )
    return on_error(request, refusal)


def on_bad_text(request: AnyRequest, error: UnicodeDecodeError) -> Response[bytes]:
    """The error for a body that is no text, if one was being read; otherwise a bug of ours."""
    refusal = InvalidRequest(BAD_TEXT.format("body"), field="body") if _is_reading(error) else None
    return on_error(request, refusal or log_unforeseen(error, request.method, request.scope["path"]))


def _is_reading(error: BaseException) -> bool:
    return any(frame.f_code.co_name in _BODY_READERS for frame, _ in traceback.walk_tb(error.__traceback__))


def on_unforeseen(request: AnyRequest, error: Exception) -> Response[bytes]:
    return on_error(request, log_unforeseen(error, request.method, request.scope["path"]))


HANDLERS: dict[int | type[Exception], Any] = {
    RequestError: on_error,
    HTTPException: on_refusal,
    UnicodeDecodeError: on_bad_text,
    RecursionError: on_deep_nesting,
    Exception: on_unforeseen,
}
