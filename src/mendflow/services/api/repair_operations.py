"""The part of the domain that is about repairs: rules, failures, decisions, histories, levels, foreign engines.

Like the rest it answers only when what it says is on disk."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import PrimitiveStep
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.repair_views import (
    AdministrationQuery,
    AdministrationTaskView,
    ApplyResult,
    CompensationView,
    DecisionQuery,
    DecisionView,
    FailureGroup,
    FailureView,
    HistoryEntry,
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
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import FaultPattern, JobPattern, Patterns, check_pattern
from mendflow.core.recovery.primitive_checks import step_problems
from mendflow.lazy import LazyModule
from mendflow.services.api.case_history import CaseHistory
from mendflow.services.api.level_operations import LevelOperations
from mendflow.services.api.seen_cornerstones import SeenCornerstones
from mendflow.services.base.cluster import root_of
from mendflow.services.base.visibility import in_sight
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.administration_tasks import (
    administration_task,
    administration_tasks,
    administration_view,
)
from mendflow.services.recovery.decision_views import (
    RuleVersionCache,
    common_values,
    distinguishing_conditions,
    view_of,
)
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId
from mendflow.services.recovery.failures import (
    DecisionSummary,
    FoundGroup,
    find_group,
    group_failures,
    handling_of,
    settled_by,
    started_case,
)
from mendflow.services.recovery.settled_cases import SettledCases
from mendflow.stores.contract import FieldCondition

if TYPE_CHECKING:
    from mendflow.services.api import rule_service
    from mendflow.services.recovery import succeeded_jobs
    from mendflow.services.recovery.rules import comparison
else:
    rule_service = LazyModule("mendflow.services.api.rule_service")
    succeeded_jobs = LazyModule("mendflow.services.recovery.succeeded_jobs")
    comparison = LazyModule("mendflow.services.recovery.rules.comparison")

SAMPLES = 20


class RepairOperations(LevelOperations):
    # Rules

    async def rule_sets(self, *, sight: Sight = EVERYTHING) -> list[RuleSetView]:
        if self._server.membership.shared:
            await self._server.runtime.exceptions.rules.start()
        found = rule_service.RuleService(self._server).all()
        return [each for each in found if each.name == DEFAULT_RULES or sight.sees(each.project)]

    async def rule_set(self, name: str, version: int | None = None, *, sight: Sight = EVERYTHING) -> RuleSetView:
        """The newest version, or the one asked for, whole but for cornerstones of cases that are not in sight."""
        await self._settled()
        await self._server.runtime.exceptions.rules.refresh(name)
        view = await rule_service.RuleService(self._server).one(name, version, sight)
        assert view.rules is not None
        shown, hidden = await SeenCornerstones(self.project_lookup, sight).of(view.rules)
        return msgspec.structs.replace(view, rules=shown, hidden_cornerstones=hidden)

    async def rule_versions(self, name: str) -> list[RuleSetView]:
        """Every version, the newest first."""
        return await rule_service.RuleService(self._server).versions(name)

    async def put_rules(
        self,
        rules: RuleSet,
        *,
        who: str,
        note: str = "",
        expected: int | None = None,
        project: str = "",
    ) -> RuleSetView:
        """Make this the next version of the set, in force at once for all cases. Refused as a whole if an exlet or a
        condition has problems, or if the newest version is not the `expected` one."""
        view = await rule_service.RuleService(self._server).put(rules, who, note, expected, project)
        await self._settled()
        return view

    async def restore_rules(self, name: str, version: int, *, who: str) -> RuleSetView:
        """Make an earlier version the next one."""
        view = await rule_service.RuleService(self._server).restore(name, version, who)
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

    async def add_rule(self, wish: RuleSpec, *, who: str, sight: Sight = EVERYTHING, made_in: str = "") -> RuleAddition:
        """Add a rule for a given decision; refused if it would change what another cornerstone concludes."""
        added = await rule_service.RuleService(self._server).add(wish, who, sight, made_in)
        await self._settled()
        return added

    async def try_rule(self, wish: RuleSpec, *, limit: int = 10_000, sight: Sight = EVERYTHING) -> TrialView:
        """Try a rule on the newest past failures; nothing changes."""
        return await rule_service.RuleService(self._server).try_out(wish, limit, sight)

    # Failures

    async def failures(
        self, *, since: Instant = 0, flow: str = "", limit: int = 100, sight: Sight = EVERYTHING
    ) -> list[FailureGroup]:
        return await group_failures(await self._read(), since=since, flow=flow, limit=limit, sight=sight)

    async def failure(self, group: str, *, sight: Sight = EVERYTHING) -> FailureView:
        """`group` may be the beginning of a group's id."""
        view, members, _ = await find_group(await self._read(), group, sight)
        samples = await self._decisions.get_many([member.id for member in members[:SAMPLES]])
        samples = samples or [await self._decisions.get(members[0].id)]  # it says that they were pruned meanwhile
        alike = [FieldCondition("type", samples[0].type.value), FieldCondition("signature", samples[0].signature, "ne")]
        alike += in_sight(sight)
        others = await self._decisions.search(alike, limit=SAMPLES)
        seen = SeenCornerstones(self.project_lookup, sight)
        compared = comparison.CaseComparison(self._server.runtime.exceptions.rules, self._decisions, sight, seen.sees)
        near = await compared.neighbour(samples[0])
        cases = {each.case for each in members}
        well = await succeeded_jobs.succeeded_contexts(
            self._server.store, self._server.runtime.flows.deployed, view.flows, view.tasks, cases, sight
        )
        waiting, failed = await self._server.runtime.recovery.groups.open_counts(members)
        return FailureView(
            group=view,
            open_waiting=waiting,
            open_failed=failed,
            samples=await self._views(samples),
            values=common_values(samples),
            candidates=distinguishing_conditions(samples, near.context if near is not None else None, others, well),
            compared=await compared.compare(samples[0]),
        )

    async def apply_rules(
        self,
        group: str,
        *,
        who: str,
        retry: bool = False,
        skip: Sequence[str] = (),
        application: str = "",
        sight: Sight = EVERYTHING,
        task_roles: Collection[str] | None = None,
    ) -> ApplyResult:
        """Ask the rules again, now, about every failure of the group that waits, or that its case failed by: such a
        case goes on from where it stood, unless it is in `skip` or was run again. `retry`: what no rule takes up is
        tried again as it is."""
        view, members, _ = await find_group(await self._read(), group, sight)
        members = [each for each in members if {started_case(each), root_of(each.case)}.isdisjoint(skip)]
        groups = self._server.runtime.recovery.groups
        applied = await groups.apply(
            view.id, members, who=who, retry=retry, application=application, task_roles=task_roles, sight=sight
        )
        await self._settled()
        return applied

    # Decisions

    async def decisions(
        self, query: DecisionQuery = DecisionQuery(), *, sight: Sight = EVERYTHING
    ) -> list[DecisionView]:
        if query.handling and not query.group:
            raise InvalidRequest(
                "handling: say of which group of failures; `mendflow failures` lists them", field="group"
            )
        fields = {"item": query.item, "state": query.state, "conclusion.rules": query.rules}
        where = [FieldCondition(field, value) for field, value in fields.items() if value]
        if (foreign := self._foreign(query.case)) is not None:
            where = [FieldCondition("case", foreign.case), FieldCondition("engine", foreign.engine), *where]
        elif query.case:
            where = [*await self._about(await self._id(query.case, sight=sight)), *where]
        if query.group:
            found = await find_group(await self._read(), query.group, sight)
            if query.handling:
                return await self._views(await self._of_handling(found, query, where), found.settled)
            members = found.members
            where += [FieldCondition("signature", members[0].signature), FieldCondition("type", members[0].type.value)]
        where += in_sight(sight)
        return await self._views(await self._decisions.search(where, limit=query.limit, offset=query.offset))

    async def _of_handling(
        self, found: FoundGroup, query: DecisionQuery, where: Sequence[FieldCondition]
    ) -> list[Decision]:
        """Those of a group that were handled as the query says, and of which all else holds, the newest first."""
        handled = (each for each in found.members if handling_of(each, found.settled) == query.handling)
        kept = [each for each in handled if _holds(where, each)]
        kept.sort(key=lambda each: (each.at, len(each.id), each.id), reverse=True)  # as they are searched
        return await self._decisions.get_many([each.id for each in kept[query.offset : query.offset + query.limit]])

    async def _about(self, case: CaseId) -> list[FieldCondition]:
        """Decisions about a case of this server; if there are none of that id, about cases of other engines."""
        known = await self._server.runtime.manager.document(case) is not None
        return [FieldCondition("case", case), *([FieldCondition("engine", "")] if known else [])]

    async def decision(self, decision: str) -> DecisionView:
        found = await self._decisions.find(decision)
        if found is None:  # the server of HTTP takes the slash off the end of a path
            found = await self._decisions.find(f"{decision}/")
        return await view_of(found or await self._decisions.get(decision), self._conditions, whole=True)

    async def reject_choice(
        self, wish: RejectRequest, *, who: str, task_roles: Collection[str] | None = None
    ) -> DecisionView:
        """Reject a wrong choice and run the right exlet or worklet instead. Returns the decision that replaces it; or,
        if nobody says what is right, the wrong one, which an author is asked about."""
        if wish.withdraw:
            return await self._decision_view(
                await self._administration.withdraw_rejection(wish.decision, note=wish.note, who=who)
            )
        if not wish.exlet and wish.flow is None and not wish.condition:
            return await self._decision_view(
                await self._administration.ask_to_judge(wish.decision, note=wish.note, who=who)
            )
        exlet, wrong = _named(wish), await self._decisions.get(wish.decision)
        known = wrong.type is ExceptionType.SELECTION or wish.flow is not None
        service, in_rule = rule_service.RuleService(self._server), bool(wish.condition)
        about = (wrong.flow, wrong.project)
        right = await self._administration.reject(
            wish.decision,
            exlet=exlet,
            steps=wish.flow if known else await service.exlet_to_send(exlet, None, *about, in_rule=in_rule),
            condition=wish.condition,
            note=wish.note,
            who=who,
            task_roles=task_roles,
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

    async def _views(self, decisions: Sequence[Decision], known: SettledCases | None = None) -> list[DecisionView]:
        """`known`: the cases that are settled, where that was read just now."""
        settled = await settled_by(self._server.store, decisions) if known is None else known
        conditions = self._conditions
        return [
            msgspec.structs.replace(await view_of(each, conditions), handling=handling_of(each, settled))
            for each in decisions
        ]

    async def _decision_view(self, decision: Decision) -> DecisionView:
        await self._settled()
        return await view_of(decision, self._conditions)

    # One history

    async def history(self, case: str, *, last: int = 0, brief: bool = False) -> list[HistoryEntry]:
        """Everything, or only the `last` entries; `brief`: without what the engine ordered."""
        if (foreign := self._foreign(case)) is not None:
            whole = await self.foreign_history(foreign)
            return whole[-last:] if last else whole
        document = await self._document(await self._id(case))
        return await CaseHistory(self._server, await self._read(), document).entries(last, brief=brief)

    # From outside, and by hand

    async def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        if (foreign := self._foreign(case)) is not None:
            return await self._administration.triggers(foreign.case, item, engine=foreign.engine)
        return await self._administration.triggers(await self._id(case), item)

    async def raise_trigger(
        self,
        case: str,
        trigger: str,
        item: str = "",
        *,
        who: str,
        data: Value = None,
        scenario: str = "",
        suggestion: str = "",
    ) -> DecisionView:
        """Report that something happened. If no rule knows the trigger, the case is suspended until a person mends
        it."""
        meant = await self._meant(case)
        return await self._decision_view(
            await self._administration.raise_exception(
                meant.case,
                trigger,
                item,
                who=who,
                data=data,
                scenario=scenario,
                suggestion=suggestion,
                engine=meant.engine,
            )
        )

    async def administration_tasks(
        self, query: AdministrationQuery = AdministrationQuery(), *, sight: Sight = EVERYTHING
    ) -> list[AdministrationTaskView]:
        case = await self._meant(query.case, sight) if query.case else None
        found = await administration_tasks(self._decisions, query, case, sight)
        return [administration_view(each) for each in found]

    async def administration_task(self, task: str) -> AdministrationTaskView:
        return administration_view(await administration_task(self._decisions, task))

    async def _meant(self, case: str, sight: Sight = EVERYTHING) -> EngineCaseId:
        """The case that is meant, ours or another engine's. Raises NotFound, also if it is not in sight."""
        await self.demand_seen(case, sight)
        if (foreign := self._foreign(case)) is not None:
            await self._engines.case(foreign)
            return foreign
        id = await self._id(case, sight=sight)
        await self._document(id)
        return EngineCaseId("", id)

    async def mend(
        self, case: str, wish: RepairRequest, *, who: str, task_roles: Collection[str] | None = None
    ) -> DecisionView:
        meant, exlet = await self._meant(case), _named(wish)
        flow, project = await self._flow_and_project(meant)
        decision = await self._administration.mend(
            meant.case,
            engine=meant.engine,
            exlet=exlet,
            steps=await rule_service.RuleService(self._server).exlet_to_send(
                exlet, wish.flow, wish.rules or flow, project, in_rule=bool(wish.condition)
            ),
            condition=wish.condition,
            item=wish.item,
            decision=wish.decision,
            rules=wish.rules,
            note=wish.note,
            who=who,
            task_roles=task_roles,
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


def _named(wish: RepairRequest | RejectRequest) -> str:
    """The exlet's name; an exlet that is sent along contains its name."""
    name = wish.exlet or (str(wish.flow.name) if wish.flow else "")
    if not name:
        raise InvalidRequest("say what is to be done: name an exlet, or send one along", field="exlet")
    return name


def _holds(where: Sequence[FieldCondition], decision: DecisionSummary) -> bool:
    """Whether the decision has these values, of the fields that decisions are searched by."""
    rules = decision.conclusion.rules if decision.conclusion is not None else ""
    known = {
        "case": decision.case,
        "engine": decision.engine,
        "item": decision.item,
        "state": decision.state,
        "conclusion.rules": rules,
    }
    return all(known[each.field] == each.value for each in where)
