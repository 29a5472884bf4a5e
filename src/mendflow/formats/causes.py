"""What a job's own failures are known by, where a flow says after which of them it is tried again."""

from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from mendflow.core.model.faults import INFRASTRUCTURE_CATEGORIES, Category
from mendflow.formats.names import NAME

CAUSES: Final = (
    *(each.value for each in Category if each not in {*INFRASTRUCTURE_CATEGORIES, Category.CANCELLED, Category.FLOW}),
    *("exitCode", "signal", "memoryLimit", "memoryKilled", "timeLimit", "missingInput", "missingOutput"),
)
"""Categories, and the names of the usual faults."""


class CauseFlaw(NamedTuple):
    message: str
    suggestion: str = ""


def cause_flaw(value: Any, shown: str) -> CauseFlaw | None:
    """Why this is no cause of failures; None if it may be one. A name that is not known is that of an exception."""
    if isinstance(value, (bool, float)) or (isinstance(value, int) and not 1 <= value <= 255):
        return CauseFlaw(f"an exit code from 1 to 255, or a cause, is expected here, not {shown}")
    if not isinstance(value, str) or value in CAUSES or "${{" in value:
        return None
    close = get_close_matches(value, CAUSES, 1, 0.75)
    if not close and NAME.fullmatch(value):
        return None
    likely = f"`{close[0]}`" if close else ""
    return CauseFlaw(f"`{value}` is no cause of failures: give an exit code, {', '.join(CAUSES)}", likely)
