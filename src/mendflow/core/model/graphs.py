"""A flow, or a case, as a graph: what it does, in which order, and how far it is."""

from typing import Literal

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.views import View

EdgeKind = Literal["control", "data", "repair"]


class GraphNode(View, frozen=True):
    """An activity. `id` is its name in the flow, after those of the calls around it; `parent` is the node that it is
    drawn in. A loop over one job is one node. `counts` are its items by state, `state` the one that needs most
    attention, and `items_sample` some of the items, those first that need attention. A call has the `flow` that it
    calls, and the called flow's activities inside; an `exlet` has its steps inside. `note` says when it runs. `cases`
    are some of the cases that ran it as a flow of their own."""

    id: str
    name: str
    kind: str
    parent: str | None = None
    note: str = ""
    counts: dict[str, int] = {}
    state: str = ""
    mended: int = 0
    items_sample: list[ItemId] = []
    flow: str = ""
    exlet: str = ""
    cases: list[CaseId] = []


class GraphEdge(View, frozen=True):
    """`control` is an order of steps or a link, `data` a result that is used, `repair` leads from what failed to the
    exlet that was run. `note` is the condition of a link, or what came of a repair."""

    source: str
    target: str
    kind: EdgeKind
    note: str = ""


class GraphMessage(View, frozen=True):
    """A message that a case got or sent, as its journal tells it."""

    at: Instant
    direction: Literal["in", "out"]
    name: str
    item: ItemId | None = None
    text: str = ""


class GraphView(View, frozen=True):
    """`messages` are the newest of a case; `is_whole` is false where the flow is not known, and the nodes are made of
    items alone, or where it is too large to be drawn whole."""

    flow: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    messages: list[GraphMessage] = []
    is_whole: bool = True
