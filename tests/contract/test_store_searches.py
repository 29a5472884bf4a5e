"""What every store finds: scans that see everything, and searches that may lag, with the same answers everywhere."""

import json
from typing import Any

import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.model.values import Value
from mendflow.stores.contract import Delete, FieldCondition, Put, Store, StoredDocument
from tests.contract.documents import body, done, ids, put


async def test_a_scan_gives_every_document_of_a_kind_by_id(store: Store) -> None:
    await store.write([Put("job", f"c/{n:05}", body({"n": n}), 0) for n in range(12_345)])
    await store.write([Put("case", "c", b"{}", 0), Put("job", "d/1", b"{}", 0)])
    found = [document async for document in store.scan("job", "c/")]
    assert ids(found) == [f"c/{n:05}" for n in range(12_345)]
    assert json.loads(found[777].body) == {"n": 777}
    assert len([document async for document in store.scan("job")]) == 12_346
    assert [document async for document in store.scan("nothing")] == []


async def test_a_scan_sees_every_write_that_returned_before(store: Store) -> None:
    first, second = await put(store, "a"), await put(store, "b")
    await done(store, Delete("job", "a", first))
    version = await put(store, "b", b"2", second)
    assert [document async for document in store.scan("job")] == [StoredDocument("job", "b", version, b"2")]


@pytest.fixture
async def zoo(store: Store) -> Store:
    animals: list[dict[str, Value]] = [
        {"name": "ant", "state": "wild", "legs": 6, "size": {"kg": 0.001}, "tame": False},
        {"name": "bear", "state": "wild", "legs": 4, "size": {"kg": 300}, "case": "c1"},
        {"name": "cat", "state": "home", "legs": 4, "size": {"kg": 4.5}, "tame": True, "case": "c1"},
        {"name": "dove", "state": "home", "legs": 2, "size": {"kg": 0.4}, "tame": True, "case": "c2"},
        {"name": "eel", "legs": 0, "size": {"kg": "long"}, "state": None},
    ]
    await store.write([Put("animal", str(animal["name"]), body(animal), 0) for animal in animals])
    await store.refresh()
    return store


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ([], "ant bear cat dove eel"),
        ([FieldCondition("state", "wild")], "ant bear"),
        ([FieldCondition("state", "wild", "ne")], "cat dove eel"),
        ([FieldCondition("state", None)], "eel"),
        ([FieldCondition("case", None)], "ant eel"),
        ([FieldCondition("case", None, "ne")], "bear cat dove"),
        ([FieldCondition("legs", 4)], "bear cat"),
        ([FieldCondition("legs", 4.0)], "bear cat"),
        ([FieldCondition("legs", "4")], ""),
        ([FieldCondition("legs", 4, "lt")], "dove eel"),
        ([FieldCondition("legs", 4, "le")], "bear cat dove eel"),
        ([FieldCondition("legs", 4, "gt")], "ant"),
        ([FieldCondition("legs", 4, "ge")], "ant bear cat"),
        ([FieldCondition("size.kg", 1, "lt")], "ant dove"),
        ([FieldCondition("size.kg", "a", "gt")], "eel"),
        ([FieldCondition("name", "bzz", "gt")], "cat dove eel"),
        ([FieldCondition("tame", True)], "cat dove"),
        ([FieldCondition("tame", False)], "ant"),
        ([FieldCondition("legs", [0, 6], "in")], "ant eel"),
        ([FieldCondition("state", ["home", None], "in")], "cat dove eel"),
        ([FieldCondition("state", [], "in")], ""),
        ([FieldCondition("state", "home"), FieldCondition("case", "c1")], "cat"),
        ([FieldCondition("no.such.field", 1)], ""),
    ],
)
async def test_a_search_finds_what_fulfils_every_condition(
    zoo: Store, where: list[FieldCondition], found: str
) -> None:  # JS-6
    assert ids(await zoo.search("animal", where)) == found.split()
    assert await zoo.count("animal", where) == {"": len(found.split())}


async def test_a_search_is_ordered_by_a_field_and_then_by_id_shorter_ids_first(zoo: Store) -> None:
    by_legs = ids(await zoo.search("animal", order_by="legs"))
    assert by_legs == ["eel", "dove", "cat", "bear", "ant"]
    assert ids(await zoo.search("animal", order_by="legs", descending=True)) == by_legs[::-1]
    assert ids(await zoo.search("animal", order_by="case")) == ["ant", "eel", "cat", "bear", "dove"]
    assert ids(await zoo.search("animal", descending=True)) == ["eel", "dove", "cat", "bear", "ant"]


async def test_pages_of_a_search_neither_overlap_nor_leave_out(zoo: Store) -> None:
    pages = [ids(await zoo.search("animal", order_by="legs", limit=2, offset=at)) for at in (0, 2, 4, 6)]
    assert pages == [["eel", "dove"], ["cat", "bear"], ["ant"], []]


async def test_documents_are_counted_by_the_value_of_a_field(zoo: Store) -> None:
    assert await zoo.count("animal", by="state") == {"wild": 2, "home": 2, "": 1}
    assert await zoo.count("animal", [FieldCondition("case", "c1")], by="state") == {"wild": 1, "home": 1}
    assert await zoo.count("animal", by="legs") == {"0": 1, "2": 1, "4": 2, "6": 1}
    assert await zoo.count("animal", by="tame") == {"": 2, "true": 2, "false": 1}
    assert await zoo.count("nothing", by="state") == {}


@pytest.mark.parametrize("field", ["", "a b", "a'b", 'a"b', "a.", ".a", "a..b", "a;--", "$", "ä", "a\n"])
async def test_a_field_that_is_not_a_plain_path_is_refused(store: Store, field: str) -> None:
    with pytest.raises(RequestError, match="is not a field path"):
        await store.search("job", [FieldCondition(field, 1)])
    if field:
        with pytest.raises(RequestError, match="is not a field path"):
            await store.search("job", order_by=field)
        with pytest.raises(RequestError, match="is not a field path"):
            await store.count("job", by=field)


@pytest.mark.parametrize(
    "where",
    [
        FieldCondition("a", 1, "like"),
        FieldCondition("a", {"b": 1}),
        FieldCondition("a", 1, "in"),
        FieldCondition("a", None, "lt"),
    ],
)
async def test_a_comparison_that_cannot_be_meant_is_refused(store: Store, where: FieldCondition) -> None:
    with pytest.raises(RequestError):
        await store.search("job", [where])


# Deep paging


KEYS: list[Value] = [None, 3, 3, 10, -1.5, "a", "B", "ß", "a", None]


@pytest.fixture
async def crowd(store: Store) -> Store:
    """Documents whose field is null, a number or a text, with many of each value; some have no such field. Most say
    when they were made, forty at a time."""
    puts = []
    for n in range(2_500):
        key = KEYS[n % len(KEYS)]
        value: dict[str, Value] = {"n": n} if n % 50 == 0 else {"n": n, "at": key}
        made: dict[str, Value] = {} if n % 31 == 0 else {"created_at": 1_000 + n // 40}
        puts.append(Put("job", f"c{n % 7}/{n}", body({**value, **made}), 0))
    await store.write(puts)
    await store.refresh()
    return store


async def pages(store: Store, order_by: str, descending: bool, size: int) -> list[StoredDocument]:
    found: list[StoredDocument] = []
    while page := await store.search(
        "job", order_by=order_by, descending=descending, limit=size, after=found[-1] if found else None
    ):
        assert len(page) <= size
        found += page
    return found


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("order_by", ["", "n", "at", "created_at"])
async def test_pages_one_after_another_give_everything_once_in_order(
    crowd: Store, order_by: str, descending: bool
) -> None:  # JS-6
    found = await pages(crowd, order_by, descending, 97)
    assert found == await crowd.search("job", order_by=order_by, descending=descending, limit=10_000)
    assert len(found) == 2_500
    if order_by == "n":
        numbers = [json.loads(document.body)["n"] for document in found]
        assert numbers == sorted(range(2_500), reverse=descending)


async def test_the_newest_come_first_and_last_what_does_not_say_when_it_was_made(crowd: Store) -> None:
    def order(n: int) -> tuple[int, int, str]:
        return (0 if n % 31 == 0 else 1_000 + n // 40), len(f"c{n % 7}/{n}"), f"c{n % 7}/{n}"

    wanted = sorted(range(2_500), key=order, reverse=True)
    found = await pages(crowd, "created_at", True, 97)
    assert [json.loads(document.body)["n"] for document in found] == wanted
    few = await crowd.search("job", [FieldCondition("n", 62, "le")], order_by="created_at", descending=True, limit=500)
    assert [json.loads(document.body)["n"] for document in few] == [n for n in wanted if n <= 62]


PROJECTS = (None, "red", "blue", "green")


def _case_of(n: int) -> dict[str, Any]:
    """Many begin at the same instant, some do not say when; of some nobody knows the project."""
    began = {} if n % 29 == 0 else {"started_at": 1_000 + n // 20}
    project = PROJECTS[n % 4]
    return {"n": n, **began, **({"project": project} if project else {}), **({"void": True} if n % 13 == 0 else {})}


@pytest.mark.parametrize(
    "condition",
    [
        None,
        FieldCondition("project", "red"),
        FieldCondition("project", None),
        FieldCondition("project", ["red"], "in"),
        FieldCondition("project", ["blue", None], "in"),
        FieldCondition("project", ["red", "blue", "green", "none"], "in"),
        FieldCondition("project", [], "in"),
        FieldCondition("project", "red", "ne"),
    ],
)
async def test_the_newest_cases_of_projects_come_page_by_page(store: Store, condition: FieldCondition | None) -> None:
    cases = {f"c-{n}": _case_of(n) for n in range(400)}
    await store.write([Put("case", id, body(case), 0) for id, case in cases.items()])
    await store.refresh()
    where = [FieldCondition("void", None), *([condition] if condition is not None else [])]
    wanted = [id for id, case in cases.items() if all(_holds(each, case) for each in where)]
    wanted.sort(key=lambda id: (cases[id].get("started_at", 0), len(id), id), reverse=True)
    found: list[StoredDocument] = []
    while page := await store.search(
        "case", where, order_by="started_at", descending=True, limit=17, after=found[-1] if found else None
    ):
        found += page
    assert [each.id for each in found] == wanted
    some = await store.search("case", where, order_by="started_at", descending=True, limit=9, offset=5)
    assert [each.id for each in some] == wanted[5:14]


def _holds(condition: FieldCondition, case: dict[str, Any]) -> bool:
    value = case.get(condition.field)
    if condition.op == "in":
        return bool(value in condition.value)
    return bool(value == condition.value) == (condition.op == "eq")


async def test_what_is_written_between_pages_neither_hides_nor_repeats_the_rest(crowd: Store) -> None:
    first = await crowd.search("job", order_by="n", limit=1_000)
    await done(crowd, Delete("job", first[-1].id, first[-1].version))
    await put(crowd, "new/0", body({"n": -5}))
    await put(crowd, "new/1", body({"n": 1_700.5}))
    await crowd.refresh()
    rest: list[StoredDocument] = []
    while page := await crowd.search("job", order_by="n", limit=400, after=(rest or first)[-1]):
        rest += page
    numbers = [json.loads(document.body)["n"] for document in rest]
    assert numbers == sorted([*range(1_000, 2_500), 1_700.5])


async def test_pages_of_a_search_with_conditions_give_what_fulfils_them(crowd: Store) -> None:
    where = [FieldCondition("n", 100, "ge"), FieldCondition("at", "a")]
    found: list[StoredDocument] = []
    while page := await crowd.search("job", where, order_by="n", limit=50, after=found[-1] if found else None):
        found += page
    wanted = [n for n in range(100, 2_500) if n % 50 and KEYS[n % len(KEYS)] == "a"]
    assert [json.loads(document.body)["n"] for document in found] == wanted


async def test_cases_are_found_by_those_that_they_stand_for(store: Store) -> None:
    long = "x" * 300
    stands: list[tuple[str, Value]] = [("b", "a"), ("c", "a"), ("d", "b"), ("e", None), ("f", long), ("g", 1)]
    for id, value in stands:
        status = "cancelled" if id == "c" else "failed"
        await done(store, Put("case", id, body({"stands_for": value, "status": status}), 0))
    await done(store, Put("case", "h", body({"stands_for": None, "inputs": {"stands_for": "a"}}), 0))
    await store.write([Put("case", "i", b'{"stands_for":"b","status":"failed"}', 0)])
    await store.write([Put("job", "j", body({"stands_for": "a"}), 0)])
    await store.refresh()

    async def those(value: Value, op: str = "eq", *more: FieldCondition, kind: str = "case") -> str:
        return "".join(ids(await store.search(kind, [FieldCondition("stands_for", value, op), *more])))

    assert [await those("a"), await those("b"), await those("e"), await those(long)] == ["bc", "di", "", "f"]
    assert await those(["a", "b", "nothing"], "in") == "bcdi"
    assert await those(["a", "b"], "in", FieldCondition("status", "cancelled", "ne")) == "bdi"
    assert [await those([], "in"), await those(["", "A"], "in")] == ["", ""]
    assert [await those(["a", long], "in"), await those(["a", None], "in"), await those(None)] == ["bcf", "bceh", "eh"]
    assert [await those(1), await those("1"), await those("a", "ne")] == ["g", "", "defghi"]
    assert await those("a", kind="job") == "j"
    pages, last = list[str](), None
    while page := await store.search("case", [FieldCondition("stands_for", ["a", "b"], "in")], limit=2, after=last):
        pages.append("".join(ids(page)))
        last = page[-1]
    assert pages == ["bc", "di"]
    version = (await store.get_many("case", ["b"]))[0].version
    await done(store, Put("case", "b", body({"stands_for": "z"}), version))
    await store.refresh()
    assert [await those("a"), await those("z")] == ["c", "b"]


async def test_a_search_finds_after_a_refresh_every_write_that_returned_before_it(store: Store) -> None:
    for round in range(5):
        version = await put(store, f"{round}", body({"state": "new"}))
        await put(store, f"{round}", body({"state": "old"}), version)
        await store.refresh()
        assert await store.count("job", by="state") == {"old": round + 1}
        assert len(await store.search("job", [FieldCondition("state", "old")])) == round + 1
