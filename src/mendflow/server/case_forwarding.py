"""Any server can be asked about any case: a request about a case of another server is forwarded to that server, the
case's home.

A request about one case names it in its path, its query or its body. No request is forwarded twice: if the home answers
that the case is not there, the server that forwarded it looks up the home again, once. A case that has ended has no
home; any server reads it from the store."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import parse_qs, quote

import msgspec
from litestar.types import HTTPResponseStartEvent, HTTPScope, Receive, Send

from mendflow.core.model.errors import RequestError, TemporarilyUnavailable, Unreachable, WrongServer
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.soap import qualified_name
from mendflow.core.soap.envelope import read_envelope
from mendflow.operations.table import API
from mendflow.server.error_bodies import ClientDisconnected
from mendflow.server.open_requests import OpenRequests
from mendflow.server.peer_requests import PeerRequests, end_to_end_headers, unreachable
from mendflow.server.request_audit import is_noted, note
from mendflow.server.request_body import read_body
from mendflow.server.request_quotas import paid_alike
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.base.request_turns import end_turn
from mendflow.services.messaging.message_store import endpoint_of
from mendflow.services.messaging.ports.job_messages import JOBS

if TYPE_CHECKING:
    import aiohttp

LAST: Final = "last"
ARRIVAL_WAIT_S: Final = 10
FLOW_MESSAGES: Final = "/soap/flows/"
EVENT_STREAM: Final = "text/event-stream"
_PATHS_WITH_CASE = frozenset({"cases", "jobs", "worklist", "engines", "decisions"})
_QUERIES_WITH_CASE = frozenset({"jobs", "worklist", "decisions"})
_NOT_CASES = frozenset({"count", "reject"})

Newest = Callable[[Sight], Awaitable[str]]
ProjectOf = Callable[[str], Awaitable[str | None]]


class CaseHomeLookup(Protocol):
    """Finds the server that decides about a case."""

    @property
    def id(self) -> str: ...
    def here(self, subject: str) -> bool: ...
    async def home_of(self, subject: str, *, afresh: bool = False) -> str: ...
    async def arrived(self, subject: str) -> None: ...
    def find(self, server: str) -> ServerDocument | None: ...
    def live_servers(self) -> list[ServerDocument]: ...


class CaseForwarder:
    """Forwards requests to the homes of their cases. `newest` names the case that `last` means; `project_of` finds the
    project of a case, for the record of who did what."""

    def __init__(
        self,
        homes: CaseHomeLookup,
        peer_requests: PeerRequests,
        newest: Newest,
        open_requests: OpenRequests,
        bytes_max: int,
        project_of: ProjectOf,
    ) -> None:
        self._project_of = project_of
        self._homes = homes
        self._peer_requests = peer_requests
        self._newest = newest
        self._open_requests = open_requests
        self._bytes_max = bytes_max

    async def __call__(
        self, scope: HTTPScope, receive: Receive, send: Send, sight: Sight = EVERYTHING, *, is_forwarded: bool
    ) -> Receive | None:
        """Answer a request that belongs to another server. Otherwise return the receive function for the handler that
        answers it here. `sight` is what the caller sees, of which `last` is the newest. `is_forwarded`: another server
        has forwarded the request to this one."""
        named_by = SUBJECT_IN_BODY.get(scope["path"].removeprefix(API)) if scope["method"] == "POST" else None
        body = await read_body(receive, self._bytes_max) if named_by is not None else None
        subject = subject_of(scope) if body is None or named_by is None else named_by(body)
        if named_by is not None:
            note(object=subject)
        if subject.partition("/")[0].partition(":")[0] == LAST:
            newest = await self._newest(sight)
            subject = subject.replace(LAST, newest, 1)
            _write_case_name(scope, newest)
            note(object=subject)
        home = await self._home(subject, is_forwarded=is_forwarded)
        if home is None:
            return receive if body is None else _replay(body, receive)
        if body is None:
            body = await read_body(receive, self._bytes_max)
        if is_noted():
            note(project=await self._project_of(subject) or "")
        if scope["path"].startswith(FLOW_MESSAGES):
            await end_turn()  # the other server waits for the flow's reply
        return await self._forward(home, subject, scope, receive, send, body)

    async def _home(self, subject: str, *, is_forwarded: bool, afresh: bool = False) -> str | None:
        """The other server to forward the request to; None if this one answers."""
        homes = self._homes
        if not subject:
            return None
        home = homes.id if homes.here(subject) else await homes.home_of(subject, afresh=is_forwarded or afresh)
        if home == homes.id:
            await self._wait_for_arrival(subject)
        if home in ("", homes.id):
            return None
        if is_forwarded:
            raise WrongServer(f"{subject} lives on server {home}", server=home)
        return home

    async def _wait_for_arrival(self, subject: str) -> None:
        try:
            async with asyncio.timeout(ARRIVAL_WAIT_S):
                await self._homes.arrived(subject)
        except TimeoutError as error:
            raise TemporarilyUnavailable(
                f"{subject} is being taken over by this server; ask again in a moment"
            ) from error

    async def _forward(
        self, home: str, subject: str, scope: HTTPScope, receive: Receive, send: Send, body: bytes
    ) -> Receive | None:
        for last in (False, True):
            server = self._homes.find(home)
            if server is None:
                raise unreachable(home)
            if await self._relay_answer(server, scope, receive, send, body, elsewhere_too=last):
                return None
            found = await self._home(subject, is_forwarded=False, afresh=True)
            if found is None:
                return _replay(body, receive)
            home = found
        raise AssertionError("the last server's answer is returned, whatever it is")

    async def _relay_answer(
        self,
        server: ServerDocument,
        scope: HTTPScope,
        receive: Receive,
        send: Send,
        body: bytes,
        *,
        elsewhere_too: bool,
    ) -> bool:
        """Relay the answer of that server; false if it says that the case is not there."""
        relay = ResponseRelay(send)
        try:
            async with self._peer_requests.open_request(server, scope, body) as response:
                if response.status == WrongServer.status:
                    if not elsewhere_too:
                        return False
                    raise TemporarilyUnavailable("this is moving from one server to another; retry in a moment")
                await relay_until_disconnect(receive, relay.relay(response), self._open_requests)
        except Unreachable as lost:
            if not relay.has_begun:
                raise
            await relay.cut(lost)
        return True


class ResponseRelay:
    """An answer that is being relayed. Once it has begun, a lost connection cannot be turned into an error any more: an
    event stream just ends, and its reader reconnects; anything else is cut off."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._events = False
        self.has_begun = False

    async def relay(self, response: "aiohttp.ClientResponse") -> None:
        self._events = response.content_type == EVENT_STREAM
        self.has_begun = True
        start = {
            "type": "http.response.start",
            "status": response.status,
            "headers": end_to_end_headers(response.raw_headers),
        }
        await self._send(cast(HTTPResponseStartEvent, start))
        async for piece in response.content.iter_any():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def cut(self, lost: Unreachable) -> None:
        if not self._events:
            raise ClientDisconnected(lost.message)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def relay_until_disconnect(
    receive: Receive, relay: Coroutine[Any, Any, None], open_requests: OpenRequests
) -> None:
    """Relay until the caller disconnects or this server begins to stop."""
    relaying = asyncio.ensure_future(paid_alike(relay))
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        with open_requests.hold(relaying.cancel):
            await asyncio.wait((relaying, gone), return_when=asyncio.FIRST_COMPLETED)
        if relaying.cancelled() or gone.done():
            raise ClientDisconnected("the caller has disconnected")
        relaying.result()
    finally:
        relaying.cancel()
        gone.cancel()
        await asyncio.gather(relaying, gone, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def subject_of(scope: HTTPScope) -> str:
    """The case that a request is about, or the id of something that is named after a case; empty if it is about all
    cases or none. Messages for a flow are about the tree that the flow's cases belong to."""
    if scope["path"].startswith(FLOW_MESSAGES):
        return str(endpoint_of(scope["path"].removeprefix(FLOW_MESSAGES).partition("/")[0]))
    words = scope["path"].removeprefix(API).strip("/").split("/")
    query = parse_qs(scope["query_string"].decode("latin-1"))
    if words == ["why"]:
        return query.get("subject", [""])[0]
    if len(words) > 1 and words[0] in _PATHS_WITH_CASE and words[1] not in _NOT_CASES:
        return words[1]
    if len(words) == 1 and words[0] in _QUERIES_WITH_CASE and scope["method"] == "GET":
        return query.get("case", [""])[0]
    return ""


def _write_case_name(scope: HTTPScope, case: str) -> None:
    """Replace `last` in the request by the case's id: the other server may know a different last case."""
    before, after = f"/{LAST}", f"/{quote(case, safe='')}"
    if before in scope["path"]:
        scope["path"] = scope["path"].replace(before, f"/{case}", 1)
        scope["raw_path"] = scope["raw_path"].replace(before.encode(), after.encode(), 1)
    else:
        scope["query_string"] = scope["query_string"].replace(f"={LAST}".encode(), f"={after[1:]}".encode(), 1)


def _subject_in_field(name: str, body: bytes) -> str:
    """The case that the body names. A body that cannot be read is left to the handler here, which refuses it."""
    try:
        subject = msgspec.json.decode(body, type=dict[str, Any]).get(name, "")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    return subject if isinstance(subject, str) else ""


def _subject_in_soap(body: bytes) -> str:
    """The job that a request to the SOAP port of jobs is about; a job that is being submitted has no id yet."""
    try:
        found = [each.findtext(qualified_name(JOBS, "jobId")) for each in read_envelope(body).body]
    except RequestError:
        return ""
    return (found[0] or "").strip() if found else ""


SUBJECT_IN_BODY: Final[dict[str, Callable[[bytes], str]]] = {
    "/decisions/reject": partial(_subject_in_field, "decision"),
    "/engines": partial(_subject_in_field, "name"),
    "/soap/jobs": _subject_in_soap,
}
"""Requests that name their subject in the body."""


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive function that returns the body once more, for the handler that reads it next."""
    left = [body]

    async def is_forwarded() -> Any:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return is_forwarded
