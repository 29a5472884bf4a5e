"""A client that knows several servers goes on with the next, and repeats only what cannot be done twice by that."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from mendflow.client import Client
from mendflow.core.model.errors import StoreUnavailable, TemporarilyUnavailable, Unreachable

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
NOBODY = "http://127.0.0.1:9"
CASE = {"id": "f-1", "flow": "f", "digest": "d", "status": "suspended", "started_at": 1}


class Server:
    """It answers as it is told to, and counts how often it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked = 0


@asynccontextmanager
async def _server(answer: Answer) -> AsyncIterator[Server]:
    server = Server("")

    async def counted(request: web.BaseRequest) -> web.StreamResponse:
        server.asked += 1
        return await answer(request)

    runner = web.ServerRunner(web.Server(counted))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


async def _fine(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response(CASE)


async def _dies(request: web.BaseRequest) -> web.StreamResponse:
    """It has heard the request, and is gone before it answers."""
    assert request.transport is not None
    request.transport.close()
    await asyncio.sleep(0)
    return web.Response()


def _refuses(mistake: TemporarilyUnavailable | StoreUnavailable) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        body = msgspec.json.encode({"code": mistake.code, "message": mistake.message, "fields": {}})
        return web.Response(status=503, body=body, content_type="application/json")

    return answer


async def test_what_was_never_sent_is_asked_of_the_next_server_whatever_it_is() -> None:
    async with _server(_fine) as fine, Client(f"{NOBODY},{fine.url}") as client:
        assert (await client.suspend("f-1")).status == "suspended"
        assert client.url == fine.url, "it stays there"


async def test_an_order_that_may_have_been_heard_is_not_given_again() -> None:
    async with _server(_dies) as dying, _server(_fine) as fine, Client(f"{dying.url},{fine.url}") as client:
        with pytest.raises(Unreachable):
            await client.suspend("f-1")
        assert (dying.asked, fine.asked) == (1, 0)
        assert (await client.case("f-1")).id == "f-1", "the next question goes to the next server"


async def test_reads_and_keyed_starts_are_repeated_at_the_next_server() -> None:
    async with _server(_dies) as dying, _server(_fine) as fine:
        async with Client(f"{dying.url},{fine.url}") as client:
            assert (await client.case("f-1")).id == "f-1"
        async with Client(f"{dying.url},{fine.url}") as client:
            assert (await client.start("f")).id == "f-1"
        assert fine.asked == 2


async def test_a_server_without_its_store_is_passed_over() -> None:
    lost = _server(_refuses(StoreUnavailable("away")))
    async with lost as away, _server(_fine) as fine, Client(f"{away.url},{fine.url}") as client:
        assert (await client.case("f-1")).id == "f-1"


async def test_an_order_of_which_nothing_was_done_is_given_until_it_is() -> None:
    async def later(request: web.BaseRequest) -> web.StreamResponse:
        return await (_fine if server.asked > 2 else _refuses(TemporarilyUnavailable("being taken over")))(request)

    async with _server(later) as server, Client(server.url) as client:
        assert (await client.suspend("f-1")).status == "suspended"
        assert server.asked == 3


async def test_when_none_is_there_all_are_named() -> None:
    async with Client(f"{NOBODY},http://127.0.0.1:10") as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9, .*127\.0\.0\.1:10"):
            await client.suspend("f-1")
