"""Adapted processes on an engine that nobody here wrote, with that engine's default settings."""

import pytest

from tests.e2e.ode.conftest import Foreign
from tests.e2e.soap_client import Asking, send, texts
from tests.e2e.test_bpel_adapter import TELL, loan
from tests.formats.bpel.adapter.bank import ASK
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ode

SREF = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
CAUGHT = (
    '<catch faultName="bank:Broke" faultVariable="why" faultMessageType="bank:broke"><assign><copy>'
    '<from>string-length($why.why)</from><to variable="offer"/></copy>'
    '<copy><from variable="offer"/><to variable="answered" part="offer"/></copy></assign></catch>'
)
ASSIGNED = f"""<assign><copy>
  <from><literal><s:service-ref xmlns:s="{SREF}"><a:EndpointReference xmlns:a="http://www.w3.org/2005/08/addressing">
    <a:Address>http://127.0.0.1:OTHER/bank</a:Address></a:EndpointReference></s:service-ref></literal></from>
  <to partnerLink="bank"/>
</copy></assign>{ASK}"""


RECEIVED = f"""<assign><copy>
  <from>concat('http://127.0.0.1:', $asked.loan/bank:number, '/bank')</from><to partnerLink="bank"/>
</copy></assign>{ASK}"""
"""The partner's address is in the request. ODE makes a reference of it with the address as bare text."""
BODIES = {"static": ASK, "assigned": ASSIGNED, "received": RECEIVED}
WAITING = 20
SLOW_S = 75
"""Longer than ODE waits for an answer, which is a minute."""


def asked(url: str, value: int) -> dict[str, str]:
    return texts(send(url, loan(value), f"urn:{url}:{value}", action="urn:ask")[1])


def test_several_interceptors_of_one_process_call_and_throw_as_the_original_did(foreign: Foreign) -> None:  # FM-9
    body = f"{TELL}{ASK.replace('/>', f'>{CAUGHT}</invoke>')}"
    before = len(foreign.banks[0].calls())
    url = foreign.deploy("several", body)
    assert [asked(url, value)["offer"] for value in (4, 13)] == ["8", "11"]
    assert foreign.banks[0].calls()[before:] == ["told 4", "asked 4", "told 13", "asked 13"]


@pytest.mark.parametrize("kind", BODIES)
def test_original_and_adapted_call_the_same_partner(foreign: Foreign, kind: str) -> None:  # FM-9 FM-10
    first, second = foreign.banks
    body, message = BODIES[kind].replace("OTHER", str(second.port)), loan(17)
    message = message.replace("<number>17", f"<number>{second.port}")
    found = []
    for adapted in (False, True):
        url = foreign.deploy(f"{kind}{adapted}", body, adapted=adapted)
        found.append(texts(send(url, message, f"urn:{kind}:{adapted}", action="urn:ask")[1]))
    assert [each.get("offer") for each in found] == [str((first if kind == "static" else second).port)] * 2, found


def test_a_partner_that_needs_longer_than_the_engine_waits_is_called_once(foreign: Foreign) -> None:  # FM-9 FM-10
    bank = foreign.banks[0]
    (bank.folder / "awake").unlink(missing_ok=True)
    url, before = foreign.deploy("slow", ASK), len(bank.calls())
    waiting = Asking(url, loan(16), "urn:slow", action="urn:ask")
    foreign.world.until(lambda: len(bank.calls()) > before, "the call to reach the partner")
    waiting.join(SLOW_S)
    assert waiting.is_alive(), f"the process gave up: {waiting.status} {waiting.answer!r} {waiting.away}"
    (bank.folder / "awake").touch()
    waiting.join(120)
    assert texts(waiting.answer).get("offer") == "32", waiting.answer
    assert bank.calls()[before:] == ["asked 16"]


def test_waiting_calls_hold_none_of_the_engine_s_connections(foreign: Foreign) -> None:  # FM-9 FM-10
    bank = foreign.banks[0]
    (bank.folder / "awake").unlink(missing_ok=True)
    url, before = foreign.deploy("waiting", ASK), len(bank.calls())
    bodies = [loan(16).replace("<number>16", f"<number>{number}") for number in range(WAITING)]
    waiting = [Asking(url, body, f"urn:wait:{number}", action="urn:ask") for number, body in enumerate(bodies)]
    foreign.world.until(lambda: len(bank.calls()) == before + WAITING, "all calls to reach the partner")
    assert asked(url, 4)["offer"] == "8"
    (bank.folder / "awake").touch()
    for each in waiting:
        each.join(PATIENCE_S)
    assert [texts(each.answer).get("offer") for each in waiting] == ["32"] * WAITING
    assert bank.calls()[before:] == ["asked 16"] * WAITING + ["asked 4"]


def test_a_process_outlives_a_partner_that_is_away_and_an_engine_that_is_killed(foreign: Foreign) -> None:  # FM-9 FM-10
    bank = foreign.banks[0]
    url, before = foreign.deploy("away", ASK), len(bank.calls())
    bank.stop()
    Asking(url, loan(5), "urn:away", action="urn:ask")
    call = foreign.world.client
    known = {case.id for case in call.cases(flow="partner-call")}
    foreign.world.until(lambda: {c.id for c in call.cases(flow="partner-call")} - known, "a call by the proxy")
    foreign.ode.stop(kill=True)
    bank.start()
    foreign.ode.start()
    foreign.world.until(lambda: len(bank.calls()) > before, "the partner to be called")
    assert bank.calls()[before:] == ["asked 5"]
    assert asked(url, 6)["offer"] == "12"
