"""Layout of boxes and arrows from left to right: each box is in the layer after the last one that it depends on.

The usual four steps: layers by the longest path; dummy nodes where an arrow crosses a layer, so that arrows go around
boxes; a few sweeps that order each layer by the median of its neighbours; and coordinates. An arrow that would close a
cycle is ignored for the layers, and still drawn."""

from collections import defaultdict
from itertools import pairwise

import msgspec

LAYER_GAP = 46.0
BOX_GAP = 22.0
SWEEPS = 6
COLUMN_MAX = 8
"""More unconnected boxes than this are put into several columns."""

ROW_BOXES_MAX = 6


class BoxLayout(msgspec.Struct):
    """The upper left corner of each box, and the points of each arrow."""

    x: list[float]
    y: list[float]
    width: float
    height: float
    bends: dict[tuple[int, int], list[tuple[float, float]]]


class _Grid(msgspec.Struct):
    """Boxes and dummy nodes by layer; numbers from `len(sizes)` on are dummies."""

    sizes: list[tuple[float, float]]
    layers: list[list[int]]
    above: dict[int, list[int]]
    below: dict[int, list[int]]
    paths: dict[tuple[int, int], list[int]]


def layered_layout(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> BoxLayout:
    if not sizes:
        return BoxLayout(x=[], y=[], width=0.0, height=0.0, bends={})
    ranks = _ranks(len(sizes), edges)
    grid = _grid(sizes, edges, ranks)
    for sweep in range(SWEEPS):
        _order(grid, down=sweep % 2 == 0)
    return _coordinates(grid, len(sizes))


def column_layout(sizes: list[tuple[float, float]]) -> BoxLayout:
    """Boxes without arrows, row by row, in a block about as wide as a page."""
    columns = min(ROW_BOXES_MAX, -(-len(sizes) // COLUMN_MAX) + 1)
    widths = [max((width for width, _ in sizes[place::columns]), default=0.0) for place in range(columns)]
    lefts = [sum(widths[:place]) + BOX_GAP * place for place in range(columns)]
    x, y, top = [], [], 0.0
    for first in range(0, len(sizes), columns):
        row = sizes[first : first + columns]
        x += [lefts[place] for place in range(len(row))]
        y += [top] * len(row)
        top += max(height for _, height in row) + BOX_GAP
    return BoxLayout(x=x, y=y, width=sum(widths) + BOX_GAP * (columns - 1), height=top - BOX_GAP, bends={})


def _ranks(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """The longest path to each box. Boxes in a cycle come after all others."""
    following: dict[int, list[int]] = defaultdict(list)
    open_edges = [0] * count
    for start, end in edges:
        following[start].append(end)
        open_edges[end] += 1
    ranks = [0] * count
    ready = [box for box in range(count) if open_edges[box] == 0]
    for box in ready:
        for end in following[box]:
            ranks[end] = max(ranks[end], ranks[box] + 1)
            open_edges[end] -= 1
            if open_edges[end] == 0:
                ready.append(end)
    for box in sorted(set(range(count)) - set(ready)):
        ranks[box] = max(ranks) + 1
    used = {rank: index for index, rank in enumerate(sorted(set(ranks)))}
    return [used[rank] for rank in ranks]


def _grid(sizes: list[tuple[float, float]], edges: list[tuple[int, int]], ranks: list[int]) -> _Grid:
    grid = _Grid(list(sizes), [[] for _ in range(max(ranks) + 1)], defaultdict(list), defaultdict(list), {})
    for box, rank in enumerate(ranks):
        grid.layers[rank].append(box)
    for start, end in dict.fromkeys(edges):
        if ranks[end] <= ranks[start]:
            grid.paths[start, end] = []
            continue
        path, last = [], start
        for rank in range(ranks[start] + 1, ranks[end]):
            stand_in = len(grid.sizes)
            grid.sizes.append((0.0, 0.0))
            grid.layers[rank].append(stand_in)
            path.append(stand_in)
            _join(grid, last, stand_in)
            last = stand_in
        _join(grid, last, end)
        grid.paths[start, end] = path
    return grid


def _join(grid: _Grid, start: int, end: int) -> None:
    grid.below[start].append(end)
    grid.above[end].append(start)


def _order(grid: _Grid, *, down: bool) -> None:
    """Order each layer by the positions of its neighbours in the layer before."""
    layers = grid.layers if down else grid.layers[::-1]
    neighbours = grid.above if down else grid.below
    for before, layer in pairwise(layers):
        place = {box: index for index, box in enumerate(before)}
        own = {box: index for index, box in enumerate(layer)}

        def middle(box: int, place: dict[int, int] = place, own: dict[int, int] = own) -> float:
            there = [place[other] for other in neighbours[box]]
            return sum(there) / len(there) if there else float(own[box])

        layer.sort(key=middle)


def _coordinates(grid: _Grid, count: int) -> BoxLayout:
    x, y = [0.0] * len(grid.sizes), [0.0] * len(grid.sizes)
    left, columns = 0.0, [(0.0, 0.0)] * len(grid.sizes)
    for layer in grid.layers:
        width = max(grid.sizes[box][0] for box in layer)
        for box in layer:
            x[box] = left + (width - grid.sizes[box][0]) / 2
            columns[box] = (left, left + width)
        left += width + LAYER_GAP
    for layer in grid.layers:
        _stack(layer, grid, y, [0.0] * len(layer))
    for sweep in range(SWEEPS):
        neighbours = grid.above if sweep % 2 == 0 else grid.below
        for layer in grid.layers if sweep % 2 == 0 else grid.layers[::-1]:
            _stack(layer, grid, y, [_preferred_top(box, neighbours[box], grid, y) for box in layer])
    top = min(y)
    y = [place - top for place in y]
    height = max(place + grid.sizes[box][1] for box, place in enumerate(y))
    middles = [place + grid.sizes[box][1] / 2 for box, place in enumerate(y)]
    bends = {edge: _bends(edge, path, columns, middles) for edge, path in grid.paths.items()}
    return BoxLayout(x=x[:count], y=y[:count], width=left - LAYER_GAP, height=height, bends=bends)


def _bends(
    edge: tuple[int, int], path: list[int], columns: list[tuple[float, float]], middles: list[float]
) -> list[tuple[float, float]]:
    """An arrow is level inside every column and bends only between two, where there are no boxes."""
    start, end = edge
    through = [(side, middles[stop]) for stop in path for side in columns[stop]]
    return [(columns[start][1], middles[start]), *through, (columns[end][0] - 2, middles[end])]


def _preferred_top(box: int, neighbours: list[int], grid: _Grid, y: list[float]) -> float:
    """The upper edge that aligns the box with the middle of its neighbours."""
    if not neighbours:
        return y[box]
    middles = sorted(y[other] + grid.sizes[other][1] / 2 for other in neighbours)
    half = len(middles) // 2
    middle = middles[half] if len(middles) % 2 else (middles[half - 1] + middles[half]) / 2
    return middle - grid.sizes[box][1] / 2


def _stack(layer: list[int], grid: _Grid, y: list[float], wanted: list[float]) -> None:
    """Place boxes at their preferred positions, in order, without overlap; then shift the layer to the mean."""
    bottom = float("-inf")
    for box, place in zip(layer, wanted, strict=True):
        y[box] = max(place, bottom)
        bottom = y[box] + grid.sizes[box][1] + BOX_GAP
    shift = sum(y[box] - place for box, place in zip(layer, wanted, strict=True)) / len(layer)
    for box in layer:
        y[box] -= shift
