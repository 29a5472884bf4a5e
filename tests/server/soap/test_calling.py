"""Partners over SOAP: what a flow hears of them, whatever they do."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from mendflow.address_guard import OWN_MACHINE
from mendflow.client import Client
from mendflow.core.model.faults import Category
from mendflow.core.soap.envelope import read_envelope, write_envelope, write_fault
from mendflow.server.soap.caller import HttpCaller
from mendflow.services.messaging.contracts import CallFailed
from mendflow.wiring import RunningServer
from tests.patience import PATIENCE_S
from tests.server.soap.shop import INVOKE, RECEIVE, REPLY, SHOP, number_in, order, partner, process, told

BUYS = f"<sequence>{RECEIVE}{INVOKE}{REPLY}</sequence>"


async def test_what_a_partner_answers_is_what_the_flow_gets(client: Client, tmp_path: Path) -> None:
    answer = write_envelope([f'<receipt xmlns="{SHOP}">42</receipt>'])
    async with partner(lambda _: told(answer)) as (address, heard):
        await client.deploy(process(tmp_path, "buyer", BUYS, address))
        status, body = await client.post("buyer", order(7))
    assert (status, number_in(body)) == (200, 42)
    envelope = read_envelope(heard[0])
    assert [each.tag for each in envelope.body] == [f"{{{SHOP}}}order"]
    assert envelope.message_id.startswith("urn:mendflow:")


SOLD = write_fault("sorry", [f'<reason xmlns="{SHOP}">none left</reason>'])
ODD = write_fault("sorry", ['<flood xmlns="urn:weather"/>'])


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda _: told(SOLD, 500), f"{{{SHOP}}}soldOut"),
        (lambda _: told(ODD, 500), "{urn:weather}flood"),
        (lambda _: told(b"away", 503), "partnerUnreachable"),
        (lambda _: told(b"no such thing", 404), "partnerRefused"),
        (lambda _: told(b"well", 200), "partnerRefused"),
        (lambda _: told(write_envelope(["<other/>"])), "partnerRefused"),
        (lambda _: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "partnerRefused"),
    ],
)
async def test_a_partner_that_fails_is_a_fault_by_name(
    client: Client, tmp_path: Path, answer: Callable[[bytes], web.Response], name: str
) -> None:
    async with partner(answer) as (address, heard):
        await client.deploy(process(tmp_path, "buyer", BUYS, address))
        status, _ = await client.post("buyer", order(7))
        [case] = await client.cases(flow="buyer")
        ended = await client.wait(case.id, timeout_s=10)
    assert status == 500
    assert ended.fault is not None
    assert ended.fault.name == name
    assert len(heard) == 1


async def test_a_partner_that_is_not_there_is_a_fault_that_a_handler_catches(client: Client, tmp_path: Path) -> None:
    body = f"""<scope><faultHandlers><catch faultName="bpel:partnerUnreachable"><sequence>
      <assign><copy><from>-1</from><to variable="receipt" part="body"/></copy></assign>{REPLY}</sequence></catch>
      </faultHandlers>{BUYS}</scope>"""
    await client.deploy(process(tmp_path, "buyer", body))
    status, answer = await client.post("buyer", order(7))
    assert (status, number_in(answer)) == (200, -1)


async def test_a_one_way_call_is_done_when_the_partner_has_taken_it(client: Client, tmp_path: Path) -> None:
    notes = """<assign><copy><from>'hello'</from><to variable="note" part="body"/></copy>
      <copy><from>$order.body</from><to variable="receipt" part="body"/></copy></assign>
      <invoke partnerLink="maker" operation="remark" inputVariable="note"/>"""
    async with partner(lambda _: web.Response(status=202)) as (address, heard):
        await client.deploy(process(tmp_path, "writer", f"<sequence>{RECEIVE}{notes}{REPLY}</sequence>", address))
        status, _ = await client.post("writer", order(7))
    assert status == 200
    assert b">hello<" in heard[0]


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/a", "file:///etc/passwd", "", "http://", "http://a:0/", "//a"])
async def test_only_the_web_is_called(address: str) -> None:
    caller = HttpCaller(OWN_MACHINE)
    with pytest.raises(CallFailed) as failed:
        await caller.call(address, b"", action="")
    assert failed.value.fault.category is Category.REFUSED


async def test_no_more_of_an_answer_is_taken_than_is_allowed() -> None:
    async with partner(lambda _: told(b"a" * 10_000)) as (address, _):
        caller = HttpCaller(OWN_MACHINE, bytes_max=5_000)
        with pytest.raises(CallFailed, match="more than the allowed 5000 bytes"):
            await caller.call(address, b"", action="")
        await caller.close()


async def test_a_case_that_is_removed_lets_go_of_its_partner(
    server: RunningServer, client: Client, tmp_path: Path
) -> None:
    called, hung_up = asyncio.Event(), asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"</soap:Envelope>")
        called.set()
        await reader.read()
        hung_up.set()
        writer.close()

    listening = await asyncio.start_server(hear, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    await client.deploy(process(tmp_path, "buyer", BUYS, address))
    asked = asyncio.create_task(client.post("buyer", order(7)))
    await called.wait()
    await client.cancel("buyer-soap.1")
    status, body = await asked
    assert status == 500
    assert b"processTerminated" in body
    async with asyncio.timeout(PATIENCE_S):
        await hung_up.wait()
    listening.close()
