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
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.address_guard import PUBLIC_ONLY, AddressGuard
from mendflow.core.model.access_tokens import NAME_RULE, ROLE, project_role
from mendflow.core.model.errors import InvalidRequest, TemporarilyUnavailable, Unauthorized
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import PROJECT_ROLES, Principal, ProjectRole
from mendflow.lazy import lazy_pattern
from mendflow.server.oidc_answers import IssuerAway, IssuerDescription, fetch_issuer, host_of, is_protected
from mendflow.server.private_files import read_secret

log = logging.getLogger("mendflow.server")

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

KEYS_MAX: Final = 100
TOKEN_CHARS_MAX: Final = 16 << 10
RSA_BITS_MIN: Final = 2048
VERIFIED_MAX: Final = 2_000
SECRET_FILE: Final = "file of --oidc-client-secret"
SCOPES: Final = "openid profile email"
SESSION_MS: Final = 12 * 3_600_000
"""A working day: the issuer is asked again for who comes the next morning."""

_PERSON: Final = lazy_pattern(r"[\w.@+|:/-]{1,128}")


class OidcClient(msgspec.Struct, frozen=True, kw_only=True):
    """This server, as the issuer knows it, for browsers that sign in there: by its `id`, and the secret in
    `secret_file` if it has one. `scopes` are asked for; a session lasts for `session_ms`."""

    id: str
    secret_file: str = ""
    scopes: str = SCOPES
    session_ms: int = SESSION_MS


class OidcOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`roles` is the claim that says what somebody may do, with dots between its parts; `mapping` says what its values
    stand for: a role, or PROJECT:ROLE. `name` is the claim by which somebody is known here. With a `client`, browsers
    sign in at the issuer."""

    issuer: str
    audience: str
    roles: str = ""
    mapping: dict[str, str] = {}
    name: str = "sub"
    client: OidcClient | None = None


class _Key(NamedTuple):
    algorithm: str
    key: Any


class _Verified(NamedTuple):
    principal: Principal
    until: float


class OidcIssuer:
    """One issuer, with its keys as they were last read. `clock` is the wall clock, in seconds."""

    def __init__(
        self, options: OidcOptions, *, guard: AddressGuard = PUBLIC_ONLY, clock: Callable[[], float] = time.time
    ) -> None:
        """`guard` is what the server may call. The issuer itself is named by whoever runs the server."""
        require_options(options)
        self.guard = guard._replace(allowed=(*guard.allowed, host_of(options.issuer)))
        self._jwt = _load_library()
        self.options = options
        self._clock = clock
        self._described: IssuerDescription | None = None
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

    def holds_until(self, sha256: str) -> Instant:
        """When a token that is known ends by itself."""
        return int(self._verified[sha256].until * 1000)

    async def check(self, token: str) -> Principal:
        """Whose token this is; refuses one that does not count."""
        if len(token) > TOKEN_CHARS_MAX:
            raise Unauthorized(f"a token of {len(token)} characters is too long", reason="unknown")
        claims = await self.claims(token, self.options.audience)
        principal = self.principal(claims)
        self._remember(token, principal, float(claims["exp"]) + LEEWAY_S)
        return principal

    async def claims(self, token: str, audience: str) -> dict[str, Any]:
        """What a token says that the issuer has made for this audience, and that holds."""
        key = await self._key_for(token)
        try:
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=audience,
                issuer=self.options.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"], "strict_aud": False},
            )
        except self._jwt.ExpiredSignatureError:
            raise Unauthorized("this token has expired: sign in again at its issuer", reason="expired") from None
        except self._jwt.PyJWTError as error:
            raise Unauthorized(
                f"this token of {self.options.issuer} does not count here: {error}", reason="unknown"
            ) from None
        return claims

    async def described(self) -> IssuerDescription:
        """What the issuer says of itself; raises if it cannot be asked."""
        if not self._keys_serve() or self._described is None:
            await self._read_keys()
        assert self._described is not None
        return self._described

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
                f"no key that {self.options.issuer} publishes has signed this token: sign in again", reason="unknown"
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
                f"the issuer {self.options.issuer} cannot be asked for its keys, so nobody can be known by its tokens;"
                " the server's log says why. Try again in a moment"
            )

    async def _fetch(self) -> None:
        self._failed = True
        try:
            self._described, keys = await fetch_issuer(self.options.issuer, self.guard)
            self._keys = self._usable(keys)
            self._verified.clear()  # a key may have been withdrawn
            self._read_at = time.monotonic()
            self._failed = False
        except IssuerAway as error:
            log.warning("the keys of the issuer %s cannot be read: %s", self.options.issuer, error)
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
                log.warning("a key of the issuer %s cannot be used: %s", self.options.issuer, error)
                continue
            if algorithm == "RS256" and key.key_size < RSA_BITS_MIN:
                log.warning("a key of the issuer %s has less than %d bits", self.options.issuer, RSA_BITS_MIN)
                continue
            found[str(each.get("kid", f"{number} without a name"))] = _Key(algorithm, key)
        return found

    # What the claims mean

    def principal(self, claims: Mapping[str, Any]) -> Principal:
        name = claim(claims, self.options.name)
        if not isinstance(name, str) or not _PERSON.fullmatch(name):
            raise Unauthorized(
                f"the claim {self.options.name!r} of this token has no usable name; {NAME_RULE} | : /",
                reason="unknown",
            )
        roles, projects = set[str](), dict[str, ProjectRole]()
        for value in claim_values(claims, self.options.roles) if self.options.roles else ():
            meant = self.options.mapping.get(value)
            if meant is None and not self.options.mapping and value.startswith(PREFIX):
                meant = value.removeprefix(PREFIX)
            if meant is not None:
                _add(meant, roles, projects)
        if projects and not roles:
            roles.add("reader" if set(projects.values()) == {"viewer"} else "user")
        return Principal(name, frozenset(roles), projects)


SCOPE: Final = "scope"
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


def claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name; else by the names of what it is in, with dots between them."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def claim_values(claims: Mapping[str, Any], path: str) -> list[str]:
    """The texts of a list, or the one text that a claim is: a group may be called `team admin`. Only of `scope` the
    standard says that it is several words with spaces between them (RFC 8693, 4.2)."""
    value = claim(claims, path)
    if isinstance(value, str):
        return value.split(" ") if path == SCOPE else [value]
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
    if options.client is not None and "openid" not in options.client.scopes.split():
        raise InvalidRequest("--oidc-scopes needs openid among them: without it, an issuer does not say who signed in")
    if options.client is not None and options.client.secret_file:
        read_secret(options.client.secret_file, SECRET_FILE)


def _require_address(url: str, named: str) -> None:
    if not is_protected(url) or "?" in url or "#" in url:
        raise InvalidRequest(f"{named} {url!r:.200} is not the https address of an issuer")
