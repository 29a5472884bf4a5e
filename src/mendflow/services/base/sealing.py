"""Seals the passwords in the URLs of flows and of the inputs of cases: no document, journal, export or page holds one.
What counts is a text that is a URL and nothing else; expressions may be in it, but not in its password.

A seal is the password, encrypted with the secret that all servers on the store share; they open it when a pilot gets
the job. The same password always has the same seal, so that a flow that is deployed again is the same flow. A seal of
another store cannot be opened, and stays."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from mendflow.core.data.url_passwords import SEAL, change_password, change_seals, password_in
from mendflow.core.model.flow import Flow, Invoke, Reply
from mendflow.core.model.flow_triggers import FlowTriggers
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import Value
from mendflow.core.model.xml import ScopeDeclarations, XmlCopy, XmlDefinitions, XmlMessage

Sealable = TypeVar("Sealable", Flow, dict[str, Value])

TEXT_SEAL: Final = "closed-"
"""What a secret of the server itself begins with in a document."""
NONCE_BYTES: Final = 16
MARK_BYTES: Final = 16
PADDED_BYTES: Final = 16
"""Passwords are filled up to a multiple of this, so that a seal does not tell how long one is."""
NOT_SEALED: Final = (Invoke, Reply, XmlCopy, XmlDefinitions, XmlMessage, ScopeDeclarations, FlowTriggers)
"""What goes to others, who cannot open a seal, and what servers watch."""


class Sealer:
    """`secret` gives the secret of the store, and creates it if there is none; `known` gives it if there is one."""

    def __init__(self, secret: Callable[[], Awaitable[str]], known: Callable[[], Awaitable[str]]) -> None:
        self._secret = secret
        self._known = known
        self._keys: tuple[bytes, bytes] | None = None

    async def start(self) -> None:
        """Find the secret, if there is one: what was sealed before can be opened from now on."""
        if self._keys is None and (secret := await self._known()):
            self._take(secret)

    def _take(self, secret: str) -> tuple[bytes, bytes]:
        mark, cover = (
            hmac.new(secret.encode(), f"sealed passwords: {purpose}".encode(), hashlib.sha256).digest()
            for purpose in ("mark", "cover")
        )
        self._keys = (mark, cover)
        return self._keys

    async def seal_text(self, text: str) -> str:
        """A secret of the server itself, for a document: any text, and another seal each time."""
        keys, data = self._keys or self._take(await self._secret()), text.encode()
        return TEXT_SEAL + _covered(keys, secrets.token_bytes(NONCE_BYTES) + len(data).to_bytes(4) + data)

    async def open_text(self, sealed: str) -> str:
        """The secret that was sealed here, or by another server on the store; older ones were sealed as passwords."""
        await self.start()
        if not sealed.startswith(TEXT_SEAL):
            return self._open(sealed)
        plain = self._uncovered(sealed.removeprefix(TEXT_SEAL))
        if plain is None:
            return sealed
        start = NONCE_BYTES + 4
        return plain[start : start + int.from_bytes(plain[NONCE_BYTES:start])].decode()

    async def derived(self, purpose: str) -> str:
        """A token for one purpose: the same each time, here and on every other server on the store."""
        keys = self._keys or self._take(await self._secret())
        return hmac.new(keys[0], f"derived: {purpose}".encode(), hashlib.sha256).hexdigest()

    async def sealed(self, given: Sealable) -> Sealable:
        """The flow, or the inputs of a case, without a password in the clear."""
        if not _has_password(given):
            return given
        keys = self._keys or self._take(await self._secret())
        sealed: Sealable = _changed(given, lambda url: change_password(url, lambda text: _seal(keys, text)))
        return sealed

    def opened(self, spec: JobSpec) -> JobSpec:
        """The job as the pilot needs it, wherever an expression has put a URL."""
        if self._keys is None or SEAL.encode() not in msgspec.json.encode(spec):
            return spec
        opened: JobSpec = _changed(spec, lambda text: change_seals(text, self._open))
        command = spec.command and change_seals(spec.command, self._open_for_shell)
        return replace(opened, command=command)

    def opened_value(self, given: Any) -> Any:
        """A flow, or inputs, as another domain needs them, which cannot open our seals."""
        if self._keys is None or SEAL.encode() not in msgspec.json.encode(given):
            return given
        return _changed(given, lambda text: change_seals(text, self._open))

    def _open_for_shell(self, text: str) -> str:
        """Whoever quoted the URL for the shell has seen the seal only, which needs no quotes."""
        return text if (plain := self._open(text)) == text else quote(plain, safe="%:@,+=")

    def _open(self, text: str) -> str:
        if not text.startswith(SEAL):
            return text
        plain = self._uncovered(text.removeprefix(SEAL))
        return plain.rstrip(b"\0").decode() if plain is not None else text

    def _uncovered(self, text: str) -> bytes | None:
        """What was covered, and filled up; None if that was done with other keys."""
        if self._keys is None:
            return None
        try:
            sealed = base64.urlsafe_b64decode(text)
        except ValueError:
            return None
        mark, covered = sealed[:MARK_BYTES], sealed[MARK_BYTES:]
        plain = _cover(self._keys[1], mark, covered)
        return plain if hmac.compare_digest(_mark(self._keys[0], plain), mark) else None


def _seal(keys: tuple[bytes, bytes], text: str) -> str:
    """The password of a URL, unless it is sealed already, or an expression gives it."""
    if text.startswith(SEAL) or "${{" in text:
        return text
    return SEAL + _covered(keys, text.encode())


def _covered(keys: tuple[bytes, bytes], plain: bytes) -> str:
    """The mark is computed from the text, and its cover from the mark: the construction is known as SIV."""
    plain += bytes(-len(plain) % PADDED_BYTES)
    mark = _mark(keys[0], plain)
    return base64.urlsafe_b64encode(mark + _cover(keys[1], mark, plain)).decode()


def _mark(key: bytes, plain: bytes) -> bytes:
    return hmac.new(key, plain, hashlib.sha256).digest()[:MARK_BYTES]


def _cover(key: bytes, mark: bytes, data: bytes) -> bytes:
    stream = b"".join(
        hmac.new(key, mark + block.to_bytes(4), hashlib.sha256).digest() for block in range(len(data) // 32 + 1)
    )
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))


def _has_password(given: Flow | dict[str, Value]) -> bool:
    if b"://" not in msgspec.json.encode(given):  # much quicker than a look at each of many values
        return False
    found: list[str] = []

    def note(url: str) -> str:
        found.append(password_in(url))
        return url

    _changed(given, note)
    return any(password and not password.startswith(SEAL) for password in found)


def _changed(part: Any, change: Callable[[str], str]) -> Any:
    """The part with every text changed that stands in it."""
    if isinstance(part, str):
        return change(part) if type(part) is str else part
    if isinstance(part, dict):
        return {key: _changed(each, change) for key, each in part.items()}
    if type(part) in (list, tuple):
        return type(part)(_changed(each, change) for each in part)
    if not isinstance(part, msgspec.Struct) or isinstance(part, NOT_SEALED):
        return part
    fields = {name: getattr(part, name) for name in part.__struct_fields__}
    changed = {name: _changed(each, change) for name, each in fields.items()}
    new = {name: each for name, each in changed.items() if each != fields[name]}
    return replace(part, **new) if new else part
