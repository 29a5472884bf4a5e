"""On every store the audit log is written in order, found again, and a cut or a change in it is seen. SE-4"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from mendflow.core.audit.chain import DAY_MS, sha256_of
from mendflow.core.model.audit import (
    AUDIT_CHAIN_KIND,
    AUDIT_CUT_KIND,
    AUDIT_SEGMENT_KIND,
    AuditEntry,
    AuditQuery,
    AuditSegment,
    RequestRecord,
)
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.services.audit.audit_log import AuditLog
from mendflow.services.audit.audit_search import search
from mendflow.services.audit.audit_service import CUT_OPERATION, AuditService
from mendflow.services.audit.chain_store import ChainStore, stream_of
from mendflow.stores.contract import Append, Delete, RemoveStream, Store, Write, WriteConflict, WriteDone
from mendflow.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.full


class Days:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.ms: Instant = 20_000 * DAY_MS

    def now(self) -> Instant:
        return self.ms


@asynccontextmanager
async def writing(store: Store, clock: Days, server: str = "alone") -> AsyncIterator[AuditLog]:
    log = AuditLog(store, lambda: server, clock.now)
    log.start()
    try:
        yield log
    finally:
        await log.stop()


def record(object: str, who: str = "ann", operation: str = "start") -> RequestRecord:
    return RequestRecord(who=who, source="127.0.0.1", operation=operation, object=object, request=f"r-{object}")


async def write_days(store: Store, clock: Days, days: int, each: int = 3, server: str = "alone") -> None:
    async with writing(store, clock, server) as log:
        for day in range(days):
            await asyncio.gather(*(log.write(record(f"{day}-{number}")) for number in range(each)))
            clock.ms += DAY_MS


async def problem_of(store: Store, server: str = "alone") -> str:
    return (await ChainStore(store).check(server)).problem


async def rewrite(store: Store, segment: AuditSegment, entries: Sequence[bytes]) -> None:
    """What somebody does who can write to the store, and to nothing else."""
    await store.write([RemoveStream(stream_of(segment)), Append(stream_of(segment), entries, 0)])


async def test_what_was_written_is_there_once_in_one_chain(store: Store) -> None:  # SE-4
    clock = Days()
    await write_days(store, clock, 2, each=50)
    await write_days(store, clock, 1, each=50)  # a server that was started again
    found = await ChainStore(store).check("alone")
    assert (found.entries, found.cut, found.problem) == (150, 0, "")
    page = await search(ChainStore(store), AuditQuery(limit=1000))
    assert [entry.number for entry in page.rows] == list(range(150, 0, -1))
    assert len({(entry.at, entry.object) for entry in page.rows}) == 150
    lines = [line async for line in ChainStore(store).export(0, 0)]
    entries = [msgspec.json.decode(line, type=AuditEntry) for line in lines]
    assert [entry.previous for entry in entries] == ["", *(sha256_of(line.rstrip(b"\n")) for line in lines[:-1])]


async def test_it_is_found_by_who_what_and_when_over_all_servers(store: Store) -> None:  # SE-4
    clock = Days()
    begin = clock.ms
    async with writing(store, clock, "east") as east, writing(store, clock, "west") as west:
        for number in range(6):
            clock.ms += 1000
            log = east if number % 2 else west
            await log.write(record(str(number), who="bob" if number > 3 else "ann", operation=f"op{number % 3}"))
    chains = ChainStore(store)

    async def objects(query: AuditQuery) -> list[str]:
        return [entry.object for entry in (await search(chains, query)).rows]

    assert await objects(AuditQuery()) == ["5", "4", "3", "2", "1", "0"]
    assert await objects(AuditQuery(who="bob")) == ["5", "4"]
    assert await objects(AuditQuery(operation="op1")) == ["4", "1"]
    assert await objects(AuditQuery(object="3")) == ["3"]
    assert await objects(AuditQuery(outcome="refused")) == []
    assert await objects(AuditQuery(since=begin + 2000, until=begin + 5000)) == ["3", "2", "1"]
    pages, after = [], ""
    while True:
        page = await search(chains, AuditQuery(limit=2, after=after))
        pages += [entry.object for entry in page.rows]
        if not (after := page.next):
            break
    assert pages == ["5", "4", "3", "2", "1", "0"]
    assert await chains.servers() == ["east", "west"]
    assert [await problem_of(store, server) for server in ("east", "west")] == ["", ""]


async def test_a_changed_entry_is_seen_wherever_it_stands(store: Store) -> None:  # SE-4
    await write_days(store, Days(), 2)
    chains = ChainStore(store)
    for segment in await chains.segments("alone"):
        whole = [entry async for entry in chains.entries(segment)]
        for number in range(3):
            changed = [*whole]
            changed[number] = changed[number].replace(b'"who":"ann"', b'"who":"eve"')
            await rewrite(store, segment, changed)
            assert str(segment.first + number) in await problem_of(store)
        await rewrite(store, segment, whole)
        assert await problem_of(store) == ""


async def test_a_cut_is_seen_at_the_begin_in_the_middle_and_at_the_end(store: Store) -> None:  # SE-4
    await write_days(store, Days(), 3)
    chains = ChainStore(store)
    for segment in await chains.segments("alone"):
        whole = [entry async for entry in chains.entries(segment)]
        for kept in (whole[1:], [whole[0], whole[2]], whole[:2], whole[::-1], [*whole, whole[2]]):
            await rewrite(store, segment, kept)
            assert await problem_of(store), f"{len(kept)} entries from {segment.first} on"
        await rewrite(store, segment, whole)
    found = [document async for document in store.scan(AUDIT_SEGMENT_KIND)]
    await store.write([Delete(AUDIT_SEGMENT_KIND, found[1].id, found[1].version)])
    assert await problem_of(store) == "entries 4 to 6 are missing"


async def test_a_chain_without_its_count_is_no_whole_chain(store: Store) -> None:  # SE-4
    await write_days(store, Days(), 1)
    found = await store.get(AUDIT_CHAIN_KIND, "alone")
    assert found is not None
    await store.write([Delete(AUDIT_CHAIN_KIND, "alone", found.version)])
    assert "is missing" in await problem_of(store)


async def test_what_is_too_old_goes_and_the_rest_stays_verifiable(store: Store) -> None:  # SE-4
    clock = Days()
    await write_days(store, clock, 5)
    service = AuditService(store, lambda: "alone", clock.now, days=2)
    service.log.start()
    await service.cut()
    await service.stop()
    found = await ChainStore(store).check("alone")
    assert (found.cut, found.entries, found.problem) == (9, 7, "")
    rows = (await search(ChainStore(store), AuditQuery())).rows
    assert rows[0].operation == CUT_OPERATION
    assert rows[-1].object == "3-0"
    assert not await store.length("audit/alone/1")
    await write_days(store, clock, 1)
    assert await problem_of(store) == ""
    cut = await store.get(AUDIT_CUT_KIND, "alone")
    assert cut is not None
    await store.write([Delete(AUDIT_CUT_KIND, "alone", cut.version)])
    assert await problem_of(store) == "entries 1 to 9 are missing"


async def test_a_broken_chain_is_not_shortened(store: Store) -> None:  # SE-4
    clock = Days()
    await write_days(store, clock, 4)
    segment = (await ChainStore(store).segments("alone"))[0]
    whole = [entry async for entry in ChainStore(store).entries(segment)]
    await rewrite(store, segment, whole[1:])
    service = AuditService(store, lambda: "alone", clock.now, days=1)
    await service.cut()
    assert await store.get(AUDIT_CUT_KIND, "alone") is None


class LosesAnswers:
    """A store whose answers to writes are lost now and then: nobody knows whether they happened."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        self.calls += 1
        if self.calls % 3 == 1:
            raise StoreUnavailable("it was not even sent")
        done = await self._store.write(writes)
        if self.calls % 3 == 2:
            raise StoreUnavailable("the answer was lost")
        return done


async def test_a_lost_answer_neither_loses_nor_doubles_an_entry(store: Store) -> None:  # SE-4
    wrapped: Store = LosesAnswers(store)  # type: ignore[assignment]  # the rest is the store's own
    clock, acknowledged = Days(), []
    async with writing(wrapped, clock) as log:
        for number in range(30):
            try:
                await log.write(record(str(number)))
                acknowledged.append(str(number))
            except StoreUnavailable:
                continue
    rows = (await search(ChainStore(store), AuditQuery(limit=100))).rows
    found = [entry.object for entry in rows]
    assert len(acknowledged) > 10
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    async with writing(store, clock) as log:
        await log.write(record("last"))
    assert await problem_of(store) == ""


async def test_bytes_that_are_changed_in_the_file_of_the_store_are_seen(tmp_path: Path) -> None:  # SE-4
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await write_days(store, Days(), 1)
    await store.close()
    with sqlite3.connect(tmp_path / "store.db") as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        changed = 0
        for table in tables:
            for column in [row[1] for row in file.execute(f"PRAGMA table_info({table})")]:
                changed += file.execute(
                    f"UPDATE {table} SET {column} = replace(CAST({column} AS TEXT), '\"ann\"', '\"eve\"')"
                    f" WHERE CAST({column} AS TEXT) LIKE '%\"number\":2,%'"
                ).rowcount
    assert changed == 1
    await store.open()
    assert "entry 2" in await problem_of(store)
    await store.close()
