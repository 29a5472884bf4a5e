"""Editing rules: read them, add one for a given decision, try one on the past, restore a version."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.repair import CASE_LEVEL, Decision, ExceptionType
from mendflow.core.model.repair_views import RuleChange, RuleSelector
from mendflow.core.model.rule_views import RuleRevision, RuleTasksView, TaskMapping
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules import (
    Candidate,
    Difference,
    Draft,
    InsertionPoint,
    RuleEdit,
    RuleLocation,
    TrialResult,
    add_rule,
    candidates,
    differences,
    edit_rule,
    find_passive_rule,
    locate_rule,
    neighbour_cornerstone,
    place,
    promote,
    retire,
    try_rule,
)
from mendflow.lazy import LazyModule
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.loop_yielder import done_in_pieces
from mendflow.services.cases.flows import Flows
from mendflow.services.recovery.administration_tasks import answer_rejection, is_open_rejection
from mendflow.services.recovery.decisions import OPEN_STATES, DecisionStore
from mendflow.services.recovery.rules.store import RuleStore, StaleVersion
from mendflow.stores.contract import FieldCondition

if TYPE_CHECKING:
    from mendflow.services.recovery.rules import task_mapping
else:
    task_mapping = LazyModule("mendflow.services.recovery.rules.task_mapping")

TRIAL_DECISIONS_MAX: Final = 10_000


T = TypeVar("T")


class RuleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that somebody wants to add. The `decision` gives flow, project, type and task; without one, they are given
    here. `steps` is a new exlet, named `exlet`."""

    condition: str
    exlet: str
    steps: Flow | None = None
    decision: str = ""
    rules: str = ""
    project: str = ""
    type: ExceptionType | None = None
    task: str = ""
    passive: bool = False
    note: str = ""
    expected: int | None = None


class AddedRule(NamedTuple):
    """The version that the rule is in, its number and its tree, where it was inserted, other conditions that would have
    told its case from the neighbour's, and in what it differs from the neighbour's cornerstone."""

    rule_set: RuleSet
    type: ExceptionType
    tree: str
    rule: int
    place: InsertionPoint
    candidates: list[Candidate]
    promoted: bool = False  # it existed already, on trial
    differences: list[Difference] = []


class ExistingRule(NamedTuple):
    """A rule of a set that exists already."""

    tree: str
    rule: int


class RuleEditor:
    def __init__(self, rules: RuleStore, decisions: DecisionStore, flows: Flows, clock: Clock) -> None:
        self._rules = rules
        self._decisions = decisions
        self._flows = flows
        self._clock = clock

    async def add_rule(self, wish: RuleRequest, *, who: str) -> AddedRule:
        """Add a rule for a decision. It is in force at once. If it is requested again, as after a lost answer, it
        exists already."""
        added = await self._retry_on_conflict(lambda: self._add_rule(wish, who))
        if wish.decision and not wish.passive:
            await self._answer_rejection(wish, who)
        return added

    async def _answer_rejection(self, wish: RuleRequest, who: str) -> None:
        """Whoever said that this choice was wrong has got a rule. A decision that another server still carries out is
        left to it: then the request stays open until somebody withdraws it."""
        found = await self._decisions.find(wish.decision)
        if found is None or not is_open_rejection(found):
            return
        if wish.decision in self._decisions.open or found.state not in OPEN_STATES:
            found = await self._decisions.reopen(wish.decision)
            answer_rejection(found, who=who, now=self._clock.now(), note=f"{who} added a rule: {wish.condition}")
            self._decisions.amend(found)

    async def promote_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Put a rule that was on trial into force."""
        return await self._retry_on_conflict(lambda: self._promote(name, meant, who))

    async def _promote(self, name: str, meant: RuleSelector, who: str) -> RuleChange:
        before = self._rules.newest(name)
        at = locate_rule(before, meant.rule, meant.type, meant.task)
        work = promote.pieces(before, at.type, at.tree, at.rule, author=who, at=self._clock.now())
        made = await done_in_pieces(work)
        return await self._put_changed(before, made, at, who, meant.note or f"rule {at.rule} is in force")

    async def retire_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Take a rule out of use."""
        return await self._retry_on_conflict(lambda: self._retire(name, meant, who))

    async def _retire(self, name: str, meant: RuleSelector, who: str) -> RuleChange:
        before = self._rules.newest(name)
        at = locate_rule(before, meant.rule, meant.type, meant.task)
        now, exceptions = self._clock.now(), meant.exceptions
        work = retire.pieces(before, at.type, at.tree, at.rule, exceptions=exceptions, author=who, at=now)
        made = await done_in_pieces(work)
        return await self._put_changed(before, made, at, who, meant.note or f"rule {at.rule} is out of use")

    async def change_rule(self, name: str, change: RuleRevision, *, who: str) -> RuleChange:
        """Change the condition, the exlet or the note of a rule. With `try_only` it is only checked, and the version is
        the one that it was checked against."""
        return await self._retry_on_conflict(lambda: self._change(name, change, who))

    async def _change(self, name: str, change: RuleRevision, who: str) -> RuleChange:
        before = self._rules.newest(name)
        if change.expected is not None and change.expected != before.version:
            raise _changed_meanwhile(before, change.expected)
        exlet = str(change.flow.name) if change.flow is not None and change.exlet is None else change.exlet
        if exlet is None and change.condition is None and change.note is None:
            raise InvalidRequest("say what changes: the condition, the exlet or the note", field="condition")
        at = locate_rule(before, change.rule, change.type, change.task)
        if exlet:
            await self._demand_worklet(before, at.type, exlet, change.flow)
        edit = RuleEdit(condition=change.condition, exlet=exlet, steps=change.flow, note=change.note)
        work = edit_rule.pieces(before, at.type, at.tree, at.rule, edit, author=who, at=self._clock.now())
        made = await done_in_pieces(work)
        if change.try_only:
            await self._rules.demand_valid_rules(made)
            return RuleChange(rules=name, version=before.version, type=at.type, task=at.tree, rule=at.rule)
        return await self._put_changed(before, made, at, who, f"rule {at.rule} changed")

    async def rule_tasks(self, name: str) -> RuleTasksView:
        """How the rules fit the newest version of their flow."""
        return task_mapping.tasks_view(self._rules.newest(name), await self._newest_flow(name))

    async def map_tasks(self, name: str, mapping: TaskMapping, *, who: str) -> RuleTasksView:
        """Set the new names of tasks, and the versions of the flow that the rules hold for."""
        return await self._retry_on_conflict(lambda: self._map(name, mapping, who))

    async def _map(self, name: str, mapping: TaskMapping, who: str) -> RuleTasksView:
        before, newest = self._rules.newest(name), await self._newest_flow(name)
        made = task_mapping.mapped_tasks(before, mapping, newest)
        if made != before:
            made = await self._rules.put(made, author=who, note="tasks mapped", expected=before.version)
        return task_mapping.tasks_view(made, newest)

    async def _newest_flow(self, name: str) -> tuple[Flow, str] | None:
        try:
            await self._flows.refresh(name)
            return await self._flows.find(name, self._rules.project_of(name) or DEFAULT_PROJECT)
        except NotFound:
            return None

    async def _put_changed(self, before: RuleSet, made: RuleSet, at: RuleLocation, who: str, note: str) -> RuleChange:
        put = await self._rules.put(made, author=who, note=note, expected=before.version)
        return RuleChange(rules=put.name, version=put.version, type=at.type, task=at.tree, rule=at.rule)

    async def _retry_on_conflict(self, change: Callable[[], Awaitable[T]]) -> T:
        """Change a set; repeat that if somebody else has changed the set meanwhile."""
        for _ in range(TRIES):
            try:
                return await change()
            except StaleVersion as outdated:
                message = outdated.message
        raise Conflict(message)

    async def _add_rule(self, wish: RuleRequest, who: str) -> AddedRule:
        before, type, task, context = await self._at_hand(wish)
        found = place(before, type, task, context or {})
        if wish.decision and not wish.passive:
            at_hand = await self._decisions.get(wish.decision)
            if (known := self._existing_rule(before, at_hand, wish.condition, wish.exlet, wish.steps)) is not None:
                return AddedRule(before, type, known.tree, known.rule, found, [])
        if wish.expected is not None and wish.expected != before.version:
            raise _changed_meanwhile(before, wish.expected)
        await self._demand_worklet(before, type, wish.exlet, wish.steps)
        draft, trial = self._draft(wish, who), None
        if not wish.passive:
            trial = await done_in_pieces(find_passive_rule.pieces(before, type, task, context, draft))
        if trial is not None:
            meant = RuleSelector(rule=trial.rule, type=type, task=trial.tree, note=wish.note)
            changed = await self._promote(before.name, meant, who)
            return AddedRule(
                self._rules.newest(before.name), type, changed.task, changed.rule, found, [], promoted=True
            )
        stone = neighbour_cornerstone(before, type, found)
        told_apart = candidates(context, stone) if context else []
        differing = differences(context, stone) if context and stone is not None else []
        grown = await done_in_pieces(add_rule.pieces(before, type, task, context, draft))
        note = wish.note or f"rule {grown.rule} added: {wish.exlet}"
        made = await self._rules.put(grown.rule_set, author=who, note=note, expected=before.version)
        return AddedRule(made, type, grown.tree, grown.rule, found, told_apart, differences=differing)

    async def _demand_worklet(self, rules: RuleSet, type: ExceptionType, exlet: str, steps: Flow | None) -> None:
        """Refuse the selection of a flow that does not exist: it would fail every case that it is chosen for."""
        if type is not ExceptionType.SELECTION or not exlet or steps is not None or exlet in rules.exlets:
            return
        try:
            await self._flows.refresh(exlet)
            if rules.name == DEFAULT_RULES:
                self._flows.newest(exlet)
            else:
                await self._flows.find(exlet, self._rules.project_of(rules.name) or rules.project)
        except NotFound as missing:
            raise InvalidRequest(missing.message, field="exlet") from None

    async def try_rule(
        self, wish: RuleRequest, *, limit: int = TRIAL_DECISIONS_MAX, sight: Sight
    ) -> tuple[TrialResult, list[Decision]]:
        """Try a rule on the newest past exceptions of its type; nothing changes. Also returns these exceptions."""
        before, type, task, context = await self._at_hand(wish)
        where = [FieldCondition("type", type.value), *self._rules.asked_about(before.name, sight)]
        past = await self._decisions.search(where, limit=limit)
        work = try_rule.pieces(before, type, task, self._draft(wish, ""), past, context)
        return await done_in_pieces(work), past

    async def candidates(self, decision: str) -> list[Candidate]:
        """Conditions that hold for a decision's context and not for the neighbouring cornerstone."""
        found = await self._decisions.get(decision)
        before = self._rules.newest_for(found.flow, found.project)
        there = place(before, found.type, found.task, found.context)
        return candidates(found.context, neighbour_cornerstone(before, found.type, there))

    def _existing_rule(
        self, rules: RuleSet, at_hand: Decision, condition: str, exlet: str, steps: Flow | None
    ) -> ExistingRule | None:
        """The rule that decides about the decision's context, if it concludes what is wanted already. Without a
        condition any rule that concludes the exlet will do."""
        found = place(rules, at_hand.type, at_hand.task, at_hand.context)
        if found.neighbour is None:
            return None
        rule = rules.trees[at_hand.type][found.tree].rules[found.neighbour]
        same = rule.exlet == exlet and (not condition or rule.condition == condition)
        own = "" if at_hand.type in CASE_LEVEL else at_hand.task or ALL_TASKS
        if not same or found.tree != own or (steps is not None and rules.exlets.get(exlet) != steps):
            return None
        return ExistingRule(found.tree, rule.id)

    async def _at_hand(self, wish: RuleRequest) -> tuple[RuleSet, ExceptionType, str, dict[str, Value] | None]:
        if wish.decision:
            found = await self._decisions.get(wish.decision)
            before = self._rules.newest_for(wish.rules or found.flow, found.project)
            return before, found.type, found.task, found.context
        if wish.type is None or not wish.rules:
            raise InvalidRequest("say which decision the rule is for, or the rule set and the type", field="decision")
        task = "" if wish.type in CASE_LEVEL else wish.task
        project = wish.project or self._rules.project_of(wish.rules) or DEFAULT_PROJECT
        return self._rules.newest_for(wish.rules, project), wish.type, task, None

    def _draft(self, wish: RuleRequest, who: str) -> Draft:
        return Draft(
            condition=wish.condition,
            exlet=wish.exlet,
            steps=wish.steps,
            author=who,
            at=self._clock.now(),
            note=wish.note,
            passive=wish.passive,
        )


def _changed_meanwhile(found: RuleSet, expected: int) -> Conflict:
    """The set is not what whoever changes it has looked at."""
    return Conflict(
        f"rule set {found.name!r} is at version {found.version}, not {expected}; look at it again",
        name=found.name,
        version=found.version,
    )
