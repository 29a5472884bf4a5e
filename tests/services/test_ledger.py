"""The ledger: writes in order, a barrier in front of the door, and one way to break."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.services.base.ledger import DEFERRED_MAX, Ledger
from mendflow.stores.contract import Append, Put, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S


class Note(msgspec.Struct):
    text: str


class SlowStore(MemoryStore):
    """Counts what arrives, and waits for a word before it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[Write]] = []
        self.gate = asyncio.Event()
        self.fail = ""

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        self.calls.append(list(writes))
        await self.gate.wait()
        if self.fail:
            raise StoreUnavailable(self.fail)
        return await super().write(writes)


@pytest.fixture
async def store() -> SlowStore:
    store = SlowStore()
    await store.open()
    return store


def broken_reasons(store: SlowStore) -> tuple[Ledger, list[str]]:
    reasons: list[str] = []
    ledger = Ledger(store, reasons.append)
    ledger.start()
    return ledger, reasons


async def test_settled_returns_only_when_all_that_was_noted_before_is_written(store: SlowStore) -> None:
    ledger, _ = broken_reasons(store)
    ledger.touch("note", "a", Note("one"))
    settled = asyncio.create_task(ledger.settled())
    await asyncio.sleep(0.01)
    assert not settled.done()
    store.gate.set()
    await settled
    found = await store.get("note", "a")
    assert found is not None
    assert found.body == b'{"text":"one"}'
    await ledger.stop()


async def test_what_gathers_during_a_write_goes_out_together_in_its_order(store: SlowStore) -> None:
    ledger, _ = broken_reasons(store)
    ledger.touch("note", "a", Note("one"))
    await asyncio.sleep(0.01)
    ledger.append("s", 0, b"1")
    ledger.touch("note", "b", Note("x"))
    ledger.append("s", 1, b"2")
    ledger.touch("note", "b", Note("y"))
    store.gate.set()
    await ledger.settled()
    assert store.calls[1] == [Append("s", [b"1", b"2"], 0), Put("note", "b", b'{"text":"y"}', 0)]
    await ledger.stop()


async def test_a_document_is_written_again_at_its_next_version(store: SlowStore) -> None:
    store.gate.set()
    ledger, _ = broken_reasons(store)
    for text in ("one", "two", "three"):
        ledger.touch("note", "a", Note(text))
        await ledger.settled()
    found = await store.get("note", "a")
    assert found is not None
    assert (found.version, found.body) == (3, b'{"text":"three"}')
    await ledger.stop()


async def test_deferred_documents_go_out_together_by_id_and_nobody_waits_for_them(store: SlowStore) -> None:
    ledger, _ = broken_reasons(store)
    for id in ("c", "a", "b"):
        ledger.touch_later("note", id, Note(id))
    await ledger.settled()
    assert store.calls == []
    assert ledger.busy("note", "a")
    store.gate.set()
    await ledger.stop()
    assert [[write.id for write in call if isinstance(write, Put)] for call in store.calls] == [["a", "b", "c"]]


async def test_deferred_documents_are_written_soon_and_when_there_are_many(store: SlowStore) -> None:
    ledger, _ = broken_reasons(store)
    store.gate.set()
    ledger.touch_later("note", "a", Note("one"))
    while ledger.busy("note", "a"):
        await asyncio.sleep(0.01)
    for number in range(DEFERRED_MAX):
        ledger.touch_later("note", f"n{number}", Note("many"))
    await ledger.settled()
    assert len(store.calls[-1]) == DEFERRED_MAX


async def test_a_failed_write_breaks_the_ledger_and_tells_everyone_who_waits(store: SlowStore) -> None:
    ledger, reasons = broken_reasons(store)
    ledger.touch("note", "a", Note("one"))
    first = asyncio.create_task(ledger.settled())
    await asyncio.sleep(0.01)
    second = asyncio.create_task(ledger.settled())
    store.fail = "the disk is full"
    store.gate.set()
    for waiter in (first, second):
        with pytest.raises(StoreUnavailable, match="disk is full"):
            await waiter
    with pytest.raises(StoreUnavailable):
        await ledger.settled()
    assert reasons == ["the disk is full"]
    await ledger.stop()


async def test_whoever_waits_hears_of_any_other_error_of_the_store_too(store: SlowStore) -> None:
    store.gate.set()
    ledger, reasons = broken_reasons(store)
    ledger.touch("note", "a", object())  # which no store can keep
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(TypeError, match="object"):
            await ledger.settled()
        with pytest.raises(StoreUnavailable, match="could not be written"):
            await ledger.settled()
        await ledger.stop()
    assert len(reasons) == 1


async def test_someone_else_having_written_breaks_the_ledger_too(store: SlowStore) -> None:
    store.gate.set()
    ledger, reasons = broken_reasons(store)
    await MemoryStore.write(store, [Put("note", "a", b"{}", 0)])
    ledger.touch("note", "a", Note("mine"))
    with pytest.raises(StoreUnavailable, match="changed by another server"):
        await ledger.settled()
    assert len(reasons) == 1
    await ledger.stop()


async def test_a_store_that_is_away_in_the_middle_of_a_change_breaks_the_ledger(store: SlowStore) -> None:  # law 1
    ledger, reasons = broken_reasons(store)
    with pytest.raises(StoreUnavailable), ledger.atomic():
        raise StoreUnavailable("gone")
    assert reasons == ["gone"]
    with pytest.raises(StoreUnavailable):
        await ledger.settled()
    await ledger.stop()
