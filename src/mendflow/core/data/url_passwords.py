"""Passwords in URLs of files, and the seals that stand in their place wherever a flow is stored."""

import re
from collections.abc import Callable
from typing import Final

from mendflow.lazy import lazy_pattern

SEAL: Final = "sealed-"
"""What a password begins with that a server has sealed."""

_EXPRESSION: Final = r"\$\{\{(?:(?!\}\}).)*\}\}"
_NO_EXPRESSION: Final = r"(?!\$\{\{)"
_WITH_PASSWORD: Final = lazy_pattern(
    rf"((?:[A-Za-z][A-Za-z0-9+.-]*|{_EXPRESSION})://(?:{_EXPRESSION}|{_NO_EXPRESSION}[^/@:\s])*:)"
    rf"((?:{_EXPRESSION}|{_NO_EXPRESSION}[^/\s])+)"
    rf"(@(?:{_EXPRESSION}|{_NO_EXPRESSION}[^/@\s])*(?:/.*)?)",
    re.DOTALL,
)
"""Each part may have expressions in it, whatever they contain."""
_SEALED: Final = lazy_pattern(rf"{SEAL}[A-Za-z0-9_-]+={{0,2}}")


def password_in(url: str) -> str:
    """The password as it stands in a URL, sealed or not; empty if there is none."""
    found = _WITH_PASSWORD.fullmatch(url)
    return found.group(2) if found else ""


def change_password(url: str, change: Callable[[str], str]) -> str:
    """The URL with another password; a text that is none, or has none, stays as it is."""
    found = _WITH_PASSWORD.fullmatch(url)
    return f"{found.group(1)}{change(found.group(2))}{found.group(3)}" if found else url


def change_seals(text: str, change: Callable[[str], str]) -> str:
    """A text with other words in place of the seals in it."""
    return _SEALED.sub(lambda found: change(found.group()), text)
