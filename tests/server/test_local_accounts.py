"""A server without tokens answers the account that runs it, and no other of the machine."""  # SE-1

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp
import pytest

from mendflow import local_accounts
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.local_accounts import Address, account_of
from mendflow.server.access import AccessControl
from mendflow.server.runner import HttpServer
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.other_account import ask


@contextmanager
def connected(host: str) -> Iterator[tuple[socket.socket, Address, Address]]:
    """The client's socket of a connection, and its two addresses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener, socket.socket(family) as client:
        listener.bind((host, 0))
        listener.listen()
        client.connect(listener.getsockname())
        accepted, peer = listener.accept()
        with accepted:
            yield client, (peer[0], peer[1]), (host, listener.getsockname()[1])


WAYS = [local_accounts._ask_kernel, local_accounts._look_up, account_of]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1"])
def test_the_kernel_says_whose_a_connection_is(host: str, way: Callable[[Address, Address], int | None]) -> None:
    with connected(host) as (_, client, server):
        assert way(client, server) == os.geteuid()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_a_closed_connection_is_nobodys(way: Callable[[Address, Address], int | None]) -> None:
    with connected("127.0.0.1") as (socket_of_client, client, server):
        socket_of_client.shutdown(socket.SHUT_WR)
        assert way(client, server) is None
        socket_of_client.close()
        assert way(client, server) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_is_not_there_is_nobodys(way: Callable[[Address, Address], int | None]) -> None:
    assert way(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


async def test_another_account_of_the_machine_gets_in_nowhere(served: HttpServer, foreign: int) -> None:
    for path in ("/cases", "/tokens", "/metrics", "/files/" + "0" * 64, "/secrets", "/nothing"):
        status, text = await ask(served, path, account=foreign)
        assert status == 403, path
        assert "answers only the account that runs it" in text and "mendflow admin tokens create" in text
    assert (await ask(served, "/health", account=foreign))[0] == 200


async def test_the_account_that_runs_the_server_sets_up_nothing(
    served: HttpServer, http: aiohttp.ClientSession
) -> None:
    assert (await ask(served, "/cases"))[0] == 200
    async with http.get(f"{served.url}/api/v1/cases") as response:
        assert response.status == 200
    async with http.get(
        f"{served.url}/api/v1/cases", headers={"Authorization": "Bearer of-some-other-server"}
    ) as other:
        assert other.status == 200


async def test_another_account_gets_in_with_a_token(serving: Serving, domain: DomainUnderTest, foreign: int) -> None:
    tokens = domain._server.access_tokens
    served = await serving(AccessControl(stored=tokens))
    made = await domain.create_token(TokenRequest(name="prometheus", roles=["reader"]), who="root")
    assert (await ask(served, "/cases", account=foreign, token=made.token))[0] == 200
    assert (await ask(served, "/tokens", account=foreign, token=made.token))[0] == 403
    await domain.revoke_token("prometheus", who="root")
    assert (await ask(served, "/cases", account=foreign, token=made.token))[0] == 403


async def test_where_the_kernel_says_nothing_nobody_is_let_in(
    served: HttpServer, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_accounts, "account_of", lambda client, server: None)
    async with http.get(f"{served.url}/api/v1/cases") as response:
        assert response.status == 403
        assert "the kernel does not say" in await response.text()
