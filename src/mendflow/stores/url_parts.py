"""The parts of a store's URL.

There may be several hosts, separated by commas, some as IPv6 in brackets. That is not a standard URL, and how much of
it Python's own parser accepts differs between releases; so it is parsed here, the same everywhere."""

import re

import msgspec

from mendflow.lazy import lazy_pattern

_URL = lazy_pattern(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?", re.DOTALL)


class UrlParts(msgspec.Struct, frozen=True):
    scheme: str
    netloc: str
    path: str
    query: str

    @property
    def login(self) -> str:
        """The user, and the password after a colon, both as in the URL."""
        return self.netloc.rpartition("@")[0]

    @property
    def places(self) -> str:
        """The hosts, with their ports."""
        return self.netloc.rpartition("@")[2]


def split(url: str) -> UrlParts:
    """Raises ValueError if the brackets do not match."""
    found = _URL.match(url)
    assert found is not None, "every part of the pattern is optional"
    scheme, netloc, path, query = (part or "" for part in found.groups())
    if netloc.count("[") != netloc.count("]"):
        raise ValueError("a bracket of a host is missing")
    return UrlParts(scheme.lower(), netloc, path, query)
