"""Requests and answers in MessagePack: one decoding and one encoding and nothing else, because pilots send thousands of
them a minute."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.server.error_bodies import ClientDisconnected, log_unforeseen, send_error

if TYPE_CHECKING:
    from litestar.types import Scope, Send

T = TypeVar("T")

_MSGPACK = (b"content-type", b"application/vnd.msgpack")


async def send_packed(answering: Awaitable[bytes], scope: Scope, send: Send) -> None:
    """Send the answer of the handler, or its error."""
    try:
        answer = await answering
    except ClientDisconnected:
        return
    except RequestError as error:
        await send_error(send, error)
    except Exception as error:  # noqa: BLE001 - outermost handler: answer the caller, log the traceback
        await send_error(send, log_unforeseen(error, "POST", scope["path"]))
    else:
        headers = [_MSGPACK, (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer, "more_body": False})


def decode_body(decoder: msgspec.msgpack.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        place = re.search(r"`(\$[^`]*)`$", str(error))
        raise InvalidRequest(
            f"this is not a pilot's request: {error}", field=place.group(1) if place else "$"
        ) from error
