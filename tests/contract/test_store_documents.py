"""What every store does with documents: compare-and-set, one by one, and reads that see every write that returned."""

import asyncio
import json
from pathlib import Path

import pytest

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.stores.contract import (
    Append,
    Delete,
    FieldCondition,
    Put,
    Store,
    StoredDocument,
    WriteConflict,
    WriteDone,
)
from tests.contract.backends import Backend
from tests.contract.documents import body, done, ids, outcomes, put


async def test_a_new_document_is_found_whole_at_its_version(store: Store) -> None:
    version = await put(store, "a", body({"x": 1}))
    assert version > 0
    assert await store.get("job", "a") == StoredDocument("job", "a", version, body({"x": 1}))


async def test_an_absent_document_is_none(store: Store) -> None:
    assert await store.get("job", "nobody") is None


async def test_kinds_do_not_see_each_other(store: Store) -> None:
    await put(store, "a", b"1")
    assert await store.get("case", "a") is None
    await put(store, "a", b"2", kind="case")
    found = await store.get("job", "a")
    assert found is not None and found.body == b"1"


async def test_creating_what_exists_is_refused_with_its_version(store: Store) -> None:  # JS-1
    version = await put(store, "a", b"2", await put(store, "a", b"1"))
    assert await store.write([Put("job", "a", b"3", 0)]) == [WriteConflict("job", "a", 0, version)]
    assert await store.get("job", "a") == StoredDocument("job", "a", version, b"2")


async def test_the_slower_of_two_writers_is_refused_whole(store: Store) -> None:  # JS-1
    first = await put(store, "a", b'"available"')
    second = await put(store, "a", b'"running for p1"', first)
    assert second > first
    assert await store.write([Put("job", "a", b'"running for p2"', first)]) == [
        WriteConflict("job", "a", first, second)
    ]
    assert await store.get("job", "a") == StoredDocument("job", "a", second, b'"running for p1"')


async def test_updating_what_does_not_exist_is_refused(store: Store) -> None:  # JS-1
    assert await store.write([Put("job", "a", b"1", 4)]) == [WriteConflict("job", "a", 4, 0)]
    assert await store.get("job", "a") is None


async def test_a_deleted_document_is_gone_and_may_be_made_again(store: Store) -> None:
    version = await put(store, "a")
    assert await store.write([Delete("job", "a", version)]) == [WriteDone(0)]
    assert await store.get("job", "a") is None
    assert await store.write([Delete("job", "a", version)]) == [WriteConflict("job", "a", version, 0)]
    await put(store, "a", b"2")


async def test_who_holds_the_version_of_a_deleted_document_cannot_change_the_one_made_after_it(
    store: Store,
) -> None:  # JS-1
    """A version that came back would let a server that slept through it all overwrite what it has never seen."""
    seen: set[int] = set()
    for life in range(5):
        version = await put(store, "a", body(life))
        version = await put(store, "a", body(life), version)
        assert version not in seen
        for old in seen:
            assert await store.write([Put("job", "a", b'"old"', old)]) == [WriteConflict("job", "a", old, version)]
            assert await store.write([Delete("job", "a", old)]) == [WriteConflict("job", "a", old, version)]
        seen.add(version)
        await done(store, Delete("job", "a", version))


async def test_deleting_at_the_wrong_version_is_refused(store: Store) -> None:
    version = await put(store, "a")
    assert await store.write([Delete("job", "a", version + 1), Delete("job", "b", 1)]) == [
        WriteConflict("job", "a", version + 1, version),
        WriteConflict("job", "b", 1, 0),
    ]
    assert await store.get("job", "a") is not None


async def test_writes_of_one_call_happen_in_their_order(store: Store) -> None:
    version = await put(store, "a", b"1")
    made = await store.write(
        [
            Put("job", "a", b"2", version),
            Put("job", "a", b"3", version),
            Delete("job", "a", version),
            Put("job", "b", b"4", 0),
            Put("job", "b", b"5", 0),
        ]
    )
    assert outcomes(made) == ["WriteDone", "WriteConflict", "WriteConflict", "WriteDone", "WriteConflict"]
    assert [(document.body, document.version) for document in await store.get_many("job", ["a", "b"])] == [
        (b"2", made[0].version if isinstance(made[0], WriteDone) else 0),
        (b"4", made[3].version if isinstance(made[3], WriteDone) else 0),
    ]
    again = await store.get("job", "b")
    assert again is not None
    made = await store.write([Delete("job", "b", again.version), Put("job", "b", b"6", 0), Put("job", "b", b"7", 0)])
    assert outcomes(made) == ["WriteDone", "WriteDone", "WriteConflict"]
    again = await store.get("job", "b")
    assert again is not None and again.body == b"6"


async def test_one_refused_write_does_not_stop_the_next(store: Store) -> None:
    version = await put(store, "b", b"0")
    made = await store.write(
        [
            Put("job", "a", b"1", 0),
            Put("job", "b", b"2", 0),
            Append("s", [b"x"], 5),
            Put("job", "c", b"3", 0),
            Append("s", [b"y"], 0),
        ]
    )
    assert outcomes(made) == ["WriteDone", "WriteConflict", "WriteConflict", "WriteDone", "WriteDone"]
    assert made[1:3] == [WriteConflict("job", "b", 0, version), WriteConflict("stream", "s", 5, 0)]
    assert made[4] == WriteDone(1)
    assert ids(await store.get_many("job", ["a", "b", "c"])) == ["a", "b", "c"]
    assert await store.read("s") == [b"y"]


async def test_an_empty_call_does_nothing(store: Store) -> None:
    assert await store.write([]) == []
    assert await store.get_many("job", []) == []


async def test_many_documents_come_in_the_order_asked_for_without_the_absent(store: Store) -> None:
    await store.write([Put("job", str(n), body(n), 0) for n in range(200)])
    wanted = [str(n) for n in range(199, -1, -2)]
    found = await store.get_many("job", [*wanted, "absent"])
    assert [(document.id, json.loads(document.body)) for document in found] == [(id, int(id)) for id in wanted]
    assert ids(await store.get_many("job", ["3", "absent", "1", "3"])) == ["3", "1"]


async def test_the_statuses_of_documents_are_those_that_are_texts(store: Store) -> None:
    bodies = {"a": {"status": "failed"}, "b": {"status": "künftig"}, "c": {"status": 7}, "d": {"state": "x"}, "e": 1}
    await store.write([Put("job", id, body(content), 0) for id, content in bodies.items()])
    await store.write([Put("case", "a", body({"status": "completed"}), 0)])
    assert await store.statuses("job", ["b", "absent", "a", *bodies]) == {"a": "failed", "b": "künftig"}
    assert await store.statuses("case", ["a", "b"]) == {"a": "completed"}
    assert await store.statuses("job", []) == {}
    many = [f"m/{n}" for n in range(1_500)]
    await store.write([Put("job", id, body({"status": "failed"}), 0) for id in many])
    assert await store.statuses("job", many) == dict.fromkeys(many, "failed")


async def test_a_large_call_is_answered_one_by_one(store: Store) -> None:
    count = 3_000
    first = await store.write([Put("job", str(n), body(n), 0) for n in range(count)])
    assert set(outcomes(first)) == {"WriteDone"}
    versions = [each.version for each in first if isinstance(each, WriteDone)]
    again = await store.write(
        [Put("job", str(n), b'"new"', version if n % 2 else 0) for n, version in enumerate(versions)]
    )
    assert outcomes(again) == ["WriteDone" if n % 2 else "WriteConflict" for n in range(count)]
    found = await store.get_many("job", [str(n) for n in range(count)])
    assert [document.body for document in found] == [b'"new"' if n % 2 else body(n) for n in range(count)]


async def test_of_many_writers_at_once_exactly_one_wins_each_version(store: Store) -> None:  # JS-1
    """Each writes at the version that it saw last; what is refused tells what to write at next."""
    start = await put(store, "a", b"0")

    async def climb(writer: int) -> list[int]:
        won, version = [], start
        for _ in range(20):
            (made,) = await store.write([Put("job", "a", body(writer), version)])
            if isinstance(made, WriteDone):
                won.append(version)
                version = made.version
            else:
                assert made.actual > version
                version = made.actual
        return won

    won = [version for each in await asyncio.gather(*map(climb, range(20))) for version in each]
    assert len(won) == len(set(won)), "one version was won twice"
    assert len(won) >= 20


async def test_a_thousand_calls_at_once_each_get_their_own_answer(store: Store) -> None:
    made = await asyncio.gather(*(store.write([Put("job", f"{n // 2}", body(n), 0)]) for n in range(1000)))
    found = {document.id: document for document in await store.get_many("job", [str(n) for n in range(500)])}
    for n in range(500):
        pair = made[2 * n] + made[2 * n + 1]
        assert sorted(outcomes(pair)) == ["WriteConflict", "WriteDone"]
        winner = 2 * n if isinstance(pair[0], WriteDone) else 2 * n + 1
        assert json.loads(found[str(n)].body) == winner


async def test_text_of_any_language_survives(store: Store) -> None:
    value = {"case": "größe-東京-🌊", "quote": 'it\'s "this"; DROP TABLE documents;--'}
    raw = json.dumps(value, ensure_ascii=False).encode()
    version = await put(store, "größe/🌊'\"", raw)
    await done(store, Append("strøm", ["ж".encode()], 0))
    assert await store.get("job", "größe/🌊'\"") == StoredDocument("job", "größe/🌊'\"", version, raw)
    assert await store.read("strøm") == ["ж".encode()]
    await store.refresh()
    assert ids(await store.search("job", [FieldCondition("case", "größe-東京-🌊")])) == ["größe/🌊'\""]
    assert await store.count("job", by="case") == {"größe-東京-🌊": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"b": 1,  "a":2, "a":3}',
        b'{"n": 1.10, "big": 12345678901234567890123, "e": 1E3}',
        b'{"nul": "a\\u0000b", "state": "odd"}',
        b'"\\u00e9\\u4e2d\\/ \\n"',
        b" [1, 2]\n",
        b"null",
    ],
)
async def test_a_body_comes_back_byte_for_byte(store: Store, raw: bytes) -> None:
    await put(store, "a", raw)
    found = await store.get("job", "a")
    assert found is not None and found.body == raw
    assert [each.body async for each in store.scan("job")] == [raw]
    await store.refresh()
    assert [each.body for each in await store.search("job")] == [raw]


async def test_a_big_body_survives(store: Store) -> None:
    raw = body({"blob": "x" * 5_000_000})
    await store.write([Put("job", "big", raw, 0), Append("s", [b"\x00\xff" * 1_000_000], 0)])
    document = await store.get("job", "big")
    assert document is not None and document.body == raw
    assert await store.read("s") == [b"\x00\xff" * 1_000_000]


@pytest.mark.parametrize("bad", [b"{oops", b"", b'{"a": 1} x'])
async def test_a_body_that_is_not_json_is_refused_and_harms_nobody_else(store: Store, bad: bytes) -> None:
    refused, good = await asyncio.gather(
        store.write([Put("job", "x", b"1", 0), Put("job", "bad", bad, 0)]),
        store.write([Put("job", "good", b"1", 0)]),
        return_exceptions=True,
    )
    assert isinstance(refused, RequestError) and refused.code == "bad-document"
    assert isinstance(good, list) and outcomes(good) == ["WriteDone"]
    assert await store.get("job", "bad") is None and await store.get("job", "x") is None


async def test_a_closed_store_says_so(backend: Backend, tmp_path: Path) -> None:
    store = backend.make(tmp_path)
    await store.open()
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.write([Put("job", "a", b"1", 0)])
    with pytest.raises(StoreUnavailable):
        await store.get("job", "a")


async def test_closing_waits_for_what_is_being_written(backend: Backend, tmp_path: Path) -> None:
    store = backend.make(tmp_path)
    await store.open()
    writes = [asyncio.ensure_future(store.write([Put("job", str(n), body(n), 0)])) for n in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert {outcome for made in await asyncio.gather(*writes) for outcome in outcomes(made)} == {"WriteDone"}


async def test_a_caller_that_gives_up_leaves_the_others_alone(store: Store) -> None:
    writes = [asyncio.ensure_future(store.write([Put("job", str(number), b"1", 0)])) for number in range(10)]
    await asyncio.sleep(0)
    writes[3].cancel()
    results = await asyncio.gather(*writes, return_exceptions=True)
    others = [result for number, result in enumerate(results) if number != 3]
    assert all(isinstance(result, list) and outcomes(result) == ["WriteDone"] for result in others)


async def test_a_scan_reads_nothing_behind_its_prefix(store: Store) -> None:  # SE-3
    for id in ("shell-1", "shell-1.2", "shell-1.2/3", "shell-1\U0010fffe", "shelm-1", "shell-2"):
        await done(store, Put("case", id, b"{}", 0))
    assert [each.id async for each in store.scan("case", "shell-1.")] == ["shell-1.2", "shell-1.2/3"]
    assert len([each async for each in store.scan("case", "shell-1")]) == 4
    assert len([each async for each in store.scan("case")]) == 6
