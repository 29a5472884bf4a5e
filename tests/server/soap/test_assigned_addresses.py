"""Nobody reaches through a server what he could not reach himself: addresses that came by a message are guarded."""

import socket
from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.soap.envelope import write_envelope
from mendflow.server.soap.caller import HttpCaller
from mendflow.services.messaging.contracts import CallFailed
from mendflow.wiring import RunningServer
from tests.server.soap.shop import INVOKE, RECEIVE, REPLY, SHOP, number_in, order, partner, process, told

MOVED = """<assign><copy><from><literal><sref:service-ref
  xmlns:sref="http://docs.oasis-open.org/wsbpel/2.0/serviceref"><wsa:EndpointReference
  xmlns:wsa="http://www.w3.org/2005/08/addressing"><wsa:Address>{address}</wsa:Address></wsa:EndpointReference>
  </sref:service-ref></literal></from><to partnerLink="maker"/></copy></assign>"""
RECEIPT = write_envelope([f'<receipt xmlns="{SHOP}">42</receipt>'])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "a.localhost", "10.1.2.3", "[::1]", "169.254.169.254"])
async def test_a_private_address_that_came_by_a_message_is_refused(host: str) -> None:
    caller = HttpCaller(private=False)
    with pytest.raises(CallFailed, match="private address") as failed:
        await caller.call(f"http://{host}:1/", b"", action="", assigned=True)
    assert failed.value.fault.name == "partnerRefused"
    await caller.close()


async def test_a_name_that_stands_for_a_private_address_is_refused_when_it_is_looked_up() -> None:
    caller = HttpCaller(private=False)
    with pytest.raises(CallFailed) as failed:
        await caller.call(f"http://{socket.gethostname()}:1/", b"", action="", assigned=True)
    assert "private address" in failed.value.fault.message or failed.value.fault.name == "partnerUnreachable"
    await caller.close()


async def test_what_was_deployed_is_called_wherever_it_is() -> None:
    async with partner(lambda _: told(RECEIPT)) as (address, _):
        caller = HttpCaller(private=False)
        assert (await caller.call(address, b"", action="")).status == 200
        await caller.close()


@pytest.mark.parametrize(("private", "status"), [(True, 200), (False, 500)])
async def test_a_partner_link_that_was_assigned_is_guarded_and_one_that_was_deployed_is_not(
    server: RunningServer, client: Client, tmp_path: Path, private: bool, status: int
) -> None:
    server.server.caller._private = private  # type: ignore[attr-defined]  # as on a server that others reach
    async with partner(lambda _: told(RECEIPT)) as (address, heard):
        body = f"<sequence>{RECEIVE}{{}}{INVOKE}{REPLY}</sequence>"
        await client.deploy(process(tmp_path, "deployed", body.format(""), address))
        assert number_in((await client.post("deployed", order(7)))[1]) == 42
        elsewhere = f"{address}?assigned"
        await client.deploy(process(tmp_path, "assigned", body.format(MOVED.format(address=elsewhere)), address))
        told_status, answer = await client.post("assigned", order(7))
    assert told_status == status and (status == 200 or b"private address" in answer)
    assert len(heard) == (2 if private else 1)
