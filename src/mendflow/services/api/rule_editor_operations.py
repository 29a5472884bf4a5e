"""The part of the domain that serves an editor of rules."""

from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.repair_views import RuleChange
from mendflow.core.model.rule_views import (
    ApplyProgress,
    ContextPath,
    DifferencesView,
    EvaluationRequest,
    EvaluationView,
    ExletResults,
    FailureCounts,
    PrimitiveView,
    ReadRulesView,
    ReplayView,
    RuleCheckRequest,
    RuleCheckView,
    RuleFileView,
    RuleRevision,
    RuleTasksView,
    TaskMapping,
    TrialAgreement,
    ValueCount,
)
from mendflow.core.model.rules import RuleSet
from mendflow.lazy import LazyModule
from mendflow.services.api.domain_reader import DomainReader
from mendflow.services.api.seen_cornerstones import SeenCornerstones
from mendflow.services.base.visibility import in_sight
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.failures import find_group, is_replaced
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import FieldCondition

if TYPE_CHECKING:
    from mendflow.core.recovery import primitive_schema
    from mendflow.services.api import rule_service
    from mendflow.services.base import reading_tasks
    from mendflow.services.recovery import failure_counts, succeeded_jobs
    from mendflow.services.recovery.rules import comparison, preview
else:
    rule_service = LazyModule("mendflow.services.api.rule_service")
    reading_tasks = LazyModule("mendflow.services.base.reading_tasks")
    primitive_schema = LazyModule("mendflow.core.recovery.primitive_schema")
    comparison = LazyModule("mendflow.services.recovery.rules.comparison")
    failure_counts = LazyModule("mendflow.services.recovery.failure_counts")
    succeeded_jobs = LazyModule("mendflow.services.recovery.succeeded_jobs")
    preview = LazyModule("mendflow.services.recovery.rules.preview")


class RuleFiles(Protocol):
    """Reads and writes rules as the texts of files of YAWL's worklet service."""

    def read(self, text: str, name: str, types: dict[str, str]) -> ReadRulesView: ...

    def write(self, rules: RuleSet) -> RuleFileView: ...


class RuleEditorOperations(DomainReader):
    def __init__(self, server: Server, rule_files: RuleFiles | None = None) -> None:
        super().__init__(server)
        self._rule_files = rule_files

    async def would_teach(self, exlet: str, rules: str, project: str) -> bool:
        """Whether whoever runs this exlet on a case of this project adds it to the rules of this name: it is known, and
        not from them."""
        await self._server.runtime.exceptions.rules.refresh(rules)
        try:
            return await rule_service.RuleService(self._server).exlet_to_send(exlet, None, rules, project) is not None
        except NotFound:
            return False

    # Before rules are stored

    async def evaluate_rules(self, wish: EvaluationRequest, *, sight: Sight = EVERYTHING) -> EvaluationView:
        return await self._preview.evaluate(wish)

    async def replay_rules(self, rules: RuleSet, *, limit: int = 100_000, sight: Sight = EVERYTHING) -> ReplayView:
        return await self._preview.replay(rules, limit, sight)

    async def check_rules(self, wish: RuleCheckRequest) -> RuleCheckView:
        checked = await self._preview.check(wish)
        unknown = self._server.runtime.recovery.sources.unknown(wish.rules) if wish.rules is not None else []
        told = [f"a rule reads sources.{name}, which is not registered" for name in unknown]
        return replace(checked, warnings=[*checked.warnings, *told])

    async def read_xrs(self, text: str, name: str = "", *, sight: Sight = EVERYTHING) -> ReadRulesView:
        """The rules in a text. Its data is typed by what the flow of the set declares."""
        read = await self._read_rules(text, name, {})
        types = await self._declared_types(read.rules.name, sight)
        return await self._read_rules(text, name, types) if types else read

    async def _read_rules(self, text: str, name: str, types: dict[str, str]) -> ReadRulesView:
        files, task = self._files(), reading_tasks.RuleText(text, name, types)
        reads = self._server.long_reads
        return await reads.read(len(text), task, ReadRulesView, lambda: files.read(text, name, types))

    async def rules_as_xrs(self, name: str, version: int | None = None, *, sight: Sight = EVERYTHING) -> RuleFileView:
        newest = self._rule_store.newest(name)
        wanted = newest if version is None else await self._rule_store.version(name, version)
        shown, _ = await SeenCornerstones(self.project_lookup, sight).of(wanted)
        return self._files().write(shown)

    def _files(self) -> RuleFiles:
        if self._rule_files is None:
            raise Conflict("this server was built without rule files; read and write them with `mendflow rules`")
        return self._rule_files

    async def _declared_types(self, flow: str, sight: Sight) -> dict[str, str]:
        try:
            found = self._server.runtime.flows.newest(flow, sight).flow
        except NotFound:
            return {}
        return {name: declared.type for name, declared in found.inputs.items()}

    # One rule

    async def change_rule(self, name: str, change: RuleRevision, *, who: str) -> RuleChange:
        changed = await self._server.runtime.administration.change_rule(name, change, who=who)
        await self._settled()
        return changed

    async def trial_agreement(self, name: str, *, sight: Sight = EVERYTHING) -> list[TrialAgreement]:
        return await failure_counts.trial_agreement(await self._read(), self._rule_store.newest(name), sight)

    # The tasks and versions of its flow

    async def rule_tasks(self, name: str) -> RuleTasksView:
        view = await self._server.runtime.administration.rule_tasks(name)
        return replace(
            view, unknown_sources=self._server.runtime.recovery.sources.unknown(self._rule_store.newest(name))
        )

    async def map_tasks(self, name: str, mapping: TaskMapping, *, who: str) -> RuleTasksView:
        view = await self._server.runtime.administration.map_tasks(name, mapping, who=who)
        await self._settled()
        return view

    # What can be written into rules

    async def context_paths(
        self, name: str, type: str = "", task: str = "", *, sight: Sight = EVERYTHING
    ) -> list[ContextPath]:
        return await self._preview.paths(name, ExceptionType(type) if type else None, task, sight)

    async def primitives(self) -> list[PrimitiveView]:
        return primitive_schema.primitive_views()

    async def differences(
        self,
        decision: str = "",
        group: str = "",
        rules: str = "",
        rule: int | None = None,
        task: str = "",
        *,
        sight: Sight = EVERYTHING,
    ) -> DifferencesView:
        at_hand = await self._at_hand(decision, group, sight)
        seen = SeenCornerstones(self.project_lookup, sight)
        compared = comparison.CaseComparison(self._rule_store, self._past, sight, seen.sees)
        return await compared.compare(at_hand, rules=rules, rule=rule, task=task)

    async def _at_hand(self, decision: str, group: str, sight: Sight) -> Decision:
        if decision:
            return await self._past.get(decision)
        _, members, _ = await find_group(await self._read(), group, sight)
        return await self._past.get(members[0].id)

    # How they have done

    async def exlet_results(self, *, since: Instant = 0, sight: Sight = EVERYTHING) -> list[ExletResults]:
        return await failure_counts.exlet_results(await self._read(), since=since, sight=sight)

    async def failure_counts(
        self, group: str, *, period_ms: int = 0, since: Instant = 0, sight: Sight = EVERYTHING
    ) -> FailureCounts:
        found = await find_group(await self._read(), group, sight)
        return failure_counts.counts_over_time(found, period_ms, since)

    async def failure_values(
        self, group: str, *, path: str = "", samples: int = 1_000, sight: Sight = EVERYTHING
    ) -> list[ValueCount]:
        view, members, _ = await find_group(await self._read(), group, sight)
        others = [FieldCondition("type", view.type.value), FieldCondition("signature", members[0].signature, "ne")]
        here = await self._past.get_many([each.id for each in members[:samples]])
        found = await self._past.search([*others, *in_sight(sight)], limit=samples)
        elsewhere = [each for each in found if not is_replaced(each)]
        failed, deployed = {each.case for each in members}, self._server.runtime.flows.deployed
        well = await succeeded_jobs.succeeded_contexts(
            self._server.store, deployed, view.flows, view.tasks, failed, sight
        )
        return failure_counts.value_counts(here, elsewhere, path, well)

    # An application of rules to a group

    async def apply_progress(self, group: str, *, sight: Sight = EVERYTHING) -> ApplyProgress:
        return self._server.runtime.recovery.groups.progress(await self._known_group(group, sight), sight)

    async def stop_apply(self, group: str, *, who: str, sight: Sight = EVERYTHING) -> ApplyProgress:
        return self._server.runtime.recovery.groups.stop(await self._known_group(group, sight), sight)

    async def _known_group(self, group: str, sight: Sight) -> str:
        """The whole id of a group of which something is in sight. Failures are not read again and again while rules are
        applied to them."""
        if self._server.runtime.recovery.groups.has_run(group, sight):
            return group
        return (await find_group(await self._read(), group, sight)).group.id

    @property
    def _rule_store(self) -> RuleStore:
        return self._server.runtime.exceptions.rules

    @property
    def _past(self) -> DecisionStore:
        return self._server.runtime.exceptions.decisions

    @property
    def _preview(self) -> "preview.RulePreview":
        return preview.RulePreview(self._rule_store, self._past, self._server.rule_trials, self._server.long_reads)
