"""Logical files and storage elements over HTTP, from Python, and as pilots ask about them."""

import aiohttp
import msgspec
import pytest
import yarl

from mendflow.client import Client
from mendflow.core.model.data import LocateAnswer, LocateRequest, LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.ids import PilotId
from mendflow.server.runner import HttpServer

NEAR = StorageElement(name="near", url="file:///near", sites=("S",))
FILE = LogicalFile(name="/store/a b+(1).dat", sha256="a" * 64, bytes=3, replicas=(Replica(element="near"),))


async def test_files_go_in_and_come_out_whatever_their_names_are(client: Client) -> None:  # PJ-7
    assert await client.put_element(NEAR) == NEAR
    await client.put_element(StorageElement(name="far", url="s3://bucket"))
    assert (await client.add_data(FILE)).sha256 == FILE.sha256
    assert (await client.datum(f"lfn:{FILE.name}")).replicas == FILE.replicas
    assert [each.name for each in await client.data(prefix="/store")] == [FILE.name]
    assert (await client.places(FILE.name, site="S"))[0].url == f"file:///near{FILE.name}"
    await client.add_replica(FILE.name, Replica(element="far"))
    assert len((await client.datum(FILE.name)).replicas) == 2
    await client.remove_replica(FILE.name, Replica(element="near"))
    assert (await client.datum(FILE.name)).replicas == (Replica(element="far"),)
    await client.remove_data(FILE.name)
    with pytest.raises(NotFound):
        await client.datum(FILE.name)
    assert {each.name for each in await client.elements()} == {"near", "far"}
    assert (await client.remove_element("far")).url == "s3://bucket"
    with pytest.raises(NotFound):
        await client.element("far")


@pytest.mark.parametrize("name", ["/../etc/passwd", "/a/%2e%2e/b", "store", "/a//b", "/a\0", "/a?x=1", "/a#b"])
async def test_a_name_that_could_become_another_is_not_even_sent(client: Client, name: str) -> None:  # PJ-7
    with pytest.raises(InvalidRequest):
        await client.datum(name)


@pytest.mark.parametrize(
    "path", ["a/..%2f..%2fetc", "%2e%2e/%2e%2e/etc/passwd", "a%00b", "a%5cb", "a%252fb", "a/%2e/b", "a%3Fb"]
)
async def test_a_name_in_an_address_is_looked_at_as_it_is_read(
    served: HttpServer, http: aiohttp.ClientSession, path: str
) -> None:  # PJ-7
    from_wire = yarl.URL(f"{served.url}/api/v1/data/files/{path}", encoded=True)
    async with http.get(from_wire) as response:
        assert response.status in (400, 404)
        assert (await response.json())["code"] in ("invalid", "not-found")


async def test_a_misspelt_word_in_a_wish_is_refused(served: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.post(
        f"{served.url}/api/v1/data/storage", json={"name": "x", "url": "file:///x", "site": []}
    ) as response:
        assert response.status == 400
    wish = {"name": "/a", "sha256": "a" * 64, "bytes": 1, "replica": []}
    async with http.post(f"{served.url}/api/v1/data/files", json=wish) as response:
        assert response.status == 400


async def test_pilots_ask_in_messagepack(
    client: Client, served: HttpServer, http: aiohttp.ClientSession
) -> None:  # PJ-7
    await client.put_element(NEAR)
    await client.add_data(FILE)
    request = LocateRequest(pilot=PilotId("p"), names=[FILE.name, "/none"], site="S")
    body = msgspec.msgpack.encode(request)
    async with http.post(f"{served.url}/api/v1/pilots/locate", data=body) as response:
        assert response.headers["Content-Type"] == "application/vnd.msgpack"
        answer = msgspec.msgpack.decode(await response.read(), type=LocateAnswer)
    assert [each.url for each in answer.files[FILE.name]] == [f"file:///near{FILE.name}"]
    assert list(answer.wrong) == ["/none"]
    for path in ("locate", "place"):
        async with http.post(f"{served.url}/api/v1/pilots/{path}", data=b"\x93\x01") as response:
            assert (response.status, (await response.json())["code"]) == (400, "invalid")
