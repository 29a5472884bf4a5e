"""The sessions of browsers and their one-time codes, as the store has them."""  # UI-1

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.services.cluster import browser_sessions
from mendflow.services.cluster.browser_sessions import CODE_KIND, SESSION_KIND, BrowserSessions, StoredSession
from mendflow.stores.contract import Store, StoredDocument
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore


async def stored_in(store: Store) -> list[StoredDocument]:
    return [each for kind in (SESSION_KIND, CODE_KIND) async for each in store.scan(kind)]


class Clock:
    at = 1_800_000_000_000


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "other.db")
    await made.open()
    yield made
    await made.close()


def sessions_of(store: Store, clock: Clock) -> BrowserSessions:
    return BrowserSessions(store, lambda: clock.at)


async def test_a_session_outlives_the_server_and_not_its_time(store: Store) -> None:
    clock = Clock()
    ticket, ends_at = await sessions_of(store, clock).create(StoredSession(token="t"))
    later = sessions_of(store, clock)
    assert (found := await later.find(ticket)) is not None and found.token == "t"
    clock.at = ends_at
    assert await later.find(ticket) is None


async def test_the_store_has_nothing_that_lets_a_browser_in(store: Store) -> None:
    sessions = sessions_of(store, Clock())
    ticket, _ = await sessions.create(StoredSession(token="t"))
    code = (await sessions.create_code(StoredSession(token="t"))).code
    stored = await stored_in(store)
    for secret in (ticket.split(".")[1], code.split(".")[1]):
        assert all(secret not in each.id and secret.encode() not in each.body for each in stored)


async def test_a_ticket_that_was_made_up_is_no_look_into_the_store(store: Store) -> None:
    sessions = sessions_of(store, Clock())
    ticket, _ = await sessions.create(StoredSession(token="t"))
    code = (await sessions.create_code(StoredSession(token="t"))).code
    owner, chance, mark = ticket.split(".")
    for made_up in (
        "",
        "x",
        "a.b",
        "a.b.c",
        f"{owner}.{chance}.",
        f"{owner}.{chance}x.{mark}",
        f"x.{chance}.{mark}",
        code,
    ):
        assert not await sessions.is_genuine(made_up)
        assert await sessions.find(made_up) is None
    assert await sessions.redeem(ticket) is None, "a session is no code"


async def test_an_old_code_is_none(store: Store) -> None:
    clock = Clock()
    sessions = sessions_of(store, clock)
    code = await sessions.create_code(StoredSession(token="t"))
    assert code.expires_at == clock.at + 60_000
    clock.at = code.expires_at
    assert await sessions.redeem(code.code) is None


async def test_a_session_by_a_code_ends_with_the_one_that_made_the_code(store: Store) -> None:
    clock = Clock()
    sessions = sessions_of(store, clock)
    ends = clock.at + 300_000
    ticket, _ = await sessions.create(StoredSession(name="ann", issuer="https://issuer", expires_at=ends))
    for _ in range(3):
        clock.at += 50_000
        session = await sessions.find(ticket)
        assert session is not None
        redeemed = await sessions.redeem((await sessions.create_code(session)).code)
        assert redeemed is not None
        ticket, ends_at = await sessions.create(redeemed)
        assert ends_at == ends
    clock.at = ends
    assert await sessions.find(ticket) is None


async def test_one_token_has_so_many_sessions_and_the_oldest_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_sessions, "SESSIONS_MAX", 3)
    clock = Clock()
    sessions = sessions_of(store, clock)
    other, _ = await sessions.create(StoredSession(token="other"))
    made = []
    for _ in range(5):
        clock.at += 1
        made.append((await sessions.create(StoredSession(token="t")))[0])
    assert [await sessions.find(each) is not None for each in made] == [False, False, True, True, True]
    assert await sessions.find(other) is not None


async def test_what_is_over_is_removed_when_somebody_signs_in(store: Store) -> None:
    clock = Clock()
    await sessions_of(store, clock).create(StoredSession(token="old"))
    await sessions_of(store, clock).create_code(StoredSession(token="old"))
    clock.at += browser_sessions.SESSION_MS
    await sessions_of(store, clock).create(StoredSession(token="new"))
    left = await stored_in(store)
    assert len(left) == 1
