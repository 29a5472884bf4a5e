"""Suggestions for misspelt words."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

CHARS_MAX: Final = 100
CANDIDATES_MAX: Final = 1000
WORDS_OF_OTHER_TOOLS: Final[dict[str, str]] = {
    **dict.fromkeys(("depends-on", "depends_on", "dependson", "dependencies", "requires"), "needs"),
    **dict.fromkeys(("cmd", "command", "script", "shell", "exec"), "run"),
    **dict.fromkeys(("environment", "environ", "vars"), "env"),
    **dict.fromkeys(("timeout", "timeout-minutes"), "time"),
    **dict.fromkeys(("when", "condition", "only-if"), "if"),
    **dict.fromkeys(("matrix", "foreach", "loop"), "for-each"),
    **dict.fromkeys(("artifacts", "outputs"), "files"),
    **dict.fromkeys(("retry", "attempts"), "retries"),
}
"""Words of other tools, and ours for the same."""


def suggestion_for(word: str, known: Iterable[str]) -> str:
    """Our word for another tool's, or else the nearest in spelling, in backquotes."""
    names = list(known)
    ours = WORDS_OF_OTHER_TOOLS.get(word.lower(), "")
    return f"`{ours}`" if ours in names else nearest_word(word, names)


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest in spelling, in backquotes, or empty."""
    word = word.lower()[:CHARS_MAX]
    reach = 2 + len(word) // 3
    alike = {one.lower(): one for one in known if abs(len(one) - len(word)) <= reach}
    close = get_close_matches(word, islice(alike, CANDIDATES_MAX), 1, 0.6)
    return f"`{alike[close[0]]}`" if close else ""
