"""Which cases have failed, and which of these were run again: counted in the store, where no case has to be read.

Whoever runs a case again has taken up what it failed by, with the same inputs or with corrected ones: from then on the
later case stands for it. If that fails too, its own failure is the one that counts. A case that was cancelled stands
for no other."""

from collections.abc import Collection
from typing import Final

from mendflow.core.model.ids import CaseId
from mendflow.services.base.cluster import CASE_KIND
from mendflow.stores.contract import FieldCondition, Store

ASKED_AT_ONCE: Final = 10_000
STANDS_FOR_ANOTHER: Final = (FieldCondition("parent", None), FieldCondition("status", "cancelled", "ne"))
"""Cases that were started, and not called: what a later run calls names the earlier case as well."""


async def run_again(store: Store, cases: Collection[CaseId]) -> set[CaseId]:
    """Those of these cases that another has run again, or runs now."""
    return await _counted(store, cases, "rerun_of", STANDS_FOR_ANOTHER)


async def failed_cases(store: Store, cases: Collection[CaseId]) -> set[CaseId]:
    """Those of these cases that have failed."""
    return await _counted(store, cases, "id", (FieldCondition("status", "failed"),))


async def _counted(
    store: Store, cases: Collection[CaseId], field: str, where: tuple[FieldCondition, ...]
) -> set[CaseId]:
    ids, found = sorted(cases), set[CaseId]()
    for at in range(0, len(ids), ASKED_AT_ONCE):
        asked = FieldCondition(field, [*ids[at : at + ASKED_AT_ONCE]], "in")
        found |= {CaseId(id) for id in await store.count(CASE_KIND, [*where, asked], by=field)}
    return found
