"""Flows over SOAP: what is asked for, what is answered, and how refusals are told."""

import asyncio
import hashlib
import threading
import time
from pathlib import Path

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.soap import ADDRESSING
from mendflow.core.soap.envelope import BadEnvelope, header, read_envelope, write_envelope
from mendflow.formats.bpel import parse_bpel
from mendflow.server.access import AccessToken
from mendflow.server.request_quotas import REQUESTS_AT_ONCE
from mendflow.server.soap import handler
from mendflow.wiring import RunningServer, ServerOptions, running_server
from tests.patience import until
from tests.server.soap.shop import ECHO, PROCESS, RECEIVE, REPLY, SHOP, number_in, order, process

FAULT = """<sequence>RECEIVE<assign><copy><from><literal>none left</literal></from>
<to variable="reason" part="why"/></copy></assign>
<reply partnerLink="customer" operation="buy" variable="reason" faultName="s:soldOut"/></sequence>""".replace(
    "RECEIVE", RECEIVE
)


async def test_a_request_is_answered_with_what_the_flow_replies(client: Client, tmp_path: Path) -> None:  # FM-8
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    status, body = await client.post("echo", order(7))
    assert (status, number_in(body)) == (200, 7)


async def test_the_wsdl_tells_the_address_by_which_it_was_asked(
    server: RunningServer, client: Client, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    async with http.get(f"{client.endpoint('echo')}?wsdl") as response:
        assert response.status == 200
        text = await response.text()
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "shop.wsdl").write_text(text)
    again = parse_bpel(PROCESS.replace("NAME", "x").replace("BODY", "<empty/>"), folder / "x.bpel").definitions
    [port] = again.ports
    assert port.address == f"{server.url}/soap/flows/echo"
    assert {name: bound.action for name, bound in port.operations.items()} == {"buy": "urn:buy", "remark": "urn:remark"}
    assert again.port_types[f"{{{SHOP}}}Shop"]["buy"].faults == {"soldOut": f"{{{SHOP}}}reasonMessage"}
    assert [part.element for part in again.messages[f"{{{SHOP}}}orderMessage"]] == [f"{{{SHOP}}}order"]


async def test_the_charset_of_the_header_counts(client: Client, http: aiohttp.ClientSession, tmp_path: Path) -> None:
    says = (
        """<assign><copy><from>string-length($note.body)</from><to variable="receipt" part="body"/></copy></assign>"""
    )
    hears = '<receive partnerLink="customer" operation="remark" variable="note" createInstance="yes"/>'
    await client.deploy(process(tmp_path, "hears", f"<sequence>{hears}{says}</sequence>"))
    body = write_envelope([f'<note xmlns="{SHOP}">gr\u00fcn</note>']).decode().partition("?>")[2].encode("latin-1")
    for charset, status in (("iso-8859-1", 202), ("utf-8", 500)):
        headers = {"Content-Type": f"text/xml; charset={charset}"}
        async with http.post(client.endpoint("hears"), data=body, headers=headers) as response:
            assert response.status == status


@pytest.mark.parametrize("query", ["xsd=9", "xsd=../../etc/passwd", "wsdl=7", "wsdl=x"])
async def test_a_document_that_is_not_there_is_not_found(
    client: Client, http: aiohttp.ClientSession, tmp_path: Path, query: str
) -> None:
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    async with http.get(f"{client.endpoint('echo')}?{query}") as response:
        assert response.status == 404


async def test_a_one_way_message_is_acknowledged_before_anybody_waits_for_it(client: Client, tmp_path: Path) -> None:
    hears = '<receive partnerLink="customer" operation="remark" variable="note"/>'
    await client.deploy(process(tmp_path, "late", f"<sequence>{RECEIVE}{hears}{ECHO}{REPLY}</sequence>"))
    status, body = await client.post("late", write_envelope([f'<note xmlns="{SHOP}">early</note>']))
    assert (status, body) == (202, b"")
    assert await client.cases(flow="late") == []
    status, body = await client.post("late", order(3))
    assert (status, number_in(body)) == (200, 3)


async def test_a_reply_with_a_fault_is_a_soap_fault_with_the_element_that_the_wsdl_says(
    client: Client, tmp_path: Path
) -> None:
    await client.deploy(process(tmp_path, "empty", FAULT))
    status, body = await client.post("empty", order(1))
    fault = read_envelope(body).fault()
    assert status == 500
    assert fault is not None
    assert fault.string.startswith("soldOut")
    assert [each.tag for each in fault.detail] == [f"{{{SHOP}}}reason"]


async def test_the_fault_that_ends_a_case_answers_its_request_by_name(client: Client, tmp_path: Path) -> None:
    body = f'<sequence>{RECEIVE}<throw faultName="s:burnt"/></sequence>'
    await client.deploy(process(tmp_path, "burns", body))
    status, answer = await client.post("burns", order(1))
    fault = read_envelope(answer).fault()
    assert status == 500
    assert fault is not None
    assert [each.tag for each in fault.detail] == [f"{{{SHOP}}}burnt"]


async def test_a_case_that_exits_leaves_no_caller_waiting(client: Client, tmp_path: Path) -> None:
    await client.deploy(process(tmp_path, "leaves", f"<sequence>{RECEIVE}<exit/></sequence>"))
    status, body = await client.post("leaves", order(1))
    assert status == 500
    assert b"processTerminated" in body


async def test_the_same_message_id_is_the_same_request(client: Client, tmp_path: Path) -> None:
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    id = header(ADDRESSING, "MessageID", "urn:order:9")
    envelope = write_envelope([f'<order xmlns="{SHOP}">9</order>'], [id])
    first, second = await client.post("echo", envelope), await client.post("echo", envelope)
    assert first == second
    assert number_in(first[1]) == 9
    assert len(await client.cases(flow="echo")) == 1


async def test_an_id_is_its_senders_own_and_no_other_messages(server: RunningServer, tmp_path: Path) -> None:
    flow = process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>")
    id = header(ADDRESSING, "MessageID", "urn:order:9")
    nine, ten = (write_envelope([f'<order xmlns="{SHOP}">{number}</order>'], [id]) for number in (9, 10))
    async with Client(server.url, user="ann") as ann, Client(server.url, user="bob") as bob:
        await ann.deploy(flow)
        assert number_in((await ann.post("echo", nine))[1]) == 9
        assert number_in((await bob.post("echo", ten))[1]) == 10
        status, body = await ann.post("echo", ten)
        cases = await ann.cases(flow="echo")
    fault = read_envelope(body).fault()
    assert status == 409
    assert fault is not None
    assert "urn:order:9" in fault.string
    assert len(cases) == 2


async def test_a_case_of_an_earlier_version_still_gets_the_messages_that_it_waits_for(
    client: Client, tmp_path: Path
) -> None:
    hears = '<receive partnerLink="customer" operation="remark" variable="note"/>'
    await client.deploy(process(tmp_path, "slow", f"<sequence>{RECEIVE}{hears}{ECHO}{REPLY}</sequence>"))
    asked = asyncio.create_task(client.post("slow", order(4)))
    while not await client.cases(flow="slow"):
        await asyncio.sleep(0.02)
    await client.deploy(process(tmp_path, "slow", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    note = write_envelope([f'<note xmlns="{SHOP}">now</note>'])
    assert await client.post("slow", note) == (202, b"")
    status, body = await asked
    assert (status, number_in(body)) == (200, 4)
    assert (await client.post("slow", note))[0] == 500


async def test_who_hangs_up_finds_the_answer_when_it_asks_again(client: Client, tmp_path: Path) -> None:
    hears = '<receive partnerLink="customer" operation="remark" variable="note"/>'
    await client.deploy(process(tmp_path, "slow", f"<sequence>{RECEIVE}{hears}{ECHO}{REPLY}</sequence>"))
    envelope = write_envelope([f'<order xmlns="{SHOP}">4</order>'], [header(ADDRESSING, "MessageID", "urn:slow")])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await client.post("slow", envelope)
    await client.post("slow", write_envelope([f'<note xmlns="{SHOP}">now</note>']))
    status, body = await client.post("slow", envelope)
    assert (status, number_in(body)) == (200, 4)
    assert len(await client.cases(flow="slow")) == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("flows/nobody", order(1), 404, "Client"),
        ("flows/echo/nolink", order(1), 404, "Client"),
        ("nothing", order(1), 404, "Client"),
        ("flows/echo", b"<a/>", 500, "Client"),
        ("flows/echo", write_envelope(["<a/>"]), 500, "Client"),
        ("flows/echo", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 500, "Client"),
        ("flows/echo", write_envelope(["<a>" * 5_000 + "</a>" * 5_000]), 500, "Client"),
    ],
)
async def test_whatever_is_wrong_is_told_as_a_fault(
    server: RunningServer,
    client: Client,
    http: aiohttp.ClientSession,
    tmp_path: Path,
    path: str,
    body: bytes,
    status: int,
    code: str,
) -> None:
    await client.deploy(process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>"))
    async with http.post(f"{server.url}/soap/{path}", data=body) as response:
        fault = read_envelope(await response.read()).fault()
        assert response.status == status
    assert fault is not None
    assert fault.code.endswith(code)
    assert await client.cases(flow="echo") == []


async def test_a_server_with_tokens_takes_messages_of_those_who_may(tmp_path: Path) -> None:
    tokens = tuple(
        AccessToken(name, frozenset({role}), hashlib.sha256(name.encode()).hexdigest())
        for name, role in (("ann", "user"), ("grid", "engine"), ("node", "pilot"), ("bob", "reader"))
    )
    options = ServerOptions(data=tmp_path / "data", announce=False, tokens=tokens)
    flow = process(tmp_path, "echo", f"<sequence>{RECEIVE}{ECHO}{REPLY}</sequence>")
    async with running_server(options) as server:
        async with Client(server.url, "ann") as client:
            await client.deploy(flow)
        seen = {}
        for token in ("ann", "grid", "node", "bob", "nobody"):
            async with Client(server.url, token) as client:
                status, body = await client.post("echo", order(1))
                seen[token] = status
                assert status == 200 or read_envelope(body).fault() is not None
    assert seen == {"ann": 200, "grid": 200, "node": 403, "bob": 403, "nobody": 401}


async def test_requests_that_wait_for_a_reply_keep_no_others_of_their_sender_waiting(tmp_path: Path) -> None:  # SE-3
    ann = AccessToken("ann", frozenset({"user"}), hashlib.sha256(b"ann").hexdigest())
    options = ServerOptions(data=tmp_path / "data", announce=False, tokens=(ann,))
    hears = '<receive partnerLink="customer" operation="remark" variable="note"/>'
    flow = process(tmp_path, "late", f"<sequence>{RECEIVE}{hears}{ECHO}{REPLY}</sequence>")
    async with running_server(options) as server, Client(server.url, "ann") as client:
        await client.deploy(flow)
        waiting = [asyncio.create_task(client.post("late", order(n))) for n in range(REQUESTS_AT_ONCE + 1)]

        async def have_all_begun() -> bool:
            return len(await client.cases(flow="late")) == len(waiting)

        await until(have_all_begun, every_s=0.02)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_messages_of_some_size_are_parsed_one_by_one_beside_the_loop(  # SE-3
    server: RunningServer, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, now, most = set[int](), 0, 0

    def parse(_data: bytes | str) -> tuple[str, str]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        threads.add(threading.get_ident())
        time.sleep(0.01)
        now -= 1
        raise BadEnvelope("seen")

    monkeypatch.setattr(handler, "_parse_port_request", parse)
    body = write_envelope([f'<status xmlns="urn:mendflow:jobs:1">{"<a/>" * 2000}</status>'])

    async def send() -> int:
        async with http.post(f"{server.url}/soap/jobs", data=body) as response:
            return response.status

    assert await asyncio.gather(*(send() for _ in range(8))) == [500] * 8
    assert most == 1
    assert threading.get_ident() not in threads
