"""The Elasticsearch store's own: addresses, marks, tokens, history, and how it comes to terms with an older self."""

import asyncio
import base64
import json
import math
import random
import re
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.stores.contract import Append, Delete, FieldCondition, Put, WriteConflict, WriteDone
from mendflow.stores.elastic.address import parse
from mendflow.stores.elastic.fields import KNOWN, index_terms, sort_key
from mendflow.stores.elastic.history import DAY_MS, TidyResult, month_of
from mendflow.stores.elastic.http import ClusterAnswer, ClusterClient
from mendflow.stores.elastic.indices import NUMBER
from mendflow.stores.elastic.items import IndexedItem, ItemHistory
from mendflow.stores.elastic.store import ElasticStore
from mendflow.stores.elastic.write_attempts import WriteAttempt
from mendflow.stores.fields import rank_of
from tests.contract.backends import name_of
from tests.contract.documents import body, done, outcomes, put
from tests.servers import osmem

SERVICES = Path(__file__).parents[2] / "src" / "mendflow" / "services"
AT = (1 << 40) + 7  # a version as the index gives them


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"{osmem.address()}/{name_of(tmp_path)}"


@pytest.fixture
async def elastic(place: str) -> AsyncIterator[ElasticStore]:
    store = ElasticStore.from_url(f"elasticsearch://{place}")
    await store.open()
    yield store
    await store.close()


def asked(place: str, method: str, path: str, body: Value = None) -> dict[str, Value]:
    """Ask the server itself, past the store; `path` is behind the prefix."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{place}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        found: dict[str, Value] = json.load(answer)
        return found


# Addresses


def test_an_address_names_hosts_a_prefix_and_who_we_are() -> None:
    address = parse("elasticsearch+https://us%40er:p%3Ass@one:9201,[::1],two/our?ca=/ca.pem&copies=3&patience=2.5")
    assert address.hosts == ("https://one:9201", "https://[::1]:9200", "https://two:9200")
    assert (address.prefix, address.user, address.password) == ("our", "us@er", "p:ss")
    assert (address.ca, address.copies, address.patience_s) == ("/ca.pem", 3, 2.5)
    assert parse("elasticsearch://host").prefix == "mendflow"


@pytest.mark.parametrize(
    "url",
    [
        "http://host:9200",
        "elasticsearch://user:hush@/x",
        "elasticsearch://user:hush@host:port/x",
        "elasticsearch://user:hush@host/Upper",
        "elasticsearch://user:hush@host/x?hosts=2",
        "elasticsearch://user:hush@host/x?patience=long",
    ],
)
def test_a_wrong_address_is_refused_in_a_sentence_without_secrets(url: str) -> None:
    with pytest.raises(RequestError) as told:
        parse(url)
    assert "hush" not in str(told.value) and len(told.value.message) > 60


async def test_secrets_are_in_no_text() -> None:
    store = ElasticStore.from_url("elasticsearch://user:hush@127.0.0.1:1/x?patience=0&api_key=quiet")
    with pytest.raises(StoreUnavailable) as told:
        await store.open()
    for text in (told.value.message, repr(told.value.fields), repr(store._address), str(store._address)):
        assert "hush" not in text and "quiet" not in text and "127.0.0.1:1" in text


# What is to be thought of what stands there


def judged(seen: IndexedItem | None, *, expected: int = AT, doubt: int | None = None) -> WriteAttempt:
    attempt = WriteAttempt(Put("job", "a", b"1", expected), "mine", 0)
    attempt.doubt = doubt
    assert attempt.judge(seen)
    return attempt


def seen(version: int, mark: str, past: ItemHistory, **more: Value) -> IndexedItem:
    return IndexedItem("job:a", version, {"mark": mark, "past": past, **more})


def test_who_is_refused_and_finds_another_was_too_late() -> None:
    assert judged(seen(AT + 3, "other", [(AT, "")])).outcome == WriteConflict("job", "a", AT, AT + 3)


def test_who_finds_its_own_mark_writes_it_once_more_on_top() -> None:
    """What can be read may be on one node only; what is acknowledged is on all."""
    attempt = judged(seen(AT + 3, "mine", [(AT, "")]), doubt=AT)
    assert attempt.outcome is None and attempt.at == AT + 3


def test_who_finds_its_mark_among_the_past_was_written_and_overtaken() -> None:
    assert judged(seen(AT + 9, "other", [(AT + 3, "mine"), (AT, "")]), doubt=AT).outcome == WriteDone(AT + 3)


def test_in_doubt_nothing_is_said_if_a_write_between_is_unknown() -> None:
    attempt = WriteAttempt(Put("job", "a", b"1", AT), "mine", 0)
    attempt.mark_doubtful()
    assert not attempt.judge(seen(AT + 9, "other", [(AT + 3, "")]))
    assert not attempt.judge(seen(AT + 9, "other", [(AT + 3, ""), (AT, "x")]))
    assert attempt.judge(seen(AT + 9, "other", [(AT + 3, "another"), (AT, "")]))
    assert attempt.outcome == WriteConflict("job", "a", AT, AT + 9)


def test_a_tombstone_is_written_over_by_who_makes_the_document_anew() -> None:
    attempt = judged(seen(AT, "other", [], gone=5), expected=0)
    assert attempt.outcome is None and attempt.at == AT


# Fields


NUMBERS = [0, -0.0, 1, -1, 0.5, -0.5, 1e-300, -1e-300, 1e300, 2**53, 2**53 + 1, 2**63, 2**63 + 1, -(2**53) - 1, 10**400]


def test_keys_sort_as_the_values_do() -> None:
    chance = random.Random(3)
    values: list[Value] = [*NUMBERS, "", "a", "B", "ß", "a\x00", "🌊", "～", True, False, None, [1], {"a": 1}]
    values += [chance.randrange(-(10**18), 10**18) for _ in range(200)] + [chance.gauss(0, 1e9) for _ in range(200)]
    for one in values:
        for other in values:
            first, second = sort_key(one) or "", sort_key(other) or ""
            if abs(_size(one)) < 1e300 or abs(_size(other)) < 1e300:
                assert (first < second) == (rank_of(one) < rank_of(other)), (one, other)


def _size(value: Value) -> float:
    return math.inf if isinstance(value, int) and value > 10**300 else float(value) if isinstance(value, float) else 0.0


def test_a_document_of_any_size_has_a_bounded_number_of_tokens_and_those_near_its_root() -> None:
    data: dict[str, Value] = {"deep": {str(n): n for n in range(5_000)}, "state": "here", "long": "x" * 5_000}
    found = index_terms(data)
    assert len(found["tokens"]) <= 1_000 and "state=there" in found["tokens"]
    assert max(len(token.encode()) for token in found["tokens"]) < 2_000


async def test_names_of_any_length_can_be_stored(elastic: ElasticStore) -> None:
    value: Value = {"n" * 40_000: 1, "outer": {"m" * 600: {"inner": 2}}, "state": "t" * 40_000, "case": "c" * 40_000}
    await put(elastic, "a", body(value))
    await elastic.refresh()
    assert await elastic.count("job", [FieldCondition("state", "t" * 40_000)], by="case") == {"c" * 40_000: 1}
    assert await elastic.count("job", [FieldCondition("state", "t" * 39_999)]) == {"": 0}


async def test_an_offset_counts_from_the_document_that_was_last(elastic: ElasticStore) -> None:
    await elastic.write([Put("job", str(n), body({"at": n}), 0) for n in range(9)])
    await elastic.refresh()
    (first,) = await elastic.search("job", order_by="at", limit=1)
    for order_by in ("at", "other", ""):
        found = await elastic.search("job", order_by=order_by, limit=2, offset=3, after=first)
        assert [document.id for document in found] == ["4", "5"]


def test_every_order_that_the_services_ask_for_is_one_that_the_cluster_knows() -> None:
    """Another would work, and read every document for it."""
    asked_for = {
        field
        for path in SERVICES.rglob("*.py")
        for field in re.findall(r"\b(?:order_by|by)=\"([a-z_.]+)\"", path.read_text())
    }
    missing = sorted(asked_for - set(KNOWN))
    assert asked_for and not missing, f"add these to KNOWN in stores/elastic/fields.py: {missing}"


async def test_documents_of_before_a_field_was_known_are_counted_by_it(
    elastic: ElasticStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("mendflow.stores.elastic.fields.KNOWN", tuple(name for name in KNOWN if name != "digest"))
        await elastic.write([Put("case", f"old{n}", body({"flow": "f", "digest": n}), 0) for n in ("a", "b")])
    await elastic.write([Put("case", "new", body({"flow": "f", "digest": "a"}), 0)])
    await elastic.refresh()
    assert await elastic.count("case", [FieldCondition("flow", "f")], by="digest") == {"a": 2, "b": 1}
    await elastic.write([Put("case", "none", body({"flow": "f"}), 0)])
    await elastic.refresh()
    assert await elastic.count("case", by="digest") == {"": 1, "a": 2, "b": 1}


# Ids


async def test_an_id_that_is_too_long_is_refused_and_is_nowhere(elastic: ElasticStore) -> None:
    for write in (Put("job", "x" * 600, b"1", 0), Append("s" * 600, [b"x"], 0), Put("a:b", "c", b"1", 0)):
        with pytest.raises(RequestError) as told:
            await elastic.write([Put("job", "good", b"1", 0), write])
        assert told.value.code == "bad-document"
    assert await elastic.get("job", "good") is None and await elastic.get("job", "x" * 600) is None
    assert await elastic.length("s" * 600) == 0 and await elastic.read("s" * 600) == []


# Ahead and behind


async def test_an_index_of_a_newer_mapping_is_refused_and_an_older_one_brought_forward(
    elastic: ElasticStore, place: str
) -> None:
    await put(elastic, "a")
    again = ElasticStore.from_url(f"elasticsearch://{place}")
    asked(place, "PUT", "-store/_mapping", {"_meta": {"number": 99}})
    with pytest.raises(StoreUnavailable, match="newer"):
        await again.open()
    asked(place, "PUT", "-store/_mapping", {"_meta": {"number": 0}})
    await again.open()
    assert await again.get("job", "a") is not None
    (index,) = asked(place, "GET", "-store/_mapping").values()
    assert index["mappings"]["_meta"]["number"] == NUMBER
    await again.close()


async def test_an_index_that_was_deleted_does_not_come_back_by_itself(elastic: ElasticStore, place: str) -> None:
    await put(elastic, "a")
    asked(place, "DELETE", "-store-1")
    for ask in (elastic.write([Put("job", "b", b"1", 0)]), elastic.get("job", "a"), elastic.search("job")):
        with pytest.raises(StoreUnavailable):
            await ask


# History


async def test_old_entries_move_to_the_index_of_their_month_and_are_read_and_fenced_as_before(
    elastic: ElasticStore, place: str
) -> None:
    await elastic.write([Append("s", [b"a", b"b"], 0), Append("s", [b"c"], 2), Append("t", [b"\xff"], 0)])
    now = int(time.time() * 1000)
    await elastic.refresh()
    assert await elastic.tidy(now) == TidyResult(0, 0)
    assert await elastic.tidy(now + 31 * DAY_MS) == TidyResult(3, 0)
    await elastic.refresh()
    assert await elastic.tidy(now + 31 * DAY_MS) == TidyResult(0, 0)
    other = ElasticStore.from_url(f"elasticsearch://{place}")
    await other.open()
    for store in (elastic, other):
        assert await store.read("s") == [b"a", b"b", b"c"]
        assert await store.read("s", 1, 1) == [b"b"] and await store.read("t") == [b"\xff"]
        assert await store.write([Append("s", [b"x"], 2)]) == [WriteConflict("stream", "s", 2, 3)]
    assert await other.write([Append("s", [b"d"], 3)]) == [WriteDone(4)]
    assert await elastic.read("s") == [b"a", b"b", b"c", b"d"]
    await other.close()
    asked(place, "DELETE", f"-history-{month_of(now)}")
    with pytest.raises(StoreUnavailable, match="history"):
        await elastic.read("s")


async def test_two_who_tidy_at_once_lose_nothing(elastic: ElasticStore, place: str) -> None:
    other = ElasticStore.from_url(f"elasticsearch://{place}")
    await other.open()
    for number in range(450):
        await elastic.write([Append("s", [b"%d" % number], number)])
    await elastic.refresh()
    later = int(time.time() * 1000) + 40 * DAY_MS
    tidied = await asyncio.gather(elastic.tidy(later), other.tidy(later))
    assert sum(each.moved for each in tidied) == 450
    assert await other.read("s") == [b"%d" % number for number in range(450)]
    await other.close()


async def test_tombstones_go_after_a_day_and_what_was_deleted_stays_so(elastic: ElasticStore) -> None:
    version = await put(elastic, "a")
    await done(elastic, Delete("job", "a", version))
    await elastic.refresh()
    now = int(time.time() * 1000)
    assert await elastic.tidy(now) == TidyResult(0, 0)
    assert await elastic.tidy(now + 2 * DAY_MS) == TidyResult(0, 1)
    assert await elastic.get("job", "a") is None
    assert await elastic.write([Put("job", "a", b"2", version)]) == [WriteConflict("job", "a", version, 0)]
    assert await put(elastic, "a", b"3") > version


# Several of us


async def test_a_thousand_documents_that_four_want_have_one_winner_each(elastic: ElasticStore, place: str) -> None:
    """JS-1: the acquisition of the paper, with nobody to arbitrate but the versions."""
    stores = [ElasticStore.from_url(f"elasticsearch://{place}") for _ in range(2)]
    for store in stores:
        await store.open()
    made = await elastic.write([Put("job", str(n), body({"state": "available"}), 0) for n in range(1_000)])
    versions = [each.version for each in made if isinstance(each, WriteDone)]
    assert len(versions) == 1_000

    async def acquire(worker: int) -> list[int]:
        won: list[int] = []
        order = random.Random(worker).sample(range(1_000), 1_000)
        for start in range(0, 1_000, 50):
            some = order[start : start + 50]
            writes = [Put("job", str(n), body({"state": "running", "by": worker}), versions[n]) for n in some]
            result = outcomes(await stores[worker % 2].write(writes))
            won += [n for n, outcome in zip(some, result, strict=True) if outcome == "WriteDone"]
        return won

    won = await asyncio.gather(*map(acquire, range(4)))
    assert sorted(n for each in won for n in each) == list(range(1_000))
    for worker, numbers in enumerate(won):
        found = await elastic.get_many("job", [str(n) for n in numbers])
        assert {json.loads(document.body)["by"] for document in found} <= {worker}
    for store in stores:
        await store.close()


# The line


class Door:
    """A server that says what it is told to say, and remembers what it was told."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.heard: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.heard.append(request.headers.get("Authorization", ""))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.json_response({"error": {"type": "told", "reason": "so"}} if status >= 300 else {}, status=status)


@asynccontextmanager
async def door(*statuses: int) -> AsyncIterator[tuple[Door, str]]:
    there = Door(*statuses)
    async with RawTestServer(there.answer, host="127.0.0.1") as server:
        yield there, f"127.0.0.1:{server.port}"


async def ask(url: str) -> ClusterAnswer:
    http = ClusterClient(parse(url))
    http.open()
    try:
        return await http.ask("GET", "/")
    finally:
        await http.close()


@pytest.mark.parametrize(
    ("login", "options", "header"),
    [
        ("", "", ""),
        ("me:p%40ss@", "", f"Basic {base64.b64encode(b'me:p@ss').decode()}"),
        ("me:hush@", "?api_key=a2V5", "ApiKey a2V5"),
    ],
)
async def test_who_we_are_is_said_with_every_request(login: str, options: str, header: str) -> None:
    async with door() as (there, address):
        await ask(f"elasticsearch://{login}{address}/x{options}")
        assert there.heard == [header]


async def test_what_passes_is_tried_again_and_may_have_happened_unless_it_was_turned_away() -> None:
    for statuses, uncertain in (((), False), ((429, 429), False), ((503,), True), ((429, 504, 502), True)):
        async with door(*statuses) as (there, address):
            answer = await ask(f"elasticsearch://{address}/x")
            assert answer.uncertain is uncertain and len(there.heard) == len(statuses) + 1


async def test_when_one_host_is_away_the_next_is_asked() -> None:
    async with door() as (_, address):
        answer = await ask(f"elasticsearch://127.0.0.1:1,{address}/x")
        assert answer.status == 200 and not answer.uncertain, "a door that is closed has let nothing in"


@pytest.mark.parametrize(("status", "advice"), [(401, "user and password"), (403, "permissions"), (413, "larger")])
async def test_what_does_not_pass_is_told_at_once_with_what_to_do(status: int, advice: str) -> None:
    async with door(status) as (there, address):
        with pytest.raises(StoreUnavailable, match=advice) as told:
            await ask(f"elasticsearch://me:hush@{address}/x")
        assert len(there.heard) == 1 and "hush" not in told.value.message


async def test_certificates_that_cannot_be_read_are_named() -> None:
    with pytest.raises(StoreUnavailable, match="no-such-file"):
        await ElasticStore.from_url("elasticsearch+https://127.0.0.1:1/x?ca=/no-such-file").open()
