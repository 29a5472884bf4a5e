"""What the chaos rests on: a line that is cut for one caller is cut for that one, both ways, and for nobody else."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.patience import PATIENCE_S
from tests.servers.line import HOST, Switchboard, opened

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    echo = await asyncio.start_server(_echo, HOST, 0)
    async with opened(Switchboard(echo.sockets[0].getsockname()[1], {"word-1": "east", "word-2": "west"})) as board:
        yield board
    echo.close()


async def _said(streams: Streams, text: bytes) -> bytes:
    streams[1].write(text)
    return await asyncio.wait_for(streams[0].readline(), PATIENCE_S)


@pytest.mark.short
async def test_one_caller_is_cut_off_and_the_others_speak_on(board: Switchboard) -> None:
    east, west = [await asyncio.open_connection(HOST, board.port) for _ in range(2)]
    assert await _said(east, b"word-1\n") == b"word-1\n"
    assert await _said(west, b"word-2\n") == b"word-2\n"
    board.part("east")
    late = await asyncio.open_connection(HOST, board.port)
    east[1].write(b"lost\n")
    late[1].write(b"word-1 lost too\n")
    await asyncio.wait_for(board.lost.wait(), PATIENCE_S)
    assert await _said(west, b"still here\n") == b"still here\n"
    board.join("east")
    assert [await asyncio.wait_for(each[0].read(), PATIENCE_S) for each in (east, late)] == [b"", b""], (
        "what was cut is broken"
    )
    again = await asyncio.open_connection(HOST, board.port)
    assert await _said(again, b"word-1 again\n") == b"word-1 again\n"
    for _, writer in (east, west, late, again):
        writer.close()
