"""Cases that are held: something failed, no rule took it up, and the case waits for a person instead of failing.

The failure is kept from the flow, as during a repair; the decision about it waits. A new rule, an exlet, another try,
or the end of the case takes it up."""

from mendflow.core.model.faults import Category
from mendflow.core.model.flow import UnhandledPolicy
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.base.contracts import Clock, UnhandledFailure
from mendflow.services.base.events import EventStream
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.recovery.administration_tasks import request_for_failure
from mendflow.services.recovery.decisions import DecisionStore, case_name, waiting_successor
from mendflow.services.recovery.exlets import exlet_depth, tried_text
from mendflow.services.recovery.failures import group_id


class HoldingPolicy:
    """Which failures are held: as whoever started the case said, or the flow, or the flow of the case that called it,
    or the server."""

    def __init__(
        self, manager: FlowManager, decisions: DecisionStore, events: EventStream, *, by_default: bool
    ) -> None:
        self._manager = manager
        self._decisions = decisions
        self._events = events
        self._policy: UnhandledPolicy = "hold" if by_default else "fail"

    def _applies_to(self, decision: Decision) -> bool:
        """Whether a failure that nobody takes up waits for a person: not one that the flow has a handler for, or that
        a loop lets fail, nor one of an exlet, which the case that it mends hears of, nor what a person has decided, who
        rejected a task."""
        if decision.type is not ExceptionType.ABORT or (not decision.engine and exlet_depth(decision.case)):
            return False
        fault = decision.fault
        if fault is None or fault.category is Category.CANCELLED or fault.rejected_by:
            return False
        if decision.tolerated or decision.context["item"].get("caught"):
            return False
        if decision.engine:
            return self._policy == "hold"
        live = self._manager.live.get(decision.case)
        if live is None:
            return False  # a job that nobody waits for has outlived its case
        by_flows: UnhandledPolicy = ""
        while live is not None:
            by_flows = by_flows or live.flow.on_unhandled
            if live.document.parent is None:
                return (live.document.on_unhandled or by_flows or self._policy) == "hold"
            live = self._manager.live.get(live.document.parent)
        return (by_flows or self._policy) == "hold"

    def hold_in_place_of(self, decision: Decision, clock: Clock) -> bool:
        """A repair did not help: whether the failure is held, under a decision that takes the place of this one."""
        after = waiting_successor(decision, clock)
        after.tried = tried_text([decision])
        if not self.hold(after):
            return False
        decision.replaced_by = after.id
        return True

    def hold(self, decision: Decision) -> bool:
        """Keep a failure from the flow until a person, or a new rule, takes it up; false if it is not to be held."""
        if not self._applies_to(decision):
            return False
        decision.state, decision.request = "waiting", request_for_failure(decision)
        self._decisions.begin(decision)
        self._events.tell(decision.at, "repair", case_name(decision), decision.item, "waiting", "it waits for a person")
        return True

    def held_failures(self) -> list[UnhandledFailure]:
        """What waits for a person because something failed that no rule took up."""
        return [
            UnhandledFailure(
                each.case,
                each.item,
                each.fault.message if each.fault else "it failed",
                each.at,
                group_id(each.type, each.signature),
                each.tried,
            )
            for each in self._decisions.open.values()
            if each.state == "waiting" and each.type is ExceptionType.ABORT and not each.engine
        ]
