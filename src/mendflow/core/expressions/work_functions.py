"""The functions that a metered expression calls: they count its work, and keep the lists that its loops make."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.expressions.metering import (
    APPENDED,
    GIVE_UP,
    MADE_LIST,
    MAY_GO_ON,
    NEW_LIST,
    SPEND_FORMAT,
    SPEND_JOIN,
    SPEND_LOOP,
    SPEND_MADE,
    SPEND_MATCH,
    SPEND_SEARCH,
    SPEND_SPLIT,
    SPEND_TEXT,
    SPEND_WHOLE,
)
from mendflow.core.expressions.work_budget import (
    CALL_WORK,
    COPIED_ELEMENTS,
    LOOP_STEPS,
    LOOPS_MAX,
    NEEDLE_CHARS,
    SCANNED_CHARS,
    SPLIT_CHARS,
    WEIGHED_CHARS,
    WORK,
    too_much_work,
    weight,
)
from mendflow.core.model.values import Value
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from cel_expr_python import cel
else:
    cel = LazyModule("cel_expr_python.cel")


def _may_spend(amount: int) -> bool:
    """Count the work of a call. The answer is whether it may begin."""
    try:
        WORK.spend(CALL_WORK + amount)
    except ExpressionError:
        return False
    return True


def _search(chars: int, needle_chars: int) -> bool:
    return _may_spend(chars // SCANNED_CHARS * (1 + needle_chars // NEEDLE_CHARS))


def _match(chars: int, pattern_chars: int, pattern_work: int) -> bool:
    return _may_spend(pattern_work + chars // SCANNED_CHARS * (1 + pattern_chars // NEEDLE_CHARS))


def _text(size: int, is_text: bool) -> bool:
    return _may_spend(size // SCANNED_CHARS if is_text else 0)


def _split(chars: int, _: bool) -> bool:
    return _may_spend(chars // SPLIT_CHARS)


def _made(size: int, other: int, is_text: bool) -> bool:
    return _may_spend((size + other) // (SCANNED_CHARS if is_text else COPIED_ELEMENTS))


def _whole(value: Value) -> bool:
    return _may_spend(weight(value))


def _join(parts: list[Value], separator: str = "") -> bool:
    return _may_spend(weight(parts) + len(parts) * len(separator) // SCANNED_CHARS)


def _format(text: str, parts: list[Value]) -> bool:
    return _may_spend(weight(parts) + len(text) // SCANNED_CHARS)


def _loop(elements: int, steps: int) -> bool:
    return _may_spend(elements // SCANNED_CHARS + min(elements, LOOPS_MAX) * steps // LOOP_STEPS)


def _give_up() -> bool:
    raise too_much_work()


def _new_list() -> int:
    WORK.lists.append([])
    return len(WORK.lists) - 1


def _appended(number: int, value: Value) -> int:
    if isinstance(value, list | dict):
        WORK.spend(weight(value) // 2)
    elif isinstance(value, str | bytearray):
        WORK.spend(len(value) // WEIGHED_CHARS)
    WORK.lists[number].append(value)
    return number


def _made_list(number: int) -> list[Value]:
    return WORK.lists[number]


def work_functions() -> list[Any]:
    kinds = cel.Type
    number, is_text, anything = kinds.INT, kinds.BOOL, kinds.List(kinds.DYN)
    simple: list[tuple[str, Any, list[Any], Callable[..., Any]]] = [
        (SPEND_SEARCH, kinds.BOOL, [number, number], _search),
        (SPEND_MATCH, kinds.BOOL, [number, number, number], _match),
        (SPEND_TEXT, kinds.BOOL, [number, is_text], _text),
        (SPEND_SPLIT, kinds.BOOL, [number, is_text], _split),
        (SPEND_MADE, kinds.BOOL, [number, number, is_text], _made),
        (SPEND_LOOP, kinds.BOOL, [number, number], _loop),
        (SPEND_FORMAT, kinds.BOOL, [kinds.STRING, anything], _format),
        (MAY_GO_ON, kinds.BOOL, [], lambda: not WORK.is_spent),
        (GIVE_UP, kinds.BOOL, [], _give_up),
        (NEW_LIST, number, [], _new_list),
        (APPENDED, number, [number, kinds.DYN], _appended),
        (MADE_LIST, anything, [number], _made_list),
    ]
    declared = [cel.FunctionDecl(name, [_overload(name, *rest)]) for name, *rest in simple]
    weighed = {"text": kinds.STRING, "list": anything, "map": kinds.Map(kinds.DYN, kinds.DYN)}
    wholes = [_overload(f"{SPEND_WHOLE}_{name}", kinds.BOOL, [kind], _whole) for name, kind in weighed.items()]
    joins = [
        _overload(SPEND_JOIN, kinds.BOOL, [anything], _join),
        _overload(f"{SPEND_JOIN}_by", kinds.BOOL, [anything, kinds.STRING], _join),
    ]
    return [*declared, cel.FunctionDecl(SPEND_WHOLE, wholes), cel.FunctionDecl(SPEND_JOIN, joins)]


def _overload(name: str, result: Any, parameters: list[Any], run: Callable[..., Any]) -> Any:
    return cel.Overload(f"{name}_work", return_type=result, parameters=parameters, impl=run, is_member=False)
