"""Browsers that sign in: a session instead of a token.

A browser sends the cookie of its session with every request to this server, also with those that a page of somebody
else makes it send. So a cookie alone changes nothing: such a request has to come from a page of this server, as the
browser says (`Origin`), and has to carry a header that no foreign page can add (`Mendflow-Request`). The cookie itself
is not sent along from other sites (`SameSite`), and no script can read it (`HttpOnly`).

To a browser, all ports of a machine are one site, and get each other's cookies. So that nobody on a login node gets in
with a cookie that its server was sent, a session that was begun within the machine is for the account that began it, as
the kernel says."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from mendflow.core.model.errors import Forbidden, InvalidRequest, RequestError, Unauthorized
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import Principal
from mendflow.core.model.sessions import SignedInBy, SignInCode
from mendflow.server.access import (
    DOMAIN,
    PEERS,
    AccessControl,
    RequestOrigin,
    allowed_roles,
    check_roles,
    origin_of,
    token_hash,
)
from mendflow.server.failed_attempts import NOTHING_SHOWN
from mendflow.server.local_callers import FOREIGN_SITES, READ_METHODS
from mendflow.services.base.clock import wall_ms
from mendflow.services.cluster.browser_sessions import BrowserSessions, StoredSession

if TYPE_CHECKING:
    from litestar.types import HTTPScope

Headers = Iterable[tuple[bytes, bytes]]

COOKIE: Final = "mendflow_session"
COOKIE_CHARS_MAX: Final = 400
REQUEST_HEADER: Final = b"mendflow-request"
FROM_PAGE: Final = b"web"
OVER: Final = "your session is over: sign in again"
BAD_CODE: Final = (
    "this code signs nobody in: it was used, or is older than a minute, or is for another account. mendflow ui makes"
    " another"
)


def header(headers: Headers, name: bytes) -> bytes:
    return next((value for each, value in headers if each == name), b"")


def session_ticket(headers: Headers) -> str:
    return cookie_value(headers, COOKIE, COOKIE_CHARS_MAX)


def cookie_value(headers: Headers, cookie: str, chars_max: int) -> str:
    """What the cookie has; empty if there is none, or several: then somebody else has set one."""
    sent = [value for name, value in headers if name == b"cookie"]
    if not sent or cookie.encode() not in b"".join(sent):
        return ""
    words = [word.strip() for line in sent for word in line.decode("latin-1").split(";")]
    found = [word.removeprefix(f"{cookie}=") for word in words if word.startswith(f"{cookie}=")]
    return found[0] if len(found) == 1 and len(found[0]) <= chars_max else ""


def _is_for(session: StoredSession, origin: RequestOrigin) -> bool:
    """Whether whoever is there may use it. The administrator of the machine can take any account anyway."""
    if not session.token and not session.name:
        return origin.account is not None and origin.account in (os.geteuid(), 0)
    return session.account is None or origin.account in (session.account, 0)


def _session_of(caller: Principal, issuer: str, origin: RequestOrigin, expires_at: Instant) -> StoredSession:
    """The session of somebody whom an issuer knows."""
    return StoredSession(
        name=caller.name,
        issuer=issuer,
        roles=sorted(caller.roles),
        projects=dict(caller.projects),
        account=origin.account,
        expires_at=expires_at,
    )


def _is_navigation(scope: HTTPScope) -> bool:
    """Whether somebody has followed a link to here."""
    return scope["method"] == "GET" and header(scope["headers"], b"sec-fetch-mode") == b"navigate"


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


class SignedIn(NamedTuple):
    """Who signed in, and the cookie that says so from now on; empty if none is needed."""

    caller: Principal
    cookie: str


class CodeSignIn(NamedTuple):
    """What a code would do: whom it signs in, and who of another account is signed in by now, if anybody is."""

    name: str
    replaces: str


class SignIn:
    """Admits whoever has a session, and all others as access control does. `url` is the address where others reach this
    server, if that is not the one that it listens on."""

    def __init__(self, access: AccessControl, sessions: BrowserSessions, url: str = "") -> None:
        self.access = access
        self.sessions = sessions
        self._url = urlsplit(url)

    # Requests

    async def receive(self, scope: HTTPScope) -> Principal:
        headers, path = scope["headers"], scope["path"]
        ticket = session_ticket(headers)
        if not ticket or header(headers, b"authorization") or path.startswith((DOMAIN, PEERS)):
            return await self.access.receive(scope)
        is_forwarded = self.access.is_from_server(headers)
        origin = origin_of(scope)
        caller = await self._caller(ticket, None if is_forwarded else origin)
        if caller is None:
            return await self._receive_without(scope, ticket, origin)
        if not is_forwarded:
            self.demand_own_page(scope)
        check_roles(caller, allowed_roles(scope["method"], path))
        return caller

    async def _receive_without(self, scope: HTTPScope, ticket: str, origin: RequestOrigin) -> Principal:
        """The cookie is of no use. It may be that of another server of this machine, or of a session that is over."""
        try:
            return await self.access.receive(scope)
        except Unauthorized as error:
            if error.fields.get("reason") != NOTHING_SHOWN:
                raise
            if not await self.sessions.is_genuine(ticket):
                self.access.note_failure(origin, "session")
                raise Unauthorized(OVER) from None
            raise Unauthorized(OVER, reason=NOTHING_SHOWN) from None

    async def _caller(self, ticket: str, origin: RequestOrigin | None) -> Principal | None:
        """Whose session it is. Without an origin, another server has looked at that."""
        session = await self.sessions.find(ticket)
        if session is None or (origin is not None and not _is_for(session, origin)):
            return None
        if not session.token:
            return self._named_by_issuer(session)
        try:
            return await self.access.holder(session.token)
        except Unauthorized:  # its token has expired
            return None

    def _named_by_issuer(self, session: StoredSession) -> Principal | None:
        """Whom the issuer has named; None if that was another issuer than the server has now."""
        if not session.name or not session.issuer or session.issuer != self._issuer():
            return None
        named = Principal(session.name, frozenset(session.roles), session.projects)
        return self.access.with_memberships(named, by_issuer=True)

    def _issuer(self) -> str:
        return self.access.issuer.options.issuer if self.access.issuer is not None else ""

    async def find(self, headers: Headers) -> Principal | None:
        """Who asks, whatever it may do; None if nobody knows."""
        ticket = session_ticket(headers)
        known = self.access.find(headers)
        if known is not None or not ticket:
            return known
        try:
            return await self._caller(ticket, None)
        except RequestError:  # the store cannot be asked
            return None

    async def signed_in_by(self, scope: HTTPScope, origin: RequestOrigin) -> SignedInBy:
        headers = scope["headers"]
        if self.access.find(headers) is not None:
            return "token"
        ticket = session_ticket(headers)
        return "session" if ticket and await self._caller(ticket, origin) is not None else "socket"

    def demand_own_page(self, scope: HTTPScope) -> None:
        """Refuse what a page of another site has made the browser send."""
        headers = scope["headers"]
        if header(headers, b"sec-fetch-site") in FOREIGN_SITES and not _is_navigation(scope):
            raise Forbidden("a page of another site may not use your session here")
        if scope["method"] in READ_METHODS:
            return
        self.demand_own_origin(headers, required=True)
        if header(headers, REQUEST_HEADER) != FROM_PAGE:
            raise Forbidden("what is changed by a session needs the header `Mendflow-Request: web`")

    def demand_own_origin(self, headers: Headers, *, required: bool = False) -> None:
        origin, host = (header(headers, name).decode("latin-1").lower() for name in (b"origin", b"host"))
        if not origin and not required:
            return
        if not self._is_own(origin, host):
            raise Forbidden(
                f"this came from a page of {origin[:200] or 'an unknown site'}, and this server is {host[:200]}; if it"
                " is both, behind a proxy, start the server with --url and that address"
            )

    def _is_own(self, address: str, host: str) -> bool:
        return _place(address) in {host, self._url.netloc.lower()} - {""}

    def comes_from_elsewhere(self, headers: Headers) -> bool:
        """Whether a page of another site has led here, as far as the browser says (`Referer`)."""
        page, host = (header(headers, name).decode("latin-1").lower() for name in (b"referer", b"host"))
        return page != "" and not self._is_own(page, host)

    @property
    def issuer(self) -> str:
        """Where browsers sign in elsewhere; empty if they do not."""
        issuer = self.access.issuer
        return issuer.options.issuer if issuer is not None and issuer.options.client is not None else ""

    def is_secure(self, scope: HTTPScope) -> bool:
        """Whether this browser reaches the server by TLS, as far as a proxy if there is one."""
        return scope["scheme"] == "https" or self._url.scheme == "https"

    def own_address(self, scope: HTTPScope) -> str:
        """Where this browser sees the server: at the address that it was given, else where it was asked."""
        if self._url.netloc:
            return f"{self._url.scheme}://{self._url.netloc}"
        return f"{scope['scheme']}://{header(scope['headers'], b'host').decode('latin-1')}"

    # Signing in and out

    async def begin(self, scope: HTTPScope, origin: RequestOrigin, *, token: str, code: str) -> SignedIn:
        """A session for whoever has this token or code."""
        self.demand_own_origin(scope["headers"])
        if header(scope["headers"], b"sec-fetch-site") in FOREIGN_SITES:
            raise Forbidden("a page of another site may not sign you in here")
        if bool(token) == bool(code):
            raise InvalidRequest("give a token, or a code that `mendflow ui` has made, and not both")
        if token:
            caller = await self.access.identify(token, origin)
            session = self._session(caller, token_hash(token), origin)
        else:
            session = await self._redeemed(code, origin)
            caller = await self._named(session)
        if not session.token and not session.name:
            return SignedIn(caller, "")  # the account that runs the server needs no session
        ticket, expires_at = await self.sessions.create(session)
        return SignedIn(caller, self._cookie(scope, ticket, expires_at))

    async def begin_named(self, scope: HTTPScope, origin: RequestOrigin, caller: Principal, lasts_ms: int) -> SignedIn:
        """A session for somebody whom an issuer has named just now."""
        session = _session_of(caller, self._issuer(), origin, wall_ms() + lasts_ms)
        ticket, expires_at = await self.sessions.create(session)
        return SignedIn(caller, self._cookie(scope, ticket, expires_at))

    async def foreseen(self, scope: HTTPScope, origin: RequestOrigin, code: str) -> CodeSignIn | None:
        """What a code would do, which holds still afterwards; None if it signs nobody in."""
        wanted, ticket = await self.sessions.meant(code), session_ticket(scope["headers"])
        if wanted is None or not _is_for(wanted, origin) or not (wanted.token or wanted.name):
            return None
        name, there = (await self._named(wanted)).name, await self.sessions.find(ticket) if ticket else None
        if there is None or (now := await self._caller(ticket, origin)) is None:
            return CodeSignIn(name, "")
        is_same = (now.name, there.issuer) == (name, wanted.issuer)
        return CodeSignIn(name, "" if is_same else now.name)

    async def _redeemed(self, code: str, origin: RequestOrigin) -> StoredSession:
        session = await self.sessions.redeem(code)
        if session is None or not _is_for(session, origin):
            self.access.note_failure(origin, "code")
            raise Unauthorized(BAD_CODE)
        return session

    async def _named(self, session: StoredSession) -> Principal:
        """Who a code is for, if its token holds still."""
        if not session.token and not session.name:
            return Principal("local", frozenset())
        caller = self._named_by_issuer(session) if session.name else await self.access.holder(session.token)
        if caller is None:
            raise Unauthorized("the token that this code was made with has been revoked: sign in with another")
        return caller

    async def end(self, scope: HTTPScope) -> str:
        """End the session of this browser, if it has one. The answer is the cookie that takes its place."""
        if ticket := session_ticket(scope["headers"]):
            await self.sessions.end(ticket)
        return self._cookie(scope, "", 0)

    async def create_code(self, scope: HTTPScope, caller: Principal, origin: RequestOrigin) -> SignInCode:
        """A code for the browser of whoever asks."""
        shown = header(scope["headers"], b"authorization").partition(b" ")[2].strip().decode("latin-1")
        if shown and self.access.find(scope["headers"]) is not None:
            return await self.sessions.create_code(self._session(caller, token_hash(shown), origin))
        ticket = session_ticket(scope["headers"])
        session = await self.sessions.find(ticket) if ticket else None
        if session is not None:
            return await self.sessions.create_code(session)
        if not self.access.is_local:
            raise Unauthorized(OVER)
        return await self.sessions.create_code(StoredSession(account=origin.account))

    def _session(self, caller: Principal, sha256: str, origin: RequestOrigin) -> StoredSession:
        issuer = self.access.issuer
        if issuer is not None and issuer.known(sha256) is not None:
            return _session_of(caller, self._issuer(), origin, issuer.holds_until(sha256))
        return StoredSession(token=sha256, account=origin.account, expires_at=self.access.expires_at(sha256))

    def _cookie(self, scope: HTTPScope, ticket: str, expires_at: Instant) -> str:
        lasts_s = max(0, (expires_at - wall_ms()) // 1000) if ticket else 0
        secure = "; Secure" if self.is_secure(scope) else ""
        return f"{COOKIE}={ticket}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"
