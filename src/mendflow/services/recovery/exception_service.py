"""The exception service: it gets events about points in the life of cases, asks the rules, and starts the repair.

The engine never waits for a repair; it is told to hold what it was about to do, and later to continue. A decision is
written before anything follows from it, under the event's own id: so an event that is reported again, after a crash or
over a bad connection, is decided once, and a repair is started once. When the repair is over, what was held continues:
an abort that was not mended is passed on to the flow, everything else simply happens."""

import logging
from collections.abc import Collection, Coroutine
from typing import Any, Final

from msgspec.structs import replace

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.jobs import Submission
from mendflow.core.model.repair import Conclusion, Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.services.base.alerts import ProblemFound
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock, Failure, MendableJobs, UnhandledFailure
from mendflow.services.base.engine_interfaces import CaseFacts, Engine
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.contexts import ContextBuilder, bounded_context
from mendflow.services.recovery.decisions import OPEN_STATES, RETRYING, DecisionStore, EngineCaseId, signature_of
from mendflow.services.recovery.exlets import ExletLauncher, exlet_depth
from mendflow.services.recovery.failed_attempts import failure_event, is_left_to_queue
from mendflow.services.recovery.failures import unhandled_finding
from mendflow.services.recovery.held_actions import HeldActions
from mendflow.services.recovery.holding_policy import HoldingPolicy
from mendflow.services.recovery.removals import RemovalHandler
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.recovery.statistics import ExceptionHistory
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.exceptions")

DEPTH_MAX: Final = 5
"""Exlets are watched like any other case, so they may be mended too, and so may those that mend them: to this depth."""

REPAIRS_MAX: Final = 100
"""Rules may repair an item again and again. After this many exlets for one item its rules start none; people still
may."""

SETTLING_RESULTS: Final = frozenset({RETRYING, "recovered", "restarted", "completed", "failed", "removed"})
"""Results of an exlet that settle a failure; after any other result it is passed on."""

NOTHING_TO_MEND: Final = (
    "it failed before anything was ordered: there was nothing to mend, and the flow was told at once"
)

REPORTED_MAX: Final = 50_000


class ExceptionService:
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
        contexts: ContextBuilder,
        jobs: MendableJobs | None,
        hub: Hub,
        holds_unhandled: bool = False,
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
        self.contexts = contexts
        self._holding = HoldingPolicy(manager, decisions, events, by_default=holds_unhandled)
        self.engines: dict[str, Engine] = {}
        self.held = HeldActions(engines=self.engines, decisions=decisions, jobs=jobs)
        self._reported: dict[str, None] = {}
        self._exlets = ExletLauncher(
            store=store, ledger=ledger, manager=manager, flows=flows, rules=rules, decisions=decisions
        )
        self.removals = RemovalHandler(
            manager=manager, decisions=decisions, past=past, events=events, engines=self.engines
        )
        self._background = BackgroundTasks(ledger)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Load the open decisions of these trees of cases, before the cases are loaded."""
        await self.decisions.load(roots)

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
            if (reason := await self.removals.reason(decision)) and decision.type is not ExceptionType.SELECTION:
                self.run_in_background(self.removals.stop(decision, reason))
            return
        kept = await self._manager.document(exlet_case)
        if kept is not None and not kept.live:
            await self.case_over(kept)
        elif decision.conclusion is not None and decision.type is not ExceptionType.SELECTION:
            exlet = await self._exlets.find(decision.conclusion)
            self.run_in_background(self._begin(decision, exlet, decision.context))

    async def stop(self) -> None:
        await self._background.stop()

    # Interface X

    async def tell(self, event: ExceptionEvent) -> bool:
        known = self.decisions.open.get(event.id)
        if known is not None:
            return await self._pending(known) is not None
        if event.type is not ExceptionType.ABORT and not self.rules.has_rules(event.type, event.flow):
            return False
        return await self._decide(event) is not None

    async def tell_lasting(self, event: ExceptionEvent) -> bool:
        """An event about a condition that lasts: reported again and again, it is decided once for each rule that holds.
        Returns whether one does."""
        if not self.rules.has_rules(event.type, event.flow):
            return False
        try:
            context = await self.contexts.build(event, await self.facts(event), exlet_depth(event.case))
            conclusion = self.rules.judge(event.type, event.flow, event.task, context).conclusion
        except StoreUnavailable:
            raise
        except Exception:  # an error in one report must not end the watch over everything else
            log.exception("exception %s could not be decided; it continues without a repair", event.id)
            return False
        if conclusion is None:
            return False
        if (id := f"{event.id}/{conclusion.rules}.{conclusion.task}.{conclusion.rule}") not in self._reported:
            self._reported[id] = None
            if len(self._reported) > REPORTED_MAX:
                del self._reported[next(iter(self._reported))]
            await self._decide(replace(event, id=id))
        return True

    async def failed(self, failure: Failure) -> bool:
        """An attempt failed. If the meta-scheduler would retry it by itself, the default rules are asked only if the
        infrastructure failed, or if a retry without changes would fail in the same way; else, until the meta-scheduler
        has given up, only the flow's own rules are asked."""
        document = await self._case_of_failure(failure)
        if document is None:
            return False
        event = failure_event(failure, document.flow)
        known = self.decisions.open.get(event.id)
        if known is not None and await self._pending(known) is not None:
            return True
        return await self._decide(event, own_only=is_left_to_queue(failure), goes_on=not failure.final) is not None

    async def _case_of_failure(self, failure: Failure) -> CaseDocument | None:
        """The case of a failed job. A job that nobody waits for may outlive its case."""
        live = self._manager.live.get(failure.case)
        if live is not None:
            return live.document
        forgotten = failure.spec.submission is Submission.FORGET
        return await self._manager.document(failure.case) if forgotten else None

    async def _decide(self, event: ExceptionEvent, *, own_only: bool = False, goes_on: bool = False) -> Decision | None:
        """The decision, if something follows from it now. `goes_on`: without a decision it is retried anyway."""
        try:
            return await self._decide_by_rules(event, own_only=own_only, goes_on=goes_on)
        except StoreUnavailable:
            raise
        except Exception as error:  # what cannot be decided continues as if there were no rules
            log.exception("exception %s could not be decided; it continues without a repair", event.id)
            message = f"internal error of mendflow: nothing could be decided about {event.id}: {error!r:.300}"
            self._notices.post(message, case=event.case, item=event.item)
            return None

    async def _decide_by_rules(self, event: ExceptionEvent, *, own_only: bool, goes_on: bool) -> Decision | None:
        if self.rules.shared:
            await self.rules.refresh(event.flow)
        facts = await self.facts(event)
        context = await self.contexts.build(event, facts, exlet_depth(event.case))
        verdict = self.rules.judge(event.type, event.flow, event.task, context, own_only=own_only)
        if verdict.conclusion is None and not verdict.trials and event.type is not ExceptionType.ABORT:
            return None
        before = await self.decisions.find(event.id)
        if before is not None:
            self._demand_ours(before)
            return await self._pending(before)
        decision = self.new_decision(event, context, verdict.conclusion)
        decision.trials = verdict.trials
        if verdict.conclusion is None:
            if not goes_on and self._holding.hold(decision):
                return decision
            decision.state = "passive" if verdict.trials else "ignored"
            decision.result = "retried" if goes_on else ""
            self._record(decision, context)
            if not goes_on and (finding := unhandled_finding(decision)) is not None:
                self._hub.publish(ProblemFound(finding))
            return None
        if decision.item is not None and await self._exlets.repair_count(decision) >= REPAIRS_MAX:
            decision.result = "retried" if goes_on else ""
            await self._refuse_more_repairs(decision, context)
            return None
        return await self.apply_conclusion(decision, verdict.conclusion, context)

    def held_failures(self) -> list[UnhandledFailure]:
        return self._holding.held_failures()

    def _demand_ours(self, known: Decision) -> None:
        """An open decision is in memory at the home of its case. One that is not there was made by a server that had
        lost the case and did not know it yet: it is ours now, like everything that it left."""
        if self.rules.shared and known.state == "running" and known.id not in self.decisions.open:
            self._ledger.give_up(f"decision {known.id} was made by another server; reading it again")
            raise StoreUnavailable(self._ledger.broken)

    async def _pending(self, known: Decision) -> Decision | None:
        """The decision that the held action still waits for: this one, or the one that replaced it. None if it can
        continue."""
        found: Decision | None = known
        while found is not None and found.replaced_by and found.correction is None:
            found = await self.decisions.find(found.replaced_by)
        if found is None or found.released:
            return None
        return found if found.state in OPEN_STATES or found.correction is not None else None

    async def record_early_failure(self, event: ExceptionEvent, facts: CaseFacts) -> None:
        """A failure that nothing can be held for, because the flow is told in the same step. Rules are asked as for any
        other, and their conclusion is recorded; an exlet could mend nothing."""
        context = await self.contexts.build(event, facts, exlet_depth(event.case))
        verdict = self.rules.judge(event.type, event.flow, event.task, context)
        if await self.decisions.find(event.id) is not None:
            return
        decision = self.new_decision(event, context, None)
        conclusion = verdict.conclusion
        decision.trials = [*verdict.trials, *([replace(conclusion, passive=True)] if conclusion is not None else [])]
        decision.state, decision.note = "passive" if decision.trials else "ignored", NOTHING_TO_MEND
        self._record(decision, context)

    async def _refuse_more_repairs(self, decision: Decision, context: dict[str, Value]) -> None:
        """The item was repaired too often: what was about to happen happens, and the administrator is told once."""
        decision.state = "failed"
        decision.note = f"{decision.item} was mended {REPAIRS_MAX} times already; {decision.exlet} is not started"
        self._record(decision, context)
        if await self._exlets.is_first_warning(decision):
            message = (
                f"{decision.type.value} of {decision.case}: {decision.note}, nor is any other exlet for this item."
                f" Its rules go round in a cycle: `mendflow why {decision.case}:{decision.item}` shows them"
            )
            self._notices.post(message, case=decision.case, item=decision.item)

    async def apply_conclusion(
        self, decision: Decision, conclusion: Conclusion, context: dict[str, Value]
    ) -> Decision | None:
        """Carry out a conclusion; None if nothing can follow from it."""
        exlet = await self._exlets.find(conclusion)
        problem = self._problem(decision, conclusion, exlet)
        exlet_case, turn = await self._exlets.next_case(decision), await self._exlets.start_time(decision, conclusion)
        if decision.id in self.decisions.open:
            return self.decisions.open[decision.id]  # reported twice at the same time
        if problem or exlet is None:
            decision.state, decision.note = "failed", problem
            self._record(decision, context)
            self._notices.post(f"{decision.type.value} of {decision.case}: {problem}", case=decision.case)
            return None
        decision.exlet_case = exlet_case
        self.decisions.begin(decision)
        self._publish(decision, context)
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

    def new_decision(self, event: ExceptionEvent, context: dict[str, Value], conclusion: Conclusion | None) -> Decision:
        return Decision(
            id=event.id,
            case=event.case,
            flow=event.flow,
            type=event.type,
            at=self._clock.now(),
            state="running",
            item=event.item,
            task=event.task,
            serial=event.serial,
            engine=event.engine,
            job=event.job,
            fault=event.fault,
            signature=signature_of(event),
            exlet=conclusion.exlet if conclusion is not None else "",
            conclusion=conclusion,
            context=bounded_context(context),
        )

    def _record(self, decision: Decision, context: dict[str, Value]) -> None:
        """Record a decision without consequences."""
        decision.ended_at = decision.at
        self.decisions.record(decision)
        self._publish(decision, context)

    def _publish(self, decision: Decision, context: dict[str, Value]) -> None:
        self.past.count_decision(decision, str(context["job"]["host"]))
        words = f"{decision.type.value}: {decision.exlet or decision.state}"
        self._events.tell(decision.at, "repair", decision.case, decision.item, decision.state, words)

    # Exlets

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
            await self._finish(decision, "failed", f"exlet {decision.exlet} could not start: {error.message}")

    async def exlet_ended(self, document: CaseDocument) -> None:
        decision = self.decisions.open.get(document.decision)
        if decision is None or decision.exlet_case != document.id or decision.state != "running":
            return
        if document.status == "completed":
            await self._finish(decision, "done")
        elif reason := await self.removals.reason(decision):
            await self.removals.end(decision, reason)
        else:
            message = document.fault.message if document.fault else document.status
            note = f"exlet {decision.exlet} ({document.id}) {document.status}: {message}"
            holds = await self.held.remaining_holds(decision, document.id)
            await self._finish(decision, "failed", "; ".join((note, *holds)))

    async def _finish(self, decision: Decision, state: Any, note: str = "") -> None:
        """The repair is over: what was held continues."""
        passes_on = decision.type is ExceptionType.ABORT and decision.result not in SETTLING_RESULTS
        decision.note = note or decision.note
        await self.held.release_case(decision)
        held = passes_on and self._holding.hold_in_place_of(decision, self._clock)
        self.decisions.end(decision, state, "passed-on" if passes_on else "failed" if note else "completed")
        self.past.count_result(decision)
        if note:
            self._notices.post(f"{decision.type.value} of {decision.case}: {note}", case=decision.case)
        self._events.tell(
            decision.ended_at, "repair", decision.case, decision.item, state, f"{decision.exlet}: {decision.result}"
        )
        if not held:
            await self.held.release(decision, passes_on=passes_on)

    def job_over(self, case: CaseId, serial: int, ok: bool) -> None:
        """The outcome of a retried job was reported to its flow."""
        if self.decisions.is_retrying(EngineCaseId("", case), serial):
            self.decisions.end_retries(EngineCaseId("", case), serial, "recovered" if ok else "failed")

    async def case_over(self, document: CaseDocument) -> None:
        """A case has ended: perhaps it was an exlet, or a worklet that the rules chose."""
        self.past.count_case(document.flow, document.id, document.status)
        self._exlets.forget(document.id)
        self.decisions.end_all_retries(EngineCaseId("", document.id), "failed")
        await self.removals.case_ended(document)
        decision = self.decisions.open.get(self.decisions.by_exlet.get(document.id, ""))
        if decision is not None and decision.type is ExceptionType.SELECTION:
            if decision.state == "running":
                self.decisions.end(decision, "done" if document.status == "completed" else "failed", document.status)
        elif document.decision:
            await self.exlet_ended(document)

    async def facts(self, event: ExceptionEvent) -> CaseFacts | None:
        engine = self.engines.get(event.engine)
        return await engine.facts(event.case, event.item) if engine is not None else None

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.start(self._whole(work))

    async def _whole(self, work: Coroutine[Any, Any, None]) -> None:
        with self._ledger.atomic():
            await work
