"""The pilots' exchange: MessagePack in, MessagePack out, held until there is something to say, ended when we stop."""

import asyncio

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.data import CACHE_FILES_MAX
from mendflow.core.model.errors import Unreachable
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.sync import ATTEMPTS_MAX, AttemptReport, SyncAnswer, SyncRequest
from mendflow.server import pilot_exchange as pilots
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import HttpServer, serve
from tests.patience import PATIENCE_S
from tests.server.conftest import DomainUnderTest
from tests.server.conversation import do_jobs, job_flow, sync_request


async def test_a_job_is_handed_out_and_its_report_accepted(client: Client) -> None:  # PJ-1, JS-1
    await client.deploy(job_flow())
    await client.start("one")
    answers = await do_jobs(client, 1)
    given = [one for answer in answers for one in answer.jobs]
    assert [one.spec.command for one in given] == ["true"]
    assert [ref.job for answer in answers for ref in answer.accepted] == [given[0].job]


async def test_an_answer_is_held_until_there_is_a_job(client: Client) -> None:  # PJ-1
    await client.deploy(job_flow())
    held = asyncio.create_task(client.sync(sync_request(1, want=1, wait_ms=20_000)))
    await _seen(client)
    assert not held.done()
    await client.start("one")
    assert len((await held).jobs) == 1


async def _seen(client: Client) -> None:
    while True:
        if await client.pilots():
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "request"),
        (b"{}", "request"),
        (b"\xc1", "request"),
        (msgspec.msgpack.encode({"pilot": 3}), "$.pilot"),
        (msgspec.msgpack.encode({"pilot": "p", "serial": 1}), "host"),
        (b"\x91" * 100_000, "request"),
    ],
    ids=["empty", "json", "no-such-byte", "wrong-type", "half", "nested"],
)
async def test_a_malformed_request_is_told_so(
    served: HttpServer, http: aiohttp.ClientSession, body: bytes, said: str
) -> None:
    async with http.post(f"{served.url}/api/v1/pilots/sync", data=body) as response:
        assert response.status == 400
        told = await response.json()
    assert told["code"] == "invalid"
    assert said in told["message"]


TOO_MANY: dict[str, object] = {
    "running": [["x/1", 1, "running", {}]] * (ATTEMPTS_MAX + 1),
    "reports": [["x/1", 1, {}]] * (ATTEMPTS_MAX + 1),
    "logs": [["x/1", 1, 0]] * (ATTEMPTS_MAX + 1),
    "cache": [1, 0, [["0" * 64, 1]] * (CACHE_FILES_MAX + 1)],
}


@pytest.mark.parametrize("unreadable", [False, True], ids=["well", "unreadable"])
@pytest.mark.parametrize("field", TOO_MANY)
async def test_a_request_with_more_than_a_pilot_can_have_is_refused(
    served: HttpServer, http: aiohttp.ClientSession, field: str, unreadable: bool
) -> None:  # SE-2
    request = {**msgspec.to_builtins(sync_request(1)), field: TOO_MANY[field]}
    if unreadable:
        request["reports"] = [*request["reports"], ["x/2", 1, 5]]
    async with http.post(f"{served.url}/api/v1/pilots/sync", data=msgspec.msgpack.encode(request)) as response:
        assert response.status == 400
        told = await response.json()
    if not unreadable:  # else it may be the report that is told of
        assert "of length <= 1" in told["message"] and told["fields"]["field"].startswith(f"$.{field}")


async def test_others_are_answered_while_many_reports_are_read(domain: DomainUnderTest) -> None:
    reports = tuple(AttemptReport(JobId(f"x/{number}"), 1, Outcome()) for number in range(1_000))
    turns, reading = 0, asyncio.create_task(domain.sync(sync_request(1, reports=reports)))
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert len((await reading).refused) == len(reports) and turns > 10


async def test_a_report_that_cannot_be_read_fails_its_job_and_the_others_are_heard(
    client: Client, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    await client.deploy(job_flow())
    bad, well = [(await client.start("one")).id for _ in range(2)]

    async def sync(request: object) -> SyncAnswer:
        async with http.post(f"{served.url}/api/v1/pilots/sync", data=msgspec.msgpack.encode(request)) as response:
            assert response.status == 200
            return msgspec.msgpack.decode(await response.read(), type=SyncAnswer)

    given = {one.job.partition("/")[0]: one for one in (await sync(sync_request(1, want=2))).jobs}
    request = msgspec.to_builtins(sync_request(2))
    request["reports"] = [
        [given[bad].job, given[bad].fence, {"files": {"f": {"sha256": 5}}}],
        [given[well].job, given[well].fence, {"outputs": 1}],
    ]
    answer = await sync(request)
    assert {ref.job for ref in answer.accepted} == {one.job for one in given.values()}
    assert (await client.case(well)).status == "completed"
    fault = (await client.case(bad)).fault
    assert fault is not None and "cannot be read: Expected `str`, got `int`" in fault.message


async def test_a_request_beyond_the_bound_is_refused(
    served: HttpServer, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilots, "SYNC_BYTES_MAX", 1000)
    async with http.post(f"{served.url}/api/v1/pilots/sync", data=b"x" * 1001) as response:
        assert response.status == 413
        assert (await response.json())["code"] == "too-large"


async def test_only_post_is_an_exchange(served: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{served.url}/api/v1/pilots/sync") as response:
        assert response.status in (404, 405)


class Deaf:
    """Makes a domain hold every exchange until it is let go, and remembers who was; `stubborn` does not let go."""

    def __init__(self, domain: DomainUnderTest, patch: pytest.MonkeyPatch, *, stubborn: bool = False) -> None:
        patch.setattr(domain, "sync", self._sync)
        patch.setattr(domain, "let_go", self._let_go)
        self.asked = asyncio.Event()
        self.gone: asyncio.Queue[str | None] = asyncio.Queue()
        self._free = asyncio.Event()
        self._stubborn = stubborn

    def _let_go(self, pilot: PilotId | str | None) -> None:
        self.gone.put_nowait(pilot)
        if not self._stubborn:
            self._free.set()

    async def _sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer:
        self.asked.set()
        await self._free.wait()
        return SyncAnswer(serial=request.serial, lease_ms=1)


async def test_the_domain_is_told_of_a_pilot_that_hangs_up(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = Deaf(domain, monkeypatch)
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    try:
        async with Client(served.url) as client:
            exchange = asyncio.create_task(client.sync(sync_request(1, wait_ms=60_000)))
            await deaf.asked.wait()
            exchange.cancel()
            assert await asyncio.wait_for(deaf.gone.get(), PATIENCE_S) == "pilot-1"
    finally:
        await served.stop()


async def test_a_server_that_stops_answers_what_it_holds(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = Deaf(domain, monkeypatch)
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    async with Client(served.url) as client:
        exchange = asyncio.create_task(client.sync(sync_request(9, wait_ms=60_000)))
        await deaf.asked.wait()
        await served.stop()
        assert (await exchange).serial == 9


async def test_a_server_that_stops_does_not_wait_for_a_domain_that_will_not_answer(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = Deaf(domain, monkeypatch, stubborn=True)
    served = await serve(create_app(domain, access=AccessControl(), let_go=domain.let_go))
    async with Client(served.url) as client:
        exchange = asyncio.create_task(client.sync(sync_request(9, wait_ms=60_000)))
        await deaf.asked.wait()
        await asyncio.wait_for(served.stop(), PATIENCE_S)
        with pytest.raises(Unreachable):
            await exchange


async def test_a_bug_in_the_domain_is_an_answer_too(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: SyncRequest, *, who: str = "") -> SyncAnswer:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(domain, "sync", broken)
    served = await serve(create_app(domain, access=AccessControl()))
    try:
        async with aiohttp.ClientSession() as http:
            body = msgspec.msgpack.encode(sync_request(1))
            async with http.post(f"{served.url}/api/v1/pilots/sync", data=body) as response:
                assert response.status == 500
                assert (await response.json())["fields"]["id"] in caplog.text
    finally:
        await served.stop()
