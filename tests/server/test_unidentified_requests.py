"""Whoever has not shown who it is pays by its address, and pilots have a share of their own. SE-3"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from mendflow.core.model.principals import PILOT, USER, Principal
from mendflow.server import request_quotas
from mendflow.server.access import AccessControl, AccessToken, token_hash
from mendflow.server.app import Api, create_app
from mendflow.server.request_quotas import ADDRESS_BURST_S, BUSY_BURST_S, HEALTH_PATH, RequestQuotas
from mendflow.server.runner import HttpServer, serve
from tests.patience import until
from tests.server.conftest import DomainUnderTest

LOOPBACK = "127.0.0.1"
DEBT_S = 600.0


class Served:
    def __init__(self, app: Api, http_server: HttpServer) -> None:
        self.app = app
        self.url = http_server.url

    def owe(self, seconds: float) -> None:
        """Whoever is on this machine, and nobody in particular, has taken this much too much."""
        self.app.quotas.of_address(LOOPBACK).busy.take(BUSY_BURST_S + seconds)


@pytest.fixture
async def served(domain: DomainUnderTest) -> AsyncIterator[Served]:
    names = {"ann": USER, "site-pilots": PILOT}
    tokens = [AccessToken(name, frozenset({role}), token_hash(name)) for name, role in names.items()]
    async with AsyncExitStack() as stack:
        app = create_app(domain, access=AccessControl(tokens), let_go=domain.let_go)
        http_server = await serve(app)
        stack.push_async_callback(http_server.stop)
        yield Served(app, http_server)


async def ask(served: Served, http: aiohttp.ClientSession, path: str, token: str = "") -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with http.get(f"{served.url}{path}", headers=headers) as response:
        await response.read()
        return response.status


@pytest.mark.parametrize(("path", "status"), [("/api/v1/cases", 401), (HEALTH_PATH, 200)])
async def test_who_is_not_known_waits_when_its_address_has_used_up_its_share(
    served: Served, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> None:
    held: list[float | None] = []

    async def hold(seconds: float | None = None) -> None:
        held.append(seconds)

    monkeypatch.setattr(served.app.quotas, "hold", hold)
    assert (await ask(served, http, path), held) == (status, [])
    served.owe(DEBT_S)
    assert await ask(served, http, path) == status
    assert held == [request_quotas.HEALTH_HELD_S if path == HEALTH_PATH else None]


@pytest.mark.parametrize("token", ["ann", "site-pilots"])
async def test_who_is_known_does_not_wait_for_others_of_its_address(
    served: Served, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setattr(request_quotas, "HELD_S", 3_600.0)
    served.owe(DEBT_S)
    assert await ask(served, http, "/api/v1/cases" if token == "ann" else "/api/v1/me", token) == 200


async def test_what_known_ones_take_is_not_taken_from_their_address(
    served: Served, http: aiohttp.ClientSession
) -> None:
    address = served.app.quotas.of_address(LOOPBACK).busy
    address.take(ADDRESS_BURST_S / 2)
    before = address.filled(time.monotonic())
    for _ in range(50):
        await ask(served, http, "/api/v1/cases", "ann")
    by_name = served.app.quotas.take(Principal("ann", frozenset({USER})), LOOPBACK).busy
    now = time.monotonic()
    assert by_name.filled(now) < 1 and address.filled(now) > before - 0.01


async def test_pilots_wait_for_their_share_and_then_are_answered_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    quotas, pilot, answered = RequestQuotas(), Principal("site", frozenset({PILOT})), list[str]()
    monkeypatch.setattr(request_quotas, "REST_S_MAX", 0.01)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None: ...

    async def answer(*_: Any) -> None:
        answered.append("one")

    bucket = quotas._of_pilots.of("site", time.monotonic())
    bucket.take(BUSY_BURST_S + DEBT_S)
    waiting = asyncio.create_task(quotas.answer_pilot(pilot, receive, send, answer))
    await asyncio.sleep(0.05)
    assert not answered
    bucket.take(-DEBT_S - 1)
    await waiting
    assert answered == ["one"]
    monkeypatch.setattr(request_quotas, "PILOT_WAIT_S", 0.05)
    bucket.take(BUSY_BURST_S + DEBT_S)
    await quotas.answer_pilot(pilot, receive, send, answer)
    assert answered == ["one", "one"]
    await until(lambda: not len(quotas._resting), "nobody waits any more")
