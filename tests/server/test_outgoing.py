"""The guarded way out of a server: private addresses only by the allow-list, the connection goes to the address that
was checked, and nothing is redirected. SE-5"""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.resolver import ThreadedResolver

from mendflow.address_guard import (
    ANYWHERE,
    OWN_MACHINE,
    PUBLIC_ONLY,
    AddressGuard,
    allowed_address,
    check_url,
)
from mendflow.core.model.errors import InvalidRequest
from mendflow.server import guarded_resolver
from mendflow.server.access import single_token
from mendflow.server.outgoing import OutgoingCalls, PrivateAddress, is_refused
from mendflow.server_options import ServerOptions, outgoing_guard


@asynccontextmanager
async def listening(
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
) -> AsyncIterator[tuple[int, list[str]]]:
    """A server of this machine; what it was asked."""
    asked: list[str] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().strip())
        while (await reader.readline()).strip():
            pass
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


async def call(guard: AddressGuard, url: str) -> int:
    async with OutgoingCalls(guard, total_s=20) as calls, calls.request("GET", url) as response:
        await response.read()
        return response.status


def guard_of(*rules: str, private: bool = False) -> AddressGuard:
    return AddressGuard(private=private, allowed=tuple(map(allowed_address, rules)))


PLAIN = ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
NORMALIZED = [
    "\N{CIRCLED DIGIT ONE}\N{CIRCLED DIGIT TWO}\N{CIRCLED DIGIT SEVEN}.0.0.1",
    "127\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}1",
    "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}\N{FULLWIDTH DIGIT SEVEN}.0.0.1",
    "127%2e0.0.1",
]
"""Hosts that the library makes an address of when it calls them."""


@pytest.mark.parametrize("host", NORMALIZED)
def test_an_address_whose_host_is_not_written_plainly_is_refused(host: str) -> None:  # SE-5
    with pytest.raises(InvalidRequest, match="not written plainly"):
        check_url(f"http://{host}/", guard=PUBLIC_ONLY)
    check_url("http://xn--bcher-kva.example/", guard=PUBLIC_ONLY)


@pytest.mark.parametrize("host", [*PLAIN, *NORMALIZED])
async def test_no_way_of_writing_this_machine_gets_by(host: str) -> None:  # SE-5
    async with listening() as (port, asked):
        with pytest.raises((PrivateAddress, aiohttp.ClientError)) as refused:
            await call(PUBLIC_ONLY, f"http://{host}:{port}/")
        # Some of them are no address for the library, or for the resolver of this machine.
        unknown = (aiohttp.InvalidURL, aiohttp.ClientConnectorDNSError)
        assert is_refused(refused.value) or isinstance(refused.value, unknown)
        assert asked == []


@pytest.mark.parametrize("rule", ["127.0.0.0/8", "127.0.0.1", "127.0.0.1:{port}", "localhost:{port}", "localhost"])
async def test_what_is_on_the_allow_list_is_called(rule: str) -> None:  # SE-5
    async with listening() as (port, asked):
        guard = guard_of(rule.format(port=port))
        host = "localhost" if "localhost" in rule else "127.0.0.1"
        assert await call(guard, f"http://{host}:{port}/x") == 200
        assert asked == ["GET /x HTTP/1.1"]
        with pytest.raises(PrivateAddress):
            await call(guard_of("127.0.0.1:1", "localhost:1"), f"http://{host}:{port}/")


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-5
    answers = iter(["93.184.216.34", "127.0.0.1"])
    asked: list[str] = []

    async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, object]]:
        asked.append(host)
        found = next(answers)
        return [{"hostname": host, "host": found, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    resolver = guarded_resolver.GuardedResolver(PUBLIC_ONLY)
    assert [each["host"] for each in await resolver.resolve("rebinding.example.org", 80)] == ["93.184.216.34"]
    with pytest.raises(PrivateAddress):
        await resolver.resolve("rebinding.example.org", 80)
    assert asked == ["rebinding.example.org"] * 2


async def test_a_redirect_is_not_followed() -> None:  # SE-5
    async with listening() as (secret, asked):
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{secret}/\r\nContent-Length: 0\r\n\r\n".encode()
        async with listening(moved) as (port, _):
            assert await call(guard_of(f"127.0.0.1:{port}"), f"http://127.0.0.1:{port}/") == 302
        assert asked == []


def test_metadata_and_the_local_link_are_called_by_the_allow_list_alone() -> None:  # SE-5
    for text in ("169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254"):
        address = ipaddress.ip_address(text)
        assert not PUBLIC_ONLY.allows(text, 80, address)
        assert not OWN_MACHINE.allows(text, 80, address)
        assert guard_of(text).allows(text, 80, address)
        assert ANYWHERE.allows(text, 80, address)
    for text in ("10.0.0.1", "192.168.1.1", "127.0.0.1", "::1", "fd12::1"):
        address = ipaddress.ip_address(text)
        assert (PUBLIC_ONLY.allows(text, 80, address), OWN_MACHINE.allows(text, 80, address)) == (False, True)
    with pytest.raises(InvalidRequest, match="--allow-address"):
        check_url("http://169.254.169.254/latest/meta-data", guard=OWN_MACHINE)


def test_a_server_with_tokens_calls_no_private_address_unless_told(tmp_path: Path) -> None:  # SE-5
    def calls(*, alone: bool = True, **more: Any) -> bool:
        guard = outgoing_guard(ServerOptions(data=tmp_path, **more), lambda: alone)
        return guard.allows("10.0.0.1", 80, ipaddress.ip_address("10.0.0.1"))

    tokens = tuple(single_token("t"))
    assert calls()
    assert not calls(alone=False), "the store has tokens of others"
    assert not calls(tokens=tokens)
    assert not calls(host="0.0.0.0", tokens=tokens)
    assert calls(tokens=tokens, webhooks_to_private=True)


@pytest.mark.parametrize("text", ["", "10.0.0.0/99", "a b", "host:0", "host:99999", "[fd00::1"])
def test_what_is_no_address_is_refused(text: str) -> None:  # SE-5
    with pytest.raises(InvalidRequest, match="--allow-address"):
        allowed_address(text)
