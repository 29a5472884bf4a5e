"""Which cases wait for a person: for a user task, or because something failed that no rule took up.

The store is asked, so that the answer is the same whichever server a case lives on."""

from collections.abc import Iterator
from typing import Final

import msgspec

from mendflow.core.model.repair import ExceptionType
from mendflow.services.cases.user_tasks import OPEN_STATES, TASK_KIND
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.stores.contract import FieldCondition, Store

PAGE: Final = 1_000
READ_MAX: Final = 50_000
"""So many tasks, and so many failures, are read."""


class _OfCase(msgspec.Struct):
    case: str


_decode = msgspec.json.Decoder(_OfCase).decode


async def cases_for_people(store: Store) -> frozenset[str]:
    """Their ids, and those of the cases that called them."""
    tasks = await _cases_of(store, TASK_KIND, [FieldCondition("state", list(OPEN_STATES), "in")])
    waiting = [FieldCondition("state", "waiting"), FieldCondition("type", ExceptionType.ABORT.value)]
    return frozenset(above for case in tasks | await _cases_of(store, DECISION_KIND, waiting) for above in _above(case))


async def _cases_of(store: Store, kind: str, where: list[FieldCondition]) -> set[str]:
    found, last = set[str](), None
    for _ in range(READ_MAX // PAGE):
        page = await store.search(kind, where, limit=PAGE, after=last)
        found.update(_decode(each.body).case for each in page)
        if len(page) < PAGE:
            break
        last = page[-1]
    return found


def _above(case: str) -> Iterator[str]:
    """The case, and those that it is in: `night-7f3k.2.1`, `night-7f3k.2`, `night-7f3k`."""
    parts = case.split(".")
    return (".".join(parts[:number]) for number in range(len(parts), 0, -1))
