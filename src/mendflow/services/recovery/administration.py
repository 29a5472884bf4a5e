"""What people do with exceptions and rules: look, add, try, raise, mend, reject.

Everything here ends in the same two results as an event of an engine: a version of a rule set, and a decision from
which a repair follows. A decision that replaces another has its id with a number appended, so that what was held for
the first is released when the last is finished."""

import secrets
from collections.abc import Collection
from functools import partial
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import TriggerView
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.values import Value, check_value
from mendflow.core.rules import (
    Draft,
    add_rule,
    replace_exlet,
    triggers,
    with_exlet,
)
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import Engine
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.recovery.decisions import EngineCaseId, successor
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.levels import Levels
from mendflow.services.recovery.rejections import RejectionHandler
from mendflow.services.recovery.rules.editor import RuleEditor, RuleRequest

__all__ = ["ManualRepairs", "RuleRequest"]

TRY_AGAIN: Final = "try-again"
BEGIN_AGAIN: Final = "begin-again"
"""Exlets of the default rules: submit the job again as it is; begin an item again that is no job."""

TRIGGER_CHARS_MAX: Final = 200
TRIGGER_DATA_BYTES_MAX: Final = 65_536
NOTICES_CHECKED: Final = 200
"""How many of the latest notices are searched for one that was posted before a crash."""


class ManualRepairs(RuleEditor):
    def __init__(
        self,
        service: ExceptionService,
        manager: FlowManager,
        flows: Flows,
        ledger: Ledger,
        notices: Notices,
        clock: Clock,
        levels: Levels,
    ) -> None:
        super().__init__(service.rules, service.decisions, flows, clock)
        self._rejections = RejectionHandler(service, ledger, clock)
        self._service = service
        self._manager = manager
        self._notices = notices
        self._levels = levels

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After these trees of cases were loaded: complete what people had requested and what was not done yet."""
        decisions = self._decisions.of_trees(roots)
        self._rejections.resume(decisions)
        for decision in decisions:
            if decision.state == "waiting" and decision.safeguard:
                self._service.run_in_background(self._suspend_case(decision, reissued=True))

    # From outside

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        """The triggers that the rules of this case know, for the case and for an item, or for all its items."""
        live = self._manager.live.get(CaseId(case))
        if live is None:
            raise Conflict(f"case {case} is not running, so nothing can happen to it any more")
        if item:
            _demand_live(live, item)
        tasks = [item_name(item)] if item else sorted(live.tally.names())
        found: dict[tuple[str, str, str], TriggerView] = {}
        for name in (live.document.flow, DEFAULT_RULES):
            rules = self._rules.newest_or_empty(name)
            levels: list[tuple[Literal["case", "item"], str, ExceptionType]] = []
            if not item:
                levels.append(("case", "", ExceptionType.CASE_EXTERNAL))
            levels += [("item", task, ExceptionType.ITEM_EXTERNAL) for task in tasks]
            for level, task, type in levels:
                for each in triggers(rules, type, task):
                    view = TriggerView(trigger=each.name, level=level, task=task, rules=name)
                    found.setdefault((level, task, each.name), view)
        return list(found.values())

    async def raise_exception(
        self, case: str, trigger: str, item: str = "", *, who: str = "", data: Value = None
    ) -> Decision:
        """Somebody reports a trigger. If no rule knows it, the case is suspended as a safeguard, and waits for a person
        to make the exlet."""
        if not trigger or len(trigger) > TRIGGER_CHARS_MAX:
            raise InvalidRequest(
                f"say what happened in a few words: {len(trigger)} characters, of 1 to {TRIGGER_CHARS_MAX}",
                field="trigger",
            )
        event = self._external_event(CaseId(case), item, trigger, data, who)
        context = await self._service.contexts.build(event, await self._service.facts(event), 0)
        verdict = self._rules.judge(event.type, event.flow, event.task, context)
        decision = self._service.new_decision(event, context, verdict.conclusion)
        decision.trials, decision.note = verdict.trials, f"raised by {who}" if who else ""
        if verdict.conclusion is not None:
            return await self._service.apply_conclusion(decision, verdict.conclusion, context) or decision
        if trigger in {each.trigger for each in await self.triggers(case, item)}:
            decision.state = "passive" if verdict.trials else "ignored"
            self._decisions.record(decision)
            return decision
        decision.state, decision.safeguard = "waiting", f"waiting:{decision.id}"
        self._decisions.begin(decision)
        await self._suspend_case(decision)
        return decision

    async def _suspend_case(self, decision: Decision, *, reissued: bool = False) -> None:
        """Suspend the case of an unexpected exception and tell the administrator, once."""
        if decision.state != "waiting":
            return
        await self._engine(decision).suspend(decision.case, None, holder=decision.safeguard, by=f"{decision.id}/guard")
        about = f"{decision.case}:{decision.item}" if decision.item else decision.case
        data = msgspec.json.encode(decision.context.get("case", {}).get("data")).decode()[:500]
        message = (
            f"unexpected: {decision.context.get('trigger')!r:.{TRIGGER_CHARS_MAX}} was raised on {about}, and no rule"
            f" knows it. The case is suspended; `mendflow mend {decision.case}` handles it. Its data: {data}"
        )
        if reissued and any(message == notice.message for notice in await self._notices.latest(NOTICES_CHECKED)):
            return
        self._notices.post(message, case=decision.case, item=decision.item)

    def _external_event(self, case: CaseId, item: str, trigger: str, data: Value, who: str) -> ExceptionEvent:
        live = self._manager.live.get(case)
        if live is None or not live.document.live:
            raise Conflict(f"case {case} is not running, so nothing can happen to it any more")
        if item:
            _demand_live(live, item)
        if problem := check_value(data):
            raise InvalidRequest(f"what was said of it cannot be kept: {problem}", field="data")
        if (size := len(msgspec.json.encode(data))) > TRIGGER_DATA_BYTES_MAX:
            raise InvalidRequest(
                f"the data has {size} bytes, and at most {TRIGGER_DATA_BYTES_MAX} are taken; name where the rest is",
                field="data",
            )
        type = ExceptionType.ITEM_EXTERNAL if item else ExceptionType.CASE_EXTERNAL
        return ExceptionEvent(
            id=f"{case}/{type.value}/{secrets.token_hex(4)}",
            type=type,
            case=case,
            flow=live.document.flow,
            item=ItemId(item) if item else None,
            task=item_name(item) if item else "",
            serial=self._serial(case, item),
            facts={"trigger": trigger, "data": {"said": {} if data is None else data, "by": who}},
        )

    def _serial(self, case: CaseId, item: str) -> int:
        live = self._manager.live[case]
        found = live.case.instances.get(live.case.index.items.get(item, 0))
        return getattr(found, "serial", 0)

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
    ) -> Decision:
        """Make the exlet, and with a condition the rule, and apply them now: to the decision that waits in the case, or
        to the case as it is."""
        waiting = await self._waiting_decision(CaseId(case), decision)
        if waiting is not None:
            await self._demand_running(waiting)
        at_hand = waiting or await self._draft_decision(CaseId(case), item, who)
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
        return await self._apply(at_hand, conclusion, note)

    async def apply(self, decision: str, *, who: str = "") -> Decision | None:
        """Ask the rules again, as they are now, about a waiting decision: one without a rule, or one whose exlet waits
        in a level. None if they conclude nothing, or the same as before."""
        found = await self._decisions.reopen(decision)
        if found.state != "waiting" and not self.is_in_level(found.exlet_case):
            raise Conflict(f"decision {decision} does not wait: it is {found.state}")
        await self._demand_running(found)
        conclusion = self._rules.judge(found.type, found.flow, found.task, found.context).conclusion
        if conclusion is None or found.state == "waiting":
            return await self._apply(found, conclusion, "") if conclusion is not None else None
        if found.conclusion is not None and _same(conclusion, found.conclusion):
            return None
        return await self._rejections.reject(found, conclusion, f"another rule applies, by {who}" if who else "")

    async def would_change(self, decision: str) -> bool:
        """Whether the rules, as they are now, conclude something else about it than they did."""
        found = await self._decisions.get(decision)
        said = self._rules.judge(found.type, found.flow, found.task, found.context).conclusion
        return said is not None and (found.conclusion is None or not _same(said, found.conclusion))

    async def retry(self, decision: str, *, who: str = "") -> Decision:
        """Try again, as it is, what waits for a person."""
        found = await self._decisions.reopen(decision)
        if found.state != "waiting":
            raise Conflict(f"decision {decision} does not wait: it is {found.state}")
        await self._demand_running(found)
        exlet = TRY_AGAIN if found.job is not None else BEGIN_AGAIN
        said = await self._conclusion_by_hand(found, exlet, None, found.flow, who)
        return await self._apply(found, said, "")

    async def retry_case(self, case: CaseId, item: str = "", *, who: str = "") -> list[Decision]:
        """Try again whatever failed in a case, or in one that it called, and waits for a person; or one item of it."""
        waiting = [each for each in self._held(case) if not item or (each.case, each.item) == (case, item)]
        return [await self.retry(each.id, who=who) for each in waiting]

    def held_items(self, case: CaseId) -> list[str]:
        """What failed in a case, or in one that it called, and waits for a person."""
        return [f"{each.case}:{each.item}" for each in self._held(case)]

    def _held(self, case: CaseId) -> list[Decision]:
        return [
            each
            for each in self._decisions.of_tree(root_of(case))
            if each.state == "waiting" and each.type is ExceptionType.ABORT and is_below(each.case, case)
        ]

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
    ) -> Decision:
        """Reject a wrong choice. The case is suspended while the rule is corrected and the right exlet, or worklet,
        replaces the wrong one; then it continues."""
        wrong = await self._decisions.reopen(decision)
        if wrong.state == "rejected":
            raise Conflict(
                f"decision {decision} has nothing to reject: it is rejected already; {wrong.replaced_by} took its place"
            )
        if wrong.conclusion is None:
            raise Conflict(f"decision {decision} has nothing to reject: {wrong.state}; `mendflow mend` makes an exlet")
        if await self._engine(wrong).facts(wrong.case) is None:
            raise Conflict(f"case {wrong.case} is over; correct the rule with `mendflow rules add`")
        conclusion = await self._retry_on_conflict(
            lambda: self._correct_rule(wrong, exlet, steps, condition, note, who)
        )
        return await self._rejections.reject(wrong, conclusion, note or f"rejected by {who}")

    async def _correct_rule(
        self, wrong: Decision, exlet: str, steps: Flow | None, condition: str, note: str, who: str
    ) -> Conclusion:
        conclusion = wrong.conclusion
        assert conclusion is not None
        before, now = self._rules.newest_or_empty(conclusion.rules), self._clock.now()
        if (known := self._existing_rule(before, wrong, condition, exlet, steps)) is not None:
            return replace(conclusion, version=before.version, task=known.tree, rule=known.rule, exlet=exlet, trail=())
        await self._demand_worklet(before, wrong.type, exlet, steps)
        draft = Draft(condition=condition, exlet=exlet, steps=steps, author=who, at=now, note=note)
        if condition:
            grown = add_rule(before, wrong.type, wrong.task, wrong.context, draft)
            made, tree, rule = grown.rule_set, grown.tree, grown.rule
        else:
            tree, rule = conclusion.task, conclusion.rule
            made = replace_exlet(before, wrong.type, tree, rule, exlet, steps=steps, author=who, at=now)
        note = note or f"rule {conclusion.rule} corrected"
        put = await self._rules.put(made, author=who, note=note, expected=before.version)
        return replace(conclusion, version=put.version, task=tree, rule=rule, exlet=exlet, trail=())

    async def _apply(self, at_hand: Decision, conclusion: Conclusion, note: str) -> Decision:
        if at_hand.state != "waiting":
            after = successor(at_hand, conclusion, self._clock)
            after.safeguard, after.note = at_hand.safeguard or at_hand.exlet_case or "", note
            return await self._service.apply_conclusion(after, conclusion, after.context) or after
        at_hand.state, at_hand.exlet, at_hand.conclusion = "running", conclusion.exlet, conclusion
        at_hand.note, at_hand.taken_up_at = note or at_hand.note, self._clock.now()
        self._decisions.open.pop(at_hand.id, None)
        return await self._service.apply_conclusion(at_hand, conclusion, at_hand.context) or at_hand

    async def _conclusion_by_rule(self, at_hand: Decision, wish: RuleRequest, who: str) -> Conclusion:
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
        sets = [self._rules.newest_or_empty(each) for each in (name, DEFAULT_RULES)]
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

    async def _waiting_decision(self, case: CaseId, decision: str) -> Decision | None:
        """The named decision, else the oldest that waits in the case."""
        if decision:
            return await self._decisions.reopen(decision)
        waiting = [each for each in self._decisions.open_of_case(EngineCaseId("", case)) if each.state == "waiting"]
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

    async def _draft_decision(self, case: CaseId, item: str, who: str) -> Decision:
        event = self._external_event(case, item, "", None, who)
        context = await self._service.contexts.build(event, await self._service.facts(event), 0)
        decision = self._service.new_decision(event, context, None)
        decision.state = "waiting"
        self._decisions.draft(decision)
        return decision

    def _engine(self, decision: Decision) -> Engine:
        return self._service.held.engine(decision)


def _demand_live(live: LiveCase, item: str) -> None:
    if item not in live.case.index.items:
        raise NotFound(f"case {live.id} has no live item {item!r}; `mendflow items {live.id}` lists them")


def is_below(case: CaseId, above: CaseId) -> bool:
    """Whether it is this case, or one that it called."""
    return case == above or case.startswith(f"{above}.")


def _same(one: Conclusion, other: Conclusion) -> bool:
    return (one.rules, one.task, one.rule, one.exlet) == (other.rules, other.task, other.rule, other.exlet)
