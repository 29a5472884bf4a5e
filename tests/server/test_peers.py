"""What servers on one store say to each other: who may, what arrives, and that two whole servers work together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
import pytest

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName, PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import ADMIN
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import AttemptReport, Capacity, SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.server.access import AccessControl, AccessToken, token_hash
from mendflow.server.app import create_app
from mendflow.server.peers import HttpPeers
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.domain import Domain
from mendflow.services.api.peer_handler import PeerHandler
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import PeerUnavailable, ServerDocument
from mendflow.services.cluster.shared_secret import SECRET_KIND, derived, shared_secret
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.server.conftest import DomainUnderTest

CAPACITY = Capacity(slots=2, cpus=2.0, memory_bytes=1 << 30, disk_bytes=1 << 30)
TOKEN = "what only servers know"


def request_of(serial: int, *, front: str = "b", **more: object) -> SyncRequest:
    fixed = SyncRequest(pilot=PilotId("p"), serial=serial, host="here", capacity=CAPACITY, want=0, front=front)
    return msgspec.structs.replace(fixed, **more)


class Heard:
    """A server that remembers what others said to it."""

    def __init__(self) -> None:
        self.passed: list[tuple[SyncRequest, str]] = []
        self.nudges: list[tuple[list[PilotId], bool, str]] = []

    async def sync(self, request: SyncRequest, who: str) -> SyncAnswer:
        self.passed.append((request, who))
        return SyncAnswer(serial=request.serial, lease_ms=30_000)

    def nudged(self, pilots: list[PilotId], *, work: bool, by: str) -> None:
        self.nudges.append((pilots, work, by))

    def pilots(self) -> list[PilotView]:
        return []

    def cards(self) -> list[CacheAdvert]:
        return []

    async def stats(self, running: int) -> StatsView:
        raise AssertionError("nobody asks for this here")

    def archive(self, root: CaseId) -> AsyncIterator[bytes]:
        raise AssertionError("nobody asks for this here")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def other(domain: DomainUnderTest, heard: Heard) -> AsyncIterator[ServerDocument]:
    """A server with tokens, and with others beside it."""
    admin = AccessToken("root", frozenset({ADMIN}), token_hash("admin"))
    app = create_app(domain, access=AccessControl([admin], servers_token=TOKEN), peer=heard)
    served = await serve(app)
    yield ServerDocument(id="a", url=served.url)
    await served.stop()


@pytest.fixture
async def peers() -> AsyncIterator[HttpPeers]:
    client = HttpPeers()
    client.introduce(TOKEN)
    yield client
    await client.close()


async def test_an_exchange_and_a_nudge_arrive_as_they_were_given(
    heard: Heard, other: ServerDocument, peers: HttpPeers
) -> None:
    answer = await peers.sync(other, request_of(7), "ann")
    await peers.nudge(other, pilots=[PilotId("p")], work=True, by="b")
    assert (answer.serial, answer.lease_ms) == (7, 30_000)
    assert [(request.serial, request.front, who) for request, who in heard.passed] == [(7, "b", "ann")]
    assert heard.nudges == [(["p"], True, "b")]


@pytest.mark.parametrize("shown", ["", "Bearer admin", "Bearer what only servers knew", f"Basic {TOKEN}"])
async def test_nobody_but_servers_may_pass_an_exchange_on(heard: Heard, other: ServerDocument, shown: str) -> None:
    async with aiohttp.ClientSession() as http:
        headers = {"Authorization": shown} if shown else {}
        async with http.post(f"{other.url}/api/v1/peers/sync", data=b"", headers=headers) as response:
            assert response.status == 401
    assert heard.passed == []


async def test_what_servers_know_opens_nothing_else(other: ServerDocument) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.request("GET", f"{other.url}/api/v1/cases", headers=headers) as response:
        assert response.status == 401


async def test_a_lone_server_has_no_way_for_others(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl()))
    try:
        headers = {"Authorization": "Bearer "}
        async with aiohttp.request("POST", f"{served.url}/api/v1/peers/sync", headers=headers) as response:
            assert response.status == 401
    finally:
        await served.stop()


async def test_a_pilot_cannot_speak_as_a_front(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl()))
    try:
        async with aiohttp.ClientSession() as http:
            body = msgspec.msgpack.encode(request_of(1, front="b"))
            async with http.post(f"{served.url}/api/v1/pilots/sync", data=body) as response:
                assert response.status == 400 and "only servers forward requests" in await response.text()
    finally:
        await served.stop()


async def test_a_server_that_is_not_there_or_does_not_understand_is_away(
    other: ServerDocument, peers: HttpPeers
) -> None:
    with pytest.raises(PeerUnavailable):
        await peers.sync(ServerDocument(id="x", url="http://127.0.0.1:9"), request_of(1), "")
    with pytest.raises(PeerUnavailable):
        await peers.sync(ServerDocument(id="y", url=""), request_of(1), "")
    with pytest.raises(PeerUnavailable):
        await peers.sync(other, request_of(1, front=""), "")
    await peers.nudge(ServerDocument(id="x", url="http://127.0.0.1:9"), pilots=[], work=True, by="b")


async def test_all_servers_on_a_store_have_one_secret_and_it_gives_one_token_for_each_purpose() -> None:
    store = MemoryStore()
    await store.open()
    first, second = await asyncio.gather(shared_secret(store), shared_secret(store))
    assert first == second and len(first) >= 64
    tokens = {derived(first, purpose) for purpose in ("server", "local pilot")}
    assert len(tokens) == 2 and first not in tokens
    assert len([found async for found in store.scan(SECRET_KIND)]) == 1


class Whole:
    """A whole server over a store that it shares."""

    def __init__(self, name: str, store: Store, folder: Path) -> None:
        self.peers = HttpPeers()
        self.peers.introduce(TOKEN)
        self.document = ServerDocument(id=name, url="")
        file_store = FolderFileStore(folder / "files")
        file_store.open()
        self.server = Server(
            store=store,
            file_store=file_store,
            clock=SystemClock(),
            settings=ServerSettings(),
            version="0",
            server=self.document,
            peers=self.peers,
            meter=steady_ms,
        )
        self.domain = Domain(self.server)
        self.served: HttpServer | None = None

    async def open(self) -> None:
        await self.server.open()
        access = AccessControl(servers_token=TOKEN)
        self.served = await serve(create_app(self.domain, access=access, peer=PeerHandler(self.server)))
        self.document.url = self.served.url

    async def close(self) -> None:
        assert self.served is not None
        await self.served.stop()
        await self.server.close()
        await self.peers.close()


async def test_a_pilot_of_one_server_runs_a_case_of_another(tmp_path: Path) -> None:  # JS-6
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        one, two = Whole("one", store, tmp_path), Whole("two", store, tmp_path)
        for whole in (one, two):
            await whole.open()
            stack.push_async_callback(whole.close)
        async with asyncio.timeout(PATIENCE_S):
            while not all(whole.server.membership.live_servers() for whole in (one, two)):
                await asyncio.sleep(0.05)
            while not (two.server.membership.live_servers()[0].url and one.server.membership.live_servers()[0].url):
                await asyncio.sleep(0.05)
            await one.domain.deploy(Flow(name=FlowName("flow"), body=JobActivity(name="a", command="true")))
            held = asyncio.create_task(two.domain.sync(request_of(1, front="", want=1, wait_ms=10_000), who="t"))
            await asyncio.sleep(0.05)
            case = await one.domain.start("flow", {}, who="me")
            [job] = (await held).jobs
            [pilot] = await one.domain.pilots()
            assert (pilot.front, pilot.running) == ("two", [job.job])
            report = AttemptReport(job.job, job.fence, Outcome(outputs=1))
            answer = await two.domain.sync(request_of(2, front="", heard=1, reports=[report]), who="t")
            assert [ref.job for ref in answer.accepted] == [job.job]
            while (await one.domain.case(case.id)).status != "completed":
                await asyncio.sleep(0.02)
            assert [(view.id, view.state) for view in await two.domain.servers()] == [
                ("two", "alive"),
                ("one", "alive"),
            ]
