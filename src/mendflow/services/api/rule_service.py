"""Rules as people edit them: list, add for a given decision, try on the past, replace and restore.

Where a rule goes in the tree, which cornerstones it must not change and what it would have caught is computed by the
core; this service finds the decision and stores the result."""

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Empty, Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.repair import CASE_LEVEL, REPAIRS_MAX, Decision, ExceptionType
from mendflow.core.model.repair_views import CandidateView, RuleAddition, RuleSetView, RuleSpec, TrialEntry, TrialView
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES, DEFAULT_RULES_SEEN, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import exlet_of
from mendflow.core.recovery.repeat_bounds import missing_bounds
from mendflow.core.rules import insertion, trials
from mendflow.core.rules.candidates import Candidate
from mendflow.lazy import LazyModule
from mendflow.services.base.loop_yielder import done_in_pieces
from mendflow.services.cases.flows import Flows
from mendflow.services.recovery.administration import ManualRepairs, RuleRequest
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.failures import briefs, find_group, group_id
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.runtime.server import Server

if TYPE_CHECKING:
    from mendflow.services.recovery.rules import comparison
else:
    comparison = LazyModule("mendflow.services.recovery.rules.comparison")

PLACEHOLDER_FLOW = Flow(name=FlowName("tried"), body=Empty(name="nothing"))
"""What a rule that is only tried concludes, if its author has not named an exlet yet."""


class RuleService:
    """Made for each request, because the services below may be rebuilt in between."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._flows: Flows = server.runtime.flows
        self._administration: ManualRepairs = server.runtime.administration
        self._rules: RuleStore = server.runtime.exceptions.rules
        self._decisions: DecisionStore = server.runtime.exceptions.decisions

    # Looking

    def all(self) -> list[RuleSetView]:
        return [view_of(rules) for rules in self._rules.all()]

    async def one(self, name: str, version: int | None, sight: Sight) -> RuleSetView:
        newest = self._rules.newest(name)
        wanted = newest if version is None else await self._rules.version(name, version)
        view = view_of(wanted, newest=wanted.version == newest.version)
        decided, tried = await self._decision_counts(wanted, sight)
        return msgspec.structs.replace(view, rules=wanted, decided=decided, tried=tried)

    async def versions(self, name: str) -> list[RuleSetView]:
        found = await self._rules.versions(name)
        return [view_of(each, newest=place == 0) for place, each in enumerate(found)]

    async def _decision_counts(self, rules: RuleSet, sight: Sight) -> tuple[dict[str, int], dict[str, int]]:
        """How often each rule has concluded its exlet, and would have on trial, in whatever version, as far as that is
        in sight: a rule keeps its number. Conclusions before the rule was corrected are not counted."""
        stands = {
            (type, task, rule.id): rule.exlet
            for type, trees in rules.trees.items()
            for task, tree in trees.items()
            for rule in tree.rules.values()
        }
        counted: Counter[str] = Counter()
        tried: Counter[str] = Counter()
        async for brief in briefs(self._server.store, selections=True, sight=sight):
            for counts, said in [(counted, brief.conclusion), *((tried, trial) for trial in brief.trials)]:
                if said is None or said.rules != rules.name:
                    continue
                if stands.get((brief.type, said.task, said.rule)) == said.exlet:
                    counts[f"{brief.type.value}/{said.task}/{said.rule}"] += 1
        return dict(counted), dict(tried)

    # Changing

    async def put(self, rules: RuleSet, who: str, note: str, expected: int | None, project: str) -> RuleSetView:
        """What people send says nothing of the project: the gate has found it."""
        rules = msgspec.structs.replace(rules, project=project or DEFAULT_PROJECT)
        return view_of(await self._rules.put(rules, author=who, note=note, expected=expected, project=project))

    async def restore(self, name: str, version: int, who: str) -> RuleSetView:
        return view_of(await self._rules.restore(name, version, author=who))

    async def add(self, wish: RuleSpec, who: str, sight: Sight = EVERYTHING, project: str = "") -> RuleAddition:
        """A set that is not there yet is made in the project, if one is said, else in that of the case at hand."""
        at_hand, _ = await self._decision_and_group(wish, sight)
        name, type, _ = aim_of(wish, at_hand)
        project = self._rules.project_of(name) or project or (at_hand.project if at_hand else DEFAULT_PROJECT)
        steps = await self._steps(wish, self._rules.newest_for(name, project), type)
        added = await self._administration.add_rule(_rule_request(wish, at_hand, steps, project), who=who)
        return RuleAddition(
            rules=name,
            version=added.rule_set.version,
            type=added.type,
            task=added.tree,
            rule=added.rule,
            under=added.place.parent,
            side=added.place.side if added.place.parent is not None else "",
            candidates=[CandidateView(condition=each.condition, reason=_difference(each)) for each in added.candidates],
            promoted=added.promoted,
            neighbour=added.place.neighbour if added.differences else None,
            differences=comparison.difference_views(added.differences),
            warning=DEFAULT_RULES_SEEN if name == DEFAULT_RULES else "",
        )

    async def _steps(self, wish: RuleSpec, rules: RuleSet, type: ExceptionType) -> Flow | None:
        """The exlet of the rule: sent along, or found by its name."""
        if wish.flow is not None or wish.exlet in rules.exlets or type is ExceptionType.SELECTION:
            return wish.flow
        found = await self.find_exlet(wish.exlet, rules.project)
        if found is None:
            defaults, patterns = (
                self._rules.newest(DEFAULT_RULES).exlets,
                self._server.runtime.patterns.patterns.repairs,
            )
            known = ", ".join(sorted({*rules.exlets, *defaults, *(pattern.name for pattern in patterns)})) or "none"
            raise InvalidRequest(
                f"there is no exlet {wish.exlet!r}; known are {known}. Give another as a file", field="exlet"
            )
        return found

    async def find_exlet(self, exlet: str, project: str) -> Flow | None:
        """An exlet of the default rules, a repair pattern of the repository, or a deployed flow of the project, by its
        name."""
        shipped = self._rules.newest(DEFAULT_RULES).exlets.get(exlet)
        if shipped is not None:
            return shipped
        pattern = self._server.runtime.patterns.patterns.repair(exlet)
        if pattern is not None:
            return exlet_of(pattern)
        try:
            return (await self._flows.find(exlet, project))[0]
        except NotFound:
            return None

    async def exlet_to_send(
        self, exlet: str, flow: Flow | None, name: str, project: str, *, in_rule: bool = False
    ) -> Flow | None:
        """The flow to send along with an order to run an exlet for a case of this project that is neither in the flow's
        rules nor in the default rules; a rule of the flow concludes exlets of its own set only (`in_rule`). Raises
        NotFound if there is none."""
        if flow is not None or exlet in self._rules.newest_for(name, project).exlets:
            return flow
        if exlet in self._rules.newest(DEFAULT_RULES).exlets and not in_rule:
            return None
        found = await self.find_exlet(exlet, project)
        if found is None:
            raise NotFound(
                f"there is no exlet {exlet!r} in the rules of {name}, nor in the default rules, nor a flow so named"
            )
        return found

    # Trying

    async def try_out(self, wish: RuleSpec, limit: int, sight: Sight = EVERYTHING) -> TrialView:
        at_hand, members = await self._decision_and_group(wish, sight)
        name, type, task = aim_of(wish, at_hand)
        rules = self._rules.newest_for(name, at_hand.project) if at_hand else self._rules.newest_or_empty(name)
        steps = wish.flow or (None if wish.exlet in rules.exlets else PLACEHOLDER_FLOW)
        request = _rule_request(wish, at_hand, steps)
        tried, past = await self._administration.try_rule(request, limit=limit, sight=sight)
        draft = insertion.Draft(condition=wish.condition, exlet=wish.exlet, steps=steps)
        breaks = await _broken_cornerstone(rules, type, task, at_hand.context if at_hand else None, draft)
        found = insertion.place(rules, type, task, at_hand.context if at_hand else {})
        return msgspec.structs.replace(
            _trial_view(tried, {decision.id: decision for decision in past}, members, breaks),
            rules=name,
            version=rules.version,
            type=type,
            task=found.tree,
            under=found.parent,
            side=found.side if found.parent is not None else "",
            missing_bounds=missing_bounds(wish.condition),
            repairs_max=REPAIRS_MAX,
        )

    async def _decision_and_group(self, wish: RuleSpec, sight: Sight) -> tuple[Decision | None, set[str]]:
        """The decision that the rule is for, and the decisions of its group, if a group was named."""
        at_hand = await self._decisions.get(wish.decision) if wish.decision else None
        if not wish.group:
            return at_hand, set()
        await self._server.runtime.ledger.settled()
        _, members, _ = await find_group(self._server.store, wish.group, sight)
        return at_hand or await self._decisions.get(members[0].id), {member.id for member in members}


def view_of(rules: RuleSet, *, newest: bool = True) -> RuleSetView:
    all_rules = [rule for trees in rules.trees.values() for tree in trees.values() for rule in tree.rules.values()]
    return RuleSetView(
        name=rules.name,
        version=rules.version,
        at=rules.at,
        author=rules.author,
        project=rules.project,
        note=rules.note,
        rule_count=len(all_rules),
        passive_count=sum(rule.passive for rule in all_rules),
        types=[type.value for type, trees in rules.trees.items() if any(tree.rules for tree in trees.values())],
        exlets=sorted(rules.exlets),
        newest=newest,
    )


def aim_of(wish: RuleSpec, at_hand: Decision | None) -> tuple[str, ExceptionType, str]:
    """The set, the type and the task of a rule: as given, else those of the decision."""
    type = wish.type or (at_hand.type if at_hand else None)
    name = wish.rules or (at_hand.flow if at_hand else "")
    if type is None or not name:
        raise InvalidRequest(
            "say what the rule is for: a decision or a group, or else rules and type", field="decision"
        )
    if type in CASE_LEVEL:
        return name, type, ""
    own = at_hand.task if at_hand and name != DEFAULT_RULES else ""
    return name, type, wish.task or own or ALL_TASKS


def _rule_request(wish: RuleSpec, at_hand: Decision | None, steps: Flow | None, project: str = "") -> RuleRequest:
    return RuleRequest(
        condition=wish.condition,
        exlet=wish.exlet,
        steps=steps,
        decision=at_hand.id if at_hand else "",
        rules=wish.rules,
        project=project,
        type=wish.type,
        task=wish.task,
        passive=wish.passive,
        note=wish.note,
        expected=wish.expected,
    )


def _difference(found: Candidate) -> str:
    here, there = (msgspec.json.encode(value).decode()[:80] for value in (found.here, found.there))
    return f"here {here}, there {there}" if found.there is not None else f"here {here}"


async def _broken_cornerstone(
    rules: RuleSet, type: ExceptionType, task: str, context: dict[str, Value] | None, draft: insertion.Draft
) -> str:
    """The cornerstone that adding the rule would break."""
    try:
        await done_in_pieces(insertion.add_rule.pieces(rules, type, task, context, draft))
    except RequestError as error:
        return error.message
    return ""


def _trial_view(tried: trials.TrialResult, past: dict[str, Decision], members: set[str], breaks: str) -> TrialView:
    caught, missed, otherwise = tried.caught, tried.missed, tried.otherwise
    others: tuple[str, ...] = ()
    if members:
        hits = (*tried.caught, *tried.same, *tried.otherwise)
        causes = {decision.signature for id, decision in past.items() if id in members}
        others = tuple(id for id in hits if past[id].signature not in causes)
        caught = tuple(id for id in hits if id in members)
        missed = tuple(id for id in past if id in members and id not in set(caught))
        otherwise = tuple(id for id in tried.otherwise if id not in members)
    return TrialView(
        caught=len(caught),
        of=len(caught) + len(missed),
        looked_at=tried.asked,
        caught_ids=[_trial_row(past[id]) for id in caught],
        missed_ids=[_trial_row(past[id]) for id in missed],
        otherwise=[_trial_row(past[id]) for id in otherwise],
        others=[_trial_row(past[id]) for id in others],
        breaks=breaks or next(iter(tried.erred.values()), ""),
    )


def _trial_row(decision: Decision) -> TrialEntry:
    return TrialEntry(
        decision=decision.id,
        case=decision.case,
        item=decision.item,
        exlet=decision.exlet,
        state=decision.state,
        result=decision.result,
        rules=decision.conclusion.rules if decision.conclusion else "",
        rule=decision.conclusion.rule if decision.conclusion else None,
        group=group_id(decision.type, decision.signature),
    )
