"""Groups failures: the same cause gives the same text.

The signature has the type, the category, and the message without its variable parts: numbers, digests, paths,
addresses, ids, quoted names, and the words that are the item's own. Messages of one cause then become equal, and stay
readable: digits that are part of a name (`bowtie2`) are none of the numbers."""

import re
from collections.abc import Collection
from typing import Final

from mendflow.core.model.faults import Fault
from mendflow.core.recovery.error_lines import without_end
from mendflow.core.recovery.names_with_digits import without_numbers
from mendflow.core.recovery.own_words import without_words
from mendflow.lazy import lazy_pattern

READ_MAX = 2_000
MESSAGE_MAX = 300
ENDED_WITH: Final = "exit code <n>"
OWN_WORD: Final = "<value>"

_WHOLE_NAMES: Final = (
    (lazy_pattern(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (lazy_pattern(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE), "<url>"),
    (lazy_pattern(r"(?<!\w)('[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`)(?!\w)"), "<name>"),
    (lazy_pattern(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (lazy_pattern(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (lazy_pattern(r"(?<![\w<])~?(/[\w.@%+,=:~-]+){1,}/?|\b[A-Za-z]:\\\S+"), "<path>"),
)
_IDS: Final = (
    (lazy_pattern(r"\b[\w.-]+/\d+(~\d+)?\b(?!\.\d)"), "<id>"),
    (lazy_pattern(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<hex>"),
    (lazy_pattern(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<hex>"),
    (lazy_pattern(r"\b(\d{1,3}\.){3}\d{1,3}(:\d+)?\b"), "<address>"),
)
"""In this order: longer and more specific patterns before their parts. An item's own words are looked for between the
two: in a path they are part of it, and where one looks like an id, that of another item may not."""


def signature(fault: Fault, own: Collection[str] = ()) -> str:
    """What failures of the same cause have in common; `own` are the words of the item that failed. An exit code or a
    signal counts as a word, not a number."""
    words = (
        f" [exit code {fault.exit_code}]" if fault.exit_code else f" [signal {fault.signal}]" if fault.signal else ""
    )
    message = normalize_message(without_end(fault.message) if words else fault.message, own)
    if fault.exit_code and ENDED_WITH in message:
        return f"{fault.category}/{fault.name}: {message.replace(ENDED_WITH, f'exit code {fault.exit_code}')}"
    return f"{fault.category}/{fault.name}: {message}{words}"


def normalize_message(message: str, own: Collection[str] = ()) -> str:
    """The message without its variable parts, and without the words that are an item's own."""
    message = message[:READ_MAX]
    for pattern, word in _WHOLE_NAMES:
        message = pattern.sub(word, message)
    message = without_words(message, own, OWN_WORD)
    for pattern, word in _IDS:
        message = pattern.sub(word, message)
    return " ".join(without_numbers(message).split())[:MESSAGE_MAX]
