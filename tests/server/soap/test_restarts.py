"""A server that stops between a call and its answer: nothing is lost, and nothing is done under another name."""

import asyncio
from pathlib import Path

from aiohttp import web

from mendflow.client import Client
from mendflow.core.soap import ADDRESSING
from mendflow.core.soap.envelope import header, read_envelope, write_envelope
from mendflow.wiring import ServerOptions, running_server
from tests.server.soap.shop import ECHO, INVOKE, RECEIVE, REPLY, SHOP, number_in, process, told
from tests.servers.processes import free_port

ORDER = write_envelope([f'<order xmlns="{SHOP}">4</order>'], [header(ADDRESSING, "MessageID", "urn:once")])
SERVICE_REF = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
RECEIPT = write_envelope([f'<receipt xmlns="{SHOP}">9</receipt>'])


class SlowPartner:
    """Answers nobody until it is open."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.heard: list[bytes] = []
        self.open = False

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_post("/", self._hear)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _hear(self, request: web.Request) -> web.Response:
        self.heard.append(await request.read())
        self.called.set()
        if not self.open:
            await asyncio.Event().wait()
        return told(RECEIPT)


async def test_a_call_without_an_answer_is_made_again_under_its_id_and_who_asked_finds_the_reply(
    tmp_path: Path,
) -> None:
    options = ServerOptions(data=tmp_path / "data", announce=False)
    partner = SlowPartner()
    async with partner as address:
        flow = process(tmp_path, "buyer", f"<sequence>{RECEIVE}{INVOKE}{REPLY}</sequence>", address)
        async with running_server(options) as server:
            client = Client(server.url)
            await client.deploy(flow)
            asked = asyncio.create_task(client.post("buyer", ORDER))
            await partner.called.wait()
        status, body = await asked
        await client.close()
        partner.open = True
        async with running_server(options) as server, Client(server.url) as client:
            again, reply = await client.post("buyer", ORDER)
            cases = await client.cases(flow="buyer")
    assert status == 503
    assert read_envelope(body).fault() is not None
    assert (again, number_in(reply)) == (200, 9)
    assert len(cases) == 1
    assert len(partner.heard) == 2
    assert len({read_envelope(each).message_id for each in partner.heard}) == 1


WHERE = f"""<scope xmlns:ref="{SERVICE_REF}">
  <variables><variable name="reference" element="ref:service-ref"/></variables>
  <sequence>
    <assign><copy><from partnerLink="customer" endpointReference="myRole"/><to variable="reference"/></copy></assign>
    <assign><copy><from>normalize-space($reference)</from><to variable="note" part="body"/></copy></assign>
    <invoke partnerLink="maker" operation="remark" inputVariable="note"/>
  </sequence></scope>"""


async def test_a_call_that_is_made_again_says_where_this_server_is_reached(tmp_path: Path) -> None:  # FM-8 FM-10
    options = ServerOptions(data=tmp_path / "data", announce=False, port=free_port())
    partner = SlowPartner()
    async with partner as address:
        flow = process(tmp_path, "buyer", f"<sequence>{RECEIVE}{WHERE}{ECHO}{REPLY}</sequence>", address)
        async with running_server(options) as server:
            client = Client(server.url)
            await client.deploy(flow)
            asked = asyncio.create_task(client.post("buyer", ORDER))
            await partner.called.wait()
        assert (await asked)[0] == 503
        await client.close()
        partner.open = True
        async with running_server(options) as server, Client(server.url) as client:
            assert (await client.post("buyer", ORDER))[0] == 200
    before, again = partner.heard
    assert f">http://127.0.0.1:{options.port}/soap/flows/buyer/customer<".encode() in before
    assert again == before
