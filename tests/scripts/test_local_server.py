"""The server that a script has started for itself stays while somebody needs it, and no longer."""

import asyncio
from pathlib import Path

import pytest

from mendflow.scripts import local_server
from mendflow.scripts.local_server import ScriptServer

ADDRESS = "http://127.0.0.1:9"
"""Nothing is sent there."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "IDLE_S", 0.01)


async def test_a_server_stays_while_a_question_is_answered(tmp_path: Path) -> None:  # DU-8
    server = ScriptServer(ADDRESS, "", tmp_path, 1)
    async with server.client() as client:
        await asyncio.sleep(0.05)  # a download that takes longer than the server stays idle
        assert await server.acquire() is client, "it was not closed meanwhile"
        server.release()
    await asyncio.sleep(0.05)
    async with server.client() as another:
        assert another is not client, "nobody needed it any more"
    await server.close()


async def test_who_comes_as_the_server_is_about_to_close_keeps_it(tmp_path: Path) -> None:  # DU-8
    server = ScriptServer(ADDRESS, "", tmp_path, 1)
    client = await server.acquire()
    async with server._opening:
        server.release()
        coming = asyncio.create_task(server.acquire())
        await asyncio.sleep(0.05)  # the time of the idle server is over, while both wait
    assert await coming is client
    await asyncio.sleep(0.01)
    async with server.client() as found:
        assert found is client, "it was not closed behind the back of who came"
    await server.close()
