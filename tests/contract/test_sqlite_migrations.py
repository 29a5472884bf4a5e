"""A SQLite file of an older schema is brought to the newest: each step once, and none that has no room."""

import hashlib
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores import schema_versions
from mendflow.stores.contract import Put
from mendflow.stores.sqlite import migrations as sqlite_migrations
from mendflow.stores.sqlite.store import SqliteStore
from tests.contract.documents import put


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def test_a_file_of_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await opened(path)
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 'from the future')")
    connection.close()
    with pytest.raises(
        StoreUnavailable,
        match=rf"newer mendflow \(schema 99; this one knows up to {sqlite_migrations.NEWEST}\): upgrade",
    ):
        await opened(path)


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [step.number for step in sqlite_migrations.MIGRATIONS] == [*range(1, sqlite_migrations.NEWEST + 1)]


def test_a_step_that_files_have_taken_stays_as_it_is() -> None:
    """Whoever changes one makes files that differ under the same number: a new need is a new step."""
    digests = {
        step.number: hashlib.sha256("\n".join(step.statements).encode()).hexdigest()[:8]
        for step in sqlite_migrations.MIGRATIONS
    }
    assert digests == {
        1: "1513c1f4",
        2: "2a8aa028",
        3: "5b1f4287",
        4: "b681a287",
        5: "e6e4942c",
        6: "cddd406a",
    }


def of_schema_4(path: Path, patch: pytest.MonkeyPatch, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    with patch.context() as patch:
        patch.setattr(sqlite_migrations, "MIGRATIONS", sqlite_migrations.MIGRATIONS[:4])
        sqlite_migrations.migrate(connection, path)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def free_on_disk(patch: pytest.MonkeyPatch, free: int) -> None:
    patch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))


LARGE_DOCUMENT = (
    "INSERT INTO documents (kind, id, version, body)"
    """ VALUES ('job', 'a', 1, '"' || hex(zeroblob(500000)) || '"')"""
)


async def test_a_file_is_not_brought_to_a_schema_that_its_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    of_schema_4(path, monkeypatch, LARGE_DOCUMENT)
    free_on_disk(monkeypatch, 2_000_000)
    told = r"from schema 4 to 6, which takes about 3\.[0-9] MB more of its disk for a time, and 2\.0 MB are free there"
    with pytest.raises(StoreUnavailable, match=told):
        await opened(path)
    assert schema_versions.sqlite_schema(path).present == 4
    free_on_disk(monkeypatch, 4_000_000)
    store = await opened(path)
    assert await store.get("job", "a") is not None
    await store.close()


async def test_only_what_is_copied_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals stay where they are, however long they are."""
    path, journal = tmp_path / "s.db", "INSERT INTO entries VALUES ('j', {}, zeroblob(100000))"
    of_schema_4(path, monkeypatch, *(journal.format(number) for number in range(20)))
    free_on_disk(monkeypatch, 1_000_000)
    await (await opened(path)).close()
    assert schema_versions.sqlite_schema(path).present == sqlite_migrations.NEWEST


JOURNAL = "INSERT INTO entries VALUES ('j', 0, zeroblob(2000000))"
SMALL_DOCUMENTS = (
    "INSERT INTO documents (kind, id, version, body)"
    " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)"
    """ SELECT 'job', 'flow/' || n, n, '{"case": "flow", "state": "done"}' FROM numbers"""
)


async def test_rows_and_indexes_of_small_documents_need_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bodies are the least of it."""
    path = tmp_path / "s.db"
    of_schema_4(path, monkeypatch, SMALL_DOCUMENTS, JOURNAL)
    free_on_disk(monkeypatch, 1_000_000)
    with pytest.raises(StoreUnavailable, match=r"takes about 1\.[1-9] MB more of its disk"):
        await opened(path)
    free_on_disk(monkeypatch, 2_000_000)
    await (await opened(path)).close()


class WithoutStatistics(sqlite3.Connection):
    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("FROM dbstat", "FROM nothing_of_the_kind"), *values)


def test_the_whole_file_counts_where_sqlite_cannot_tell_its_pages_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    of_schema_4(path, monkeypatch, SMALL_DOCUMENTS, JOURNAL)
    free_on_disk(monkeypatch, 2_000_000)
    connection = sqlite3.connect(path, isolation_level=None, factory=WithoutStatistics)
    with pytest.raises(StoreUnavailable, match=r"takes about [789]\.[0-9] MB more of its disk"):
        sqlite_migrations.migrate(connection, path)
    free_on_disk(monkeypatch, 10_000_000)
    sqlite_migrations.migrate(connection, path)
    connection.close()


async def test_a_migration_that_fails_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    store = await opened(path)
    await store.write([Put("job", "a", b"1", 0)])
    await store.close()
    number = sqlite_migrations.NEWEST + 1
    broken = sqlite_migrations.SqliteMigration(number, "broken", ("CREATE TABLE half (x)", "CREATE NONSENSE"))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_migrations, "MIGRATIONS", (*sqlite_migrations.MIGRATIONS, broken))
        patch.setattr(sqlite_migrations, "NEWEST", number)
        with pytest.raises(StoreUnavailable, match="NONSENSE"):
            await opened(path)
    store = await opened(path)
    tables = store._ready().main.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall()
    assert tables == [] and await store.get("job", "a") is not None
    await store.close()


async def test_a_file_of_the_first_schema_goes_on_with_greater_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_migrations, "MIGRATIONS", sqlite_migrations.MIGRATIONS[:1])
        sqlite_migrations.migrate(connection, tmp_path / "s.db")
    connection.execute("INSERT INTO documents (kind, id, version, body) VALUES ('job', 'a', 41, '1')")
    connection.close()
    store = await opened(tmp_path / "s.db")
    assert await put(store, "a", b"2", 41) > 41
    await store.close()
