"""What worked on a part of a loop's results, because iterations failed that may fail, or were cancelled.

A loop with `tolerate` ends well, and what failed is null in its results. What follows leaves the nulls out, and its own
result looks like any other: a merge of two lanes looks like a merge of three. So it is told, and where results are put
into groups (`group_by`), which groups lack something."""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mendflow.core.engine.activities.foreach import place_names
from mendflow.core.engine.activity_parts import parts_of
from mendflow.core.engine.plan import walk_activities
from mendflow.core.engine.result_checks import templates_of
from mendflow.core.expressions import ExpressionError, evaluate, expressions_of, resolve
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import reason_in
from mendflow.core.model.flow import ActivityNode, Flow, ForEach, JobActivity, Scope
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView, ItemView, NameCount
from mendflow.lazy import lazy_pattern

PLACES_MAX: Final = 20_000
"""Of a longer loop it is not told which groups lack something."""

NAMED_MAX: Final = 5
_ITERATION: Final = lazy_pattern(r"([^\[\]]+)\[(\d+)\]")
_GROUPED: Final = lazy_pattern(r"""\bgroup_by\(\s*(?:[^()'"]*,\s*)?['"]([^'"]+)['"]\s*\)""")


class LostIteration(NamedTuple):
    """An item that ended without a result. `shown` has the element that it was for."""

    item: str
    shown: str
    state: str


class PartialResult(NamedTuple):
    """What worked without something, by the name of the job or loop; empty: the flow's own outputs."""

    name: str
    sentence: str


def removal_reason(item: ItemView) -> str:
    """Why somebody cancelled this item; empty if nobody did, or it was cancelled because of another."""
    if item.state != "cancelled":
        return ""
    return reason_in(item.fault.message if item.fault else item.reason)


def partial_in_case(flow: Flow, case: CaseView, items: Iterable[ItemView]) -> list[PartialResult]:
    """What worked on a part of what it asks for, in a case with these items: all, or those without a result."""
    lost = [LostIteration(each.item, each.shown, each.state) for each in items if each.state in ("failed", "cancelled")]
    ran = {each.name for each in case.counts if each.done or each.cached or each.running or each.failed}
    return partial_results(flow, case.inputs, lost, ran)


def tolerated_items(flow: Flow, case: CaseView, items: Iterable[ItemView]) -> set[str]:
    """The failed items of loops that may lose as many: they failed, and the flow went on. Of a loop inside another, or
    one whose limit cannot be known from the case's inputs, none."""
    failed = [LostIteration(each.item, each.shown, each.state) for each in items if each.state == "failed"]
    if flow.xml is not None or not failed:
        return set()
    found: set[str] = set()
    for loop in walk_activities(flow):
        if isinstance(loop, ForEach) and (loop.tolerate is not None or loop.tolerate_percent is not None):
            names = {loop.name, *(_shown(each) for each in _inside(loop))}
            places = _lost_places(failed, names)
            if places and len(places) <= _tolerated(flow, case, loop, names):
                found |= {each.item for each in failed if _lost_places([each], names)}
    return found


def _tolerated(flow: Flow, case: CaseView, loop: ForEach, names: set[str]) -> int:
    """How many iterations of a loop may fail."""
    if loop.tolerate_percent is not None:
        total = max((_count(each) for each in case.counts if each.name in names), default=0)
        return int(total * loop.tolerate_percent / 100)
    if not isinstance(loop.tolerate, Expr):
        return loop.tolerate or 0
    try:
        value = evaluate(loop.tolerate, _known_at_start(flow, case.inputs).__getitem__)
    except (ExpressionError, KeyError):
        return 0
    return int(value) if isinstance(value, int | float) else 0


def _count(name: NameCount) -> int:
    return name.done + name.cached + name.running + name.waiting + name.failed + name.cancelled + name.skipped


def _known_at_start(flow: Flow, inputs: Mapping[str, Value]) -> dict[str, Value]:
    return {"inputs": {**{name: each.default for name, each in flow.inputs.items()}, **inputs}}


def partial_results(
    flow: Flow, inputs: Mapping[str, Value], lost: Sequence[LostIteration], ran: Collection[str]
) -> list[PartialResult]:
    """What worked on a part of what it asks for. `ran` are the names of items that ran."""
    if flow.xml is not None or not lost:
        return []
    found: dict[tuple[str, str], PartialResult] = {}
    for loop in walk_activities(flow):
        if not isinstance(loop, ForEach) or _handles_faults(loop):
            continue
        names = {loop.name, *(_shown(each) for each in _inside(loop))}
        if missing := _lost_places(lost, names):
            for each in _told(flow, inputs, loop, names, missing, ran):
                known = found.get((loop.name, each.name))
                if known is None or len(known.sentence) < len(each.sentence):  # a loop says more than its job
                    found[loop.name, each.name] = each
    return list(found.values())


def _handles_faults(loop: ForEach) -> bool:
    """Whether iterations can end well although something in them failed."""
    return any(isinstance(each, Scope) and each.catches for each in _inside(loop))


def _shown(part: ActivityNode) -> str:
    return getattr(part, "label", "") or part.name


def _told(
    flow: Flow,
    inputs: Mapping[str, Value],
    loop: ForEach,
    names: set[str],
    missing: dict[int, LostIteration],
    ran: Collection[str],
) -> Iterator[PartialResult]:
    who = _listed([each.shown for each in missing.values()])
    states = {each.state for each in missing.values()}
    how = "failed" if states == {"failed"} else "was cancelled" if len(missing) == 1 else "did not complete"
    for part in walk_activities(flow):
        name = _shown(part)
        if name in names or name not in ran or not _asks_for(part, loop.name):
            continue
        sentence = f"{name} ran without the results of {who}, which {how}"
        if isinstance(part, ForEach) and (key := _group_key(part, loop.name)):
            sentence += _groups_text(_group_values(flow, inputs, loop, key), missing, key)
        yield PartialResult(name, sentence)
    if _mentions([text for each in flow.outputs.values() for text in _texts(each)], loop.name):
        yield PartialResult("", f"the outputs of the flow lack the results of {who}, which {how}")


def _inside(loop: ForEach) -> Iterator[ActivityNode]:
    pending: list[Any] = [loop.body]
    while pending:
        part = pending.pop()
        if isinstance(part, ActivityNode):
            yield part
        pending.extend(parts_of(part))


def _lost_places(lost: Sequence[LostIteration], names: set[str]) -> dict[int, LostIteration]:
    """The iterations of a loop that is in no other, by their places."""
    found: dict[int, LostIteration] = {}
    for each in lost:
        matched = _ITERATION.fullmatch(each.item)
        if matched and matched[1] in names:
            found.setdefault(int(matched[2]), each)
    return dict(sorted(found.items()))


def _asks_for(part: ActivityNode, loop: str) -> bool:
    parts = (
        [part, *(each for each in _inside(part) if isinstance(each, JobActivity))]
        if isinstance(part, ForEach)
        else [part]
    )
    return _mentions([text for each in parts for template in templates_of(each) for text in _texts(template)], loop)


def _mentions(texts: Sequence[str], loop: str) -> bool:
    name = re.escape(loop)
    asked = re.compile(rf"""\bjobs(?:\.`?{name}`?(?![\w-])|\[\s*['"]{name}['"]\s*\])""")
    return any(asked.search(text) for text in texts)


def _texts(template: Any) -> list[str]:
    if isinstance(template, Expr):
        return [template.text]
    try:
        return [piece.text for piece in expressions_of(template)]
    except ExpressionError:
        return []


def _group_key(part: ForEach, loop: str) -> str:
    """The member that this loop's elements are grouped by, if they come from the results of the other."""
    for template in (part.items, *part.axes.values()):
        for text in _texts(template):
            if _mentions([text], loop) and (found := _GROUPED.search(text)):
                return found[1]
    return ""


def _group_values(flow: Flow, inputs: Mapping[str, Value], loop: ForEach, key: str) -> list[Value] | None:
    """What each iteration has under the key that its results are grouped by; None if that cannot be known from the
    case's inputs alone."""
    if key not in loop.collect_map:
        return None
    known = _known_at_start(flow, inputs)
    try:
        axes = {
            name: resolve(given, known.__getitem__)
            for name, given in (loop.axes or {loop.variable: loop.items}).items()
        }
        if not all(isinstance(each, list) for each in axes.values()):
            return None
        sizes = [len(each) for each in axes.values()]
        total = min(sizes) if loop.zip else math.prod(sizes)
        if total > PLACES_MAX:
            return None
        values = []
        for place in range(total):
            at = {**known, **place_names(axes, place, zipped=loop.zip), "index": place}
            values.append(resolve(loop.collect_map[key], at.__getitem__))
        return values
    except (ExpressionError, KeyError):
        return None


def _groups_text(values: list[Value] | None, missing: Mapping[int, LostIteration], key: str) -> str:
    if values is None or any(place >= len(values) for place in missing):
        return f"; the groups by {key} that these belong to lack them, or are missing as a whole"
    texts = [json.dumps(value, sort_keys=True) for value in values]
    left = {text for place, text in enumerate(texts) if place not in missing}
    hit = list(dict.fromkeys(texts[place] for place in missing))
    names = {text: value if isinstance(value, str) else text for text, value in zip(texts, values, strict=True)}
    lacking, gone = [names[each] for each in hit if each in left], [names[each] for each in hit if each not in left]
    told = [f"{_listed(lacking)} incomplete"] if lacking else []
    told += [f"{_listed(gone)} missing as a whole"] if gone else []
    return f"; groups by {key}: {'; '.join(told)}"


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(str(each) for each in names[:NAMED_MAX])
    return f"{shown} and {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else shown
