"""Whether failures that no rule took up are still something that somebody should look at.

A failed case may go on, or be run again: then somebody has taken up what it failed by, and if it fails again, that
failure is the one that counts. What somebody has cancelled nobody waits for."""

from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.alerts import AlertDocument, AlertFinding
from mendflow.services.base.cluster import root_of
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.failures import DAY_MS, DecisionSummary, group_id, unhandled_finding
from mendflow.services.recovery.later_runs import runs_that_stand_for
from mendflow.stores.contract import FieldCondition, Store

CASES_MAX: Final = 200
"""Of so many failures of one cause it is looked what became of them; of more, some are taken to be left."""

_decode = msgspec.json.Decoder(DecisionSummary).decode
_decode_whole = msgspec.json.Decoder(Decision).decode


async def unsettled_of(store: Store, manager: FlowManager, alert: AlertDocument) -> AlertFinding | None:
    """What is left of a flow's failures of a cause on the day of the alert, of its own case first. The alert stays as
    it is where there are too many to look at, or where its own failure is not found yet."""
    first = await manager.document(alert.case)
    if first is None:
        return alert.finding
    day = alert.raised_at - alert.raised_at % DAY_MS
    where = [FieldCondition("at", day, "ge"), FieldCondition("at", day + DAY_MS, "lt")]
    where.append(FieldCondition("flow", first.flow))
    where.append(FieldCondition("state", ["ignored", "passive"], "in"))
    found = await store.search(DECISION_KIND, where, order_by="at", descending=True, limit=CASES_MAX)
    own, settled = root_of(alert.case), dict[CaseId, bool]()
    read = [(_decode(each.body), each.body) for each in found]
    alike = [(brief, body) for brief, body in read if _is_of(brief, alert.group, first.project)]
    if own not in {root_of(brief.case) for brief, _ in alike} and not await _is_settled(store, manager, own):
        return alert.finding
    alike.sort(key=lambda each: (root_of(each[0].case) != own, each[0].at))
    for brief, body in alike:
        root = root_of(brief.case)
        if brief.replaced_by:
            continue  # it was tried again
        if root not in settled:
            settled[root] = await _is_settled(store, manager, root)
        if not settled[root] and (left := unhandled_finding(_decode_whole(body))) is not None:
            return left
    return alert.finding if len(found) == CASES_MAX else None


def _is_of(decision: DecisionSummary, group: str, project: str) -> bool:
    """Of this server's own cases: engines, and other projects, may have flows of the same name."""
    if decision.type is not ExceptionType.ABORT or decision.result or decision.engine or decision.project != project:
        return False
    return group_id(decision.type, decision.signature) == group


async def _is_settled(store: Store, manager: FlowManager, root: CaseId) -> bool:
    document = await manager.document(root)
    if document is None or document.live:
        return False
    if document.status in ("completed", "cancelled"):
        return True
    later = await runs_that_stand_for(store, [root])
    return any(run.started_at >= document.ended_at for run in later)
