"""What a text means where data may be written as text: an output of a script, a value on the command line.

Nothing of what was written may be lost: `1.10` is a version and `1234567e8` a commit, and as numbers they would be
others. So a number is one only if JSON would write it with the same characters."""

import re
from typing import Final

import msgspec

from mendflow.core.model.values import Value, check_value

WORDS: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}
NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)


def data_or_text(text: str) -> Value:
    """A list, a map, or a string in quotation marks that reads as JSON is that JSON; a number, `true`, `false` and
    `null` are data if they are written as JSON writes them; all else is the text itself. What is nested too deep raises
    RecursionError."""
    first = text.lstrip()[:1]
    if first == "[" or first == "{" or (first == '"' and text[0] == '"' and text[-1] == '"'):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    if text in WORDS:
        return WORDS[text]
    return _number(text) if NUMBER.fullmatch(text) else text


def _number(text: str) -> Value:
    """The number, or the text itself where something of it would be lost: written otherwise, or too large."""
    try:
        number = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return number if msgspec.json.encode(number).decode() == text and not check_value(number) else text
