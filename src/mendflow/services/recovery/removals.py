"""Removed cases and items: the exlets that mend them are stopped, with the reason, and with everything that they have
called and submitted.

Whether a case was removed is read from its document each time, and of an item from the decision, and nothing is stored
here: so the answer is the same at the end of the case, before an exlet starts, and after a restart in the middle."""

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.recovery.decision_subject import event_of_decision
from mendflow.services.base.engine_interfaces import Engine
from mendflow.services.base.events import EventStream
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId, case_name, name_of
from mendflow.services.recovery.statistics import ExceptionHistory


class RemovalHandler:
    def __init__(
        self,
        *,
        manager: FlowManager,
        decisions: DecisionStore,
        past: ExceptionHistory,
        events: EventStream,
        engines: dict[str, Engine],
    ) -> None:
        self._manager = manager
        self._decisions = decisions
        self._past = past
        self._events = events
        self._engines = engines

    async def case_ended(self, document: CaseDocument) -> None:
        """A case is over: its waiting decisions are closed, and if it was removed its exlets are stopped."""
        for decision in self._decisions.open_of_case(EngineCaseId("", document.id)):
            if decision.state == "waiting":
                ended = f": {document.fault.message}" if document.fault is not None else ""
                self._leave(decision, f"case {document.id} {document.status}{ended}")
            elif decision.type is not ExceptionType.SELECTION and (reason := await self.reason(decision)):
                await self.stop(decision, reason)

    async def engine_case_ended(self, case: EngineCaseId, status: str) -> None:
        """A case of another engine is over: its waiting decisions are closed, and if it was cancelled, and not by the
        exlet itself, its exlets are stopped."""
        for decision in self._decisions.open_of_case(case):
            if decision.state == "waiting":
                self._leave(decision, f"case {name_of(case)} {status}")
            elif status == "cancelled" and not decision.removes and decision.state == "running":
                decision.unwanted = f"case {name_of(case)}, which it was to mend, was removed"
                self._decisions.note(decision)
                await self.stop(decision, decision.unwanted)

    async def item_removed(self, case: CaseId, item: ItemId, reason: str) -> None:
        """A person has removed an item: what waits for a person about it is closed, and its exlets are stopped."""
        for decision in self._decisions.open_of_case(EngineCaseId("", case)):
            if decision.item != item:
                continue
            if decision.state == "waiting":
                self._leave(decision, f"item {item} was removed: {reason}")
                continue
            if decision.type is ExceptionType.SELECTION:
                continue
            decision.unwanted = f"item {item} of case {case}, which it was to mend, was removed: {reason}"
            self._decisions.note(decision)
            await self.stop(decision, decision.unwanted)

    def _leave(self, decision: Decision, reason: str) -> None:
        """Nobody has to take it up any more."""
        decision.note = f"{decision.note}; {reason}" if decision.note else reason
        self._decisions.end(decision, "ignored", "")

    async def reason(self, decision: Decision) -> str:
        """Why nothing is to be mended any more: the item, or the case, was removed since, and not by this very exlet.
        Empty otherwise. A job that nobody waits for may fail, and be mended, when its case is long over."""
        if decision.engine or decision.removes or decision.unwanted:
            return decision.unwanted
        document = await self._manager.document(decision.case)
        if document is None:
            return ""
        at_its_end = document.ending.removed if document.live and document.ending is not None else ""
        if not at_its_end and (document.status != "cancelled" or decision.at > document.ended_at):
            return ""
        reason = at_its_end or (document.fault.message if document.fault is not None else "")
        return f"case {document.id}, which it was to mend, was removed" + (f": {reason}" if reason else "")

    async def stop(self, decision: Decision, reason: str) -> None:
        """Stop the exlet, and with it everything that it has called and submitted. If it has not started, it never
        will."""
        if decision.state == "running" and decision.exlet_case in self._manager.live:
            await self._engines[""].cancel(decision.exlet_case, reason=reason, by=f"{decision.id}/stop")

    async def end(self, decision: Decision, reason: str) -> None:
        """Finish the decision without a notice: whoever removed the case knows. If the end of the case was held, it is
        published now."""
        if decision.state == "running":
            decision.note = f"exlet {decision.exlet} was stopped: {reason}"
            self._decisions.end(decision, "failed", "removed")
            self._past.count_result(decision)
            words = f"{decision.exlet}: stopped"
            self._events.tell(decision.ended_at, "repair", case_name(decision), decision.item, "failed", words)
            if decision.type is ExceptionType.CASE_POST:
                await self._engines[decision.engine].release(event_of_decision(decision.id))
