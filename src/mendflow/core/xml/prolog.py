"""Finds a document type before any parser runs. It can only be before the first element, after the declaration,
comments, instructions and blanks; anywhere else it is not XML."""

import re
from typing import Final

from mendflow.lazy import lazy_pattern

ASIDE: Final = lazy_pattern(r"[ \t\r\n]+|<\?.*?\?>|<!--.*?-->", re.DOTALL)


def doctype_at(text: str) -> int | None:
    """Where the document type begins; None if there is none. Whatever else is declared there is taken for one."""
    at = 0
    while found := ASIDE.match(text, at):
        at = found.end()
    return at if text.startswith("<!", at) and not text.startswith("<!--", at) else None
