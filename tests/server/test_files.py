"""Stored files stream in and out, known by their content, and are bounded."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp

from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.server.runner import HttpServer
from tests.server.conftest import Serving


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_a_file_goes_in_and_comes_out_as_it_was(served: HttpServer, http: aiohttp.ClientSession) -> None:
    content = bytes(range(256)) * 3000
    url = f"{served.url}/api/v1/files/{_digest(content)}"
    async with http.head(url) as response:
        assert response.status == 404
    async with http.put(f"{url}?name=table.csv", data=content) as response:
        assert response.status == 200
        assert await response.json() == {"sha256": _digest(content), "bytes": len(content), "name": "table.csv"}
    async with http.head(url) as response:
        assert (response.status, response.headers["Content-Length"]) == (200, str(len(content)))
    async with http.get(url) as response:
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert await response.read() == content


async def test_whoever_was_cut_off_goes_on_from_there(served: HttpServer, http: aiohttp.ClientSession) -> None:  # FM-6
    content = bytes(range(256)) * 3000
    url = f"{served.url}/api/v1/files/{_digest(content)}"
    async with http.put(url, data=content):
        pass
    for begin in (1, 65_536, 70_001, len(content) - 1):
        async with http.get(url, headers={"Range": f"bytes={begin}-"}) as response:
            assert (response.status, await response.read()) == (206, content[begin:])
            assert response.headers["Content-Range"] == f"bytes {begin}-{len(content) - 1}/{len(content)}"
    for other in ("bytes=0-", "bytes=5-9", f"bytes={len(content)}-", "bytes=-5", "lines=1-"):
        async with http.get(url, headers={"Range": other}) as response:
            assert (response.status, await response.read()) == (200, content)
    files = FileClient(ServerAddress(served.url, ""))
    for offset in (0, 1, 700_000):
        got = await asyncio.to_thread(lambda at: b"".join(files.get(_digest(content), offset=at)), offset)
        assert got == content[offset:]


async def test_an_empty_file_is_a_file(served: HttpServer, http: aiohttp.ClientSession) -> None:
    url = f"{served.url}/api/v1/files/{_digest(b'')}"
    async with http.put(url, data=b"") as response:
        assert response.status == 200
    async with http.get(url) as response:
        assert (response.status, await response.read()) == (200, b"")


async def test_content_under_another_hash_is_refused_whole(served: HttpServer, http: aiohttp.ClientSession) -> None:
    url = f"{served.url}/api/v1/files/{_digest(b'one')}"
    async with http.put(url, data=b"another") as response:
        assert 400 <= response.status < 500
    async with http.head(url) as response:
        assert response.status == 404
    async with http.head(f"{served.url}/api/v1/files/{_digest(b'another')}") as response:
        assert response.status == 404


async def test_a_file_beyond_the_bound_is_refused_announced_or_not(
    serving: Serving, http: aiohttp.ClientSession
) -> None:
    served = await serving(file_bytes_max=1000)
    content = b"x" * 1001
    url = f"{served.url}/api/v1/files/{_digest(content)}"

    async with http.put(url, data=content) as response:
        assert response.status == 413
    async with http.put(url, data=_pieces(content)) as response:
        assert response.status == 413
    async with http.head(url) as response:
        assert response.status == 404


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    """Sent in chunks, so that no length is announced."""
    yield content[:500]
    yield content[500:]


async def test_an_upload_that_is_cut_off_leaves_nothing(served: HttpServer, http: aiohttp.ClientSession) -> None:
    content = b"half of it"
    address = urlsplit(served.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"PUT /api/v1/files/{_digest(content)} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 99\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with http.head(f"{served.url}/api/v1/files/{_digest(content)}") as response:
        assert response.status == 404


async def test_a_name_that_is_a_path_is_refused(served: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.put(f"{served.url}/api/v1/files/{_digest(b'x')}?name=../x", data=b"x") as response:
        assert response.status == 400
