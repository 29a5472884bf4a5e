"""The stores against a plain dict: any writes, in any batches, at the same time or one after another."""

import asyncio
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.stores.contract import (
    Append,
    Delete,
    FieldCondition,
    Put,
    RemoveStream,
    Store,
    Write,
    WriteConflict,
    WriteDone,
)
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore

ids = st.sampled_from(["a", "b", "ü/1"])
expected = st.integers(0, 3)
bodies = st.integers(0, 9).map(lambda n: b"%d" % n)
writes = st.one_of(
    st.builds(Put, kind=st.sampled_from(["job", "case"]), id=ids, body=bodies, expected=expected),
    st.builds(Delete, kind=st.just("job"), id=ids, expected=expected),
    st.builds(Append, stream=ids, entries=st.lists(st.binary(max_size=3), max_size=3), expected=expected),
    st.builds(RemoveStream, stream=ids),
)
rounds = st.lists(st.lists(st.lists(writes, max_size=4), max_size=4), max_size=5)


class Model:
    """What a store is, in a few lines. Its versions count from 1 over all documents, as those of a new store do."""

    def __init__(self) -> None:
        self.version = 0
        self.documents: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.streams: dict[str, list[bytes]] = {}

    def apply(self, write: Write) -> WriteDone | WriteConflict:
        if isinstance(write, Append):
            stream = self.streams.setdefault(write.stream, [])
            if len(stream) != write.expected:
                return WriteConflict("stream", write.stream, write.expected, len(stream))
            stream.extend(write.entries)
            return WriteDone(len(stream))
        if isinstance(write, RemoveStream):
            self.streams[write.stream] = []
            return WriteDone(0)
        version, _ = self.documents.get((write.kind, write.id), (0, b""))
        if version != write.expected:
            return WriteConflict(write.kind, write.id, write.expected, version)
        if isinstance(write, Put):
            self.version += 1
            self.documents[write.kind, write.id] = (self.version, write.body)
            return WriteDone(self.version)
        self.documents.pop((write.kind, write.id), None)
        return WriteDone(0)


async def compare(store: Store, model: Model) -> None:
    for kind in ("job", "case"):
        found = {(kind, each.id): (each.version, each.body) async for each in store.scan(kind)}
        assert found == {key: value for key, value in model.documents.items() if key[0] == kind}
        for _, id in found:
            document = await store.get(kind, id)
            assert document is not None and (document.version, document.body) == found[kind, id]
    assert sorted(await store.kinds()) == sorted({kind for kind, _ in model.documents})
    for name, entries in model.streams.items():
        assert await store.read(name) == entries
        assert await store.length(name) == len(entries)


async def drive(store: Store, calls: list[list[list[Write]]]) -> Model:
    """Each round's calls are made at once; a store takes calls in the order in which they were made."""
    model = Model()
    for batches in calls:
        answers = await asyncio.gather(*(store.write(batch) for batch in batches))
        assert answers == [[model.apply(write) for write in batch] for batch in batches]
        await compare(store, model)
    return model


@given(rounds)
def test_the_store_in_memory_does_what_the_model_does(calls: list[list[list[Write]]]) -> None:  # JS-1
    async def run() -> None:
        store = MemoryStore()
        await store.open()
        await drive(store, calls)
        await store.close()

    asyncio.run(run())


@given(rounds)
def test_sqlite_does_what_the_model_does_and_still_after_opening_again(calls: list[list[list[Write]]]) -> None:  # JS-1
    async def run(folder: str) -> None:
        path = Path(folder) / "store.db"
        store = SqliteStore(path)
        await store.open()
        model = await drive(store, calls)
        await store.close()
        again = SqliteStore(path)
        await again.open()
        await compare(again, model)
        await again.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, -1.5]),
    st.sampled_from(["a", "b", "ß", "running"]),
)
names = st.one_of(st.none(), st.sampled_from(["running", "failed", "ß"]))  # a state is a text, or not given
documents = st.lists(
    st.fixed_dictionaries({}, optional={"state": names, "n": scalars, "deep": st.fixed_dictionaries({"n": scalars})}),
    max_size=8,
)
fields = st.sampled_from(["state", "n", "deep.n", "deep.none", "n.deep"])
ordered = st.one_of(st.integers(-2, 2), st.sampled_from([0.5]), st.sampled_from(["a", "b", "ß", "running"]))
conditions = st.one_of(
    st.builds(FieldCondition, field=fields, value=scalars, op=st.sampled_from(["eq", "ne"])),
    st.builds(FieldCondition, field=fields, value=ordered, op=st.sampled_from(["lt", "le", "gt", "ge"])),
    st.builds(FieldCondition, field=fields, value=st.lists(scalars, max_size=3), op=st.just("in")),
)


@given(documents, st.lists(conditions, max_size=3), fields, st.booleans())
def test_every_store_finds_the_same(
    given_documents: list[dict[str, object]], where: list[FieldCondition], order_by: str, descending: bool
) -> None:  # JS-6
    async def run(folder: str) -> None:
        answers = []
        for store in (MemoryStore(), SqliteStore(Path(folder) / "store.db")):
            await store.open()
            puts = [Put("job", str(n), msgspec.json.encode(each), 0) for n, each in enumerate(given_documents)]
            await store.write(puts)
            found = await store.search("job", where, order_by=order_by, descending=descending)
            answers.append(
                ([each.id for each in found], await store.count("job", where), await store.count("job", by=order_by))
            )
            await store.close()
        assert answers[0] == answers[1]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@pytest.mark.parametrize("size", [1, 2, 3, 255, 256, 257, 1000])
async def test_every_size_of_group_is_written_whole(size: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    entries = [b"%d" % n for n in range(size)]
    await store.write([Append("s", entries, 0), *(Put("job", f"{n:04}", b"%d" % n, 0) for n in range(size))])
    assert await store.read("s") == entries
    assert [each.body async for each in store.scan("job")] == entries
    await store.close()
