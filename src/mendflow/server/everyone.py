"""Requests about everything: asked of all living servers at once, their answers put together.

What lies in the store, any server tells alone; here is what only the server knows where a case lives: how far it has
come, what waits in its levels, what happens this moment. Another server is given a short time; one that says nothing is
named in the header `Mendflow-Unheard`, and not silently left out."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec
from litestar.types import HTTPScope, Message, Receive, Scope, Send

from mendflow.core.model.problems import Mistake
from mendflow.core.model.repair_views import Applied, Drained, LevelView
from mendflow.core.model.views import CaseView
from mendflow.server.access import API
from mendflow.server.body import whole
from mendflow.server.forwarding import EVENTS, Whereabouts
from mendflow.server.passing import Passing
from mendflow.services.base.cluster import ServerDocument

UNHEARD: Final = b"mendflow-unheard"
PATIENCE_S: Final = 2.0
ACTING_S: Final = 10.0
LOOK_EVERY_S: Final = 0.5
JOBS_SHOWN: Final = 100

T = TypeVar("T")
Told = Mapping[str, bytes]
"""What each server has answered, by its name; this one's first."""
Merge = Callable[[Told], bytes]
Inner = Callable[[Scope, Receive, Send], Any]
_encode = msgspec.json.Encoder().encode


def _read(told: Told, type: type[T]) -> dict[str, T]:
    return {server: msgspec.json.decode(body, type=type) for server, body in told.items()}


def merged_cases(told: Told) -> bytes:
    """The page as this server has found it, each case as its home knows it."""
    pages = _read(told, list[CaseView])
    at_home = {view.id: view for server, views in pages.items() for view in views if view.server == server}
    return _encode([at_home.get(view.id, view) for view in next(iter(pages.values()))])


def merged_levels(told: Told) -> bytes:
    found: dict[int, list[LevelView]] = {}
    for views in _read(told, list[LevelView]).values():
        for view in views:
            found.setdefault(view.level, []).append(view)
    return _encode([_one_level(found[level]) for level in sorted(found)])


def _one_level(views: Sequence[LevelView]) -> LevelView:
    return msgspec.structs.replace(
        views[0],
        waiting=sum(view.waiting for view in views),
        express=sum(view.express for view in views),
        next_at=min((view.next_at for view in views if view.next_at), default=0),
        jobs=[job for view in views for job in view.jobs][:JOBS_SHOWN],
    )


def merged_drained(told: Told) -> bytes:
    answers = list(_read(told, Drained).values())
    return _encode(msgspec.structs.replace(answers[0], let_go=sum(each.let_go for each in answers)))


def merged_applied(told: Told) -> bytes:
    """What any server has taken up is not left."""
    answers = list(_read(told, Applied).values())
    taken_up = list(dict.fromkeys(id for each in answers for id in each.taken_up))
    left = [id for id in dict.fromkeys(id for each in answers for id in each.left) if id not in set(taken_up)]
    return _encode(msgspec.structs.replace(answers[0], taken_up=taken_up, left=left))


MERGED: Final[list[tuple[str, re.Pattern[str], Merge]]] = [
    ("GET", re.compile("/cases"), merged_cases),
    ("GET", re.compile("/levels"), merged_levels),
    ("POST", re.compile("/levels/[^/]+/drain"), merged_drained),
    ("POST", re.compile("/failures/[^/]+/apply"), merged_applied),
]


class Everyone:
    def __init__(self, where: Whereabouts, passing: Passing, bytes_max: int) -> None:
        self._where = where
        self._passing = passing
        self._bytes_max = bytes_max

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send, inner: Inner) -> bool:
        """Whether this was a question for all servers, and is answered. `inner` answers for this one."""
        path = scope["path"].removeprefix(API)
        if path == "/events" and scope["method"] == "GET":
            await Listening(self._where, self._passing, scope, send).listen(receive, inner)
            return True
        if not self._where.living():
            return False
        for method, pattern, merge in MERGED:
            if scope["method"] == method and pattern.fullmatch(path):
                await self._gather(scope, receive, send, inner, merge)
                return True
        return False

    async def _gather(self, scope: HTTPScope, receive: Receive, send: Send, inner: Inner, merge: Merge) -> None:
        body, others = await whole(receive, self._bytes_max), self._where.living()
        asked = asyncio.gather(*(self._of(server, scope, body) for server in others))
        status, headers, told = await _own(inner, scope, body)
        answers = await asked
        if status < 300:
            heard = {server.id: each for server, each in zip(others, answers, strict=True) if each is not None}
            unheard = [server.id for server in others if server.id not in heard]
            told = merge({self._where.id: told, **heard})
            headers = [each for each in headers if each[0] != b"content-length"]
            headers += [(UNHEARD, ", ".join(unheard).encode("ascii", "replace"))] if unheard else []
            headers.append((b"content-length", str(len(told)).encode()))
        await send(cast(Message, {"type": "http.response.start", "status": status, "headers": headers}))
        await send(cast(Message, {"type": "http.response.body", "body": told, "more_body": False}))

    async def _of(self, server: ServerDocument, scope: HTTPScope, body: bytes) -> bytes | None:
        try:
            async with asyncio.timeout(PATIENCE_S if scope["method"] == "GET" else ACTING_S):
                async with self._passing.asked(server, scope, body) as response:
                    return await response.read() if response.status < 300 else None
        except (Mistake, TimeoutError):
            return None


async def _own(inner: Inner, scope: HTTPScope, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    started: dict[str, Any] = {}
    pieces: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.update(cast(dict[str, Any], message))
        elif message["type"] == "http.response.body":
            pieces.append(message["body"])

    await inner(cast(Scope, dict(scope)), receive, send)
    return started["status"], list(started["headers"]), b"".join(pieces)


class Listening:
    """The events of all servers as one stream. Whoever comes is listened to from then on."""

    def __init__(self, where: Whereabouts, passing: Passing, scope: HTTPScope, send: Send) -> None:
        self._where = where
        self._passing = passing
        self._scope = scope
        self._send = send
        self._begun = asyncio.Event()
        self._heard: dict[str, asyncio.Task[None]] = {}

    async def listen(self, receive: Receive, inner: Inner) -> None:
        others = asyncio.create_task(self._others())
        try:
            await inner(cast(Scope, dict(self._scope)), receive, self._own)
        finally:
            under_way = [others, *self._heard.values()]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _own(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._begun.set()

    async def _others(self) -> None:
        await self._begun.wait()
        while True:
            for server in self._where.living():
                task = self._heard.get(server.id)
                if task is None or task.done():
                    self._heard[server.id] = asyncio.create_task(self._hear(server))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _hear(self, server: ServerDocument) -> None:
        """Tell what that server tells, whole event by whole event. A line that breaks is taken up by whoever looks."""
        try:
            async with self._passing.asked(server, self._scope, b"") as response:
                left = b""
                if response.content_type != EVENTS:
                    return
                async for piece in response.content.iter_any():
                    whole_ones, end, left = (left + piece).rpartition(b"\n\n")
                    if end:
                        await self._send({"type": "http.response.body", "body": whole_ones + end, "more_body": True})
        except Mistake:
            return
