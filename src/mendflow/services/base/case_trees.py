"""The live cases of a server, and how many each tree has: a case that somebody has started, and all that it and those
have called.

A tree has one home, so this server knows all its cases. One that is about to begin has its place already: so however
many begin at once, each is counted before the next one asks. Exlets are not counted: a repair is never refused for the
number of cases that it repairs. What an exlet calls is counted."""

from typing import Any, Protocol, TypeVar

from mendflow.core.model.ids import CaseId
from mendflow.services.base.cluster import first_case_of


class ProjectCase(Protocol):
    """A live case, as far as quotas are about it."""

    @property
    def counted_project(self) -> str:
        """Its project; empty if it does not count, because it mends a case or undoes what one did."""
        ...


C = TypeVar("C", bound=ProjectCase)


class CaseTrees(Protocol):
    """How many cases each tree has."""

    def in_tree(self, case: CaseId) -> int:
        """How many cases the tree of this case has, with those that are about to begin."""
        ...

    def begun_in_tree(self, case: CaseId) -> int: ...

    def trees(self, project: str) -> dict[CaseId, int]:
        """The trees of a project, each by its first case, and how many cases of each have begun."""
        ...

    def __contains__(self, case: object, /) -> bool: ...


class LiveCaseTable(dict[CaseId, C]):
    """A case is put in by its id, and taken out by `pop`."""

    def __init__(self) -> None:
        super().__init__()
        self._trees: dict[CaseId, set[CaseId]] = {}  # by first case: those that have begun, or are about to
        self._reserved: dict[CaseId, set[CaseId]] = {}  # those of them that are about to

    def __setitem__(self, id: CaseId, case: C) -> None:
        super().__setitem__(id, case)
        if case.counted_project:
            self._trees.setdefault(first_case_of(id), set()).add(id)
            self._end_reservation(id)

    def __delitem__(self, id: CaseId) -> None:
        super().__delitem__(id)
        self._leave(id)

    def pop(self, id: CaseId, *default: Any) -> Any:
        found = super().pop(id, *default)
        self._leave(id)
        return found

    def reserve(self, id: CaseId) -> None:
        """The case is about to begin: it is counted until it has ended, or `release` says that it does not begin."""
        if id not in self:
            tree = first_case_of(id)
            self._trees.setdefault(tree, set()).add(id)
            self._reserved.setdefault(tree, set()).add(id)

    def release(self, id: CaseId) -> None:
        """If the case has not begun, it does not."""
        self._end_reservation(id)
        if id not in self:
            self._leave(id)

    def in_tree(self, case: CaseId) -> int:
        return len(self._trees.get(first_case_of(case), ()))

    def begun_in_tree(self, case: CaseId) -> int:
        return self.in_tree(case) - len(self._reserved.get(first_case_of(case), ()))

    def trees(self, project: str) -> dict[CaseId, int]:
        found: dict[CaseId, int] = {}
        for tree, cases in self._trees.items():
            begun = next((self[id] for id in cases if id in self), None)
            if begun is not None and begun.counted_project == project:
                found[tree] = self.begun_in_tree(tree)
        return found

    def _leave(self, id: CaseId) -> None:
        tree = first_case_of(id)
        cases = self._trees.get(tree)
        if cases is not None:
            cases.discard(id)
            if not cases:
                del self._trees[tree]

    def _end_reservation(self, id: CaseId) -> None:
        tree = first_case_of(id)
        reserved = self._reserved.get(tree)
        if reserved is not None:
            reserved.discard(id)
            if not reserved:
                del self._reserved[tree]
