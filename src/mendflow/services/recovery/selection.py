"""Selection: a call that leaves its worklet to the rules gets the one that they conclude.

The choice is a decision like any other, under the call's own serial: a call that is ordered again after a crash gets
the same worklet, and a wrong choice can be rejected. The call is then restarted, and the rules are asked again."""

from mendflow.core.engine.messages import StartCalledCase
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.repair import Decision, ExceptionEvent, ExceptionType
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.intercepted_types import event_id
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.recovery.exception_service import ExceptionService


class WorkletSelector:
    def __init__(self, service: ExceptionService, flows: Flows) -> None:
        self._service = service
        self._flows = flows

    async def select(self, live: LiveCase, order: StartCalledCase) -> Flow:
        event = ExceptionEvent(
            id=event_id(live.id, order.serial, ExceptionType.SELECTION),
            type=ExceptionType.SELECTION,
            case=live.id,
            flow=live.document.flow,
            item=order.item,
            task=item_name(order.item),
            serial=order.serial,
        )
        decision = await self._service.decisions.find(event.id) or await self._choose(event)
        return await self._flow(decision)

    def not_begun(self, case: CaseId, serial: int, reason: str) -> None:
        """The chosen worklet does not exist, or cannot start: the decision has failed."""
        service = self._service
        decision = service.decisions.open.get(event_id(case, serial, ExceptionType.SELECTION))
        if decision is not None and decision.state == "running":
            decision.note = reason
            service.decisions.end(decision, "failed", "failed")
            service.past.count_result(decision)

    async def _choose(self, event: ExceptionEvent) -> Decision:
        service = self._service
        context = await service.contexts.build(event, await service.facts(event), 0)
        conclusion = service.rules.judge(event.type, event.flow, event.task, context).conclusion
        if conclusion is None:
            raise NotFound(
                f"no rule chooses a worklet for {event.item} in flow {event.flow}; `mendflow rules add` makes one"
            )
        decision = service.new_decision(event, context, conclusion)
        decision.exlet_case = CaseId(f"{event.case}.{event.serial}")
        service.decisions.begin(decision)
        service.past.count_decision(decision, "")
        return decision

    async def _flow(self, decision: Decision) -> Flow:
        assert decision.conclusion is not None
        found = await self._service.rules.exlet(decision.conclusion)
        return found if found is not None else (await self._flows.find(decision.exlet))[0]
