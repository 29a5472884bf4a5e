"""Which element of its loops an item is for, in a few words for people: `clean[2]` is `s3.txt`."""

import json
from collections.abc import Sequence
from typing import Final

from mendflow.core.data.table_files import ROW_NAMES
from mendflow.core.engine.plan import Plan, PlanNode, ancestors
from mendflow.core.engine.state import Case, ForEachInstance, Instance
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.ids import ItemId
from mendflow.core.model.values import Value, file_of, is_spilled
from mendflow.core.recovery.redaction import is_secret_name, redact

CHARS_MAX: Final = 48
COLUMNS_MAX: Final = 3


def element_of(case: Case, serial: int) -> str:
    """The elements of the loops around the item of an outstanding order, the outermost first. Outside of loops it is
    what a function is called with, if the flow calls it several times; else empty, and so in flows with XML."""
    instance = case.instances.get(case.index.serials.get(serial, 0))
    return element_at(case, instance, instance.node) if instance is not None else ""


def element_of_live(case: Case, item: ItemId) -> str:
    """The same of an item that has not ended, also if it has no outstanding order."""
    instance = case.instances.get(case.index.items.get(item, 0))
    return element_at(case, instance, instance.node) if instance is not None else ""


def element_at(case: Case, instance: Instance, work: int) -> str:
    """The elements of the loops around an instance: its own, if `work` is its node; else those of work in it that does
    not start, which may be within more loops that never began."""
    if case.plan.flow.xml is not None:
        return ""
    if not instance.path:
        return _called_with(case.plan, case.plan.nodes[work])
    told: list[str] = []
    env = case.envs[instance.env]
    inner: Instance | None = instance
    node = case.plan.nodes[instance.node]
    for names in node.loops if node.loops is not None else _loops_around(case.plan, node):
        while env.parent and not _has_element(env.variables, names):
            env = case.envs[env.parent]
        inner = _loop_around(case, inner) if inner is not None else None
        told.append(_shown_element(env.variables, names, _columns_of(case, inner) if inner is not None else ()))
        env = case.envs[env.parent] if env.parent else env
    return told[0] if len(told) == 1 else ", ".join(reversed(told))


def _loops_around(plan: Plan, node: PlanNode) -> tuple[tuple[str, ...], ...]:
    """The names that each loop around a node gives its elements, the innermost loop first."""
    if node.loops is None:
        activities = [around.activity for around in ancestors(plan, node)]
        node.loops = tuple(tuple(each.axes) or (each.variable,) for each in activities if isinstance(each, ForEach))
    return node.loops


def _called_with(plan: Plan, node: PlanNode) -> str:
    """The arguments that tell a call from others of the same function, as those of a loop in a Python flow; found for
    all calls at once."""
    if _function_of(node) is None:
        return ""
    if node.called_with is None:
        alike = [each for each in plan.nodes if _same_calls(each, node)]
        rows = [_arguments(each) for each in alike]
        names = [name for name in (rows[0] if rows else {}) if len({row.get(name, "") for row in rows}) > 1]
        for each, row in zip(alike, rows, strict=True):
            each.called_with = ", ".join(row[name] for name in names[:COLUMNS_MAX] if row.get(name))
        node.called_with = node.called_with or ""
    return node.called_with


def _function_of(node: PlanNode) -> str | None:
    function = node.activity.function if isinstance(node.activity, JobActivity) else None
    return f"{function.module}:{function.name}" if function is not None else None


def _same_calls(one: PlanNode, other: PlanNode) -> bool:
    return one.parent == other.parent and _function_of(one) == _function_of(other)


def _arguments(node: PlanNode) -> dict[str, str]:
    """The arguments of a call that can be shown in a word, those that are known before it runs."""
    given = {**{str(place): value for place, value in enumerate(node.activity.args)}, **node.activity.kwargs}
    shown: dict[str, str] = {}
    for name, value in given.items():
        path = value.get("$path") if isinstance(value, dict) else None
        known = path if isinstance(path, str) else value
        if is_secret_name(name):
            continue
        if isinstance(known, str | int | float) and "${{" not in str(known):
            shown[name] = short(known) if name.isdecimal() else f"{name}={short(known)}"
    return shown


def _loop_around(case: Case, instance: Instance) -> ForEachInstance | None:
    """The innermost loop that an instance is in."""
    above = case.instances.get(instance.parent)
    while above is not None and not isinstance(above, ForEachInstance):
        above = case.instances.get(above.parent)
    return above


def _columns_of(case: Case, loop: ForEachInstance) -> tuple[str, ...]:
    """The columns that tell the rows of a loop apart; none of a loop over anything else."""
    known = case.telling_columns.get(loop.id)
    if known is None:
        known = case.telling_columns[loop.id] = telling_columns(loop.elements or ())
    return known


def telling_columns(rows: Sequence[Value]) -> tuple[str, ...]:
    """The columns by which rows of a table are told apart: what names a row, and as long as two rows are alike, the
    column that tells most of them apart, the first of several. None if these are no rows."""
    if not rows or not all(isinstance(row, dict) and not is_spilled(row) and file_of(row) is None for row in rows):
        return ()
    naming = _naming_column(rows[0])
    if not naming:
        return ()
    chosen, seen = [naming], [_cell(row, naming) for row in rows]
    count = len(set(seen))
    assert isinstance(rows[0], dict)
    while count < len(rows) and len(chosen) < COLUMNS_MAX:
        others = [
            column
            for column in rows[0]
            if column not in chosen and not is_secret_name(column) and _cell(rows[0], column)
        ]
        pairs = {
            column: [(told, _cell(row, column)) for told, row in zip(seen, rows, strict=True)] for column in others
        }
        best = max(others, key=lambda column: len(set(pairs[column])), default="")
        if not best or len(set(pairs[best])) == count:
            break
        chosen.append(best)
        numbers: dict[tuple[Value, str], str] = {}
        seen = [numbers.setdefault(pair, str(len(numbers))) for pair in pairs[best]]
        count = len(numbers)
    return tuple(chosen)


def _naming_column(row: Value) -> str:
    """The column that names a row: one that is called so, else the first with a text. What names a row is seen where
    the row is not, so it is none that is secret by its name."""
    assert isinstance(row, dict)
    named = next((key for key in ROW_NAMES if isinstance(row.get(key), str | int | float)), "")
    return named or next((key for key, cell in row.items() if isinstance(cell, str) and not is_secret_name(key)), "")


def _cell(row: Value, column: str) -> str:
    """A cell as it is shown; empty if it has nothing that can be shown in a word."""
    cell = row.get(column) if isinstance(row, dict) else None
    return short(cell) if isinstance(cell, str | int | float) or file_of(cell) is not None else ""


def _has_element(variables: dict[str, Value], names: tuple[str, ...]) -> bool:
    """Whether these are the variables of an iteration of a loop that gives its elements these names."""
    if "index" not in variables or names[0] not in variables:
        return False
    return len(names) == 1 or variables.keys() >= {*names}


def _shown_element(variables: dict[str, Value], names: tuple[str, ...], columns: tuple[str, ...]) -> str:
    """The element of one loop; of a loop over several lists each with its name, and so are the cells of a row that one
    cell does not name."""
    if len(names) == 1 and len(columns) > 1:
        row = variables.get(names[0])
        return ", ".join(f"{column}={_cell(row, column)}" for column in columns if _cell(row, column))
    if len(names) == 1:
        return _short_of(names[0], variables)
    return ", ".join(f"{name}={_short_of(name, variables)}" for name in names)


def _short_of(name: str, variables: dict[str, Value]) -> str:
    return short(redact({name: variables.get(name)})[name])


def short(value: Value) -> str:
    """A value in a line: of a file its name, of a path its end, of a map what names it, or its first text."""
    if type(value) is int:
        return str(value)
    if (file := file_of(value)) is not None:
        value = file.name
    if isinstance(value, dict) and not is_spilled(value):
        named = _naming_column(value)
        value = value[named] if named else redact(value)
    elif isinstance(value, list):
        value = redact({"": value})[""]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "/" in text and isinstance(value, str):
        text = text.rstrip("/").rpartition("/")[2] or text
    text = " ".join(text.split())
    return text if len(text) <= CHARS_MAX else f"{text[: CHARS_MAX - 3]}..."
