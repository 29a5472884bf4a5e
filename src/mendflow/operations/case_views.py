"""Cases as people look at them: drawn, over time, and beside another."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.comparisons import CasesCompared
from mendflow.core.model.graphs import GraphView
from mendflow.core.model.ids import Instant
from mendflow.core.model.parameters import NUMBER_MAX
from mendflow.core.model.timelines import TimelineView
from mendflow.operations.arguments import Named
from mendflow.operations.names import CaseName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import VIEWERS
from mendflow.operations.subjects import CASE

From = Annotated[
    Instant, Named("from"), Meta(ge=0, le=NUMBER_MAX, description="Items that had not ended then; 0: of all times.")
]
To = Annotated[
    Instant, Named("to"), Meta(ge=0, le=NUMBER_MAX, description="Items that had begun then; 0: of all times.")
]
OtherCase = Annotated[str, Named("with"), Meta(min_length=1, description="The case that it is compared with.")]
RowLimit = Annotated[int, Meta(ge=1, le=5_000, description="At most so many rows.")]
AfterRows = Annotated[str, Meta(max_length=30, description="The `cursor` of the answer before.")]


class CaseViewCalls(Calls, tag="cases"):
    @operation("GET", "/cases/{case}/graph", VIEWERS, CASE)
    async def case_graph(self, case: CaseName) -> GraphView:
        """A case as a graph: its flow, and how far each part of it is. A loop over one job is one node with counts.
        Called flows and exlets are nodes with their parts inside. Of a case whose flow is not known, as another
        engine's, the names of its items are the nodes."""

    @operation("GET", "/cases/{case}/timeline", VIEWERS, CASE)
    async def case_timeline(
        self,
        case: CaseName,
        *,
        begin: From = 0,
        end: To = 0,
        name: str = "",
        limit: RowLimit = 500,
        after: AfterRows = "",
    ) -> TimelineView:
        """A case over time: waits, staging, attempts and repairs of its items. In the order in which they began, a page
        at a time, and all of them by name. Of a large case the first answer may know only its first items: `read` is
        then less than `items`, and whoever asks again is told of all."""

    @operation("GET", "/cases/{case}/compare", VIEWERS, CASE)
    async def compare_cases(self, case: CaseName, other: OtherCase) -> CasesCompared:
        """What differs between two cases. Inputs, outputs, the flow, and by name how their items ended, how long they
        took, and what they ran."""
