"""The flow as an SVG: one box per name with its counts, and arrows for dependencies."""

from itertools import pairwise
from unicodedata import east_asian_width

from mendflow.core.model.flow import Activity, Flow
from mendflow.core.model.views import NameCount
from mendflow.pages.boxes import PAD, FlowBox, Point, all_boxes, box_of, inner_activities, place_absolutely
from mendflow.pages.formatting import escape_html, one_line
from mendflow.pages.item_counts import STATES, counts_text

NODES_MAX = 600
MARGIN = 12.0
NAME_CHAR_WIDTH, SMALL_CHAR_WIDTH = 7.4, 6.0
FIT_WIDTH = 1_750.0
"""Up to this width a drawing is scaled to the page; a wider one scrolls."""

WIDE = '<p class="quiet">The drawing is wider than the page: scroll it to the right.</p>'

SEGMENTS = ("done", "cached", "running", "failed", "cancelled", "waiting", "skipped")


def graph(flow: Flow, counts: list[NameCount]) -> str:
    """The drawing, or a sentence if there is too much to draw."""
    size = _size(flow.body)
    if size > NODES_MAX:
        return f'<p class="quiet">The flow has {size:,} activities, too many to draw. The tables below have them.</p>'
    root = box_of(flow.body)
    place_absolutely(root, MARGIN, MARGIN)
    by_name = {count.name: count for count in counts}
    shapes = {shape.key: shape for shape in all_boxes(root)}
    root_drawn = root.framed or not root.children
    parts = [_frame(shape) for shape in shapes.values() if shape.framed and (root_drawn or shape is not root)]
    parts += [_note(shape) for shape in shapes.values() if shape.kind == "part"]
    for shape in shapes.values():
        for edge in shape.edges:
            if edge.start in shapes and edge.end in shapes:
                parts.append(_arrow(shapes[edge.start], shapes[edge.end], edge.bends, dashed=edge.dashed))
    unreached = _unreached(root, by_name, reached=True)
    parts += [
        _node(shape, by_name.get(shape.title), reached=shape.key not in unreached)
        for shape in shapes.values()
        if not shape.children
    ]
    width, height = root.width + 2 * MARGIN, root.height + 2 * MARGIN
    css, hint = ("graph fit", "") if width <= FIT_WIDTH else ("graph", WIDE)
    return (
        f'{hint}<div class="scroll"><svg class="{css}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="The flow as a graph">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0.6 7.4 4 0 7.4z"/></marker></defs>' + "".join(parts) + "</svg></div>"
    )


def _unreached(shape: FlowBox, counts: dict[str, NameCount], *, reached: bool) -> set[str]:
    """Small uncounted steps that are only among work that never started; others are assumed to have run."""
    leaves = [counts.get(each.title) for each in all_boxes(shape) if each.counted]
    if leaves:
        reached = any(state_of(count) not in ("none", "skipped") for count in leaves)
    if not shape.children:
        return set() if reached or shape.counted else {shape.key}
    return set().union(*(_unreached(child, counts, reached=reached) for child in shape.children))


def state_of(count: NameCount | None) -> str:
    """One word for all items of a name: the most urgent state."""
    if count is None:
        return "none"
    if count.failed:
        return "failed"
    if count.running:
        return "running"
    if count.waiting:
        return "waiting"
    if count.mended:
        return "mended"
    if count.done or count.cached:
        return "done"
    if count.cancelled:
        return "cancelled"
    return "skipped" if count.skipped else "none"


def fit_text(text: str, width: float, char_width: float) -> str:
    """As much of the text as fits, estimated by characters; wide letters, such as capitals and many scripts, count for
    more."""
    line, room = one_line(text), width / char_width
    for place, char in enumerate(line):
        room -= 2.0 if east_asian_width(char) in "WF" else 1.3 if char.isupper() or char in "mwMW@%" else 1.0
        if room < 0:
            return line[: max(place - 1, 0)].rstrip() + "…"
    return line


def _size(body: Activity) -> int:
    open_nodes, size = [body], 0
    while open_nodes and size <= 100_000:
        node = open_nodes.pop()
        size += 1
        open_nodes.extend(inner_activities(node))
    return size


def _frame(shape: FlowBox) -> str:
    title = f"{shape.title} · {shape.note}" if shape.note and shape.note != shape.title else shape.title
    fits = fit_text(title, shape.width - 2 * PAD, SMALL_CHAR_WIDTH)
    return (
        f'<g><title>{escape_html(title)}</title><rect class="frame" x="{shape.x:.1f}" y="{shape.y:.1f}" '
        f'width="{shape.width:.1f}" height="{shape.height:.1f}" rx="10"/>'
        f'<text class="small" x="{shape.x + PAD:.1f}" y="{shape.y + 17:.1f}">{escape_html(fits)}</text></g>'
    )


def _note(shape: FlowBox) -> str:
    return f'<text class="small part" x="{shape.x:.1f}" y="{shape.y + 11:.1f}">{escape_html(shape.note)}</text>'


def _arrow(start: FlowBox, end: FlowBox, bends: list[Point], *, dashed: bool) -> str:
    """A smooth line from the right of one box to the left of another, level at both ends."""
    first, last = (start.x + start.width, start.y + start.height / 2), (end.x - 2, end.y + end.height / 2)
    between = [point for point in bends if min(_distance(point, first), _distance(point, last)) > 2]
    points = [first, *between, last]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (next_x, next_y) in pairwise(points):
        middle = (x + next_x) / 2
        path += f"C{middle:.1f} {y:.1f} {middle:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}"
    return f'<path class="arrow{" dashed" if dashed else ""}" d="{path}" marker-end="url(#tip)"/>'


def _distance(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _node(shape: FlowBox, count: NameCount | None, *, reached: bool) -> str:
    note = (counts_text([count], STATES) or "not begun") if count else shape.note or shape.kind
    title = fit_text(shape.title, shape.width - (36 if count and count.mended else 22), NAME_CHAR_WIDTH)
    box = f'width="{shape.width:.0f}" height="{shape.height:.0f}" rx="8"'
    pile = "".join(f'<rect class="node pile" x="{shape.x + off:.1f}" y="{shape.y + off:.1f}" {box}/>' for off in (6, 3))
    state = "step" if count is None and not shape.counted and reached else state_of(count)
    parts = [
        f'<g class="s-{state}"><title>{escape_html(f"{shape.title} ({shape.kind}): {note}")}</title>',
        pile if shape.pile else "",
        f'<rect class="node" x="{shape.x:.1f}" y="{shape.y:.1f}" {box}/>',
        f'<text class="name" x="{shape.x + 12:.1f}" y="{shape.y + 21:.1f}">{escape_html(title)}</text>',
    ]
    if shape.height > 40:
        fits = escape_html(fit_text(note, shape.width - 22, SMALL_CHAR_WIDTH))
        parts.append(f'<text class="small" x="{shape.x + 12:.1f}" y="{shape.y + 38:.1f}">{fits}</text>')
        parts.append(_bar(shape, count))
    if count and count.mended:
        parts.append(f'<text class="mark" x="{shape.x + shape.width - 20:.1f}" y="{shape.y + 21:.1f}">✚</text>')
    return "".join(parts) + "</g>"


def _bar(shape: FlowBox, count: NameCount | None) -> str:
    """The states of the name's items as one bar."""
    x, y, width = shape.x + 12, shape.y + shape.height - 13, shape.width - 24
    parts = [f'<rect class="rail" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="4" rx="2"/>']
    total = sum(getattr(count, segment) for segment in SEGMENTS) if count else 0
    for segment in SEGMENTS if total else ():
        share = getattr(count, segment) * width / total
        if share:
            parts.append(f'<rect class="f-{segment}" x="{x:.1f}" y="{y:.1f}" width="{share:.1f}" height="4"/>')
            x += share
    return "".join(parts)
