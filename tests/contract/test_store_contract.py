"""What every store must do, said once and run for each. A new store adds a subclass and changes nothing here."""

import asyncio
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.problems import Mistake, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.stores.contract import Append, Delete, Document, Done, Put, Store, Taken, Where
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite import SqliteStore


def body(value: Value) -> bytes:
    return json.dumps(value).encode()


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


class StoreContract(ABC):
    """`make` gives a store on a folder; the same folder again gives the same store, if it persists at all."""

    @abstractmethod
    def make(self, folder: Path) -> Store: ...

    async def settle(self, store: Store) -> None:
        """Wait until searches have caught up; these stores' searches do not lag."""
        return

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = self.make(tmp_path)
        await store.open()
        yield store
        await store.close()

    # Documents

    async def test_a_new_document_is_found_whole_at_version_one(self, store: Store) -> None:
        assert await store.write([Put("job", "a", body({"x": 1}), 0)]) == [Done(1)]
        assert await store.get("job", "a") == Document("job", "a", 1, body({"x": 1}))

    async def test_an_absent_document_is_none(self, store: Store) -> None:
        assert await store.get("job", "nobody") is None

    async def test_kinds_do_not_see_each_other(self, store: Store) -> None:
        await store.write([Put("job", "a", b"1", 0)])
        assert await store.get("case", "a") is None
        assert await store.write([Put("case", "a", b"2", 0)]) == [Done(1)]

    async def test_creating_what_exists_is_refused_with_its_version(self, store: Store) -> None:  # JS-1
        await store.write([Put("job", "a", b"1", 0), Put("job", "a", b"2", 1)])
        assert await store.write([Put("job", "a", b"3", 0)]) == [Taken("job", "a", 0, 2)]
        assert await store.get("job", "a") == Document("job", "a", 2, b"2")

    async def test_the_slower_of_two_writers_is_refused_whole(self, store: Store) -> None:  # JS-1
        await store.write([Put("job", "a", b'"available"', 0)])
        assert await store.write([Put("job", "a", b'"running for p1"', 1)]) == [Done(2)]
        assert await store.write([Put("job", "a", b'"running for p2"', 1)]) == [Taken("job", "a", 1, 2)]
        assert await store.get("job", "a") == Document("job", "a", 2, b'"running for p1"')

    async def test_updating_what_does_not_exist_is_refused(self, store: Store) -> None:  # JS-1
        assert await store.write([Put("job", "a", b"1", 4)]) == [Taken("job", "a", 4, 0)]
        assert await store.get("job", "a") is None

    async def test_a_deleted_document_is_gone_and_may_be_made_again(self, store: Store) -> None:
        await store.write([Put("job", "a", b"1", 0)])
        assert await store.write([Delete("job", "a", 1)]) == [Done(0)]
        assert await store.get("job", "a") is None
        assert await store.write([Put("job", "a", b"2", 0)]) == [Done(1)]

    async def test_deleting_at_the_wrong_version_is_refused(self, store: Store) -> None:
        await store.write([Put("job", "a", b"1", 0)])
        assert await store.write([Delete("job", "a", 2), Delete("job", "b", 1)]) == [
            Taken("job", "a", 2, 1),
            Taken("job", "b", 1, 0),
        ]
        assert await store.get("job", "a") is not None

    async def test_writes_of_one_call_happen_in_their_order(self, store: Store) -> None:
        made = await store.write(
            [
                Put("job", "a", b"1", 0),
                Put("job", "a", b"2", 1),
                Delete("job", "a", 2),
                Put("job", "a", b"4", 0),
                Put("job", "a", b"5", 1),
            ]
        )
        assert made == [Done(1), Done(2), Done(0), Done(1), Done(2)]
        assert await store.get("job", "a") == Document("job", "a", 2, b"5")

    async def test_one_refused_write_does_not_stop_the_next(self, store: Store) -> None:
        await store.write([Put("job", "b", b"0", 0)])
        made = await store.write(
            [
                Put("job", "a", b"1", 0),
                Put("job", "b", b"2", 0),
                Append("s", [b"x"], 5),
                Put("job", "c", b"3", 0),
                Append("s", [b"y"], 0),
            ]
        )
        assert made == [Done(1), Taken("job", "b", 0, 1), Taken("stream", "s", 5, 0), Done(1), Done(1)]
        assert ids(await store.get_many("job", ["a", "b", "c"])) == ["a", "b", "c"]
        assert await store.read("s") == [b"y"]

    async def test_an_empty_call_does_nothing(self, store: Store) -> None:
        assert await store.write([]) == []
        assert await store.get_many("job", []) == []

    async def test_many_documents_come_in_the_order_asked_for_without_the_absent(self, store: Store) -> None:
        await store.write([Put("job", str(n), body(n), 0) for n in range(200)])
        wanted = [str(n) for n in range(199, -1, -2)]
        found = await store.get_many("job", [*wanted, "absent"])
        assert [(document.id, json.loads(document.body), document.version) for document in found] == [
            (id, int(id), 1) for id in wanted
        ]
        assert ids(await store.get_many("job", ["3", "absent", "1", "3"])) == ["3", "1"]

    async def test_of_many_writers_at_once_exactly_one_wins_each_version(self, store: Store) -> None:  # JS-1
        await store.write([Put("job", "a", b"0", 0)])

        async def climb(writer: int) -> list[int]:
            won = []
            for version in range(1, 21):
                (made,) = await store.write([Put("job", "a", body(writer), version)])
                if isinstance(made, Done):
                    won.append(version)
                else:
                    assert made.actual != version
            return won

        won = [version for each in await asyncio.gather(*map(climb, range(20))) for version in each]
        assert sorted(won) == sorted(set(won)), "one version was won twice"
        document = await store.get("job", "a")
        assert document is not None and document.version == len(won) + 1

    async def test_a_thousand_calls_at_once_each_get_their_own_answer(self, store: Store) -> None:
        made = await asyncio.gather(*(store.write([Put("job", f"{n // 2}", body(n), 0)]) for n in range(1000)))
        assert sum(isinstance(each, Done) for (each,) in made) == 500
        for n in range(500):
            pair = made[2 * n] + made[2 * n + 1]
            assert sorted(type(each).__name__ for each in pair) == ["Done", "Taken"]
            document = await store.get("job", str(n))
            assert document is not None
            winner = 2 * n if isinstance(pair[0], Done) else 2 * n + 1
            assert json.loads(document.body) == winner

    async def test_text_of_any_language_survives(self, store: Store) -> None:
        value = {"case": "größe-東京-🌊", "quote": 'it\'s "this"; DROP TABLE documents;--'}
        raw = json.dumps(value, ensure_ascii=False).encode()
        await store.write([Put("job", "größe/🌊'\"", raw, 0), Append("strøm", ["ж".encode()], 0)])
        assert await store.get("job", "größe/🌊'\"") == Document("job", "größe/🌊'\"", 1, raw)
        assert await store.read("strøm") == ["ж".encode()]
        await self.settle(store)
        assert ids(await store.search("job", [Where("case", "größe-東京-🌊")])) == ["größe/🌊'\""]
        assert await store.count("job", by="case") == {"größe-東京-🌊": 1}

    async def test_a_big_body_survives(self, store: Store) -> None:
        raw = body({"blob": "x" * 5_000_000})
        await store.write([Put("job", "big", raw, 0), Append("s", [b"\x00\xff" * 1_000_000], 0)])
        document = await store.get("job", "big")
        assert document is not None and document.body == raw
        assert await store.read("s") == [b"\x00\xff" * 1_000_000]

    async def test_a_body_that_is_not_json_is_refused_and_harms_nobody_else(self, store: Store) -> None:
        bad, good = await asyncio.gather(
            store.write([Put("job", "x", b"1", 0), Put("job", "bad", b"{oops", 0)]),
            store.write([Put("job", "good", b"1", 0)]),
            return_exceptions=True,
        )
        assert isinstance(bad, Mistake) and bad.code == "bad-document"
        assert good == [Done(1)]
        assert await store.get("job", "bad") is None and await store.get("job", "x") is None

    # Streams

    async def test_a_stream_gives_back_its_entries_in_order(self, store: Store) -> None:
        assert await store.write([Append("s", [b"a", b"b"], 0), Append("s", [b"c"], 2)]) == [Done(2), Done(3)]
        assert await store.read("s") == [b"a", b"b", b"c"]
        assert await store.length("s") == 3

    async def test_an_append_at_the_wrong_position_is_refused_whole(self, store: Store) -> None:
        await store.write([Append("s", [b"a"], 0)])
        assert await store.write([Append("s", [b"b", b"c"], 0)]) == [Taken("stream", "s", 0, 1)]
        assert await store.write([Append("s", [b"b"], 2)]) == [Taken("stream", "s", 2, 1)]
        assert await store.read("s") == [b"a"]

    async def test_an_unknown_stream_is_empty(self, store: Store) -> None:
        assert await store.length("nowhere") == 0
        assert await store.read("nowhere") == []

    async def test_an_empty_append_only_checks_the_position(self, store: Store) -> None:
        assert await store.write([Append("s", [], 0)]) == [Done(0)]
        assert await store.write([Append("s", [], 1)]) == [Taken("stream", "s", 1, 0)]

    async def test_a_stream_is_read_from_any_position_in_pages(self, store: Store) -> None:
        entries = [b"%d" % n for n in range(1000)]
        await store.write([Append("s", entries, 0), Append("t", [b"other"], 0)])
        assert await store.read("s", 990) == entries[990:]
        assert await store.read("s", 10, 5) == entries[10:15]
        assert await store.read("s", 1000) == []

    async def test_of_many_who_append_at_one_position_exactly_one_wins(self, store: Store) -> None:
        made = await asyncio.gather(*(store.write([Append("s", [b"%d" % n], 0)]) for n in range(50)))
        winners = [n for n, (each,) in enumerate(made) if isinstance(each, Done)]
        assert len(winners) == 1
        assert await store.read("s") == [b"%d" % winners[0]]

    # Scans and searches

    async def test_a_scan_gives_every_document_of_a_kind_by_id(self, store: Store) -> None:
        await store.write([Put("job", f"c/{n:05}", body({"n": n}), 0) for n in range(12_345)])
        await store.write([Put("case", "c", b"{}", 0), Put("job", "d/1", b"{}", 0)])
        found = [document async for document in store.scan("job", "c/")]
        assert ids(found) == [f"c/{n:05}" for n in range(12_345)]
        assert json.loads(found[777].body) == {"n": 777}
        assert len([document async for document in store.scan("job")]) == 12_346
        assert [document async for document in store.scan("nothing")] == []

    async def test_a_scan_sees_every_write_that_returned_before(self, store: Store) -> None:
        await store.write([Put("job", "a", b"1", 0), Put("job", "b", b"1", 0)])
        await store.write([Delete("job", "a", 1), Put("job", "b", b"2", 1)])
        assert [document async for document in store.scan("job")] == [Document("job", "b", 2, b"2")]

    @pytest.fixture
    async def zoo(self, store: Store) -> Store:
        animals: list[dict[str, Value]] = [
            {"name": "ant", "state": "wild", "legs": 6, "size": {"kg": 0.001}, "tame": False},
            {"name": "bear", "state": "wild", "legs": 4, "size": {"kg": 300}, "case": "c1"},
            {"name": "cat", "state": "home", "legs": 4, "size": {"kg": 4.5}, "tame": True, "case": "c1"},
            {"name": "dove", "state": "home", "legs": 2, "size": {"kg": 0.4}, "tame": True, "case": "c2"},
            {"name": "eel", "legs": 0, "size": {"kg": "long"}, "state": None},
        ]
        await store.write([Put("animal", str(animal["name"]), body(animal), 0) for animal in animals])
        await self.settle(store)
        return store

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            ([], "ant bear cat dove eel"),
            ([Where("state", "wild")], "ant bear"),
            ([Where("state", "wild", "ne")], "cat dove eel"),
            ([Where("state", None)], "eel"),
            ([Where("case", None)], "ant eel"),
            ([Where("case", None, "ne")], "bear cat dove"),
            ([Where("legs", 4)], "bear cat"),
            ([Where("legs", 4.0)], "bear cat"),
            ([Where("legs", "4")], ""),
            ([Where("legs", 4, "lt")], "dove eel"),
            ([Where("legs", 4, "le")], "bear cat dove eel"),
            ([Where("legs", 4, "gt")], "ant"),
            ([Where("legs", 4, "ge")], "ant bear cat"),
            ([Where("size.kg", 1, "lt")], "ant dove"),
            ([Where("size.kg", "a", "gt")], "eel"),
            ([Where("name", "bzz", "gt")], "cat dove eel"),
            ([Where("tame", True)], "cat dove"),
            ([Where("tame", False)], "ant"),
            ([Where("legs", [0, 6], "in")], "ant eel"),
            ([Where("state", ["home", None], "in")], "cat dove eel"),
            ([Where("state", [], "in")], ""),
            ([Where("state", "home"), Where("case", "c1")], "cat"),
            ([Where("no.such.field", 1)], ""),
        ],
    )
    async def test_a_search_finds_what_fulfils_every_condition(
        self, zoo: Store, where: list[Where], found: str
    ) -> None:  # JS-6
        assert ids(await zoo.search("animal", where)) == found.split()
        assert await zoo.count("animal", where) == {"": len(found.split())}

    async def test_a_search_is_ordered_by_a_field_and_then_by_id_shorter_ids_first(self, zoo: Store) -> None:
        by_legs = ids(await zoo.search("animal", order_by="legs"))
        assert by_legs == ["eel", "dove", "cat", "bear", "ant"]
        assert ids(await zoo.search("animal", order_by="legs", descending=True)) == by_legs[::-1]
        assert ids(await zoo.search("animal", order_by="case")) == ["ant", "eel", "cat", "bear", "dove"]
        assert ids(await zoo.search("animal", descending=True)) == ["eel", "dove", "cat", "bear", "ant"]

    async def test_pages_of_a_search_neither_overlap_nor_leave_out(self, zoo: Store) -> None:
        pages = [ids(await zoo.search("animal", order_by="legs", limit=2, offset=at)) for at in (0, 2, 4, 6)]
        assert pages == [["eel", "dove"], ["cat", "bear"], ["ant"], []]

    async def test_documents_are_counted_by_the_value_of_a_field(self, zoo: Store) -> None:
        assert await zoo.count("animal", by="state") == {"wild": 2, "home": 2, "": 1}
        assert await zoo.count("animal", [Where("case", "c1")], by="state") == {"wild": 1, "home": 1}
        assert await zoo.count("animal", by="legs") == {"0": 1, "2": 1, "4": 2, "6": 1}
        assert await zoo.count("animal", by="tame") == {"": 2, "true": 2, "false": 1}
        assert await zoo.count("nothing", by="state") == {}

    @pytest.mark.parametrize("field", ["", "a b", "a'b", 'a"b', "a.", ".a", "a..b", "a;--", "$", "ä", "a\n"])
    async def test_a_field_that_is_not_a_plain_path_is_refused(self, store: Store, field: str) -> None:
        with pytest.raises(Mistake, match="is not a field path"):
            await store.search("job", [Where(field, 1)])
        if field:
            with pytest.raises(Mistake, match="is not a field path"):
                await store.search("job", order_by=field)
            with pytest.raises(Mistake, match="is not a field path"):
                await store.count("job", by=field)

    @pytest.mark.parametrize(
        "where", [Where("a", 1, "like"), Where("a", {"b": 1}), Where("a", 1, "in"), Where("a", None, "lt")]
    )
    async def test_a_comparison_that_cannot_be_meant_is_refused(self, store: Store, where: Where) -> None:
        with pytest.raises(Mistake):
            await store.search("job", [where])

    # Opening and closing

    async def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        await store.open()
        await store.close()
        with pytest.raises(StoreUnavailable):
            await store.write([Put("job", "a", b"1", 0)])
        with pytest.raises(StoreUnavailable):
            await store.get("job", "a")

    async def test_closing_waits_for_what_is_being_written(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        await store.open()
        writes = [asyncio.ensure_future(store.write([Put("job", str(n), body(n), 0)])) for n in range(300)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*writes) == [[Done(1)]] * 300


class DurableContract(StoreContract):
    """What a store that outlives its process does besides. `source` is Python that makes the same store as `make`."""

    @abstractmethod
    def source(self, folder: Path) -> str: ...

    async def test_what_returned_is_there_after_closing_and_opening_again(self, tmp_path: Path) -> None:  # JS-2
        store = self.make(tmp_path)
        await store.open()
        await store.write([Put("job", "a", b"1", 0), Put("job", "a", b"2", 1), Append("s", [b"x", b"y"], 0)])
        await store.close()
        again = self.make(tmp_path)
        await again.open()
        assert await again.get("job", "a") == Document("job", "a", 2, b"2")
        assert await again.read("s") == [b"x", b"y"]
        assert await again.write([Append("s", [b"z"], 2), Put("job", "a", b"3", 2)]) == [Done(3), Done(3)]
        await again.close()

    async def test_what_returned_is_there_after_kill_9(self, tmp_path: Path) -> None:  # JS-2
        """A process writes and says of each write when it has returned; it is killed in the middle, three times."""
        for life in range(3):
            acknowledged = _write_until_killed(WRITES_AND_TELLS.format(store=self.source(tmp_path), life=life), 300)
            store = self.make(tmp_path)
            await store.open()
            for writer, number in acknowledged:
                document = await store.get("job", f"{life}/{writer}")
                assert document is not None and json.loads(document.body) >= number
                assert document.version == json.loads(document.body) + 1
                assert await store.length(f"{life}/{writer}") in (document.version, document.version + 1)
                assert await store.length(f"{life}/{writer}") > number
            await store.close()


WRITES_AND_TELLS = """
import asyncio
{store}
from mendflow.stores.contract import Append, Put

async def write(writer):
    for number in range(1_000_000):
        await store.write([Append(f"{life}/{{writer}}", [b"x" * 100], number)])
        await store.write([Put("job", f"{life}/{{writer}}", str(number).encode(), number)])
        print(writer, number, flush=True)

async def main():
    await store.open()
    await asyncio.gather(*(write(writer) for writer in range(8)))

asyncio.run(main())
"""


def _write_until_killed(script: str, lines: int) -> list[tuple[int, int]]:
    """What the process had said was written when it was killed."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [line for line, _ in zip(process.stdout, range(lines), strict=False)]
        process.kill()
        said += process.stdout.readlines()
    told = [line.split() for line in said if line.endswith("\n")]
    assert len(told) >= lines
    return [(int(writer), int(number)) for writer, number in told]


class TestMemory(StoreContract):
    def make(self, folder: Path) -> Store:
        return MemoryStore()


class TestSqlite(DurableContract):
    def make(self, folder: Path) -> Store:
        return SqliteStore(folder / "store.db")

    def source(self, folder: Path) -> str:
        return f"from mendflow.stores.sqlite import SqliteStore\nstore = SqliteStore({str(folder / 'store.db')!r})"
