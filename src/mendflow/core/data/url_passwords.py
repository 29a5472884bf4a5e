"""Passwords in URLs of files, and the seals that stand in their place wherever a flow is stored."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from mendflow.lazy import lazy_pattern

SEAL: Final = "sealed-"
"""What a password begins with that a server has sealed."""
HIDDEN: Final = "(hidden)"
"""What people are shown in place of a password."""

_IN_STRING: Final = r"(?>(?:[^\n\\$QUOTE]++|\\.|\$(?!\{\{))*)"
_OPENINGS_MAX: Final = 3


def _string(quote: str, openings: str) -> str:
    inside = _IN_STRING.replace("QUOTE", quote)
    return rf"{quote}{inside}(?:\$\{{\{{{inside}){openings}{quote}"


def _expression(openings: str) -> str:
    strings = "|".join(_string(each, openings) for each in "'\"")
    with_strings = rf"(?>(?:{strings}|[^$}}'\"]++|\}}(?!\}})|\$(?!\{{\{{))*)"
    plain = r"(?:[^$}]++|\}(?!\})|\$(?!\{\{))*"
    return rf"(?>\$\{{\{{(?:{with_strings}|{plain})\}}{{2,}})"


def _password_between(expression: str) -> tuple[str, str]:
    """The patterns of a user and of a password in a URL with expressions."""
    return rf"(?>(?:{expression}|[^$/@:\s]++|\$)*)", rf"(?>{expression}|[^$/@\s]++|[$@])+"


_EXPRESSION: Final = _expression("{0}")
"""Up to the brackets that close it, which those in its strings do not; if its quotes are no pairs, up to the first
ones. What has opening ones in it is text up to those. So no text is read more than twice."""
_USER, _PASSWORD = _password_between(_EXPRESSION)
_OF_VALUE: Final = _expression(f"{{0,{_OPENINGS_MAX}}}")
"""In one value, which is a template, a string may have a few opening ones in it."""
_VALUE_USER, _VALUE_PASSWORD = _password_between(_OF_VALUE)
_VALUE_HOST: Final = rf"(?>(?:{_OF_VALUE}|[^$/@\s]++|\$)*)"
_WITH_PASSWORD: Final = lazy_pattern(
    rf"((?:[A-Za-z][A-Za-z0-9+.-]*|{_OF_VALUE})://{_VALUE_USER}:)({_VALUE_PASSWORD})(@{_VALUE_HOST}(?:/.*)?)", re.DOTALL
)
_IN_TEXT: Final = lazy_pattern(rf"{_EXPRESSION}|(://{_USER}:)({_PASSWORD})(?=@)")
"""What stands before `://` may be anything; a URL that begins inside an expression ends there."""
_QUOTED_IN_URL: Final = lazy_pattern(r"(://[^\s/@]*\$\{\{[^\n}$'\"]*+['\"])([^\n]*)")
_REST: Final = rf"((?>{_EXPRESSION}|[^$/@\s}}]++)+)(?=@)"
_BEHIND_USER: Final = lazy_pattern(rf"(\}}\}}[^\s/@:}}$]*:){_REST}")
_BEHIND_PASSWORD: Final = lazy_pattern(rf"(\}}\}}){_REST}")
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
    known = _IN_TEXT.sub(_hidden, _EXPRESSIONS.sub(_hidden_inside, text))
    return _QUOTED_IN_URL.sub(_hidden_behind, known)


def _hidden_inside(found: re.Match[str]) -> str:
    return "${{".join(_IN_TEXT.sub(_hidden, each) for each in found.group().split("${{"))


def _hidden_behind(found: re.Match[str]) -> str:
    """In a file the quotes of an expression may be written twice, or with a backslash, as those around the URL are of
    the same kind. So where an expression ends is not known for sure, and each end in the line is looked behind."""
    url, line = found.groups()
    behind = _BEHIND_PASSWORD if ":" in url.removeprefix("://").partition("${{")[0] else _BEHIND_USER
    return url + behind.sub(_hidden, line)


def _hidden(found: re.Match[str]) -> str:
    before, password = found.groups()
    return found.group() if password is None or _EXPRESSIONS.fullmatch(password) else f"{before}{HIDDEN}"


def hidden_places(text: str) -> Iterator[int]:
    """Where the URLs stand whose passwords are hidden in a text."""
    return (found.start() for found in _IN_PLACE.finditer(text))


def change_seals(text: str, change: Callable[[str], str]) -> str:
    """A text with other words in place of the seals in it."""
    return _SEALED.sub(lambda found: change(found.group()), text)
