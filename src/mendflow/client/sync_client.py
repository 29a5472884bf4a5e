"""The client for scripts: the methods of `Client`, as plain functions. Each call waits for its answer and does nothing
else."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from mendflow.client.sync_data import SyncData
from mendflow.client.sync_data_sets import SyncDataSets
from mendflow.client.sync_sites import SyncSites
from mendflow.client.sync_soap import SyncSoap
from mendflow.core.model.alerts import AlertView, DeliveryResult, Notification, Severity, WebhookSpec, WebhookView
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import (
    ApplyResult,
    CompensationView,
    DecisionQuery,
    DecisionView,
    DrainResult,
    EngineOrder,
    EngineView,
    EventAnswer,
    Explanation,
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
from mendflow.core.model.stats import StatsView
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CasePage,
    CaseQuery,
    CaseView,
    ChangeEvent,
    ChangeKind,
    CountsView,
    FlowView,
    Health,
    ImportReport,
    ItemPage,
    ItemView,
    JobPage,
    JobQuery,
    JobView,
    PilotView,
    ServerView,
    UserTaskView,
)
from mendflow.core.recovery.patterns import Patterns


class SyncClient(SyncSites, SyncData, SyncDataSets, SyncSoap):
    """A client of one server. Use it as a context manager, or call `close` in the end."""

    def deploy(self, flow: Flow) -> FlowView:
        return self._run(self._client.deploy(flow))

    def flows(self) -> list[FlowView]:
        return self._run(self._client.flows())

    def flow(self, name: str) -> FlowView:
        return self._run(self._client.flow(name))

    def start(
        self,
        name: str,
        inputs: dict[str, Value] | None = None,
        *,
        cache_from: str = "",
        key: str = "",
        notify: str = "",
    ) -> CaseView:
        return self._run(self._client.start(name, inputs, cache_from=cache_from, key=key, notify=notify))

    def find_cases(self, query: CaseQuery) -> CasePage:
        return self._run(self._client.find_cases(query))

    def count_cases(self, query: CaseQuery | None = None, *, by: str = "") -> CountsView:
        return self._run(self._client.count_cases(query, by=by))

    def find_jobs(self, query: JobQuery) -> JobPage:
        return self._run(self._client.find_jobs(query))

    def count_jobs(self, query: JobQuery | None = None, *, by: str = "") -> CountsView:
        return self._run(self._client.count_jobs(query, by=by))

    def export(
        self,
        path: str | Path,
        cases: Sequence[str] = (),
        *,
        everything: bool = False,
        where: str = "",
        files: bool = True,
        leave_out_unreachable: bool = False,
    ) -> Path:
        return self._run(
            self._client.export(
                path,
                cases,
                everything=everything,
                where=where,
                files=files,
                leave_out_unreachable=leave_out_unreachable,
            )
        )

    def import_archive(
        self, path: str | Path, *, as_new: bool = False, skip_existing: bool = False, resume: bool = False
    ) -> ImportReport:
        return self._run(self._client.import_archive(path, as_new=as_new, skip_existing=skip_existing, resume=resume))

    def find_items(
        self,
        case: str,
        *,
        state: str = "",
        name: str = "",
        where: str = "",
        limit: int = 1000,
        offset: int = 0,
        after: str = "",
    ) -> ItemPage:
        found = self._client.find_items(
            case, state=state, name=name, where=where, limit=limit, offset=offset, after=after
        )
        return self._run(found)

    def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        return self._run(self._client.cases(flow=flow, status=status, limit=limit, offset=offset))

    def case(self, case: str) -> CaseView:
        return self._run(self._client.case(case))

    def flow_of(self, case: str) -> Flow:
        return self._run(self._client.flow_of(case))

    def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        return self._run(self._client.items(case, state=state, name=name, limit=limit, offset=offset, after=after))

    def item(self, case: str, item: str) -> ItemView:
        return self._run(self._client.item(case, item))

    def why(self, subject: str) -> Explanation:
        return self._run(self._client.why(subject))

    def suspend(self, case: str, item: str = "") -> CaseView:
        return self._run(self._client.suspend(case, item))

    def resume(self, case: str, item: str = "") -> CaseView:
        return self._run(self._client.resume(case, item))

    def cancel(self, case: str, item: str = "", *, reason: str = "") -> CaseView:
        return self._run(self._client.cancel(case, item, reason=reason))

    def rerun(self, case: str, *, from_failed: bool = False) -> CaseView:
        return self._run(self._client.rerun(case, from_failed=from_failed))

    def send(self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = "") -> CaseView:
        return self._run(self._client.send(case, channel, value, correlation=correlation, id=id))

    def events(
        self, case: str = "", after: int = 0, *, kind: ChangeKind | Literal[""] = "", patience_s: float = 60.0
    ) -> Iterator[ChangeEvent]:
        stream = self._client.events(case, after, kind=kind, patience_s=patience_s)

        async def following() -> ChangeEvent | None:
            return await anext(stream, None)

        while (happening := self._run(following())) is not None:
            yield happening

    def wait(self, case: str, *, timeout_s: float | None = None, patience_s: float = 60.0) -> CaseView:
        return self._run(self._client.wait(case, timeout_s=timeout_s, patience_s=patience_s))

    def jobs(self, query: JobQuery | None = None) -> list[JobView]:
        return self._run(self._client.jobs(query))

    def job(self, job: str) -> JobView:
        return self._run(self._client.job(job))

    def requeue(self, job: str, *, reason: str = "") -> JobView:
        return self._run(self._client.requeue(job, reason=reason))

    def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        return self._run(self._client.alerts(severity=severity, every=every, limit=limit))

    def acknowledge(self, alert: str) -> AlertView:
        return self._run(self._client.acknowledge(alert))

    def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        return self._run(self._client.notifications(after=after, limit=limit))

    def follow_notifications(self, after: int) -> Iterator[Notification]:
        stream = self._client.follow_notifications(after)

        async def following() -> Notification:
            return await anext(stream)

        while True:
            yield self._run(following())

    def webhooks(self) -> list[WebhookView]:
        return self._run(self._client.webhooks())

    def add_webhook(self, wish: WebhookSpec) -> WebhookView:
        return self._run(self._client.add_webhook(wish))

    def remove_webhook(self, webhook: str) -> WebhookView:
        return self._run(self._client.remove_webhook(webhook))

    def try_webhook(self, webhook: str) -> DeliveryResult:
        return self._run(self._client.try_webhook(webhook))

    def log(self, job: str) -> str:
        return self._run(self._client.log(job))

    def pilots(self) -> list[PilotView]:
        return self._run(self._client.pilots())

    def servers(self) -> list[ServerView]:
        return self._run(self._client.servers())

    def stats(self, *, running: int = 0) -> list[StatsView]:
        return self._run(self._client.stats(running=running))

    def worklist(self, *, role: str = "", state: str = "", case: str = "", limit: int = 100) -> list[UserTaskView]:
        return self._run(self._client.worklist(role=role, state=state, case=case, limit=limit))

    def user_task(self, task: str) -> UserTaskView:
        return self._run(self._client.user_task(task))

    def claim(self, task: str) -> UserTaskView:
        return self._run(self._client.claim(task))

    def release(self, task: str) -> UserTaskView:
        return self._run(self._client.release(task))

    def complete(self, task: str, outputs: Value = None, *, comment: str = "") -> UserTaskView:
        return self._run(self._client.complete(task, outputs, comment=comment))

    def reject(self, task: str, *, comment: str = "") -> UserTaskView:
        return self._run(self._client.reject(task, comment=comment))

    def upload(self, path: str | Path, name: str = "") -> FileRef:
        return self._run(self._client.upload(path, name))

    def has(self, sha256: str) -> bool:
        return self._run(self._client.has(sha256))

    def download(self, ref: FileRef | str, path: str | Path) -> Path:
        return self._run(self._client.download(ref, path))

    def health(self) -> Health:
        return self._run(self._client.health())

    def rule_sets(self) -> list[RuleSetView]:
        return self._run(self._client.rule_sets())

    def rule_set(self, name: str, version: int | None = None) -> RuleSetView:
        return self._run(self._client.rule_set(name, version))

    def rule_versions(self, name: str) -> list[RuleSetView]:
        return self._run(self._client.rule_versions(name))

    def put_rules(self, rules: RuleSet, *, note: str = "", expected: int | None = None) -> RuleSetView:
        return self._run(self._client.put_rules(rules, note=note, expected=expected))

    def restore_rules(self, name: str, version: int) -> RuleSetView:
        return self._run(self._client.restore_rules(name, version))

    def promote_rule(self, name: str, meant: RuleSelector) -> RuleChange:
        return self._run(self._client.promote_rule(name, meant))

    def retire_rule(self, name: str, meant: RuleSelector) -> RuleChange:
        return self._run(self._client.retire_rule(name, meant))

    def add_rule(self, wish: RuleSpec) -> RuleAddition:
        return self._run(self._client.add_rule(wish))

    def try_rule(self, wish: RuleSpec, *, limit: int = 10_000) -> TrialView:
        return self._run(self._client.try_rule(wish, limit=limit))

    def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]:
        return self._run(self._client.failures(since=since, flow=flow, limit=limit))

    def failure(self, group: str) -> FailureView:
        return self._run(self._client.failure(group))

    def apply_rules(self, group: str) -> ApplyResult:
        return self._run(self._client.apply_rules(group))

    def decisions(self, query: DecisionQuery | None = None) -> list[DecisionView]:
        return self._run(self._client.decisions(query))

    def decision(self, decision: str) -> DecisionView:
        return self._run(self._client.decision(decision))

    def reject_choice(self, wish: RejectRequest) -> DecisionView:
        return self._run(self._client.reject_choice(wish))

    def history(self, case: str) -> list[HistoryEntry]:
        return self._run(self._client.history(case))

    def xes(self, case: str = "", *, flow: str = "", limit: int = 1000) -> str:
        return self._run(self._client.xes(case, flow=flow, limit=limit))

    def triggers(self, case: str, item: str = "") -> list[TriggerView]:
        return self._run(self._client.triggers(case, item))

    def raise_trigger(self, case: str, trigger: str, item: str = "", *, data: Value = None) -> DecisionView:
        return self._run(self._client.raise_trigger(case, trigger, item, data=data))

    def mend(self, case: str, wish: RepairRequest) -> DecisionView:
        return self._run(self._client.mend(case, wish))

    def compensations(self) -> list[CompensationView]:
        return self._run(self._client.compensations())

    def register_compensation(self, task: str, flow: str = "") -> list[CompensationView]:
        return self._run(self._client.register_compensation(task, flow))

    def levels(self) -> list[LevelView]:
        return self._run(self._client.levels())

    def drain(self, level: str) -> DrainResult:
        return self._run(self._client.drain(level))

    def patterns(self) -> Patterns:
        return self._run(self._client.patterns())

    def add_patterns(self, patterns: Patterns) -> Patterns:
        return self._run(self._client.add_patterns(patterns))

    def engines(self) -> list[EngineView]:
        return self._run(self._client.engines())

    def register_engine(self, name: str) -> EngineView:
        return self._run(self._client.register_engine(name))

    def engine_event(self, engine: str, event: ExceptionEvent) -> EventAnswer:
        return self._run(self._client.engine_event(engine, event))

    def engine_orders(self, engine: str, *, wait_ms: int = 0) -> list[EngineOrder]:
        return self._run(self._client.engine_orders(engine, wait_ms=wait_ms))

    def engine_done(self, engine: str, order: str, answer: Value = True) -> list[EngineOrder]:
        return self._run(self._client.engine_done(engine, order, answer))
