"""A flow as nested boxes: leaves have items, frames are the structure around them.

Sizes are computed from the inside out, positions from the outside in. A loop over one job is drawn as one pile, because
people know it as one thing."""

from collections.abc import Iterator

import msgspec

from mendflow.core.model import flow as model
from mendflow.lazy import lazy_pattern
from mendflow.pages.formatting import one_line
from mendflow.pages.layout import BOX_GAP, COLUMN_MAX, BoxLayout, column_layout, layered_layout

NODE_WIDTH, NODE_HEIGHT = 196.0, 62.0
SMALL_WIDTH, SMALL_HEIGHT = 150.0, 34.0
PAD, HEAD = 14.0, 26.0
COUNTED_ACTIVITIES = (model.JobActivity, model.UserTask, model.Stage, model.Call)

_WORDS = {"assign": "set", "foreach": "for each", "for-each": "for each"}
_STEP = lazy_pattern(r"step-\d+")

Point = tuple[float, float]


class Edge(msgspec.Struct):
    start: str
    end: str
    bends: list[Point] = []
    dashed: bool = False


class FlowBox(msgspec.Struct):
    """A box. `key` is the activity's unique name, `title` its display name. Positions are relative to the parent until
    `place_absolutely` makes them absolute."""

    key: str
    title: str
    kind: str
    width: float
    height: float
    note: str = ""
    pile: bool = False
    framed: bool = False
    counted: bool = False
    children: list["FlowBox"] = []
    edges: list[Edge] = []
    x: float = 0.0
    y: float = 0.0


def box_of(activity: model.Activity) -> FlowBox:
    if isinstance(activity, model.Sequence):
        body = tuple(each for each in activity.body if not is_made_up(each)) or activity.body
        if len(body) == 1 and not (activity.targets or activity.sources) and is_made_up_name(activity):
            return box_of(body[0])
        chain = [(index, index + 1) for index in range(len(body) - 1)]
        return _row(activity, body, chain)
    if isinstance(activity, model.Parallel):
        return _row(activity, activity.branches, _branch_edges(activity))
    if isinstance(activity, model.ForEach) and isinstance(activity.body, COUNTED_ACTIVITIES) and activity.body.label:
        pile = _leaf(activity.body)
        pile.key, pile.pile, pile.note = activity.name, True, _loop_note(activity)
        return pile
    parts = _parts(activity)
    return _frame(activity, parts) if parts else _leaf(activity)


def is_made_up_name(activity: model.Activity) -> bool:
    """Generated names have a dot, or count the steps; readers do not need them."""
    return not activity.label and ("." in activity.name or _STEP.fullmatch(activity.name) is not None)


def is_made_up(activity: model.Activity) -> bool:
    """A small activity that the flow file's reader generated: setting variables, an empty step."""
    return is_made_up_name(activity) and isinstance(activity, model.Assign | model.Empty) and not activity.sources


def place_absolutely(shape: FlowBox, x: float, y: float) -> None:
    """Make all places absolute."""
    shape.x, shape.y = x + shape.x, y + shape.y
    for edge in shape.edges:
        edge.bends = [(shape.x + bend_x, shape.y + bend_y) for bend_x, bend_y in edge.bends]
    for child in shape.children:
        place_absolutely(child, shape.x, shape.y)


def all_boxes(shape: FlowBox) -> Iterator[FlowBox]:
    yield shape
    for child in shape.children:
        yield from all_boxes(child)


def inner_activities(activity: model.Activity) -> list[model.Activity]:
    """The activities directly inside."""
    if isinstance(activity, model.Sequence):
        return list(activity.body)
    if isinstance(activity, model.Parallel):
        return list(activity.branches)
    return [body for _, body in _parts(activity)]


def _leaf(activity: model.Activity) -> FlowBox:
    counted = isinstance(activity, COUNTED_ACTIVITIES)
    return FlowBox(
        key=activity.name,
        title=_title(activity),
        kind=_kind(activity),
        width=NODE_WIDTH if counted else SMALL_WIDTH,
        height=NODE_HEIGHT if counted else SMALL_HEIGHT,
        counted=counted,
        note=f"if {_short(activity.when.text)}" if activity.when else "",
    )


def _title(activity: model.Activity) -> str:
    """The display name; the kind if it has no given name."""
    if is_made_up_name(activity) and not isinstance(activity, COUNTED_ACTIVITIES):
        return _kind(activity)
    return activity.label or activity.name


def _row(activity: model.Activity, bodies: tuple[model.Activity, ...], edges: list[tuple[int, int]]) -> FlowBox:
    """Boxes in layers. A row inside a row gets a faint frame, to show what its arrows mean."""
    children = [box_of(body) for body in bodies]
    for child in children:
        if child.children and not child.framed:
            _put_in_frame(child)
    placed = _arrange([(child.width, child.height) for child in children], edges)
    for child, x, y in zip(children, placed.x, placed.y, strict=True):
        child.x, child.y = x, y
    drawn = []
    if isinstance(activity, model.Sequence):
        drawn = [Edge(children[a].key, children[b].key, placed.bends.get((a, b), [])) for a, b in edges]
    else:
        drawn = _link_edges(bodies, placed.bends)
    return FlowBox(
        key=activity.name,
        title=_title(activity),
        kind=_kind(activity),
        width=placed.width,
        height=placed.height,
        children=children,
        edges=drawn,
    )


def _arrange(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> BoxLayout:
    """Connected boxes in layers; many unconnected ones in several columns instead of one."""
    tied = {end for edge in edges for end in edge}
    loose = [index for index in range(len(sizes)) if index not in tied]
    if len(loose) <= COLUMN_MAX:
        return layered_layout(sizes, edges)
    order = sorted(tied)
    place = {index: number for number, index in enumerate(order)}
    inner_edges = [(place[start], place[end]) for start, end in edges]
    above, below = (
        layered_layout([sizes[index] for index in order], inner_edges),
        column_layout([sizes[i] for i in loose]),
    )
    top = above.height + BOX_GAP if order else 0.0
    x, y = [0.0] * len(sizes), [0.0] * len(sizes)
    for number, index in enumerate(order):
        x[index], y[index] = above.x[number], above.y[number]
    for number, index in enumerate(loose):
        x[index], y[index] = below.x[number], top + below.y[number]
    bends = {(order[start], order[end]): points for (start, end), points in above.bends.items()}
    return BoxLayout(x=x, y=y, width=max(above.width, below.width), height=top + below.height, bends=bends)


def _put_in_frame(shape: FlowBox) -> None:
    for child in shape.children:
        child.x, child.y = child.x + PAD, child.y + HEAD
    for edge in shape.edges:
        edge.bends = [(x + PAD, y + HEAD) for x, y in edge.bends]
    shape.width, shape.height, shape.framed = shape.width + 2 * PAD, shape.height + HEAD + PAD, True


def _frame(activity: model.Activity, parts: list[tuple[str, model.Activity]]) -> FlowBox:
    """The parts one below another, each with a line that says when it runs."""
    children, top, width = [], HEAD, SMALL_WIDTH
    for note, body in parts:
        child = box_of(body)
        if note:
            child = _with_note(child, note, body.name)
        child.x, child.y = child.x + PAD, child.y + top
        top += child.height + PAD
        width = max(width, child.width)
        children.append(child)
    return FlowBox(
        key=activity.name,
        title=_title(activity),
        kind=_kind(activity),
        note=_frame_note(activity),
        width=width + 2 * PAD,
        height=top,
        framed=True,
        children=children,
    )


def _with_note(child: FlowBox, note: str, name: str) -> FlowBox:
    child.x, child.y = 0.0, 18.0
    width = max(child.width, 6.2 * len(note))
    return FlowBox(
        key=f"{name} ", title="", kind="part", note=note, width=width, height=child.height + 18.0, children=[child]
    )


def _branch_edges(parallel: model.Parallel) -> list[tuple[int, int]]:
    """Which branch depends on which, by the links between their contents."""
    edges = []
    for start, end, *_ in _links(parallel.branches):
        if start != end:
            edges.append((start, end))
    return list(dict.fromkeys(edges))


def _link_edges(bodies: tuple[model.Activity, ...], bends: dict[tuple[int, int], list[Point]]) -> list[Edge]:
    return [
        Edge(source, target, list(bends.get((start, end), [])), conditional)
        for start, end, source, target, conditional in _links(bodies)
    ]


def _links(bodies: tuple[model.Activity, ...]) -> list[tuple[int, int, str, str, bool]]:
    """Links as (branch of the source, branch of the target, source, target, has a condition)."""
    targets = {link: (index, node.name) for index, node in _nodes(bodies) for link in node.targets}
    return [
        (index, targets[source.link][0], node.name, targets[source.link][1], source.when is not None)
        for index, node in _nodes(bodies)
        for source in node.sources
        if source.link in targets
    ]


def _nodes(bodies: tuple[model.Activity, ...]) -> Iterator[tuple[int, model.Activity]]:
    for index, body in enumerate(bodies):
        open_nodes = [body]
        while open_nodes:
            node = open_nodes.pop()
            yield index, node
            open_nodes.extend(inner_activities(node))


def _parts(activity: model.Activity) -> list[tuple[str, model.Activity]]:
    """The parts of a structured activity, each with a text that says when it runs."""
    if isinstance(activity, model.Choose):
        branches = [(f"when {_short(branch.when.text)}", branch.body) for branch in activity.branches]
        return branches + ([("otherwise", activity.otherwise)] if activity.otherwise else [])
    if isinstance(activity, model.While | model.Until | model.ForEach):
        return [("", activity.body)]
    if isinstance(activity, model.Scope):
        return [("", activity.body), *_handlers(activity)]
    if isinstance(activity, model.Pick):
        return _events(activity.messages, activity.alarms)
    return []


def _handlers(scope: model.Scope) -> list[tuple[str, model.Activity]]:
    parts = [(f"on fault {catch.fault or '(any)'}", catch.body) for catch in scope.catches]
    if scope.compensation:
        parts.append(("to undo it", scope.compensation))
    if scope.termination:
        parts.append(("when it is stopped", scope.termination))
    return parts + _events(scope.messages, scope.alarms)


def _events(
    messages: tuple[model.OnMessage, ...], alarms: tuple[model.OnAlarm, ...]
) -> list[tuple[str, model.Activity]]:
    branches = [(f"on message {message.channel}", message.body) for message in messages]
    return branches + [("on alarm", alarm.body) for alarm in alarms]


def _frame_note(activity: model.Activity) -> str:
    if isinstance(activity, model.While):
        return f"while {_short(activity.condition.text)}"
    if isinstance(activity, model.Until):
        return f"until {_short(activity.condition.text)}"
    if isinstance(activity, model.ForEach):
        return _loop_note(activity)
    return _kind(activity)


def _loop_note(loop: model.ForEach) -> str:
    named = ", ".join(loop.axes) or loop.variable
    return f"for each {named}" + ("" if loop.parallel else ", one by one")


def _short(text: str) -> str:
    return one_line(text, 40)


def _kind(activity: model.Activity) -> str:
    """The flow file's word; a primitive is named by what it does."""
    if isinstance(activity, model.PrimitiveStep):
        return activity.do.value
    tag = str(type(activity).__struct_config__.tag)
    return _WORDS.get(tag, tag)
