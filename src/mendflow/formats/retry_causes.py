"""What a job's own failures are known by, where a flow says after which of them it is tried again."""

import re
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from mendflow.core.model.faults import INFRASTRUCTURE_CATEGORIES, Category
from mendflow.formats.hints import hint_for, plain
from mendflow.formats.names import NAME
from mendflow.formats.retry_hints import ALL_CAUSES, CAUSES_ELSEWHERE

CAUSES: Final = (
    *(each.value for each in Category if each not in {*INFRASTRUCTURE_CATEGORIES, Category.CANCELLED, Category.FLOW}),
    *("exitCode", "signal", "memoryLimit", "memoryKilled", "timeLimit", "missingInput", "missingOutput"),
)
"""Categories, and the names of the usual faults."""


class CauseFlaw(NamedTuple):
    message: str
    suggestion: str = ""


def cause_flaw(value: Any, shown: str) -> CauseFlaw | None:
    """Why this is no cause of failures; None if it may be one."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, (bool, float)) or (isinstance(value, int) and not 1 <= value <= 255):
        return CauseFlaw(f"an exit code from 1 to 255, or a cause, is expected here, not {shown}")
    if not isinstance(value, str) or value in CAUSES or "${{" in value:
        return None
    return _word_flaw(value)


def _word_flaw(value: str) -> CauseFlaw | None:
    """A name may be that of a fault of the job's own, such as ValueError, unless it is a word for something else."""
    message = f"`{value}` is no cause of failures"
    ours, numbers = hint_for(value, CAUSES_ELSEWHERE), re.findall(r"\d+", value)
    close = get_close_matches(value, CAUSES, 1, 0.75)
    if plain(value) in ALL_CAUSES:
        return CauseFlaw(f"{message}; without `on` all of the job's own are tried again")
    if ours or close:
        return CauseFlaw(message, f"`{ours or close[0]}`")
    if len(numbers) > 1:
        return CauseFlaw(f"{message}; exit codes stand in a list, one by one, as `on: [75, 76]`")
    if NAME.fullmatch(value):
        return None
    likely = f"`{numbers[0]}`" if numbers and not value.startswith("!") else ""
    return CauseFlaw(f"{message}: give an exit code, {', '.join(CAUSES)}", likely)
