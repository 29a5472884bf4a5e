"""Tokens in the store, for all servers on it.

All of them stand in one document. So a change is one write, which is done or is not; and another server sees it by
reading one document by its id, once a second, whatever the store is. The document has the SHA-256 of each token: a
token has 256 bits of chance, so its hash tells nothing of it, and no slow hash is needed.

When a token was last used stands in a document of its own, which is written at most every few minutes."""

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.access_tokens import (
    CreatedToken,
    TokenRequest,
    TokenView,
    require_token_request,
    roles_of,
)
from mendflow.core.model.errors import Conflict, Forbidden, NotFound, StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.members import MemberView, require_member
from mendflow.core.model.principals import USER, Principal, ProjectRole
from mendflow.services.base.contracts import TRIES
from mendflow.services.cluster.project_members import MEMBERS_ID, ProjectMembers, StoredMember
from mendflow.stores.contract import Delete, Put, Store, StoredDocument, WriteDone

log = logging.getLogger("mendflow.server")

TOKENS_KIND: Final = "access-tokens"
TOKENS_ID: Final = "all"
USE_KIND: Final = "access-token-use"
TOKENS_MAX: Final = 5_000
READ_EVERY_S: Final = 1.0
USES_WRITTEN_MS: Final = 5 * 60_000
EXPIRED_KEPT_MS: Final = 30 * 86_400_000
"""For so long a token that has expired is listed, and whoever sends it hears that it has."""


class StoredToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token as the store has it."""

    id: str
    name: str
    sha256: str
    roles: list[str]
    projects: dict[str, ProjectRole] = {}
    made_by: str = ""
    made_at: Instant = 0
    expires_at: Instant = 0

    def is_over(self, now: Instant) -> bool:
        return self.expires_at != 0 and now >= self.expires_at


class TokenDocument(msgspec.Struct, frozen=True):
    tokens: list[StoredToken] = []


class TokenUse(msgspec.Struct, frozen=True):
    used_at: Instant


_decode = msgspec.json.Decoder(TokenDocument).decode
_decode_use = msgspec.json.Decoder(TokenUse).decode


def _used_at(found: StoredDocument) -> Instant:
    """When a token was used; a document that cannot be read is written anew at the next use."""
    try:
        return _decode_use(found.body).used_at
    except msgspec.MsgspecError:
        return 0


class AccessTokens:
    """The tokens of a store, as one server knows them. `now` is the wall clock."""

    def __init__(self, store: Store, now: Callable[[], Instant]) -> None:
        self._store = store
        self._now = now
        self._version = -1
        self.members = ProjectMembers(store, TOKENS_KIND)
        self._by_hash: dict[str, tuple[StoredToken, Principal]] = {}
        self._used: dict[str, Instant] = {}
        self._written: dict[str, Instant] = {}
        self._gone: set[str] = set()  # tokens that are no more, whose use may still be written down
        self._reading = asyncio.Lock()
        self.demand_new: Callable[[Principal], None] = lambda _principal: None
        """Asked before somebody is given a token; it raises if this server is not for it."""

    # For those who ask to be let in

    def find(self, sha256: str) -> tuple[StoredToken, Principal] | None:
        """The token with this hash, and who has it; also if it has expired."""
        return self._by_hash.get(sha256)

    def principals(self) -> list[Principal]:
        """Everybody who has a token that is not over, as far as they were read."""
        return [principal for token, principal in self._by_hash.values() if not self.is_over(token)]

    def let_jobs_run(self) -> bool:
        """Whether somebody may let jobs run by such a token."""
        found = self._by_hash.values()
        return any(principal.may_let_jobs_run and not self.is_over(token) for token, principal in found)

    def is_over(self, token: StoredToken) -> bool:
        return token.is_over(self._now())

    def note_use(self, token: StoredToken) -> None:
        self._used[token.id] = self._now()

    async def read(self) -> None:
        """Read what other servers have changed."""
        async with self._reading:
            documents = {each.id: each for each in await self._store.get_many(TOKENS_KIND, [TOKENS_ID, MEMBERS_ID])}
            if self.members.take(documents.get(MEMBERS_ID)):
                self._name_all()
            found = documents.get(TOKENS_ID)
            version = found.version if found is not None else 0
            if version != self._version:
                self._take(_decode(found.body) if found is not None else TokenDocument(), version)

    def _name_all(self) -> None:
        """Say anew who has which token: memberships have changed."""
        self._by_hash = {sha256: (token, self._holder(token)) for sha256, (token, _) in self._by_hash.items()}

    def _holder(self, token: StoredToken) -> Principal:
        return self.members.added_to(Principal(token.name, frozenset(token.roles), token.projects))

    def _take(self, document: TokenDocument, version: int) -> None:
        before = {token.id for token, _ in self._by_hash.values()}
        self._by_hash = {each.sha256: (each, self._holder(each)) for each in document.tokens}
        self._version = version
        self._gone |= before - {each.id for each in document.tokens}

    async def follow(self, *, shared: bool) -> None:
        """Until cancelled: read again what others may have changed, and write down what was used."""
        write_at, told = self._now() + USES_WRITTEN_MS, ""
        while True:
            await asyncio.sleep(READ_EVERY_S)
            try:
                if shared:
                    await self.read()
                if self._now() >= write_at:
                    write_at = self._now() + USES_WRITTEN_MS
                    await self.write_uses()
                told = ""
            except StoreUnavailable:
                continue  # the server says so, and refuses what needs its store
            except Exception as error:  # whoever stops to read would admit what was revoked for ever
                if told != (told := repr(error)):
                    log.error(
                        "the tokens in the store cannot be read: those that were known stay as they are until they"
                        " can, also if they are revoked; restore a backup, or remove the document %s/%s",
                        TOKENS_KIND,
                        TOKENS_ID,
                        exc_info=error,
                    )

    async def write_uses(self) -> None:
        """Write down when tokens were used, of those that were since the last time."""
        await self._forget_gone()
        for id, used_at in list(self._used.items()):
            if self._written.get(id, 0) >= used_at:
                continue
            found = await self._store.get(USE_KIND, id)
            if found is None or _used_at(found) < used_at:
                body = msgspec.json.encode(TokenUse(used_at))
                # If another server was faster, it wrote a time that is as good.
                await self._store.write([Put(USE_KIND, id, body, found.version if found is not None else 0)])
            self._written[id] = used_at

    async def _forget_gone(self) -> None:
        """Nobody asks any more when a token was used that was revoked, here or elsewhere, or expired long ago."""
        gone = sorted(self._gone)
        for found in await self._store.get_many(USE_KIND, gone) if gone else ():
            await self._store.write([Delete(USE_KIND, found.id, found.version)])
        for id in gone:
            self._used.pop(id, None)
            self._written.pop(id, None)
        self._gone.difference_update(gone)

    # For administrators

    async def all(self) -> list[TokenView]:
        await self.read()
        tokens = [token for token, _ in self._by_hash.values()]
        found = await self._store.get_many(USE_KIND, [each.id for each in tokens])
        uses = {each.id: _used_at(each) for each in found}
        views = [self._view(each, max(uses.get(each.id, 0), self._used.get(each.id, 0))) for each in tokens]
        return sorted(views, key=lambda each: (each.name, each.made_at, each.id))

    def no_jobs_because(self) -> str:
        """Why nobody is given a token here that lets jobs run; empty if somebody may be."""
        try:
            self.demand_new(Principal("", frozenset({USER})))
        except Forbidden as refused:
            return refused.message
        return ""

    async def create(self, request: TokenRequest, *, who: str) -> CreatedToken:
        require_token_request(request)
        self.demand_new(Principal(request.name, frozenset(roles_of(request)), request.projects))
        token, now = secrets.token_urlsafe(32), self._now()
        new = StoredToken(
            id=secrets.token_hex(6),
            name=request.name,
            sha256=hashlib.sha256(token.encode()).hexdigest(),
            roles=roles_of(request),
            projects=request.projects,
            made_by=who,
            made_at=now,
            expires_at=now + request.expires_ms if request.expires_ms else 0,
        )

        def with_new(tokens: list[StoredToken]) -> list[StoredToken]:
            kept = [each for each in tokens if not each.is_over(now - EXPIRED_KEPT_MS)]
            if len(kept) >= TOKENS_MAX:
                raise Conflict(f"there are {len(kept)} tokens, and {TOKENS_MAX} are the most: revoke some first")
            return [*kept, new]

        await self._change(with_new)
        await self._forget_gone()
        return CreatedToken(token=token, view=self._view(new, 0))

    async def revoke(self, named: str) -> list[TokenView]:
        """Revoke the token of this id, or all of this name."""
        revoked: list[StoredToken] = []

        def without(tokens: list[StoredToken]) -> list[StoredToken]:
            revoked[:] = [each for each in tokens if each.id == named] or [
                each for each in tokens if each.name == named
            ]
            if not revoked:
                raise NotFound(
                    f"there is no token {named!r:.100} in the store; `mendflow admin tokens` lists them. One of a token"
                    " file is taken out of that file, and the server reads it again on SIGHUP"
                )
            return [each for each in tokens if each not in revoked]

        await self._change(without)
        views = [self._view(each, self._used.get(each.id, 0)) for each in revoked]
        await self._forget_gone()
        return views

    # Members of projects

    async def members_of(self, project: str) -> list[MemberView]:
        """By name. Tokens that name the project count too."""
        await self.read()
        tokens = [token for token, _ in self._by_hash.values() if project in token.projects and not self.is_over(token)]
        named = [
            MemberView(
                name=each.name, role=each.projects[project], through="token", set_by=each.made_by, set_at=each.made_at
            )
            for each in tokens
        ]
        return sorted([*self.members.of(project), *named], key=lambda each: (each.name, each.through, each.set_at))

    async def put_member(self, project: str, name: str, role: ProjectRole, *, who: str) -> MemberView:
        require_member(project, name)
        self.demand_new(Principal(name, frozenset(), {project: role}))
        new = StoredMember(project=project, name=name, role=role, set_by=who, set_at=self._now())
        async with self._reading:
            await self.members.put(new)
            self._name_all()
        return MemberView(name=name, role=role, set_by=who, set_at=new.set_at)

    async def remove_member(self, project: str, name: str) -> MemberView:
        async with self._reading:
            gone = await self.members.remove(project, name)
            self._name_all()
        return MemberView(name=name, role=gone.role, set_by=gone.set_by, set_at=gone.set_at)

    async def _change(self, change: Callable[[list[StoredToken]], list[StoredToken]]) -> None:
        """Change the document, from whatever it is by now. What was written holds here at once."""
        async with self._reading:
            for _ in range(TRIES):
                found = await self._store.get(TOKENS_KIND, TOKENS_ID)
                before = _decode(found.body) if found is not None else TokenDocument()
                after = replace(before, tokens=change(before.tokens))
                put = Put(TOKENS_KIND, TOKENS_ID, msgspec.json.encode(after), found.version if found is not None else 0)
                done = (await self._store.write([put]))[0]
                if isinstance(done, WriteDone):
                    self._gone |= {each.id for each in before.tokens} - {each.id for each in after.tokens}
                    self._take(after, done.version)
                    return
        raise Conflict("the tokens are changed by several at once, again and again; try again")

    def _view(self, token: StoredToken, used_at: Instant) -> TokenView:
        return TokenView(
            id=token.id,
            name=token.name,
            roles=token.roles,
            projects=token.projects,
            made_by=token.made_by,
            made_at=token.made_at,
            expires_at=token.expires_at,
            used_at=used_at,
            expired=token.is_over(self._now()),
        )
