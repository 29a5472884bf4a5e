"""The words for yes and no: in cells of tables, in inputs on the command line, in answers to user tasks."""

import re
from typing import Final

from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

_YES_OR_NO: Final = lazy_pattern(
    r"(?:boolean|bool|yes or no|yes/no|yes-no|true or false)\s*(?:[:;,.?(-].*)?", re.IGNORECASE | re.DOTALL
)
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_DATA_WORDS: Final = {**_WORDS, "1": True, "0": False}
_ANSWERS: Final = {**_WORDS, "y": True, "n": False}


def boolean_of(text: str) -> bool | None:
    """What a text means where true or false is declared; None if it is neither."""
    return _DATA_WORDS.get(text.strip().lower())


def is_yes_or_no(description: str) -> bool:
    """Whether a field of a user task is said to be answered by yes or no: `yes or no`, `boolean`, `yes or no: may it go
    out?`."""
    return _YES_OR_NO.fullmatch(description.strip()) is not None


def answer(value: Value) -> bool | None:
    """What a person meant by an answer; None if it is neither yes nor no."""
    if isinstance(value, bool):
        return value
    return _ANSWERS.get(value.strip().lower()) if isinstance(value, str) else None
