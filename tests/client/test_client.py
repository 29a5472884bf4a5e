"""The client raises what the server raised, survives a server that comes and goes, and moves files whole."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from mendflow.client import Client
from mendflow.client.transport import error_of
from mendflow.core.model.errors import (
    BadFlow,
    Conflict,
    InternalError,
    NotFound,
    Problem,
    RequestError,
    StoreUnavailable,
    Unreachable,
)
from mendflow.core.model.values import FileRef
from mendflow.operations.table import OPERATIONS
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.error_bodies import body_of
from mendflow.server.runner import HttpServer, serve
from tests.server.conftest import DomainUnderTest
from tests.server.conversation import SEVERAL, do_jobs, job_flow, loop_flow, sync_request


def test_an_older_server_is_not_sent_fields_that_nobody_has_given() -> None:  # JS-8
    """It refuses those that it does not know."""
    start = OPERATIONS["start"]
    assert start.request(start.arguments(("f", {}), {"key": "k"})).body == {"flow": "f", "key": "k"}
    assert start.request(start.arguments(("f", {"n": 1}), {"resume": True})).body == {
        "flow": "f",
        "inputs": {"n": 1},
        "resume": True,
    }


# Mistakes


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (409, b'{"code":"conflict","message":"m","fields":{"case":"c"}}', Conflict),
        (422, b'{"code":"bad-flow","message":"m","fields":{}}', BadFlow),
        (503, b'{"code":"store-unavailable","message":"m","fields":{}}', StoreUnavailable),
        (503, b'{"code":"unreachable","message":"m","fields":{}}', Unreachable),
        (404, b'{"code":"a-code-of-tomorrow","message":"m","fields":{}}', NotFound),
        (418, b'{"code":"a-code-of-tomorrow","message":"m","fields":{}}', RequestError),
        (500, b"<html>a proxy's page</html>", InternalError),
        (502, b"", Unreachable),
    ],
)
def test_a_refusal_becomes_the_mistake_that_it_was(status: int, body: bytes, kind: type[RequestError]) -> None:
    mistake = error_of(status, body)
    assert type(mistake) is kind
    assert mistake.message


def test_the_problems_of_a_flow_arrive_with_their_places() -> None:
    problems: list[Problem | str] = [
        Problem(file="a.yaml", line=3, column=5, message="no such key", suggestion="needs"),
        "and another",
    ]
    told = error_of(422, body_of(BadFlow(problems=problems)))
    assert isinstance(told, BadFlow)
    assert told.problems == BadFlow(problems=problems).problems


def test_the_fields_of_a_mistake_arrive_whatever_they_are_called() -> None:
    body = b'{"code":"conflict","message":"m","fields":{"case":"c","message":"x","self":1}}'
    assert error_of(409, body).fields["case"] == "c"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "file:///etc"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(RequestError, match="address"):
        Client(url)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "h:1", "http://h:1/api/v1", "http://h:1/api/v1/"])
def test_an_address_may_be_written_in_several_ways(url: str) -> None:
    assert Client(url).url == "http://h:1"


@pytest.mark.parametrize("id", ["", "align", "align/x", "/3"])
async def test_an_id_that_names_no_job_is_told_without_asking(id: str) -> None:
    with pytest.raises(NotFound, match="CASE/NUMBER"):
        await Client("http://127.0.0.1:9").job(id)


# A server that comes and goes


async def test_a_server_that_is_away_is_told_in_a_sentence(unused_port: int) -> None:
    async with Client(f"http://127.0.0.1:{unused_port}") as client:
        with pytest.raises(Unreachable, match="is the server running"):
            await client.suspend("last")


async def test_a_read_waits_for_a_server_that_is_just_starting(domain: DomainUnderTest, unused_port: int) -> None:
    async with Client(f"http://127.0.0.1:{unused_port}") as client:
        asked = asyncio.create_task(client.health())
        await asyncio.sleep(0)
        served = await serve(create_app(domain, access=AccessControl()), port=unused_port)
        assert (await asked).status == "ok"
        await served.stop()


class Flaky:
    """A server that hangs up on the first requests without an answer."""

    def __init__(self, hang_ups: int) -> None:
        self.asked = 0
        self._hang_ups = hang_ups

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.asked <= self._hang_ups:
            assert request.transport is not None
            request.transport.close()
        return web.Response(status=409, text='{"code":"conflict","message":"it answered","fields":{}}')

    async def start(self) -> tuple[web.AppRunner, str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_only_what_can_be_repeated_without_harm_is_repeated() -> None:
    flaky = Flaky(hang_ups=1)
    runner, url = await flaky.start()
    async with Client(url) as client:
        with pytest.raises(Unreachable):
            await client.cancel("c")
        assert flaky.asked == 1
        for harmless in (client.case("c"), client.start("f"), client.send("c", "x", 1), client.deploy(job_flow())):
            flaky.asked = 0
            with pytest.raises(Conflict, match="it answered"):
                await harmless
            assert flaky.asked == 2
    await runner.cleanup()


async def test_happenings_go_on_where_they_broke_off_when_the_server_is_restarted(domain: DomainUnderTest) -> None:
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    async with Client(served.url) as client:
        await client.deploy(loop_flow())
        case = await client.start("many")
        told = client.events(case.id)
        seen = [await anext(told)]
        await served.stop()
        served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go), port=served.port)
        await do_jobs(client, SEVERAL)
        seen += [one async for one in told]
        assert (await client.case(case.id)).status == "completed"
    serials = [one.serial for one in seen]
    assert serials == sorted(set(serials))
    ended = [one.item for one in seen if one.kind == "item" and one.state == "completed"]
    assert sorted(item for item in ended if item and item.startswith("turn")) == ["turn[0]", "turn[1]", "turn[2]"]
    assert (seen[-1].kind, seen[-1].state) == ("case", "completed")
    await served.stop()


async def test_a_quiet_stream_outlives_a_restart_of_the_server_after_more_than_its_patience(unused_port: int) -> None:
    quiet_s, told = 1.5, asyncio.Event()

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if not told.is_set():
            for _ in range(15):
                await response.write(b": nothing new\n\n")
                await asyncio.sleep(quiet_s / 15)
            told.set()
            await asyncio.sleep(60)
        await response.write(b"event: end\ndata: {}\n\n")
        return response

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/api/v1/cases/c/events", events)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", unused_port).start()
        return runner

    async def listen(client: Client) -> list[str]:
        return [event.state async for event in client.events("c", patience_s=quiet_s / 1.5)]

    first = await start()
    async with Client(f"http://127.0.0.1:{unused_port}") as client:
        listening = asyncio.create_task(listen(client))
        await told.wait()
        await first.cleanup()
        await asyncio.sleep(0.4)
        second = await start()
        assert await listening == []
        await second.cleanup()


async def test_happenings_give_up_when_the_server_does_not_come_back(unused_port: int) -> None:
    async with Client(f"http://127.0.0.1:{unused_port}") as client:
        with pytest.raises(Unreachable):
            async for _ in client.events("c", patience_s=0.3):
                pass


async def test_waiting_has_an_end_when_one_is_given(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one")
    with pytest.raises(TimeoutError):
        await client.wait(case.id, timeout_s=0.2)
    assert (await client.case(case.id)).status == "running"


async def test_waiting_for_no_case_is_told(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.wait("none")


# Files


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_goes_up_once_and_comes_down_whole(client: Client, tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_bytes(b"a,b\n" * 100_000)
    ref = await client.upload(source)
    assert ref == FileRef(sha256=hashlib.sha256(source.read_bytes()).hexdigest(), bytes=400_000, name="table.csv")
    assert await client.upload(source, "other.csv") == FileRef(sha256=ref.sha256, bytes=400_000, name="other.csv")
    target = await client.download(ref, tmp_path / "new" / "folder" / "copy.csv")
    assert target.read_bytes() == source.read_bytes()
    assert _names(target.parent) == ["copy.csv"]


async def test_a_file_that_is_not_there_is_told(client: Client, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        await client.upload(tmp_path / "none")
    with pytest.raises(NotFound):
        await client.download("0" * 64, tmp_path / "new" / "copy")
    assert not (tmp_path / "new").exists()


async def test_a_damaged_download_leaves_the_old_file_as_it_was(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def damaged(sha256: str) -> AsyncIterator[bytes]:
        yield b"xxxx"

    monkeypatch.setattr(domain, "read_file", damaged)
    served = await serve(create_app(domain, access=AccessControl()))
    folder = tmp_path / "folder"
    folder.mkdir()
    source, target = folder / "source", folder / "target"
    source.write_bytes(b"good")
    target.write_bytes(b"old")
    async with Client(served.url) as client:
        ref = await client.upload(source)
        with pytest.raises(Unreachable, match="damaged"):
            await client.download(ref, target)
    await served.stop()
    assert target.read_bytes() == b"old"
    assert _names(folder) == ["source", "target"]


async def test_a_download_that_breaks_off_is_told_and_leaves_nothing(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def cut(sha256: str) -> AsyncIterator[bytes]:
        yield b"x" * 10
        raise OSError("the disk is gone")

    monkeypatch.setattr(domain, "read_file", cut)
    served = await serve(create_app(domain, access=AccessControl()))
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)
    async with Client(served.url) as client:
        ref = await client.upload(source)
        with pytest.raises(Unreachable):
            await client.download(ref, tmp_path / "new" / "copy")
        assert (await client.health()).status == "ok"
    await served.stop()
    assert _names(tmp_path / "new") == []


async def test_a_held_exchange_may_take_longer_than_other_answers(served: HttpServer) -> None:
    async with Client(served.url, timeout_s=0.3) as client:
        assert (await client.sync(sync_request(1, wait_ms=600))).serial == 1


async def test_a_proxy_in_the_environment_is_not_asked(
    served: HttpServer, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with Client(served.url) as client:
        assert (await client.health()).status == "ok"
