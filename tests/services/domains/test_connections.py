"""Connections between domains: both sides consent, and each has a token of its own at the other. FM-4"""

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.domains import (
    ConnectionSpec,
    DomainAddress,
    DomainRequest,
    DomainRights,
    InvitationAcceptance,
    InvitationSpec,
    InvitationView,
)
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unreachable
from mendflow.services.domains.connections import CONNECTION_KIND
from mendflow.services.domains.domain_lines import Token
from mendflow.services.domains.invitations import INVITATION_KIND
from mendflow.services.domains.work_counts import WorkCount, WorkCounter
from tests.patience import until
from tests.services.domains.neighbours import LocalLines, Neighbour


async def invite(one: Neighbour, name: str, **spec: object) -> InvitationView:
    return await one.domain.invite_domain(name, InvitationSpec(**spec), who="ann")  # type: ignore[arg-type]  # own fields


async def connect(one: Neighbour, other: Neighbour, token: str, **more: object) -> None:
    spec = ConnectionSpec(urls=(other.url,), token=token, **more)  # type: ignore[arg-type]  # own fields
    await one.domain.connect_domain(other.connections.own.name, spec, who="bob")


def token_of(one: Neighbour, name: str) -> Token:
    connection = one.connections.find(name)
    assert connection is not None
    return lambda: one.connections.own_token(connection)


async def test_an_accepted_invitation_connects_both_ways(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:  # FM-4
    invited = await invite(north, "south")
    assert [view.state for view in (await north.domain.domains()).domains] == ["invited"]

    await connect(south, north, invited.token)

    for one, other in ((north, south), (south, north)):
        [view] = (await one.domain.domains()).domains
        assert (view.name, view.url, view.state) == (other.connections.own.name, other.url, "connected")
        answer = await lines.line([other.url], token_of(one, view.name), public_only=True).exchange(
            DomainRequest(sender="s", serial=0)
        )
        assert answer.stamp > 0


async def test_the_inviting_side_may_ask_before_its_answer_has_arrived(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    """It knows the token of the other side from then on, which has not stored the connection yet."""
    invited = await invite(north, "south")
    lines.answers_arrive.clear()
    connecting = asyncio.create_task(connect(south, north, invited.token))
    await until(lambda: north.connections.find("south") is not None)
    line = lines.line([south.url], token_of(north, "south"), public_only=True)
    asking = asyncio.create_task(line.exchange(DomainRequest(sender="s", serial=0)))
    await asyncio.sleep(0.05)
    assert not asking.done()
    lines.answers_arrive.set()
    assert (await asking).stamp > 0
    await connecting
    assert [view.state for view in (await north.domain.domains()).domains] == ["connected"]


async def test_who_asks_while_it_is_being_connected_is_refused_if_nothing_comes_of_that(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    invited = await invite(north, "south")
    lines.answers_arrive.clear()
    connecting = asyncio.create_task(connect(south, north, invited.token))
    await until(lambda: north.connections.find("south") is not None)
    line = lines.line([south.url], token_of(north, "south"), public_only=True)
    asking = asyncio.create_task(line.exchange(DomainRequest(sender="s", serial=0)))
    await asyncio.sleep(0.05)
    lines.mute.add(north.url)
    lines.answers_arrive.set()
    with pytest.raises(Unreachable):
        await connecting
    with pytest.raises(Forbidden, match="does not know that token"):
        await asking


async def test_an_invitation_is_used_once(north: Neighbour, south: Neighbour) -> None:
    invited = await invite(north, "south")
    await connect(south, north, invited.token)
    await north.domain.disconnect_domain("south", who="ann", force=True)
    await south.domain.disconnect_domain("north", who="bob", force=True)

    with pytest.raises(Forbidden, match=r"no such open invitation.*invite NAME"):
        await connect(south, north, invited.token)
    assert not (await south.domain.domains()).domains


async def test_an_invitation_is_for_one_name_and_one_token(north: Neighbour, south: Neighbour, settle: object) -> None:
    invited = await invite(north, "east")
    with pytest.raises(Forbidden, match="for another name"):
        await connect(south, north, invited.token)
    await invite(north, "south")
    with pytest.raises(Forbidden):
        await connect(south, north, "0" * 64)
    assert {view.state for view in (await north.domain.domains()).domains} == {"invited"}


async def test_a_newer_invitation_takes_the_place_of_the_older(north: Neighbour, south: Neighbour) -> None:
    first, second = await invite(north, "south"), await invite(north, "south")
    with pytest.raises(Forbidden):
        await connect(south, north, first.token)
    await connect(south, north, second.token)


async def test_an_invitation_that_is_over_is_refused_and_removed(north: Neighbour, south: Neighbour) -> None:
    invited = await invite(north, "south")
    north.server.clock.catch_up(invited.expires_at + 1)
    with pytest.raises(Forbidden, match="is over"):
        await connect(south, north, invited.token)
    assert not (await north.domain.domains()).domains
    assert await north.store.get(INVITATION_KIND, "south") is None


async def test_a_lost_answer_is_made_up_for_by_asking_again(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    invited = await invite(north, "south")
    lines.mute.add(north.url)
    with pytest.raises(Unreachable):
        await connect(south, north, invited.token)
    assert [view.state for view in (await north.domain.domains()).domains] == ["connected"]
    assert not (await south.domain.domains()).domains

    lines.mute.clear()
    await connect(south, north, invited.token)
    await connect(south, north, invited.token)
    assert [view.name for view in (await south.domain.domains()).domains] == ["north"]
    line = lines.line([north.url], token_of(south, "north"), public_only=False)
    assert (await line.exchange(DomainRequest(sender="s", serial=0))).stamp > 0


async def test_nobody_else_can_accept_an_invitation_that_is_being_accepted(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    invited = await invite(north, "south")
    await connect(south, north, invited.token)
    thief = InvitationAcceptance(domain="south", inviter="north", token="stolen")
    with pytest.raises(Conflict, match="has a connection with south already"):
        await lines.accept([north.url], invited.token, thief)


async def test_who_has_no_invitation_is_not_told_who_is_connected(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    told = []
    for name in ("south", "nobody"):
        with pytest.raises(Forbidden) as refused:
            await lines.accept([north.url], "guess", InvitationAcceptance(domain=name, inviter="north", token="x"))
        told.append(str(refused.value).replace(name, "NAME"))
    assert told[0] == told[1]


async def test_both_sides_have_to_use_the_names_that_the_other_has(north: Neighbour, south: Neighbour) -> None:
    invited = await invite(north, "south")
    spec = ConnectionSpec(urls=(north.url,), token=invited.token)
    with pytest.raises(Conflict, match="is called 'north', not 'nord'"):
        await south.domain.connect_domain("nord", spec, who="bob")
    with pytest.raises(InvalidRequest, match="this domain itself is called 'north'"):
        await invite(north, "north")
    for bad in ("any", "ANY", "a/b", "", ".", "x" * 65, "nörd"):
        with pytest.raises(InvalidRequest, match="no name of a domain"):
            await invite(north, bad)


async def test_no_token_is_stored_in_the_clear(north: Neighbour, south: Neighbour) -> None:
    invited = await invite(north, "south")
    stored = await north.store.get(INVITATION_KIND, "south")
    assert stored is not None and invited.token.encode() not in stored.body
    await connect(south, north, invited.token)
    for one, other in ((north, "south"), (south, "north")):
        shown = await token_of(one, other)()
        document = await one.store.get(CONNECTION_KIND, other)
        assert document is not None and len(shown) == 64
        assert shown.encode() not in document.body
        assert shown not in repr(one.connections.find(other))
    assert await token_of(north, "south")() != await token_of(south, "north")()


async def test_who_is_disconnected_is_refused(north: Neighbour, south: Neighbour, lines: LocalLines) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    line = lines.line([north.url], token_of(south, "north"), public_only=False)
    await north.domain.disconnect_domain("south", who="ann", force=True)
    with pytest.raises(Forbidden, match="does not know that token: it has disconnected"):
        await line.exchange(DomainRequest(sender="s", serial=0))
    south.services.contacts.refused("north", "it does not know us")
    assert [view.state for view in (await south.domain.domains()).domains] == ["refused"]


class Counted:
    def __init__(self) -> None:
        self.left = WorkCount(2, 1)

    async def counts(self) -> dict[str, WorkCount]:
        return {"north": self.left}


async def test_a_drained_connection_goes_when_nothing_is_under_way(north: Neighbour, south: Neighbour) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    work = Counted()
    services = south.services
    services._hub._providers.pop(WorkCounter, None)
    services._hub.provide(WorkCounter, work)
    view = await south.domain.disconnect_domain("north", who="bob")
    assert (view.state, view.sent, view.held) == ("draining", 2, 1)
    assert (await south.domain.connected_domain("north")).state == "draining"
    work.left = WorkCount()

    async def is_gone() -> bool:
        return not (await south.domain.domains()).domains

    await until(is_gone, "the end of the connection", every_s=0.1)


async def test_rights_are_what_the_administrator_says(north: Neighbour, south: Neighbour) -> None:
    rights = DomainRights(flows=("night",), own_flows=False, work_max=7)
    await connect(south, north, (await invite(north, "south", rights=rights)).token)
    assert (await north.domain.connected_domain("south")).rights == rights
    assert (await south.domain.connected_domain("north")).rights == DomainRights()
    await south.domain.change_domain_rights("north", rights, who="bob")
    assert (await south.domain.connected_domain("north")).rights == rights
    with pytest.raises(InvalidRequest, match="0 or more"):
        await south.domain.change_domain_rights("north", DomainRights(work_max=-1), who="bob")
    with pytest.raises(NotFound, match="the domain 'east' is not connected here"):
        await south.domain.change_domain_rights("east", rights, who="bob")


async def test_an_address_that_an_administrator_gives_is_used_instead_of_the_one_that_is_named(
    north: Neighbour, south: Neighbour
) -> None:
    given = "https://gate.example.org"
    await connect(south, north, (await invite(north, "south", urls=(given,))).token)
    found = north.connections.find("south")
    assert found is not None and found.urls == (given,) and not found.names_itself
    with pytest.raises(InvalidRequest, match="not the address of a server"):
        await invite(north, "east", urls=("file:///etc/passwd",))


async def test_connections_outlive_a_restart_and_every_server_on_the_store_knows_them(
    north: Neighbour, south: Neighbour, lines: LocalLines, tmp_path: Path
) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    token = token_of(south, "north")
    second = Neighbour(lines, tmp_path / "second", "", store=north.store)
    lines.gates[second.url] = lines.gates.pop(second.url)
    await second.server.open()
    try:
        assert second.connections.own.name == "north"  # whatever machine it is on
        assert [each.name for each in second.connections.known()] == ["south"]
        answer = await lines.line([second.url], token, public_only=False).exchange(DomainRequest(sender="s", serial=0))
        assert answer.stamp > 0
    finally:
        await second.server.close()


async def test_a_server_hears_of_a_connection_that_another_server_has_made(
    north: Neighbour, south: Neighbour, lines: LocalLines, tmp_path: Path
) -> None:
    second = Neighbour(lines, tmp_path / "second", "", store=north.store)
    await second.server.open()
    try:
        await connect(south, north, (await invite(north, "south")).token)
        assert second.connections.find("south") is None
        second.server.clock.catch_up(second.server.clock.now() + 2_000)
        shown = await token_of(south, "north")()
        found = await second.connections.authenticate(hashlib.sha256(shown.encode()).hexdigest())
        assert found.name == "south"
    finally:
        await second.server.close()


async def test_a_name_that_others_know_cannot_be_changed(
    north: Neighbour, south: Neighbour, lines: LocalLines, tmp_path: Path
) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    renamed = Neighbour(lines, tmp_path / "renamed", "west", store=north.store)
    with pytest.raises(Conflict, match=r"is called 'north'.*--domain north"):
        await renamed.server.open()


async def test_a_domain_says_what_it_charges(north: Neighbour) -> None:
    assert (await north.domain.charge_domain(charge=0.25, who="ann")).charge == 0.25
    with pytest.raises(InvalidRequest, match="is no charge"):
        await north.domain.charge_domain(charge=-1, who="ann")
    assert (await north.domain.domains()).charge == 0.25


async def test_a_peer_of_a_newer_protocol_is_told_so(north: Neighbour, south: Neighbour, lines: LocalLines) -> None:
    await connect(south, north, (await invite(north, "south")).token)
    line = lines.line([north.url], token_of(south, "north"), public_only=False)
    with pytest.raises(InvalidRequest, match="speaks version 1"):
        await line.exchange(msgspec.structs.replace(DomainRequest(sender="s", serial=0), protocol=99))


def move(one: Neighbour, lines: LocalLines, url: str) -> None:
    """It was started again, and listens elsewhere."""
    lines.gates[url] = lines.gates.pop(one.url)
    one.url = url
    one.server.listens_at(url)


@pytest.mark.parametrize("moves", ["north", "south"])
async def test_a_domain_that_moves_tells_the_other_which_keeps_it_and_calls_it_there(
    north: Neighbour, south: Neighbour, lines: LocalLines, moves: str
) -> None:  # FM-4
    await connect(south, north, (await invite(north, "south")).token)
    mover, other = (north, south) if moves == "north" else (south, north)
    move(mover, lines, f"http://{moves}.example.org:4711")

    request = DomainRequest(sender="s", serial=0)
    await mover.services.lines()[other.connections.own.name].exchange(request)

    assert (await other.connections.get(moves)).told == (mover.url,)  # in the store
    assert (await other.services.lines()[moves].exchange(request)).stamp > 0


async def test_a_peer_cannot_make_us_call_another_private_host_nor_leave_encryption(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    lines.idle = True
    await connect(south, north, (await invite(north, "south", urls=("http://10.1.2.3:8642",))).token)

    async def told(*urls: str) -> tuple[str, ...]:
        await north.connections.hear_urls(await north.connections.get("south"), urls)
        return (await north.connections.get("south")).told

    assert await told("http://10.1.2.4:8642", "http://localhost:1", "no address") == ()
    assert await told("http://10.1.2.3:9000") == ("http://10.1.2.3:9000",)
    assert await told("http://8.8.8.8:9000") == ("http://8.8.8.8:9000", "http://10.1.2.3:9000")
    await north.domain.change_domain_address("south", DomainAddress(urls=("https://10.1.2.3/",)), who="ann")
    assert (await north.connections.get("south")).urls == ("https://10.1.2.3",)
    assert await told("http://10.1.2.3:9000", "http://8.8.8.8:9000") == ()
    with pytest.raises(InvalidRequest, match="not the address of a server"):
        await north.domain.change_domain_address("south", DomainAddress(urls=("ftp://x",)), who="ann")


async def test_connecting_again_with_another_address_corrects_it_and_says_so(
    north: Neighbour, south: Neighbour, lines: LocalLines
) -> None:
    token = (await invite(north, "south")).token
    await connect(south, north, token)
    before = north.url
    again = ConnectionSpec(urls=(before,), token=token)
    assert "nothing has changed" in (await south.domain.connect_domain("north", again, who="bob")).reason
    move(north, lines, "http://10.9.9.9:1")

    view = await south.domain.connect_domain("north", ConnectionSpec(urls=(north.url,), token=token), who="bob")

    assert view.url == north.url and f"{north.url} from now on, not {before}" in view.reason
