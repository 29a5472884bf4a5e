"""Whom an adapted process calls, how often, and over how many lines: the engine, the proxy and the partners are
processes of their own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.formats.bpel.adapter import IN_PROCESS
from tests.e2e.conftest import World
from tests.e2e.soap_client import Asking, Away, send, texts
from tests.e2e.test_bpel_adapter import Bank, deploy, loan, offered
from tests.formats.bpel.adapter.bank import ASK
from tests.patience import PATIENCE_S
from tests.servers.line import Line, opened

SREF = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
WSA = "http://www.w3.org/2005/08/addressing"
ASSIGNED = f"""<assign><copy>
  <from><literal><s:service-ref xmlns:s="{SREF}">http://127.0.0.1:OTHER/bank</s:service-ref></literal></from>
  <to partnerLink="bank"/>
</copy></assign>{ASK}"""
RECEIVED = f"""<scope><variables><variable name="reference" xmlns:s="{SREF}" element="s:service-ref"/></variables>
<sequence><assign>
  <copy><from><literal><s:service-ref xmlns:s="{SREF}"><a:EndpointReference xmlns:a="{WSA}"><a:Address>none</a:Address>
    </a:EndpointReference></s:service-ref></literal></from><to variable="reference"/></copy>
  <copy><from xmlns:a="{WSA}">concat('http://127.0.0.1:', $asked.loan/bank:number, '/bank')</from>
    <to xmlns:a="{WSA}">$reference/a:EndpointReference/a:Address</to></copy>
  <copy><from variable="reference"/><to partnerLink="bank"/></copy>
</assign>{ASK}</sequence></scope>"""
BEGIN = """<p:begin xmlns:p="urn:mendflow:proxy:1"><p:key>{key}</p:key><p:address>http://127.0.0.1:{port}/bank</p:address>
<p:portType>{{urn:test:bank}}Bank</p:portType><p:operation>ask</p:operation>
<p:answer name="offer" element="{{urn:test:bank}}offer"/>
<p:message><p:part name="loan">{loan}</p:part></p:message></p:begin>"""


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MENDFLOW_LEVELS", "300 ms, 500 ms, 1 s")
    world.start_server()
    world.wait_for_server()
    return world


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[list[Bank]]:
    """Two partners of one kind."""
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        found.append(Bank(tmp_path / name))
        found[-1].start()
    yield found
    for bank in found:
        bank.stop()


@pytest.mark.parametrize(("kind", "body"), [("static", ASK), ("assigned", ASSIGNED), ("received", RECEIVED)])
def test_original_and_adapted_call_the_same_partner(
    served: World, banks: list[Bank], kind: str, body: str
) -> None:  # FM-9 FM-10
    first, second = banks
    body = body.replace("OTHER", str(second.port))
    ways = {"original": None, "inside": IN_PROCESS, "outside": f"{served.url}/soap/proxy"}
    for name, proxy in ways.items():
        url = deploy(served, first, f"{kind}-{name}", proxy, body)
        message = loan(17).replace("<number>17", f"<number>{second.port}")
        status, answer = send(url, message, f"urn:{kind}:{name}")
        assert (status, texts(answer).get("offer")) == (200, str((first if kind == "static" else second).port)), name


def test_a_slow_partner_is_called_once_by_an_engine_that_gives_up_and_repeats(
    served: World, banks: list[Bank]
) -> None:  # FM-9 FM-10
    url, bank = f"{served.url}/soap/proxy", banks[0]
    _, drawn = send(url, '<open xmlns="urn:mendflow:proxy:1"/>', "urn:draw")
    begin = BEGIN.format(key=texts(drawn)["key"], port=bank.port, loan=loan(16))
    for turn in range(4):
        with pytest.raises(Away):
            send(url, begin, f"urn:turn:{turn}", timeout_s=0.3)
    _, progress = send(url, begin, "urn:turn:last")
    assert texts(progress)["over"] == "false"
    about = '<{0} xmlns="urn:mendflow:proxy:1"><callId>{1}</callId></{0}>'
    call = texts(progress)["callId"]
    (bank.folder / "awake").touch()
    served.until(lambda: texts(send(url, about.format("ask", call), "")[1])["over"] == "true", "the end of the call")
    assert texts(send(url, about.format("result", call), "urn:result")[1])["offer"] == "32"
    assert bank.calls() == ["asked 16"]


class NarrowLine(Line):
    """A line on which so many can speak at once, as engines have pools of connections; all others wait."""

    def __init__(self, to_port: int, width: int) -> None:
        super().__init__(to_port)
        self._free = asyncio.Semaphore(width)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._free:
            await super().connected(reader, writer)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[World]:
    """Another server, which knows the proxy by its address only."""
    (tmp_path / "engine").mkdir()
    engine = World(tmp_path / "engine")
    engine.start_server()
    engine.wait_for_server()
    yield engine
    engine.stop()


async def test_fifty_waiting_calls_hold_no_line_so_that_others_go_through(
    served: World, engine: World, banks: list[Bank]
) -> None:  # FM-9 FM-10
    bank = banks[0]
    async with opened(NarrowLine(served.port, 10)) as line:
        url = deploy(engine, bank, "adapted", f"http://127.0.0.1:{line.port}/soap/proxy", ASK)
        waiting = [Asking(url, loan(16).replace("<number>16", f"<number>{n}"), f"urn:{n}") for n in range(50)]
        await asyncio.to_thread(engine.until, lambda: len(bank.calls()) == 50, "all calls to reach the partner")
        assert await asyncio.to_thread(offered, url, 4) == "8"
        assert not any(each.answer for each in waiting)
        (bank.folder / "awake").touch()
        for each in waiting:
            await asyncio.to_thread(each.join, PATIENCE_S)
    assert [texts(each.answer)["offer"] for each in waiting] == ["32"] * 50
    assert bank.calls() == ["asked 16"] * 50 + ["asked 4"]
