"""A server inside another program's event loop: it opens a port, says which, and goes without a trace."""

import asyncio
import hashlib
import logging
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict
from mendflow.core.model.principals import Sight
from mendflow.core.model.views import FlowView
from mendflow.event_loop import run
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import ListeningAddress, serve, serve_at
from tests.patience import PATIENCE_S
from tests.server.conftest import DomainUnderTest, opened


async def test_port_zero_gives_a_real_port_and_two_servers_live_side_by_side(domain: DomainUnderTest) -> None:
    one = await serve(create_app(domain, access=AccessControl()))
    two = await serve(create_app(domain, access=AccessControl()))
    assert 0 < one.port != two.port > 0
    async with Client(one.url) as first, Client(two.url) as second:
        assert (await first.health()).status == (await second.health()).status == "ok"
    await one.stop()
    await two.stop()


async def test_servers_of_one_process_answer_for_their_own_domains_and_within_their_own_bounds(tmp_path: Path) -> None:
    content = b"some bytes"
    sha256 = hashlib.sha256(content).hexdigest()
    async with AsyncExitStack() as stack:
        urls = []
        for name, file_bytes_max in (("small", 5), ("large", 50)):
            domain = await stack.enter_async_context(opened(tmp_path / name))
            served = await serve(create_app(domain, access=AccessControl(), file_bytes_max=file_bytes_max))
            stack.push_async_callback(served.stop)
            urls.append(f"{served.url}/api/v1/files/{sha256}")
        http = await stack.enter_async_context(aiohttp.ClientSession())
        told = [(await http.put(url, data=content)).status for url in urls]
        assert told == [413, 200]
        assert [(await http.head(url)).status for url in urls] == [404, 200]


async def test_a_stopped_server_has_closed_its_port_and_left_no_task(domain: DomainUnderTest) -> None:
    before = asyncio.all_tasks()
    served = await serve(create_app(domain, access=AccessControl()))
    watcher = asyncio.create_task(served.finished())
    async with aiohttp.ClientSession() as http, http.get(f"{served.url}/api/v1/health") as response:
        assert response.status == 200
    await served.stop()
    await asyncio.wait_for(watcher, PATIENCE_S)
    assert asyncio.all_tasks() == before
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", served.port)


async def test_whoever_waits_for_a_store_that_is_away_is_told_that_the_server_stops(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mendflow.server.runner.STOP_S_MAX", 0.2)
    asked = asyncio.Event()

    async def lost(*, sight: Sight) -> list[FlowView]:
        """Waits for a store that does not come back."""
        asked.set()
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(domain, "flows", lost)
    served = await serve(create_app(domain, access=AccessControl()))
    async with aiohttp.ClientSession() as http:
        asking = asyncio.create_task(http.get(f"{served.url}/api/v1/flows"))
        await asked.wait()
        await served.stop()
        async with await asking as response:
            assert response.status == 503
            assert (await response.json())["code"] == "unreachable"
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_the_same_port_can_be_taken_again_at_once(domain: DomainUnderTest) -> None:
    first = await serve(create_app(domain, access=AccessControl()))
    async with Client(first.url) as client:
        await client.health()
        await first.stop()
        second = await serve(create_app(domain, access=AccessControl()), port=first.port)
        assert (await client.health()).status == "ok"
        await second.stop()


async def test_a_port_that_is_taken_is_told_in_words(domain: DomainUnderTest) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Conflict, match=f"cannot listen on 127.0.0.1:{port}"):
            await serve(create_app(domain, access=AccessControl()), port=port)


@pytest.mark.parametrize("port", [-1, 70_000])
async def test_a_port_that_is_none_is_told_in_words(domain: DomainUnderTest, port: int) -> None:
    with pytest.raises(Conflict, match="cannot listen"):
        await serve(create_app(domain, access=AccessControl()), port=port)


async def test_an_ipv6_address_works_where_the_machine_has_it(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl()), host="::1")
    assert served.url == f"http://[::1]:{served.port}"
    async with Client(served.url) as client:
        assert (await client.health()).status == "ok"
    await served.stop()


async def test_signals_are_left_to_the_program(domain: DomainUnderTest) -> None:
    before = signal.getsignal(signal.SIGINT)
    served = await serve(create_app(domain, access=AccessControl()))
    assert signal.getsignal(signal.SIGINT) is before
    await served.stop()


def test_the_fast_event_loop_runs_what_it_is_given(tmp_path: Path) -> None:
    async def answer() -> int:
        async with opened(tmp_path) as domain:
            served = await serve(create_app(domain, access=AccessControl()))
            await served.stop()
            return 42

    assert run(answer()) == 42


async def test_an_address_is_nobody_elses_before_the_server_answers_and_who_connects_waits(  # FM-10
    domain: DomainUnderTest,
) -> None:
    address = ListeningAddress("127.0.0.1", 0)
    with pytest.raises(Conflict, match="is another server running"):
        ListeningAddress("127.0.0.1", address.port)
    async with Client(address.url) as client:
        asked = asyncio.create_task(client.health())
        await asyncio.sleep(0.1)
        assert not asked.done()
        served = await serve_at(address, create_app(domain, access=AccessControl()))
        assert (await asyncio.wait_for(asked, PATIENCE_S)).status == "ok"
    await served.stop()
