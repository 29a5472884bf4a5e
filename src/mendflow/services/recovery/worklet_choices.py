"""Worklets that the rules chose for items: what happens when none was chosen, and when the chosen one is over.

An item for which no rule chooses a worklet waits for a person. A call of this server's engine starts and ends its
worklet's case itself; the item of another engine is ended by an order."""

from typing import Final

from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.notices import Notices
from mendflow.services.cases.called_cases import outcome_of
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.administration_tasks import request_for_worklet
from mendflow.services.recovery.decisions import DecisionStore, case_name, waiting_successor
from mendflow.services.recovery.held_actions import HeldActions
from mendflow.services.recovery.removals import RemovalHandler
from mendflow.services.recovery.statistics import ExceptionHistory

NO_CHOICE: Final = "no rule chooses a worklet for {item} in flow {flow}"


def is_own_selection(decision: Decision) -> bool:
    """Whether it chose the worklet of a call of this server's engine."""
    return decision.type is ExceptionType.SELECTION and not decision.engine


class WorkletChoices:
    def __init__(
        self,
        *,
        decisions: DecisionStore,
        held: HeldActions,
        removals: RemovalHandler,
        past: ExceptionHistory,
        events: EventStream,
        notices: Notices,
        clock: Clock,
    ) -> None:
        self._decisions = decisions
        self._held = held
        self._removals = removals
        self._past = past
        self._events = events
        self._notices = notices
        self._clock = clock

    def wait(self, decision: Decision, reason: str) -> Decision:
        """No worklet was chosen for an item: it waits for a person, who is told."""
        decision.state, decision.note, decision.exlet, decision.exlet_case = "waiting", reason, "", None
        decision.conclusion, decision.request = None, request_for_worklet(decision, reason, self._clock.now())
        self._decisions.begin(decision)
        name = case_name(decision)
        self._events.tell(decision.at, "repair", name, decision.item, "waiting", "it waits for a worklet")
        self._notices.post(
            f"{name}:{decision.item} waits for a worklet: {reason}. `mendflow mend {name} --exlet FLOW` chooses one,"
            f" `mendflow rules add` makes a rule for the next ones",
            case=name,
            item=decision.item,
        )
        return decision

    def not_started(self, decision: Decision, reason: str) -> None:
        """The chosen worklet cannot start: a person chooses another."""
        waiting = waiting_successor(decision, self._clock)
        decision.note, decision.replaced_by = reason, waiting.id
        self._decisions.end(decision, "failed", "failed")
        self._past.count_result(decision)
        self.wait(waiting, reason)

    async def end_served_item(self, decision: Decision, worklet: CaseDocument) -> None:
        """The worklet of another engine's item is over, and the item with it: with the worklet's outputs, or with its
        fault."""
        engine, item, outcome = self._held.engine(decision), decision.item, outcome_of(worklet)
        assert item is not None, "a selection is about an item"
        if reason := await self._removals.reason(decision):
            await self._removals.end(decision, reason)
            return
        if outcome.fault is None:
            done = await engine.complete(decision.case, item, outcome.outputs, by=f"{decision.id}/served")
        else:
            done = await engine.fail(decision.case, item, outcome.fault, proceed=False, by=f"{decision.id}/served")
        if decision.state != "running":
            return
        if not done:
            decision.note = f"engine {decision.engine} no longer has the item {item}"
        self._decisions.end(decision, "done" if outcome.fault is None else "failed", worklet.status)
        self._past.count_result(decision)
