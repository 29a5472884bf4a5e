"""Which element of its loops an item is for, in a few words for people: `clean[2]` is `s3.txt`."""

import json
from typing import Final

from mendflow.core.data.table_files import ROW_NAMES
from mendflow.core.engine.plan import Plan, PlanNode, ancestors
from mendflow.core.engine.state import Case
from mendflow.core.model.flow import ForEach
from mendflow.core.model.values import Value, file_of, is_spilled

CHARS_MAX: Final = 48


def element_of(case: Case, serial: int) -> str:
    """The elements of the loops around the item of an outstanding order, the outermost first; empty outside of loops,
    and in flows with XML."""
    instance = case.instances.get(case.index.serials.get(serial, 0))
    if instance is None or not instance.path or case.plan.flow.xml is not None:
        return ""
    told: list[str] = []
    env = case.envs[instance.env]
    for names in _loops_around(case.plan, case.plan.nodes[instance.node]):
        while env.parent and not _has_element(env.variables, names):
            env = case.envs[env.parent]
        told.append(_shown_element(env.variables, names))
        env = case.envs[env.parent] if env.parent else env
    return told[0] if len(told) == 1 else ", ".join(reversed(told))


def _loops_around(plan: Plan, node: PlanNode) -> tuple[tuple[str, ...], ...]:
    """The names that each loop around a node gives its elements, the innermost loop first."""
    if node.loops is None:
        activities = [around.activity for around in ancestors(plan, node)]
        node.loops = tuple(tuple(each.axes) or (each.variable,) for each in activities if isinstance(each, ForEach))
    return node.loops


def _has_element(variables: dict[str, Value], names: tuple[str, ...]) -> bool:
    """Whether these are the variables of an iteration of a loop that gives its elements these names."""
    if "index" not in variables or names[0] not in variables:
        return False
    return len(names) == 1 or variables.keys() >= {*names}


def _shown_element(variables: dict[str, Value], names: tuple[str, ...]) -> str:
    """The element of one loop; of a loop over several lists each with its name."""
    if len(names) == 1:
        return short(variables.get(names[0]))
    return ", ".join(f"{name}={short(variables.get(name))}" for name in names)


def short(value: Value) -> str:
    """A value in a line: of a file its name, of a path its end, of a map what names it, or its first text."""
    if type(value) is int:
        return str(value)
    if (file := file_of(value)) is not None:
        value = file.name
    if isinstance(value, dict) and not is_spilled(value):
        named = next((value[key] for key in ROW_NAMES if isinstance(value.get(key), str | int | float)), None)
        if named is None:
            named = next((cell for cell in value.values() if isinstance(cell, str)), None)
        value = value if named is None else named
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "/" in text and isinstance(value, str):
        text = text.rstrip("/").rpartition("/")[2] or text
    text = " ".join(text.split())
    return text if len(text) <= CHARS_MAX else f"{text[: CHARS_MAX - 3]}..."
