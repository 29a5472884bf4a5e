"""What every store does with streams: append at an expected position, whole or not at all."""

import asyncio

from mendflow.stores.contract import Append, Delete, Put, RemoveStream, Store, Write, WriteConflict, WriteDone


async def test_a_stream_gives_back_its_entries_in_order(store: Store) -> None:
    assert await store.write([Append("s", [b"a", b"b"], 0), Append("s", [b"c"], 2)]) == [WriteDone(2), WriteDone(3)]
    assert await store.read("s") == [b"a", b"b", b"c"]
    assert await store.length("s") == 3


async def test_an_append_at_the_wrong_position_is_refused_whole(store: Store) -> None:
    await store.write([Append("s", [b"a", b"b", b"c"], 0)])
    assert await store.write([Append("s", [b"x", b"y"], 0)]) == [WriteConflict("stream", "s", 0, 3)]
    assert await store.write([Append("s", [b"x", b"y", b"z"], 1)]) == [WriteConflict("stream", "s", 1, 3)]
    assert await store.write([Append("s", [b"x"], 4)]) == [WriteConflict("stream", "s", 4, 3)]
    assert await store.read("s") == [b"a", b"b", b"c"]


async def test_an_unknown_stream_is_empty(store: Store) -> None:
    assert await store.length("nowhere") == 0
    assert await store.read("nowhere") == []


async def test_an_empty_append_only_checks_the_position(store: Store) -> None:
    assert await store.write([Append("s", [], 0)]) == [WriteDone(0)]
    assert await store.write([Append("s", [], 1)]) == [WriteConflict("stream", "s", 1, 0)]


async def test_entries_are_any_bytes_even_none(store: Store) -> None:
    entries = [b"", b"\x00", b"\xff\xfe", b"{", bytes(range(256))]
    assert await store.write([Append("s", entries, 0)]) == [WriteDone(5)]
    assert await store.read("s") == entries


async def test_a_stream_is_read_from_any_position_in_pages(store: Store) -> None:
    entries = [b"%d" % n for n in range(1000)]
    await store.write([Append("s", entries[:600], 0), Append("s", entries[600:], 600), Append("t", [b"other"], 0)])
    assert await store.read("s", 990) == entries[990:]
    assert await store.read("s", 10, 5) == entries[10:15]
    assert await store.read("s", 598, 4) == entries[598:602]
    assert await store.read("s", 1000) == []


async def test_of_many_who_append_at_one_position_exactly_one_wins(store: Store) -> None:
    made = await asyncio.gather(*(store.write([Append("s", [b"%d" % n], 0)]) for n in range(50)))
    winners = [n for n, (each,) in enumerate(made) if isinstance(each, WriteDone)]
    assert len(winners) == 1
    assert await store.read("s") == [b"%d" % winners[0]]
    assert {each for (each,) in made if isinstance(each, WriteConflict)} == {WriteConflict("stream", "s", 0, 1)}


async def test_a_journal_that_two_keep_at_once_has_each_entry_of_the_winners_and_no_other(store: Store) -> None:
    async def keep(writer: int) -> list[bytes]:
        kept: list[bytes] = []
        length = 0
        for number in range(30):
            entries = [b"%d/%d/%d" % (writer, number, part) for part in range(3)]
            (made,) = await store.write([Append("s", entries, length)])
            if isinstance(made, WriteDone):
                kept += entries
                length = made.version
            else:
                length = made.actual
        return kept

    kept = await asyncio.gather(keep(1), keep(2))
    found = await store.read("s")
    assert sorted(found) == sorted(kept[0] + kept[1])
    for mine in kept:
        assert [entry for entry in found if entry in set(mine)] == mine


async def test_a_removed_stream_is_as_if_it_had_never_been(store: Store) -> None:
    await store.write([Append("s", [b"a", b"b"], 0), Append("t", [b"other"], 0), Append("s", [b"c"], 2)])
    assert await store.write([RemoveStream("s"), RemoveStream("nowhere")]) == [WriteDone(0), WriteDone(0)]
    assert (await store.read("s"), await store.length("s"), await store.read("t")) == ([], 0, [b"other"])
    assert await store.write([Append("s", [b"late"], 3)]) == [WriteConflict("stream", "s", 3, 0)]
    assert await store.write([Append("s", [b"anew"], 0)]) == [WriteDone(1)]
    assert await store.read("s") == [b"anew"]


async def test_a_stream_is_removed_in_its_turn_among_other_writes(store: Store) -> None:
    writes: list[Write] = [Append("s", [b"a"], 0), RemoveStream("s"), Append("s", [b"b"], 0), Put("job", "j", b"{}", 0)]
    outcomes = await store.write(writes)
    assert outcomes[:3] == [WriteDone(1), WriteDone(0), WriteDone(1)] and isinstance(outcomes[3], WriteDone)
    assert await store.read("s") == [b"b"]


async def test_the_kinds_of_the_documents_that_are_there_are_known(store: Store) -> None:
    assert await store.kinds() == []
    made = await store.write([Put("job", "a", b"{}", 0), Put("case", "b", b"{}", 0), Put("job", "c", b"{}", 0)])
    assert await store.kinds() == ["case", "job"]
    assert isinstance(made[1], WriteDone)
    await store.write([Delete("case", "b", made[1].version)])
    assert await store.kinds() == ["job"]
