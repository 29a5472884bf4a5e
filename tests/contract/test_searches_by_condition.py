"""A search by a condition gives on every store what the condition itself says of every document."""  # JS-6

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec
from mendflow.core.model.values import Value
from mendflow.core.model.views import JobQuery
from mendflow.core.query.search import Search
from mendflow.core.query.search_fields import JOBS
from mendflow.services.base import paging
from mendflow.services.base.paging import SearchPage, SearchQuery, find, parse_query
from mendflow.stores.contract import Delete, Put, Store, StoredDocument, WriteDone
from tests.contract.searches import NOW, conditions, data_of, jobs
from tests.examples import examples

_decode = msgspec.json.Decoder(Job).decode
_decode_data = msgspec.json.Decoder(dict[str, Value]).decode


def asking(where: str, *, order: str = "", limit: int = 100, offset: int = 0, after: str = "") -> SearchQuery:
    query = JobQuery(where=where, order=order, limit=limit, offset=offset, after=after)
    return parse_query(JOBS, query, now=NOW, usual="-created", fields={})


async def written(store: Store, made: Sequence[Job]) -> None:
    before = [Delete("job", each.id, each.version) async for each in store.scan("job")]
    results = await store.write([*before, *(Put("job", job.id, msgspec.json.encode(job), 0) for job in made)])
    assert all(isinstance(each, WriteDone) for each in results)
    await store.refresh()


class StoredBodies:
    """Documents as they are stored."""

    def read(self, document: StoredDocument) -> bytes:
        return document.body

    def data_of(self, found: bytes) -> Mapping[str, Value]:
        return _decode_data(found)


STORED = StoredBodies()


async def asked(store: Store, what: SearchQuery) -> SearchPage[bytes]:
    return await find(store, what, STORED)


def ids(page: SearchPage[bytes]) -> list[str]:
    return [_decode(body).id for body in page.found]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=jobs(), where=conditions)
async def test_the_answer_is_what_the_condition_says_of_every_document(
    store: Store, made: list[Job], where: str
) -> None:
    await written(store, made)
    plain = Search(JOBS, where, NOW)
    assert sorted(ids(await asked(store, asking(where)))) == sorted(j.id for j in made if plain.holds(data_of(j)))


MADE = [
    Job(
        id=JobId(f"c-1/{number}"),
        case=CaseId("c-1"),
        spec=JobSpec(item=ItemId(f"a[{number}]"), command="true", owner="ann" if number % 2 else "bob"),
        name="a",
        created_at=NOW + number // 3,
        fence=number % 4,
    )
    for number in range(1, 26)
]


@pytest.mark.parametrize("order", ["", "created", "-attempts", "owner", "runtime", "id"])
async def test_pages_by_a_cursor_give_everything_once_and_in_order(store: Store, order: str) -> None:
    await written(store, MADE)
    whole = ids(await asked(store, asking("attempts > 0", order=order)))
    assert len(whole) == len(set(whole)) == sum(job.fence > 0 for job in MADE)
    place, turned = "", list[str]()
    while True:
        page = await asked(store, asking("attempts > 0", order=order, limit=4, after=place))
        turned += ids(page)
        place = page.next
        if not place:
            break
    assert turned == whole


async def test_a_search_that_looks_at_too_much_says_so_and_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "EXAMINED_MAX", 10)
    await written(store, MADE)
    found, place, looks = list[str](), "", 0
    while True:
        page = await asked(store, asking("item.endsWith('[25]') || item.endsWith('[1]')", after=place))
        found, place, looks = found + ids(page), page.next, looks + 1
        assert page.looked_at <= 10
        if not place:
            break
    assert found == ["c-1/25", "c-1/1"] and looks == 3


@pytest.mark.parametrize("order", ["", "created", "owner", "-id"])
@pytest.mark.parametrize("offset", [1, 7, 12, 18, 40])
async def test_what_a_cut_page_has_not_skipped_is_skipped_by_the_next(
    store: Store, order: str, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await written(store, MADE)
    whole = ids(await asked(store, asking("attempts > 0", order=order)))
    monkeypatch.setattr(paging, "EXAMINED_MAX", 5)
    page = await asked(store, asking("attempts > 0", order=order, offset=offset))
    found = ids(page)
    while page.next:
        page = await asked(store, asking("attempts > 0", order=order, after=page.next))
        found += ids(page)
    assert found == whole[offset:]


async def test_counts_go_by_what_a_name_means(store: Store) -> None:
    await written(store, MADE)
    counts, place, _ = await paging.count(store, asking("attempts < 2"), "owner", STORED)
    assert not place
    low = [job for job in MADE if job.fence < 2]
    assert counts == {"ann": sum(j.spec.owner == "ann" for j in low), "bob": sum(j.spec.owner == "bob" for j in low)}
    assert (await paging.count(store, asking("attempts > 99"), "", STORED))[0] == {"": 0}


@pytest.mark.parametrize("after", ["x", "!!", "W10", "WyJjcmVhdGVkIiwxLCJhIl0", "WyItY3JlYXRlZCIsMSwiYSIsLTFd"])
async def test_a_place_that_is_none_is_refused(store: Store, after: str) -> None:
    with pytest.raises(RequestError, match="place to continue from"):
        await asked(store, asking("attempts > 0", after=after))


async def test_an_order_that_no_store_keeps_is_refused() -> None:
    with pytest.raises(RequestError, match="there is no order by 'host'; known are id, case"):
        asking("", order="-host")
