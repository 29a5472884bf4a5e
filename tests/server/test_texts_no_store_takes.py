"""A text that a store cannot be asked for is refused for what it is; and where a store fails, nobody who asks is told
where it is."""  # SE-1

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl

from mendflow.client import Client
from mendflow.core.model.errors import STORE_AWAY, NotFound, StoreUnavailable
from mendflow.core.model.flow import Flow, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.server import error_bodies
from mendflow.server.access import AccessControl, read_tokens, token_hash
from mendflow.server.app import create_app
from mendflow.server.runner import HttpServer, serve
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import FieldCondition
from mendflow.stores.fields import BadDocument
from mendflow.stores.files import FolderFileStore
from mendflow.stores.postgresql.store import PostgresqlStore
from tests.server.conftest import DomainUnderTest, Serving
from tests.servers.postgresql import HOST, USER, PostgresqlServer, postgresql_server

TASK = Flow(name=FlowName("ask"), body=UserTask(name="look", role="staff"), inputs={})


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresqlServer]:
    with postgresql_server() as running:
        yield running


@pytest.fixture
async def on_postgresql(database: PostgresqlServer, tmp_path: Path) -> AsyncIterator[HttpServer]:
    file_store = FolderFileStore(tmp_path / "files")
    schema = f"t{tmp_path.name[-30:].replace('-', '_').lower()}"
    server = Server(
        store=PostgresqlStore.from_url(f"{database.url}?schema={schema}"),
        file_store=file_store,
        clock=SystemClock(),
        settings=ServerSettings(),
        version="0",
    )
    file_store.open()
    async with AsyncExitStack() as stack:
        await server.open()
        stack.push_async_callback(server.close)
        domain = DomainUnderTest(server)
        served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
        stack.push_async_callback(served.stop)
        yield served


PATHS = [
    "/cases/a%00b",
    "/cases/a%00b/items",
    "/jobs/a%00b/1",
    "/flows/a%00b",
    "/worklist/a%00b:1",
    "/decisions/a%00b",
    "/rules/a%00b",
    "/cases?flow=a%00b",
    "/cases?where=flow%20%3D%3D%20%22a%00b%22",
    "/why?subject=a%00b",
    "/data/files?name=a%00b",
    "/schedules/a%00b",
    "/projects/a%00b",
    "/failures/a%00b",
    "/engines/a%00b/cases",
]


async def test_a_nul_in_an_address_is_refused_on_postgresql(on_postgresql: HttpServer) -> None:
    async with aiohttp.ClientSession() as http:
        for path in PATHS:
            async with http.get(yarl.URL(f"{on_postgresql.url}/api/v1{path}", encoded=True)) as response:
                told = await response.text()
                assert response.status == 400 and "has the character NUL" in told, (path, told)
        where = "/cases?where=flow%20%3D%3D%20%22a%5Cx00b%22"  # written as an escape in the condition
        async with http.get(yarl.URL(f"{on_postgresql.url}/api/v1{where}", encoded=True)) as response:
            assert response.status < 500, await response.text()


BODIES: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "/cases", {"flow": "a\0b"}, "flow"),
    ("POST", "/cases", {"flow": "ask", "key": "a\0b"}, "key"),
    ("POST", "/decisions/reject", {"decision": "a\0b", "exlet": "x"}, "decision"),
    ("POST", "/engines", {"name": "a\0b"}, "name"),
    ("PUT", "/data/sets/x", {"name": "x", "after": ["a\0b"]}, "after[0]"),
    ("PUT", "/rules/x", {"rules": {"name": "a\0b"}}, "rules.name"),
    ("POST", "/session", {"token": "a\0b"}, "token"),
]


async def test_nor_does_a_body_name_one(on_postgresql: HttpServer) -> None:
    async with aiohttp.ClientSession() as http, Client(on_postgresql.url) as client:
        await client.deploy(TASK)
        for method, path, body, field in BODIES:
            async with http.request(method, f"{on_postgresql.url}/api/v1{path}", json=body) as response:
                told = await response.json()
                assert response.status == 400 and "has the character NUL" in told["message"], (path, told)
                assert told["fields"]["field"] == field, (path, told)
                assert USER not in str(told) and HOST not in str(told)
        case = await client.start("ask", {})
        assert (await client.case(case.id)).status == "running", "the services go on"


async def test_the_store_itself_says_what_cannot_be_asked_for(database: PostgresqlServer) -> None:
    store = PostgresqlStore.from_url(f"{database.url}?schema=asked")
    await store.open()
    try:
        for text in ("a\0b", "a\ud800b"):
            with pytest.raises(BadDocument):
                await store.get("case", text)
            with pytest.raises(BadDocument):
                await store.search("case", [FieldCondition("state", text)], limit=1)
        assert await store.get("case", "a") is None, "and goes on"
    finally:
        await store.close()


SECRET_PLACE = "postgresql://mend@db.example.org:5432/store"


@pytest.mark.parametrize("told", ["", "the disk of this server is full"])
async def test_where_the_store_is_stays_in_the_log(
    served: HttpServer,
    domain: DomainUnderTest,
    http: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    told: str,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        more = {"told": told} if told else {}
        raise StoreUnavailable(f"{SECRET_PLACE}: no answer", store=SECRET_PLACE, **more)

    monkeypatch.setattr(error_bodies, "_logged", {})
    monkeypatch.setattr(domain._server.store, "get", fail)
    with caplog.at_level(logging.WARNING):
        for path in ("/cases/none", "/flows/none", "/cases/none"):
            async with http.get(f"{served.url}/api/v1{path}") as response:
                answer = await response.json()
                assert response.status == 503
                assert (answer["message"], answer["fields"]) == (told or STORE_AWAY, {})
    assert sum(SECRET_PLACE in each.getMessage() for each in caplog.records) == 1, "once in a while"


async def test_who_shows_no_token_is_not_told_which_folder_is_full(
    serving: Serving, domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serving(AccessControl(read_tokens(f"rita reader {token_hash('t-rita')}")))
    full = "the server cannot store files of jobs: /srv/place/files: the disk is full"
    monkeypatch.setattr(domain._server.runtime.monitor, "disk_problems", lambda: [full])
    async with Client(served.url) as anybody, Client(served.url, "t-rita") as rita:
        told = (await anybody.health()).message
        assert "/srv" not in told and "is full" in told
        assert (await rita.health()).message == full


async def test_nor_does_the_health_of_a_server_tell_it(
    served: HttpServer, domain: DomainUnderTest, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable(f"{SECRET_PLACE}: no answer", store=SECRET_PLACE)

    async with Client(served.url) as client:
        await client.deploy(TASK)
        monkeypatch.setattr(domain._server.store, "write", fail)
        with pytest.raises(StoreUnavailable) as refused:
            await client.start("ask", {})
        assert SECRET_PLACE not in str(refused.value)
    async with asyncio.timeout(20):
        while True:
            async with http.get(f"{served.url}/api/v1/health") as response:
                text = await response.text()
                assert SECRET_PLACE not in text
                if response.status == 503:
                    break
            await asyncio.sleep(0.01)
    async with http.get(f"{served.url}/api/v1/cases/none") as response:
        assert response.status == 503 and SECRET_PLACE not in await response.text()
    monkeypatch.undo()
    async with asyncio.timeout(60):
        while True:
            try:
                await domain.case("none")
            except NotFound:
                break
            except StoreUnavailable:
                await asyncio.sleep(0.05)
