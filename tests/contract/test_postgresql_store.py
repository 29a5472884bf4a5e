"""What is PostgreSQL's own: what it says when something is wrong, its schema, and how a group is sent."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mendflow.core.model.errors import InvalidRequest, RequestError, StoreUnavailable
from mendflow.stores.contract import Append, FieldCondition, Put
from mendflow.stores.postgresql import connections as postgresql_links
from mendflow.stores.postgresql import migrations as postgresql_migrations
from mendflow.stores.postgresql import writer as postgresql_writer
from mendflow.stores.postgresql.backup import back_up_postgresql, restore_postgresql
from mendflow.stores.postgresql.store import PostgresqlStore
from tests.contract.backends import Backend, Postgresql, name_of
from tests.contract.documents import body, ids, outcomes, put
from tests.servers.postgresql import PASSWORD, QUOTED_PASSWORD, USER, PostgresqlServer


@pytest.fixture
def server(backends: Callable[[str], Backend]) -> PostgresqlServer:
    backend = backends("postgresql")
    assert isinstance(backend, Postgresql)
    return backend.server


@pytest.fixture
def url(server: PostgresqlServer, tmp_path: Path) -> str:
    return f"{server.url}?schema={name_of(tmp_path)}"


async def opened(url: str) -> PostgresqlStore:
    store = PostgresqlStore.from_url(url)
    await store.open()
    return store


async def asked(url: str, query: str) -> list[tuple[Any, ...]]:
    """What the query gives; of several, the last."""
    address, _, schema = url.partition("?schema=")
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(f'SET search_path TO "{schema}"'.encode())
        cursor = await connection.execute(query.encode())
        while cursor.nextset():
            pass
        return await cursor.fetchall() if cursor.description else []


# What is said


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((QUOTED_PASSWORD, "wrong-secret"), "the user or the password is wrong: check the URL"),
        ((f"{USER}:", "stranger:"), "the user or the password is wrong"),
        (("/postgres?", "/nowhere?"), "there is no such database: check the URL, or make it with createdb"),
        (
            ("&patience", "&sslmode=require&patience"),
            "the server speaks no TLS: switch it on there, or choose another sslmode in the URL",
        ),
    ],
)
async def test_what_keeps_us_from_connecting_is_said_at_once_and_without_the_password(
    server: PostgresqlServer, change: tuple[str, str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = PostgresqlStore.from_url(f"{server.url}?schema=unused&patience=0.2".replace(*change))
    with pytest.raises(StoreUnavailable) as refused:
        await store.open()
    assert told in refused.value.message and str(server.port) in refused.value.message
    for secret in (PASSWORD, QUOTED_PASSWORD, "wrong-secret"):
        assert secret not in refused.value.message + caplog.text


async def test_a_user_who_may_not_make_the_schema_is_told_what_to_grant(url: str, server: PostgresqlServer) -> None:
    role = url.partition("?schema=")[2]
    await asked(url, f"CREATE ROLE {role} LOGIN PASSWORD 'plain'")
    login = url.replace(f"{USER}:{QUOTED_PASSWORD}", f"{role}:plain")
    with pytest.raises(StoreUnavailable, match="grant it CREATE on the database"):
        await opened(login)
    await asked(url, f"CREATE SCHEMA {role} AUTHORIZATION {role}")
    store = await opened(login)
    await put(store, "a")
    await store.close()


async def test_an_id_that_no_text_can_be_is_refused_and_harms_nobody_else(url: str) -> None:
    store = await opened(url)
    bad, odd, good = await asyncio.gather(
        store.write([Put("job", "a\0b", b"1", 0), Put("job", "x", b"1", 0)]),
        store.write([Put("job", "\ud800", b"1", 0)]),
        store.write([Put("job", "good", b"1", 0)]),
        return_exceptions=True,
    )
    for refused in (bad, odd):
        assert isinstance(refused, RequestError) and refused.code == "bad-document", refused
    assert isinstance(good, list) and outcomes(good) == ["WriteDone"]
    assert await store.get("job", "x") is None
    await store.close()


# The schema


async def test_a_schema_of_a_newer_mendflow_is_refused_and_left_as_it_is(url: str) -> None:
    await (await opened(url)).close()
    await asked(url, "INSERT INTO schema_version VALUES (99, 'from the future')")
    with pytest.raises(StoreUnavailable, match=r"newer mendflow \(schema 99; this one knows up to \d+\): upgrade"):
        await opened(url)


async def test_a_backup_says_which_schema_it_has_and_a_newer_one_is_not_restored(url: str, tmp_path: Path) -> None:
    await (await opened(url)).close()
    await asked(url, "DELETE FROM schema_version WHERE number > 1")
    older = await asyncio.to_thread(back_up_postgresql, url, tmp_path / "older", "1.0")
    assert older.schema == 1
    await asked(url, "INSERT INTO schema_version VALUES (99, 'from the future')")
    newer = await asyncio.to_thread(back_up_postgresql, url, tmp_path / "newer", "9.9")
    assert newer.schema == 99
    with pytest.raises(
        InvalidRequest, match=r"newer mendflow \(schema 99, made by mendflow 9\.9; this one knows up to"
    ):
        await restore_postgresql(tmp_path / "newer", f"{url}_restored")
    assert await restore_postgresql(tmp_path / "older", f"{url}_restored") == older


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [step.number for step in postgresql_migrations.MIGRATIONS] == [*range(1, postgresql_migrations.NEWEST + 1)]


async def test_a_migration_that_fails_leaves_no_trace(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(url)
    await put(store, "a")
    await store.close()
    number = postgresql_migrations.NEWEST + 1
    broken = postgresql_migrations.PostgresqlMigration(
        number, "broken", ("CREATE TABLE half (x int)", "CREATE NONSENSE")
    )
    with monkeypatch.context() as patch:
        patch.setattr(postgresql_migrations, "MIGRATIONS", (*postgresql_migrations.MIGRATIONS, broken))
        patch.setattr(postgresql_migrations, "NEWEST", number)
        with pytest.raises(StoreUnavailable, match="NONSENSE"):
            await opened(url)
    store = await opened(url)
    assert await asked(url, "SELECT to_regclass('half')::text") == [(None,)]
    assert await store.get("job", "a") is not None
    await store.close()


# Writing


@pytest.mark.parametrize("documents", [0, 1, 40, 400])
async def test_one_document_is_found_by_its_key_while_nothing_is_known_of_the_table(url: str, documents: int) -> None:
    # A session keeps the plan that it made when the table was new.
    store = await opened(url)
    await store.write([Put("job", f"a{n}", body({"state": "running", "case": "c"}), 0) for n in range(documents)])
    await store.close()
    update = "UPDATE documents SET body = body WHERE kind = $1 AND id = $2 AND version = $3"
    plan = await asked(
        url,
        f"SET plan_cache_mode = force_generic_plan; PREPARE one (text, text, bigint) AS {update}; "
        "EXPLAIN EXECUTE one ('job', 'a', 1)",
    )
    assert any("documents_pkey" in line for (line,) in plan), plan


async def test_commits_wait_for_the_disk_whatever_the_database_says(url: str, server: PostgresqlServer) -> None:
    role = url.partition("?schema=")[2]
    await asked(url, f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'plain'")
    await asked(url, f"ALTER ROLE {role} SET synchronous_commit = off")
    store = await opened(url.replace(f"{USER}:{QUOTED_PASSWORD}", f"{role}:plain"))
    assert await store._readers.rows(b"SHOW synchronous_commit") == [(b"on",)]
    await store.close()


async def test_calls_made_together_share_one_round_trip(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(url)
    sent: list[bytes] = []
    real = postgresql_links.rows_of

    async def counted(link: Any, statement: bytes, params: Any, *, prepare: bool = False) -> Any:
        sent.append(statement)
        return await real(link, statement, params, prepare=prepare)

    monkeypatch.setattr(postgresql_writer, "rows_of", counted)
    await put(store, "first")
    sent.clear()
    await asyncio.gather(*(store.write([Put("job", str(n), b"1", 0), Append("s", [b"x"], n)]) for n in range(200)))
    assert len(sent) == 1
    await store.close()


async def test_a_writer_whose_row_another_life_has_taken_takes_it_back(url: str) -> None:
    """So it is when the request to begin a life was given up and arrives late."""
    store = await opened(url)
    version = await put(store, "a")
    await asked(url, "UPDATE writers SET life = life + 1")
    assert await put(store, "a", b"2", version) > version
    await asked(url, "DELETE FROM writers")
    await put(store, "b")
    await store.close()
    assert await asked(url, "SELECT count(*) FROM writers") == [(0,)]


async def test_connections_that_the_server_ends_are_made_anew(url: str) -> None:
    store = await opened(url)
    version = await put(store, "a")
    for _ in range(3):
        await asked(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mendflow'")
        assert await store.get("job", "a") is not None
        version = await put(store, "a", b"2", version)
    await store.close()


async def test_fields_too_long_for_an_index_are_found_all_the_same(url: str) -> None:
    store = await opened(url)
    long = "x" * 100_000
    await put(store, "a", body({"state": long, "case": "c"}))
    assert ids(await store.search("job", [FieldCondition("state", long)])) == ["a"]
    assert ids(await store.search("job", [FieldCondition("case", "c"), FieldCondition("state", None, "ne")])) == ["a"]
    assert await store.count("job", by="state") == {long: 1}
    await store.close()


async def test_searches_by_case_state_and_status_use_an_index(url: str) -> None:
    store = await opened(url)
    fields = ("case", "state", "status")
    await store.write([Put("job", str(n), body({field: f"{field}{n}" for field in fields}), 0) for n in range(3000)])
    await asked(url, "ANALYZE documents")
    for field in fields:
        query = f"EXPLAIN SELECT id FROM documents d WHERE d.kind = 'job' AND d.by_{field} = 'x'"
        assert f"documents_by_{field}" in str(await asked(url, query))
        assert ids(await store.search("job", [FieldCondition(field, f"{field}7")])) == ["7"]
    await store.close()
