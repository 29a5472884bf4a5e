"""People who sign in elsewhere: bearer tokens of an OpenID Connect issuer.

Such a token is a signed statement of who somebody is. It counts if a key that the issuer publishes has signed it, with
a method that only the holder of the private half can use; if it was made for this server (its audience); and while it
holds. Which method is used follows from the key, never from the token: so neither an unsigned token nor one that was
signed with a published key as if that were a password gets through. What a token names as its key is looked up among
the published ones, and is used for nothing else."""

import asyncio
import hashlib
import importlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from mendflow.core.model.access_tokens import NAME_RULE, ROLE, project_role
from mendflow.core.model.errors import InvalidRequest, TemporarilyUnavailable, Unauthorized
from mendflow.core.model.principals import PROJECT_ROLES, Principal, ProjectRole
from mendflow.lazy import LazyModule, lazy_pattern
from mendflow.server.local_accounts import is_loopback

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LazyModule("aiohttp")

log = logging.getLogger("mendflow.server")

DISCOVERY: Final = "/.well-known/openid-configuration"
PREFIX: Final = "mendflow:"
"""Values of the claim that begin so name a role, if nothing else is said of them."""

LEEWAY_S: Final = 30
"""By so much the clocks of the issuer and of this server may differ."""

KEYS_S: Final = 600.0
"""Keys are read again after this time, beside what goes on, so that one which was withdrawn is not used for ever."""

KEYS_S_MAX: Final = 3600.0
"""Keys that could not be read again are used no longer than this."""

REFETCH_S: Final = 10.0
"""A key that is not known makes the server read the keys again, at most once in this time."""

FETCH_S: Final = 10.0
BYTES_MAX: Final = 512 << 10
KEYS_MAX: Final = 100
TOKEN_CHARS_MAX: Final = 16 << 10
RSA_BITS_MIN: Final = 2048
VERIFIED_MAX: Final = 2_000
_PERSON: Final = lazy_pattern(r"[\w.@+|:/-]{1,128}")


class OidcOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`roles` is the claim that says what somebody may do, with dots between its parts; `mapping` says what its values
    stand for: a role, or PROJECT:ROLE. `name` is the claim by which somebody is known here."""

    issuer: str
    audience: str
    roles: str = ""
    mapping: dict[str, str] = {}
    name: str = "sub"


class _Key(NamedTuple):
    algorithm: str
    key: Any


class _Verified(NamedTuple):
    principal: Principal
    until: float


class OidcIssuer:
    """One issuer, with its keys as they were last read. `clock` is the wall clock, in seconds."""

    def __init__(self, options: OidcOptions, *, clock: Callable[[], float] = time.time) -> None:
        require_options(options)
        self._jwt = _load_library()
        self._options = options
        self._clock = clock
        self._keys: dict[str, _Key] = {}
        self._read_at = -KEYS_S_MAX  # by the steady clock
        self._asked_at = -REFETCH_S  # when the issuer was last asked, whatever came of it
        self._failed = False
        self._reading: asyncio.Task[None] | None = None
        self._verified: OrderedDict[str, _Verified] = OrderedDict()

    def known(self, sha256: str) -> Principal | None:
        """Whose token this is, if it was checked not long ago and holds still."""
        found = self._verified.get(sha256)
        if found is None or self._clock() >= found.until or not self._keys_serve():
            return None
        return found.principal

    async def check(self, token: str) -> Principal:
        """Whose token this is; refuses one that does not count."""
        if len(token) > TOKEN_CHARS_MAX:
            raise Unauthorized(f"a token of {len(token)} characters is too long", reason="unknown")
        key = await self._key_for(token)
        try:
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=self._options.audience,
                issuer=self._options.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"], "strict_aud": False},
            )
        except self._jwt.ExpiredSignatureError:
            raise Unauthorized("this token has expired: sign in again at its issuer", reason="expired") from None
        except self._jwt.PyJWTError as error:
            raise Unauthorized(
                f"this token of {self._options.issuer} does not count here: {error}", reason="unknown"
            ) from None
        principal = self._principal(claims)
        self._remember(token, principal, float(claims["exp"]) + LEEWAY_S)
        return principal

    def _remember(self, token: str, principal: Principal, until: float) -> None:
        sha256 = hashlib.sha256(token.encode()).hexdigest()
        self._verified[sha256] = _Verified(principal, until)
        self._verified.move_to_end(sha256)
        if len(self._verified) > VERIFIED_MAX:
            self._verified.popitem(last=False)

    # Keys

    async def _key_for(self, token: str) -> _Key:
        try:
            header = self._jwt.get_unverified_header(token)
        except self._jwt.PyJWTError:
            raise Unauthorized(
                "this server does not know that token, and it is not one of its issuer's", reason="unknown"
            ) from None
        algorithm, kid = str(header.get("alg", "")), header.get("kid")
        if algorithm not in ALGORITHMS:
            allowed = ", ".join(ALGORITHMS)
            raise Unauthorized(
                f"tokens that are signed by {algorithm[:20]!r} do not count here; {allowed} do", reason="unknown"
            )
        found = self._find(kid, algorithm) if self._keys_serve() else None
        if found is None:
            await self._read_keys()
            found = self._find(kid, algorithm)
        if found is None:
            raise Unauthorized(
                f"no key that {self._options.issuer} publishes has signed this token: sign in again", reason="unknown"
            )
        return found

    def _find(self, kid: object, algorithm: str) -> _Key | None:
        """The key of this name; without a name, the only one for this method."""
        if isinstance(kid, str):
            named = self._keys.get(kid)
            return named if named is not None and named.algorithm == algorithm else None
        fitting = [each for each in self._keys.values() if each.algorithm == algorithm]
        return fitting[0] if kid is None and len(fitting) == 1 else None

    def _keys_serve(self) -> bool:
        """Whether the keys are new enough. Those that should be read again are, and nobody waits for that."""
        age_s = time.monotonic() - self._read_at
        if KEYS_S < age_s <= KEYS_S_MAX:
            self._begin_reading()
        return age_s <= KEYS_S_MAX

    def _begin_reading(self) -> asyncio.Task[None] | None:
        """Ask the issuer for its keys, once at a time; None if that was done a moment ago."""
        if self._reading is None and time.monotonic() - self._asked_at >= REFETCH_S:
            self._reading = asyncio.create_task(self._fetch())
        return self._reading

    async def _read_keys(self) -> None:
        """Have the issuer's keys as they are by now, or were a moment ago. Raises if it could not be asked."""
        if (reading := self._begin_reading()) is not None:
            await asyncio.shield(reading)
        if self._failed:
            raise TemporarilyUnavailable(
                f"the issuer {self._options.issuer} cannot be asked for its keys, so nobody can be known by its tokens;"
                " the server's log says why. Try again in a moment"
            )

    async def _fetch(self) -> None:
        self._failed = True
        try:
            self._keys = self._usable(await fetch_keys(self._options.issuer))
            self._verified.clear()  # a key may have been withdrawn
            self._read_at = time.monotonic()
            self._failed = False
        except (TimeoutError, OSError, ValueError, msgspec.MsgspecError, aiohttp.ClientError) as error:
            log.warning("the keys of the issuer %s cannot be read: %r", self._options.issuer, error)
        finally:
            self._asked_at = time.monotonic()
            self._reading = None

    def _usable(self, keys: list[dict[str, Any]]) -> dict[str, _Key]:
        found: dict[str, _Key] = {}
        for number, each in enumerate(keys[:KEYS_MAX]):
            algorithm = next((name for name, fits in ALGORITHMS.items() if fits(each)), "")
            if not algorithm or each.get("use", "sig") != "sig" or each.get("alg", algorithm) != algorithm:
                continue
            try:
                key = self._jwt.PyJWK(each, algorithm=algorithm).key
            except self._jwt.PyJWTError as error:
                log.warning("a key of the issuer %s cannot be used: %s", self._options.issuer, error)
                continue
            if algorithm == "RS256" and key.key_size < RSA_BITS_MIN:
                log.warning("a key of the issuer %s has less than %d bits", self._options.issuer, RSA_BITS_MIN)
                continue
            found[str(each.get("kid", f"{number} without a name"))] = _Key(algorithm, key)
        return found

    # What the claims mean

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        name = _claim(claims, self._options.name)
        if not isinstance(name, str) or not _PERSON.fullmatch(name):
            raise Unauthorized(
                f"the claim {self._options.name!r} of this token has no usable name; {NAME_RULE} | : /",
                reason="unknown",
            )
        roles, projects = set[str](), dict[str, ProjectRole]()
        for value in _words(_claim(claims, self._options.roles)) if self._options.roles else ():
            meant = self._options.mapping.get(value)
            if meant is None and not self._options.mapping and value.startswith(PREFIX):
                meant = value.removeprefix(PREFIX)
            if meant is not None:
                _add(meant, roles, projects)
        if projects and not roles:
            roles.add("reader" if set(projects.values()) == {"viewer"} else "user")
        return Principal(name, frozenset(roles), projects)


ALGORITHMS: Final[dict[str, Callable[[Mapping[str, Any]], bool]]] = {
    "RS256": lambda key: key.get("kty") == "RSA",
    "ES256": lambda key: key.get("kty") == "EC" and key.get("crv") == "P-256",
    "EdDSA": lambda key: key.get("kty") == "OKP" and key.get("crv") == "Ed25519",
}
"""The methods that count, each with the keys that it is for."""


def _add(meant: str, roles: set[str], projects: dict[str, ProjectRole]) -> None:
    """Add what a value stands for. What is neither a role nor a role in a project gives nothing."""
    if ":" not in meant:
        if ROLE.fullmatch(meant):
            roles.add(meant)
        return
    try:
        project, role = project_role(meant)
    except InvalidRequest:
        return
    before = projects.get(project)
    if before is None or PROJECT_ROLES.index(role) > PROJECT_ROLES.index(before):
        projects[project] = role


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name; else by the names of what it is in, with dots between them."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _load_library() -> Any:
    try:
        return importlib.import_module("jwt")
    except ImportError as error:
        raise InvalidRequest(
            f"OpenID Connect needs a package that is not installed ({error}): pip install 'mendflow[oidc]'"
        ) from error


def require_options(options: OidcOptions) -> None:
    """Refuse what could not work, or would let strangers in."""
    _require_address(options.issuer, "--oidc-issuer")
    if not options.audience:
        raise InvalidRequest(
            "--oidc-issuer needs --oidc-audience: without it, tokens that the issuer made for others would count here"
        )
    for value, meant in options.mapping.items():
        if ":" in meant:
            project_role(meant)
        elif not ROLE.fullmatch(meant):
            raise InvalidRequest(f"--oidc-map {value}={meant}: {meant!r} is neither a role nor PROJECT:ROLE")
    if options.mapping and not options.roles:
        raise InvalidRequest("--oidc-map needs --oidc-roles, the claim whose values it is about")


def _require_address(url: str, named: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        fits = fits and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        fits = False
    if not fits:
        raise InvalidRequest(f"{named} {url!r:.200} is not the https address of an issuer")


class _Discovery(msgspec.Struct):
    issuer: str
    jwks_uri: str


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


async def fetch_keys(issuer: str) -> list[dict[str, Any]]:
    """The keys that an issuer publishes, by its own description of itself."""
    timeout = aiohttp.ClientTimeout(total=FETCH_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        described = msgspec.json.decode(await _get(session, issuer.rstrip("/") + DISCOVERY), type=_Discovery)
        if described.issuer != issuer:
            raise ValueError(f"it says that it is {described.issuer!r:.200}; give that as --oidc-issuer")
        _require_jwks(described.jwks_uri)
        return msgspec.json.decode(await _get(session, described.jwks_uri), type=_KeySet).keys


def _require_jwks(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ValueError(f"its keys are at {url!r:.200}, which is not an https address")


async def _get(session: "aiohttp.ClientSession", url: str) -> bytes:
    async with session.get(url, allow_redirects=False, headers={"Accept": "application/json"}) as response:
        if response.status != 200:
            raise ValueError(f"{url} answered {response.status}")
        content = await response.content.read(BYTES_MAX + 1)
        while len(content) <= BYTES_MAX and (more := await response.content.read(BYTES_MAX)):
            content += more
        if len(content) > BYTES_MAX:
            raise ValueError(f"{url} answered more than {BYTES_MAX} bytes")
        return content
