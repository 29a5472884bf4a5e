"""A flow as a graph for people: the activities that they know by name, and what leads from one to the next.

Steps that only hold others together (sequences, parallels) are not drawn: what leads to them leads to their first
parts, and what leads on leads on from their last. What decides or repeats is a node with its parts inside. A loop over
one job is one node, because people know it as one thing; so is what the reader of a flow file made up left out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.engine.activity_parts import kind_of
from mendflow.core.engine.result_checks import references_in, templates_of
from mendflow.core.model import flow as model
from mendflow.core.model.graphs import EdgeKind, GraphEdge, GraphNode
from mendflow.lazy import lazy_pattern

NODES_MAX: Final = 2_000
DEPTH_MAX: Final = 4
"""How deep called flows are drawn in each other."""
EDGES_BETWEEN_MAX: Final = 400
"""Where more would lead from all ends of one part to all beginnings of the next, only the first do."""
NOTE_CHARS: Final = 60
WORK: Final = (model.JobActivity, model.UserTask, model.Stage, model.Call)
_STEP = lazy_pattern(r"step-\d+")

FindFlow = Callable[[str], model.Flow | None]


def _find_none(_name: str) -> model.Flow | None:
    return None


class FlowGraph(NamedTuple):
    """`is_whole` is false if the flow has more activities than are drawn."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    is_whole: bool


class _Ends(NamedTuple):
    """The nodes that a part begins and ends with; none if nothing of it is drawn."""

    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


def draw_flow(flow: model.Flow, find: FindFlow = _find_none) -> FlowGraph:
    """`find` knows flows that do not come along with this one."""
    drawing = _Drawing()
    _FlowDrawer(drawing, flow, find, prefix="", parent=None, depth=0).draw()
    return FlowGraph(list(drawing.nodes.values()), list(drawing.edges.values()), not drawing.is_full)


def is_made_up_name(activity: model.ActivityNode) -> bool:
    """Generated names have a dot, or count the steps; readers do not need them."""
    return not activity.label and ("." in activity.name or _STEP.fullmatch(activity.name) is not None)


class _Drawing:
    """What is drawn so far."""

    def __init__(self) -> None:
        self.nodes: dict[str, GraphNode] = {}
        self.edges: dict[tuple[str, str], GraphEdge] = {}
        self.is_full = False

    def node(self, node: GraphNode) -> bool:
        if len(self.nodes) >= NODES_MAX:
            self.is_full = True
            return False
        self.nodes[node.id] = node
        return True

    def edge(self, source: str, target: str, kind: EdgeKind, note: str = "") -> None:
        """Of two nodes one edge is drawn: that a result is used says more than the order. What a loop takes from a step
        in it is no step back: an arrow to the frame around would read as one."""
        known = self.edges.get((source, target))
        if target not in self._with_frames(source) and (known is None or (kind == "data" and known.kind == "control")):
            note = note or (known.note if known is not None else "")
            self.edges[source, target] = GraphEdge(source=source, target=target, kind=kind, note=note)

    def _with_frames(self, id: str) -> Iterator[str]:
        """A node, and what stands around it, from the inside out."""
        around: str | None = id
        while around:
            yield around
            around = self.nodes[around].parent

    def connect(self, sources: Sequence[str], targets: Sequence[str], note: str = "") -> None:
        if len(sources) * len(targets) > EDGES_BETWEEN_MAX:
            sources, targets = sources[: EDGES_BETWEEN_MAX // max(1, len(targets)) or 1], targets[:EDGES_BETWEEN_MAX]
        for source in sources:
            for target in targets:
                self.edge(source, target, "control", note)


class _FlowDrawer:
    """Draws one flow into the drawing; called flows are drawn inside their calls, by drawers of their own."""

    def __init__(
        self, drawing: _Drawing, flow: model.Flow, find: FindFlow, *, prefix: str, parent: str | None, depth: int
    ) -> None:
        self._drawing = drawing
        self._flow = flow
        self._find = find
        self._prefix = prefix
        self._root = parent
        self._depth = depth
        self._ends: dict[str, _Ends] = {}  # by the name of the activity
        self._sources: list[tuple[str, model.LinkSource]] = []
        self._targets: dict[str, list[str]] = {}
        self._drawn: list[tuple[str, model.ActivityNode]] = []

    def draw(self) -> None:
        self._activity(self._flow.body, self._root)
        for name, source in self._sources:
            note = _short(source.when.text) if source.when is not None else ""
            for target in self._targets.get(source.link, ()):
                self._drawing.connect(self._ends[name].last, self._ends[target].first, note)
        for id, activity in self._drawn:
            for used in _used_jobs(activity):
                for end in self._ends.get(used, _Ends()).last:
                    self._drawing.edge(end, id, "data")

    def _activity(self, activity: model.Activity, parent: str | None, note: str = "") -> _Ends:
        note = note or (f"if {_short(activity.when.text)}" if activity.when is not None else "")
        ends = self._draw(activity, parent, note)
        self._ends[activity.name] = ends
        self._sources += [(activity.name, each) for each in activity.sources]
        for link in activity.targets:
            self._targets.setdefault(link, []).append(activity.name)
        return ends

    def _draw(self, activity: model.Activity, parent: str | None, note: str) -> _Ends:
        match activity:
            case model.Sequence(body=steps):
                return self._sequence(steps, parent, note)
            case model.Parallel(branches=branches):
                return self._parallel(branches, parent, note)
            case model.ForEach(body=model.JobActivity() | model.UserTask() | model.Stage() | model.Call() as body):
                return self._loop_of_one(activity, body, parent)
            case model.Scope() if is_made_up_name(activity) and not _handlers(activity):
                return self._activity(activity.body, parent, note)
            case model.Assign() | model.Empty() if is_made_up_name(activity) and not activity.sources:
                return _Ends()
        parts = _parts(activity)
        if not parts:
            return self._leaf(activity, activity, parent, note)
        return self._frame(activity, parts, parent, note)

    def _sequence(self, steps: Iterable[model.Activity], parent: str | None, note: str) -> _Ends:
        first, last = tuple[str, ...](), tuple[str, ...]()
        for step in steps:
            ends = self._activity(step, parent, "" if first else note)
            if ends.first:
                self._drawing.connect(last, ends.first)
                first, last = first or ends.first, ends.last
        return _Ends(first, last)

    def _parallel(self, branches: Iterable[model.Activity], parent: str | None, note: str) -> _Ends:
        drawn = [(branch, self._activity(branch, parent, note)) for branch in branches]
        first = [id for branch, ends in drawn if not branch.targets for id in ends.first]
        last = [id for branch, ends in drawn if not branch.sources for id in ends.last]
        return _Ends(tuple(first), tuple(last))

    def _loop_of_one(self, loop: model.ForEach, body: model.Activity, parent: str | None) -> _Ends:
        ends = self._leaf(body, loop, parent, _loop_note(loop))
        self._ends[body.name] = ends
        return ends

    def _leaf(self, activity: model.Activity, named: model.Activity, parent: str | None, note: str) -> _Ends:
        """`named` is what it is known by: the loop, if it is one over this activity."""
        id, called = f"{self._prefix}{named.name}", activity.flow if isinstance(activity, model.Call) else ""
        node = GraphNode(id=id, name=_name(activity), kind=_kind(activity), parent=parent, note=note, flow=called)
        if not self._drawing.node(node):
            return _Ends()
        self._drawn += [(id, activity)] if activity is named else [(id, activity), (id, named)]
        if called:
            self._called(id, called)
        return _Ends((id,), (id,))

    def _called(self, id: str, name: str) -> None:
        inner = next((each for each in self._flow.calls if each.name == name), None) or self._find(name)
        if inner is not None and self._depth < DEPTH_MAX:
            _FlowDrawer(self._drawing, inner, self._find, prefix=f"{id}/", parent=id, depth=self._depth + 1).draw()

    def _frame(
        self, activity: model.Activity, parts: list[tuple[str, model.Activity]], parent: str | None, note: str
    ) -> _Ends:
        id = f"{self._prefix}{activity.name}"
        words = "; ".join(each for each in (note, _frame_note(activity)) if each)
        node = GraphNode(id=id, name=_name(activity), kind=_kind(activity), parent=parent, note=words)
        if not self._drawing.node(node):
            return _Ends()
        self._drawn.append((id, activity))
        for when, body in parts:
            self._activity(body, id, when)
        return _Ends((id,), (id,))


def _used_jobs(activity: model.ActivityNode) -> list[str]:
    """The activities whose results it uses, by name."""
    used = (reference.name for template in templates_of(activity) for reference in references_in(template))
    return [name.removeprefix("jobs.") for name in dict.fromkeys(used) if name.startswith("jobs.")]


def _parts(activity: model.Activity) -> list[tuple[str, model.Activity]]:
    """The parts of what decides, repeats or guards, each with a text that says when it runs."""
    match activity:
        case model.Choose(branches=branches, otherwise=otherwise):
            parts = [(f"when {_short(branch.when.text)}", branch.body) for branch in branches]
            return parts + ([("otherwise", otherwise)] if otherwise is not None else [])
        case model.While(body=body) | model.Until(body=body) | model.ForEach(body=body):
            return [("", body)]
        case model.Scope(body=body):
            return [("", body), *_handlers(activity)]
        case model.Pick(messages=messages, alarms=alarms):
            return _events(messages, alarms)
    return []


def _handlers(scope: model.Scope) -> list[tuple[str, model.Activity]]:
    parts = [(f"on fault {catch.fault or '(any)'}", catch.body) for catch in scope.catches]
    parts += [("to undo it", scope.compensation)] if scope.compensation is not None else []
    parts += [("when it is stopped", scope.termination)] if scope.termination is not None else []
    return parts + _events(scope.messages, scope.alarms)


def _events(messages: Iterable[model.OnMessage], alarms: Iterable[model.OnAlarm]) -> list[tuple[str, model.Activity]]:
    found = [(f"on message {message.channel}", message.body) for message in messages]
    return found + [("on alarm", alarm.body) for alarm in alarms]


def _frame_note(activity: model.Activity) -> str:
    match activity:
        case model.While(condition=condition):
            return f"while {_short(condition.text)}"
        case model.Until(condition=condition):
            return f"until {_short(condition.text)}"
        case model.ForEach():
            return _loop_note(activity)
    return ""


def _loop_note(loop: model.ForEach) -> str:
    return f"for each {', '.join(loop.axes) or loop.variable}" + ("" if loop.parallel else ", one by one")


def _name(activity: model.Activity) -> str:
    """The name that items have; of what has none that somebody chose, its kind."""
    if is_made_up_name(activity) and not isinstance(activity, WORK):
        return _kind(activity)
    return activity.label or activity.name


def _kind(activity: model.Activity) -> str:
    return activity.do.value if isinstance(activity, model.PrimitiveStep) else kind_of(activity)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= NOTE_CHARS else f"{line[: NOTE_CHARS - 1]}…"


def with_prefix(graph: FlowGraph, prefix: str, parent: str) -> FlowGraph:
    """The same inside another node."""
    nodes = [
        msgspec.structs.replace(
            each, id=f"{prefix}{each.id}", parent=f"{prefix}{each.parent}" if each.parent is not None else parent
        )
        for each in graph.nodes
    ]
    edges = [
        msgspec.structs.replace(each, source=f"{prefix}{each.source}", target=f"{prefix}{each.target}")
        for each in graph.edges
    ]
    return FlowGraph(nodes, edges, graph.is_whole)
