"""Whether failures that no rule took up are still something that somebody should look at.

A failed case may go on, or be run again: what completes in the end has recovered, whoever did that. What somebody has
cancelled nobody waits for."""

from collections.abc import Mapping
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.base.cluster import CASE_KIND, root_of
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failures import DAY_MS, DecisionSummary, group_id
from mendflow.stores.contract import FieldCondition, Store

CASES_MAX: Final = 200
"""Of so many failures of one cause it is looked what became of them; of more, some are taken to be left."""
RERUNS_MAX: Final = 20
PAGE: Final = 500

_decode = msgspec.json.Decoder(DecisionSummary).decode


class _Rerun(msgspec.Struct):
    status: str = "running"


_decode_rerun = msgspec.json.Decoder(_Rerun).decode


class _SameStart(msgspec.Struct):
    rerun_of: CaseId
    flow: str
    status: str = "running"
    inputs: dict[str, Value] = {}
    parent: CaseId | None = None


_decode_start = msgspec.json.Decoder(_SameStart).decode


async def run_again(store: Store, cases: Mapping[CaseId, CaseDocument]) -> set[CaseId]:
    """Those of these cases that others, of the same inputs, have run again, or run now. A case that was cancelled does
    not stand for another."""
    ids, found = sorted(cases), set[CaseId]()
    for at in range(0, len(ids), PAGE):
        where = [FieldCondition("rerun_of", [*ids[at : at + PAGE]], "in")]
        for document in await store.search(CASE_KIND, where, limit=PAGE * RERUNS_MAX):
            each = _decode_start(document.body)
            before = cases[each.rerun_of]
            same = (each.parent, each.flow, each.inputs) == (None, before.flow, before.inputs)
            if same and each.status != "cancelled":
                found.add(each.rerun_of)
    return found


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
    return document.status in ("completed", "cancelled") or await _is_done_again(store, root)


async def _is_done_again(store: Store, root: CaseId) -> bool:
    """Whether a case that runs this one again has completed, or one that runs that again."""
    left, seen = [root], {root}
    while left and len(seen) < RERUNS_MAX:
        where = [FieldCondition("rerun_of", left.pop())]
        for found in await store.search(CASE_KIND, where, limit=RERUNS_MAX):
            if _decode_rerun(found.body).status == "completed":
                return True
            if found.id not in seen:
                seen.add(CaseId(found.id))
                left.append(CaseId(found.id))
    return False
