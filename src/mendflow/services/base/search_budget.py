"""What one answer of a search may take. Then it says how far it came, and whoever wants more asks for the next page.

It is counted, and not timed: so many documents, and so much work of the condition on them, as expressions count it.
So a condition that does much with each document looks at fewer of them, and the same search ends at the same place on
every machine."""

from collections.abc import Mapping
from typing import Final, Protocol

from mendflow.core.expressions.work_budget import WORK
from mendflow.core.model.values import Value

SEARCH_WORK_MAX: Final = 2_000_000
"""The work of all conditions of one answer."""


class SearchCondition(Protocol):
    def holds(self, data: Mapping[str, Value]) -> bool: ...


class SearchBudget:
    def __init__(self, documents_max: int, work_max: int = SEARCH_WORK_MAX) -> None:
        self._documents_max = documents_max
        self._work_left = work_max
        self.looked_at = 0

    def look(self) -> None:
        """Another document is looked at."""
        self.looked_at += 1

    def holds(self, condition: SearchCondition, data: Mapping[str, Value]) -> bool:
        """Whether the condition holds for the document."""
        before = WORK.spent_in_all
        try:
            return condition.holds(data)
        finally:
            self._work_left -= WORK.spent_in_all - before

    @property
    def is_spent(self) -> bool:
        return self.looked_at >= self._documents_max or self._work_left <= 0
