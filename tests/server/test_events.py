"""Event streams: every happening once, in order; taken up where they broke off; ended by the case, or cut by us."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import ChangeEvent
from mendflow.server import events
from mendflow.server.events import EventFrames
from mendflow.server.open_requests import OpenRequests
from mendflow.server.runner import HttpServer
from tests.patience import PATIENCE_S
from tests.server.conversation import SEVERAL, do_jobs, job_flow, loop_flow


class Told(msgspec.Struct):
    id: str = ""
    event: str = ""
    data: str = ""


async def _told(response: aiohttp.ClientResponse) -> AsyncIterator[Told]:
    """Events as a browser would read them."""
    one = Told()
    async for raw in response.content:
        name, _, value = raw.decode().rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            setattr(one, name, value)
        elif not name and one.event:
            yield one
            one = Told()


async def _ended_case(client: Client) -> CaseId:
    await client.deploy(loop_flow())
    case = await client.start("many")
    await do_jobs(client, SEVERAL)
    return (await client.wait(case.id)).id


async def test_a_case_is_told_from_its_start_to_its_end(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    case = await _ended_case(client)
    async with http.get(f"{served.url}/api/v1/cases/{case}/events") as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        told = [one async for one in _told(response)]
    assert told[-1].event == "end"
    serials = [int(one.id) for one in told[:-1]]
    assert serials == sorted(set(serials)), "each once, and in order"
    last = msgspec.json.decode(told[-2].data, type=ChangeEvent)
    assert (last.kind, last.state, last.case) == ("case", "completed", case)


async def test_a_stream_is_taken_up_after_the_last_event_seen(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    case = await _ended_case(client)
    url = f"{served.url}/api/v1/cases/{case}/events"
    async with http.get(url) as response:
        whole = [one.id async for one in _told(response)]
    async with http.get(url, headers={"Last-Event-ID": whole[2]}) as response:
        rest = [one.id async for one in _told(response)]
    async with http.get(f"{url}?after={whole[2]}") as response:
        same = [one.id async for one in _told(response)]
    assert rest == same == whole[3:]


async def test_the_stream_of_a_live_case_goes_on_as_things_happen(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    await client.deploy(job_flow())
    await client.start("one")
    async with http.get(f"{served.url}/api/v1/cases/last/events") as response:
        told = _told(response)
        assert (await anext(told)).event == "case"
        await do_jobs(client, 1)
        assert [one.event async for one in told][-1] == "end"


async def test_the_stream_of_all_cases_tells_of_new_ones(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    await client.deploy(job_flow())
    async with http.get(f"{served.url}/api/v1/events") as response:
        await response.content.readuntil(b"\n\n")
        case = await client.start("one")
        first = await anext(_told(response))
    assert msgspec.json.decode(first.data, type=ChangeEvent).case == case.id


async def test_the_stream_of_no_case_and_a_wrong_serial_are_refused(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{served.url}/api/v1/cases/none/events") as response:
        assert response.status == 404
    await client.deploy(job_flow())
    await client.start("one")
    async with http.get(f"{served.url}/api/v1/cases/last/events", headers={"Last-Event-ID": "x"}) as response:
        assert response.status == 400


async def test_a_server_that_stops_cuts_its_streams_without_saying_end(
    served: HttpServer, client: Client, http: aiohttp.ClientSession
) -> None:
    await client.deploy(job_flow())
    await client.start("one")
    async with http.get(f"{served.url}/api/v1/cases/last/events") as response:
        told = _told(response)
        await anext(told)
        await asyncio.wait_for(served.stop(), PATIENCE_S)
        assert "end" not in [one.event async for one in told]


def _happening(serial: int) -> ChangeEvent:
    return ChangeEvent(serial=serial, at=0, kind="item", case=CaseId("c"))


async def test_a_slow_reader_holds_the_telling_back() -> None:
    drawn = 0

    async def endless() -> AsyncIterator[ChangeEvent]:
        nonlocal drawn
        while True:
            drawn += 1
            yield _happening(drawn)

    pieces = EventFrames(endless(), _over).stream(OpenRequests())
    await anext(pieces)
    for _ in range(100):
        await asyncio.sleep(0)
    assert drawn == events.FRAMES_MAX
    first = await anext(pieces)
    assert first.count(b"event: item") == events.FRAMES_MAX
    await pieces.aclose()


async def test_a_reader_that_leaves_ends_the_source() -> None:
    closed = asyncio.Event()

    async def source() -> AsyncIterator[ChangeEvent]:
        try:
            yield _happening(1)
            await asyncio.Event().wait()
        finally:
            closed.set()

    pieces = EventFrames(source(), _over).stream(OpenRequests())
    await anext(pieces)
    await anext(pieces)
    await pieces.aclose()
    assert closed.is_set()


async def test_a_silent_stream_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SILENCE_S", 0.01)

    async def silent() -> AsyncIterator[ChangeEvent]:
        await asyncio.Event().wait()
        yield _happening(1)

    pieces = EventFrames(silent(), _over).stream(OpenRequests())
    await anext(pieces)
    assert (await anext(pieces)).startswith(b":")
    await pieces.aclose()


async def _over() -> bool:
    return True
