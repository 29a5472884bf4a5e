"""The events of several servers as one stream: whoever reads goes on at its place with each of them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from litestar.types import HTTPScope

from mendflow.core.model.errors import Unreachable
from mendflow.server import fan_out
from mendflow.server.case_forwarding import EVENT_STREAM, CaseHomeLookup
from mendflow.server.fan_out import MergedEventStream
from mendflow.server.peer_requests import PeerRequests
from mendflow.services.base.cluster import ServerDocument
from tests.patience import PATIENCE_S

Place = tuple[bytes | None, bytes]
"""What a stream is asked for: the id of the last event, and the query."""


class Answer:
    content_type = EVENT_STREAM

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


class Peers:
    """The other servers: each connection gets what is next, and breaks."""

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.asked: list[Place] = []
        self.servers = [ServerDocument(id="b", url="http://b")]

    def live_servers(self) -> list[ServerDocument]:
        return self.servers

    @asynccontextmanager
    async def open_request(self, server: ServerDocument, scope: HTTPScope, body: bytes) -> AsyncIterator[Answer]:
        self.asked.append((dict(scope["headers"]).get(b"last-event-id"), scope["query_string"]))
        if not self.answers:
            raise Unreachable("it is away")
        yield Answer(self.answers.pop(0))


async def asked_for(peers: Peers, times: int, *, place: bytes = b"", after: bytes = b"") -> list[Place]:
    """What the other server is asked for, so many times, by one who reads from a place on."""
    headers = [(b"last-event-id", place)] if place else []
    scope = cast(HTTPScope, {"headers": headers, "query_string": after})
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    stream = MergedEventStream(cast(CaseHomeLookup, peers), cast(PeerRequests, peers), scope, send)

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while len(peers.asked) < times:
            await asyncio.sleep(0.001)

    async with asyncio.timeout(PATIENCE_S):
        await stream.listen(cast(Any, None), inner)
    return peers.asked[:times]


QUIET = [b": mendflow\n\n", b": quiet\n\n"]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "LOOK_EVERY_S", 0.001)


async def test_a_connection_that_breaks_before_an_event_came_is_opened_again_at_the_readers_place() -> None:  # UI-1
    assert await asked_for(Peers(QUIET, QUIET), 3, place=b"4711") == [(b"4711", b"")] * 3
    assert await asked_for(Peers(QUIET), 2, after=b"kind=case&after=4711") == [(None, b"kind=case&after=4711")] * 2


async def test_after_an_event_came_it_is_opened_again_behind_that() -> None:  # UI-1
    told = [b": mendflow\n\n", b"id: 4800\nevent: case\ndata: {}\n\nid: 4801\n"]
    first, second = await asked_for(Peers(told), 2, after=b"kind=case&after=4711")
    assert first == (None, b"kind=case&after=4711") and second == (b"4800", b"kind=case")


async def test_a_server_that_joins_later_tells_what_happens_from_then_on() -> None:  # UI-1
    peers = Peers()
    peers.servers = []

    async def joins() -> None:
        await asyncio.sleep(0.05)
        peers.servers = [ServerDocument(id="b", url="http://b")]

    found, _ = await asyncio.gather(asked_for(peers, 1, after=b"after=4711"), joins())
    assert found == [(None, b"")]
