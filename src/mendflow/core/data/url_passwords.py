"""Passwords in URLs of files, and the seals that stand in their place wherever a flow is stored."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from mendflow.lazy import lazy_pattern

SEAL: Final = "sealed-"
"""What a password begins with that a server has sealed."""
HIDDEN: Final = "(hidden)"
"""What people are shown in place of a password."""

_EXPRESSION: Final = r"(?>\$\{\{(?:[^$}]++|\}(?!\})|\$(?!\{\{))*\}{2,})"
"""Up to the brackets that close it; what has opening ones in it is text up to those. So no text is read twice."""
_USER: Final = rf"(?>(?:{_EXPRESSION}|[^$/@:\s]++|\$)*)"
_PASSWORD: Final = rf"(?>{_EXPRESSION}|[^$/@\s]++|[$@])+"
_HOST: Final = rf"(?>(?:{_EXPRESSION}|[^$/@\s]++|\$)*)"
_WITH_PASSWORD: Final = lazy_pattern(
    rf"((?:[A-Za-z][A-Za-z0-9+.-]*|{_EXPRESSION})://{_USER}:)({_PASSWORD})(@{_HOST}(?:/.*)?)", re.DOTALL
)
_IN_TEXT: Final = lazy_pattern(rf"{_EXPRESSION}|(://{_USER}:)({_PASSWORD})(?=@)")
"""What stands before `://` may be anything; a URL that begins inside an expression ends there."""
_IN_PLACE: Final = lazy_pattern(rf"://{_USER}:{re.escape(HIDDEN)}@")
_EXPRESSIONS: Final = lazy_pattern(rf"(?:{_EXPRESSION})+")
_SEALED: Final = lazy_pattern(rf"{SEAL}[A-Za-z0-9_-]+={{0,2}}")


def password_in(url: str) -> str:
    """The password as it stands in a URL, sealed or not; empty if there is none."""
    found = _WITH_PASSWORD.fullmatch(url)
    return found.group(2) if found else ""


def change_password(url: str, change: Callable[[str], str]) -> str:
    """The URL with another password; a text that is none, or has none, stays as it is."""
    found = _WITH_PASSWORD.fullmatch(url)
    return f"{found.group(1)}{change(found.group(2))}{found.group(3)}" if found else url


def hide_passwords(text: str) -> str:
    """A text of any kind without the passwords of the URLs in it; those that expressions alone give stay. It takes time
    as the length of the text, whatever the text is."""
    return _IN_TEXT.sub(_hidden, _EXPRESSIONS.sub(_hidden_inside, text))


def _hidden_inside(found: re.Match[str]) -> str:
    return "${{".join(_IN_TEXT.sub(_hidden, each) for each in found.group().split("${{"))


def _hidden(found: re.Match[str]) -> str:
    before, password = found.groups()
    return found.group() if password is None or _EXPRESSIONS.fullmatch(password) else f"{before}{HIDDEN}"


def hidden_places(text: str) -> Iterator[int]:
    """Where the URLs stand whose passwords are hidden in a text."""
    return (found.start() for found in _IN_PLACE.finditer(text))


def change_seals(text: str, change: Callable[[str], str]) -> str:
    """A text with other words in place of the seals in it."""
    return _SEALED.sub(lambda found: change(found.group()), text)
