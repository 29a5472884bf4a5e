"""A process and the same process with interceptors: alike while all is well, and the adapted one outlives what ends the
other. The server and the partner are processes of their own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.formats import load
from mendflow.formats.bpel.adapter import IN_PROCESS, adapt
from tests.e2e.conftest import World
from tests.e2e.soap_client import Asking, send, texts
from tests.formats.bpel.adapter.bank import ASK, save, written
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

OFFER = '<copy><from><literal>{}</literal></from><to variable="answered" part="offer"/></copy>'
CAUGHT = (
    f'<catch faultName="bank:Broke" faultVariable="why" faultMessageType="bank:broke"><assign>{OFFER.format(-1)}'
    '<copy><from>string-length($why.why)</from><to variable="answered" part="offer"/></copy></assign></catch>'
    f'<catch faultName="bank:surprise"><assign>{OFFER.format(-14)}</assign></catch>'
)
TELL = '<invoke name="tell" partnerLink="bank" operation="tell" inputVariable="asked"/>'
BODY = f"{TELL}{ASK.replace('/>', f'>{CAUGHT}</invoke>')}"
LEVELS = "300 ms, 500 ms, 1 s, 2 s, 3 s, 4 s, 5 s, 6 s"
"""How long the proxy waits before each of its tries: a partner has time to come."""


PARTS = """
<assign>
  <copy><from><literal>alice</literal></from><to variable="name"/></copy>
  <copy><from variable="asked" part="loan"/><to variable="plain"/></copy>
  <copy><from variable="asked" part="loan"/><to variable="loan"/></copy>
</assign>
<invoke name="move" partnerLink="bank" operation="transfer">
  <toParts><toPart part="from" fromVariable="name"/><toPart part="loan" fromVariable="plain"/></toParts>
  <fromParts><fromPart part="left" toVariable="left"/></fromParts>
</invoke>
<invoke name="ask" partnerLink="bank" operation="ask" inputVariable="loan" outputVariable="offer"/>
<assign><copy><from>$left + $offer</from><to variable="answered" part="offer"/></copy></assign>
"""
"""Parts of types, simple and complex, in rpc; and variables that are the element of a message."""


class Bank:
    """The partner, which can be away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.stop()
        script = str(Path(__file__).with_name("bank_partner.py"))
        self.process = subprocess.Popen([sys.executable, script, str(self.port), str(self.folder)])
        World.until(self.listens, "the partner to listen")

    def listens(self) -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    bank = Bank(tmp_path)
    yield bank
    bank.stop()


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MENDFLOW_LEVELS", LEVELS)
    world.start_server()
    world.wait_for_server()
    return world


def deploy(world: World, bank: Bank, name: str, proxy: str | None, body: str = BODY) -> str:
    """Deploy the process under a name, adapted if there is a proxy, and say where it is asked."""
    path = written(world.folder / name, body)
    for file in (path, path.with_name("bank.wsdl")):
        text = file.read_text().replace("127.0.0.1:9/", f"127.0.0.1:{bank.port}/")
        file.write_text(text.replace('<process name="loan"', f'<process name="{name}"'))
    if proxy is not None:
        path = save(adapt(path, path.with_name("adapted.bpel"), proxy))
    world.client.deploy(load(path))
    return f"{world.url}/soap/flows/{name}"


def loan(value: int) -> str:
    return f'<loan xmlns="urn:test:bank"><number>{value}</number><sum>{value}</sum></loan>'


def offered(url: str, value: int) -> str:
    status, answer = send(url, loan(value), f"urn:{url}:{value}")
    assert status == 200, answer.decode()
    return texts(answer)["offer"]


def test_original_and_adapted_give_the_same_answers_and_call_alike(served: World, bank: Bank) -> None:  # FM-9
    bank.start()
    ways = {"original": None, "inside": IN_PROCESS, "outside": f"{served.url}/soap/proxy"}
    for name, proxy in ways.items():
        url = deploy(served, bank, name, proxy)
        assert [offered(url, value) for value in (4, 13, 14)] == ["8", "11", "-14"], name
    assert bank.calls() == ["told 4", "asked 4", "told 13", "asked 13", "told 14", "asked 14"] * 3


def test_parts_of_types_and_variables_of_elements_come_through(served: World, bank: Bank) -> None:  # FM-9
    bank.start()
    for name, proxy in {"original": None, "inside": IN_PROCESS, "outside": f"{served.url}/soap/proxy"}.items():
        assert offered(deploy(served, bank, name, proxy, PARTS), 4) == str(4 + len("alice") + 8), name


def test_the_adapted_process_outlives_a_partner_that_is_away_at_first(served: World, bank: Bank) -> None:  # FM-9 FM-10
    status, answer = send(deploy(served, bank, "original", None), loan(4), "urn:original")
    assert status == 500 and b"partnerUnreachable" in answer
    asking = Asking(deploy(served, bank, "adapted", IN_PROCESS), loan(4), "urn:adapted")
    served.until(lambda: served.client.cases(flow="partner-call"), "a call by the proxy")
    bank.start()
    asking.join(PATIENCE_S)
    assert texts(asking.answer)["offer"] == "8"
    assert bank.calls() == ["told 4", "asked 4"]


def test_the_adapted_process_outlives_a_partner_that_dies_over_a_call(served: World, bank: Bank) -> None:  # FM-9 FM-10
    bank.start()
    status, _ = send(deploy(served, bank, "original", None, ASK), loan(15), "urn:original")
    assert status == 500 and bank.calls() == ["asked 15"]
    (bank.folder / "died").unlink()
    bank.start()
    asking = Asking(deploy(served, bank, "adapted", IN_PROCESS, ASK), loan(15), "urn:adapted")
    served.until((bank.folder / "died").exists, "the partner to die")
    bank.start()
    asking.join(PATIENCE_S)
    assert texts(asking.answer)["offer"] == "30"
    assert bank.calls() == ["asked 15"] * 3


def test_a_call_goes_on_after_the_server_was_killed(served: World, bank: Bank) -> None:  # FM-9 FM-10
    url = deploy(served, bank, "adapted", IN_PROCESS, ASK)
    asking = Asking(url, loan(4), "urn:adapted")
    served.until(lambda: served.client.cases(flow="partner-call"), "a call by the proxy")
    served.kill_server()
    asking.join(PATIENCE_S)
    served.start_server()
    served.wait_for_server()
    bank.start()
    status, answer = send(url, loan(4), "urn:adapted")
    assert (status, texts(answer)["offer"]) == (200, "8")
    assert bank.calls() == ["asked 4"]
