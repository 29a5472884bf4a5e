"""What people do with exceptions and rules: look, add, try, raise, mend, reject.

Everything here ends in the same two places as what the engine tells: a version of a rule set, and a decision from which
a repair follows. A decision that takes another's place has its id with a number behind it, so that what was held for
the first is let go when the last is over."""

import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.mending import BY_HAND, Conclusion, Decision, ExceptionType, XEvent
from mendflow.core.model.problems import Conflict, Invalid, Mistake, NotFound
from mendflow.core.model.repair_views import TriggerView
from mendflow.core.model.rules import HOUSE
from mendflow.core.model.values import Value, check_value
from mendflow.core.rules import (
    Draft,
    add,
    replace_exlet,
    triggers,
    with_exlet,
)
from mendflow.services.case_book import name_of
from mendflow.services.contracts import Clock
from mendflow.services.exception_service.rule_office import RuleOffice, Wish
from mendflow.services.exception_service.service import ExceptionService
from mendflow.services.flow_manager import FlowManager
from mendflow.services.interfaces import Engine
from mendflow.services.notices import Notices
from mendflow.stores.contract import Where

__all__ = ["Administration", "Wish"]


class Administration(RuleOffice):
    def __init__(self, service: ExceptionService, manager: FlowManager, notices: Notices, clock: Clock) -> None:
        super().__init__(service.rules, service.decisions, clock)
        self._service = service
        self._manager = manager
        self._notices = notices

    # From outside

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        """What the rules of this case know by name, of the case and of an item, or of all its items."""
        live = self._manager.live.get(CaseId(case))
        if live is None:
            raise Conflict(f"case {case} is not running, so nothing can happen to it any more")
        tasks = [name_of(item)] if item else sorted(live.tally.names())
        found: dict[tuple[str, str, str], TriggerView] = {}
        for name in (live.document.flow, HOUSE):
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
        """Somebody says that something happened. What no rule knows suspends the case, as a safeguard, and waits for a
        person to make the exlet."""
        event = self._external(CaseId(case), item, trigger, data, who)
        context = await self._service.contexts.of(event, await self._service.facts(event), 0)
        verdict = self._rules.judge(event.type, event.flow, event.task, context)
        decision = self._service.new_decision(event, context, verdict.conclusion)
        decision.trials, decision.note = verdict.trials, f"raised by {who}" if who else ""
        if verdict.conclusion is not None:
            return await self._service.carry_on(decision, verdict.conclusion, context) or decision
        if trigger in {each.trigger for each in await self.triggers(case, item)}:
            decision.state = "passive" if verdict.trials else "ignored"
            self._decisions.record(decision)
            return decision
        return await self._unexpected(decision, trigger)

    async def _unexpected(self, decision: Decision, trigger: str) -> Decision:
        decision.state, decision.safeguard = "waiting", f"waiting:{decision.id}"
        self._decisions.begin(decision)
        await self._engine(decision).suspend(decision.case, None, holder=decision.safeguard, by=f"{decision.id}/guard")
        about = f"{decision.case}:{decision.item}" if decision.item else decision.case
        data = msgspec.json.encode(decision.context.get("case", {}).get("data")).decode()[:500]
        self._notices.post(
            f"unexpected: {trigger!r} was raised on {about}, and no rule knows it. The case is suspended;"
            f" `mendflow mend {decision.case}` handles it. Its data: {data}",
            case=decision.case,
            item=decision.item,
        )
        return decision

    def _external(self, case: CaseId, item: str, trigger: str, data: Value, who: str) -> XEvent:
        live = self._manager.live.get(case)
        if live is None or not live.document.live:
            raise Conflict(f"case {case} is not running, so nothing can happen to it any more")
        if item and item not in live.case.index.items:
            raise NotFound(f"case {case} has no live item {item!r}; `mendflow items {case}` lists them")
        if problem := check_value(data):
            raise Invalid(f"what was said of it cannot be kept: {problem}", field="data")
        type = ExceptionType.ITEM_EXTERNAL if item else ExceptionType.CASE_EXTERNAL
        return XEvent(
            id=f"{case}/{type.value}/{secrets.token_hex(4)}",
            type=type,
            case=case,
            flow=live.document.flow,
            item=ItemId(item) if item else None,
            task=name_of(item) if item else "",
            serial=self._serial(case, item),
            facts={"trigger": trigger, "data": {"said": data, "by": who} if data is not None else {"by": who}},
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
        """Make the exlet, and with a condition the rule, and apply them now: to what waits in the case, or to the case
        as it is."""
        waiting = await self._waiting(CaseId(case), decision)
        if waiting is not None:
            await self._demand_running(waiting)
        at_hand = waiting or await self._as_it_is(CaseId(case), item, who)
        name = rules or at_hand.flow
        try:
            if condition:
                wish = Wish(condition=condition, exlet=exlet, steps=steps, decision=at_hand.id, rules=name, note=note)
                said = await self._ruled(at_hand, wish, who)
            else:
                said = self._ordered(at_hand, exlet, steps, name, who)
        except Mistake:
            if waiting is None:
                self._decisions.end(at_hand, "ignored", "")
            raise
        return await self._apply(at_hand, said, note)

    async def apply(self, decision: str) -> Decision | None:
        """Ask the rules again, as they are now, about a decision that waits; None if they still conclude nothing."""
        found = await self._decisions.reopen(decision)
        if found.state != "waiting":
            raise Conflict(f"decision {decision} does not wait: it is {found.state}")
        await self._demand_running(found)
        verdict = self._rules.judge(found.type, found.flow, found.task, found.context)
        return await self._apply(found, verdict.conclusion, "") if verdict.conclusion is not None else None

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
        """A choice was wrong. The case stands still while the rule is corrected and the right exlet, or worklet, takes
        the place of the wrong one; then it goes on."""
        wrong = await self._decisions.reopen(decision)
        engine, holder = self._engine(wrong), f"reject:{wrong.id}"
        if wrong.conclusion is None or wrong.state == "rejected":
            raise Conflict(f"decision {decision} has nothing to reject: {wrong.state}; `mendflow mend` makes an exlet")
        if await engine.facts(wrong.case) is None:
            raise Conflict(f"case {wrong.case} is over; correct the rule with `mendflow rules add`")
        said = self._corrected(wrong, exlet, steps, condition, note, who)
        await engine.suspend(wrong.case, None, holder=holder, by=f"{wrong.id}/reject")
        try:
            right = await self._replace(wrong, said, engine, note or f"rejected by {who}")
        finally:
            await engine.resume(wrong.case, None, holder=holder, by=f"{wrong.id}/replaced")
        return right if wrong.type is not ExceptionType.SELECTION else await self._chosen_again(wrong, engine)

    def _corrected(
        self, wrong: Decision, exlet: str, steps: Flow | None, condition: str, note: str, who: str
    ) -> Conclusion:
        said = wrong.conclusion
        assert said is not None
        before, now = self._rules.newest_or_empty(said.rules), self._clock.now()
        draft = Draft(condition=condition, exlet=exlet, steps=steps, author=who, at=now, note=note)
        if condition:
            grown = add(before, wrong.type, wrong.task, wrong.context, draft)
            made, tree, rule = grown.rule_set, grown.tree, grown.rule
        else:
            tree, rule = said.task, said.rule
            made = replace_exlet(before, wrong.type, tree, rule, exlet, steps=steps, author=who, at=now)
        put = self._rules.put(made, author=who, note=note or f"rule {said.rule} corrected")
        return replace(said, version=put.version, task=tree, rule=rule, exlet=exlet, trail=())

    async def _replace(self, wrong: Decision, said: Conclusion, engine: Engine, note: str) -> Decision:
        exlet_case, running = wrong.exlet_case, wrong.state == "running"
        right = self._successor(wrong, said)
        wrong.state, wrong.replaced_by, wrong.ended_at, wrong.note = "rejected", right.id, self._clock.now(), note
        wrong.result = wrong.result or "rejected"
        self._decisions.close(wrong)
        if wrong.type is ExceptionType.SELECTION:
            assert wrong.item is not None
            await engine.restart(wrong.case, wrong.item, by=f"{wrong.id}/again")
            return wrong
        if exlet_case is not None:
            if running:
                await self._service.engines[""].cancel(exlet_case, reason=note, by=f"{wrong.id}/wrong")
            await self._undo_holds(wrong, engine, exlet_case)
        return await self._service.carry_on(right, said, right.context) or right

    async def _undo_holds(self, wrong: Decision, engine: Engine, holder: CaseId) -> None:
        """What the wrong exlet suspended goes on: cases of the flow, and items of the case."""
        by = f"{wrong.id}/undo"
        for case in {*await engine.cases_of(wrong.flow), wrong.case}:
            await engine.resume(case, None, holder=holder, by=by)
        facts = await engine.facts(wrong.case, wrong.item)
        for each in facts.items if facts is not None else ():
            if each.status == "suspended":
                await engine.resume(wrong.case, each.item, holder=holder, by=by)

    async def _chosen_again(self, wrong: Decision, engine: Engine) -> Decision:
        """The call was restarted: the wrong worklet is cancelled, and the rules are asked again, for another serial."""
        facts = await engine.facts(wrong.case, wrong.item)
        serial = next((each.serial for each in facts.items if each.item == wrong.item), 0) if facts else 0
        again = await self._decisions.reopen(wrong.id)
        again.replaced_by = f"{wrong.case}/{serial}/{ExceptionType.SELECTION.value}"
        self._decisions.record(again)
        return again

    def _successor(self, before: Decision, said: Conclusion) -> Decision:
        """A decision in the place of another."""
        base, _, number = before.id.partition("!")
        return msgspec.structs.replace(
            before,
            id=f"{base}!{int(number or 1) + 1}",
            at=self._clock.now(),
            state="running",
            exlet=said.exlet,
            conclusion=said,
            exlet_case=None,
            taken_up_at=0,
            ended_at=0,
            result="",
            note="",
            replaced_by="",
            trials=[],
        )

    async def _apply(self, at_hand: Decision, said: Conclusion, note: str) -> Decision:
        if at_hand.state != "waiting":
            successor = self._successor(at_hand, said)
            successor.safeguard = at_hand.safeguard or at_hand.exlet_case or ""
            successor.note = note
            return await self._service.carry_on(successor, said, successor.context) or successor
        at_hand.state, at_hand.exlet, at_hand.conclusion = "running", said.exlet, said
        at_hand.note, at_hand.taken_up_at = note or at_hand.note, self._clock.now()
        self._decisions.open.pop(at_hand.id, None)
        return await self._service.carry_on(at_hand, said, at_hand.context) or at_hand

    async def _ruled(self, at_hand: Decision, wish: Wish, who: str) -> Conclusion:
        added = await self.add_rule(wish, who=who)
        return Conclusion(
            rules=added.rule_set.name,
            version=added.rule_set.version,
            type=at_hand.type,
            task=added.tree,
            rule=added.rule,
            exlet=wish.exlet,
        )

    def _ordered(self, at_hand: Decision, exlet: str, steps: Flow | None, name: str, who: str) -> Conclusion:
        """No rule, only the exlet; one that is new goes into the set, so that it can be found again."""
        sets = [self._rules.newest_or_empty(each) for each in (name, HOUSE)]
        if steps is not None:
            made = with_exlet(sets[0], exlet, steps, author=who, at=self._clock.now())
            found = self._rules.put(made, author=who, note=f"exlet {exlet} made for {at_hand.case}")
        else:
            known = next((each for each in sets if exlet in each.exlets), None)
            if known is None:
                raise NotFound(f"there is no exlet {exlet!r} in the rules of {name}, nor in the house's")
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

    async def _waiting(self, case: CaseId, decision: str) -> Decision | None:
        """The decision that was named, else the oldest that waits in the case."""
        if decision:
            return await self._decisions.reopen(decision)
        waiting = [each for each in self._decisions.open.values() if each.case == case and each.state == "waiting"]
        return min(waiting, key=lambda each: each.at, default=None)

    async def _demand_running(self, decision: Decision) -> None:
        """Of a case that is over nothing can be mended; what waited in it waits no longer."""
        if await self._engine(decision).facts(decision.case) is not None:
            return
        if decision.state == "waiting":
            self._decisions.end(decision, "ignored", "")
        raise Conflict(
            f"case {decision.case} is over, so nothing of it can be mended; make a rule for later cases with"
            " `mendflow rules add`"
        )

    async def _as_it_is(self, case: CaseId, item: str, who: str) -> Decision:
        event = self._external(case, item, "", None, who)
        context = await self._service.contexts.of(event, await self._service.facts(event), 0)
        decision = self._service.new_decision(event, context, None)
        decision.state = "waiting"
        self._decisions.begin(decision)
        return decision

    # Decisions

    async def decisions(self, where: Sequence[Where] = (), *, limit: int = 100, offset: int = 0) -> list[Decision]:
        return await self._decisions.search(where, limit=limit, offset=offset)

    async def decision(self, id: str) -> Decision:
        return await self._decisions.get(id)

    def _engine(self, decision: Decision) -> Engine:
        return self._service.engine(decision)
