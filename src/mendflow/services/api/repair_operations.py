"""The part of the domain that is about repairs: rules, failures, decisions, histories, levels, foreign engines.

Like the rest it answers only when what it says is on disk."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import PrimitiveStep
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import (
    ApplyResult,
    CompensationView,
    DecisionQuery,
    DecisionView,
    DrainResult,
    EngineOrder,
    EngineView,
    EventAnswer,
    FailureGroup,
    FailureView,
    HistoryEntry,
    LevelView,
    RejectRequest,
    RepairRequest,
    RuleAddition,
    RuleChange,
    RuleSelector,
    RuleSetView,
    RuleSpec,
    TrialView,
    TriggerView,
)
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import FaultPattern, JobPattern, Patterns, check_pattern
from mendflow.core.recovery.primitive_checks import step_problems
from mendflow.core.rules import insertion
from mendflow.services.api.domain_reader import DomainReader
from mendflow.services.api.rule_service import RuleService
from mendflow.services.base.cluster import root_of
from mendflow.services.cases.user_tasks import TASK_KIND, TaskDocument
from mendflow.services.observe import history
from mendflow.services.observe.history_order import merge_entries
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.decision_views import (
    RuleVersionCache,
    common_values,
    distinguishing_conditions,
    view_of,
)
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.failures import DecisionSummary, find_group, group_failures
from mendflow.services.recovery.levels import LevelEntry, Levels
from mendflow.stores.contract import FieldCondition

SAMPLES = 20
JOBS_SHOWN = 100
ALL = "all"
_decode_task = msgspec.json.Decoder(TaskDocument).decode


class RepairOperations(DomainReader):
    # Rules

    async def rule_sets(self) -> list[RuleSetView]:
        if self._server.membership.shared:
            await self._server.runtime.exceptions.rules.start()
        return RuleService(self._server).all()

    async def rule_set(self, name: str, version: int | None = None) -> RuleSetView:
        """The newest version, or the one asked for, whole."""
        await self._settled()
        await self._server.runtime.exceptions.rules.refresh(name)
        return await RuleService(self._server).one(name, version)

    async def rule_versions(self, name: str) -> list[RuleSetView]:
        """Every version, the newest first."""
        return await RuleService(self._server).versions(name)

    async def put_rules(self, rules: RuleSet, *, who: str, note: str = "", expected: int | None = None) -> RuleSetView:
        """Make this the next version of the set, in force at once for all cases. Refused as a whole if an exlet or a
        condition has problems, or if the newest version is not the `expected` one."""
        view = await RuleService(self._server).put(rules, who, note, expected)
        await self._settled()
        return view

    async def restore_rules(self, name: str, version: int, *, who: str) -> RuleSetView:
        """Make an earlier version the next one."""
        view = await RuleService(self._server).restore(name, version, who)
        await self._settled()
        return view

    async def promote_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Put a rule that was on trial into force; refused if it would change what another cornerstone concludes."""
        changed = await self._administration.promote_rule(name, meant, who=who)
        await self._settled()
        return changed

    async def retire_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Take a rule out of use. Refused if it has exceptions, unless these are retired with it, and if it would
        change what another cornerstone concludes."""
        changed = await self._administration.retire_rule(name, meant, who=who)
        await self._settled()
        return changed

    async def add_rule(self, wish: RuleSpec, *, who: str) -> RuleAddition:
        """Add a rule for a given decision; refused if it would change what another cornerstone concludes."""
        added = await RuleService(self._server).add(wish, who)
        await self._settled()
        return added

    async def try_rule(self, wish: RuleSpec, *, limit: int = 10_000) -> TrialView:
        """Try a rule on the newest past failures; nothing changes."""
        return await RuleService(self._server).try_out(wish, limit)

    # Failures

    async def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]:
        return await group_failures(await self._read(), since=since, flow=flow, limit=limit)

    async def failure(self, group: str) -> FailureView:
        """`group` may be the beginning of a group's id."""
        view, members = await find_group(await self._read(), group)
        samples = [await self._decisions.get(member.id) for member in members[:SAMPLES]]
        alike = [FieldCondition("type", samples[0].type.value), FieldCondition("signature", samples[0].signature, "ne")]
        others = await self._decisions.search(alike, limit=SAMPLES)
        return FailureView(
            group=view,
            samples=await self._views(samples),
            values=common_values(samples),
            candidates=distinguishing_conditions(samples, await self._neighbour(samples[0], members), others),
        )

    async def _neighbour(self, sample: Decision, members: Sequence[DecisionSummary]) -> dict[str, Value] | None:
        """What the failure is compared with: the cornerstone of the rule that decides about it now, else another
        failure of the same type."""
        rules = self._server.runtime.exceptions.rules.newest_or_empty(sample.flow)
        place = insertion.place(rules, sample.type, sample.task, sample.context)
        if (cornerstone := insertion.neighbour_cornerstone(rules, sample.type, place)) is not None:
            return cornerstone
        where = [FieldCondition("type", sample.type.value), FieldCondition("signature", sample.signature, "ne")]
        others = await self._decisions.search(where, limit=1)
        return others[0].context if others else None

    async def apply_rules(self, group: str, *, who: str, retry: bool = False, skip: Sequence[str] = ()) -> ApplyResult:
        """Ask the rules again, now, about every failure of the group that waits, or that its case failed by: such a
        case goes on from where it stood, unless it is in `skip`. `retry`: what no rule takes up is tried again as it
        is."""
        view, members = await find_group(await self._read(), group)
        members = [each for each in members if root_of(each.case) not in skip]
        applied = await self._server.runtime.recovery.groups.apply(view.id, members, who=who, retry=retry)
        await self._settled()
        return applied

    # Decisions

    async def decisions(self, query: DecisionQuery = DecisionQuery()) -> list[DecisionView]:
        fields = {"item": query.item, "state": query.state, "conclusion.rules": query.rules}
        where = [FieldCondition(field, value) for field, value in fields.items() if value]
        if query.case:
            where = [*await self._about(await self._id(query.case)), *where]
        if query.group:
            _, members = await find_group(await self._read(), query.group)
            where += [FieldCondition("signature", members[0].signature), FieldCondition("type", members[0].type.value)]
        return await self._views(await self._decisions.search(where, limit=query.limit, offset=query.offset))

    async def _about(self, case: CaseId) -> list[FieldCondition]:
        """Decisions about a case of this server; if there are none of that id, about cases of other engines."""
        known = await self._server.runtime.manager.document(case) is not None
        return [FieldCondition("case", case), *([FieldCondition("engine", "")] if known else [])]

    async def decision(self, decision: str) -> DecisionView:
        return await view_of(await self._decisions.get(decision), self._conditions, whole=True)

    async def reject_choice(self, wish: RejectRequest, *, who: str) -> DecisionView:
        """Reject a wrong choice and run the right exlet or worklet instead. Returns the decision that replaces it."""
        exlet, wrong = _named(wish), await self._decisions.get(wish.decision)
        rules = wrong.conclusion.rules if wrong.conclusion else wrong.flow
        known = wrong.type is ExceptionType.SELECTION or wish.flow is not None
        right = await self._administration.reject(
            wish.decision,
            exlet=exlet,
            steps=wish.flow if known else await RuleService(self._server).exlet_to_send(exlet, None, rules),
            condition=wish.condition,
            note=wish.note,
            who=who,
        )
        return await self._decision_view(right)

    @property
    def _administration(self) -> ManualRepairs:
        return self._server.runtime.administration

    @property
    def _decisions(self) -> DecisionStore:
        return self._server.runtime.exceptions.decisions

    @property
    def _conditions(self) -> RuleVersionCache:
        return RuleVersionCache(self._server.runtime.exceptions.rules)

    async def _views(self, decisions: Sequence[Decision]) -> list[DecisionView]:
        conditions = self._conditions
        return [await view_of(decision, conditions) for decision in decisions]

    async def _decision_view(self, decision: Decision) -> DecisionView:
        await self._settled()
        return await view_of(decision, self._conditions)

    # One history

    async def history(self, case: str) -> list[HistoryEntry]:
        id = await self._id(case)
        await self._document(id)
        store = await self._read()
        jobs = [job for submissions in (await self._jobs_of(id)).values() for job in submissions]
        tasks = [_decode_task(found.body) async for found in store.scan(TASK_KIND, f"{id}/")]
        decisions = await self._decisions.of_case(id)
        journal = history.with_actors(await history.journal(store, id), jobs, tasks)
        told = [*history.attempts(jobs, decisions, now=self._server.clock.now()), *history.decision_entries(decisions)]
        steps = list[HistoryEntry]()
        for decision in decisions:
            if decision.exlet_case is not None and decision.exlet_case != id:
                steps += history.primitives(await history.journal(store, decision.exlet_case), decision)
        return merge_entries(journal, told, steps)

    # From outside, and by hand

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        return await self._administration.triggers(await self._id(case), item)

    async def raise_trigger(
        self, case: str, trigger: str, item: str = "", *, who: str, data: Value = None
    ) -> DecisionView:
        """Report that something happened. If no rule knows the trigger, the case is suspended until a person mends
        it."""
        id = await self._id(case)
        await self._document(id)
        return await self._decision_view(
            await self._administration.raise_exception(id, trigger, item, who=who, data=data)
        )

    async def mend(self, case: str, wish: RepairRequest, *, who: str) -> DecisionView:
        id, exlet = await self._id(case), _named(wish)
        flow = wish.rules or (await self._document(id)).flow
        decision = await self._administration.mend(
            id,
            exlet=exlet,
            steps=await RuleService(self._server).exlet_to_send(exlet, wish.flow, flow),
            condition=wish.condition,
            item=wish.item,
            decision=wish.decision,
            rules=wish.rules,
            note=wish.note,
            who=who,
        )
        return await self._decision_view(decision)

    # Patterns

    async def patterns(self) -> Patterns:
        return self._server.runtime.patterns.patterns

    async def add_patterns(self, patterns: Patterns, *, who: str) -> Patterns:
        """Add these patterns, replacing those with the same names. None is added if one of them is refused."""
        more: list[JobPattern | FaultPattern] = [*patterns.conversations, *patterns.repairs]
        if not all(pattern.name for pattern in more):
            raise InvalidRequest("a pattern needs a name", field="name")
        for talk in patterns.conversations:
            if problem := check_pattern(talk.messages):
                raise InvalidRequest(f"{talk.name}: {problem}", field=talk.name)
        for repair in patterns.repairs:
            step = PrimitiveStep(name=repair.name, do=repair.do, settings=repair.settings)
            if problems := list(step_problems([step])):
                raise InvalidRequest("; ".join(problems), field=repair.name)
        for pattern in more:
            await self._server.runtime.patterns.add(pattern)
        return self._server.runtime.patterns.patterns

    # Engines of other systems

    async def engines(self) -> list[EngineView]:
        return self._server.runtime.engines.all()

    async def register_engine(self, name: str, *, who: str) -> EngineView:
        view = await self._server.runtime.engines.register(name, who=who)
        await self._settled()
        return view

    async def engine_event(self, engine: str, event: ExceptionEvent, *, who: str) -> EventAnswer:
        held = await self._server.runtime.engines.tell(engine, event, who=who)
        await self._settled()
        return EventAnswer(event=event.id, held=held)

    async def engine_orders(self, engine: str, *, who: str, wait_ms: int = 0) -> list[EngineOrder]:
        """The orders for the engine; the answer is held back until there is one, or the time is over."""
        return await self._server.runtime.engines.orders(engine, who=who, wait_ms=wait_ms)

    async def engine_done(self, engine: str, order: str, answer: Value = True, *, who: str) -> list[EngineOrder]:
        """Said twice it counts once. Returns the orders that are still open."""
        self._server.runtime.engines.done(engine, order, answer, who=who)
        await self._settled()
        return await self.engine_orders(engine, who=who)

    # Compensations

    async def compensations(self) -> list[CompensationView]:
        return [
            CompensationView(task=each.task, flow=each.flow, author=each.author, at=each.at)
            for each in self._server.runtime.recovery.library.all()
        ]

    async def register_compensation(self, task: str, flow: str = "", *, who: str) -> list[CompensationView]:
        """Set the flow that compensates a task in cases that start from now on; an empty flow removes it. Returns the
        library."""
        library = self._server.runtime.recovery.library
        if not task:
            raise InvalidRequest("say which task it undoes", field="task")
        if flow:
            await library.register(task, flow, who=who)
        else:
            await library.forget(task)
        await self._settled()
        return await self.compensations()

    # Levels

    async def levels(self) -> list[LevelView]:
        levels = self._server.runtime.levels
        return [_level(levels, level, levels.entries(level)) for level in sorted(levels.counts())]

    async def drain(self, level: str, *, who: str) -> DrainResult:
        """Let all entries of a level, or of `all` levels, continue now."""
        levels = self._server.runtime.levels
        number = int(level) if level.isdecimal() and len(level) < 10 else 0
        if level != ALL and number not in levels.counts():
            known = ", ".join(map(str, sorted(levels.counts())))
            raise NotFound(f"there is no level {level!r}; there are {known}, and {ALL}", level=level)
        return DrainResult(level=number, let_go=levels.drain(None if level == ALL else number))


def _named(wish: RepairRequest | RejectRequest) -> str:
    """The exlet's name; an exlet that is sent along contains its name."""
    name = wish.exlet or (str(wish.flow.name) if wish.flow else "")
    if not name:
        raise InvalidRequest("say what is to be done: name an exlet, or send one along", field="exlet")
    return name


def _level(levels: Levels, level: int, entries: Sequence[LevelEntry]) -> LevelView:
    return LevelView(
        level=level,
        wait_ms=levels.wait_ms(level),
        waiting=len(entries),
        express=sum(entry.mode == "express" for entry in entries),
        next_at=entries[0].due_at if entries else 0,
        jobs=[entry.job for entry in entries[:JOBS_SHOWN]],
    )
