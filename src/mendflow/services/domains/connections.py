"""Connections with other domains: one document for each, which all servers on the store share.

Both sides consent. One invites: it makes a token that holds for a short time and for one use, and a person carries it
to the other side, whose server shows it. Then each side has a token of its own at the other. Of the token that the
other side shows here only the hash is stored, of the one that we show there a sealed copy. Both tokens are derived, so
that an acceptance whose answer was lost can be repeated, and is the same connection."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from mendflow.address_guard import ANYWHERE, check_url, is_private_host
from mendflow.core.domains.domain_names import domain_name_flaw, not_connected
from mendflow.core.model.domains import (
    PROTOCOL,
    ConnectionSpec,
    DomainRights,
    InvitationAcceptance,
    InvitationAnswer,
    InvitationSpec,
    InvitationView,
)
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.services.base.sealing import Sealer
from mendflow.services.domains.connection_checks import URLS_MAX, check_minutes, check_rights, check_urls
from mendflow.services.domains.domain_lines import DomainLines
from mendflow.services.domains.invitations import Invitations
from mendflow.services.domains.own_domain import OwnDomain
from mendflow.services.domains.token_hashes import is_same_hash, sha256_of
from mendflow.stores.contract import Store

CONNECTION_KIND: Final = "domain"
CONNECTIONS_MAX: Final = 200
TOKEN_BYTES: Final = 32


class Connection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A connected domain. `token_sha256` is the hash of the token that it shows here, `sealed_token` the one that we
    show there. `mark` is another each time that it is connected anew. Without `urls` work can come from it, and none
    can be sent there. `names_itself`: an administrator of ours has not said that address, so it has to be public.
    `told` is where its servers have said since that they are, the newest first. `own_urls` is where it is to reach us,
    if our administrator has said so."""

    name: str
    urls: tuple[str, ...] = ()
    token_sha256: str
    sealed_token: str
    mark: str
    rights: DomainRights = DomainRights()
    names_itself: bool = False
    told: tuple[str, ...] = ()
    own_urls: tuple[str, ...] = ()
    connected_at: Instant = 0
    connected_by: str = ""
    draining: bool = False
    invitation_sha256: str = ""  # of the invitation that it accepted, if it was invited here

    def __repr__(self) -> str:
        return f"Connection({self.name!r}, {self.urls!r})"


class ConnectionsChanged(msgspec.Struct, frozen=True):
    """A domain was connected, disconnected, or got other rights, here or on another server."""


class DomainDisconnected(msgspec.Struct, frozen=True):
    """A domain is no longer connected, by a decision of this server."""

    name: str


_decode = msgspec.json.Decoder(Connection).decode


class Connections:
    """`chance` gives so many random bytes, in hexadecimal."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        sealer: Sealer,
        hub: Hub,
        own: OwnDomain,
        lines: DomainLines,
        chance: Callable[[int], str],
    ) -> None:
        self.own = own
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._sealer = sealer
        self._hub = hub
        self._lines = lines
        self._chance = chance
        self._known: dict[str, Connection] = {}
        self._by_token: dict[str, Connection] = {}
        self._read_at: Instant = 0
        self.invitations = Invitations(store, ledger, clock, own)
        self._being_made: dict[str, asyncio.Event] = {}  # by the hash of the token; set when it is decided

    async def start(self) -> None:
        """Read all connections; other servers may have changed some."""
        self._set(await readable_by_id(self._store.scan(CONNECTION_KIND), _decode))
        await self.own.start(is_known_to_others=bool(self._known))

    def _set(self, known: dict[str, Connection]) -> None:
        self._read_at = self._clock.now()
        if known == self._known:
            return
        self._known = known
        self._by_token = {each.token_sha256: each for each in known.values()}
        self._hub.publish(ConnectionsChanged())

    # Who is connected

    def known(self) -> list[Connection]:
        return [self._known[name] for name in sorted(self._known)]

    def find(self, name: str) -> Connection | None:
        return self._known.get(name)

    async def get(self, name: str) -> Connection:
        return (await self._read(name))[0]

    async def _read(self, name: str) -> tuple[Connection, int]:
        found = await self._store.get(CONNECTION_KIND, name)
        if found is None:
            raise NotFound(not_connected(name))
        return _decode(found.body), found.version

    async def authenticate(self, token_sha256: str) -> Connection:
        """The connection whose token has this hash. Another server may have made it a moment ago: then the store is
        asked, though not for every wrong token that somebody sends. While we accept an invitation, the inviting side
        has the token before we have its answer: it waits for what becomes of that."""
        found = self._by_token.get(token_sha256)
        if found is None and (being_made := self._being_made.get(token_sha256)) is not None:
            await being_made.wait()
            found = self._by_token.get(token_sha256)
        if found is None and self._clock.now() - self._read_at >= 1_000:
            await self.start()
            found = self._by_token.get(token_sha256)
        if found is None:
            raise Forbidden(
                f"the domain {self.own.name!r} does not know that token: it has disconnected, or the connection was"
                " made anew"
            )
        return found

    async def own_token(self, connection: Connection) -> str:
        """The token that we show there."""
        return await self._sealer.open_text(connection.sealed_token)

    # Invitations

    async def invite(self, name: str, spec: InvitationSpec, *, who: str, url: str) -> InvitationView:
        """Invite a domain. An earlier invitation of the same name no longer holds."""
        self._demand_other_name(name)
        check_rights(spec.rights)
        check_urls(spec.urls)
        check_minutes(spec.minutes)
        if await self._store.get(CONNECTION_KIND, name) is not None:
            raise Conflict(f"the domain {name} is connected already; mendflow domains disconnect {name} ends that")
        own, token = await self.own.keep_name(), self._chance(TOKEN_BYTES)
        made = await self.invitations.make(name, spec, token_sha256=sha256_of(token), who=who)
        return InvitationView(name=name, token=token, domain=own, url=url, expires_at=made.expires_at)

    async def accept(self, shown: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        """An invited domain accepts, and shows its invitation. The same acceptance again gets the same answer."""
        if acceptance.inviter != self.own.name:
            raise Conflict(
                f"the domain at this address is called {self.own.name!r}, not {acceptance.inviter[:100]!r}: connect it"
                " under that name"
            )
        answer = InvitationAnswer(domain=self.own.name, token=_answering(acceptance.token, shown))
        found = await self._store.get(CONNECTION_KIND, acceptance.domain)
        known = _decode(found.body) if found is not None else None
        if known is not None and is_same_hash(known.token_sha256, sha256_of(answer.token)):
            await self.hear_urls(known, acceptance.urls)
            return answer
        if known is not None and is_same_hash(known.invitation_sha256, sha256_of(shown)):
            raise self._connected_already(acceptance.domain)
        invitation = await self.invitations.use(shown, acceptance)  # who has none is not told who is connected
        if known is not None:
            raise self._connected_already(acceptance.domain)
        connection = Connection(
            name=invitation.name,
            urls=invitation.urls or self._fit(acceptance.urls),
            names_itself=not invitation.urls,
            token_sha256=sha256_of(answer.token),
            sealed_token=await self._sealer.seal_text(acceptance.token),
            mark=self._chance(8),
            rights=invitation.rights,
            connected_at=self._clock.now(),
            connected_by=invitation.made_by,
            invitation_sha256=invitation.token_sha256,
        )
        await self._add(connection)
        await self.invitations.withdraw(invitation.name)
        return answer

    def _connected_already(self, name: str) -> Conflict:
        return Conflict(
            f"the domain {self.own.name} has a connection with {name} already; its administrator ends it with"
            f" mendflow domains disconnect {name}"
        )

    def _fit(self, urls: Sequence[str]) -> tuple[str, ...]:
        """The addresses that another domain names for itself, as far as they are addresses."""
        fit = []
        for url in urls[:URLS_MAX]:
            try:
                check_url(url, guard=ANYWHERE)
            except InvalidRequest:
                continue
            fit.append(url.rstrip("/"))
        return tuple(fit)

    # Connecting and disconnecting

    async def connect(self, name: str, spec: ConnectionSpec, *, who: str, url: str) -> Connection:
        """Accept the invitation of another domain. Repeated after a lost answer, it is the same connection; with
        another address, that holds from now on."""
        self._demand_other_name(name)
        check_rights(spec.rights)
        check_urls((*spec.urls, *spec.own_urls))
        if not spec.urls:
            raise InvalidRequest(f"where is the domain {name}? Give the address of one of its servers", field="urls")
        token = await self._sealer.derived(f"domain {name}, invitation {sha256_of(spec.token)}")
        before = await self._store.get(CONNECTION_KIND, name)
        if before is not None and not is_same_hash(_decode(before.body).token_sha256, sha256_of(token)):
            raise Conflict(f"the domain {name} is connected already; mendflow domains disconnect {name} ends that")
        own = await self.own.keep_name()
        own_urls = spec.own_urls or ((url,) if url else ())
        acceptance = InvitationAcceptance(domain=own, inviter=name, token=token, urls=own_urls)
        urls = tuple(each.rstrip("/") for each in spec.urls)
        with self._making(sha256_of(token)):
            answer = await self._lines.accept(urls, spec.token, acceptance)
            if answer.domain != name or answer.protocol > PROTOCOL or not answer.token:
                raise Conflict(f"the answer of the domain {name} is not one that this version understands")
            connection = Connection(
                name=name,
                urls=urls,
                own_urls=spec.own_urls,
                token_sha256=sha256_of(token),
                sealed_token=await self._sealer.seal_text(answer.token),
                mark=self._chance(8),
                rights=spec.rights,
                connected_at=self._clock.now(),
                connected_by=who,
            )
            if before is None:
                return await self._add(connection)
        own_urls = spec.own_urls or _decode(before.body).own_urls
        return await self._change(name, lambda known: replace(_moved(known, urls), own_urls=own_urls))

    @contextmanager
    def _making(self, token_sha256: str) -> Iterator[None]:
        """Whoever shows this token meanwhile waits until it is decided whether there is a connection."""
        decided = self._being_made.setdefault(token_sha256, asyncio.Event())
        try:
            yield
        finally:
            decided.set()
            self._being_made.pop(token_sha256, None)

    async def _add(self, connection: Connection) -> Connection:
        if len(self._known) >= CONNECTIONS_MAX:
            raise InvalidRequest(f"{CONNECTIONS_MAX} domains are connected already; disconnect some")
        if await self._ledger.put_now(CONNECTION_KIND, connection.name, connection, 0) is None:
            kept = await self.get(connection.name)  # the same acceptance came twice at the same time
            if not is_same_hash(kept.token_sha256, connection.token_sha256):
                raise Conflict(f"the domain {connection.name} has just been connected by somebody else; look at it")
            connection = kept
        self._set({**self._known, connection.name: connection})
        return connection

    async def change_rights(self, name: str, rights: DomainRights) -> Connection:
        check_rights(rights)
        return await self._change(name, lambda known: replace(known, rights=rights))

    async def change_urls(self, name: str, urls: Sequence[str]) -> Connection:
        """An administrator says where it is."""
        check_urls(urls)
        if not urls:
            raise InvalidRequest(f"where is the domain {name}? Give the address of one of its servers", field="urls")
        return await self._change(name, lambda known: _moved(known, tuple(each.rstrip("/") for each in urls)))

    async def hear_urls(self, connection: Connection, urls: Sequence[str]) -> None:
        """A server of a connected domain says where it is now. It cannot make us call another private host than before,
        nor go on without the encryption that an administrator has asked for."""
        told = self._fit(urls)
        if _with_told(connection, told) != connection:
            with suppress(Conflict, NotFound):  # the next exchange tells it again
                await self._change(connection.name, lambda known: _with_told(known, told))

    async def drain(self, name: str) -> Connection:
        """Send no more work there, and take none from there. What is under way goes on."""
        return await self._change(name, lambda known: replace(known, draining=True))

    async def remove(self, name: str, *, mark: str = "") -> Connection | None:
        """Disconnect at once; with a mark, only that connection. None if there was none."""
        for _ in range(TRIES):
            found = await self._store.get(CONNECTION_KIND, name)
            connection = _decode(found.body) if found is not None else None
            if found is None or connection is None or (mark and connection.mark != mark):
                await self.start()
                return None
            if await self._ledger.put_now(CONNECTION_KIND, name, None, found.version) is not None:
                self._set({each: known for each, known in self._known.items() if each != name})
                self._hub.publish(DomainDisconnected(name))
                return connection
        raise _busy(name)

    async def _change(self, name: str, change: Callable[[Connection], Connection]) -> Connection:
        for _ in range(TRIES):
            before, version = await self._read(name)
            after = change(before)
            if after == before or await self._ledger.put_now(CONNECTION_KIND, name, after, version) is not None:
                self._set({**self._known, name: after})
                return after
        raise _busy(name)

    def _demand_other_name(self, name: str) -> None:
        if flaw := domain_name_flaw(name):
            raise InvalidRequest(flaw, field="name")
        if name == self.own.name:
            raise InvalidRequest(
                f"this domain itself is called {name!r}; the other needs another name: start one of them with"
                " mendflow serve --domain NAME",
                field="name",
            )


def _moved(known: Connection, urls: tuple[str, ...]) -> Connection:
    same = known.urls == urls and not known.names_itself
    return known if same else replace(known, urls=urls, names_itself=False, told=())


def _with_told(known: Connection, urls: Sequence[str]) -> Connection:
    new = [url for url in urls if url not in (*known.urls, *known.told) and _may_tell(known, url)]
    return replace(known, told=(*new, *known.told)[:URLS_MAX]) if new else known


def _may_tell(known: Connection, url: str) -> bool:
    parts, given = urlsplit(url), [urlsplit(each) for each in known.urls]
    if parts.scheme != "https" and any(each.scheme == "https" for each in given):
        return False
    host = parts.hostname or ""
    return any(each.hostname == host for each in given) or not is_private_host(host)


def _answering(token: str, invitation: str) -> str:
    """The token for the way back, which follows from the acceptance and its invitation."""
    return hmac.new(token.encode(), f"the way back, invitation {invitation}".encode(), hashlib.sha256).hexdigest()


def _busy(name: str) -> Conflict:
    return Conflict(f"the connection with {name} is being changed by several at once; try again")
