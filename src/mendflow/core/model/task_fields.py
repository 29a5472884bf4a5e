"""Fields of user tasks that are answered by yes or no, and what counts as an answer."""

import re
from typing import Final

from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

_YES_OR_NO: Final = lazy_pattern(
    r"(?:boolean|bool|yes or no|yes/no|yes-no|true or false)\s*(?:[:;,.?(-].*)?", re.IGNORECASE | re.DOTALL
)
_ANSWERS: Final = {
    **dict.fromkeys(("yes", "y", "true", "on"), True),
    **dict.fromkeys(("no", "n", "false", "off"), False),
}


def is_yes_or_no(description: str) -> bool:
    """Whether a field is said to be answered by yes or no: `yes or no`, `boolean`, `yes or no: may it go out?`."""
    return _YES_OR_NO.fullmatch(description.strip()) is not None


def answer(value: Value) -> bool | None:
    """What a person meant by an answer; None if it is neither yes nor no."""
    if isinstance(value, bool):
        return value
    return _ANSWERS.get(value.strip().lower()) if isinstance(value, str) else None
