"""Nobody reaches through a server what he could not reach himself: addresses of partners are guarded, those that
came by a message and those that were deployed. SE-5"""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mendflow.address_guard import OWN_MACHINE, PUBLIC_ONLY, AddressGuard, allowed_address
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
    caller = HttpCaller(PUBLIC_ONLY)
    with pytest.raises(CallFailed, match="private address") as failed:
        await caller.call(f"http://{host}:1/", b"", action="", assigned=True)
    assert failed.value.fault.name == "partnerRefused"
    await caller.close()


async def test_a_name_that_stands_for_a_private_address_is_refused_when_it_is_looked_up() -> None:
    caller = HttpCaller(PUBLIC_ONLY)
    with pytest.raises(CallFailed) as failed:
        await caller.call(f"http://{socket.gethostname()}:1/", b"", action="", assigned=True)
    assert "private address" in failed.value.fault.message or failed.value.fault.name == "partnerUnreachable"
    await caller.close()


async def test_what_was_deployed_is_guarded_as_well_and_called_by_the_allow_list() -> None:  # SE-5
    async with partner(lambda _: told(RECEIPT)) as (address, heard):
        caller = HttpCaller(PUBLIC_ONLY)
        with pytest.raises(CallFailed, match="--allow-address"):
            await caller.call(address, b"", action="")
        await caller.close()
        assert not heard
        caller = HttpCaller(AddressGuard(allowed=(allowed_address(urlsplit(address).netloc),)))
        assert (await caller.call(address, b"", action="")).status == 200
        await caller.close()


@pytest.mark.parametrize("guard", [OWN_MACHINE, PUBLIC_ONLY], ids=["own machine", "with tokens"])
async def test_a_partner_link_is_guarded_whether_it_was_assigned_or_deployed(  # SE-5
    server: RunningServer, client: Client, tmp_path: Path, guard: AddressGuard
) -> None:
    server.server.caller._calls.guard = guard  # type: ignore[attr-defined]  # as on a server that others use
    async with partner(lambda _: told(RECEIPT)) as (address, heard):
        body = f"<sequence>{RECEIVE}{{}}{INVOKE}{REPLY}</sequence>"
        await client.deploy(process(tmp_path, "deployed", body.format(""), address))
        assigned = body.format(MOVED.format(address=f"{address}?assigned"))
        await client.deploy(process(tmp_path, "assigned", assigned, address))
        for name in ("deployed", "assigned"):
            status, answer = await client.post(name, order(7))
            if guard.private:
                assert number_in(answer) == 42
            else:
                assert status == 500
                assert b"private address" in answer
    assert len(heard) == (2 if guard.private else 0)
