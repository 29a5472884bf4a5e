"""The functions that expressions have beside CEL's own, as its library takes them."""

import json
import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mendflow.core.expressions.cel_source import SORT_BY, SORTED
from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.expressions.division import CEL_INT_MAX, quotient
from mendflow.core.expressions.kinds import kind_of, mismatch
from mendflow.core.expressions.scanner import REWRITE
from mendflow.core.expressions.text_values import as_json, demand_whole_texts, shell_quote
from mendflow.core.expressions.work_budget import WORK, bounded_replace, weight
from mendflow.core.expressions.work_functions import work_functions
from mendflow.core.model.values import Value
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from cel_expr_python import cel
else:
    cel = LazyModule("cel_expr_python.cel")

DOUBLINGS_MAX: Final = 32
COMPLETED_END, FAILED_END, SKIPPED_END, CANCELLED_END = "completed", "failed", "skipped", "cancelled"
"""How a job ended, as lookups say it."""


def _overload(name: str, result: Any, parameters: list[Any], run: Callable[..., Any], member: bool = False) -> Any:
    return cel.Overload(name, return_type=result, parameters=parameters, impl=run, is_member=member)


def _distinct(values: list[Value]) -> list[Value]:
    seen: dict[str, Value] = {}
    for value in values:
        seen.setdefault(json.dumps(value, sort_keys=True), value)
    return list(seen.values())


def _sort(values: list[Value]) -> list[Value]:
    return [value for _, value in _in_order("sort", [(value, value) for value in values])]


def _sorted_by_first(pairs: list[Value]) -> list[Value]:
    return [value for _, value in _in_order(SORT_BY, pairs)]


def _in_order(do: str, pairs: list[Any]) -> list[Any]:
    """The pairs, ordered by what is first in each. Values of several kinds have no order."""
    kinds = list({kind_of(first): None for first, _ in pairs})
    try:
        if len(kinds) < 2:
            return sorted(pairs, key=operator.itemgetter(0))
    except TypeError:
        pass  # null, maps, or lists with such in them
    raise ExpressionError(mismatch(do, (kinds * 2)[:2]))


def _sum(values: list[Value]) -> Value:
    for value in values:
        if not isinstance(value, int | float):
            hint = "; join() puts texts together" if isinstance(value, str) else ""
            raise ExpressionError(f"`sum` adds numbers, and this list has {kind_of(value)} in it{hint}")
    return sum(values)


def _flatten(values: list[Value]) -> list[Value]:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]


def _group_by(rows: list[Value], key: str) -> list[Value]:
    """The rows of each value of a member, in the order in which the values come first. Nulls, the results of iterations
    that may fail, belong to no group; that they are missing is told (partial_results)."""
    WORK.spend(weight(rows))
    demand_whole_texts("the list", rows)
    groups: dict[str, dict[str, Value]] = {}
    for number, row in enumerate(rows):
        if row is None:
            continue
        if not isinstance(row, dict) or key not in row:
            known = f"; it has {', '.join(row)}" if isinstance(row, dict) else ""
            raise ExpressionError(f"element {number} has no member `{key}` to group by{known}")
        group = groups.setdefault(json.dumps(row[key], sort_keys=True), {"key": row[key], "items": []})
        group["items"].append(row)
    return list(groups.values())


def _counted(run: Callable[[list[Value]], Value]) -> Callable[[list[Value]], Value]:
    def counted(values: list[Value]) -> Value:
        WORK.spend(weight(values))
        demand_whole_texts("the list", values)
        return run(values)

    return counted


def _rewrite(text: str, old: str, new: str, limit: int = -1) -> str:
    result = bounded_replace(text, old, new, limit)
    demand_whole_texts("the result", result)
    return result


def _json(value: Value) -> str:
    WORK.spend(weight(value))
    return as_json(value)


def _quote(value: Value) -> str:
    WORK.spend(weight(value))
    demand_whole_texts("the value", value)
    return shell_quote(value)


def _duration_functions(kinds: Any) -> list[Any]:
    """Durations can be multiplied and divided by numbers; `backoff(base, n)` is the base, doubled n times."""
    span, numbers = kinds.DURATION, {"int": kinds.INT, "double": kinds.DOUBLE}
    times = [_overload(f"duration_times_{name}", span, [span, kind], operator.mul) for name, kind in numbers.items()]
    times += [_overload(f"{name}_times_duration", span, [kind, span], operator.mul) for name, kind in numbers.items()]
    parts = [_overload(f"duration_by_{name}", span, [span, kind], _part_of_duration) for name, kind in numbers.items()]
    doubled = [
        _overload(f"backoff_{name}", kind, [kind, kinds.INT], _backoff)
        for name, kind in {"span": span, **numbers}.items()
    ]
    return [cel.FunctionDecl("_*_", times), cel.FunctionDecl("_/_", parts), cel.FunctionDecl("backoff", doubled)]


def _part_of_duration(span: Any, by: float) -> Any:
    if not by:
        raise ExpressionError("divide by zero")
    return span / by


def _backoff(base: Any, times: int) -> Any:
    return base * 2 ** max(0, min(times, DOUBLINGS_MAX))


def _division(kinds: Any) -> Any:
    """What the text of a division says once it has its mark. A duration goes on to be divided as itself."""
    boxed, numbers = kinds.List(kinds.DYN), {"int": kinds.INT, "uint": kinds.UINT, "double": kinds.DOUBLE}
    boxes = [_overload(f"box_{name}", boxed, [kind, kinds.BYTES], lambda a, _: [a]) for name, kind in numbers.items()]
    boxes.append(_overload("box_duration", kinds.DURATION, [kinds.DURATION, kinds.BYTES], lambda a, _: a))
    parts = [
        _overload(f"boxed_by_{name}", kinds.DYN, [boxed, kind], lambda box, b: quotient(box[0], b))
        for name, kind in numbers.items()
    ]
    return cel.FunctionDecl("_/_", boxes + parts)


def _whole_numbers(kinds: Any) -> list[Any]:
    """`math.floor(a / b)` and its kin, where nothing was left over; and `range(n)`, `range(first, end)`."""
    same = [
        cel.FunctionDecl(f"math.{name}", [_overload(f"math_{name}_int", kinds.INT, [kinds.INT], lambda whole: whole)])
        for name in ("floor", "ceil", "round", "trunc")
    ]
    whole = kinds.INT
    ranges = [
        _overload("range_to", kinds.List(whole), [whole], _range),
        _overload("range_from", kinds.List(whole), [whole, whole], _range),
        _overload("range_step", kinds.List(whole), [whole, whole, whole], _range),
    ]
    return [*same, cel.FunctionDecl("range", ranges)]


def _range(*bounds: int) -> list[int]:
    if bounds[2:] == (0,):
        raise ExpressionError("`range` with a step of 0 never ends; give another step")
    numbers = range(*bounds)
    try:
        count = len(numbers)
    except OverflowError:
        count = CEL_INT_MAX
    WORK.spend(count)
    return list(numbers)


def extension() -> Any:
    kinds = cel.Type
    mixed = {"_+_": operator.add, "_-_": operator.sub, "_*_": operator.mul}
    declared = [
        cel.FunctionDecl(
            name,
            [
                _overload(f"{name}_int_double", kinds.DOUBLE, [kinds.INT, kinds.DOUBLE], run),
                _overload(f"{name}_double_int", kinds.DOUBLE, [kinds.DOUBLE, kinds.INT], run),
            ],
        )
        for name, run in mixed.items()
    ]
    declared += _duration_functions(kinds)
    declared.append(_division(kinds))
    declared += _whole_numbers(kinds)
    anything = kinds.List(kinds.DYN)
    on_lists: dict[str, tuple[Any, Callable[[list[Value]], Value]]] = {
        "sum": (kinds.DYN, _sum),
        "sort": (anything, _sort),
        "distinct": (anything, _distinct),
        "flatten": (anything, _flatten),
        SORTED: (anything, _sorted_by_first),
    }
    declared += [
        cel.FunctionDecl(name, [_overload(f"list_{name}", result, [anything], _counted(run), member=True)])
        for name, (result, run) in on_lists.items()
    ]
    text = kinds.STRING
    grouped = [
        _overload("list_group_by", anything, [anything, text], _group_by, member=True),
        _overload("group_by_list", anything, [anything, text], _group_by),
    ]
    declared.append(cel.FunctionDecl("group_by", grouped))
    declared.append(
        cel.FunctionDecl(
            REWRITE,
            [
                _overload("text_rewrite", text, [text, text, text], _rewrite, member=True),
                _overload("text_rewrite_some", text, [text, text, text, kinds.INT], _rewrite, member=True),
            ],
        )
    )
    declared += [
        cel.FunctionDecl(name, [_overload(f"{name}_of", kinds.STRING, [kinds.DYN], run)])
        for name, run in {"json": _json, "quote": _quote}.items()
    ]
    ends = {"failed": FAILED_END, "skipped": SKIPPED_END, "did": COMPLETED_END}
    declared += [
        cel.FunctionDecl(name, [_overload(f"{name}_end", kinds.BOOL, [kinds.DYN], partial(operator.eq, word))])
        for name, word in ends.items()
    ]
    declared.append(cel.FunctionDecl("always", [_overload("always_true", kinds.BOOL, [], lambda: True)]))
    return cel.CelExtension("mendflow", declared + work_functions())
