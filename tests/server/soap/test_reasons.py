"""What a process waits for is told in words: which message, whose, where; which partner."""

import asyncio
from pathlib import Path

from mendflow.client import Client
from mendflow.wiring import RunningServer
from tests.server.soap.shop import ECHO, INVOKE, RECEIVE, REPLY, order, process

HEARS = '<receive partnerLink="customer" operation="remark" variable="note"/>'


async def test_a_receive_tells_which_message_it_waits_for_and_where(
    server: RunningServer, client: Client, tmp_path: Path
) -> None:
    await client.deploy(process(tmp_path, "slow", f"<sequence>{RECEIVE}{ECHO}{REPLY}{HEARS}</sequence>"))
    await client.post("slow", order(4))
    told = await client.why("slow-soap.1")
    assert any(f"waits for remark of customer, at {server.url}/soap/flows/slow." in fact for fact in told.facts)


async def test_an_invoke_tells_whom_it_waits_for(client: Client, tmp_path: Path) -> None:
    called = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"</soap:Envelope>")
        called.set()

    listening = await asyncio.start_server(hear, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    await client.deploy(process(tmp_path, "buyer", f"<sequence>{RECEIVE}{INVOKE}{REPLY}</sequence>", address))
    asked = asyncio.create_task(client.post("buyer", order(7)))
    await called.wait()
    told = await client.why("buyer-soap.1")
    await client.cancel("buyer-soap.1")
    await asked
    listening.close()
    assert any(f"waits for the answer to buy of maker, at {address}." in fact for fact in told.facts), told


async def test_a_process_that_works_by_itself_tells_in_which_loop(client: Client, tmp_path: Path) -> None:
    loop = '<while name="round"><condition>true()</condition><empty/></while>'
    await client.deploy(process(tmp_path, "busy", f"<sequence>{RECEIVE}{ECHO}{REPLY}{loop}</sequence>"))
    await client.post("busy", order(4))
    told = await client.why("busy-soap.1")
    await client.cancel("busy-soap.1")
    assert any("it works by itself, a piece at a time: in round, iteration " in fact for fact in told.facts)
