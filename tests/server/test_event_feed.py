"""The events of all cases: any number of viewers, taken up where they broke off, as long as they may be seen."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING, NO_PROJECT, Principal, Sight
from mendflow.core.model.views import ChangeEvent
from mendflow.server import event_feed
from mendflow.server.event_feed import EventFeed, while_admitted
from mendflow.server.open_requests import OpenRequests
from mendflow.server.runner import HttpServer
from mendflow.services.base import events as base_events
from mendflow.services.base.events import EventStream
from tests.patience import PATIENCE_S
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import do_jobs, job_flow
from tests.server.people import KnownPeople
from tests.server.town import town


class Heard(msgspec.Struct):
    id: str = ""
    event: str = ""
    data: str = ""

    @property
    def change(self) -> ChangeEvent:
        return msgspec.json.decode(self.data, type=ChangeEvent)


async def heard(response: aiohttp.ClientResponse) -> AsyncIterator[Heard]:
    """Events as a browser reads them; one without data only moves the id."""
    one = Heard()
    async for raw in response.content:
        name, _, value = raw.decode().rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            setattr(one, name, value)
        elif not name and (one.event or one.id):
            yield one
            one = Heard()


async def first_id(response: aiohttp.ClientResponse) -> str:
    return (await anext(heard(response))).id


async def test_a_feed_goes_on_after_the_last_event_seen_without_a_hole(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    url = f"{served.url}/api/v1/events"
    await client.deploy(job_flow())
    async with http.get(url) as response:
        begin = await first_id(response)
    assert begin.isdecimal(), "who is cut before the first event can continue too"
    case = await client.start("one")
    await do_jobs(client, 1)
    await client.wait(case.id)
    async with http.get(url, headers={"Last-Event-ID": begin}) as response:
        told = heard(response)
        whole = [await anext(told)]
        while whole[-1].change.kind != "case" or whole[-1].change.state != "completed":
            whole.append(await anext(told))
    assert [one.change.case for one in whole] == [case.id] * len(whole) and len(whole) > 3
    ids = [int(one.id) for one in whole]
    assert ids == sorted(set(ids)) and ids[0] > int(begin)
    async with http.get(f"{url}?after={ids[1]}") as response:
        told = heard(response)
        assert [int((await anext(told)).id) for _ in ids[2:]] == ids[2:]


async def test_a_feed_of_the_account_that_runs_the_server_goes_on_for_as_long_as_it_is_read(
    served: HttpServer, client: Client, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it may be seen is looked again, and a server without tokens looks at the account of the connection."""
    monkeypatch.setattr(event_feed, "CHECK_S", 0.0)
    await client.deploy(job_flow())
    async with http.get(f"{served.url}/api/v1/events") as response, asyncio.timeout(PATIENCE_S):
        told = heard(response)
        await anext(told)
        for _ in range(3):
            case = await client.start("one")
            assert (await anext(told)).change.case == case.id
            await do_jobs(client, 1)
            await client.wait(case.id)
            while (seen := await anext(told)).change.kind != "case" or seen.change.state != "completed":
                pass


async def test_a_hole_that_is_too_large_is_said(
    served: HttpServer, client: Client, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http.get(f"{served.url}/api/v1/events", headers={"Last-Event-ID": "1000"}) as response:
        told = await anext(heard(response))
    assert (told.event, told.data) == ("reset", "{}") and int(told.id) > 1000


async def test_only_events_of_its_projects_reach_a_viewer(serving: Serving, http: aiohttp.ClientSession) -> None:
    served = await serving(KnownPeople())
    url, headers = f"{served.url}/api/v1/events", {"Authorization": "Bearer boris"}
    async with (
        Client(served.url, token="ann") as ann,
        Client(served.url, token="boris") as boris,
        http.get(url, headers=headers) as response,
    ):
        told = heard(response)
        await anext(told)
        await ann.deploy(job_flow("red"))
        await boris.deploy(job_flow("blue"))
        await ann.start("red")
        mine = (await boris.start("blue")).id
        async with asyncio.timeout(PATIENCE_S):
            seen = [await anext(told)]
            while not seen[-1].data:  # only the id moved
                seen.append(await anext(told))
    assert seen[-1].change.case == mine


class Forgetful(KnownPeople):
    """Its people can be forgotten."""

    def forget(self, name: str) -> None:
        del self._people[name]


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/cases/last/events"])
async def test_a_feed_ends_when_its_token_is_revoked(
    path: str, serving: Serving, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "CHECK_S", 0.0)
    people = Forgetful([Principal("ann", frozenset({"admin"})), Principal("bob", frozenset({"user"}))])
    served = await serving(people)
    async with Client(served.url, token="ann") as ann:
        await ann.deploy(job_flow())
        await ann.start("one")
        async with http.get(f"{served.url}{path}", headers={"Authorization": "Bearer bob"}) as response:
            told = heard(response)
            if path.endswith("/v1/events"):
                await anext(told)
            people.forget("bob")
            await ann.start("one")
            await do_jobs(ann, 2)
            async with asyncio.timeout(PATIENCE_S):
                rest = [one async for one in told]
    assert not any(one.change.state == "completed" for one in rest if one.data and one.event != "end")


async def test_a_reader_who_may_not_any_more_gets_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "CHECK_S", 0.0)
    answers = iter([True, False])

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(5):
            yield b"%d" % number

    async def is_admitted() -> bool:
        return next(answers)

    assert [each async for each in while_admitted(pieces(), is_admitted)] == [b"0"]  # type: ignore[arg-type] # it has aclose


def tell(stream: EventStream, number: int) -> None:
    stream.tell(stream.serial // 1000 + 1, "item", CaseId("c"), state=str(number))


async def test_a_viewer_that_stays_away_for_too_long_is_told_so(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_events, "RECENT_MAX", 10)
    monkeypatch.setattr(event_feed, "RECENT_MAX", 10)
    feed, stream = EventFeed(domain), domain.event_stream()
    pieces = feed.follow(0, kind="", sight=EVERYTHING, open_requests=OpenRequests())
    await anext(pieces)
    for number in range(3):
        tell(stream, number)
    assert (await anext(pieces)).count(b"event: item") == 3
    for number in range(25):
        tell(stream, number)
    assert b"event: reset" in await anext(pieces)
    tell(stream, 99)
    assert b'"state":"99"' in await anext(pieces)
    await pieces.aclose()
    assert feed.viewers == 0


async def test_the_server_s_end_ends_the_feed(domain: DomainUnderTest) -> None:
    feed, requests = EventFeed(domain), OpenRequests()
    pieces = feed.follow(0, kind="", sight=EVERYTHING, open_requests=requests)
    await anext(pieces)
    waiting = asyncio.ensure_future(anext(pieces, b""))
    await asyncio.sleep(0.05)
    requests.end_all()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting in (b"", b": quiet\n\n")


async def test_a_thousand_viewers_share_one_feed(domain: DomainUnderTest) -> None:
    """Each gets everything once, frames are made once, and what is kept does not grow with the viewers."""
    feed, stream, viewers, changes = EventFeed(domain), domain.event_stream(), 1_000, 500
    sight = Sight(frozenset({NO_PROJECT}))  # nobody knows the case of these events
    got = [0] * viewers

    async def view(number: int) -> None:
        async for piece in feed.follow(0, kind="", sight=sight, open_requests=OpenRequests()):
            got[number] += piece.count(b"event: item")
            if got[number] == changes:
                return

    tasks = [asyncio.create_task(view(number)) for number in range(viewers)]
    while feed.viewers < viewers:
        await asyncio.sleep(0)
    begun, spent = time.monotonic(), time.process_time()
    for number in range(changes):
        tell(stream, number)
        if number % 50 == 0:
            await asyncio.sleep(0.05)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*tasks)
    print(f"{viewers} viewers: {time.monotonic() - begun:.2f} s, {time.process_time() - spent:.2f} s of CPU")
    assert got == [changes] * viewers
    assert sum(each is not None for each in feed._frames) == changes


async def test_several_servers_are_one_feed_that_goes_on_without_a_hole(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    async with town(tmp_path, "one", "two") as [one, two], one.client() as first, two.client() as second:
        await first.deploy(job_flow("f"))
        async with http.get(f"{one.url}/api/v1/events") as response:
            begin = await first_id(response)
        cases = {(await first.start("f")).id, (await second.start("f")).id}
        async with http.get(f"{one.url}/api/v1/events", headers={"Last-Event-ID": begin}) as response:
            seen, told = set[str](), heard(response)
            async with asyncio.timeout(PATIENCE_S):
                while not cases <= seen:
                    each = await anext(told)
                    assert each.event != "reset"
                    seen |= {each.change.case} if each.data else set()
