"""Stores on servers: the server goes away and comes back, the line breaks at the worst moment, several use one store.

What was acknowledged happened, once; who was refused was refused by somebody else."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.contract import Append, Delete, Put, Store, WriteConflict, WriteDone
from tests.contract.backends import Remote
from tests.contract.documents import body, outcomes, put
from tests.servers.line import Line, line_to


async def opened(store: Store) -> Store:
    await store.open()
    return store


# Away and back


async def test_what_is_asked_while_the_server_is_away_is_answered_when_it_is_back(
    remote: Remote, tmp_path: Path
) -> None:  # JS-9
    store = await opened(remote.make(tmp_path))
    await put(store, "a", b"1")
    remote.server.kill()
    getting = asyncio.ensure_future(store.get("job", "a"))
    writing = asyncio.ensure_future(store.write([Put("job", "b", b"2", 0), Append("s", [b"x"], 0)]))
    await asyncio.wait([getting, writing], timeout=0.3)
    assert not getting.done() and not writing.done()
    await asyncio.to_thread(remote.server.start)
    assert await getting is not None and outcomes(await writing) == ["WriteDone", "WriteDone"]
    assert await store.read("s") == [b"x"]
    await store.close()


async def test_a_server_that_stays_away_is_told_in_a_sentence_and_nothing_is_acknowledged(
    remote: Remote, tmp_path: Path
) -> None:  # JS-9
    made = await opened(remote.make(tmp_path))  # to make what it keeps things in takes a while
    version = await put(made, "a", b"1")
    await made.close()
    store = await opened(remote.reach(tmp_path, patience_s=1.5))
    remote.server.kill()
    for ask in (
        store.get("job", "a"),
        store.get_many("job", ["a"]),
        store.read("s"),
        store.length("s"),
        store.search("job"),
        store.count("job"),
        store.refresh(),
        store.write([Put("job", "b", b"2", 0)]),
    ):
        with pytest.raises(StoreUnavailable) as told:
            await ask
        assert len(told.value.message) > 40 and str(remote.server.port) in told.value.message
    with pytest.raises(StoreUnavailable):
        _ = [document async for document in store.scan("job")]
    await asyncio.to_thread(remote.server.start)
    patient = await opened(remote.make(tmp_path))
    await patient.close()
    found = await store.get("job", "a")
    assert found is not None and found.version == version
    assert await store.get("job", "b") is None
    await put(store, "b", b"2")
    await store.close()


async def test_a_store_whose_server_is_away_says_so_when_opened_and_may_be_opened_later(
    remote: Remote, tmp_path: Path
) -> None:
    store = remote.reach(tmp_path, patience_s=0.3)
    remote.server.kill()
    with pytest.raises(StoreUnavailable):
        await store.open()
    await asyncio.to_thread(remote.server.start)
    store = await opened(remote.make(tmp_path))
    await put(store, "a", b"1")
    await store.close()


@pytest.mark.law
async def test_writers_go_on_through_kills_of_the_server_and_are_never_refused_by_themselves(
    remote: Remote, tmp_path: Path
) -> None:  # JS-9
    """Each writer is the only one at its document and its stream: whoever is refused was refused by itself."""
    store = await opened(remote.make(tmp_path))
    over = asyncio.Event()
    chance = random.Random(4)

    async def write(writer: int) -> int:
        number = version = 0
        while not over.is_set() or number < 3:
            made = await store.write(
                [Put("job", str(writer), body(number), version), Append(f"s/{writer}", [b"%d" % number], number)]
            )
            assert outcomes(made) == ["WriteDone", "WriteDone"], f"writer {writer} at {number}: {made}"
            assert isinstance(made[0], WriteDone)
            version, number = made[0].version, number + 1
        return number

    writers = [asyncio.ensure_future(write(writer)) for writer in range(16)]
    for _ in range(3):
        await asyncio.wait(writers, timeout=0.2 + chance.random() * 0.3)
        await asyncio.to_thread(remote.server.kill)
        await asyncio.to_thread(remote.server.start)
    over.set()
    for writer, numbers in enumerate(await asyncio.gather(*writers)):
        found = await store.get("job", str(writer))
        assert found is not None and json.loads(found.body) == numbers - 1
        assert await store.read(f"s/{writer}") == [b"%d" % number for number in range(numbers)]
    await store.close()


# The line breaks


async def _cut_when_lost(line: Line) -> None:
    await line.lost.wait()
    line.cut()


@pytest.mark.parametrize("lost", ["answer", "request"])
async def test_a_write_whose_answer_is_lost_is_found_out_about(remote: Remote, tmp_path: Path, lost: str) -> None:
    async with line_to(remote.server.port) as line:
        store = await opened(remote.reach(tmp_path, patience_s=20, port=line.port))
        version, gone = await put(store, "a", b"1"), await put(store, "gone", b"1")
        (line.lose_answers if lost == "answer" else line.lose_requests)()
        made, _ = await asyncio.gather(
            store.write(
                [
                    Put("job", "a", b'"mine"', version),
                    Put("job", "new", b"2", 0),
                    Put("job", "new", b"3", 0),
                    Delete("job", "gone", gone),
                    Append("s", [b"x", b"y"], 0),
                    Append("s", [b"z"], 7),
                ]
            ),
            _cut_when_lost(line),
        )
        assert outcomes(made) == ["WriteDone", "WriteDone", "WriteConflict", "WriteDone", "WriteDone", "WriteConflict"]
        found = {document.id: document for document in await store.get_many("job", ["a", "new", "gone"])}
        assert {id: document.body for id, document in found.items()} == {"a": b'"mine"', "new": b"2"}
        assert [found["a"].version, found["new"].version] == [
            each.version for each in made[:2] if isinstance(each, WriteDone)
        ]
        assert await store.read("s") == [b"x", b"y"]
        await put(store, "a", b"4", found["a"].version)
        await store.close()


async def test_a_write_that_others_overtook_while_its_answer_was_lost_is_told_the_truth(
    remote: Remote, tmp_path: Path
) -> None:
    """Ours happened, and then somebody else's: what stands there is theirs, and still ours is done."""
    other = await opened(remote.make(tmp_path))
    async with line_to(remote.server.port) as line:
        store = await opened(remote.reach(tmp_path, patience_s=20, port=line.port))
        version = await put(store, "a", b"1")
        line.lose_answers()
        ours = asyncio.ensure_future(store.write([Put("job", "a", b'"ours"', version), Append("s", [b"ours"], 0)]))
        await line.lost.wait()
        while (found := await other.get("job", "a")) is None or found.body != b'"ours"' or not await other.length("s"):
            await asyncio.sleep(0.01)
        await put(other, "a", b'"theirs"', found.version)
        assert await other.write([Append("s", [b"theirs"], 1)]) == [WriteDone(2)]
        line.cut()
        assert await ours == [WriteDone(found.version), WriteDone(1)]
        await store.close()
    await other.close()


async def test_a_write_that_never_arrived_is_refused_if_others_were_faster(remote: Remote, tmp_path: Path) -> None:
    other = await opened(remote.make(tmp_path))
    async with line_to(remote.server.port) as line:
        store = await opened(remote.reach(tmp_path, patience_s=20, port=line.port))
        version = await put(store, "a", b"1")
        line.lose_requests()
        ours = asyncio.ensure_future(store.write([Put("job", "a", b'"ours"', version), Append("s", [b"ours"], 0)]))
        await line.lost.wait()
        theirs = await put(other, "a", b'"theirs"', version)
        assert await other.write([Append("s", [b"theirs"], 0)]) == [WriteDone(1)]
        line.cut()
        assert await ours == [WriteConflict("job", "a", version, theirs), WriteConflict("stream", "s", 0, 1)]
        await store.close()
    await other.close()


# Several of us


async def test_servers_that_start_at_once_on_an_empty_store_all_find_it_ready(remote: Remote, tmp_path: Path) -> None:
    stores = [remote.make(tmp_path) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    version = await put(stores[0], "a", b"1")
    for store in stores:
        found = await store.get("job", "a")
        assert found is not None and found.version == version
        await store.close()


@pytest.mark.law
async def test_of_several_servers_exactly_one_wins_each_version_and_each_position(
    remote: Remote, tmp_path: Path
) -> None:  # JS-1
    stores = [await opened(remote.make(tmp_path)) for _ in range(3)]
    start = await put(stores[0], "a", b"0")

    async def climb(server: int, store: Store) -> tuple[list[int], list[bytes]]:
        won, kept, version, length = [], [], start, 0
        for number in range(40):
            entry = b"%d/%d" % (server, number)
            made = await store.write([Put("job", "a", body(server), version), Append("s", [entry], length)])
            if isinstance(made[0], WriteDone):
                won.append(version)
            if isinstance(made[1], WriteDone):
                kept.append(entry)
            version = made[0].version if isinstance(made[0], WriteDone) else made[0].actual
            length = made[1].version if isinstance(made[1], WriteDone) else made[1].actual
        return won, kept

    climbed = await asyncio.gather(*(climb(server, store) for server, store in enumerate(stores)))
    won = [version for each, _ in climbed for version in each]
    assert len(won) == len(set(won)) >= 40
    assert sorted(await stores[0].read("s")) == sorted(entry for _, kept in climbed for entry in kept)
    for store in stores:
        await store.close()


@pytest.mark.law
async def test_servers_that_write_the_same_documents_in_any_order_do_not_stop_each_other(
    remote: Remote, tmp_path: Path
) -> None:
    stores = [await opened(remote.make(tmp_path)) for _ in range(2)]
    chance = random.Random(7)
    for round in range(10):
        names = [f"{round}/{n}" for n in range(200)]
        calls = []
        for store in stores:
            chance.shuffle(names)
            calls.append(store.write([Put("job", name, b"1", 0) for name in names]))
        first, second = await asyncio.gather(*calls)
        assert outcomes(first).count("WriteDone") + outcomes(second).count("WriteDone") == 200
    for store in stores:
        await store.close()
