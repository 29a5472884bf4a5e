"""Browsers that sign in at an OpenID Connect issuer: `/sign-in/issuer` leads there, `/sign-in/issuer/done` back.

Between the two, this server keeps nothing. The browser has a cookie with chance in it, marked by the servers of the
store. All that the sign-in is known by comes from that chance and a key of the servers: so any server on the store
takes up what another began, nobody fills the store by beginning, and neither the state in an address nor a stolen
cookie gives away the rest. The way back counts in the browser that began, for ten minutes, and once: who has signed in
is noted."""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

from mendflow.core.model.errors import Forbidden, NotFound, RequestError, Unauthorized
from mendflow.core.model.ids import Instant
from mendflow.server.access import RequestOrigin, origin_of
from mendflow.server.oidc_code import CodeExchange, SignInWords, issuer_word
from mendflow.server.request_audit import note
from mendflow.server.sign_in import SignedIn, SignIn, cookie_value
from mendflow.server.sign_in_page import SIGN_IN_PATH, own_path, send_refusal
from mendflow.server.web_app import send_redirect
from mendflow.services.base.clock import wall_ms

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive, Send

BEGIN_PATH: Final = f"{SIGN_IN_PATH}/issuer"
DONE_PATH: Final = f"{BEGIN_PATH}/done"
END_PATH: Final = f"{BEGIN_PATH}/end"
BEGUN_COOKIE: Final = "mendflow_sign_in"
BEGUN_MS: Final = 10 * 60_000
CODE_CHARS_MAX: Final = 4_096
_COOKIE_CHARS_MAX: Final = 2_000

NOT_BEGUN: Final = (
    "this browser has begun no sign-in that this could be the end of: it was begun elsewhere, or is longer ago than ten"
    " minutes, or was finished already"
)


class Begun(NamedTuple):
    """A sign-in that a browser has begun, and where it wants to go on."""

    at: Instant
    chance: str
    wanted: str


def issuer_sign_in(sign_in: SignIn) -> IssuerSignIn | None:
    """None where browsers do not sign in elsewhere."""
    issuer = sign_in.access.issuer
    client = issuer.options.client if issuer is not None else None
    if issuer is None or client is None:
        return None
    return IssuerSignIn(sign_in, CodeExchange(issuer, client), client.session_ms)


class IssuerSignIn:
    """The addresses of a browser that signs in elsewhere."""

    def __init__(self, sign_in: SignIn, exchange: CodeExchange, session_ms: int) -> None:
        self._sign_in, self._exchange, self._session_ms = sign_in, exchange, session_ms
        self._answers = {BEGIN_PATH: self._begin, DONE_PATH: self._finish, END_PATH: self._end}

    def answers(self, scope: HTTPScope) -> bool:
        return scope["path"] in self._answers and scope["method"] == "GET"

    async def __call__(self, scope: HTTPScope, _receive: Receive, send: Send) -> None:
        await self._answers[scope["path"]](scope, send)

    async def _begin(self, scope: HTTPScope, send: Send) -> None:
        wanted = own_path(_query(scope).get("next", ""))
        begun = Begun(wall_ms(), secrets.token_urlsafe(32), wanted)
        try:
            address = await self._exchange.address(await self._words(begun), self._own(scope, DONE_PATH))
        except RequestError as error:
            await send_refusal(scope, send, error, wanted)
            return
        cookie = await self._ticket(begun, origin_of(scope))
        await send_redirect(scope, send, address, self._cookie(scope, cookie, BEGUN_MS))

    async def _finish(self, scope: HTTPScope, send: Send) -> None:
        note(operation="sign_in")
        begun: Begun | None = None
        try:
            begun = await self._begun(scope, _query(scope).get("state", ""))
            signed_in = await self._signed_in(scope, begun)
        except RequestError as error:
            # What a foreign page has led here must not end a sign-in that goes on beside it.
            over = self._cookie(scope, "", 0) if begun is not None else ""
            await send_refusal(scope, send, error, begun.wanted if begun is not None else "/", over)
            return
        note(who=signed_in.caller.name)
        await send_redirect(scope, send, begun.wanted, signed_in.cookie, self._cookie(scope, "", 0))

    async def _end(self, scope: HTTPScope, send: Send) -> None:
        """Sign out of the issuer too. It asks the person itself, if it wants to."""
        try:
            address = await self._exchange.end_address(self._own(scope, SIGN_IN_PATH))
            if not address:
                raise NotFound(
                    f"the issuer {self._exchange.name} has no address where one signs out: open it, and sign out there"
                )
        except RequestError as error:
            await send_refusal(scope, send, error)
            return
        await send_redirect(scope, send, address)

    async def _signed_in(self, scope: HTTPScope, begun: Begun) -> SignedIn:
        query, origin, access = _query(scope), origin_of(scope), self._sign_in.access
        access.check_failures(origin)
        try:
            if (named := query.get("iss", self._exchange.name)) != self._exchange.name:
                raise Unauthorized(f"{issuer_word(named)} has answered, and another was asked", reason="unknown")
            if refusal := query.get("error", ""):
                said = ": ".join(issuer_word(each) for each in (refusal, query.get("error_description", "")) if each)
                raise Unauthorized(f"the issuer {self._exchange.name} has not signed you in ({said})")
            code = query.get("code", "")
            if not 0 < len(code) <= CODE_CHARS_MAX:
                raise Unauthorized(
                    f"the issuer {self._exchange.name} has sent no code: sign in again", reason="unknown"
                )
            caller = await self._exchange.redeem(code, await self._words(begun), self._own(scope, DONE_PATH))
            if not await self._sign_in.sessions.use_up(begun.chance, caller.name, BEGUN_MS):
                raise Unauthorized(NOT_BEGUN, reason="code")
        except (Unauthorized, Forbidden) as error:
            access.note_failure(origin, str(error.fields.get("reason", "")))
            raise
        return await self._sign_in.begin_named(scope, origin, caller, self._session_ms)

    # The cookie: when, chance, where to go on, and the mark of the servers

    async def _begun(self, scope: HTTPScope, state: str) -> Begun:
        """The sign-in that this browser has begun, if the state is its own."""
        origin = origin_of(scope)
        found = await self._read(cookie_value(scope["headers"], self._cookie_name(scope), _COOKIE_CHARS_MAX), origin)
        if found is None or not hmac.compare_digest((await self._words(found)).state.encode(), state.encode()):
            self._sign_in.access.note_failure(origin, "code")
            raise Unauthorized(NOT_BEGUN)
        return found

    async def _read(self, ticket: str, origin: RequestOrigin) -> Begun | None:
        at, _, rest = ticket.partition(".")
        chance, _, rest = rest.partition(".")
        wanted = rest.partition(".")[0]
        if not (at.isascii() and at.isdecimal() and len(at) < 20):
            return None
        try:
            begun = Begun(int(at), chance, base64.urlsafe_b64decode(wanted).decode())
        except ValueError:
            return None
        is_ours = hmac.compare_digest((await self._ticket(begun, origin)).encode(), ticket.encode())
        return begun if is_ours and abs(wall_ms() - begun.at) <= BEGUN_MS else None

    async def _ticket(self, begun: Begun, origin: RequestOrigin) -> str:
        """Within the machine it is for the account that began: cookies go to every port there."""
        wanted = base64.urlsafe_b64encode(begun.wanted.encode()).decode()
        whole = f"{begun.at}.{begun.chance}.{wanted}"
        return f"{whole}.{await self._sign_in.sessions.mark(f'ticket {origin.account} {whole}')}"

    async def _words(self, begun: Begun) -> SignInWords:
        mark = self._sign_in.sessions.mark
        return SignInWords(*[await mark(f"{name} {begun.chance}") for name in SignInWords._fields])

    def _cookie_name(self, scope: HTTPScope) -> str:
        """Under TLS, by its name, no other host of the domain can have set it."""
        return f"__Host-{BEGUN_COOKIE}" if self._sign_in.is_secure(scope) else BEGUN_COOKIE

    def _cookie(self, scope: HTTPScope, ticket: str, lasts_ms: int) -> str:
        """`Lax`: it is sent when the issuer leads back, and at nothing else that comes from other sites."""
        secure = "; Secure" if self._sign_in.is_secure(scope) else ""
        name = self._cookie_name(scope)
        return f"{name}={ticket}; Path=/; Max-Age={lasts_ms // 1000}; HttpOnly; SameSite=Lax{secure}"

    def _own(self, scope: HTTPScope, path: str) -> str:
        return self._sign_in.own_address(scope) + path


def _query(scope: HTTPScope) -> dict[str, str]:
    """What the address says; what it says twice counts for nothing."""
    given = parse_qs(scope["query_string"].decode("latin-1"))
    return {name: values[0] for name, values in given.items() if len(values) == 1}
