"""What the exception service knows of types, faults and results beforehand."""

from typing import Final

from mendflow.core.model.faults import Category
from mendflow.core.model.repair import ExceptionType
from mendflow.services.recovery.decisions import RETRYING

CONSTRAINT_TYPES: Final = frozenset(
    {ExceptionType.CASE_PRE, ExceptionType.CASE_POST, ExceptionType.ITEM_PRE, ExceptionType.ITEM_POST}
)
"""For these types what was held continues when the exlet waits for something, unless it was suspended."""

SETTLING_RESULTS: Final = frozenset({RETRYING, "recovered", "restarted", "completed", "failed", "removed"})
"""Results of an exlet that settle a failure; after any other result it is passed on."""

NOTHING_TO_MEND: Final = (
    "it failed before anything was ordered: there was nothing to mend, and the flow was told at once"
)

RETRY_IS_FUTILE = frozenset({Category.MEMORY, Category.TIME})
"""Categories where a retry without changes would fail in the same way."""
