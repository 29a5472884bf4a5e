"""The face of one domain: everything that a person or a program can ask of it, in one place.

The HTTP server, the client's in-process twin and the tests call this and nothing deeper. Every method raises a
`RequestError` for what the caller can put right."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

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
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CasePage,
    CaseQuery,
    CaseView,
    ChangeEvent,
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
from mendflow.services.data.catalogue.face import DataOperations
from mendflow.services.data.sets.operations import DataSetOperations
from mendflow.services.scheduling.sites.operations import SiteOperations


class Domain(SiteOperations, DataOperations, DataSetOperations, Protocol):
    """`who` is the name of whoever asks, as the server's authentication tells it."""

    # flows
    async def deploy(self, flow: Flow) -> FlowView: ...
    async def flows(self) -> list[FlowView]: ...
    async def flow(self, name: str) -> FlowView: ...

    # cases; `case` may be the word "last"
    async def start(
        self, name: str, inputs: dict[str, Value], *, who: str, cache_from: str = "", key: str = "", notify: str = ""
    ) -> CaseView:
        """Start a case of the newest version of a deployed flow. `cache_from` names a case (or "last") whose unchanged
        jobs are taken over. `key` makes a repeated call harmless: the same key is the same case. `notify` is an address
        that is told of its end."""
        ...

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]: ...
    async def find_cases(self, query: CaseQuery) -> CasePage:
        """What fulfils the query's condition, in its order, page by page. Raises InvalidSearch."""
        ...

    async def count_cases(self, query: CaseQuery, *, by: str = "") -> CountsView: ...
    async def case(self, case: str) -> CaseView: ...
    async def flow_of(self, case: str) -> Flow:
        """The flow that the case was started with, which may not be the newest version."""
        ...

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        """In the order in which they last began. `after` is the `place` of an item: those after it. A page costs what
        is on it, and what `offset`, a state or a name pass over."""
        ...

    async def find_items(
        self,
        case: str,
        *,
        state: str = "",
        name: str = "",
        where: str = "",
        limit: int = 1000,
        offset: int = 0,
        after: str = "",
    ) -> ItemPage: ...
    async def item(self, case: str, item: str) -> ItemView: ...
    async def why(self, subject: str) -> Explanation:
        """`subject` is a case, a job id `CASE/SERIAL`, an item `CASE:ITEM`, or a pilot."""
        ...

    async def suspend(self, case: str, item: str = "", *, who: str) -> CaseView: ...
    async def resume(self, case: str, item: str = "", *, who: str) -> CaseView: ...
    async def cancel(self, case: str, item: str = "", *, who: str, reason: str = "") -> CaseView: ...
    async def rerun(self, case: str, *, who: str, from_failed: bool = False) -> CaseView:
        """A new case of the same flow and inputs. Unchanged completed jobs are taken over; `from_failed` refuses if
        nothing failed."""
        ...

    async def send(
        self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = ""
    ) -> CaseView: ...
    def events(self, case: str = "", after: int = 0, *, kind: str = "") -> AsyncIterator[ChangeEvent]:
        """Changes as they happen, of one case from the given serial on (ends with the case), or of all from now; of
        every kind, or of one: "case", "item", "user-task", "alert", "message" or "repair"."""
        ...

    # jobs and pilots
    async def jobs(self, query: JobQuery) -> list[JobView]: ...
    async def find_jobs(self, query: JobQuery) -> JobPage: ...
    async def count_jobs(self, query: JobQuery, *, by: str = "") -> CountsView: ...
    async def job(self, job: str) -> JobView: ...
    async def log(self, job: str) -> str: ...
    async def pilots(self) -> list[PilotView]:
        """Those of all servers on the store."""
        ...

    async def servers(self) -> list[ServerView]: ...
    async def stats(self, *, running: int = 0, everywhere: bool = True) -> list[StatsView]:
        """The living servers in numbers, the one that is asked first, or that one alone; with so many running jobs of
        each, those that run longest. Answered also while the store is away."""
        ...

    async def sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer: ...

    # a person's work
    async def worklist(
        self, *, role: str = "", state: str = "", case: str = "", limit: int = 100
    ) -> list[UserTaskView]: ...
    async def user_task(self, task: str) -> UserTaskView: ...
    async def claim(self, task: str, *, who: str) -> UserTaskView: ...
    async def release(self, task: str, *, who: str) -> UserTaskView: ...
    async def complete(self, task: str, outputs: Value, *, who: str, comment: str = "") -> UserTaskView: ...
    async def reject(self, task: str, *, who: str, comment: str = "") -> UserTaskView: ...

    # rules; the name of a set is its flow's, or "*" for the default rules
    async def rule_sets(self) -> list[RuleSetView]: ...
    async def rule_set(self, name: str, version: int | None = None) -> RuleSetView:
        """The newest version, or the one asked for, whole."""
        ...

    async def rule_versions(self, name: str) -> list[RuleSetView]:
        """Every version, the newest first."""
        ...

    async def put_rules(self, rules: RuleSet, *, who: str, note: str = "", expected: int | None = None) -> RuleSetView:
        """Make this the next version of the set, at once for all cases. Refused whole if an exlet or a condition has
        problems, or if the newest version is not the `expected` one."""
        ...

    async def restore_rules(self, name: str, version: int, *, who: str) -> RuleSetView:
        """Make an earlier version the next one."""
        ...

    async def promote_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Put a rule that was on trial in force; refused if it would change what another cornerstone concludes."""
        ...

    async def retire_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Take a rule out of use; refused if it has exceptions that would not be asked any more, unless they are
        retired with it, and if it would change what another cornerstone concludes."""
        ...

    async def add_rule(self, wish: RuleSpec, *, who: str) -> RuleAddition:
        """Add a rule for the case at hand; refused if it would change what another cornerstone concludes."""
        ...

    async def try_rule(self, wish: RuleSpec, *, limit: int = 10_000) -> TrialView:
        """Play a rule against the newest past failures; nothing changes."""
        ...

    # failures and what was decided
    async def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]: ...
    async def failure(self, group: str) -> FailureView:
        """`group` may be the beginning of a group's id."""
        ...

    async def apply_rules(self, group: str, *, who: str) -> ApplyResult:
        """Ask the rules again, now, for every decision of the group that waits."""
        ...

    async def decisions(self, query: DecisionQuery) -> list[DecisionView]: ...
    async def decision(self, decision: str) -> DecisionView: ...
    async def reject_choice(self, wish: RejectRequest, *, who: str) -> DecisionView:
        """A choice was wrong: put the right exlet or worklet in its place. The decision that replaces it is given."""
        ...

    # one history, and exceptions from outside
    async def history(self, case: str) -> list[HistoryEntry]: ...
    async def triggers(self, case: str, item: str = "") -> list[TriggerView]: ...
    async def raise_trigger(
        self, case: str, trigger: str, item: str = "", *, who: str, data: Value = None
    ) -> DecisionView:
        """Say that something happened. What no rule knows suspends the case until a person mends it."""
        ...

    async def mend(self, case: str, wish: RepairRequest, *, who: str) -> DecisionView: ...

    # the library of compensations
    async def compensations(self) -> list[CompensationView]: ...
    async def register_compensation(self, wish: CompensationView, *, who: str) -> list[CompensationView]:
        """From now on a flow undoes a task, in cases that begin from now on; without a flow, none does. The library as
        it then is."""
        ...

    # levels of retries
    async def levels(self) -> list[LevelView]: ...
    async def drain(self, level: str, *, who: str) -> DrainResult:
        """Let all that waits in a level, or in `all`, go on now."""
        ...

    # the repository of patterns
    async def patterns(self) -> Patterns: ...
    async def add_patterns(self, patterns: Patterns, *, who: str) -> Patterns:
        """Add these, or put them in the place of those by the same names; all of them, or none."""
        ...

    # engines of other systems
    async def engines(self) -> list[EngineView]: ...
    async def register_engine(self, name: str, *, who: str) -> EngineView: ...
    async def engine_event(self, engine: str, event: ExceptionEvent, *, who: str) -> EventAnswer: ...
    async def engine_orders(self, engine: str, *, who: str, wait_ms: int = 0) -> list[EngineOrder]:
        """What the engine is to do; held back until there is something, or the time is over."""
        ...

    async def engine_done(self, engine: str, order: str, answer: Value, *, who: str) -> None: ...

    # stored files
    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not fit. Whole or not at all."""
        ...

    def kept(self, sha256: str) -> AsyncIterator[bytes]: ...
    async def kept_size(self, sha256: str) -> int: ...

    # what administrators and clients are told
    async def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        """The newest first, of this severity or a higher one; `every`: those that are over too. `info` has messages
        that nobody has to do anything about."""
        ...

    async def acknowledge(self, alert: str, *, who: str) -> AlertView: ...
    async def requeue(self, job: str, *, who: str, reason: str = "") -> JobView:
        """Take a job's attempt from its pilot. The job is given again when the attempt is certain to have ended."""
        ...

    async def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        """Those after a serial, the oldest first; without one, the newest."""
        ...

    async def webhooks(self) -> list[WebhookView]: ...
    async def add_webhook(self, wish: WebhookSpec, *, who: str) -> WebhookView: ...
    async def remove_webhook(self, webhook: str, *, who: str) -> WebhookView: ...
    async def try_webhook(self, webhook: str, *, who: str) -> DeliveryResult: ...

    # archives
    async def export(
        self,
        cases: Sequence[str],
        *,
        everything: bool = False,
        where: str = "",
        files: bool = True,
        leave_out: bool = False,
        who: str,
    ) -> AsyncIterator[bytes]:
        """An archive of these cases, of those that a condition holds for, or of everything. Each comes with all that
        it called and all that mended it, as of one moment. Raises Unreachable if it lives on a server that cannot be
        asked; or such cases are left out, and the archive says so."""
        ...

    async def import_archive(
        self,
        chunks: AsyncIterator[bytes],
        *,
        as_new: bool = False,
        skip_existing: bool = False,
        resume: bool = False,
        who: str,
    ) -> ImportReport:
        """Take the cases of an archive, all of them or none. Those that are not over come suspended, unless they are to
        `resume`."""
        ...

    async def notices(self, limit: int = 100) -> list[ChangeEvent]:
        """What the administrator should know: failures of forgotten jobs, refused reports, lost pilots."""
        ...

    async def health(self) -> Health: ...
