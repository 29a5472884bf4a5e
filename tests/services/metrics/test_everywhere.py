"""The numbers of several servers on one store, asked of one of them, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.peers import HttpPeers
from mendflow.server.runner import serve
from mendflow.services.api.domain import Domain
from mendflow.services.api.peer_handler import PeerHandler
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S

SECRET = "only servers know it"


class Shared(MemoryStore):
    """One store for several servers, which none of them may close for the others."""

    async def close(self) -> None: ...


@asynccontextmanager
async def server(name: str, store: Shared, folder: Path) -> AsyncIterator[tuple[Server, Domain]]:
    neighbours = HttpPeers()
    neighbours.introduce(SECRET)
    document = ServerDocument(id=name, url="")
    server = Server(
        store=store,
        file_store=FolderFileStore(folder),
        clock=SystemClock(),
        settings=ServerSettings(),
        version="test",
        server=document,
        peers=neighbours,
        meter=steady_ms,
    )
    domain = Domain(server, elsewhere=neighbours)
    await server.open()
    app = create_app(domain, access=AccessControl(servers_token=SECRET), peer=PeerHandler(server))
    served = await serve(app)
    document.url = served.url
    try:
        yield server, domain
    finally:
        await served.stop()
        await server.close()
        await neighbours.close()


@pytest.fixture
def store() -> Shared:
    return Shared()


async def known(domain: Domain, servers: int) -> list[str]:
    """The servers that answer, when so many do."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await domain.stats(running=1)) != servers:
            await asyncio.sleep(0.05)
    return [each.server for each in found]


async def test_any_server_tells_the_numbers_of_all_and_its_own_first(store: Shared, tmp_path: Path) -> None:  # JS-8
    async with AsyncExitStack() as stack:
        (one, here), (two, there) = [
            await stack.enter_async_context(server(name, store, tmp_path / name)) for name in ("one", "two")
        ]
        one.counts.jobs.submitted, two.counts.jobs.submitted = 3, 4
        assert await known(here, 2) == ["one", "two"]
        assert await known(there, 2) == ["two", "one"]
        assert sum(each.jobs_submitted for each in await here.stats()) == 7
        assert [each.server for each in await here.stats(everywhere=False)] == ["one"]
        assert [each.servers_alive for each in await here.stats()] == [2, 2]


async def test_a_server_that_does_not_answer_is_left_out(store: Shared, tmp_path: Path) -> None:
    async with server("one", store, tmp_path / "one") as (_, here), server("two", store, tmp_path / "two") as (two, _):
        await known(here, 2)
        two.membership.find("two").url = "http://127.0.0.1:9"  # type: ignore[union-attr]  # it knows itself
        assert await known(here, 1) == ["one"]
