"""An error as bytes: {code, message, fields}, under the error's own status. What pilots and other servers ask is
answered with these alone, so they load without the framework that has the routes.

An exception that nobody foresaw is our bug: the caller gets an id, the log gets the story under the same id."""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from mendflow.core.model.errors import (
    InternalError,
    RequestError,
    StoreUnavailable,
    TemporarilyUnavailable,
    TooManyRequests,
    Unauthorized,
)
from mendflow.operations.table import OPTIONS, methods_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litestar.types import HTTPScope, Send

log = logging.getLogger("mendflow.server")


LOG_AGAIN_S: Final = 60.0
_logged: Final[dict[str, float]] = {}
"""What was said of the store last, and when it may be said again."""

BAD_TEXT = "the {} is no text in UTF-8; encode it so, or send bytes as a file"


class WrongMethod(RequestError):
    code: ClassVar[str] = "method-not-allowed"
    status: ClassVar[int] = 405

    def __init__(self, message: str, *, methods: Sequence[str]) -> None:
        super().__init__(message, methods=list(methods))
        self.methods = methods


class ClientDisconnected(RequestError):
    """The caller disconnected before the response was complete. Nobody reads the answer; it only ends the work."""

    code: ClassVar[str] = "hung-up"


def _as_json(value: object) -> object:
    """Fields are for people: a value that is not JSON-serializable is replaced by its text."""
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_as_json)


def for_clients(error: RequestError) -> RequestError:
    """The error as whoever asks may know it: the address of the store is for the log."""
    if not isinstance(error, StoreUnavailable):
        return error
    _log_store(error.message)
    return StoreUnavailable(error.told, told=error.told)


def _log_store(reason: str) -> None:
    """Once in a while: while a store is away, every request is answered so."""
    now = time.monotonic()
    if now >= _logged.get(reason, 0.0):
        _logged.clear()
        _logged[reason] = now + LOG_AGAIN_S
        log.warning("requests are refused because the store cannot be used: %s", reason)


def body_of(error: RequestError) -> bytes:
    error = for_clients(error)
    return _encoder.encode({"code": error.code, "message": error.message, "fields": error.fields})


def headers_of(error: RequestError) -> dict[str, str]:
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.fields["retry_after_s"])}
    if isinstance(error, WrongMethod):
        return {"Allow": ", ".join(error.methods)}
    return {"Retry-After": "1"} if isinstance(error, TemporarilyUnavailable) else {}


async def send_error(send: Send, error: RequestError) -> None:
    """Answer a raw ASGI request with an error."""
    body = body_of(error)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(error).items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def answer_other_method(scope: HTTPScope, send: Send) -> bool:
    """Whether the method is none of those that the address knows: then it was answered which these are. The framework
    would tell those of one of its routes only, and does not know the paths of pilots."""
    method, methods = scope["method"], methods_at(scope["path"])
    if method == OPTIONS and methods:
        allow = (b"allow", ", ".join(methods).encode())
        await send({"type": "http.response.start", "status": 204, "headers": [allow]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    elif methods and method not in methods:
        told = "this address does not know that method; see /api/v1/openapi.json"
        await send_error(send, WrongMethod(told, methods=methods))
    return bool(methods) and (method == OPTIONS or method not in methods)


def log_unforeseen(error: BaseException, method: str, path: str) -> InternalError:
    """Log the traceback under a new id, and return that id. The query is left out: it may hold data."""
    id = uuid.uuid4().hex[:12]
    log.error("internal error %s at %s %s", id, method, path, exc_info=error)
    return InternalError(f"the server failed; its log tells why under {id}. Please report it", id=id)
