"""Rules before they are stored: what they would conclude, what they would change, and what is wrong with them.

Nothing here has an effect: no decision is recorded, no exlet runs, no version is made."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final, TypeVar, cast

import msgspec

from mendflow.core.model.errors import BadFlow, BadRules, InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import CASE_LEVEL, Decision, ExceptionType
from mendflow.core.model.rule_views import (
    ChangedConclusion,
    ChangedCornerstone,
    ContextPath,
    EvaluationRequest,
    EvaluationView,
    ReplayView,
    RuleCheckRequest,
    RuleCheckView,
)
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.recovery.exlet_checks import (
    exlet_problems,
    exlet_warnings,
    misplaced_steps,
    rule_set_problems,
    rule_set_warnings,
)
from mendflow.core.rules import demand_valid, problems_of
from mendflow.core.rules.context_paths import context_paths
from mendflow.core.rules.replay import ReplayedDecision, replay, replay_cornerstones
from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.reading_tasks import RuleTrial
from mendflow.services.base.throttled_work import ThrottledWork
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.rules.store import RuleStore, check_conditions
from mendflow.services.recovery.rules.trial_evaluation import evaluated
from mendflow.stores.contract import FieldCondition

T = TypeVar("T")

PAGE: Final = 500
CONTEXTS_READ: Final = 200
CHANGED_SHOWN_MAX: Final = 1_000
LARGE_CONTEXT_BYTES: Final = 50_000
"""Rules are tried out on so much data beside the server."""


class RulePreview:
    """`evaluations` does what somebody tries out, without taking the server from the others; on much data, `reads`
    does."""

    def __init__(
        self, rules: RuleStore, decisions: DecisionStore, evaluations: ThrottledWork, reads: LongReads
    ) -> None:
        self._reads = reads
        self._rules = rules
        self._decisions = decisions
        self._evaluations = evaluations

    async def _each_aside(self, works: Iterator[T]) -> AsyncIterator[T]:
        """One piece of work after the other."""
        end = object()
        while (found := await self._evaluations.do(lambda: next(works, end))) is not end:
            yield cast(T, found)

    # What they conclude

    async def evaluate(self, wish: EvaluationRequest) -> EvaluationView:
        at_hand = await self._decisions.get(wish.decision) if wish.decision else None
        type = wish.type or (at_hand.type if at_hand is not None else None)
        if type is None:
            raise InvalidRequest("say the type of the exception, such as abort, or a decision", field="type")
        context = wish.context if wish.context is not None else at_hand.context if at_hand is not None else None
        if context is None:
            raise InvalidRequest("give the context that is to be judged, or a decision that has one", field="context")
        task = "" if type in CASE_LEVEL else wish.task or (at_hand.task if at_hand is not None else "")
        first = await self._asked_set(wish, at_hand)
        sets = [first] if wish.only or first.name == DEFAULT_RULES else [first, self._rules.newest(DEFAULT_RULES)]
        if self._reads.is_aside and len(msgspec.json.encode(context)) > LARGE_CONTEXT_BYTES:
            return await self._reads.do_aside(RuleTrial(sets, type, task, context), EvaluationView)
        return await self._evaluations.do(lambda: evaluated(sets, type, task, context))

    async def _asked_set(self, wish: EvaluationRequest, at_hand: Decision | None) -> RuleSet:
        if wish.rules is not None:
            await check_conditions(wish.rules)
            demand_valid(wish.rules)
            return wish.rules
        name = wish.name or (at_hand.flow if at_hand is not None else "")
        if not name:
            raise InvalidRequest("say which rules are asked: a name, a rule set, or a decision", field="name")
        if at_hand is not None and not wish.name:
            if wish.version is None:
                return self._rules.newest_for(name, at_hand.project)
            self._rules.demand_in(name, at_hand.project)
        if wish.version is not None:
            return await self._rules.version(name, wish.version)
        return self._rules.newest_or_empty(name)

    # What they change

    async def replay(self, changed: RuleSet, limit: int, sight: Sight) -> ReplayView:
        """What a changed set would conclude about past decisions in sight, beside what the stored one concludes."""
        checked = await self.check(RuleCheckRequest(rules=changed))
        before, defaults = self._rules.newest_or_empty(changed.name), self._rules.newest(DEFAULT_RULES)
        if problems_of(changed):
            raise BadRules(problems=checked.problems)
        looked_at, found, erred = 0, list[ReplayedDecision](), dict[str, str]()
        async for page in self._past(changed.name, limit, sight):
            async for each in self._each_aside(replay(before, changed, defaults, page)):
                looked_at += 1
                found += [] if each.is_same else [each]
                if each.error and len(erred) < CHANGED_SHOWN_MAX:
                    erred[each.decision.id] = each.error
        return ReplayView(
            name=changed.name,
            version=before.version,
            looked_at=looked_at,
            same=looked_at - len(found),
            changed=[_changed(each) for each in found[:CHANGED_SHOWN_MAX]],
            cornerstones=[
                ChangedCornerstone(
                    type=each.type, task=each.task, rule=each.rule, exlet=each.before, new_exlet=each.after
                )
                async for each in self._each_aside(replay_cornerstones(before, changed))
                if not each.is_same
            ],
            erred=erred,
            problems=checked.problems,
        )

    async def _past(self, name: str, limit: int, sight: Sight) -> AsyncIterator[list[Decision]]:
        """The past decisions that the rules of this name may be asked about, the newest first, page by page."""
        where = self._rules.asked_about(name, sight)
        for offset in range(0, limit, PAGE):
            page = await self._decisions.search(where, limit=min(PAGE, limit - offset), offset=offset)
            yield page
            if len(page) < PAGE:
                return
            await asyncio.sleep(0)

    # What is wrong with them

    async def check(self, wish: RuleCheckRequest) -> RuleCheckView:
        if (wish.rules is None) == (wish.exlet is None):
            raise InvalidRequest("give either a rule set or an exlet to check", field="rules")
        if wish.exlet is not None:
            return await self._checked_exlet(wish.exlet, wish.types)
        assert wish.rules is not None
        await check_conditions(wish.rules)
        problems = [*problems_of(wish.rules), *rule_set_problems(wish.rules)]
        for name, exlet in wish.rules.exlets.items():
            problems += [f"exlet {name}: {problem}" for problem in await self._flow_problems(exlet)]
        return RuleCheckView(problems=problems, warnings=rule_set_warnings(wish.rules))

    async def _checked_exlet(self, exlet: Flow, types: list[ExceptionType]) -> RuleCheckView:
        problems = [*await self._flow_problems(exlet), *exlet_problems(exlet)]
        problems += [problem for type in types for problem in misplaced_steps(type, exlet)]
        return RuleCheckView(problems=list(dict.fromkeys(problems)), warnings=exlet_warnings(exlet))

    async def _flow_problems(self, exlet: Flow) -> list[str]:
        try:
            await self._rules.compiler.check(exlet)
        except BadFlow as refused:
            return [str(problem) for problem in refused.problems]
        return []

    # What conditions can read

    async def paths(self, name: str, type: ExceptionType | None, task: str, sight: Sight) -> list[ContextPath]:
        """The paths of the newest contexts of a flow, or of all flows for the default rules."""
        where = self._rules.asked_about(name, sight)
        where += [FieldCondition("type", type.value)] if type is not None else []
        where += [FieldCondition("task", task)] if task else []
        past = await self._decisions.search(where, limit=CONTEXTS_READ)
        return [
            ContextPath(
                path=path,
                types=list(known.types),
                samples=list(known.samples.values()),
                count=known.count,
                of=len(past),
            )
            for path, known in context_paths(each.context for each in past).items()
        ]


def _changed(each: ReplayedDecision) -> ChangedConclusion:
    decision, before, after = each.decision, each.before, each.after
    return ChangedConclusion(
        decision=decision.id,
        case=decision.case,
        item=decision.item,
        type=decision.type,
        task=decision.task,
        state=decision.state,
        result=decision.result,
        exlet=before.exlet if before is not None else "",
        rules=before.rules if before is not None else "",
        rule=before.rule if before is not None else None,
        new_exlet=after.exlet if after is not None else "",
        new_rules=after.rules if after is not None else "",
        new_rule=after.rule if after is not None else None,
    )
