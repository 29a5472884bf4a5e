"""TLS of servers and of whoever asks them: who is trusted, who is refused and hears what to do, and certificates that
are replaced while a server runs. SE-5"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mendflow.address_guard import ANYWHERE
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, TemporarilyUnavailable, Unreachable
from mendflow.pilot.agent.http import ExchangeClient, FileClient, ServerAddress, ServerAway
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.connection_limits import ConnectionLimits
from mendflow.server.domain_lines import HttpDomainLines
from mendflow.server.outgoing import OutgoingCalls
from mendflow.server.peer_requests import PeerRequests
from mendflow.server.peers import HttpPeers
from mendflow.server.pilot_api import SYNC_PATH
from mendflow.server.runner import HttpServer, reload_certificate, serve
from mendflow.services.base.cluster import PeerUnavailable, ServerDocument
from mendflow.tls import BadTlsFile, ClientTls, ServerCertificate, ServerTls, check_pin, pin_of_file
from tests.server.conftest import DomainUnderTest
from tests.servers.certificates import Authority, self_signed

HEALTH = "/api/v1/health"
Serving = Callable[[ServerTls], Awaitable[HttpServer]]


@pytest.fixture
async def serving(domain: DomainUnderTest) -> AsyncIterator[Serving]:
    async with AsyncExitStack() as stack:

        async def start(settings: ServerTls) -> HttpServer:
            app = create_app(domain, access=AccessControl(), let_go=domain.let_go)
            served = await serve(app, certificate=ServerCertificate(settings))
            stack.push_async_callback(served.stop)
            return served

        yield start


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def shown(pair: tuple[Path, Path], client_ca: Path | str = "") -> ServerTls:
    return ServerTls(str(pair[0]), str(pair[1]), str(client_ca))


async def status(url: str, tls: ClientTls) -> str:
    async with Client(url, timeout_s=20, tls=tls) as client:
        return (await client.health()).status


async def refusal(url: str, tls: ClientTls) -> str:
    """What whoever asks is told; the same in substance for a client and for a pilot."""
    with pytest.raises(Unreachable) as told:
        await status(url, tls)
    with pytest.raises(ServerAway) as of_pilot:
        await ExchangeClient(ServerAddress(url, "", tls), SYNC_PATH).post(b"", 20)
    assert "--tls" in told.value.message or "renew" in told.value.message, told.value.message
    assert "--tls" in str(of_pilot.value) or "renew" in str(of_pilot.value), str(of_pilot.value)
    return told.value.message


async def test_a_server_is_trusted_by_its_ca(serving: Serving, authority: Authority) -> None:  # SE-5
    served = await serving(shown(authority.sign("server")))
    assert served.url.startswith("https://")
    assert await status(served.url, ClientTls(ca=str(authority.cert))) == "ok"
    files = FileClient(ServerAddress(served.url, "", ClientTls(ca=str(authority.cert))))
    await asyncio.to_thread(files.put_many, {})


async def test_a_server_of_another_ca_is_refused(
    serving: Serving, authority: Authority, tmp_path: Path
) -> None:  # SE-5
    served = await serving(shown(authority.sign("server")))
    other = Authority(tmp_path / "other", "other")
    assert "not of a CA that is known here" in await refusal(served.url, ClientTls(ca=str(other.cert)))
    assert "not of a CA that is known here" in await refusal(served.url, ClientTls())


async def test_an_expired_certificate_and_one_for_another_name_are_refused(  # SE-5
    serving: Serving, authority: Authority
) -> None:
    trust = ClientTls(ca=str(authority.cert))
    expired = await serving(shown(authority.sign("old", expired=True)))
    assert "has expired" in await refusal(expired.url, trust)
    elsewhere = await serving(shown(authority.sign("elsewhere", host="elsewhere.example.org")))
    assert "for another name" in await refusal(elsewhere.url, trust)


async def test_a_pinned_certificate_is_trusted_and_no_other(serving: Serving, tmp_path: Path) -> None:  # SE-5
    mine, other = self_signed(tmp_path, "mine"), self_signed(tmp_path, "other")
    served = await serving(shown(mine))
    for pin in (pin_of_file(mine[0]), f"file:{mine[0]}", f"{pin_of_file(other[0])},{pin_of_file(mine[0])}"):
        assert await status(served.url, ClientTls(pin=pin)) == "ok"
    files = FileClient(ServerAddress(served.url, "", ClientTls(pin=pin_of_file(mine[0]))))
    await asyncio.to_thread(files.put_many, {})
    assert "not the one that was pinned" in await refusal(served.url, ClientTls(pin=pin_of_file(other[0])))
    strange = FileClient(ServerAddress(served.url, "", ClientTls(pin=pin_of_file(other[0]))))
    with pytest.raises(ServerAway, match="not the one that was pinned"):
        await asyncio.to_thread(strange.put_many, {})


async def test_who_shows_no_certificate_or_a_strange_one_is_refused(  # SE-5
    serving: Serving, authority: Authority, tmp_path: Path
) -> None:
    clients = Authority(tmp_path / "clients", "clients")
    cert, key = map(str, clients.sign("pilot"))
    served = await serving(shown(authority.sign("server"), clients.cert))
    ca = str(authority.cert)
    assert await status(served.url, ClientTls(ca=ca, cert=cert, key=key)) == "ok"
    assert "wants a certificate" in await refusal(served.url, ClientTls(ca=ca))
    strange_cert, strange_key = map(str, self_signed(tmp_path, "strange"))
    assert "--tls-client-ca" in await refusal(served.url, ClientTls(ca=ca, cert=strange_cert, key=strange_key))


async def test_servers_and_domains_use_the_same_settings(  # SE-5
    serving: Serving, authority: Authority, tmp_path: Path
) -> None:
    clients = Authority(tmp_path / "clients", "clients")
    cert, key = map(str, clients.sign("server-2"))
    served = await serving(shown(authority.sign("server"), clients.cert))
    right, wrong = ClientTls(ca=str(authority.cert), cert=cert, key=key), ClientTls(ca=str(authority.cert))
    document = ServerDocument(id="one", url=served.url)
    for tls, told in ((right, "401"), (wrong, "no answer")):
        peers = HttpPeers(tls)
        with pytest.raises(PeerUnavailable, match=told):  # it is reached, and then wants a token of servers
            await peers.pilots(document)
        await peers.close()
        lines = HttpDomainLines(loopback=lambda: True, tls=tls)
        calls = lines.calls(guarded=False)
        try:
            async with calls.request("GET", f"{served.url}/api/v1/health") as response:
                reached = response.status == 200
        except (OSError, aiohttp.ClientError):
            reached = False
        assert reached is (tls is right)
        await lines.close()


async def test_servers_and_domains_read_their_files_again_when_these_change(  # SE-5
    serving: Serving, authority: Authority, tmp_path: Path
) -> None:
    served, other = await serving(shown(authority.sign("server"))), Authority(tmp_path / "other", "other")
    used = tmp_path / "used.pem"
    shutil.copy(authority.cert, used)
    tls, document = ClientTls(ca=str(used)), ServerDocument(id="one", url=served.url)
    peers, requests = HttpPeers(tls), PeerRequests(lambda _id: document, "", tls)
    calls = OutgoingCalls(ANYWHERE, total_s=20, tls=tls, keeps_connections=True)
    scope: Any = {"method": "GET", "path": HEALTH, "raw_path": HEALTH.encode(), "query_string": b"", "headers": []}
    scope["state"] = {}

    async def reached() -> list[bool]:
        found = []
        with pytest.raises(PeerUnavailable) as told:
            await peers.pilots(document)
        found.append("401" in str(told.value))
        for opening in (requests.open_request(document, scope, b""), calls.request("GET", served.url + HEALTH)):
            try:
                async with opening as response:
                    await response.read()
                    found.append(response.status < 500)
            except (OSError, aiohttp.ClientError, TemporarilyUnavailable):
                found.append(False)
        return found

    assert await reached() == [True] * 3
    for number, (text, trusted) in enumerate(
        [("no certificate", True), (other.cert.read_text(), False), (authority.cert.read_text(), True)], 1
    ):
        used.write_text(text)
        os.utime(used, ns=(number, number))
        assert await reached() == [trusted] * 3, f"after change {number}"
    for each in (peers, requests, calls):
        await each.close()


async def test_a_certificate_that_is_replaced_holds_for_new_connections_and_breaks_none(  # SE-5
    serving: Serving, tmp_path: Path
) -> None:
    old, new = self_signed(tmp_path, "old"), self_signed(tmp_path, "new")
    used = (tmp_path / "used.pem", tmp_path / "used.key")
    for source, target in zip(old, used, strict=True):
        shutil.copy(source, target)
    served = await serving(shown(used))
    async with Client(served.url, tls=ClientTls(pin=pin_of_file(old[0]))) as before:
        assert (await before.health()).status == "ok"
        for source, target in zip(new, used, strict=True):
            shutil.copy(source, target)
        os.utime(used[0], ns=(1, 1))
        assert served.certificate is not None
        reload_certificate(served.certificate)
        assert (await before.health()).status == "ok"
        assert await status(served.url, ClientTls(pin=pin_of_file(new[0]))) == "ok"
        assert await status(served.url, ClientTls(pin=f"file:{used[0]}")) == "ok"
        used[0].write_text("no certificate")
        reload_certificate(served.certificate)
        assert await status(served.url, ClientTls(pin=pin_of_file(new[0]))) == "ok"


async def test_a_handshake_that_does_not_go_on_is_ended(domain: DomainUnderTest, tmp_path: Path) -> None:  # SE-3
    app = create_app(domain, access=AccessControl(), let_go=domain.let_go)
    certificate = ServerCertificate(shown(self_signed(tmp_path, "server")))
    async with AsyncExitStack() as stack:
        lines: list[asyncio.StreamReader] = []
        for header_s in (600, 0.5):
            served = await serve(app, certificate=certificate, limits=ConnectionLimits(header_s=header_s))
            stack.push_async_callback(served.stop)
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            stack.callback(writer.close)
            lines.append(reader)
        patient, strict = lines
        assert await strict.read() == b""
        assert not patient.at_eof(), "each goes by the limit of its own server, not by a minute"


async def test_an_old_protocol_is_refused(serving: Serving, tmp_path: Path) -> None:  # SE-5
    served = await serving(shown(self_signed(tmp_path)))
    old = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect", f"127.0.0.1:{served.port}"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await old.communicate()
    assert old.returncode != 0, told.decode()


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:  # SE-5
    cert, key = self_signed(tmp_path)
    for settings in (ServerTls(str(tmp_path / "none")), ServerTls(str(key)), ServerTls(str(cert), str(cert))):
        with pytest.raises(BadTlsFile, match=str(tmp_path)):
            ServerCertificate(settings)
    for pin in ("sha256:12", "md5:" + "0" * 32, f"file:{key}", ""):
        with pytest.raises(BadTlsFile):
            check_pin(pin)


async def test_a_ca_file_that_is_none_is_told_before_anything_is_sent(tmp_path: Path) -> None:  # SE-5
    with pytest.raises(InvalidRequest, match=r"none\.pem"):
        await status("https://127.0.0.1:9", ClientTls(ca=str(tmp_path / "none.pem")))
