"""What people do with exceptions and rules: look, add, try, raise, mend, reject.

Everything here ends in the same two results as an event of an engine: a version of a rule set, and a decision from
which a repair follows. A decision that replaces another has its id with a number appended, so that what was held for
the first is released when the last is finished."""

import secrets
from collections.abc import Collection
from functools import partial
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.principals import NO_PROJECT, Sight
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import TriggerView
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.values import Value
from mendflow.core.rules import with_exlet
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import CaseFacts, Engine
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.recovery.administration_tasks import (
    answer_rejection,
    is_open_rejection,
    request_to_judge,
    request_to_replace,
)
from mendflow.services.recovery.decisions import EngineCaseId, name_of, successor
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.external_triggers import ExternalTriggers, demand_trigger, demand_words
from mendflow.services.recovery.failures import DecisionSummary
from mendflow.services.recovery.levels import Levels
from mendflow.services.recovery.rejections import RejectionHandler
from mendflow.services.recovery.rules.editor import RuleEditor, RuleRequest

__all__ = ["ManualRepairs", "RuleRequest"]

TRY_AGAIN: Final = "try-again"
BEGIN_AGAIN: Final = "begin-again"
"""Exlets of the default rules: submit the job again as it is; begin an item again that is no job."""
_SEE_TASK: Final = "mendflow worklist administration"


class ManualRepairs(RuleEditor):
    def __init__(
        self,
        service: ExceptionService,
        manager: FlowManager,
        flows: Flows,
        ledger: Ledger,
        clock: Clock,
        levels: Levels,
        external: ExternalTriggers,
    ) -> None:
        super().__init__(service.rules, service.decisions, flows, clock)
        self._rejections = RejectionHandler(service, ledger, clock)
        self._service = service
        self._manager = manager
        self._levels = levels
        self._external = external

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After these trees of cases were loaded: complete what people had requested and what was not done yet."""
        decisions = self._decisions.of_trees(roots)
        self._rejections.resume(decisions)
        for decision in decisions:
            if decision.state == "waiting" and decision.safeguard:
                self._service.run_in_background(self._external.suspend_case(decision, reissued=True))

    # From outside

    async def triggers(self, case: str, item: str = "", *, engine: str = "") -> list[TriggerView]:
        """The triggers that the rules of this case know, for the case and for an item, or for all its items."""
        facts = await self._demand_case(EngineCaseId(engine, CaseId(case)), item)
        live = self._manager.live.get(CaseId(case)) if not engine else None
        names = live.tally.names() if live is not None else {*facts.statuses, *(each.task for each in facts.items)}
        tasks = [item_name(item)] if item else sorted(names)
        project = self._service.engines[engine].project_of(CaseId(case))
        return self._external.known(facts.flow, tasks, project if project is not None else NO_PROJECT, of_case=not item)

    async def raise_exception(
        self,
        case: str,
        trigger: str,
        item: str = "",
        *,
        who: str = "",
        data: Value = None,
        scenario: str = "",
        suggestion: str = "",
        engine: str = "",
    ) -> Decision:
        """Somebody reports a trigger. If no rule knows it, the case is suspended as a safeguard, and waits for a person
        to make the exlet, who reads the scenario and what is suggested."""
        demand_trigger(trigger, data)
        demand_words(scenario=scenario, suggestion=suggestion)
        event = await self._external_event(EngineCaseId(engine, CaseId(case)), item, trigger, data, who)
        return await self._external.decide(event, who=who, scenario=scenario, suggestion=suggestion)

    def let_go_on(self, case: CaseId, *, who: str, engine: str = "") -> None:
        """A person lets a case go on that an unknown trigger had suspended: nothing has to be made for it now."""
        for decision in self._decisions.open_of_case(EngineCaseId(engine, case)):
            if decision.state == "waiting" and decision.safeguard:
                decision.taken_up_at, decision.taken_up_by = self._clock.now(), who
                decision.note = "; ".join((*([decision.note] if decision.note else []), f"{who} let the case go on"))
                self._decisions.end(decision, "ignored", "")

    async def _demand_case(self, case: EngineCaseId, item: str) -> CaseFacts:
        """What is known of a live case, and of its item; refused if there is none."""
        live = self._manager.live.get(case.case) if not case.engine else None
        engine = self._service.engines.get(case.engine)
        facts = await engine.facts(case.case, ItemId(item) if item else None) if engine is not None else None
        if facts is None or (live is not None and not live.document.live):
            raise Conflict(f"case {name_of(case)} is not running, so nothing can happen to it any more")
        known = live.case.index.items if live is not None else {each.item for each in facts.items}
        if item and item not in known:
            raise NotFound(
                f"case {name_of(case)} has no live item {item!r}; `mendflow items {name_of(case)}` lists them"
            )
        return facts

    async def _external_event(
        self, case: EngineCaseId, item: str, trigger: str, data: Value, who: str
    ) -> ExceptionEvent:
        facts = await self._demand_case(case, item)
        type = ExceptionType.ITEM_EXTERNAL if item else ExceptionType.CASE_EXTERNAL
        return ExceptionEvent(
            id=f"{name_of(case)}/{type.value}/{secrets.token_hex(4)}",
            type=type,
            case=case.case,
            flow=facts.flow,
            item=ItemId(item) if item else None,
            task=item_name(item) if item else "",
            serial=next((each.serial for each in facts.items if item and each.item == item), 0),
            engine=case.engine,
            facts={"trigger": trigger, "data": {"said": {} if data is None else data, "by": who}},
        )

    # By hand

    async def mend(
        self,
        case: str,
        *,
        exlet: str,
        steps: Flow | None = None,
        condition: str = "",
        item: str = "",
        decision: str = "",
        rules: str = "",
        note: str = "",
        who: str = "",
        engine: str = "",
        task_roles: Collection[str] | None = None,
    ) -> Decision:
        """Make the exlet, and with a condition the rule, and apply them now: to the decision that waits in the case, or
        to the case as it is. `task_roles` are the roles whose user tasks whoever orders it may end; None: any."""
        meant = EngineCaseId(engine, CaseId(case))
        waiting = await self._waiting_decision(meant, decision)
        if waiting is not None:
            await self._demand_running(waiting)
        at_hand = waiting or await self._draft_decision(meant, item, who)
        name = rules or at_hand.flow
        try:
            if condition:
                wish = RuleRequest(
                    condition=condition, exlet=exlet, steps=steps, decision=at_hand.id, rules=name, note=note
                )
                conclusion = await self._conclusion_by_rule(at_hand, wish, who)
            else:
                conclusion = await self._retry_on_conflict(
                    partial(self._conclusion_by_hand, at_hand, exlet, steps, name, who)
                )
        except RequestError:
            if waiting is None:
                self._decisions.withdraw(at_hand)
            raise
        at_hand.task_roles = _kept(task_roles)
        return await self._apply(at_hand, conclusion, note, who)

    async def apply(
        self, decision: str, *, who: str = "", task_roles: Collection[str] | None = None
    ) -> Decision | None:
        """Ask the rules again, as they are now, about a waiting decision: one without a rule, or one whose exlet waits
        in a level. None if they conclude nothing, or the same as before. What they conclude now is done for whoever
        asks, with the roles of that person."""
        found = await self._decisions.reopen(decision)
        if found.state != "waiting" and not self.is_in_level(found.exlet_case):
            raise Conflict(f"decision {decision} does not wait: it is {found.state}")
        await self._demand_running(found)
        before = (found.state, found.exlet_case)
        conclusion = await self._conclusion_now(found)
        if (found.state, found.exlet_case) != before:
            raise Conflict(f"decision {decision} was mended while the rules were asked: it is {found.state}")
        if conclusion is not None:
            found.task_roles = _kept(task_roles)
        if conclusion is None or found.state == "waiting":
            return await self._apply(found, conclusion, "", who) if conclusion is not None else None
        if found.conclusion is not None and _same(conclusion, found.conclusion):
            return None
        found.taken_up_by = who
        return await self._rejections.reject(found, conclusion, f"another rule applies, by {who}" if who else "")

    async def read_newest_rules(self, flows: Collection[str]) -> None:
        """Before they are asked about what has been decided: another server may just have changed them."""
        if self._rules.shared:
            for flow in flows:
                await self._rules.refresh(flow)

    async def is_seen(self, decision: DecisionSummary, sight: Sight) -> bool:
        """Whether the case that it is about is in sight; the case says so itself, and not the decision."""
        return sight.projects is None or sight.sees(await self._service.project_of(decision))

    async def would_change(self, decision: str) -> bool:
        """Whether the rules, as they are now, conclude something else about it than they did."""
        found = await self._decisions.get(decision)
        said = await self._conclusion_now(found)
        return said is not None and (found.conclusion is None or not _same(said, found.conclusion))

    async def _conclusion_now(self, found: Decision) -> Conclusion | None:
        about = (found.type, found.flow, found.task, found.context)
        return (await self._rules.judge(*about, project=found.project)).conclusion

    async def retry(self, decision: str, *, who: str = "", task_roles: Collection[str] | None = None) -> Decision:
        """Try again, as it is, what waits for a person."""
        found = await self._decisions.reopen(decision)
        if found.state != "waiting":
            raise Conflict(f"decision {decision} does not wait: it is {found.state}")
        await self._demand_running(found)
        exlet = TRY_AGAIN if found.job is not None else BEGIN_AGAIN
        said = await self._conclusion_by_hand(found, exlet, None, found.flow, who)
        found.task_roles = _kept(task_roles)
        return await self._apply(found, said, "", who)

    async def retry_case(
        self,
        case: CaseId,
        item: str = "",
        *,
        who: str = "",
        engine: str = "",
        task_roles: Collection[str] | None = None,
    ) -> list[Decision]:
        """Try again whatever failed in a case, or in one that it called, and waits for a person; or one item of it."""
        held = self._held(case) if not engine else self._held_of_engine(EngineCaseId(engine, case))
        waiting = [each for each in held if not item or (each.case, each.item) == (case, item)]
        return [await self.retry(each.id, who=who, task_roles=task_roles) for each in waiting]

    def held_items(self, case: CaseId) -> list[str]:
        """What failed in a case, or in one that it called, and waits for a person."""
        return [f"{each.case}:{each.item}" for each in self._held(case)]

    def _held(self, case: CaseId) -> list[Decision]:
        return [
            each
            for each in self._decisions.of_tree(root_of(case))
            if each.state == "waiting" and each.type is ExceptionType.ABORT and is_below(each.case, case)
        ]

    def _held_of_engine(self, case: EngineCaseId) -> list[Decision]:
        found = self._decisions.open_of_case(case)
        return [each for each in found if each.state == "waiting" and each.type is ExceptionType.ABORT]

    def is_in_level(self, exlet: CaseId | None) -> bool:
        """Whether this exlet waits in a level for its time."""
        return exlet is not None and self._levels.waits(f"{exlet}/")

    async def reject(
        self,
        decision: str,
        *,
        exlet: str,
        steps: Flow | None = None,
        condition: str = "",
        note: str = "",
        who: str = "",
        task_roles: Collection[str] | None = None,
    ) -> Decision:
        """Reject a wrong choice. The case is suspended while the right exlet, or worklet, replaces the wrong one; then
        it continues. With a condition a rule of the flow is made of it, if no cornerstone gets another conclusion;
        without one, rules stay as they are."""
        wrong = await self._rejectable(decision)
        assert wrong.conclusion is not None
        if await self._engine(wrong).facts(wrong.case) is None:
            raise Conflict(f"case {wrong.case} is over; correct the rule with `mendflow rules add`")
        await self._demand_worklet(self._rules.newest_or_empty(wrong.conclusion.rules), wrong.type, exlet, steps)
        if condition:
            wish = RuleRequest(
                condition=condition, exlet=exlet, steps=steps, decision=decision, rules=wrong.flow, note=note
            )
            conclusion = await self._conclusion_by_rule(wrong, wish, who)
        else:
            conclusion = await self._retry_on_conflict(partial(self._choice_by_hand, wrong, exlet, steps, who))
        wrong.request = wrong.request or request_to_replace(exlet, who=who, note=note, now=self._clock.now())
        answer_rejection(wrong, who=who, now=self._clock.now())
        wrong.task_roles = _kept(task_roles)
        return await self._rejections.reject(wrong, conclusion, note or f"rejected by {who}")

    async def _rejectable(self, decision: str) -> Decision:
        """The decision, if something was chosen that can be wrong."""
        found = await self._decisions.reopen(decision)
        if found.state == "rejected":
            raise Conflict(
                f"decision {decision} has nothing to reject: it is rejected already; {found.replaced_by} took its place"
            )
        if found.conclusion is None:
            raise Conflict(f"decision {decision} has nothing to reject: {found.state}; `mendflow mend` makes an exlet")
        return found

    async def ask_to_judge(self, decision: str, *, note: str, who: str) -> Decision:
        """Somebody says that a choice was wrong, and does not know the right one: an author is asked. What was chosen
        goes on, or has ended; its case may be over."""
        if not note.strip():
            raise InvalidRequest(
                "say what was wrong with the choice, or which exlet is right: the author reads it", field="note"
            )
        demand_words(note=note)
        wrong = await self._rejectable(decision)
        if is_open_rejection(wrong) and wrong.request is not None:
            raise Conflict(f"{wrong.request.asked_by} has asked for that already; see it with {_SEE_TASK} {wrong.id}")
        wrong.request = request_to_judge(wrong, who=who, note=note, now=self._clock.now())
        self._decisions.amend(wrong)
        return wrong

    async def withdraw_rejection(self, decision: str, *, note: str, who: str) -> Decision:
        """The choice was right after all, or has been answered otherwise."""
        found = await self._decisions.reopen(decision)
        if not is_open_rejection(found):
            raise Conflict(f"nobody waits for an answer about decision {decision}; {_SEE_TASK} lists what is asked")
        if not note.strip():
            raise InvalidRequest("say why the choice stands: who has asked reads it", field="note")
        demand_words(note=note)
        answer_rejection(found, who=who, now=self._clock.now(), note=f"{who}: {note}")
        self._decisions.amend(found)
        return found

    async def _choice_by_hand(self, wrong: Decision, exlet: str, steps: Flow | None, who: str) -> Conclusion:
        """What replaces this one choice. No rule changes, so that every other case keeps what it has."""
        if wrong.type is not ExceptionType.SELECTION or steps is not None:
            return await self._conclusion_by_hand(wrong, exlet, steps, wrong.flow, who)
        assert wrong.conclusion is not None
        return replace(wrong.conclusion, rule=BY_HAND, exlet=exlet, trail=(), others=0, ordered_by=who)

    async def _apply(self, at_hand: Decision, conclusion: Conclusion, note: str, who: str) -> Decision:
        if at_hand.state != "waiting":
            after = successor(at_hand, conclusion, self._clock)
            after.safeguard, after.note = at_hand.safeguard or at_hand.exlet_case or "", note
            return await self._service.apply_conclusion(after, conclusion, after.context) or after
        at_hand.state, at_hand.exlet, at_hand.conclusion = "running", conclusion.exlet, conclusion
        at_hand.note = note or at_hand.note
        at_hand.taken_up_at, at_hand.taken_up_by = self._clock.now(), who
        self._decisions.open.pop(at_hand.id, None)
        return await self._service.apply_conclusion(at_hand, conclusion, at_hand.context) or at_hand

    async def _conclusion_by_rule(self, at_hand: Decision, wish: RuleRequest, who: str) -> Conclusion:
        self._rules.demand_in(wish.rules, at_hand.project)
        added = await self.add_rule(wish, who=who)
        return Conclusion(
            rules=added.rule_set.name,
            version=added.rule_set.version,
            type=at_hand.type,
            task=added.tree,
            rule=added.rule,
            exlet=wish.exlet,
        )

    async def _conclusion_by_hand(
        self, at_hand: Decision, exlet: str, steps: Flow | None, name: str, who: str
    ) -> Conclusion:
        """A conclusion without a rule, only the exlet; a new exlet is added to the set, so that it can be found
        again."""
        sets = [self._rules.newest_for(each, at_hand.project) for each in (name, DEFAULT_RULES)]
        if steps is not None:
            self._rules.demand_in(name, at_hand.project)
        if steps is not None and sets[0].exlets.get(exlet) == steps:
            found = sets[0]  # it was made before: nothing changes
        elif steps is not None:
            made = with_exlet(sets[0], exlet, steps, author=who, at=self._clock.now())
            note = f"exlet {exlet} made for {at_hand.case}"
            found = await self._rules.put(made, author=who, note=note, expected=sets[0].version)
        else:
            known = next((each for each in sets if exlet in each.exlets), None)
            if known is None:
                raise NotFound(f"there is no exlet {exlet!r} in the rules of {name}, nor in the default rules")
            found = known
        return Conclusion(
            rules=found.name,
            version=found.version,
            type=at_hand.type,
            task=at_hand.task,
            rule=BY_HAND,
            exlet=exlet,
            ordered_by=who,
        )

    async def _waiting_decision(self, case: EngineCaseId, decision: str) -> Decision | None:
        """The named decision, else the oldest that waits in the case."""
        if decision:
            return await self._decisions.reopen(decision)
        waiting = [each for each in self._decisions.open_of_case(case) if each.state == "waiting"]
        return min(waiting, key=lambda each: each.at, default=None)

    async def _demand_running(self, decision: Decision) -> None:
        """Nothing can be mended in a case that is over; its waiting decisions are closed."""
        if await self._engine(decision).facts(decision.case) is not None:
            return
        if decision.state == "waiting":
            self._decisions.end(decision, "ignored", "")
        raise Conflict(
            f"case {decision.case} is over, so nothing of it can be mended; make a rule for later cases with"
            " `mendflow rules add`"
        )

    async def _draft_decision(self, case: EngineCaseId, item: str, who: str) -> Decision:
        event = await self._external_event(case, item, "", None, who)
        project = await self._service.project_of(event)
        context = await self._service.context(event, 0, project=project)
        decision = self._service.new_decision(event, context, None, project=project)
        decision.state = "waiting"
        self._decisions.draft(decision)
        return decision

    def _engine(self, decision: Decision) -> Engine:
        return self._service.held.engine(decision)


def is_below(case: CaseId, above: CaseId) -> bool:
    """Whether it is this case, or one that it called."""
    return case == above or case.startswith(f"{above}.")


def _kept(task_roles: Collection[str] | None) -> list[str] | None:
    """As a decision keeps them."""
    return sorted(task_roles) if task_roles is not None else None


def _same(one: Conclusion, other: Conclusion) -> bool:
    return (one.rules, one.task, one.rule, one.exlet) == (other.rules, other.task, other.rule, other.exlet)
