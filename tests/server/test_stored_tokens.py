"""Tokens in the store: made, used, expired and revoked."""  # SE-1

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.access_tokens import CreatedToken, TokenRequest
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unauthorized
from mendflow.core.model.principals import Principal, project_name_flaw
from mendflow.server.access import AccessControl, single_token
from mendflow.server.runner import HttpServer
from mendflow.services.cluster import access_tokens
from mendflow.services.cluster.access_tokens import EXPIRED_KEPT_MS, TOKENS_ID, TOKENS_KIND, USE_KIND, AccessTokens
from mendflow.stores.contract import Put, Store
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.patience import until
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import job_flow

BOSS = "the-token-of-the-boss"
DAY_MS = 86_400_000


class Tokens(AccessTokens):
    """Tokens as one server knows them, with a clock that a test sets."""

    def __init__(self, store: Store) -> None:
        self.at = 1_800_000_000_000
        super().__init__(store, lambda: self.at)

    async def new(self, name: str, **more: object) -> CreatedToken:
        return await self.create(msgspec.convert({"name": name, **more}, TokenRequest), who="boss")

    def knows(self, made: CreatedToken) -> Principal | None:
        found = self.find(hashlib.sha256(made.token.encode()).hexdigest())
        return found[1] if found is not None and not self.is_over(found[0]) else None


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    await made.open()
    yield made
    await made.close()


async def test_the_store_has_the_hash_of_a_token_and_never_the_token(store: Store) -> None:
    tokens = Tokens(store)
    made = await tokens.new("ann", roles=["user"])
    (document,) = [found async for found in store.scan(TOKENS_KIND)]
    assert made.token.encode() not in document.body
    assert hashlib.sha256(made.token.encode()).hexdigest().encode() in document.body
    assert made.token not in repr(made)
    assert made.token not in str(await tokens.all())


async def test_a_token_says_who_has_it_and_what_that_may(store: Store) -> None:
    tokens = Tokens(store)
    made = await tokens.new("ann", roles=["user", "editor"], projects={"genomics": "author"})
    assert tokens.knows(made) == Principal("ann", frozenset({"user", "editor"}), {"genomics": "author"})
    looks = await tokens.new("eve", projects={"genomics": "viewer"})
    assert tokens.knows(looks) == Principal("eve", frozenset({"reader"}), {"genomics": "viewer"})
    works = await tokens.new("bob", projects={"genomics": "viewer", "climate": "operator"})
    assert works.view.roles == ["user"] and (await tokens.new("joe")).view.roles == ["user"]


async def test_another_server_knows_of_a_token_and_of_its_end_when_it_reads_again(store: Store) -> None:
    one, two = Tokens(store), Tokens(store)
    made = await one.new("ann")
    await two.read()
    assert two.knows(made) is not None
    await two.revoke(made.view.id)
    assert two.knows(made) is None, "at once, where it was asked"
    await one.read()
    assert one.knows(made) is None


async def test_tokens_that_two_servers_make_at_once_are_both_there(store: Store) -> None:
    one, two = Tokens(store), Tokens(store)
    await one.read()
    await two.read()
    first, second = await one.new("ann"), await two.new("bob")
    await one.read()
    assert one.knows(first) and one.knows(second)


async def test_a_name_revokes_all_of_its_tokens_and_an_id_one(store: Store) -> None:
    tokens = Tokens(store)
    made = [await tokens.new("ann") for _ in range(3)]
    other = await tokens.new("bob")
    assert [each.id for each in await tokens.revoke(made[0].view.id)] == [made[0].view.id]
    assert len(await tokens.revoke("ann")) == 2
    assert [each.name for each in await tokens.all()] == ["bob"]
    assert tokens.knows(other)
    with pytest.raises(NotFound, match="mendflow admin tokens"):
        await tokens.revoke("ann")


async def test_an_expired_token_is_listed_for_a_while_and_then_forgotten(store: Store) -> None:
    tokens = Tokens(store)
    made = await tokens.new("ann", expires_ms=DAY_MS)
    assert made.view.expires_at == tokens.at + DAY_MS
    tokens.at += DAY_MS - 1
    assert tokens.knows(made)
    tokens.at += 1
    assert tokens.knows(made) is None
    assert [each.expired for each in await tokens.all()] == [True]
    tokens.at += EXPIRED_KEPT_MS
    await tokens.new("bob")
    assert [each.name for each in await tokens.all()] == ["bob"]


async def test_use_is_written_down_coarsely_and_seen_by_other_servers(store: Store) -> None:
    one, two = Tokens(store), Tokens(store)
    made = await one.new("ann")
    found = one.find(hashlib.sha256(made.token.encode()).hexdigest())
    assert found is not None
    one.note_use(found[0])
    assert [each.used_at for each in await one.all()] == [one.at]
    assert [each.used_at for each in await two.all()] == [0], "no write for a request"
    await one.write_uses()
    assert [each.used_at for each in await two.all()] == [one.at]
    two.note_use(found[0])
    two.at -= 5
    await two.write_uses()
    await one.revoke("ann")
    assert [found async for found in store.scan(USE_KIND)] == []


async def test_the_use_of_tokens_that_are_no_more_is_forgotten(store: Store) -> None:
    one, two = Tokens(store), Tokens(store)
    over, revoked, kept = await one.new("ann", expires_ms=DAY_MS), await one.new("bob"), await one.new("joe")
    await two.read()
    for tokens in (one, two):
        for each in (over, revoked, kept):
            found = tokens.find(hashlib.sha256(each.token.encode()).hexdigest())
            assert found is not None
            tokens.note_use(found[0])
        tokens.at += 1
        await tokens.write_uses()
    await two.revoke("bob")
    await one.read()
    await one.write_uses()
    one.at += DAY_MS + EXPIRED_KEPT_MS
    await one.new("eve")
    assert [found.id async for found in store.scan(USE_KIND)] == [kept.view.id]
    assert set(one._used) == set(one._written) == {kept.view.id}


async def test_a_document_that_cannot_be_read_does_not_end_the_reading(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(access_tokens, "READ_EVERY_S", 0.001)
    here, elsewhere = Tokens(store), Tokens(store)
    made = await elsewhere.new("ann")
    await here.read()
    following = asyncio.create_task(here.follow(shared=True))
    good = await store.get(TOKENS_KIND, TOKENS_ID)
    assert good is not None
    await store.write([Put(TOKENS_KIND, TOKENS_ID, b'{"tokens": 7}', good.version)])
    await until(lambda: "cannot be read" in caplog.text)
    bad = await store.get(TOKENS_KIND, TOKENS_ID)
    assert bad is not None
    await store.write([Put(TOKENS_KIND, TOKENS_ID, good.body, bad.version)])
    await elsewhere.revoke(made.view.id)
    await until(lambda: here.knows(made) is None)
    assert caplog.text.count("cannot be read: those") == 1, "and not each time"
    following.cancel()


async def test_no_more_tokens_are_made_than_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_tokens, "TOKENS_MAX", 2)
    tokens = Tokens(store)
    await tokens.new("ann")
    await tokens.new("ann")
    with pytest.raises(Conflict, match="revoke some first"):
        await tokens.new("ann")


@pytest.mark.parametrize(
    ("request_", "wrong"),
    [
        (TokenRequest(name="a b"), "valid name"),
        (TokenRequest(name=""), "valid name"),
        (TokenRequest(name="ann", roles=["A b"]), "is no role"),
        (TokenRequest(name="ann", projects={"../x": "viewer"}), project_name_flaw("../x")),
        (TokenRequest(name="ann", expires_ms=-1), "hundred years"),
    ],
)
async def test_a_token_that_cannot_be_is_refused(request_: TokenRequest, wrong: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(wrong)):
        await Tokens(MemoryStore()).create(request_, who="boss")


# Over HTTP


@pytest.fixture
async def guarded(serving: Serving, domain: DomainUnderTest) -> HttpServer:
    return await serving(AccessControl(single_token(BOSS), stored=domain._server.access_tokens))


async def test_a_token_is_made_used_and_revoked_over_the_api(guarded: HttpServer) -> None:
    async with Client(guarded.url, BOSS) as boss:
        made = await boss.create_token(TokenRequest(name="ann"))
        async with Client(guarded.url, made.token) as ann:
            await ann.deploy(job_flow())
            assert (await ann.start("one")).owner == "ann"
            with pytest.raises(Forbidden):
                await ann.tokens()
            with pytest.raises(Forbidden):
                await ann.create_token(TokenRequest(name="ann", roles=["admin"]))
            (view,) = await boss.tokens()
            assert (view.name, view.roles, view.made_by) == ("ann", ["user"], "admin") and view.used_at > 0
            assert [each.id for each in await boss.revoke_token(view.id)] == [view.id]
            with pytest.raises(Unauthorized, match="does not know that token"):
                await ann.cases()


async def test_who_sends_an_expired_token_is_told_so(guarded: HttpServer) -> None:
    async with Client(guarded.url, BOSS) as boss:
        made = await boss.create_token(TokenRequest(name="ann", expires_ms=1))
    async with Client(guarded.url, made.token) as ann:
        with pytest.raises(Unauthorized, match=r"the token 'ann' expired on \d{4}-\d\d-\d\d at .* UTC"):
            await ann.cases()


async def test_a_token_that_another_server_made_a_moment_ago_counts(serving: Serving, domain: DomainUnderTest) -> None:
    here, elsewhere = AccessTokens(domain._server.store, domain._server.wall), domain._server.access_tokens
    await here.read()
    served = await serving(AccessControl(single_token(BOSS), stored=here))
    made = await elsewhere.create(TokenRequest(name="ann"), who="boss")
    async with Client(served.url, made.token) as ann:
        assert await ann.cases() == []
