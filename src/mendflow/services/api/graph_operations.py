"""The part of the domain that draws cases and flows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_checks import FlowCheck
from mendflow.core.model.graphs import GraphView
from mendflow.core.model.repair import Decision
from mendflow.core.model.values import FileRef
from mendflow.lazy import LazyModule
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.recovery.decisions import EngineCaseId
from mendflow.stores.contract import FieldCondition

if TYPE_CHECKING:
    from mendflow.core.graphs import flow_graph
    from mendflow.services.api import case_graphs
    from mendflow.services.base import reading_tasks
else:
    reading_tasks = LazyModule("mendflow.services.base.reading_tasks")
    case_graphs = LazyModule("mendflow.services.api.case_graphs")
    flow_graph = LazyModule("mendflow.core.graphs.flow_graph")

DECISIONS_READ: Final = 500


class FlowTexts(Protocol):
    """Reads flows from the texts of files."""

    def check(self, text: str, name: str, files: Mapping[str, FileRef]) -> FlowCheck: ...


class GraphOperations(ViewOperations):
    _flow_texts: FlowTexts | None = None

    async def case_graph(self, case: str) -> GraphView:
        if (foreign := self._foreign(case)) is not None:
            view, items = await self.foreign_view(foreign), await self.foreign_items(foreign)
            return case_graphs.graph_of_items(view, items, await self._newest_decisions(foreign))
        view = await self.case(case)
        store, decisions = await self._read(), await self._newest_decisions(EngineCaseId("", view.id))
        return await case_graphs.CaseGraph(self._server.runtime, store, view, await self.flow_of(view.id)).make(
            decisions
        )

    async def flow_graph(self, name: str) -> GraphView:
        """The newest version of a flow, as a case of it would be drawn before it begins."""
        flows = self._server.runtime.flows
        await flows.refresh(name)
        document = flows.newest(name)

        def called(other: str) -> Flow | None:
            found = flows.of_project(other, document.project)
            return found.flow if found is not None else None

        drawn = flow_graph.draw_flow(document.flow, called)
        return GraphView(flow=name, nodes=drawn.nodes, edges=drawn.edges, is_whole=drawn.is_whole)

    async def check_flow(self, text: str, name: str = "", files: dict[str, FileRef] | None = None) -> FlowCheck:
        texts = self._flow_texts
        if texts is None:
            raise Conflict("this server was built without flow files; check them with `mendflow check`")
        beside = files or {}
        task = reading_tasks.FlowText(text, name, beside)
        return await self._server.long_reads.read(len(text), task, FlowCheck, lambda: texts.check(text, name, beside))

    async def _newest_decisions(self, case: EngineCaseId) -> list[Decision]:
        where = [FieldCondition("case", case.case), FieldCondition("engine", case.engine)]
        return await self._server.runtime.exceptions.decisions.search(where, limit=DECISIONS_READ)
