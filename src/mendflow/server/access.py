"""Access control: which requests the server admits.

It is safe without configuration: with no tokens the server listens on loopback only and refuses requests that a web
page in the user's browser could send. With tokens, every request has to carry one. The server keeps only the SHA-256 of
each token, so neither the token file, nor memory, nor a log can leak it, and the time that the look-up of a hash takes
tells an attacker nothing about the token."""

import hashlib
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from mendflow.lazy import lazy_pattern
from mendflow.operations.roles import ADMIN, ENGINE, PILOT, READERS, USERS, AllowedRoles
from mendflow.operations.table import API, find_operation

PEERS = f"{API}/peers/"
"""Paths between servers on one store: nobody else may use them, not even an administrator."""

DOMAIN = f"{API}/domain/"
"""Paths between domains: only the token of a connection opens them, and opens no other."""

SOAP_PORTS = "/soap/"
"""SOAP paths, by which engines of other systems use the queue."""

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_ROLE = lazy_pattern(r"[a-z][a-z0-9_-]{0,63}")
_NAME = lazy_pattern(r"[\w.@+-]{1,64}")
_SHA256 = lazy_pattern(r"[0-9a-f]{64}")
NAME_RULE = "use up to 64 letters, digits, and . @ + - _"
ROLE_RULE = "use small letters, digits, -"


class AccessToken(msgspec.Struct, frozen=True):
    """A token as the server knows it. Besides the six built-in roles a token may have roles of its own, for user
    tasks."""

    name: str
    roles: frozenset[str]
    sha256: str


class Principal(msgspec.Struct, frozen=True):
    """Whoever sent the request."""

    name: str
    roles: frozenset[str]

    def require_task_role(self, role: str) -> None:
        if role and role not in self.roles and ADMIN not in self.roles:
            raise Forbidden(f"this user task is for the role {role!r}, which {self.name!r} does not have", role=role)


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def single_token(token: str) -> list[AccessToken]:
    """The tokens of a server that accepts one token for everything; none if `token` is empty."""
    return [AccessToken("admin", frozenset({ADMIN}), token_hash(token))] if token else []


def new_token(name: str, roles: Sequence[str]) -> tuple[str, str]:
    """A fresh token and the line for the token file that makes it known."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is not a valid name for a token; {NAME_RULE}")
    if bad := [role for role in roles if not _ROLE.fullmatch(role)]:
        raise InvalidRequest(f"{bad[0]!r} is no role; {ROLE_RULE}")
    token = secrets.token_urlsafe(32)
    return token, f"{name} {','.join(roles)} {token_hash(token)}"


def load_tokens(path: str | Path) -> list[AccessToken]:
    try:
        return read_tokens(Path(path).read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(
            f"cannot read the token file {path}; check that it exists and is text", path=str(path)
        ) from error


def read_tokens(text: str, source: str = "tokens") -> list[AccessToken]:
    """Read a token file. Each line is NAME ROLE[,ROLE...] SHA256-OF-THE-TOKEN; empty lines and comments after `#` are
    ignored."""
    tokens: dict[str, AccessToken] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        # The line itself is not shown: someone may have written the token in it instead of its hash.
        if len(words) != 3 or not _NAME.fullmatch(words[0]) or not _SHA256.fullmatch(words[2].lower()):
            raise InvalidRequest(
                f"{source}, line {number}: write NAME ROLE[,ROLE] and the token's SHA-256", line=number
            )
        roles = words[1].split(",")
        if bad := [role for role in roles if not _ROLE.fullmatch(role)]:
            raise InvalidRequest(f"{source}, line {number}: {bad[0]!r} is no role; {ROLE_RULE}", line=number)
        digest = words[2].lower()
        if digest in tokens:
            raise InvalidRequest(
                f"{source}, line {number}: the token of {tokens[digest].name!r} is given again", line=number
            )
        tokens[digest] = AccessToken(words[0], frozenset(roles), digest)
    return list(tokens.values())


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_binding(host: str, tokens: Sequence[AccessToken]) -> None:
    """Refuse to listen on a public address without a token."""
    if not tokens and not is_loopback(host):
        raise Forbidden(
            f"will not listen on {host or 'all addresses'} without a token: whoever reaches this address could run"
            " commands here. Set MENDFLOW_TOKEN or give a token file, or listen on 127.0.0.1",
            host=host,
        )


class AccessControl:
    """Admits requests: by token and role if there are tokens, otherwise from this machine only and not from web
    pages."""

    def __init__(
        self,
        tokens: Iterable[AccessToken] = (),
        *,
        servers_token: str = "",
        hide: Callable[[str], None] = lambda _token: None,
    ) -> None:
        """`servers_token` is the token that the other servers on the same store send; empty if there are none. `hide`
        is told each token by which somebody may be a pilot, once: jobs run beside it."""
        self._hide = hide
        self._told: set[str] = set()
        self._servers_sha256 = token_hash(servers_token) if servers_token else ""
        self.tokens = list(tokens)
        self._principals = {token.sha256: Principal(token.name, token.roles) for token in self.tokens}

    def admit(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Principal:
        sent = _access_headers(headers)
        if path.startswith(DOMAIN):
            return _ANONYMOUS  # whose token it is, the connections say
        if path.startswith(PEERS) or _normalized_path(path).startswith(PEERS):
            return self._admit_peer(sent.get(b"authorization", b""))
        if not self._principals:
            return _admit_local(method, sent)
        shown = sent.get(b"authorization", b"")
        sha256 = _sha256_of(shown)
        caller, allowed = self._principals.get(sha256), allowed_roles(method, path)
        if caller is None:
            if allowed.anybody:
                return _ANONYMOUS
            if b"authorization" in sent:
                raise Unauthorized("this server does not know that token: ask whoever runs it for one of yours")
            raise Unauthorized("this server wants a token: send it as `Authorization: Bearer TOKEN`")
        check_roles(caller, allowed)
        if sha256 not in self._told and caller.roles & {PILOT, ADMIN}:
            self._told.add(sha256)
            self._hide(shown.partition(b" ")[2].strip().decode("latin-1"))
        return caller

    def is_forwarded(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether another server forwarded this request. Only a server's token can say so; the caller's own token is
        checked again here."""
        shown = _access_headers(headers).get(FORWARDED_HEADER)
        return shown is not None and self._admit_peer(shown) is _PEER

    def _admit_peer(self, authorization: bytes) -> Principal:
        shown = _sha256_of(authorization)
        if not self._servers_sha256 or not secrets.compare_digest(shown, self._servers_sha256):
            raise Unauthorized("this path is for the servers on the same store only")
        return _PEER


def _sha256_of(authorization: bytes) -> str:
    scheme, _, token = authorization.partition(b" ")
    return hashlib.sha256(token.strip()).hexdigest() if scheme.lower() == b"bearer" else ""


def _access_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers that access is decided by. A header that is sent twice is refused: a proxy in front of this server
    could read the other value."""
    sent: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ACCESS_HEADERS:
            if name in sent:
                raise InvalidRequest(f"the header {name.decode('latin-1')} was sent twice; send it once")
            sent[name] = value
    return sent


def is_allowed(roles: frozenset[str], method: str, path: str) -> bool:
    """Whether somebody with these roles may send this request."""
    return allowed_roles(method, path).allow(roles)


def allowed_roles(method: str, path: str) -> AllowedRoles:
    """Who may send this request. Where there is nothing to ask for, whoever may read, or change, hears that."""
    reads = method in _READ_METHODS
    operation = find_operation(method, path) or (find_operation("GET", path) if reads else None)
    if operation is not None:
        return operation.allowed
    people = READERS if reads else USERS
    return people | ENGINE if _normalized_path(path).removeprefix(API).startswith(SOAP_PORTS) else people


def check_roles(caller: Principal, allowed: AllowedRoles) -> None:
    if not allowed.allow(caller.roles):
        has = ", ".join(sorted(caller.roles))
        raise Forbidden(
            f"the token {caller.name!r} may not do this: it has the roles {has}, and this is for {allowed.named()}"
        )


def _normalized_path(path: str) -> str:
    """The path as the router reads it: `//peers/` is the same route as `/peers`."""
    return _SLASHES.sub("/", path).rstrip("/") or "/" if "//" in path or path.endswith("/") else path


_SLASHES = lazy_pattern("/{2,}")
FORWARDED_HEADER = b"x-mendflow-passed-on"
"""The header by which a server tells another that it forwards a request; its value is the servers' own token."""
_ACCESS_HEADERS = frozenset(
    {b"authorization", b"host", b"origin", b"sec-fetch-site", b"x-mendflow-user", FORWARDED_HEADER}
)
_ANONYMOUS = Principal("", frozenset())
_PEER = Principal("", frozenset())
_LOOPBACK_ROLES = frozenset({ADMIN})


def _admit_local(method: str, sent: dict[bytes, bytes]) -> Principal:
    host = sent.get(b"host", b"").decode("latin-1")
    if not _names_loopback(host):
        raise Forbidden("without a token this server answers only under the name localhost, 127.0.0.1 or [::1]")
    if method not in _READ_METHODS:
        origin = sent.get(b"origin", b"").decode("latin-1")
        foreign = origin != "" and urlsplit(origin).netloc.lower() != host.lower()
        if foreign or sent.get(b"sec-fetch-site", b"") in (b"cross-site", b"same-site"):
            raise Forbidden("a page of another site may not change anything here; use a token for that")
    name = sent.get(b"x-mendflow-user", b"").decode("latin-1")
    return Principal(name if _NAME.fullmatch(name) else "local", _LOOPBACK_ROLES)


@lru_cache(maxsize=64)
def _names_loopback(host: str) -> bool:
    """Cached, because every exchange of every pilot asks for the same few host names."""
    return is_loopback(_hostname(host))


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
