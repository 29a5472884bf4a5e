"""How the server words a mistake, on every route alike: {code, message, fields}, under the mistake's own status.

An exception that nobody foresaw is our bug: the caller gets an id, the log gets the story under the same id."""

import logging
import re
import traceback
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, ValidationException
from litestar.types import Send

from mendflow.core.model.problems import Invalid, Mistake, NotFound, NotNow, ServerFailed, TooLarge, Unauthorized
from mendflow.core.model.values import LEVELS_MAX

log = logging.getLogger("mendflow.server")

AnyRequest = Request[Any, Any, Any]


class MethodRefused(Mistake):
    code: ClassVar[str] = "method-not-allowed"
    status: ClassVar[int] = 405


class HungUp(Mistake):
    """The caller went away before all was said. Nobody reads the answer; it only ends the work."""

    code: ClassVar[str] = "hung-up"


def _plain(value: object) -> object:
    """Fields are for people: whatever JSON cannot say is told in words."""
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def body_of(mistake: Mistake) -> bytes:
    return _encoder.encode({"code": mistake.code, "message": mistake.message, "fields": mistake.fields})


def headers_of(mistake: Mistake) -> dict[str, str]:
    if isinstance(mistake, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": "1"} if isinstance(mistake, NotNow) else {}


async def send_mistake(send: Send, mistake: Mistake) -> None:
    """Answer a raw ASGI request with a mistake."""
    body = body_of(mistake)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(mistake).items()]
    await send({"type": "http.response.start", "status": mistake.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def unforeseen(error: BaseException, method: str, path: str) -> ServerFailed:
    """Put the story into the log, and give an id that finds it there. The query is left out: it may hold data."""
    id = uuid.uuid4().hex[:12]
    log.error("internal error %s at %s %s", id, method, path, exc_info=error)
    return ServerFailed(f"the server failed; its log tells why under {id}. Please report it", id=id)


_BOMB = (
    f"the body is nested too deeply: lists and maps may stand in each other at most {LEVELS_MAX} levels deep;"
    " make it flatter, or give it as a file"
)
_READERS = ("decode_json", "decode_msgpack")
_HUNG_UP = "client disconnected prematurely"


def _of_litestar(error: HTTPException) -> Mistake | None:
    """What the framework refused before a handler was asked; None if it is no mistake of the caller."""
    if isinstance(error, ValidationException):
        return _misfit(error)
    if isinstance(error, MethodNotAllowedException):
        return MethodRefused("this address does not know that method; see /api/v1/openapi.json")
    if error.status_code == 404:
        return NotFound("there is nothing at this address; see /api/v1/openapi.json for what there is")
    if error.status_code == 413:
        return TooLarge("the body is too large; put large values into files")
    if error.status_code < 500:
        return Invalid(_sentence(error.detail))
    return HungUp(_HUNG_UP) if error.detail == _HUNG_UP else None


_EXTRA_KEY = re.compile(r"^data\.?")


def _misfit(error: ValidationException) -> Invalid:
    """The first field that does not fit, with its path and what was expected."""
    found = error.extra if isinstance(error.extra, list) else []
    first: Mapping[str, Any] = found[0] if found and isinstance(found[0], dict) else {}
    place = _EXTRA_KEY.sub("", str(first.get("key", ""))) or "body"
    told = str(first.get("message", "")) or _sentence(error.detail)
    fields = [{"field": str(one.get("key", "")), "message": str(one.get("message", ""))} for one in found]
    return Invalid(f"{place}: {told}", field=place, problems=fields)


def _sentence(detail: str) -> str:
    """The framework names its own types after the reason; callers need the reason."""
    return detail.removeprefix("Failed to decode JSON: ") or "the request is malformed"


def on_mistake(_: AnyRequest, mistake: Mistake) -> Response[bytes]:
    return Response(
        body_of(mistake), status_code=mistake.status, media_type=MediaType.JSON, headers=headers_of(mistake)
    )


def on_refusal(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    told = _of_litestar(error)
    return on_mistake(request, told or unforeseen(error, request.method, request.scope["path"]))


def on_bomb(request: AnyRequest, error: RecursionError) -> Response[bytes]:
    """Somebody's body, if it was being read; else a fault of ours."""
    reading = any(frame.f_code.co_name in _READERS for frame, _ in traceback.walk_tb(error.__traceback__))
    told = Invalid(_BOMB, field="body") if reading else unforeseen(error, request.method, request.scope["path"])
    return on_mistake(request, told)


def on_anything(request: AnyRequest, error: Exception) -> Response[bytes]:
    return on_mistake(request, unforeseen(error, request.method, request.scope["path"]))


HANDLERS: dict[int | type[Exception], Any] = {
    Mistake: on_mistake,
    HTTPException: on_refusal,
    RecursionError: on_bomb,
    Exception: on_anything,
}
