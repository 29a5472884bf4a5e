"""What a SQLite store finds by an index, and what is no key of one."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import RequestError
from mendflow.stores.contract import Delete, FieldCondition, Put, WriteDone
from mendflow.stores.sqlite import migrations
from mendflow.stores.sqlite.store import SqliteStore
from tests.contract.documents import done, put


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


@contextmanager
def plans_of(store: SqliteStore) -> Iterator[list[list[str]]]:
    """How SQLite has read what was read within the block, by its plans: there when it ends."""
    readers: list[sqlite3.Connection] = store._ready().readers.connections
    seen, plans = list[str](), list[list[str]]()
    for each in readers:
        each.set_trace_callback(seen.append)
    yield plans
    for each in readers:
        each.set_trace_callback(None)
    plans += [[row[3].decode() for row in readers[0].execute(f"EXPLAIN QUERY PLAN {each}")] for each in seen]
    assert plans


async def test_searches_by_case_state_and_status_use_an_index(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    fields = ("case", "c"), ("state", "running"), ("status", "running")
    with plans_of(store) as plans:
        for field, value in fields:
            await store.search("job", [FieldCondition(field, value)])
        await put(store, "c/1", b'{"created_at": 7}')
        newest = await store.search("job", order_by="created_at", descending=True, limit=1)
        await store.search("job", order_by="created_at", descending=True, limit=0, after=newest[0])
        await store.count("job", [FieldCondition("case", "c")], by="state")
        await store.count("job", by="state")
    for plan in plans:
        assert any("INDEX documents_by_" in line for line in plan), plan
    await store.close()


async def test_the_newest_cases_of_projects_are_read_by_an_index_and_not_sorted(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    await done(store, Put("case", "a", b'{"started_at": 7, "project": "red"}', 0))
    with plans_of(store) as plans:
        for projects in ([], [FieldCondition("project", ["red", None], "in")], [FieldCondition("project", "red")]):
            where = [*projects, FieldCondition("void", None)]
            [found] = await store.search("case", where, order_by="started_at", descending=True)
            assert not await store.search("case", where, order_by="started_at", descending=True, after=found)
    for plan in plans:
        inner = [line for line in plan if "documents" in line]
        assert inner and all("USING INDEX cases_by_" in line for line in inner), plan
        assert sum("USE TEMP B-TREE" in line for line in plan) <= 1, "only the few rows of the page are sorted"
    await store.close()


async def test_a_case_is_found_by_its_key_by_an_index(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    await done(store, Put("case", "a", b'{"key": "k", "project": "red"}', 0))
    await done(store, Put("case", "b", b'{"key": "", "project": "red"}', 0))
    await done(store, Put("job", "c", b'{"key": "k", "project": "red"}', 0))
    with plans_of(store) as plans:
        for project, count in (("red", 1), ("blue", 0)):
            where = [FieldCondition("key", "k"), FieldCondition("project", [project], "in")]
            assert [each.id for each in await store.search("case", where)] == ["a"][:count]
    for plan in plans:
        assert any("USING INDEX cases_by_key (by_key=?)" in line for line in plan), plan
    assert [each.id for each in await store.search("case", [FieldCondition("key", "")])] == ["b"]
    assert [each.id for each in await store.search("job", [FieldCondition("key", "k")])] == ["c"]
    await store.close()


async def test_later_runs_of_cases_are_found_by_an_index(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    await done(store, Put("case", "a", b'{"stands_for": null, "status": "failed"}', 0))
    await done(store, Put("case", "b", b'{"stands_for": "a", "status": "running"}', 0))
    with plans_of(store) as plans:
        for asked in (FieldCondition("stands_for", "a"), FieldCondition("stands_for", ["a", "c"], "in")):
            [found] = await store.search("case", [asked, FieldCondition("status", "cancelled", "ne")])
            assert found.id == "b" and not await store.search("case", [asked], after=found)
    for plan in plans:
        assert any("USING INDEX cases_by_stands_for (by_stands_for=?)" in line for line in plan), plan
    await store.close()


@pytest.mark.parametrize(
    "state",
    [
        *('"running"', '"\\u00e9\\n"', '""', "7", "-0.5", "1e300", "9223372036854775807", "9223372036854775808"),
        *("true", "false", "null", '["a",1,{"b":null}]', '{"a":"b"}'),
    ],
)
async def test_a_column_has_what_sqlite_finds_in_the_document(tmp_path: Path, state: str) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    await done(store, Put("job", "a", b"{}", 0))
    [version] = [each.version async for each in store.scan("job")]
    await done(store, Put("job", "a", f'{{"state":{state},"more":{{"state":1}},"created_at":5}}'.encode(), version))
    asked = "SELECT by_state, json_extract(body, '$.state'), typeof(by_state), typeof(json_extract(body, '$.state'))"
    [row] = store._ready().main.execute(f"{asked}, by_created, by_case FROM documents").fetchall()
    assert row[0] == row[1] and row[2] == row[3] and row[4:] == (5, None)
    await store.close()


async def test_what_is_no_json_is_refused_and_what_is_no_object_has_no_columns(tmp_path: Path) -> None:
    store = await opened(tmp_path / "store.db")
    for body in (b"", b"{", b'{"state":', b'{"a":1}}', b'{"other": nothing}'):
        with pytest.raises(RequestError, match="a document must be JSON"):
            await store.write([Put("job", "a", body, 0)])
    await done(store, Put("job", "a", b"[1]", 0))
    assert await store.count("job", by="state") == {"": 1}
    await store.close()


async def test_the_state_of_a_snapshot_is_no_key_of_an_index(tmp_path: Path) -> None:  # SE-4
    """Whoever writes beside a key of megabytes reads it."""
    store = await opened(tmp_path / "store.db")
    await done(store, Put("snapshot", "a", b'{"case": "a", "state": "%s"}' % (b"x" * 1_000_000), 0))
    await done(store, Put("job", "a/1", b'{"case": "a", "state": "running"}', 0))
    columns = "by_case, by_state, by_status, by_created, by_started, by_project, by_key"
    rows = {kind: [*rest] for kind, *rest in store._ready().main.execute(f"SELECT kind, {columns} FROM documents")}
    assert rows == {"snapshot": [None] * 7, "job": ["a", "running", *[None] * 5]}
    assert (await store.get("snapshot", "a")) is not None
    await store.close()


@pytest.mark.parametrize("schema", [4, 5])
async def test_a_filled_file_of_a_schema_before_keeps_all_and_has_no_keys_of_snapshots(
    schema: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # SE-4
    before = tuple(step for step in migrations.MIGRATIONS if step.number <= schema)
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", before)
        older.setattr(migrations, "NEWEST", schema)
        connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        migrations.migrate(connection, tmp_path / "store.db")
    bodies = {("snapshot", "a"): '{"case": "a", "state": "xxx"}', ("case", "a"): '{"key": "k", "status": "running"}'}
    bodies |= {("job", f"a/{number}"): f'{{"case": "a", "state": "waiting", "n": {number}}}' for number in range(500)}
    connection.executemany(
        "INSERT INTO documents (kind, id, version, body) VALUES (?, ?, ?, ?)",
        [(*key, version, body) for version, (key, body) in enumerate(bodies.items(), 1)],
    )
    connection.execute("UPDATE versions SET upto = 1000")
    connection.execute("INSERT INTO entries VALUES ('s', 0, 'x')")
    connection.close()
    store = await opened(tmp_path / "store.db")
    assert f"is brought from schema {schema} to" in caplog.text
    kept = store._ready().main.execute("SELECT kind, id, version, body FROM documents ORDER BY rowid").fetchall()
    assert kept == [(*key, version, body) for version, (key, body) in enumerate(bodies.items(), 1)]
    assert await store.count("job", [FieldCondition("case", "a")], by="state") == {"waiting": 500}
    assert [each.id for each in await store.search("case", [FieldCondition("key", "k")])] == ["a"]
    assert await store.count("snapshot", by="state") == {"": 1}
    assert await store.read("s") == [b"x"]
    assert store._ready().main.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    await store.close()


async def test_a_file_stays_at_its_schema_if_a_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path / "store.db")
    await done(store, Put("job", "a", b"{}", 0))
    await store.close()
    broken = migrations.SqliteMigration(migrations.NEWEST + 1, "no", ("DELETE FROM documents", "SELECT nothing"))
    with monkeypatch.context() as later:
        later.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, broken))
        later.setattr(migrations, "NEWEST", migrations.NEWEST + 1)
        with pytest.raises(RequestError):
            await opened(tmp_path / "store.db")
    store = await opened(tmp_path / "store.db")
    assert await store.get("job", "a") is not None
    await store.close()


async def test_large_documents_are_put_in_order_without_writing_them(tmp_path: Path) -> None:  # SE-3
    store = await opened(tmp_path / "store.db")
    large = {"project": "red", "text": "x" * 1_000_000}
    many = [Put("case", f"c-{at}", msgspec.json.encode({"started_at": at, "rank": at, **large}), 0) for at in range(24)]
    for each in many:
        await done(store, each)
    await store.close()  # what is still to be copied from the log is copied now, and not while bytes are counted
    store = await opened(tmp_path / "store.db")
    before = written_bytes()
    newest = await store.search("case", [FieldCondition("project", "red")], order_by="started_at", descending=True)
    first = await store.search("case", order_by="rank", descending=True)
    named = await store.get_many("case", [each.id for each in many])
    assert [each.id for each in newest] == [each.id for each in first] == [each.id for each in reversed(many)]
    assert [each.id for each in named] == [each.id for each in many]
    assert written_bytes() - before < 1_000_000
    await store.close()


def written_bytes() -> int:
    """What this process has written to files, whether they are kept or not."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


@pytest.mark.parametrize("kind", ["job", "case", "letter"])
async def test_columns_follow_each_change_of_a_document(tmp_path: Path, kind: str) -> None:  # SE-4
    """Only those that have changed since the last write are written, which is remembered."""
    bodies = (
        b'{"case":"c","state":"waiting","created_at":5,"key":"k"}',
        b'{"case":"c","state":"running","created_at":5,"key":"k","more":1}',
        b'{"case":"c","state":"running","created_at":5,"key":"k","more":2}',
        b'{"case":"c","state":"running","created_at":6,"status":"s","key":"k"}',
        b'{"case":"c","state":1,"created_at":6,"status":"s","key":"l"}',
        b'{"case":"c","state":1.0,"created_at":6,"status":"s","key":"l"}',
        b'{"case":"c","state":true,"created_at":6.5,"status":"s"}',
        b'{"case":"c","state":2,"created_at":6.5,"status":"s"}',
        b'{"state":2}',
        b'{"more":1}',
        b'{"case":"d","state":"waiting"}',
        b"[1]",
        b'{"state":"waiting"}',
    )
    store = await opened(tmp_path / "store.db")
    columns = {"by_case": "case", "by_state": "state", "by_status": "status", "by_created": "created_at"}
    if kind == "case":
        columns["by_key"] = "key"
    pairs = ", ".join(f"{name}, json_extract(body, '$.{field}')" for name, field in columns.items())
    types = ", ".join(f"typeof({name}), typeof(json_extract(body, '$.{field}'))" for name, field in columns.items())
    version = 0
    for reopened in (False, True):
        for body in bodies:
            if reopened:
                await store.close()
                store = await opened(tmp_path / "store.db")
            [[outcome]] = [await store.write([Put(kind, "a", body, version)])]
            assert isinstance(outcome, WriteDone)
            version = outcome.version
            row = store._ready().main.execute(f"SELECT body, {pairs}, {types} FROM documents").fetchone()
            assert row[0] == body.decode() and row[1::2] == row[2::2], (body, row)
    await store.close()


async def test_columns_of_a_document_that_is_made_again_are_written_anew(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    made = b'{"case":"c","state":"waiting","created_at":5}'
    [first] = await store.write([Put("job", "a", made, 0)])
    assert isinstance(first, WriteDone)
    await store.write([Delete("job", "a", first.version)])
    [again] = await store.write([Put("job", "a", made.replace(b"waiting", b"running"), 0)])
    assert isinstance(again, WriteDone)
    await store.write([Delete("job", "a", again.version), Put("job", "a", made, 0)])
    asked = [FieldCondition("case", "c"), FieldCondition("state", "waiting")]
    assert [each.id for each in await store.search("job", asked)] == ["a"]
    assert [each.id for each in await store.search("job", order_by="created_at", descending=True)] == ["a"]
    await store.close()


async def test_columns_are_written_anew_after_a_failed_transaction(tmp_path: Path) -> None:  # SE-4
    store = await opened(tmp_path / "store.db")
    made = b'{"case":"c","state":"waiting","created_at":5}'
    good = Put("job", "a", made, 0)
    with pytest.raises(RequestError, match="a document must be JSON"):
        await store.write([good, Put("job", "b", b'{"state":1, "more":}', 0)])
    [done_] = await store.write([good])
    assert isinstance(done_, WriteDone)
    row = store._ready().main.execute("SELECT by_case, by_state, by_created FROM documents").fetchall()
    assert row == [("c", "waiting", 5)]
    await store.close()
