"""What connected domains ask over HTTP: the side that answers.

A connection's token opens these paths and no other, and no other token opens them. `accept` is the exception: what is
shown there is an invitation. Bodies are JSON, because the works that they carry are documents of the store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError, Unauthorized, Unreachable
from mendflow.lazy import lazy_pattern
from mendflow.server.access import DOMAIN
from mendflow.server.connection_limits import mark_admitted
from mendflow.server.error_bodies import ClientDisconnected, WrongMethod, log_unforeseen, send_error
from mendflow.server.pilot_exchange import STOPPING
from mendflow.server.request_audit import note
from mendflow.server.request_body import body_chunks, read_body
from mendflow.server.unidentified_requests import identify
from mendflow.services.domains.connections import Connection

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive, Send

T = TypeVar("T")

EXCHANGE, ACCEPT, FILES = "exchange", "accept", "files/"
EXCHANGE_BYTES_MAX: Final = 64 << 20
ACCEPT_BYTES_MAX: Final = 64 << 10
FILE_BYTES_MAX: Final = 1 << 50
OFFSET: Final = "Upload-Offset"
"""Of a file that is sent: at which byte its content begins. Of one that is not there: how much of it has come."""
_SHA256 = lazy_pattern(r"[0-9a-f]{64}")
_NUMBER = lazy_pattern(r"\d{1,18}")
_FROM = lazy_pattern(r"bytes=(\d{1,18})-")
_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class Gate(Protocol):
    """This domain as connected ones see it."""

    async def accept(self, shown: str, acceptance: InvitationAcceptance) -> InvitationAnswer: ...
    async def admit(self, token_sha256: str) -> Connection: ...
    async def exchange(self, connection: Connection, request: DomainRequest) -> DomainAnswer: ...
    async def file_size(self, connection: Connection, sha256: str) -> int: ...
    def file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]: ...
    async def missing_from(self, connection: Connection, sha256: str) -> int | None: ...
    async def take_file(
        self, connection: Connection, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0
    ) -> None: ...


class DomainEndpoint:
    """`gate` answers; a server without one has no such paths."""

    def __init__(self, gate: Gate | None) -> None:
        self._gate = gate
        self._held: set[asyncio.Task[object]] = set()
        self._stopping = False

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        except ClientDisconnected:
            return
        except RequestError as error:
            await send_error(send, error)
        except Exception as error:  # noqa: BLE001 - outermost handler: answer the caller, log the traceback
            await send_error(send, log_unforeseen(error, scope["method"], scope["path"]))

    async def stop(self) -> None:
        """End the exchanges that are held: their origins ask again, here or elsewhere."""
        self._stopping = True
        for task in self._held:
            task.cancel()

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        gate, method, what = self._gate, scope["method"], scope["path"].removeprefix(DOMAIN)
        if gate is None:
            raise NotFound("this server answers no other domains")
        shown = _token(scope)
        if what == ACCEPT:
            _demand(method, "POST")
            acceptance = _decoded(await read_body(receive, ACCEPT_BYTES_MAX), InvitationAcceptance)
            note(operation="accept_invitation", object=acceptance.domain)
            await _send(send, _encode(await gate.accept(shown, acceptance)))
            return
        connection = await gate.admit(hashlib.sha256(shown.encode()).hexdigest())
        mark_admitted(scope)
        identify(scope)
        note(who=connection.name)
        if what == EXCHANGE:
            _demand(method, "POST")
            request = _decoded(await read_body(receive, EXCHANGE_BYTES_MAX), DomainRequest)
            if request.sent:
                note(operation="take_work", object=" ".join(each.key for each in request.sent))
            await _send(send, _encode(await self._exchange(gate, connection, request)))
        elif what.startswith(FILES) and _SHA256.fullmatch(sha256 := what.removeprefix(FILES)):
            await _answer_file(gate, connection, sha256, scope, receive, send)
        else:
            raise NotFound(f"domains ask each other nothing at {scope['path'][:200]}")

    async def _exchange(self, gate: Gate, connection: Connection, request: DomainRequest) -> DomainAnswer:
        if self._stopping:
            raise Unreachable(STOPPING)
        task = asyncio.ensure_future(gate.exchange(connection, request))
        self._held.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            if not self._stopping:
                raise
            raise Unreachable(STOPPING) from None
        finally:
            self._held.discard(task)


async def _answer_file(
    gate: Gate, connection: Connection, sha256: str, scope: HTTPScope, receive: Receive, send: Send
) -> None:
    method = scope["method"]
    if method == "PUT":
        await gate.take_file(connection, sha256, body_chunks(receive, FILE_BYTES_MAX), _offset(scope))
        await _send(send, b"{}")
        return
    _demand(method, "GET", "HEAD", "PUT")
    if method == "HEAD":
        await _send_offset(send, await gate.missing_from(connection, sha256))
        return
    size = await gate.file_size(connection, sha256)
    begin = min(_begin(scope), size)
    headers = [
        (b"content-type", b"application/octet-stream"),
        (b"content-length", b"%d" % (size - begin)),
        (b"content-range", b"bytes %d-%d/%d" % (begin, max(size - 1, 0), size)),
    ]
    content = gate.file(sha256, begin)
    first = await anext(content, b"")  # a damaged file is told before anything is sent
    status, headers = (206, headers) if begin else (200, headers[:2])
    await send({"type": "http.response.start", "status": status, "headers": headers})
    try:
        async for piece in _chained(first, content):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except Exception as error:  # the outermost handler cannot answer any more: the stream is cut
        raise ClientDisconnected(log_unforeseen(error, "GET", scope["path"]).message) from error
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _demand(method: str, *fit: str) -> None:
    if method not in fit:
        raise WrongMethod(f"{method} does nothing here; use {' or '.join(fit)}", methods=fit)


def _token(scope: HTTPScope) -> str:
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, token = sent[0].decode("latin-1").partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("this path is for connected domains: they send `Authorization: Bearer TOKEN`, once")
    return token.strip()


def _begin(scope: HTTPScope) -> int:
    found = _FROM.fullmatch(_header(scope, "range"))
    return int(found[1]) if found else 0


def _offset(scope: HTTPScope) -> int:
    said = _header(scope, OFFSET.lower())
    if said and not _NUMBER.fullmatch(said):
        raise InvalidRequest(f"{OFFSET} is a number of bytes, not {said[:40]!r}", field=OFFSET)
    return int(said or 0)


def _header(scope: HTTPScope, name: str) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()), "")


async def _send_offset(send: Send, missing_from: int | None) -> None:
    headers, status = [(b"content-length", b"0")], 200
    if missing_from is not None:
        headers, status = [*headers, (OFFSET.lower().encode(), b"%d" % missing_from)], NotFound.status
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, body: bytes) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _decoded(body: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"this is not a request between domains: {error}") from error
