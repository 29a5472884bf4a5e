"""The domain: everything that a person or a program can ask of a server, in one place.

The HTTP server, the simulator and the tests call this and nothing deeper. Every method raises a `RequestError` for what
the caller can put right, and every answer waits for the ledger, so whatever a caller was told is on disk. The
operations are in the modules that it is made of; what is about all of them stands here. A `case` may be the word
"last"; `who` is the name of whoever asks, as the server's authentication tells it."""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.data import StoreAnswer, StoreRequest
from mendflow.core.model.errors import NotFound, StoreUnavailable, unusable_file
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, Explanation
from mendflow.core.model.stats import OTHER, StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import (
    ChangeEvent,
    Health,
    PilotView,
    ServerView,
)
from mendflow.core.recovery.undo_sentences import (
    ITEMS_SHOWN,
    undoing_names,
    undone_by,
    undone_in_flow,
    undone_sentences,
)
from mendflow.lazy import LazyModule
from mendflow.services.api.archive_operations import ArchiveOperations
from mendflow.services.api.audit_operations import AuditOperations
from mendflow.services.api.case_operations import CaseOperations
from mendflow.services.api.comparison_operations import ComparisonOperations
from mendflow.services.api.connection_operations import ConnectionOperations
from mendflow.services.api.flow_operations import FlowOperations
from mendflow.services.api.graph_operations import FlowTexts, GraphOperations
from mendflow.services.api.learning_operations import LearningOperations
from mendflow.services.api.limit_operations import LimitOperations
from mendflow.services.api.metrics.all_servers import PeerStats, collect_all_stats
from mendflow.services.api.overview_operations import OverviewOperations
from mendflow.services.api.project_operations import ProjectOperations
from mendflow.services.api.repair_operations import RepairOperations
from mendflow.services.api.reported_files import ReportedFiles
from mendflow.services.api.result_operations import ResultOperations
from mendflow.services.api.retention_operations import RetentionOperations
from mendflow.services.api.retry_waits import waiting_for, with_wait
from mendflow.services.api.rule_editor_operations import RuleEditorOperations, RuleFiles
from mendflow.services.api.schedule_operations import ScheduleOperations
from mendflow.services.api.secret_operations import SecretOperations
from mendflow.services.api.session_operations import SessionOperations
from mendflow.services.api.site_operations import SiteOperations
from mendflow.services.api.size_operations import SizeOperations
from mendflow.services.api.source_operations import SourceOperations
from mendflow.services.api.task_operations import TaskOperations
from mendflow.services.api.token_operations import TokenOperations
from mendflow.services.base.events import EventStream
from mendflow.services.cluster.overview import ClusterOverview
from mendflow.services.observe.replayed_events import listen
from mendflow.services.recovery.decisions import name_of
from mendflow.services.runtime.server import Server

if TYPE_CHECKING:
    from mendflow.services.api import reasons, schedule_reasons
else:
    reasons = LazyModule("mendflow.services.api.reasons")
    schedule_reasons = LazyModule("mendflow.services.api.schedule_reasons")

REPAIRS_SHOWN = 50


class Domain(
    RuleEditorOperations,
    RepairOperations,
    CaseOperations,
    FlowOperations,
    OverviewOperations,
    GraphOperations,
    ComparisonOperations,
    TaskOperations,
    ArchiveOperations,
    SiteOperations,
    ConnectionOperations,
    ResultOperations,
    SizeOperations,
    SourceOperations,
    LearningOperations,
    ScheduleOperations,
    LimitOperations,
    ProjectOperations,
    RetentionOperations,
    SecretOperations,
    TokenOperations,
    SessionOperations,
    AuditOperations,
):
    """`chance` makes new names: so many random bytes, in hexadecimal. `elsewhere` asks other servers for their metrics,
    if there may be some. `rule_files` reads and writes rules as the texts of files, `flow_texts` reads flows."""

    def __init__(
        self,
        server: Server,
        *,
        chance: Callable[[int], str] = secrets.token_hex,
        elsewhere: PeerStats | None = None,
        rule_files: RuleFiles | None = None,
        flow_texts: FlowTexts | None = None,
    ) -> None:
        super().__init__(server, rule_files)
        self._flow_texts = flow_texts
        self._elsewhere = elsewhere
        self._chance = chance
        self._reported_files = ReportedFiles(server, self.file_readers)

    # Cases

    async def events(
        self, case: str = "", after: int = 0, *, kind: str = "", sight: Sight = EVERYTHING
    ) -> AsyncIterator[ChangeEvent]:
        """Changes as they happen: of one case from the given serial on (ends with the case), or of all cases from now
        on; of every kind, or of one: "case", "item", "user-task", "alert", "message" or "repair"."""
        told = self._server.runtime.events
        source: AsyncIterator[ChangeEvent] = told.listen("", 0, kind=kind, over=False)
        if case:
            document = await self._document(await self._id(case))
            source = listen(told, document, (await self._items(document.id)).rows(""), after, kind)
        async for event in source:
            if await self.project_lookup.sees_event(sight, event):
                yield event

    def event_stream(self) -> EventStream:
        """The changes of all cases of this server. Raises StoreUnavailable."""
        return self._server.runtime.events

    def now(self) -> Instant:
        return self._server.clock.now()

    @property
    def is_shared(self) -> bool:
        """Whether other servers may be on the same store."""
        return self._server.membership.shared

    # Reasons

    async def why(self, subject: str, *, shows_env: bool = True) -> Explanation:
        """`subject` is a case, a job id `CASE/SERIAL`, an item `CASE:ITEM`, a pilot, or a schedule. `shows_env`:
        whether the caller may see values of the environments of jobs."""
        if (foreign := await self._foreign_subject(subject)) is not None:
            meant, of_item = foreign
            asked = DecisionQuery(case=name_of(meant), item=of_item, limit=REPAIRS_SHOWN)
            reason = await self.foreign_reason(meant, of_item)
            return reasons.with_repairs(reason, await self.decisions(asked))
        try:
            told = await reasons.why(self, self._server, subject, shows_env=shows_env)
        except NotFound:
            if (pruned := await self._retention.pruned(CaseId(subject))) is not None:
                raise NotFound(pruned.sentence()) from None
            if (schedule := await self._schedules.find(subject)) is None:
                raise
            return reasons.with_repairs(schedule_reasons.why_schedule(schedule), [])
        case, item = await self._case_and_item(told.subject)
        repairs = await self.decisions(DecisionQuery(case=case, item=item, limit=REPAIRS_SHOWN))
        undone = await self._undone(case, item, repairs)
        explained = reasons.with_repairs(told, repairs, undone)
        levels = self._server.runtime.levels
        waiting = waiting_for(case, item, levels.entries())
        if not waiting:
            return explained
        is_idle = not any(count.running for count in (await self.case(case)).counts)
        return with_wait(explained, waiting, repairs, levels.waits_ms, is_idle=is_idle)

    async def _undone(self, case: str, item: str, repairs: Sequence[DecisionView]) -> list[str]:
        """What was undone of a case, or that an item was, in sentences."""
        if item:
            found = undone_by(await self.decisions(DecisionQuery(case=case, limit=REPAIRS_SHOWN)), item)
            return [found] if found else []
        try:
            view = await self.case(case)
        except NotFound:
            return []  # it is a pilot
        undoing = undoing_names(await self.flow_of(view.id))
        names = [count.name for count in view.counts if count.name in undoing]
        items = [item for name in names for item in await self.items(view.id, name=name, limit=ITEMS_SHOWN + 1)]
        by_flow = undone_in_flow(undoing, sorted(items, key=lambda each: each.ended_at))
        return [*undone_sentences(repairs), *by_flow]

    async def _case_and_item(self, subject: str) -> tuple[str, str]:
        """What a case, an item or a job is of; of a whole case the item is empty."""
        case, colon, item = subject.partition(":")
        if not colon and "/" in subject:
            job = await self.job(subject)
            return job.case, job.spec.item
        return case, item

    # Pilots and servers

    async def pilots(self, *, sight: Sight = EVERYTHING) -> list[PilotView]:
        """The pilots of all servers on the store, with those of their jobs that are in sight."""
        found = await self._overview().pilots(self._server.runtime.meta.pilot_views())
        if sight.projects is None:
            return found
        return [
            msgspec.structs.replace(each, running=[job for job in each.running if await self.is_seen(job, sight)])
            for each in found
        ]

    async def servers(self) -> list[ServerView]:
        return self._overview().servers(self._server.health())

    async def stats(self, *, running: int = 0, everywhere: bool = True, sight: Sight = EVERYTHING) -> list[StatsView]:
        """Metrics of the live servers, the one that is asked first, or of that one alone; with the `running` jobs of
        each that have run longest. Works also while the store is unreachable. What is counted by flow, rule set or
        limit is shown for those in sight; what all beyond a limit have together, for who sees everything."""
        found = await collect_all_stats(self._server, self._elsewhere if everywhere else None, running=running)
        return found if sight.projects is None else [await self._stats_in_sight(each, sight) for each in found]

    async def _stats_in_sight(self, stats: StatsView, sight: Sight) -> StatsView:
        limits = {each.name for each in await self.limits(sight=sight)}
        names = {each.flow for each in (*stats.cases, *stats.cases_ended)} | {each.flow for each in stats.messages}
        names |= stats.cases_started.keys() | {each.rules for each in stats.repairs}
        seen = {name for name in names if name != OTHER and await self._is_counted_for(name, sight)}
        return msgspec.structs.replace(
            stats,
            cases=[each for each in stats.cases if each.flow in seen],
            cases_started={flow: count for flow, count in stats.cases_started.items() if flow in seen},
            cases_ended=[each for each in stats.cases_ended if each.flow in seen],
            repairs=[each for each in stats.repairs if each.rules in seen],
            messages=[each for each in stats.messages if each.flow in seen],
            limits=[each for each in stats.limits if each.name in limits],
            projects=[each for each in stats.projects if sight.sees(each.project)],
            running=[each for each in stats.running if await self.is_seen(each.case, sight)],
        )

    async def _is_counted_for(self, flow: str, sight: Sight) -> bool:
        """Nothing is read of a flow that is known here. What cannot be told while the store is away is not shown."""
        if (project := self._server.runtime.flows.project_of(flow)) is not None:
            return sight.sees(project)
        try:
            return await self.is_of_seen_flow(flow, sight)
        except StoreUnavailable:
            return False

    def _overview(self) -> ClusterOverview:
        return ClusterOverview(self._server.membership, self._server.peers, self._server.meter)

    async def sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer:
        if request.projects and request.reports:
            request = await self._reported_files.checked(request, who)
        return await self._server.runtime.exchange.sync(request, who)

    # Stored files, notices, health

    async def store_file(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not match. The file is stored completely or
        not at all."""
        return await self._server.file_store.keep(Path(name).name, chunks, sha256=sha256)

    async def store_linked(self, name: str, link: str, *, sha256: str) -> FileRef:
        """Store a file that a pilot on this machine has linked into the server's folder."""
        return await self._server.file_store.keep_linked(Path(name).name, link, sha256)

    async def store_files(self, request: StoreRequest) -> StoreAnswer:
        """Store small files on the server: all of them, or none if one does not have its SHA-256."""
        await self._server.file_store.keep_many(request.contents)
        return StoreAnswer(stored=len(request.contents))

    def read_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        return self._server.file_store.read(sha256, offset)

    async def clone_file(self, sha256: str, target: Path) -> bool:
        """Write a stored file to a path of this machine without copying its blocks; false where that is not
        possible."""
        return await self._server.file_store.clone(sha256, target)

    async def file_size(self, sha256: str) -> int:
        size = await self._server.file_store.size(sha256)
        if size is None:
            raise unusable_file(sha256, await self._server.file_store.stored_flaw(sha256))
        return size

    async def notices(self, limit: int = 100) -> list[ChangeEvent]:
        """Messages for the administrator: failures of forgotten jobs, refused reports, lost pilots."""
        return [*await self._server.runtime.notices.latest(limit)]

    async def health(self) -> Health:
        return self._server.health()
