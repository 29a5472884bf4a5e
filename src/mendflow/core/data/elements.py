"""Validates storage elements. Everybody who reads an element's document would see a secret in it, so secrets are
refused: an element names environment variables instead."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from mendflow.core.data.name_mapping import rules_flaws
from mendflow.core.data.paths import url_flaw
from mendflow.core.data.protocols import LOCAL, WRITABLE, protocol_flaw, protocol_of
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import lazy_pattern

ELEMENT_NAME: Final = lazy_pattern(r"[A-Za-z0-9_][\w.-]{0,99}", re.ASCII)
OPTION_NAME: Final = lazy_pattern(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)
SECRET: Final = lazy_pattern(r"(?i)secret|passw|token|credential|(^|[_.-])key$|^key")
FROM_ENVIRONMENT: Final = lazy_pattern(r"env:[A-Za-z_]\w*", re.ASCII)
SERVICE: Final = lazy_pattern(r"(^|[_.])(endpoint_url|endpoint|host|port|account_name|project)$")
"""Options that select the service, if the URL does not."""

SAME_PROTOCOL: Final = {"local": "file", "s3a": "s3", "gcs": "gs", "scp": "sftp", "ssh": "sftp"}
OPTIONS_MAX: Final = 100
SITES_MAX: Final = 1_000
TEXT_CHARS_MAX: Final = 1_000
BOUNDS: Final = {
    "tries": (1, 100),
    "timeout_ms": (100, 86_400_000),
    "patience_ms": (0, 7 * 86_400_000),
    "chunk_bytes": (4096, 1 << 30),
    "streams": (1, 256),
}


def normalize_element(given: StorageElement) -> StorageElement:
    """The element in its stored form: a path becomes a URL, a protocol without writing becomes read-only, and rules of
    one protocol become the default. Raises InvalidRequest with everything that is wrong."""
    element = replace(given, url=_normalize_url(given.url))
    element = replace(element, read_only=not is_writable(element))
    if element.rules is not None and not element.protocol:
        protocols = {rule.protocol for rule in element.rules.to_physical}
        element = replace(element, protocol=protocols.pop() if len(protocols) == 1 else "")
    if problems := list(_problems(element)):
        raise InvalidRequest(f"storage element {element.name!r:.100}: {'; '.join(problems)}", problems=problems)
    return element


def _normalize_url(url: str) -> str:
    if url.startswith("/"):
        return f"file://{url}"
    protocol, mark, rest = url.partition("://")
    return protocol.lower() + mark + rest


def is_writable(element: StorageElement) -> bool:
    """Whether a pilot may write files there."""
    return not element.read_only and protocol_of(element.url) in WRITABLE


def elements_overlap(one: StorageElement, other: StorageElement) -> bool:
    """Whether files written through both could end up at one place although their names differ. The same path at
    another site is another folder, and the same bucket at another end point another bucket."""
    if not is_writable(one) or not is_writable(other) or _service(one) != _service(other):
        return False
    if protocol_of(one.url) in LOCAL and one.sites and other.sites and not set(one.sites) & set(other.sites):
        return False
    tops = [element.url.partition("://")[2].rstrip("/") + "/" for element in (one, other)]
    return tops[0].startswith(tops[1]) or tops[1].startswith(tops[0])


def _service(element: StorageElement) -> tuple[object, ...]:
    """The service, as far as the URL does not name it."""
    protocol = protocol_of(element.url)
    options = sorted((name, str(value)) for name, value in element.options.items() if SERVICE.search(name))
    return (SAME_PROTOCOL.get(protocol, protocol), *options)


def _problems(element: StorageElement) -> Iterator[str]:
    if not ELEMENT_NAME.fullmatch(element.name):
        yield "its name cannot be one; use letters, digits, _ . -, 100 at most"
    if (flaw := url_flaw(element.url)) or (flaw := protocol_flaw(element.url)):
        yield f"its url {element.url!r:.200}: {flaw}"
    for field, (least, most) in BOUNDS.items():
        if not least <= getattr(element, field) <= most:
            yield f"its {field} is {getattr(element, field)}; it must be from {least} to {most}"
    if len(element.sites) > SITES_MAX or not all(_is_text(site) for site in element.sites):
        yield f"its sites must be names, {SITES_MAX} at most"
    yield from _option_problems(element)
    if element.rules is not None:
        yield from rules_flaws(element.rules, element.protocol)


def _option_problems(element: StorageElement) -> Iterator[str]:
    if len(element.options) > OPTIONS_MAX:
        yield f"it has {len(element.options)} options; at most {OPTIONS_MAX} are taken"
    for name, value in element.options.items():
        if not OPTION_NAME.fullmatch(name) or (isinstance(value, str) and not _is_text(value)):
            yield f"its option {name!r:.80} cannot be one; use letters, digits, _ . - for the name, and plain text"
        elif isinstance(value, str) and value.startswith("env:") and not FROM_ENVIRONMENT.fullmatch(value):
            yield f"its option {name} is to come from the environment; write it as env:NAME"
        elif SECRET.search(name) and isinstance(value, str) and not value.startswith("env:"):
            yield f"its option {name} looks like a secret, and everybody can read it here; give it as env:NAME"


def _is_text(text: str) -> bool:
    return bool(text) and text.isprintable() and len(text) <= TEXT_CHARS_MAX
