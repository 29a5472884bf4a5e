"""What was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest in spelling, in backquotes, or nothing."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(word.lower()[:100], by_lower, 1, 0.6)
    return f"`{by_lower[close[0]]}`" if close else ""
