"""Which cases wait for a person: for a user task, or because something failed that no rule took up, and what that is.

The store is asked, so that the answer is the same whichever server a case lives on."""

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.repair import ExceptionType
from mendflow.core.query.case_text import HELD_CHARS_MAX, failure_text
from mendflow.services.cases.user_tasks import OPEN_STATES, TASK_KIND
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.stores.contract import FieldCondition, Store

PAGE: Final = 1_000
READ_MAX: Final = 50_000
"""So many tasks, and so many failures, are read."""


HELD_TEXTS_MAX: Final = 200
"""So many different failures of one case are searched for words."""
_HELD: Final = (FieldCondition("state", "waiting"), FieldCondition("type", ExceptionType.ABORT.value))


class _OfCase(msgspec.Struct):
    case: str
    fault: Fault | None = None


_decode = msgspec.json.Decoder(_OfCase).decode


async def cases_for_people(store: Store) -> frozenset[str]:
    """Their ids, and those of the cases that called them."""
    open_tasks = [FieldCondition("state", list(OPEN_STATES), "in")]
    tasks = {each.case async for each in _documents(store, TASK_KIND, open_tasks)}
    held = {each.case async for each in _documents(store, DECISION_KIND, _HELD)}
    return frozenset(above for case in tasks | held for above in _above(case))


async def held_failures(store: Store) -> Mapping[str, Collection[str]]:
    """The sentences of what failed and waits, each once, by the cases where it did and those that called them."""
    found: dict[str, dict[str, None]] = {}
    async for each in _documents(store, DECISION_KIND, _HELD):
        if each.fault is not None:
            text = failure_text(each.fault.name, each.fault.message, HELD_CHARS_MAX)
            for above in _above(each.case):
                texts = found.setdefault(above, {})
                if len(texts) < HELD_TEXTS_MAX:
                    texts[text] = None
    return found


async def _documents(store: Store, kind: str, where: Sequence[FieldCondition]) -> AsyncGenerator[_OfCase, None]:
    last = None
    for _ in range(READ_MAX // PAGE):
        page = await store.search(kind, list(where), limit=PAGE, after=last)
        for each in page:
            yield _decode(each.body)
        if len(page) < PAGE:
            return
        last = page[-1]


def _above(case: str) -> Iterator[str]:
    """The case, and those that it is in: `night-7f3k.2.1`, `night-7f3k.2`, `night-7f3k`."""
    parts = case.split(".")
    return (".".join(parts[:number]) for number in range(len(parts), 0, -1))
