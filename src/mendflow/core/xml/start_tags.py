"""Finds a start tag with very many attributes before any parser runs: parsers take a time that grows with the square
of their number.

No start tag has a `<` in it, except at its beginning; so a search looks at each character once. Only where it finds
something does it matter what stands before: in a comment, a CDATA section or an instruction nothing is a tag."""

import re
from functools import cache

ASIDE = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"


def overfull_tag_at(text: str, attributes_max: int) -> int | None:
    """Where a start tag begins that has more values in quotation marks; None if there is none."""
    overfull, overfull_or_aside = _patterns(attributes_max)
    if overfull.search(text) is None:
        return None
    return next((found.start() for found in overfull_or_aside.finditer(text) if found.lastgroup == "tag"), None)


@cache
def _patterns(attributes_max: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    least = attributes_max + 1
    between, value = r"""[^<>"']*+""", r"""(?:"[^"<]*+"|'[^'<]*+')"""
    tag = rf"""<(?=[^<]{{{2 * least}}})[^<>"'!?/]{between}(?:{value}{between}){{{least}}}"""
    return re.compile(tag), re.compile(rf"{ASIDE}|(?P<tag>{tag})", re.DOTALL)
