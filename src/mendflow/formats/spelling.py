"""What was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

CHARS_MAX: Final = 100
CANDIDATES_MAX: Final = 1000


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest in spelling, in backquotes, or nothing."""
    word = word.lower()[:CHARS_MAX]
    reach = 2 + len(word) // 3
    alike = {one.lower(): one for one in known if abs(len(one) - len(word)) <= reach}
    close = get_close_matches(word, islice(alike, CANDIDATES_MAX), 1, 0.6)
    return f"`{alike[close[0]]}`" if close else ""
