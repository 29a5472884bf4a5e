"""Browsers that have signed in, and the one-time codes by which they do, in the store, for all servers on it.

A session says in whose name a browser asks: by the hash of the token that it signed in with, so that it ends with that
token, or by what an issuer said. The browser has a ticket for it: chance, and a mark that only servers on this store
can make. So a ticket that was made up costs nobody a look into the store, and a session is ended for all servers by
removing its document. The document has the hash of the chance: who reads the store cannot take a session over."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import ProjectRole
from mendflow.core.model.sessions import SignInCode
from mendflow.services.cluster.shared_secret import derived, shared_secret
from mendflow.stores.contract import Delete, Put, Store, WriteDone

SESSION_KIND: Final = "browser-session"
CODE_KIND: Final = "sign-in-code"
USED_KIND: Final = "sign-in-used"
SESSION_MS: Final = 7 * 86_400_000
CODE_MS: Final = 60_000
SESSIONS_MAX: Final = 50
CODES_MAX: Final = 20
"""So many there are of one token; a new one takes the place of the oldest."""
LOOK_EVERY_S: Final = 1.0
"""A session that was ended at another server is used here for no longer than this."""
TIDY_EVERY_S: Final = 3600.0
KNOWN_MAX: Final = 10_000
_OWNER_CHARS: Final = 16


class StoredSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`token` is the SHA-256 of the token that it stands for. Where an issuer said who it is, it has the name, roles
    and projects instead, and the issuer; with neither it stands for the account that runs the server. `account` is the
    one that signed in within the server's machine: then no other account can use the session. Of a code, `until` is
    when the session that it begins ends at the latest; 0: as any."""

    token: str = ""
    name: str = ""
    issuer: str = ""
    roles: list[str] = []
    projects: dict[str, ProjectRole] = {}
    account: int | None = None
    made_at: Instant = 0
    expires_at: Instant = 0
    until: Instant = 0


class _Known(NamedTuple):
    session: StoredSession | None
    read_at: float


_decode = msgspec.json.Decoder(StoredSession).decode


class BrowserSessions:
    """The sessions of a store, as one server knows them. `now` is the wall clock."""

    def __init__(self, store: Store, now: Callable[[], Instant]) -> None:
        self._store = store
        self._now = now
        self._key = ""
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._tidied_at = float("-inf")

    async def create(self, session: StoredSession) -> tuple[str, Instant]:
        """Begin a session. The answer is the ticket of the browser, and when it ends by itself."""
        whole = self._dated(session, SESSION_MS)
        return await self._make(SESSION_KIND, whole, SESSIONS_MAX), whole.expires_at

    async def is_genuine(self, ticket: str) -> bool:
        """Whether a server on this store has made it, be the session over or not."""
        return await self._id(SESSION_KIND, ticket) is not None

    async def find(self, ticket: str) -> StoredSession | None:
        id = await self._id(SESSION_KIND, ticket)
        if id is None:
            return None
        known = self._known.get(id)
        if known is None or time.monotonic() - known.read_at >= LOOK_EVERY_S:
            known = await self._read(id, known)
        session = known.session
        return session if session is not None and self._now() < session.expires_at else None

    async def end(self, ticket: str) -> bool:
        """End the session at every server; false if there is none."""
        id = await self._id(SESSION_KIND, ticket)
        found = await self._store.get(SESSION_KIND, id) if id is not None else None
        if id is None or found is None:
            return False
        await self._store.write([Delete(SESSION_KIND, id, found.version)])
        self._note(id, None)
        return True

    async def create_code(self, session: StoredSession) -> SignInCode:
        """A code that begins such a session, once. That one lasts no longer than this."""
        whole = self._dated(msgspec.structs.replace(session, until=session.expires_at), CODE_MS)
        return SignInCode(code=await self._make(CODE_KIND, whole, CODES_MAX), expires_at=whole.expires_at)

    async def meant(self, code: str) -> StoredSession | None:
        """The session that a code is for, which it still is afterwards."""
        id = await self._id(CODE_KIND, code)
        found = await self._store.get(CODE_KIND, id) if id is not None else None
        session = _decode(found.body) if found is not None else None
        return session if session is not None and self._now() < session.expires_at else None

    async def redeem(self, code: str) -> StoredSession | None:
        """The session that a code is for. Of those who try at the same time, at all servers, one gets it."""
        id = await self._id(CODE_KIND, code)
        found = await self._store.get(CODE_KIND, id) if id is not None else None
        if id is None or found is None:
            return None
        (done,) = await self._store.write([Delete(CODE_KIND, id, found.version)])
        session = _decode(found.body)
        if not isinstance(done, WriteDone) or self._now() >= session.expires_at:
            return None
        return msgspec.structs.replace(session, expires_at=session.until, until=0)

    # Sign-ins elsewhere: nothing is stored of one before somebody has signed in by it

    async def mark(self, text: str) -> str:
        """By which every server on this store knows a text of theirs again, and which nobody else can make."""
        return _mark(await self._servers_key(), f"begun {text}")

    async def use_up(self, begun: str, name: str, lasts_ms: int) -> bool:
        """Note that this person has signed in by what was begun; false if it was noted before, at whichever server."""
        owner = _mark(await self._servers_key(), f"of {name}")[:_OWNER_CHARS]
        await self._make_room(USED_KIND, owner, KNOWN_MAX)
        noted = self._dated(StoredSession(name=name), lasts_ms)
        (done,) = await self._store.write([Put(USED_KIND, _id(owner, begun), msgspec.json.encode(noted), 0)])
        return isinstance(done, WriteDone)

    def _dated(self, session: StoredSession, lasts_ms: int) -> StoredSession:
        """With the moment when it ends: that of its token, or sooner."""
        now = self._now()
        ends = min(now + lasts_ms, session.expires_at or now + lasts_ms)
        return msgspec.structs.replace(session, made_at=now, expires_at=ends)

    # Tickets: whose, a dot, chance, a dot, and the mark of the servers

    async def _make(self, kind: str, session: StoredSession, most: int) -> str:
        key = await self._servers_key()
        owner = _mark(key, f"of {session.token or session.name}")[:_OWNER_CHARS]
        await self._make_room(kind, owner, most)
        chance = secrets.token_urlsafe(24)
        id = _id(owner, chance)
        (done,) = await self._store.write([Put(kind, id, msgspec.json.encode(session), 0)])
        assert isinstance(done, WriteDone), "chance of 192 bits came twice"
        if kind == SESSION_KIND:
            self._note(id, session)
        return f"{owner}.{chance}.{_mark(key, f'{kind} {owner}.{chance}')}"

    async def _id(self, kind: str, ticket: str) -> str | None:
        """The id of the document; None if no server on this store has made the ticket."""
        whole, _, mark = ticket.rpartition(".")
        owner, dot, chance = whole.partition(".")
        if not dot or not ticket.isascii():
            return None
        wanted = _mark(await self._servers_key(), f"{kind} {whole}")
        return _id(owner, chance) if hmac.compare_digest(mark, wanted) else None

    async def _servers_key(self) -> str:
        if not self._key:
            self._key = derived(await shared_secret(self._store), "browser sessions")
        return self._key

    # What is in the store

    async def _read(self, id: str, before: _Known | None) -> _Known:
        if before is not None:
            self._note(id, before.session)  # others that ask meanwhile need not read it too
        try:
            found = await self._store.get(SESSION_KIND, id)
        except StoreUnavailable:
            if before is None:
                raise
            return before  # whatever needs the store is refused anyway
        return self._note(id, _decode(found.body) if found is not None else None)

    def _note(self, id: str, session: StoredSession | None) -> _Known:
        known = self._known[id] = _Known(session, time.monotonic())
        self._known.move_to_end(id)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return known

    async def _make_room(self, kind: str, owner: str, most: int) -> None:
        """Remove what is over, and the oldest of the same owner if there are too many."""
        if time.monotonic() - self._tidied_at >= TIDY_EVERY_S:
            self._tidied_at = time.monotonic()
            for each in (SESSION_KIND, CODE_KIND, USED_KIND):
                await self._remove(each, "", KNOWN_MAX * 10)
        await self._remove(kind, f"{owner}-", most - 1)

    async def _remove(self, kind: str, prefix: str, kept: int) -> None:
        """Remove what is over, and the oldest beyond those that are kept."""
        found = [(_decode(each.body), each) async for each in self._store.scan(kind, prefix)]
        found.sort(key=lambda each: each[0].made_at, reverse=True)
        live = [each for each in found if self._now() < each[0].expires_at]
        gone = [each for each in found if self._now() >= each[0].expires_at] + live[kept:]
        for _, document in gone:
            await self._store.write([Delete(kind, document.id, document.version)])
            self._known.pop(document.id, None)


def _mark(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _id(owner: str, chance: str) -> str:
    return f"{owner}-{hashlib.sha256(chance.encode()).hexdigest()}"
