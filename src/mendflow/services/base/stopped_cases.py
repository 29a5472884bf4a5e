"""The cases that a server found unfinished when it was opened, and does not continue until it is asked to.

A command such as `mendflow run` opens a data folder for one case. What others left unfinished there is loaded, because
pilots that still live may report on it and people may ask about it, but none of its jobs is given to a pilot."""

from collections.abc import Iterable

from mendflow.core.model.ids import CaseId
from mendflow.services.base.cluster import first_case_of


class StoppedCases:
    """`continues_found`: the server continues whatever it finds, and nothing is stopped. A case is stopped and released
    together with all that it called and with the exlets that mend it."""

    def __init__(self, *, continues_found: bool) -> None:
        self._first_cases: set[CaseId] = set()
        self._may_find = not continues_found

    def add_found(self, cases: Iterable[CaseId]) -> None:
        """The unfinished cases in the store, at the first opening. When the services are built anew later, cases that
        this server has begun itself are among them."""
        if self._may_find:
            self._first_cases |= {first_case_of(case) for case in cases}
            self._may_find = False

    def holds(self, id: str) -> bool:
        """Whether a case, or what is named after one, is not continued."""
        return bool(self._first_cases) and first_case_of(id) in self._first_cases

    def release(self, id: str) -> None:
        self._first_cases.discard(first_case_of(id))
