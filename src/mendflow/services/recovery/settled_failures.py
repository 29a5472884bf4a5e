"""Whether failures that no rule took up are still something that somebody should look at.

A failed case may go on, or be run again: what completes in the end has recovered, whoever did that. What somebody has
cancelled nobody waits for."""

from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.services.base.cluster import root_of
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failures import DAY_MS, DecisionSummary, group_id
from mendflow.services.recovery.later_runs import runs_that_stand_for
from mendflow.stores.contract import FieldCondition, Store

CASES_MAX: Final = 200
"""Of so many failures of one cause it is looked what became of them; of more, some are taken to be left."""
RERUNS_MAX: Final = 20

_decode = msgspec.json.Decoder(DecisionSummary).decode


async def are_settled(store: Store, manager: FlowManager, case: CaseId, group: str, since: Instant) -> bool:
    """Whether nothing is left of a flow's failures of a cause on the day of `since`; this case's was the first."""
    first = await manager.document(case)
    if first is None or not await _is_settled(store, manager, root_of(case)):
        return False
    day = since - since % DAY_MS
    where = [FieldCondition("at", day, "ge"), FieldCondition("at", day + DAY_MS, "lt")]
    where.append(FieldCondition("flow", first.flow))
    where.append(FieldCondition("state", ["ignored", "passive"], "in"))
    found = await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=CASES_MAX)
    if len(found) == CASES_MAX:
        return False
    alike = {root_of(each.case) for each in map(_decode, (one.body for one in found)) if _is_of(each, group)}
    for other in sorted(alike - {root_of(case)}):
        if not await _is_settled(store, manager, other):
            return False
    return True


def _is_of(brief: DecisionSummary, group: str) -> bool:
    return brief.type is ExceptionType.ABORT and not brief.result and group_id(brief.type, brief.signature) == group


async def _is_settled(store: Store, manager: FlowManager, root: CaseId) -> bool:
    document = await manager.document(root)
    if document is None or document.live:
        return False
    return document.status in ("completed", "cancelled") or await _is_done_again(store, root, document.ended_at)


async def _is_done_again(store: Store, root: CaseId, failed_at: Instant) -> bool:
    """Whether a case that was run in place of this one has completed, or one in place of that."""
    left, seen = {root: failed_at}, {root}
    while left and len(seen) < RERUNS_MAX:
        case, ended_at = left.popitem()
        for run in await runs_that_stand_for(store, [case]):
            if run.started_at < ended_at or run.id in seen:
                continue
            if run.status == "completed":
                return True
            seen.add(run.id)
            left[run.id] = run.ended_at
    return False
