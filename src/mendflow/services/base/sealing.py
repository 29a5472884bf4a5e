"""Seals the passwords in the URLs of a flow's files: no document, journal, export or page holds one.

A seal is the password, encrypted with the secret that all servers on the store share; they open it when a pilot gets
the job. The same password always has the same seal, so that a flow that is deployed again is the same flow. A seal of
another store cannot be opened, and stays."""

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec.structs import replace

from mendflow.core.data.url_passwords import SEAL, change_password, password_in
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Template
from mendflow.core.model.jobs import JobSpec

MARK_BYTES: Final = 16
PADDED_BYTES: Final = 16
"""Passwords are filled up to a multiple of this, so that a seal does not tell how long one is."""


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

    async def sealed(self, flow: Flow) -> Flow:
        """The flow without a password in the clear."""
        if not _has_password(flow):
            return flow
        keys = self._keys or self._take(await self._secret())
        sealed: Flow = _changed(flow, lambda url: change_password(url, lambda text: _seal(keys, text)))
        return sealed

    def opened(self, spec: JobSpec) -> JobSpec:
        """The job as the pilot needs it."""
        urls = [
            *(url for each in spec.replicas.values() for url in each),
            *(each.url for each in spec.publish.values()),
        ]
        if self._keys is None or not any(password_in(url).startswith(SEAL) for url in urls):
            return spec
        return replace(
            spec,
            replicas={path: tuple(map(self._open_url, each)) for path, each in spec.replicas.items()},
            publish={name: replace(each, url=self._open_url(each.url)) for name, each in spec.publish.items()},
        )

    def _open_url(self, url: str) -> str:
        return change_password(url, self._open)

    def _open(self, text: str) -> str:
        if not text.startswith(SEAL) or self._keys is None:
            return text
        try:
            sealed = base64.urlsafe_b64decode(text.removeprefix(SEAL))
        except ValueError:
            return text
        mark, covered = sealed[:MARK_BYTES], sealed[MARK_BYTES:]
        plain = _cover(self._keys[1], mark, covered)
        if not hmac.compare_digest(_mark(self._keys[0], plain), mark):
            return text
        return plain.rstrip(b"\0").decode()


def _seal(keys: tuple[bytes, bytes], text: str) -> str:
    """The mark is computed from the password, and its cover from the mark: the construction is known as SIV."""
    if text.startswith(SEAL) or "${{" in text:
        return text
    plain = text.encode()
    plain += bytes(-len(plain) % PADDED_BYTES)
    mark = _mark(keys[0], plain)
    return SEAL + base64.urlsafe_b64encode(mark + _cover(keys[1], mark, plain)).decode()


def _mark(key: bytes, plain: bytes) -> bytes:
    return hmac.new(key, plain, hashlib.sha256).digest()[:MARK_BYTES]


def _cover(key: bytes, mark: bytes, data: bytes) -> bytes:
    stream = b"".join(
        hmac.new(key, mark + block.to_bytes(4), hashlib.sha256).digest() for block in range(len(data) // 32 + 1)
    )
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))


def _has_password(flow: Flow) -> bool:
    found: list[str] = []

    def note(url: str) -> str:
        found.append(password_in(url))
        return url

    _changed(flow, note)
    return any(password and not password.startswith(SEAL) for password in found)


def _changed(part: Any, change: Callable[[str], str]) -> Any:
    """A flow, or a part of one, with every URL of a file changed that stands in it."""
    if isinstance(part, tuple):
        return tuple(_changed(each, change) for each in part)
    if not hasattr(part, "__struct_fields__"):
        return part
    fields = {name: getattr(part, name) for name in part.__struct_fields__}
    new = {name: _changed(value, change) for name, value in fields.items() if isinstance(value, tuple)}
    new |= {name: _changed(value, change) for name, value in fields.items() if hasattr(value, "__struct_fields__")}
    if isinstance(part, JobActivity):
        new |= {"inputs": _texts(part.inputs, change), "replicas": _texts(part.replicas, change)}
        new["publish"] = {name: replace(each, url=_texts(each.url, change)) for name, each in part.publish.items()}
    elif isinstance(part, ForEach):
        new |= {"items": _texts(part.items, change), "axes": _texts(part.axes, change)}
    return replace(part, **new)


def _texts(template: Template, change: Callable[[str], str]) -> Template:
    if isinstance(template, str):
        return change(template)
    if isinstance(template, dict):
        return {key: _texts(each, change) for key, each in template.items()}
    if isinstance(template, (list, tuple)):
        return type(template)(_texts(each, change) for each in template)
    return template
