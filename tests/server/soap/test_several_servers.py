"""Several servers are one to those who come with messages."""

import asyncio
from pathlib import Path

from mendflow.core.soap import ADDRESSING
from mendflow.core.soap.envelope import header, read_envelope, write_envelope
from tests.server.soap.shop import ECHO, RECEIVE, REPLY, SHOP, number_in, order, process
from tests.server.town import town, until

HEARS = '<receive partnerLink="customer" operation="remark" variable="note"/>'
NOTE = write_envelope([f'<note xmlns="{SHOP}">now</note>'])


async def test_a_message_finds_its_case_whichever_server_is_asked(tmp_path: Path) -> None:
    flow = process(tmp_path, "slow", f"<sequence>{RECEIVE}{HEARS}{ECHO}{REPLY}</sequence>")
    async with town(tmp_path, "east", "west") as (east, west), east.client() as at_east, west.client() as at_west:
        await at_east.deploy(flow)
        asked = asyncio.create_task(at_west.post("slow", order(4)))
        await until(lambda: "slow-soap.1" in west.server.runtime.manager.live)
        assert await at_east.post("slow", NOTE) == (202, b"")
        status, body = await asked
        assert (status, number_in(body)) == (200, 4)


async def test_when_a_server_dies_the_other_has_its_messages_and_their_replies(tmp_path: Path) -> None:  # JS-7
    flow = process(tmp_path, "slow", f"<sequence>{RECEIVE}{HEARS}{ECHO}{REPLY}</sequence>")
    first = write_envelope([f'<order xmlns="{SHOP}">4</order>'], [header(ADDRESSING, "MessageID", "urn:first")])
    async with town(tmp_path, "east", "west") as (east, west), east.client() as at_east, west.client() as at_west:
        await at_east.deploy(flow)
        asked = asyncio.create_task(at_east.post("slow", order(1)))
        await until(lambda: "slow-soap.1" in east.server.runtime.manager.live)
        await at_west.post("slow", NOTE)
        assert (await asked)[0] == 200
        through_west = asyncio.create_task(at_west.post("slow", first))
        await until(lambda: "slow-soap.2" in east.server.runtime.manager.live)
        await east.die()
        status, body = await through_west
        assert status == 503
        assert read_envelope(body).fault() is not None
        await until(lambda: "slow-soap.2" in west.server.runtime.manager.live)
        again = asyncio.create_task(at_west.post("slow", first))
        assert await at_west.post("slow", NOTE) == (202, b"")
        status, body = await again
        assert (status, number_in(body)) == (200, 4)
        assert len(await at_west.cases(flow="slow")) == 2
