"""Access control: which requests the server admits.

It is safe without configuration: with no tokens the server listens on loopback only, answers only the account that
runs it, and refuses requests that a web page in the user's browser could send. With tokens, every request has to carry
one: of the token file, of the store, or of the OpenID Connect issuer. The server keeps only the SHA-256 of each token,
so neither the token file, nor memory, nor a log can leak it, and the time that the look-up of a hash takes tells an
attacker nothing about the token."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from mendflow.address_guard import is_loopback
from mendflow.core.model.access_tokens import NAME, NAME_RULE, ROLE, ROLE_RULE, weakness
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound, StoreUnavailable, Unauthorized
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import ADMIN, ENGINE, PILOT, Principal
from mendflow.lazy import lazy_pattern
from mendflow.local_accounts import ACCOUNT_STATE
from mendflow.operations.roles import OPERATORS, VIEWERS, AllowedRoles
from mendflow.operations.table import API, find_operation
from mendflow.server.access_headers import (
    ADMITTED_BY_ACCOUNT,
    ADMITTED_HEADER,
    ADMITTED_STATE,
    FORWARDED_HEADER,
    access_headers,
)
from mendflow.server.failed_attempts import NOTHING_SHOWN, AttemptThrottle
from mendflow.server.local_callers import ANONYMOUS, READ_METHODS, admit_local
from mendflow.server.private_files import require_private
from mendflow.services.base.hidden_texts import TOKENS_MAX as HIDDEN_TOKENS_MAX
from mendflow.services.cluster.access_tokens import AccessTokens

if TYPE_CHECKING:
    from litestar.types import HTTPScope

    from mendflow.server.oidc import OidcIssuer

PEERS = f"{API}/peers/"
"""Paths between servers on one store: nobody else may use them, not even an administrator."""

DOMAIN = f"{API}/domain/"
"""Paths between domains: only the token of a connection opens them, and opens no other."""

SOAP_PORTS = "/soap/"
"""SOAP paths, by which engines of other systems use the queue."""

LOOK_AGAIN_S: Final = 0.2
"""A token that is not known makes the server look into the store, at most once in this time."""

OF_ISSUER: Final = ("one of the issuer's", "another of the issuer's")
"""In place of names that nobody knows before they come."""

TOLD_MAX: Final = HIDDEN_TOKENS_MAX
"""So many tokens are not told again to whoever hides them."""

_SHA256 = lazy_pattern(r"[0-9a-f]{64}")


class AccessToken(msgspec.Struct, frozen=True):
    """A token as the server knows it. Besides the six built-in roles a token may have roles of its own, for user
    tasks."""

    name: str
    roles: frozenset[str]
    sha256: str


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def single_token(token: str) -> list[AccessToken]:
    """The tokens of a server that accepts one token for everything; none if `token` is empty."""
    return [AccessToken("admin", frozenset({ADMIN}), token_hash(token))] if token else []


def new_token(name: str, roles: Sequence[str]) -> tuple[str, str]:
    """A fresh token and the line for the token file that makes it known."""
    if not NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is not a valid name for a token; {NAME_RULE}")
    if bad := [role for role in roles if not ROLE.fullmatch(role)]:
        raise InvalidRequest(f"{bad[0]!r} is no role; {ROLE_RULE}")
    token = secrets.token_urlsafe(32)
    return token, f"{name} {','.join(roles)} {token_hash(token)}"


def require_strong(token: str) -> None:
    """Refuse a token of MENDFLOW_TOKEN that could be guessed."""
    if token and (why := weakness(token)):
        raise InvalidRequest(
            f"the token in MENDFLOW_TOKEN could be guessed: {why}. Make one with: openssl rand -hex 32, or"
            " mendflow admin tokens line NAME --role admin"
        )


def load_tokens(path: str | Path) -> list[AccessToken]:
    """The tokens of a token file that nobody else can read or write."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            require_private(os.fstat(file.fileno()), path, "token file", "whoever writes there lets itself in")
            tokens = read_tokens(file.read(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(
            f"cannot read the token file {path}; check that it exists and is text", path=str(path)
        ) from error
    if not tokens:
        raise InvalidRequest(
            f"the token file {path} has no tokens: mendflow admin tokens line NAME --role admin --append {path}"
        )
    return tokens


def read_tokens(text: str, source: str = "tokens") -> list[AccessToken]:
    """Read a token file. Each line is NAME ROLE[,ROLE...] SHA256-OF-THE-TOKEN; empty lines and comments after `#` are
    ignored."""
    tokens: dict[str, AccessToken] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        # The line itself is not shown: someone may have written the token in it instead of its hash.
        if len(words) != 3 or not NAME.fullmatch(words[0]) or not _SHA256.fullmatch(words[2].lower()):
            raise InvalidRequest(
                f"{source}, line {number}: write NAME ROLE[,ROLE] and the token's SHA-256", line=number
            )
        roles = words[1].split(",")
        if bad := [role for role in roles if not ROLE.fullmatch(role)]:
            raise InvalidRequest(f"{source}, line {number}: {bad[0]!r} is no role; {ROLE_RULE}", line=number)
        digest = words[2].lower()
        if digest in tokens:
            raise InvalidRequest(
                f"{source}, line {number}: the token of {tokens[digest].name!r} is given again", line=number
            )
        tokens[digest] = AccessToken(words[0], frozenset(roles), digest)
    return list(tokens.values())


def is_for_several(tokens: Iterable[AccessToken], *, issuer: bool = False) -> bool:
    """Whether more than one person or program may let jobs run here. `issuer`: there is an OpenID Connect issuer, and
    so whoever it knows."""
    able = {token.name for token in tokens if Principal(token.name, token.roles).may_let_jobs_run}
    return issuer or len(able) > 1


def check_binding(host: str, tokens: Sequence[AccessToken], *, issuer: bool = False) -> None:
    """Refuse to listen on a public address without a token. `issuer`: there is an OpenID Connect issuer."""
    if not tokens and not issuer and not is_loopback(host):
        raise Forbidden(
            f"will not listen on {host or 'all addresses'} without a token: whoever reaches this address could run"
            " commands here. Set MENDFLOW_TOKEN or give a token file, or listen on 127.0.0.1",
            host=host,
        )


class RequestOrigin(NamedTuple):
    """Where a request comes from: its address and, within this machine, the account that sent it, if the kernel says
    so."""

    address: str
    account: int | None


def origin_of(scope: "HTTPScope") -> RequestOrigin:
    client, state = scope.get("client"), scope.get("state") or {}
    return RequestOrigin(client[0] if client else "", state.get(ACCOUNT_STATE))


class AccessControl:
    """Admits requests: by token and role if there are tokens; otherwise from the account that runs the server, and not
    from web pages."""

    def __init__(
        self,
        tokens: Iterable[AccessToken] = (),
        *,
        own_tokens: Iterable[AccessToken] = (),
        stored: AccessTokens | None = None,
        issuer: "OidcIssuer | None" = None,
        servers_token: str = "",
        failures: AttemptThrottle | None = None,
        hide: Callable[[str], None] = lambda _token: None,
    ) -> None:
        """`tokens` are those that somebody gave to the server, `own_tokens` those that it made for its pilots, `stored`
        those in the store. `issuer` checks tokens of OpenID Connect. `servers_token` is the token that the other
        servers on the same store send; empty if there are none. `hide` is told each token by which somebody may be a
        pilot: jobs run beside it. It is told again after TOLD_MAX others."""
        self._hide = hide
        self._told: dict[str, None] = {}  # in the order in which they were told
        self._servers_sha256 = token_hash(servers_token) if servers_token else ""
        self._own_tokens = list(own_tokens)
        self._stored = stored
        self.issuer = issuer
        self._failures = failures or AttemptThrottle()
        self._looked_at = 0.0
        self.replace_tokens(tokens)

    def replace_tokens(self, tokens: Iterable[AccessToken]) -> None:
        """These tokens, and no others, were given to the server."""
        self.tokens = list(tokens)
        known = [*self.tokens, *self._own_tokens]
        self._principals = {token.sha256: Principal(token.name, token.roles) for token in known}

    @property
    def is_local(self) -> bool:
        """Whether the account that runs the server needs no token."""
        return not self.tokens and self.issuer is None

    async def receive(self, scope: "HTTPScope") -> Principal:
        """Who sent this request, if it may ask this. What fails is counted, and slowed down where there is much of
        it."""
        origin, sent = origin_of(scope), access_headers(scope["headers"])
        try:
            if token := _token_of(sent.get(b"authorization", b"")):
                await self._look_further(token, origin)
            caller = self.admit(scope["method"], scope["path"], sent.items(), origin)
        except (Unauthorized, Forbidden) as error:
            self.note_failure(origin, str(error.fields.get("reason", "")))
            raise
        by_account = self.is_local and bool(caller.name) and not (token and self.find(sent.items()))
        scope.setdefault("state", {})[ADMITTED_STATE] = ADMITTED_BY_ACCOUNT if by_account else b""
        return caller

    async def identify(self, token: str, origin: RequestOrigin) -> Principal:
        """Who has this token, with which somebody wants to sign in."""
        try:
            await self._look_further(token.encode(), origin)
            if (caller := self._find(token_hash(token))) is None:
                raise _unknown_token()
        except (Unauthorized, Forbidden) as error:
            self.note_failure(origin, str(error.fields.get("reason", "")))
            raise
        return caller

    async def holder(self, sha256: str) -> Principal | None:
        """Who has the token with this hash; None if it was revoked. Raises if it has expired."""
        if self._find(sha256) is None:
            await self._read_stored()
        return self._find(sha256)

    def note_failure(self, origin: RequestOrigin, reason: str) -> None:
        """Count an attempt to get in; raises if there were too many from there."""
        if reason:
            self._failures.note(origin.address, reason)

    def check_failures(self, origin: RequestOrigin) -> None:
        """Raises if there were too many from there, before anything costly is done for it."""
        self._failures.check(origin.address)

    async def _look_further(self, token: bytes, origin: RequestOrigin) -> None:
        """Find out about a token that is not known yet: the issuer may have made it, or another server a moment
        ago."""
        if self._find(hashlib.sha256(token).hexdigest()) is not None:
            return
        text = token.decode("latin-1")
        if self.issuer is not None and text.count(".") == 2:
            self._failures.check(origin.address)
            await self.issuer.check(text)
        else:
            await self._read_stored()

    async def _read_stored(self) -> None:
        if self._stored is not None and time.monotonic() - self._looked_at > LOOK_AGAIN_S:
            self._looked_at = time.monotonic()
            with suppress(StoreUnavailable):
                await self._stored.read()

    def expires_at(self, sha256: str) -> Instant:
        """When the token with this hash ends by itself; 0 if it does not."""
        found = self._stored.find(sha256) if self._stored is not None else None
        return found[0].expires_at if found is not None else 0

    def admit(
        self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]], origin: RequestOrigin | None = None
    ) -> Principal:
        """Without an origin, it is this process itself that asks."""
        sent = access_headers(headers)
        shown = sent.get(b"authorization", b"")
        if path.startswith(DOMAIN):
            return ANONYMOUS  # whose token it is, the connections say
        if path.startswith(PEERS) or _normalized_path(path).startswith(PEERS):
            return self._admit_peer(shown)
        sha256 = _sha256_of(shown)
        caller = self._find(sha256)
        allowed = allowed_roles(method, path)
        if caller is None and self.is_local and self._came_by_account(sent):
            account = origin.account if origin is not None else os.geteuid()
            return admit_local(method, sent, account, anybody=allowed.anybody)
        if caller is None:
            if allowed.anybody:
                return ANONYMOUS
            if b"authorization" in sent:
                raise _unknown_token()
            raise Unauthorized(
                "this server wants a token: send it as `Authorization: Bearer TOKEN`", reason=NOTHING_SHOWN
            )
        check_roles(caller, allowed)
        if sha256 not in self._told and caller.roles & {PILOT, ADMIN}:
            self._told[sha256] = None
            if len(self._told) > TOLD_MAX:
                del self._told[next(iter(self._told))]
            self._hide(shown.partition(b" ")[2].strip().decode("latin-1"))
        return caller

    def _came_by_account(self, sent: Mapping[bytes, bytes]) -> bool:
        """Whether the account that a request comes from says who asks. One that another server forwards comes from
        that server's account, whoever asked there: it says whether it admitted the request by an account itself."""
        is_from_server = FORWARDED_HEADER in sent and self.is_from_server(sent.items())
        return not is_from_server or sent.get(ADMITTED_HEADER) == ADMITTED_BY_ACCOUNT

    def _find(self, sha256: str) -> Principal | None:
        """Who has the token with this hash."""
        if (given := self._principals.get(sha256)) is not None or not sha256:
            return self.with_memberships(given) if given is not None else None
        if self._stored is not None and (found := self._stored.find(sha256)) is not None:
            token, principal = found
            if self._stored.is_over(token):
                day = datetime.fromtimestamp(token.expires_at / 1000, UTC)
                raise Unauthorized(
                    f"the token {token.name!r} expired on {day:%Y-%m-%d at %H:%M} UTC: ask whoever runs this server"
                    " for another",
                    reason="expired",
                )
            self._stored.note_use(token)
            return principal
        named = self.issuer.known(sha256) if self.issuer is not None else None
        return self.with_memberships(named, by_issuer=True) if named is not None else None

    def with_memberships(self, caller: Principal, *, by_issuer: bool = False) -> Principal:
        """Somebody with what administrators of projects say that it is there."""
        return self._stored.members.added_to(caller, by_issuer=by_issuer) if self._stored is not None else caller

    def find(self, headers: Iterable[tuple[bytes, bytes]]) -> Principal | None:
        """Whose token it is, whatever it may do; None if nobody knows."""
        shown = [value for name, value in headers if name == b"authorization"]
        try:
            return self._find(_sha256_of(shown[0])) if len(shown) == 1 else None
        except Unauthorized:
            return None

    def serves_several(self, *more: Principal) -> bool:
        """Whether more than one person or program may let jobs run here, of all whose tokens are known by now, whoever
        needs none, and `more`."""
        return len(self.job_owners() | {each.name for each in more if each.may_let_jobs_run}) > 1

    def job_owners(self) -> set[str]:
        """Who may let jobs run here, by name. An issuer stands for several, and the account that runs the server, if it
        needs no token, for one."""
        stored = self._stored.principals() if self._stored is not None else ()
        given = map(self.with_memberships, self._principals.values())
        able = {each.name for each in (*given, *stored) if each.may_let_jobs_run}
        if self.is_local:
            able.add(f"account {os.geteuid()}")
        return able | set(OF_ISSUER if self.issuer is not None else ())

    def is_forwarded(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether another server forwarded this request. Only a server's token can say so; the caller's own token is
        checked again here."""
        shown = access_headers(headers).get(FORWARDED_HEADER)
        return shown is not None and self._admit_peer(shown) is _PEER

    def is_from_server(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """The same, where a token that is none is no error: whoever sends it is no server."""
        try:
            return self.is_forwarded(headers)
        except (Unauthorized, InvalidRequest):
            return False

    def _admit_peer(self, authorization: bytes) -> Principal:
        shown = _sha256_of(authorization)
        if not self._servers_sha256 or not secrets.compare_digest(shown, self._servers_sha256):
            raise Unauthorized("this path is for the servers on the same store only", reason="unknown")
        return _PEER


def _unknown_token() -> Unauthorized:
    return Unauthorized("this server does not know that token: ask whoever runs it for one of yours", reason="unknown")


def _token_of(authorization: bytes) -> bytes:
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _sha256_of(authorization: bytes) -> str:
    token = _token_of(authorization)
    return hashlib.sha256(token).hexdigest() if token else ""


def is_allowed(caller: Principal, method: str, path: str) -> bool:
    """Whether there is anything that somebody may send this request about."""
    return allowed_roles(method, path).allow(caller)


def allowed_roles(method: str, path: str) -> AllowedRoles:
    """Who may send this request. Where there is nothing to ask for, whoever may read, or change, hears that."""
    reads = method in READ_METHODS
    operation = find_operation(method, path) or (find_operation("GET", path) if reads else None)
    if operation is not None:
        return operation.allowed
    people = VIEWERS if reads else OPERATORS
    return people | ENGINE if _normalized_path(path).removeprefix(API).startswith(SOAP_PORTS) else people


def check_roles(caller: Principal, allowed: AllowedRoles) -> None:
    if not allowed.allow(caller):
        own = (f"{caller.role_in(name)} in {name}" for name in sorted({*caller.projects, *caller.memberships}))
        has = ", ".join([*sorted(caller.roles), *own])
        raise Forbidden(
            f"the token {caller.name!r} may not do this: it has the roles {has}, and this is for {allowed.named()}"
        )


def _normalized_path(path: str) -> str:
    """The path as the router reads it: `//peers/` is the same route as `/peers`."""
    return _SLASHES.sub("/", path).rstrip("/") or "/" if "//" in path or path.endswith("/") else path


_SLASHES = lazy_pattern("/{2,}")
_PEER = Principal("", frozenset())
