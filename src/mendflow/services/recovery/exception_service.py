"""The exception service: it gets events about points in the life of cases, asks the rules, and starts the repair.

The engine never waits for a repair; it is told to hold what it was about to do, and later to continue. A decision is
written before anything follows from it, under the event's own id: so an event that is reported again, after a crash or
over a bad connection, is decided once, and a repair is started once. When the repair is over, what was held continues:
an abort that was not mended is passed on to the flow, everything else simply happens."""

import logging
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine.caught_faults import Course, course_after
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Submission
from mendflow.core.model.principals import NO_PROJECT
from mendflow.core.model.repair import REPAIRS_MAX, Conclusion, Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.rules.evaluation import RuleVerdict
from mendflow.services.base.alerts import AlertDocument, OpenFailure, ProblemFound
from mendflow.services.base.contracts import Clock, Failure, MendableJobs, UnhandledFailure
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.contexts import ContextBuilder
from mendflow.services.recovery.decisions import (
    OPEN_STATES,
    DecisionStore,
    EngineCaseId,
    case_name,
    engine_case_of,
    name_of,
    why_unavailable,
)
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failed_attempts import failure_event, is_left_to_queue
from mendflow.services.recovery.failures import DecisionSummary, unhandled_finding
from mendflow.services.recovery.new_decisions import decision_about
from mendflow.services.recovery.open_failures import open_failures
from mendflow.services.recovery.repair_runner import RepairRunner
from mendflow.services.recovery.rule_errors import RuleErrorCounts, error_text
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.recovery.statistics import ExceptionHistory
from mendflow.services.recovery.tolerated_turns import ToleratedTurn, ToleratedTurns
from mendflow.services.recovery.worklet_choices import NO_CHOICE
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.exceptions")

NOTHING_TO_MEND: Final = (
    "it failed before anything was ordered: there was nothing to mend, and the flow was told at once"
)

REPORTED_MAX: Final = 50_000

ALWAYS_DECIDED: Final = frozenset({ExceptionType.ABORT, ExceptionType.SELECTION})
"""Events of these types have a decision, whether there are rules for them or not."""


class ExceptionService(RepairRunner):
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
        super().__init__(
            store=store,
            ledger=ledger,
            clock=clock,
            events=events,
            notices=notices,
            manager=manager,
            flows=flows,
            rules=rules,
            decisions=decisions,
            past=past,
            jobs=jobs,
            hub=hub,
            holds_unhandled=holds_unhandled,
        )
        self.contexts = contexts
        self._reported: dict[str, None] = {}
        self._errors = RuleErrorCounts(hub)
        self._tolerated = ToleratedTurns(hub)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Load the open decisions of these trees of cases, before the cases are loaded."""
        await self.decisions.load(roots)

    # Interface X

    async def tell(self, event: ExceptionEvent) -> bool:
        known = self.decisions.open.get(event.id)
        if known is not None:
            return await self._pending(known) is not None
        if event.type not in ALWAYS_DECIDED and not self.rules.has_rules(event.type, event.flow):
            return False
        return await self._decide(event) is not None

    async def tell_lasting(self, event: ExceptionEvent) -> bool:
        """An event about a condition that lasts: reported again and again, it is decided once for each rule that holds.
        Returns whether one does."""
        if not self.rules.has_rules(event.type, event.flow):
            return False
        try:
            project = await self.project_of(event)
            context = await self.context(event, exlet_depth(event.case), project=project)
            verdict = await self.judge(event, context, project=project)
        except StoreUnavailable:
            raise
        except Exception:  # an error in one report must not end the watch over everything else
            log.exception(
                "exception %s could not be decided; it continues without a repair", event.id, extra={"case": event.case}
            )
            return False
        conclusion = verdict.conclusion
        if conclusion is None and not verdict.errors:
            return False
        subject = conclusion or verdict.errors[0]
        if (id := f"{event.id}/{subject.rules}.{subject.task}.{subject.rule}") not in self._reported:
            self._reported[id] = None
            if len(self._reported) > REPORTED_MAX:
                del self._reported[next(iter(self._reported))]
            await self._decide(replace(event, id=id))
        return conclusion is not None

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
        left = is_left_to_queue(failure)
        decision = await self._decide(event, own_only=left, goes_on=not failure.final, project=failure.spec.project)
        return decision is not None

    async def _case_of_failure(self, failure: Failure) -> CaseDocument | None:
        """The case of a failed job. A job that nobody waits for may outlive its case."""
        live = self._manager.live.get(failure.case)
        if live is not None:
            return live.document
        forgotten = failure.spec.submission is Submission.FORGET
        return await self._manager.document(failure.case) if forgotten else None

    async def _decide(
        self, event: ExceptionEvent, *, own_only: bool = False, goes_on: bool = False, project: str = ""
    ) -> Decision | None:
        """The decision, if something follows from it now. `goes_on`: without a decision it is retried anyway. `project`
        is said of a job, which may have outlived its case."""
        try:
            return await self._decide_by_rules(
                event, own_only=own_only, goes_on=goes_on, project=project or await self.project_of(event)
            )
        except StoreUnavailable:
            raise
        except Exception as error:  # what cannot be decided continues as if there were no rules
            log.exception(
                "exception %s could not be decided; it continues without a repair", event.id, extra={"case": event.case}
            )
            message = f"internal error of mendflow: nothing could be decided about {event.id}: {error!r:.300}"
            self._notices.post(message, case=name_of(EngineCaseId(event.engine, event.case)), item=event.item)
            return None

    async def _decide_by_rules(
        self, event: ExceptionEvent, *, own_only: bool, goes_on: bool, project: str
    ) -> Decision | None:
        if self.rules.shared:
            await self.rules.refresh(event.flow)
        context = await self.context(event, exlet_depth(event.case), project=project)
        verdict = await self.judge(event, context, own_only=own_only, project=project)
        if event.type not in ALWAYS_DECIDED and not any(verdict):
            return None
        before = await self.decisions.find(event.id)
        if before is not None:
            self._demand_ours(before)
            return await self._pending(before)
        decision = self.new_decision(event, context, verdict.conclusion, project=project)
        if event.type is ExceptionType.ABORT and not goes_on:
            self.decisions.end_retries(engine_case_of(decision), decision.serial, "failed", decision.at)
        self.note_verdict(decision, verdict)
        decision.note = "; ".join(each for each in (why_unavailable(event), decision.note) if each)
        if verdict.conclusion is None:
            tolerated = None
            if not goes_on:
                decision.tried = await self._exlets.tried(decision)
                tolerated = self._note_course(decision, event, context)  # others may have failed meanwhile
            if not goes_on and self._holding.hold(decision):
                return decision
            if decision.type is ExceptionType.SELECTION:
                return self.choices.wait(decision, NO_CHOICE.format(item=event.item, flow=event.flow))
            decision.state = "passive" if verdict.trials else "ignored"
            decision.result = "retried" if goes_on else ""
            self.record(decision, context)
            if not goes_on:
                self._tell_unhandled(decision, tolerated)
            return None
        if decision.item is not None and await self._exlets.repair_count(decision) >= REPAIRS_MAX:
            decision.result = "retried" if goes_on else ""
            await self._refuse_more_repairs(decision, context)
            return None
        return await self.apply_conclusion(decision, verdict.conclusion, context)

    def _tell_unhandled(self, decision: Decision, tolerated: ToleratedTurn | None) -> None:
        """Raise an alert about a failure that goes to the flow. What a loop lets fail is found under its case."""
        if tolerated is not None:
            self._tolerated.add(tolerated)
        elif (finding := unhandled_finding(decision)) is not None:
            self._hub.publish(ProblemFound(finding))

    def note_verdict(self, decision: Decision, verdict: RuleVerdict) -> None:
        """Note what rules on trial concluded, and which rules erred."""
        decision.trials, decision.errors = verdict.trials, list(verdict.errors)
        decision.note = error_text(verdict.errors)
        self._errors.add(verdict.errors)

    def held_failures(self) -> list[UnhandledFailure]:
        return self._holding.held_failures()

    async def open_failures(self, alerts: Sequence[AlertDocument]) -> dict[str, OpenFailure]:
        return await open_failures(self._store, alerts)

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

    async def record_early_failure(self, event: ExceptionEvent, facts: CaseFacts, *, project: str) -> None:
        """A failure that nothing can be held for, because the flow is told in the same step. Rules are asked as for any
        other, and their conclusion is recorded; an exlet could mend nothing. Its case may be over by now."""
        context = await self.contexts.build(event, facts, exlet_depth(event.case), project=project)
        verdict = await self.judge(event, context, project=project)
        if await self.decisions.find(event.id) is not None:
            return
        decision = self.new_decision(event, context, None, project=project)
        conclusion = verdict.conclusion
        decision.trials = [*verdict.trials, *([replace(conclusion, passive=True)] if conclusion is not None else [])]
        decision.state, decision.note = "passive" if decision.trials else "ignored", NOTHING_TO_MEND
        self.record(decision, context)

    async def _refuse_more_repairs(self, decision: Decision, context: dict[str, Value]) -> None:
        """The item was repaired too often: what was about to happen happens, and the administrator is told once."""
        decision.state = "failed"
        decision.note = f"{decision.item} was mended {REPAIRS_MAX} times already; {decision.exlet} is not started"
        self.record(decision, context)
        if await self._exlets.is_first_warning(decision):
            name = case_name(decision)
            message = (
                f"{decision.type.value} of {name}: {decision.note}, nor is any other exlet for this item."
                f" Its rules go round in a cycle: `mendflow why {name}:{decision.item}` shows them"
            )
            self._notices.post(message, case=name, item=decision.item)

    async def context(self, event: ExceptionEvent, depth: int, *, project: str) -> dict[str, Value]:
        facts = await self.facts(event)
        return await self.contexts.build(event, facts, depth, project=project)

    def _course_after(self, event: ExceptionEvent, context: dict[str, Value]) -> tuple[Course, ToleratedTurn | None]:
        """What the flow does about the fault, or the flow that called it, and what a loop lets fail by that."""
        if event.fault is None or event.item is None:
            return "passes", None
        if event.engine:
            item = context.get("item")
            return ("goes-on" if isinstance(item, dict) and item.get("caught") is True else "passes"), None
        case, failed = event.case, event.item
        while (live := self._manager.live.get(case)) is not None:
            course, let_fail = course_after(live.case, failed, event.fault.name, self._tolerated.of(live))
            parent, call = live.document.parent, live.document.parent_item
            if course != "passes" or parent is None or call is None:
                return course, (ToleratedTurn(case, let_fail) if let_fail is not None else None)
            case, failed = parent, call
        return "passes", None

    def _note_course(
        self, decision: Decision, event: ExceptionEvent, context: dict[str, Value]
    ) -> ToleratedTurn | None:
        course, tolerated = self._course_after(event, context)
        decision.caught, decision.tolerated = course == "goes-on", course == "tolerated"
        return tolerated

    def new_decision(
        self, event: ExceptionEvent, context: dict[str, Value], conclusion: Conclusion | None, *, project: str
    ) -> Decision:
        decision = decision_about(event, context, conclusion, self._clock.now(), project)
        self._note_course(decision, event, context)
        return decision

    async def judge(
        self, event: ExceptionEvent, context: dict[str, Value], *, own_only: bool = False, project: str
    ) -> RuleVerdict:
        """What the rules conclude about an event. They may make it wait."""
        return await self.rules.judge(event.type, event.flow, event.task, context, project=project, own_only=own_only)

    async def project_of(self, subject: ExceptionEvent | DecisionSummary) -> str:
        """The project of the case that an event, or a decision, is about, whether it is live or over. Of a case that
        nobody knows it is that of nobody."""
        engine = self.engines.get(subject.engine)
        project = engine.project_of(subject.case) if engine is not None else None
        if project is None and not subject.engine:
            document = await self._manager.document(subject.case)
            project = document.project if document is not None else None
        return project if project is not None else NO_PROJECT

    def job_over(self, case: CaseId, serial: int, ok: bool) -> None:
        """The outcome of a retried job was reported to its flow."""
        if self.decisions.is_retrying(EngineCaseId("", case), serial):
            self.decisions.end_retries(EngineCaseId("", case), serial, "recovered" if ok else "failed")

    async def facts(self, event: ExceptionEvent) -> CaseFacts | None:
        engine = self.engines.get(event.engine)
        return await engine.facts(event.case, event.item) if engine is not None else None
