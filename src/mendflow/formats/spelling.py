"""Suggestions for misspelt words."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from mendflow.formats.hints import Hints, hint_for, hints, plain

CHARS_MAX: Final = 100
CANDIDATES_MAX: Final = 1000
WORDS_OF_OTHER_TOOLS: Final[Hints] = hints(
    ("depends-on dependencies requires run-after", "needs"),
    ("cmd command commands script shell exec execute bash sh bash-command base-command entrypoint main", "run"),
    ("environment environ vars env-vars export", "env"),
    ("timeout timeout-minutes", "time"),
    ("when condition only-if", "if"),
    ("matrix foreach loop", "for-each"),
    ("artifacts outputs", "files"),
    ("retry attempts", "retries"),
    ("on-error onerror on-fail", "on-failure"),
)
"""Words of other tools, and ours for the same."""


def our_word_for(word: str) -> str:
    return hint_for(word, WORDS_OF_OTHER_TOOLS)


def same_word(word: str, known: Iterable[str]) -> str:
    """The known word that differs from this one in capitals, `-` and `_` only; empty if there is none."""
    return next((each for each in known if plain(each) == plain(word)), "")


def suggestion_for(word: str, known: Iterable[str]) -> str:
    """Our word for another tool's, or else the nearest in spelling, in backquotes."""
    names = list(known)
    ours = our_word_for(word)
    return f"`{ours}`" if ours in names else nearest_word(word, names)


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest in spelling, in backquotes, or empty."""
    word = word.lower()[:CHARS_MAX]
    reach = 2 + len(word) // 3
    alike = {one.lower(): one for one in known if abs(len(one) - len(word)) <= reach}
    close = get_close_matches(word, islice(alike, CANDIDATES_MAX), 1, 0.6)
    return f"`{alike[close[0]]}`" if close else ""
