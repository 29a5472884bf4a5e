"""Error bodies as bytes: {code, message, fields}, with the HTTP status of the error. Requests of pilots and other
servers need only these, so they load without the web framework.

An unexpected exception is a bug of ours: the caller gets an id, and the log has the traceback under the same id."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, ClassVar

import msgspec

from mendflow.core.model.errors import InternalError, RequestError, TemporarilyUnavailable, Unauthorized

if TYPE_CHECKING:
    from litestar.types import Send

log = logging.getLogger("mendflow.server")


class WrongMethod(RequestError):
    code: ClassVar[str] = "method-not-allowed"
    status: ClassVar[int] = 405


class ClientDisconnected(RequestError):
    """The caller disconnected before the response was complete. Nobody reads the answer; it only ends the work."""

    code: ClassVar[str] = "hung-up"


def _as_json(value: object) -> object:
    """Fields are for people: a value that is not JSON-serializable is replaced by its text."""
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_as_json)


def body_of(mistake: RequestError) -> bytes:
    return _encoder.encode({"code": mistake.code, "message": mistake.message, "fields": mistake.fields})


def headers_of(mistake: RequestError) -> dict[str, str]:
    if isinstance(mistake, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": "1"} if isinstance(mistake, TemporarilyUnavailable) else {}


async def send_mistake(send: Send, mistake: RequestError) -> None:
    """Answer a raw ASGI request with an error."""
    body = body_of(mistake)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(mistake).items()]
    await send({"type": "http.response.start", "status": mistake.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def log_unforeseen(error: BaseException, method: str, path: str) -> InternalError:
    """Log the traceback under a new id, and return that id. The query is left out: it may hold data."""
    id = uuid.uuid4().hex[:12]
    log.error("internal error %s at %s %s", id, method, path, exc_info=error)
    return InternalError(f"the server failed; its log tells why under {id}. Please report it", id=id)
