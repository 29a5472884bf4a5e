"""The parts of a store's URL.

Several hosts may stand in one, with commas between them, some as IPv6 in brackets. That is no URL by the book, and how
much of it Python's own reader lets through differs from release to release; so it is read here, the same everywhere."""

import re

import msgspec

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?", re.DOTALL)


class UrlParts(msgspec.Struct, frozen=True):
    scheme: str
    netloc: str
    path: str
    query: str

    @property
    def login(self) -> str:
        """Who, and the password after a colon, both as they stand in the URL."""
        return self.netloc.rpartition("@")[0]

    @property
    def places(self) -> str:
        """The hosts, with their ports."""
        return self.netloc.rpartition("@")[2]


def split(url: str) -> UrlParts:
    """Raises ValueError if its brackets make no sense."""
    found = _URL.match(url)
    assert found is not None, "every part of the pattern may be missing"
    scheme, netloc, path, query = (part or "" for part in found.groups())
    if netloc.count("[") != netloc.count("]"):
        raise ValueError("a bracket of a host is missing")
    return UrlParts(scheme.lower(), netloc, path, query)
