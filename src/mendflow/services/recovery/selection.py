"""Selection: a call that leaves its worklet to the rules gets the one that they conclude.

If none holds, the call waits for a person to choose. The choice is a decision like any other, under the call's own
serial: a call that is ordered again after a crash gets the same worklet, and a wrong choice can be rejected. The call
is then restarted, and the rules are asked again."""

from mendflow.core.engine.messages import StartCalledCase
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.repair import Conclusion, Decision, ExceptionEvent, ExceptionType
from mendflow.services.cases.called_cases import WorkletAwaited
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.intercepted_types import event_id
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.recovery.decisions import EngineCaseId, is_by_hand
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.worklet_choices import NO_CHOICE


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
        decision = await self._current(event.id) or await self._choose(event)
        if decision.state == "waiting":
            raise WorkletAwaited
        return await self._flow(decision)

    async def _current(self, id: str) -> Decision | None:
        """The decision about this call; if it was replaced, the one that stands."""
        found = await self._service.decisions.find(id)
        while found is not None and found.replaced_by:
            after = await self._service.decisions.find(found.replaced_by)
            if after is None:
                break
            found = after
        return found

    def not_begun(self, case: CaseId, serial: int, reason: str) -> None:
        """The chosen worklet does not exist, or cannot start: the decision has failed."""
        service = self._service
        for decision in service.decisions.open_of_case(EngineCaseId("", case)):
            if decision.type is ExceptionType.SELECTION and decision.serial == serial and decision.state == "running":
                decision.note = reason
                service.decisions.end(decision, "failed", "failed")
                service.past.count_result(decision)

    async def _choose(self, event: ExceptionEvent) -> Decision:
        service = self._service
        project = await service.project_of(event)
        context = await service.context(event, 0, project=project)
        verdict = await service.judge(event, context, project=project)
        if (known := service.decisions.open.get(event.id)) is not None:
            return known  # a rejection has put a person's choice here in the meantime
        conclusion = self._chosen_by_hand(event) or verdict.conclusion
        decision = service.new_decision(event, context, conclusion, project=project)
        service.note_verdict(decision, verdict)
        if conclusion is None:
            erred = f"; {decision.note}" if decision.note else ""
            return service.choices.wait(decision, NO_CHOICE.format(item=event.item, flow=event.flow) + erred)
        decision.exlet_case = CaseId(f"{event.case}.{event.serial}")
        service.decisions.begin(decision)
        service.past.count_decision(decision, "")
        return decision

    def _chosen_by_hand(self, event: ExceptionEvent) -> Conclusion | None:
        """What a person puts in the place of the choice that is being rejected."""
        about = self._service.decisions.open_of_case(EngineCaseId(event.engine, event.case))
        rejected = (each for each in about if each.type is event.type and each.item == event.item)
        return next((each.correction for each in rejected if is_by_hand(each.correction)), None)

    async def _flow(self, decision: Decision) -> Flow:
        assert decision.conclusion is not None
        found = await self._service.rules.exlet(decision.conclusion)
        return found if found is not None else (await self._flows.find(decision.exlet, decision.project))[0]
