"""Any server serves any case: what is asked about a case that lives on another server is passed on to its home.

A request about one case names it in its path, its query or its body. Nobody is passed on twice: the home itself knows
best whether the case is there, and says so if it is not; then whoever passed it on looks afresh, once. What is over has
no home, and is told from the store by whoever is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qs, quote

import aiohttp
import msgspec
from litestar.types import HTTPResponseStartEvent, HTTPScope, Receive, Send

from mendflow.core.model.problems import Elsewhere, Mistake, NotNow, Unreachable
from mendflow.core.soap import joined
from mendflow.core.soap.envelope import read_envelope
from mendflow.server.access import API
from mendflow.server.answers import HungUp
from mendflow.server.body import whole
from mendflow.server.holds import Holds
from mendflow.server.passing import Passing, away, passed
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.messaging.message_store import endpoint_of
from mendflow.services.messaging.ports.job_messages import JOBS

LAST: Final = "last"
ARRIVING_S: Final = 10
FLOW_MAIL: Final = "/soap/flows/"
EVENTS: Final = "text/event-stream"
_NAMED = frozenset({"cases", "jobs", "worklist", "engines", "decisions"})
_ASKED_BY_CASE = frozenset({"jobs", "worklist", "decisions"})
_NO_NAMES = frozenset({"count", "reject"})

Newest = Callable[[], Awaitable[str]]


class Whereabouts(Protocol):
    """Where a case is decided about."""

    @property
    def id(self) -> str: ...
    def here(self, subject: str) -> bool: ...
    async def home_of(self, subject: str, *, afresh: bool = False) -> str: ...
    async def arrived(self, subject: str) -> None: ...
    def find(self, server: str) -> ServerDocument | None: ...
    def living(self) -> list[ServerDocument]: ...


class Forwarding:
    """`newest` names the case that `last` means."""

    def __init__(self, where: Whereabouts, passing: Passing, newest: Newest, holds: Holds, bytes_max: int) -> None:
        self._where = where
        self._passing = passing
        self._newest = newest
        self._holds = holds
        self._bytes_max = bytes_max

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send, *, again: bool) -> Receive | None:
        """Answer what another server is to be asked for. Otherwise: what is left to be received by whoever answers it
        here. `again`: another server has passed it on to this one."""
        named_by = IN_BODY.get(scope["path"].removeprefix(API)) if scope["method"] == "POST" else None
        body = await whole(receive, self._bytes_max) if named_by is not None else None
        subject = subject_of(scope) if body is None or named_by is None else named_by(body)
        if subject.partition("/")[0].partition(":")[0] == LAST:
            newest = await self._newest()
            subject = subject.replace(LAST, newest, 1)
            _name(scope, newest)
        home = await self._home(subject, again=again)
        if home is None:
            return receive if body is None else _replayed(body, receive)
        if body is None:
            body = await whole(receive, self._bytes_max)
        return await self._pass(home, subject, scope, receive, send, body)

    async def _home(self, subject: str, *, again: bool, afresh: bool = False) -> str | None:
        """The other server that is to be asked about it; None: this one."""
        where = self._where
        if not subject:
            return None
        home = where.id if where.here(subject) else await where.home_of(subject, afresh=again or afresh)
        if home == where.id:
            await self._arrived(subject)
        if home in ("", where.id):
            return None
        if again:
            raise Elsewhere(f"{subject} lives on server {home}", server=home)
        return home

    async def _arrived(self, subject: str) -> None:
        try:
            async with asyncio.timeout(ARRIVING_S):
                await self._where.arrived(subject)
        except TimeoutError as error:
            raise NotNow(f"{subject} is being taken over by this server; ask again in a moment") from error

    async def _pass(
        self, home: str, subject: str, scope: HTTPScope, receive: Receive, send: Send, body: bytes
    ) -> Receive | None:
        for last in (False, True):
            server = self._where.find(home)
            if server is None:
                raise away(home)
            if await self._told(server, scope, receive, send, body, elsewhere_too=last):
                return None
            found = await self._home(subject, again=False, afresh=True)
            if found is None:
                return _replayed(body, receive)
            home = found
        raise AssertionError("the last one's answer is told, whatever it is")

    async def _told(
        self,
        server: ServerDocument,
        scope: HTTPScope,
        receive: Receive,
        send: Send,
        body: bytes,
        *,
        elsewhere_too: bool,
    ) -> bool:
        """Tell the answer of that server; false if it says that this is not for it."""
        telling = Telling(send)
        try:
            async with self._passing.asked(server, scope, body) as response:
                if response.status == Elsewhere.status:
                    if not elsewhere_too:
                        return False
                    raise NotNow("this is just moving from one server to another; ask again in a moment")
                await until_gone(receive, telling.tell(response), self._holds)
        except Unreachable as lost:
            if not telling.begun:
                raise
            await telling.cut(lost)
        return True


class Telling:
    """An answer on its way. One that is lost in the middle cannot be told otherwise any more: a stream of events just
    ends, and is taken up again by whoever reads it; anything else is cut."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._events = False
        self.begun = False

    async def tell(self, response: aiohttp.ClientResponse) -> None:
        self._events = response.content_type == EVENTS
        self.begun = True
        start = {"type": "http.response.start", "status": response.status, "headers": passed(response.raw_headers)}
        await self._send(cast(HTTPResponseStartEvent, start))
        async for piece in response.content.iter_any():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def cut(self, lost: Unreachable) -> None:
        if not self._events:
            raise HungUp(lost.message)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_gone(receive: Receive, telling: Coroutine[Any, Any, None], holds: Holds) -> None:
    """Tell as long as somebody listens, and this server is not about to stop."""
    told = asyncio.ensure_future(telling)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        with holds.held(told.cancel):
            await asyncio.wait((told, gone), return_when=asyncio.FIRST_COMPLETED)
        if told.cancelled() or gone.done():
            raise HungUp("nobody listens any more")
        told.result()
    finally:
        told.cancel()
        gone.cancel()
        await asyncio.gather(told, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def subject_of(scope: HTTPScope) -> str:
    """What a request is about: a case, or something that is named after one; empty if it is about all or none. Messages
    for a flow are about the tree that its cases belong to."""
    if scope["path"].startswith(FLOW_MAIL):
        return str(endpoint_of(scope["path"].removeprefix(FLOW_MAIL).partition("/")[0]))
    words = scope["path"].removeprefix(API).strip("/").split("/")
    query = parse_qs(scope["query_string"].decode("latin-1"))
    if words == ["why"]:
        return query.get("subject", [""])[0]
    if len(words) > 1 and words[0] in _NAMED and words[1] not in _NO_NAMES:
        return words[1]
    if len(words) == 1 and words[0] in _ASKED_BY_CASE and scope["method"] == "GET":
        return query.get("case", [""])[0]
    return ""


def _name(scope: HTTPScope, case: str) -> None:
    """Write a case's own name where the request says `last`: the other server may take another one for the last."""
    before, after = f"/{LAST}", f"/{quote(case, safe='')}"
    if before in scope["path"]:
        scope["path"] = scope["path"].replace(before, f"/{case}", 1)
        scope["raw_path"] = scope["raw_path"].replace(before.encode(), after.encode(), 1)
    else:
        scope["query_string"] = scope["query_string"].replace(f"={LAST}".encode(), f"={after[1:]}".encode(), 1)


def _field(name: str, body: bytes) -> str:
    """What a body names. One that cannot be read is refused by whoever is asked here."""
    try:
        said = msgspec.json.decode(body, type=dict[str, Any]).get(name, "")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    return said if isinstance(said, str) else ""


def _job(body: bytes) -> str:
    """The job that a request to the port of jobs is about; one that is to be taken has no id yet."""
    try:
        found = [each.findtext(joined(JOBS, "jobId")) for each in read_envelope(body).body]
    except Mistake:
        return ""
    return (found[0] or "").strip() if found else ""


IN_BODY: Final[dict[str, Callable[[bytes], str]]] = {
    "/decisions/reject": partial(_field, "decision"),
    "/engines": partial(_field, "name"),
    "/soap/jobs": _job,
}
"""Requests that name what they are about in their body."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, for whoever reads it next."""
    left = [body]

    async def again() -> Any:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return again
