"""Carries out what was concluded: starts the exlet, waits for its end, and lets what was held continue.

A decision is written before its exlet is started, so a server that is started again continues exactly the repairs that
were under way. When the repair is over, what was held continues: an abort that was not mended is passed on to the flow,
everything else simply happens."""

from collections.abc import Collection, Coroutine
from typing import Any, Final

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import RETRYING, TOLD, Conclusion, Decision, ExceptionType, Primitive
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock, MendableJobs
from mendflow.services.base.engine_interfaces import Engine
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.called_cases import WaitingCalls
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId, case_name
from mendflow.services.recovery.exlets import ExletLauncher, exlet_depth
from mendflow.services.recovery.held_actions import HeldActions
from mendflow.services.recovery.holding_policy import HoldingPolicy
from mendflow.services.recovery.removals import RemovalHandler
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.recovery.statistics import ExceptionHistory
from mendflow.services.recovery.worklet_choices import WorkletChoices, is_own_selection
from mendflow.stores.contract import Store

DEPTH_MAX: Final = 5
"""Exlets are watched like any other case, so they may be mended too, and so may those that mend them: to this depth."""

SETTLING_RESULTS: Final = frozenset({RETRYING, "recovered", "restarted", "completed", "failed", "removed"})
"""Results of an exlet that settle a failure; after any other result it is passed on."""


class RepairRunner:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        notices: Notices,
        manager: FlowManager,
        flows: Flows,
        rules: RuleStore,
        decisions: DecisionStore,
        past: ExceptionHistory,
        jobs: MendableJobs | None,
        hub: Hub,
        holds_unhandled: bool,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._notices = notices
        self._hub = hub
        self._manager = manager
        self._flows = flows
        self.rules = rules
        self.decisions = decisions
        self.past = past
        self._holding = HoldingPolicy(manager, decisions, events, by_default=holds_unhandled)
        self.engines: dict[str, Engine] = {}
        self.held = HeldActions(engines=self.engines, decisions=decisions, jobs=jobs)
        self._exlets = ExletLauncher(
            store=store, ledger=ledger, manager=manager, flows=flows, rules=rules, decisions=decisions
        )
        self.removals = RemovalHandler(
            manager=manager, decisions=decisions, past=past, events=events, engines=self.engines
        )
        self.choices = WorkletChoices(
            decisions=decisions,
            held=self.held,
            removals=self.removals,
            past=past,
            events=events,
            notices=notices,
            clock=clock,
        )
        self._background = BackgroundTasks(ledger)

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After these trees of cases were loaded: start the exlets that were decided on and not started, and finish the
        decisions whose exlets are over."""
        for decision in self.decisions.of_trees(roots):
            if decision.state == "running" and decision.exlet_case is not None and decision.exlet:
                await self._resume(decision, decision.exlet_case)
            elif decision.state == "waiting" and not decision.engine and decision.case not in self._manager.live:
                self.decisions.end(decision, "ignored", "")
        for decision in self.decisions.take_unclosed(roots):
            self.run_in_background(self._finish_ending(decision))

    async def _finish_ending(self, decision: Decision) -> None:
        await self.held.release_case(decision)
        self.decisions.close(decision)

    async def _resume(self, decision: Decision, exlet_case: CaseId) -> None:
        if exlet_case in self._manager.live:
            if (reason := await self.removals.reason(decision)) and not is_own_selection(decision):
                self.run_in_background(self.removals.stop(decision, reason))
            return
        kept = await self._manager.document(exlet_case)
        if kept is not None and not kept.live:
            await self.case_over(kept)
        elif decision.conclusion is not None and not is_own_selection(decision):
            exlet = await self._exlets.find(decision.conclusion, decision.project)
            self.run_in_background(self._begin(decision, exlet, decision.context))

    async def stop(self) -> None:
        await self._background.stop()

    async def apply_conclusion(
        self, decision: Decision, conclusion: Conclusion, context: dict[str, Value]
    ) -> Decision | None:
        """Carry out a conclusion; None if nothing can follow from it."""
        exlet = await self._exlets.find(conclusion, decision.project)
        problem = self._problem(decision, conclusion, exlet)
        exlet_case, turn = await self._exlets.next_case(decision), await self._exlets.start_time(decision, conclusion)
        if decision.id in self.decisions.open:
            return self.decisions.open[decision.id]  # reported twice at the same time
        if (problem or exlet is None) and decision.type is ExceptionType.SELECTION:
            return self.choices.wait(decision, problem)
        if problem or exlet is None:
            decision.state, decision.note = "failed", problem
            self.record(decision, context)
            name = case_name(decision)
            self._notices.post(f"{decision.type.value} of {name}: {problem}", case=name)
            return None
        decision.exlet_case = exlet_case
        calls = self._hub.provider(WaitingCalls) if is_own_selection(decision) else None
        if calls is not None:
            decision.exlet_case = CaseId(f"{decision.case}.{decision.serial}")
        self.decisions.begin(decision)
        self.publish(decision, context)
        if calls is not None:
            calls.begin_waiting(decision.case, decision.serial)
        else:
            self._background.start(self._begin_when_due(decision, exlet, context, turn))
        return decision

    def _problem(self, decision: Decision, conclusion: Conclusion, exlet: Flow | None) -> str:
        if exlet_depth(decision.case) >= DEPTH_MAX:
            return f"exlets mend exlets {DEPTH_MAX} deep here already; {conclusion.exlet} is not started"
        return (
            ""
            if exlet is not None
            else f"{rule_text(conclusion.rules, conclusion.rule)} concludes {conclusion.exlet}, which is nowhere"
        )

    def record(self, decision: Decision, context: dict[str, Value]) -> None:
        """Record a decision without consequences."""
        decision.ended_at = decision.at
        self.decisions.record(decision)
        self.publish(decision, context)

    def publish(self, decision: Decision, context: dict[str, Value]) -> None:
        """Count a decision, and tell those who listen to the changes of its case."""
        self.past.count_decision(decision, str(context["job"]["host"]))
        words = f"{decision.type.value}: {decision.exlet or decision.state}"
        self._events.tell(decision.at, "repair", case_name(decision), decision.item, decision.state, words)

    async def _begin_when_due(self, decision: Decision, exlet: Flow, context: dict[str, Value], turn: Instant) -> None:
        """If the server stops while the exlet waits, it is started after the next start."""
        if (early_ms := turn - self._clock.now()) > 0:
            await self._clock.sleep(early_ms)
        if decision.state == "running":
            await self._whole(self._begin(decision, exlet, context))

    async def _begin(self, decision: Decision, exlet: Flow | None, context: dict[str, Value]) -> None:
        """Start the exlet's case. If it cannot start, the repair has failed."""
        if reason := await self.removals.reason(decision):
            await self.removals.end(decision, reason)
            return
        try:
            await self._exlets.begin(decision, exlet, context)
        except StoreUnavailable:
            raise  # it is started after everything was loaded again
        except RequestError as error:
            note = f"exlet {decision.exlet} could not start: {error.message}"
            if decision.type is ExceptionType.SELECTION:
                self.choices.not_started(decision, note)
            else:
                await self._finish(decision, "failed", note)

    async def exlet_ended(self, document: CaseDocument) -> None:
        decision = self.decisions.open.get(document.decision)
        if decision is None or decision.exlet_case != document.id or decision.state != "running":
            return
        if document.status == "completed":
            has_only_told = decision.steps == [Primitive.NOTIFY] and not document.counts
            await self._finish(decision, "done", result=TOLD if has_only_told else "completed")
        elif reason := await self.removals.reason(decision):
            await self.removals.end(decision, reason)
        else:
            message = document.fault.message if document.fault else document.status
            note = f"exlet {decision.exlet} ({document.id}) {document.status}: {message}"
            holds = await self.held.remaining_holds(decision, document.id)
            await self._finish(decision, "failed", "; ".join((note, *holds)))

    async def _finish(self, decision: Decision, state: Any, note: str = "", *, result: str = "failed") -> None:
        """The repair is over: what was held continues. `result` holds where no step of the exlet has set one."""
        passes_on = decision.type is ExceptionType.ABORT and decision.result not in SETTLING_RESULTS
        decision.note = note or decision.note
        await self.held.release_case(decision)
        held = passes_on and self._holding.hold_in_place_of(decision, self._clock)
        self.decisions.end(decision, state, "passed-on" if passes_on else result)
        self.past.count_result(decision)
        name = case_name(decision)
        if note:
            self._notices.post(f"{decision.type.value} of {name}: {note}", case=name)
        self._events.tell(
            decision.ended_at, "repair", name, decision.item, state, f"{decision.exlet}: {decision.result}"
        )
        if not held:
            await self.held.release(decision, passes_on=passes_on)

    async def case_over(self, document: CaseDocument) -> None:
        """A case has ended: perhaps it was an exlet, or a worklet that the rules chose."""
        self.past.count_case(document)
        self._exlets.forget(document.id)
        self.decisions.end_all_retries(EngineCaseId("", document.id), "failed")
        await self.removals.case_ended(document)
        decision = self.decisions.open.get(self.decisions.by_exlet.get(document.id, ""))
        if decision is not None and decision.type is ExceptionType.SELECTION:
            if decision.state == "running" and decision.engine:
                self.run_in_background(self.choices.end_served_item(decision, document))
            elif decision.state == "running":
                self.decisions.end(decision, "done" if document.status == "completed" else "failed", document.status)
        elif document.decision:
            await self.exlet_ended(document)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.start(self._whole(work))

    async def _whole(self, work: Coroutine[Any, Any, None]) -> None:
        with self._ledger.atomic():
            await work
