"""One principal may take so much of a server, and is told when to come back."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from litestar.types import Receive, Send

from mendflow.client import Client
from mendflow.client.transport import Transport
from mendflow.core.model.errors import TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, USER, Principal
from mendflow.server import request_quotas
from mendflow.server.access import AccessControl, AccessToken, token_hash
from mendflow.server.app import create_app
from mendflow.server.request_quotas import BUSY_BURST_S, RequestBuckets, RequestQuotas, Timed, paid_alike
from mendflow.server.runner import HttpServer, serve
from mendflow.services.base.buckets import KEYS_MAX, Bucket
from mendflow.services.base.reading_cost import context_for_everybody, paid_thread, tell_cost_of_reading
from mendflow.stores.contract import Put
from mendflow.stores.sqlite.store import SqliteStore
from tests.patience import until
from tests.server.conftest import DomainUnderTest


@pytest.fixture
async def bounded(domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpServer]:
    monkeypatch.setattr(request_quotas, "HELD_S", 0.0)
    names = {"ann": USER, "eve": USER, "root": ADMIN, "site-pilots": PILOT}
    tokens = [AccessToken(name, frozenset({role}), token_hash(name)) for name, role in names.items()]
    async with AsyncExitStack() as stack:
        app = create_app(domain, access=AccessControl(tokens), let_go=domain.let_go, requests_per_s=0.2)
        served = await serve(app)
        stack.push_async_callback(served.stop)
        yield served


async def statuses(served: HttpServer, http: aiohttp.ClientSession, token: str, count: int) -> list[int]:
    found = []
    for _ in range(count):
        headers = {"authorization": f"Bearer {token}"}
        async with http.get(f"{served.url}/api/v1/cases", headers=headers) as response:
            found.append(response.status)
            if response.status == 429:
                told = await response.json()
                assert told["code"] == "too-many-requests"
                assert int(response.headers["Retry-After"]) == told["fields"]["retry_after_s"] >= 1
    return found


async def test_who_floods_is_told_to_wait_and_the_others_are_not(  # SE-3
    bounded: HttpServer, http: aiohttp.ClientSession
) -> None:
    assert 429 in await statuses(bounded, http, "eve", 20)
    assert await statuses(bounded, http, "ann", 1) == [200]
    assert await statuses(bounded, http, "root", 20) == [200] * 20


async def test_who_is_refused_is_kept_waiting_and_not_too_many_are(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-3
    monkeypatch.setattr(request_quotas, "HELD_S", 3600.0)
    monkeypatch.setattr(request_quotas, "HELD_MAX", 2)
    quotas = RequestQuotas(0.2)
    held = [asyncio.create_task(quotas.hold()) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await quotas.hold()
    assert not any(each.done() for each in held)
    for each in held:
        each.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    assert quotas._held == 0


async def test_lists_of_one_principal_are_made_a_few_at_a_time() -> None:  # SE-3
    quotas, eve, ann = RequestQuotas(), Principal("eve", frozenset({USER})), Principal("ann", frozenset({USER}))
    may_end, now, most = asyncio.Event(), 0, 0

    async def ask(caller: Principal, path: str) -> None:
        nonlocal now, most
        async with quotas.turn(caller, "10.0.0.7", "GET", f"/api/v1{path}"):
            now += 1
            most = max(most, now)
            await may_end.wait()
            now -= 1

    async with asyncio.TaskGroup() as asked:
        for _ in range(20):
            asked.create_task(ask(eve, "/cases"))
        await asyncio.sleep(0)
        assert now == request_quotas.LISTS_AT_ONCE
        for _ in range(2):
            asked.create_task(ask(ann, "/cases"))
            asked.create_task(ask(eve, "/cases/a-1"))
            asked.create_task(ask(eve, "/events"))
        await asyncio.sleep(0)
        assert now == request_quotas.LISTS_AT_ONCE + 6, "neither others, nor what is no list, wait for them"
        may_end.set()
    assert not len(quotas._lists)


async def test_files_of_one_principal_are_stored_some_at_a_time() -> None:  # SE-3
    quotas, may_end, now = RequestQuotas(), asyncio.Event(), Counter[str]()

    async def store(name: str) -> None:
        async with quotas.turn(Principal(name, frozenset({USER})), "10.0.0.7", "PUT", f"/api/v1/files/{'0' * 64}"):
            now[name] += 1
            await may_end.wait()

    async with asyncio.TaskGroup() as asked:
        for _ in range(request_quotas.FILES_AT_ONCE + 5):
            asked.create_task(store("eve"))
        asked.create_task(store("ann"))
        await asyncio.sleep(0)
        assert now == {"eve": request_quotas.FILES_AT_ONCE, "ann": 1}
        may_end.set()
    assert now["eve"] == request_quotas.FILES_AT_ONCE + 5


@pytest.mark.parametrize(("used_s", "at_once"), [(0.0, 8), (0.25, 6), (0.5, 4), (1.0, 1), (1.9, 1)])
async def test_who_has_taken_much_gets_its_lists_one_by_one(used_s: float, at_once: int) -> None:  # SE-3
    quotas, eve = RequestQuotas(), Principal("eve", frozenset({USER}))
    ends, now = [asyncio.Event() for _ in range(10)], list[int]()

    async def ask(number: int) -> None:
        async with quotas.turn(eve, "10.0.0.7", "GET", "/api/v1/cases"):
            now.append(number)
            await ends[number].wait()
            now.remove(number)

    quotas.take(eve, "10.0.0.7").reading.take(used_s)
    async with asyncio.TaskGroup() as asked:
        for number in range(len(ends)):
            asked.create_task(ask(number))
        await asyncio.sleep(0)
        assert now == list(range(at_once))
        quotas.take(eve, "10.0.0.7").busy.take(request_quotas.BUSY_BURST_S / 2)
        for number in range(len(ends)):
            ends[number].set()
            while number in now:
                await asyncio.sleep(0)
            assert len(now) <= max(1, at_once - number - 1), "no other comes until one is left"


async def test_a_pilot_is_not_counted_whatever_it_asks(bounded: HttpServer, http: aiohttp.ClientSession) -> None:
    for _ in range(20):  # SE-3
        headers = {"authorization": "Bearer site-pilots"}
        async with http.get(f"{bounded.url}/api/v1/openapi.json", headers=headers) as response:
            assert response.status == 200


async def test_a_stranger_does_not_make_the_server_look_dead(bounded: HttpServer, http: aiohttp.ClientSession) -> None:
    seen: list[int] = []  # SE-3
    while 429 not in seen:
        async with http.get(f"{bounded.url}/api/v1/openapi.json") as response:
            seen.append(response.status)
    for _ in range(10):
        async with http.get(f"{bounded.url}/api/v1/health") as response:
            assert response.status == 200


def test_whoever_sends_no_token_is_counted_by_its_address() -> None:  # SE-3
    quotas, nobody = RequestQuotas(0.2), Principal("", frozenset())
    quotas.take(nobody, "10.0.0.7")
    with pytest.raises(TooManyRequests, match="your address has sent more"):
        quotas.take(nobody, "10.0.0.7")
    quotas.take(nobody, "10.0.0.8")
    quotas.take(Principal("10.0.0.7", frozenset({USER})), "10.0.0.7")


def test_whoever_asks_from_ever_more_addresses_gives_nobody_a_full_bucket_who_keeps_asking() -> None:  # SE-3
    quotas, eve, nobody = RequestQuotas(0.2), Principal("eve", frozenset({USER})), Principal("", frozenset())
    quotas.take(eve, "10.0.0.7")
    for number in range(2 * KEYS_MAX):
        quotas.take(nobody, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        if not number % 1000:
            with pytest.raises(TooManyRequests):
                quotas.take(eve, "10.0.0.7")
    assert len(quotas._requests) == len(quotas._of_addresses) == KEYS_MAX


async def test_the_client_waits_as_it_is_told_to(bounded: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:  # SE-3
    told, ask = list[Any](), Transport.open

    @asynccontextmanager
    async def noting(transport: Transport, *what: Any, **more: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with ask(transport, *what, **more) as response:
                yield response
        except TooManyRequests as refused:
            told.append(refused.fields["retry_after_s"])
            raise

    monkeypatch.setattr(Transport, "open", noting)
    began = time.monotonic()
    async with Client(bounded.url, token="eve") as client:
        for _ in range(20):
            if not told:
                assert await client.cases() == []
    assert 1 <= len(told) <= 2 and time.monotonic() - began >= told[0], "it came again when it was told to, and got it"


def test_a_bucket_fills_up_and_holds_no_more_than_it_may() -> None:  # SE-3
    bucket = Bucket(rate=2, most=4, now=0)
    bucket.take(4)
    assert bucket.wait_s(1, now=0) == 0.5
    assert bucket.wait_s(1, now=1) == 0
    assert bucket.wait_s(5, now=100) == 0.5


async def test_the_time_that_a_request_keeps_the_loop_busy_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # SE-3
    """Processor time: on a busy machine much more passes meanwhile, in which the bucket would fill up again."""
    monkeypatch.setattr(request_quotas, "LOOP_SHARE", 0.001)
    monkeypatch.setattr(request_quotas, "BUSY_BURST_S", 0.2)
    quotas, eve = RequestQuotas(1000), Principal("eve", frozenset({USER}))

    async def busy() -> None:
        end = time.thread_time() + 0.15
        while time.thread_time() < end:
            pass
        await asyncio.sleep(0)

    for _ in range(2):
        await Timed(busy(), quotas.take(eve, "10.0.0.7"))
    with pytest.raises(TooManyRequests, match="kept this server busy") as found:
        quotas.take(eve, "10.0.0.7")
    told = found.value.fields["retry_after_s"]
    assert isinstance(told, int) and told >= 1


async def test_the_time_that_the_store_reads_for_a_request_is_counted_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # SE-3
    monkeypatch.setattr(request_quotas, "READING_SHARE", 0.000_001)
    monkeypatch.setattr(request_quotas, "BUSY_BURST_S", 0.000_001)
    monkeypatch.setattr(request_quotas, "LOOP_SHARE", 1_000)  # never empty
    quotas, eve, ann = RequestQuotas(1000), Principal("eve", frozenset({USER})), Principal("ann", frozenset({USER}))
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    try:
        await store.write([Put("case", f"c{number}", b'{"status":"running"}', 0) for number in range(500)])

        async def read() -> None:
            assert len(await asyncio.create_task(store.search("case", limit=500))) == 500

        buckets = quotas.take(eve, "10.0.0.7")
        told: list[float] = []
        before = tell_cost_of_reading(told.append)
        await Timed(read(), buckets)  # while it runs eve pays, and afterwards whoever did before
        assert not told
        await read()
        assert len(told) == 1 and told[0] > 0
        await asyncio.get_running_loop().create_task(read(), context=context_for_everybody())
        assert len(told) == 1
        tell_cost_of_reading(before)
        with pytest.raises(TooManyRequests, match="the requests of eve have kept this server reading"):
            quotas.take(eve, "10.0.0.7")
        quotas.take(ann, "10.0.0.7")
    finally:
        await store.close()


async def test_those_who_read_much_leave_threads_to_the_others(tmp_path: Path) -> None:  # SE-3
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    try:
        readers = store._ready().readers
        may_end, read, reading = threading.Event(), readers.read, list[str]()

        def slowly(statement: str, params: Sequence[Any]) -> Any:
            reading.append("slow" if "slow" in params else "quick")
            if "slow" in params:
                may_end.wait()
            return read(statement, params)

        readers.read = slowly  # type: ignore[method-assign]  # as if there were much to read

        async def search(payer: list[float], kind: str) -> None:
            tell_cost_of_reading(payer.append)
            await store.search(kind, limit=5)

        eve, mallory, trudy = list[float](), list[float](), list[float]()
        async with asyncio.TaskGroup() as asked:
            for each in (eve, mallory, trudy):
                for _ in range(6):
                    asked.create_task(search(each, "slow"))
            await until(lambda: len(reading) == 6, "each has two threads")
            await search([], "quick")
            assert reading == [*["slow"] * 6, "quick"]
            may_end.set()
        assert [len(each) for each in (eve, mallory, trudy)] == [6, 6, 6]
    finally:
        await store.close()


async def test_what_a_timed_request_raises_and_waits_for_arrives() -> None:  # SE-3
    bucket = RequestBuckets(Bucket(1, 1, time.monotonic()), Bucket(1, 1, time.monotonic()))

    async def failing() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            raise KeyError("told") from None

    async def run() -> None:
        await Timed(failing(), bucket)

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(KeyError, match="told"):
        await task


async def test_what_a_request_does_in_a_task_and_in_a_thread_is_paid() -> None:  # SE-3
    busy, reading = Bucket(0.0, 10.0, 0.0), Bucket(0.0, 10.0, 0.0)

    def work() -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass

    async def inner() -> None:
        work()
        await paid_thread(work)

    async def outer() -> None:
        await asyncio.create_task(paid_alike(inner()))

    await Timed(outer(), RequestBuckets(busy, reading))
    await asyncio.sleep(0)
    assert busy.filled(0.0) <= 0.998 and reading.filled(0.0) <= 0.998


async def test_a_read_that_nobody_waits_for_any_more_is_paid_and_keeps_its_turn(tmp_path: Path) -> None:  # SE-3
    store, paid = SqliteStore(tmp_path / "store.db"), list[float]()
    await store.open()
    readers = store._ready().readers
    may_end, begun, read = threading.Event(), threading.Event(), readers.read

    def slow(statement: str, params: Sequence[Any]) -> tuple[Any, float]:
        begun.set()
        may_end.wait()
        return read(statement, params)

    readers.read = slow  # type: ignore[method-assign]  # a read that lasts as long as the test wants
    tell_cost_of_reading(paid.append)
    reading = asyncio.create_task(store.search("job"))
    await until(begun.is_set)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert len(readers.turns) == 1 and not paid
    may_end.set()
    await until(lambda: paid)
    await until(lambda: not len(readers.turns))
    await store.close()


async def test_what_comes_in_parts_waits_when_its_principal_has_used_up_its_share(  # SE-3
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_quotas, "REST_S_MAX", 0.01)
    quotas, ann, eve = RequestQuotas(), Principal("ann", frozenset({USER})), Principal("eve", frozenset({USER}))
    sent = Counter[str]()

    def parts_of(caller: Principal) -> tuple[Receive, Send]:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"x", "more_body": True}

        async def send(message: Any) -> None:
            sent[caller.name] += 1

        return quotas.paced(caller, "10.0.0.7", "GET", "/api/v1/archives", receive, send)

    async def download(caller: Principal) -> None:
        _, send = parts_of(caller)
        for left in range(3, 0, -1):
            await send({"type": "http.response.body", "body": b"x", "more_body": left > 1})
            buckets[caller.name].take(0.01)

    async def upload(caller: Principal) -> None:
        receive, _ = parts_of(caller)
        await receive()
        sent[caller.name] += 1

    buckets = {each.name: quotas.take(each, "10.0.0.7").busy for each in (ann, eve)}
    buckets["eve"].take(BUSY_BURST_S + 600)
    async with asyncio.TaskGroup() as asked:
        slow = [asked.create_task(each) for each in (download(eve), download(eve), upload(eve))]
        await asyncio.gather(download(ann), upload(ann))
        assert sent == {"ann": 4, "eve": 2}, "the parts of another pass; of hers, one of each answer"
        buckets["eve"].take(-600)
        await asyncio.gather(*slow)
    assert sent == {"ann": 4, "eve": 7}


async def test_the_bytes_of_a_body_are_paid_unless_they_are_stored_as_they_come() -> None:  # SE-3
    quotas, eve = RequestQuotas(), Principal("eve", frozenset({USER}))

    async def body() -> Any:
        return {"type": "http.request", "body": bytes(10_000_000), "more_body": False}

    async def no_answer(message: Any) -> None: ...

    for method, path, paid_s in (("PUT", f"/api/v1/files/{'a' * 64}", 0.0), ("POST", "/api/v1/cases", 0.6)):
        reading = quotas.take(eve, "10.0.0.7").reading
        now = time.monotonic()
        before = reading.filled(now)
        receive, _ = quotas.paced(eve, "10.0.0.7", method, path, body, no_answer)
        await receive()
        assert before - reading.filled(now) == pytest.approx(paid_s / BUSY_BURST_S, abs=0.01)
