"""What a primitive of an exlet is applied to: the item or the cases that it names, seen from the exlet's case."""

from collections.abc import Mapping
from typing import Final

import msgspec

from mendflow.core.engine.messages import RunPrimitive
from mendflow.core.engine.plan import WORK
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.ids import CaseId, ItemId, JobId, item_name
from mendflow.core.model.principals import NO_PROJECT
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.values import FileRef
from mendflow.services.base.cluster import first_case_of
from mendflow.services.base.engine_interfaces import Engine, ItemFacts
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.recovery.decisions import DecisionStore

ITEMS_SHOWN: Final = 20
ENDING: Final = frozenset({Primitive.REMOVE, Primitive.COMPLETE, Primitive.FAIL, Primitive.RESTART})
SUBMITTING: Final = frozenset({Primitive.RESTAGE, Primitive.RESUBMIT, Primitive.RETRY_LATER})
"""They restart what is not a job."""
ITEM_PRIMITIVES = frozenset(Primitive) - {Primitive.UNWIND, Primitive.NOTIFY}


class RepairTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What a primitive is applied to, and in whose name. `given` are the files that it has brought to the case."""

    case: CaseId
    item: ItemId | None
    items: list[ItemFacts]
    engine: Engine
    holder: str
    by: str
    decision: Decision | None
    local: bool
    given: dict[str, FileRef] = {}

    @property
    def at_hand(self) -> bool:
        """Whether it is applied to the item of the decision, and not to another item of its case."""
        about = self.decision.item if self.decision is not None else None
        return about is None or self.item == about or any(each.item == about for each in self.items)


class RepairTargets:
    def __init__(self, manager: FlowManager, engines: Mapping[str, Engine], decisions: DecisionStore) -> None:
        self._manager = manager
        self._engines = engines
        self._decisions = decisions

    async def resolve(self, live: LiveCase, order: RunPrimitive) -> RepairTarget:
        exlet = await self._exlet_of(live.document)
        engine = self._engines[exlet.mends_engine]
        assert exlet.mends is not None
        item = ItemId(order.about) if order.about else exlet.mends_item
        to_items = order.target == "item" and order.do in ITEM_PRIMITIVES
        return RepairTarget(
            case=exlet.mends,
            item=item,
            items=await self._target_items(engine, exlet.mends, item) if to_items else [],
            engine=engine,
            holder=exlet.id,
            by=f"{live.id}/{order.serial}",
            decision=self._decisions.open.get(exlet.decision),
            local=not exlet.mends_engine,
        )

    async def _exlet_of(self, document: CaseDocument) -> CaseDocument:
        """The exlet that a case belongs to: itself, or the one that called it, directly or indirectly."""
        found: CaseDocument | None = document
        while found is not None and found.mends is None:
            found = await self._manager.document(found.parent) if found.parent is not None else None
        if found is None:
            raise InvalidRequest(f"case {document.id} mends nothing, so it has no use for primitives")
        return found

    async def affected_cases(self, mended: RepairTarget, order: RunPrimitive) -> list[CaseId]:
        if order.target == "case":
            return [mended.case]
        if order.target == "all-cases":
            facts = await mended.engine.facts(mended.case)
            flow = facts.flow if facts is not None else mended.decision.flow if mended.decision else ""
            project = mended.engine.project_of(mended.case) or (
                mended.decision.project if mended.decision else NO_PROJECT
            )
            return sorted({*await mended.engine.cases_of(flow, project), mended.case})
        return await self._ancestors(mended)

    async def demand_task_roles(self, mended: RepairTarget, order: RunPrimitive) -> None:
        """Refuse to end user tasks, or to offer them anew, for a person who has not the roles that they are for,
        wherever inside they wait; but for those of this very exlet. What rules conclude by themselves may: whoever
        teaches them knows the flow."""
        roles = mended.decision.task_roles if mended.decision is not None else None
        if roles is None:
            return
        own = f"{mended.holder}."
        for case, item in await self._ended_by(mended, order):
            for task in mended.engine.open_tasks(case, item):
                if task.role and task.role not in roles and not f"{task.case}.".startswith(own):
                    raise Forbidden(
                        f"{task.case}:{task.item} is a user task for the role {task.role!r}, who alone may end it"
                    )

    async def _ended_by(self, mended: RepairTarget, order: RunPrimitive) -> list[tuple[CaseId, ItemId | None]]:
        """What a primitive ends, for good or to run it once more: items, or cases."""
        if order.target != "item":
            cases = await self.affected_cases(mended, order) if order.do is Primitive.REMOVE else []
            return [(case, None) for case in cases if first_case_of(case) not in cases]
        if order.do not in ENDING | SUBMITTING:
            return []
        return [(mended.case, each.item) for each in mended.items if order.do in ENDING or job_of(mended, each) is None]

    async def _ancestors(self, mended: RepairTarget) -> list[CaseId]:
        """The case of the decision and those above it: the one that called it or that it mends, up to the root."""
        found, each = [mended.case], mended.case
        while mended.local and (document := await self._manager.document(each)) is not None:
            above = document.mends if document.mends is not None else document.parent
            if above is None or above in found:
                break
            found.append(above)
            each = above
        return found

    async def _target_items(self, engine: Engine, case: CaseId, item: ItemId | None) -> list[ItemFacts]:
        """The item that is named; all live items of a task where a task is named. Raises NotFound for one that the flow
        does not have. What another engine has not told of, it may have all the same: it is asked by the name."""
        if item is None:
            raise InvalidRequest("there is no item at hand; say which with `item`")
        facts = await engine.facts(case, item)
        live = facts.items if facts is not None else []
        found = [each for each in live if each.item == item] or [each for each in live if each.task == item]
        if not found and engine is self._engines[""]:
            self._demand_known(case, item)
        elif not found:
            return [ItemFacts(item=item, task=item_name(item), kind="", status="")]
        return found

    def _demand_known(self, case: CaseId, item: ItemId) -> None:
        live = self._manager.live.get(case)
        if live is None or any(item_name(item) in (node.name, node.shown) for node in live.case.plan.nodes):
            return
        known = sorted({node.shown or node.name for node in live.case.plan.nodes if node.kind in WORK})
        text = f"it has {', '.join(known[:ITEMS_SHOWN])}" + (" and more" if len(known) > ITEMS_SHOWN else "")
        raise NotFound(f"flow {live.document.flow} has no item {item:.80}; {text}")


def job_of(mended: RepairTarget, item: ItemFacts) -> JobId | None:
    """The id that the flow uses for the item's job; None if it is not a job, or not submitted yet."""
    if not mended.local or item.kind != "job" or not item.serial or item.status == "staging":
        return None
    return JobId(f"{mended.case}/{item.serial}")


def job_of_ended_item(mended: RepairTarget) -> JobId | None:
    """The job that failed, if its item is over: the flow does not wait for it, but it can be mended all the same."""
    decision = mended.decision
    if not mended.local or decision is None or decision.type is not ExceptionType.ABORT or mended.item != decision.item:
        return None  # what another engine calls a job is not one of ours
    return decision.job
