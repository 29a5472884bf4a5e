"""Every operation that a person or a program can ask of a domain, in one place.

The HTTP server, the in-process client and the tests call these methods and nothing deeper. Every method raises a
`RequestError` for errors of the caller."""

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
    """`who` is the name of the caller, as the server has authenticated it."""

    # flows
    async def deploy(self, flow: Flow) -> FlowView: ...
    async def flows(self) -> list[FlowView]: ...
    async def flow(self, name: str) -> FlowView: ...

    # cases; `case` may be the word "last"
    async def start(
        self, name: str, inputs: dict[str, Value], *, who: str, cache_from: str = "", key: str = "", notify: str = ""
    ) -> CaseView:
        """Start a case of the newest version of a deployed flow. `cache_from` names a case (or "last") whose results
        are used for unchanged jobs. `key` makes the call idempotent: the same key is the same case. `notify` is a URL
        that gets a notification when the case ends."""
        ...

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]: ...
    async def find_cases(self, query: CaseQuery) -> CasePage:
        """Cases that match the query's condition, in its order, page by page. Raises InvalidSearch."""
        ...

    async def count_cases(self, query: CaseQuery, *, by: str = "") -> CountsView: ...
    async def case(self, case: str) -> CaseView: ...
    async def flow_of(self, case: str) -> Flow:
        """The flow that the case was started with, which may not be the newest version."""
        ...

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        """In the order in which they last began. `after` is the `place` of an item: the page begins after it. The cost
        is that of the items on the page and of those that `offset`, a state or a name skips."""
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
        """Start a new case of the same flow and inputs. Results of unchanged completed jobs are reused; `from_failed`
        refuses if nothing failed."""
        ...

    async def send(
        self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = ""
    ) -> CaseView: ...
    def events(self, case: str = "", after: int = 0, *, kind: str = "") -> AsyncIterator[ChangeEvent]:
        """Changes as they happen: of one case from the given serial on (ends with the case), or of all cases from now
        on; of every kind, or of one: "case", "item", "user-task", "alert", "message" or "repair"."""
        ...

    # jobs and pilots
    async def jobs(self, query: JobQuery) -> list[JobView]: ...
    async def find_jobs(self, query: JobQuery) -> JobPage: ...
    async def count_jobs(self, query: JobQuery, *, by: str = "") -> CountsView: ...
    async def job(self, job: str) -> JobView: ...
    async def log(self, job: str) -> str: ...
    async def pilots(self) -> list[PilotView]:
        """The pilots of all servers on the store."""
        ...

    async def servers(self) -> list[ServerView]: ...
    async def stats(self, *, running: int = 0, everywhere: bool = True) -> list[StatsView]:
        """Metrics of the live servers, the one that is asked first, or of that one alone; with the `running` jobs of
        each that have run longest. Works also while the store is unreachable."""
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
        """Make this the next version of the set, in force at once for all cases. Refused as a whole if an exlet or a
        condition has problems, or if the newest version is not the `expected` one."""
        ...

    async def restore_rules(self, name: str, version: int, *, who: str) -> RuleSetView:
        """Make an earlier version the next one."""
        ...

    async def promote_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Put a rule that was on trial into force; refused if it would change what another cornerstone concludes."""
        ...

    async def retire_rule(self, name: str, meant: RuleSelector, *, who: str) -> RuleChange:
        """Take a rule out of use. Refused if it has exceptions, unless these are retired with it, and if it would
        change what another cornerstone concludes."""
        ...

    async def add_rule(self, wish: RuleSpec, *, who: str) -> RuleAddition:
        """Add a rule for a given decision; refused if it would change what another cornerstone concludes."""
        ...

    async def try_rule(self, wish: RuleSpec, *, limit: int = 10_000) -> TrialView:
        """Try a rule on the newest past failures; nothing changes."""
        ...

    # failures and what was decided
    async def failures(self, *, since: Instant = 0, flow: str = "", limit: int = 100) -> list[FailureGroup]: ...
    async def failure(self, group: str) -> FailureView:
        """`group` may be the beginning of a group's id."""
        ...

    async def apply_rules(self, group: str, *, who: str) -> ApplyResult:
        """Ask the rules again, now, for every waiting decision of the group."""
        ...

    async def decisions(self, query: DecisionQuery) -> list[DecisionView]: ...
    async def decision(self, decision: str) -> DecisionView: ...
    async def reject_choice(self, wish: RejectRequest, *, who: str) -> DecisionView:
        """Reject a wrong choice and run the right exlet or worklet instead. Returns the decision that replaces it."""
        ...

    # histories, and triggers
    async def history(self, case: str) -> list[HistoryEntry]: ...
    async def triggers(self, case: str, item: str = "") -> list[TriggerView]: ...
    async def raise_trigger(
        self, case: str, trigger: str, item: str = "", *, who: str, data: Value = None
    ) -> DecisionView:
        """Report that something happened. If no rule knows the trigger, the case is suspended until a person mends
        it."""
        ...

    async def mend(self, case: str, wish: RepairRequest, *, who: str) -> DecisionView: ...

    # the library of compensations
    async def compensations(self) -> list[CompensationView]: ...
    async def register_compensation(self, wish: CompensationView, *, who: str) -> list[CompensationView]:
        """Set the flow that compensates a task in cases that start from now on; an empty flow removes it. Returns the
        library."""
        ...

    # levels of retries
    async def levels(self) -> list[LevelView]: ...
    async def drain(self, level: str, *, who: str) -> DrainResult:
        """Let all entries of a level, or of `all` levels, continue now."""
        ...

    # the repository of patterns
    async def patterns(self) -> Patterns: ...
    async def add_patterns(self, patterns: Patterns, *, who: str) -> Patterns:
        """Add these patterns, replacing those with the same names; all of them, or none."""
        ...

    # engines of other systems
    async def engines(self) -> list[EngineView]: ...
    async def register_engine(self, name: str, *, who: str) -> EngineView: ...
    async def engine_event(self, engine: str, event: ExceptionEvent, *, who: str) -> EventAnswer: ...
    async def engine_orders(self, engine: str, *, who: str, wait_ms: int = 0) -> list[EngineOrder]:
        """The orders for the engine; the answer is held back until there is one, or the time is over."""
        ...

    async def engine_done(self, engine: str, order: str, answer: Value, *, who: str) -> None: ...

    # stored files
    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        """Store a file on the server; refused if `sha256` is given and does not match. The file is stored completely or
        not at all."""
        ...

    def kept(self, sha256: str) -> AsyncIterator[bytes]: ...
    async def kept_size(self, sha256: str) -> int: ...

    # alerts and notifications
    async def alerts(self, *, severity: Severity = "warning", every: bool = False, limit: int = 100) -> list[AlertView]:
        """The newest first, of this severity or a higher one; `every`: also those that are over. `info` has messages
        that need no action."""
        ...

    async def acknowledge(self, alert: str, *, who: str) -> AlertView: ...
    async def requeue(self, job: str, *, who: str, reason: str = "") -> JobView:
        """Take a job's attempt from its pilot. The job is given to a pilot again when the attempt is certain to have
        ended."""
        ...

    async def notifications(self, *, after: int | None = None, limit: int = 100) -> list[Notification]:
        """Those after a serial, the oldest first; without a serial, the newest."""
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
        """An archive of these cases, of those that match a condition, or of everything. Each case comes with the cases
        that it called and that mended it, as of one moment. Raises Unreachable if a case lives on a server that cannot
        be asked, unless such cases are to be left out; then the archive names them."""
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
        """Import the cases of an archive, all of them or none. Those that are not over are suspended, unless `resume`
        is set."""
        ...

    async def notices(self, limit: int = 100) -> list[ChangeEvent]:
        """Messages for the administrator: failures of forgotten jobs, refused reports, lost pilots."""
        ...

    async def health(self) -> Health: ...
