"""Cases and their items: start, read, and steer. A `case` may be the word "last"."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.flow_files import FlowFileView
from mendflow.core.model.parameters import NUMBER_MAX, AfterPage, Condition, LongLimit, Offset, OneOf
from mendflow.core.model.repair_views import HistoryEntry, TriggerView
from mendflow.core.model.values import Value
from mendflow.core.model.views import (
    CachePolicy,
    CaseOrigin,
    CasePage,
    CaseQuery,
    CaseView,
    CountsView,
    ItemPage,
    ItemState,
    ItemView,
)
from mendflow.operations.arguments import IdempotencyKey, Named, Spread
from mendflow.operations.names import CaseName, CountedBy, ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import CASE, FLOW, LISTED, NEW_FLOW

LastEntries = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="Only so many, the last ones; 0: all.")]
BriefHistory = Annotated[
    bool, Meta(description="Without what the engine ordered: there at once also of very long histories.")
]


class CaseCalls(Calls, tag="cases"):
    @operation("POST", "/cases", OPERATORS, FLOW, status=201, repeatable=True)
    async def start(
        self,
        name: Annotated[str, Named("flow")],
        inputs: dict[str, Value] = {},
        *,
        cache: CachePolicy = "",
        cache_from: str = "",
        key: IdempotencyKey = "",
        notify: str = "",
        origin: CaseOrigin | None = None,
        again: list[str] = [],
        on_unhandled: UnhandledPolicy = "",
        resume: bool = False,
        rerun_of: str = "",
    ) -> CaseView:
        """Start a case. `cache` says which results of other cases are used for jobs made from the same: none unless
        given, those of jobs that declare enough, or all. `cache_from` names a case whose results are used for unchanged
        jobs; the same `key` again is the same case. `notify` is a URL that gets a POST when the case ends. `origin`
        says where the flow and the inputs came from. `again` names jobs that use no earlier results, nor does what
        depends on them. `on_unhandled` says whether the case fails or is held when something fails that no rule takes
        up, whatever the flow says; empty leaves it to the flow, and then to the server. With `resume`, a stopped case
        of the same flow and inputs is continued instead. `rerun_of` names a case of the flow that is run again by this
        one, with what was corrected: what that failed by is taken up, and its results are used for unchanged jobs, but
        not with "none" as `cache`. It has to be over, of the same project, and one that somebody has started: no case
        has called it, and it mends none. That of `cache_from` is of the same project, too."""

    @operation("POST", "/cases/with-flow", AUTHORS, NEW_FLOW, status=201, repeatable=True)
    async def start_with_flow(
        self,
        flow: Flow,
        inputs: dict[str, Value] = {},
        *,
        cache: CachePolicy = "",
        cache_from: str = "",
        key: IdempotencyKey = "",
        notify: str = "",
        origin: CaseOrigin | None = None,
        again: list[str] = [],
        on_unhandled: UnhandledPolicy = "",
        resume: bool = False,
        rerun_of: str = "",
        project: ProjectName = "",
    ) -> CaseView:
        """Start a case of a flow that is sent along. The flow model as JSON; all else as for a deployed flow. A flow
        that is deployed under its name stays as it is, for schedules, watches and all who start it by its name. Where
        none is deployed, the flow is listed under its name as `tentative`, and belongs to `project`."""

    @operation("GET", "/cases", VIEWERS, LISTED, id="cases")
    async def find_cases(self, query: Annotated[CaseQuery, Spread()]) -> CasePage:
        """Cases, the newest first. `order` gives them another order. With a condition the page may be short, and
        `Mendflow-Next` says from where to continue."""

    @operation("GET", "/cases/count", VIEWERS, LISTED)
    async def count_cases(
        self,
        query: Annotated[CaseQuery, Spread(without=("limit", "offset", "order"))] = CaseQuery(),
        *,
        by: CountedBy = "",
    ) -> CountsView:
        """How many cases match. The number of all cases, under the empty name, or the numbers by the values of a
        field. If the answer has `next`, ask again from there and add the numbers."""

    @operation("GET", "/cases/{case}", VIEWERS, CASE)
    async def case(self, case: CaseName) -> CaseView:
        """One case."""

    @operation("GET", "/cases/{case}/flow", VIEWERS, CASE)
    async def flow_of(self, case: CaseName) -> Flow:
        """The flow that a case was started with."""

    @operation("GET", "/cases/{case}/flow/file", VIEWERS, CASE)
    async def flow_file_of(self, case: CaseName) -> FlowFileView:
        """The file that the flow of a case was read from, in the version that the case was started with."""

    @operation("GET", "/cases/{case}/items", VIEWERS, CASE, id="items")
    async def find_items(
        self,
        case: CaseName,
        *,
        state: Annotated[str, OneOf(ItemState)] = "",
        name: str = "",
        where: Condition = "",
        also: Condition = "",
        limit: LongLimit = 1000,
        offset: Offset = 0,
        after: AfterPage = "",
    ) -> ItemPage:
        """A case's items. They come in the order in which they last began. `after` is the `place` of the last item of
        the page before, or the header `Mendflow-Next`. With a condition the page may be short, and `Mendflow-Next` says
        from where to continue. `also` is a further condition, which must hold besides `where`: what a page adds to what
        a person typed."""

    @operation("GET", "/cases/{case}/items/{item:path}", VIEWERS, CASE)
    async def item(self, case: CaseName, item: str) -> ItemView:
        """One item. An item's id may have brackets, commas and slashes, as in `align[3]`; percent-encode them."""

    @operation("POST", "/cases/{case}/suspend", OPERATORS, CASE)
    async def suspend(self, case: CaseName, item: str = "") -> CaseView:
        """Let a case, or one item, make no progress."""

    @operation("POST", "/cases/{case}/resume", OPERATORS, CASE)
    async def resume(self, case: CaseName, item: str = "") -> CaseView:
        """Let what was suspended go on."""

    @operation("POST", "/cases/{case}/cancel", OPERATORS, CASE)
    async def cancel(self, case: CaseName, item: str = "", *, reason: str = "") -> CaseView:
        """End a case, or one item, without handlers."""

    @operation("POST", "/cases/{case}/rerun", OPERATORS, CASE, status=201)
    async def rerun(
        self,
        case: CaseName,
        *,
        from_failed: bool = False,
        cache: CachePolicy = "declared",
        inputs: dict[str, Value] = {},
        again: list[str] = [],
    ) -> CaseView:
        """A new case of the same flow and inputs; results of unchanged jobs come from the cache. With "none" as `cache`
        everything is run again; `again` names jobs that are, with all that depends on them. `inputs` are those that
        have changed."""

    @operation("POST", "/cases/{case}/messages", OPERATORS, CASE, repeatable=True)
    async def send(
        self, case: CaseName, channel: str, value: Value = None, *, correlation: Value = None, id: IdempotencyKey = ""
    ) -> CaseView:
        """Send a message to a case. It goes to a channel of the case. The same `id` again is the same message."""


class HistoryCalls(Calls, tag="repairs"):
    @operation("GET", "/cases/{case}/history", VIEWERS, CASE)
    async def history(
        self, case: CaseName, *, last: LastEntries = 0, brief: BriefHistory = False
    ) -> list[HistoryEntry]:
        """All that happened in a case. The engine's events and the service's decisions, in order of time. `format=xes`
        gives an XES log."""

    @operation("GET", "/cases/{case}/triggers", VIEWERS, CASE)
    async def triggers(self, case: CaseName, item: str = "") -> list[TriggerView]:
        """The triggers that rules know for this case or item."""
