"""What domains ask each other over HTTP: who may, what arrives, and what a token of a connection does not open. FM-4"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from mendflow.core.model.domains import (
    ConnectionSpec,
    DomainAnswer,
    DomainReport,
    DomainRequest,
    DomainRights,
    InvitationSpec,
    WorkClaim,
    WorkStatus,
)
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, TooLarge, Unreachable
from mendflow.core.model.principals import ADMIN
from mendflow.server.access import DOMAIN, AccessControl, AccessToken, token_hash
from mendflow.server.app import create_app
from mendflow.server.domain_lines import HttpDomainLines, HttpLine
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.domain import Domain
from mendflow.services.api.domain_gate import DomainGate
from mendflow.services.base.clock import SystemClock
from mendflow.services.domains.connected_domains import ConnectedDomains
from mendflow.services.domains.work_contracts import WorkHost
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore

CONTENT = bytes(range(256)) * 5000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
TESTER = "s"
ADMIN_TOKEN = "what the administrator knows"


class Town:
    """A domain behind HTTP, with a token for its administrator."""

    def __init__(self, name: str, folder: Path, *, loopback: bool = True) -> None:
        files = FolderFileStore(folder / name)
        files.open()
        self.name = name
        self.lines = HttpDomainLines(loopback=lambda: loopback)
        self.server = Server(
            store=MemoryStore(),
            file_store=files,
            clock=SystemClock(),
            settings=ServerSettings(domain=name),
            version="test",
            lines=self.lines,
        )
        self.domain = Domain(self.server)
        self.http: HttpServer

    async def open(self, stack: AsyncExitStack) -> None:
        await self.server.open()
        stack.push_async_callback(self.server.close)
        access = AccessControl([AccessToken("ann", frozenset({ADMIN}), token_hash(ADMIN_TOKEN))])
        self.http = await serve(create_app(self.domain, access=access, gate=DomainGate(self.server)))
        stack.push_async_callback(self.http.stop)
        stack.push_async_callback(self.lines.close)
        self.server.listens_at(self.http.url)

    @property
    def services(self) -> ConnectedDomains:
        return self.server.runtime.connected

    def line(self, name: str) -> HttpLine:
        connection = self.services.connections.find(name)
        assert connection is not None
        urls, token = connection.urls, lambda: self.services.connections.own_token(connection)
        return self.lines.line(urls, token, public_only=connection.names_itself)


class Host:
    """Does no work, and remembers what was asked."""

    def __init__(self, town: Town) -> None:
        self.asked: list[tuple[str, DomainRights, DomainRequest]] = []
        self.wanted: set[str] = set()
        self.readable: set[str] = set()
        self.delivered: list[tuple[str, str]] = []
        hub = town.server.runtime.hub
        hub._providers.pop(WorkHost, None)
        hub.provide(WorkHost, self)

    async def exchange(
        self, origin: str, rights: DomainRights, request: DomainRequest, report: DomainReport | None = None
    ) -> DomainAnswer:
        if request.sender == TESTER:  # the domains exchange by themselves, too
            self.asked.append((origin, rights, request))
        works = tuple(WorkStatus(key=each.key, fence=each.fence, state="unknown") for each in request.claims)
        return DomainAnswer(stamp=7, report=report, works=works)

    def wants_file(self, origin: str, sha256: str) -> bool:
        return sha256 in self.wanted

    def file_delivered(self, origin: str, sha256: str) -> None:
        self.delivered.append((origin, sha256))

    def file_bytes_max(self, origin: str, sha256: str) -> int:
        return len(CONTENT)

    def has_shown(self, origin: str, sha256: str) -> bool:
        return (origin, sha256) in self.delivered or sha256 in self.readable

    def may_read(self, origin: str, sha256: str) -> bool:
        return sha256 in self.readable

    async def disconnect(self, origin: str) -> None: ...


@pytest.fixture
async def towns(tmp_path: Path) -> AsyncIterator[tuple[Town, Town]]:
    async with AsyncExitStack() as stack:
        made = Town("north", tmp_path), Town("south", tmp_path)
        for each in made:
            await each.open(stack)
        yield made


async def connected(towns: tuple[Town, Town], **invited: object) -> tuple[Town, Town, Host]:
    """Both, connected, and the host of the first."""
    north, south = towns
    host = Host(north)
    spec = InvitationSpec(**invited)  # type: ignore[arg-type]  # own fields
    token = (await north.domain.invite_domain("south", spec, who="ann")).token
    await south.domain.connect_domain("north", ConnectionSpec(urls=(north.http.url,), token=token), who="bob")
    return north, south, host


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(content), 100_000):
        yield content[begin : begin + 100_000]


async def test_an_exchange_arrives_under_the_name_and_with_the_rights_of_its_connection(
    towns: tuple[Town, Town],
) -> None:  # FM-4
    rights = DomainRights(work_max=3)
    _, south, host = await connected(towns, rights=rights)
    request = DomainRequest(sender=TESTER, serial=4, claims=(WorkClaim("c-1/1", 2),), lease_ms=1000)
    answer = await south.line("north").exchange(request)
    assert answer.works == (WorkStatus(key="c-1/1", fence=2, state="unknown"),)
    assert host.asked == [("south", rights, request)]


async def test_a_token_of_a_connection_opens_nothing_else(towns: tuple[Town, Town]) -> None:
    north, south, _ = await connected(towns)
    connection = south.services.connections.find("north")
    assert connection is not None
    token = await south.services.connections.own_token(connection)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        for method, path in (
            ("GET", "/cases"),
            ("POST", "/pilots/sync"),
            ("GET", "/domains"),
            ("GET", f"/files/{DIGEST}"),
        ):
            async with http.request(method, f"{north.http.url}/api/v1{path}") as response:
                assert response.status == 401, path
        for way in ("/api//v1/domain/exchange", "/api/v1/domain/../cases", "/API/v1/domain/exchange"):
            async with http.post(north.http.url + way, json={"sender": TESTER, "serial": 0}) as response:
                assert response.status in (401, 404), way
        async with http.post(f"{north.http.url}{DOMAIN}nothing") as response:
            assert response.status == 404


@pytest.mark.parametrize("header", [None, f"Bearer {ADMIN_TOKEN}", "Bearer x", "Basic x", "Bearer "])
async def test_no_other_token_opens_the_paths_between_domains(towns: tuple[Town, Town], header: str | None) -> None:
    north, _, host = await connected(towns)
    headers = {"Authorization": header} if header is not None else {}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{north.http.url}{DOMAIN}exchange", json={"sender": TESTER, "serial": 0}) as response,
    ):
        assert response.status in (401, 403)
    assert not host.asked


async def test_who_was_disconnected_is_refused_and_what_cannot_be_reached_is_unknown(
    towns: tuple[Town, Town],
) -> None:
    north, south, _ = await connected(towns)
    line = south.line("north")
    await north.domain.disconnect_domain("south", who="ann", force=True)
    with pytest.raises(Forbidden, match="has disconnected"):
        await line.exchange(DomainRequest(sender=TESTER, serial=0))
    await north.http.stop()
    with pytest.raises(Unreachable, match="no answer from"):
        await line.exchange(DomainRequest(sender=TESTER, serial=0))


async def test_the_next_address_is_asked_where_one_takes_no_connection(towns: tuple[Town, Town]) -> None:
    north, south, host = await connected(towns)
    connection = south.services.connections.find("north")
    assert connection is not None
    dead = "http://127.0.0.1:9"
    line = south.lines.line(
        [dead, north.http.url], lambda: south.services.connections.own_token(connection), public_only=False
    )
    for _ in range(2):
        await line.exchange(DomainRequest(sender=TESTER, serial=0))
    assert len(host.asked) == 2


async def test_files_go_over_whole_and_checked_and_only_those_of_works(towns: tuple[Town, Town]) -> None:
    north, south, host = await connected(towns)
    line = south.line("north")
    with pytest.raises(Forbidden, match="no work of this domain waits for a file"):
        await line.put_file(DIGEST, pieces(CONTENT))
    assert await line.missing_from(DIGEST) == 0
    host.wanted.add(DIGEST)
    with pytest.raises((InvalidRequest, Unreachable)):
        await line.put_file(DIGEST, pieces(b"something else"))
    assert await north.server.file_store.size(DIGEST) is None
    await line.put_file(DIGEST, pieces(CONTENT))
    assert await north.server.file_store.size(DIGEST) == len(CONTENT)
    assert host.delivered == [("south", DIGEST)]  # once, although the wrong content came before
    assert await line.missing_from(DIGEST) is None
    host.delivered.clear()
    assert await line.missing_from(DIGEST) == 0  # that it is wanted says nothing of what is here
    with pytest.raises(NotFound):
        assert not [piece async for piece in line.get_file(DIGEST)]
    host.readable.add(DIGEST)
    assert b"".join([piece async for piece in line.get_file(DIGEST)]) == CONTENT
    for offset in (1, 70_000, len(CONTENT) - 1, len(CONTENT)):
        assert b"".join([piece async for piece in line.get_file(DIGEST, offset)]) == CONTENT[offset:]


async def test_a_file_that_broke_off_on_its_way_there_goes_on_where_it_did(towns: tuple[Town, Town]) -> None:  # DM-1
    north, south, host = await connected(towns)
    line, half = south.line("north"), len(CONTENT) // 2
    host.wanted.add(DIGEST)

    async def broken_off() -> AsyncIterator[bytes]:
        yield CONTENT[:half]
        await soon_there(half)
        raise OSError("the line is cut")

    async def soon_there(size: int) -> None:
        while await line.missing_from(DIGEST) != size:
            await asyncio.sleep(0.01)

    with pytest.raises(Unreachable):
        await line.put_file(DIGEST, broken_off())
    await soon_there(half)
    with pytest.raises(Unreachable, match=f"only {half} bytes"):
        await line.put_file(DIGEST, pieces(CONTENT[half + 1 :]), half + 1)
    await line.put_file(DIGEST, pieces(CONTENT[half:]), half)
    assert await north.server.file_store.size(DIGEST) == len(CONTENT)
    assert await line.missing_from(DIGEST) is None


async def test_a_file_is_no_larger_than_a_domain_may_have_here(towns: tuple[Town, Town]) -> None:
    _, south, host = await connected(towns, rights=DomainRights(bytes_max=1000))
    host.wanted.add(DIGEST)
    with pytest.raises((TooLarge, Unreachable)):
        await south.line("north").put_file(DIGEST, pieces(CONTENT))
    assert await south.line("north").missing_from(DIGEST) == 0


async def test_an_address_that_a_domain_names_itself_is_not_called_if_it_is_private(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        north, south = Town("north", tmp_path, loopback=False), Town("south", tmp_path)
        for each in (north, south):
            await each.open(stack)
        token = (await north.domain.invite_domain("south", InvitationSpec(), who="ann")).token
        await south.domain.connect_domain("north", ConnectionSpec(urls=(north.http.url,), token=token), who="bob")
        with pytest.raises(Unreachable, match="is a private address, which the other domain has named itself"):
            await north.line("south").exchange(DomainRequest(sender=TESTER, serial=0))
        await south.line("north").exchange(DomainRequest(sender=TESTER, serial=0))


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "192.168.1.1", "[fe80::1]", "[fd00::1]", "0.0.0.0"])
async def test_where_addresses_of_this_machine_are_called_other_private_ones_are_not(host: str) -> None:
    async def token() -> str:
        return "t"

    lines = HttpDomainLines(loopback=lambda: True)
    line = lines.line([f"http://{host}:9"], token, public_only=True)
    with pytest.raises(Unreachable, match="is a private address"):
        await line.exchange(DomainRequest(sender=TESTER, serial=0))
    await lines.close()


async def test_what_a_peer_of_a_later_version_says_besides_is_passed_over(towns: tuple[Town, Town]) -> None:  # FM-4
    north, south, host = await connected(towns)
    connection = south.services.connections.find("north")
    assert connection is not None
    token = await south.services.connections.own_token(connection)
    body = b'{"said_by_later_versions": [1], "sender": "%s", "serial": 7}' % TESTER.encode()
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{north.http.url}{DOMAIN}exchange", data=body) as response,
    ):
        assert response.status == 200
    assert [request.serial for _, _, request in host.asked] == [7]


async def test_bad_requests_are_told_and_change_nothing(towns: tuple[Town, Town]) -> None:
    north, south, host = await connected(towns)
    connection = south.services.connections.find("north")
    assert connection is not None
    token = await south.services.connections.own_token(connection)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        for body in (b"", b"[]", b"{}", b'{"sender": 3, "serial": 0}', b"\xff"):
            async with http.post(f"{north.http.url}{DOMAIN}exchange", data=body) as response:
                assert response.status == 400, body
        async with http.get(f"{north.http.url}{DOMAIN}exchange") as response:
            assert response.status == 405
    assert not host.asked
    with pytest.raises(Conflict, match="is called 'north'"):
        spec = ConnectionSpec(urls=(north.http.url,), token=token)
        await south.domain.connect_domain("nord", spec, who="bob")
