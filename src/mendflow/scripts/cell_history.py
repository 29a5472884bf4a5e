"""Which statements of a notebook make a name what it is.

From where a name is used, one goes back to the last statement that binds it whatever happens; that one counts, and all
after it that bind or change the name. What these use counts in the same way. A call that may change the value, so that
nobody can tell from the cells, is refused rather than guessed at."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Final

from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.python.flows import FlowFunction
from mendflow.scripts.cell_effects import CellEffects, changed_inside, effects_of

FIXED: Final = (
    *(int, float, complex, str, bytes, NoneType, PurePath, range),
    *(type, ModuleType, FunctionType, BuiltinFunctionType, FlowFunction),
)
"""Values that no method and no function changes."""
DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class CellHistory:
    def __init__(self, statements: Sequence[ast.stmt], values: Mapping[str, object]) -> None:
        self._statements = statements
        self._values = values
        self._effects = [effects_of(each) for each in statements]
        self._assigned_inside = _changed_by_functions(statements, self._effects, by_assignment=True)
        self._changed_inside = _changed_by_functions(statements, self._effects, by_assignment=False)
        self._same = _names_of_the_same(self._effects)

    def binds(self, name: str) -> bool:
        return any(name in each.bound for each in self._effects)

    def needed_for(self, name: str) -> set[int]:
        """The places of the statements that make a name what it is after the last of them."""
        needed: set[int] = set()
        pending, seen = [(name, len(self._effects))], set[tuple[str, int]]()
        while pending:
            if (wanted := pending.pop()) in seen:
                continue
            seen.add(wanted)
            for place in self._makers(*wanted):
                needed.add(place)
                pending += [(each, place) for each in self._effects[place].used]
                pending += [(each, wanted[1]) for each in self._effects[place].later]
        return needed

    def _makers(self, name: str, before: int) -> list[int]:
        """The statements before that place that make a name what it is there."""
        if not any(name in each.bound for each in self._effects[:before]):
            return []
        found: list[int] = []
        fixed = self._is_fixed(name)
        inside = self._assigned_inside if fixed else self._changed_inside
        same = {name} if fixed else self._same.get(name, {name})
        for place in range(before - 1, -1, -1):
            effects = self._effects[place]
            if name in effects.bound and effects.replaces:
                return [*found, place]
            if name in effects.bound or same & effects.assigned or (not fixed and same & effects.asked):
                found.append(place)
            elif not fixed and same & effects.handed_over:
                self._refuse(name, place)
            if any(same & inside.get(each, set()) for each in effects.called):
                self._refuse(name, place)
        return found

    def _is_fixed(self, name: str) -> bool:
        """Whether only assignments change it."""
        binders = [each for each, does in zip(self._statements, self._effects, strict=True) if name in does.bound]
        if all(isinstance(each, DEFINITIONS) or _is_constant(each) for each in binders):
            return True
        return name in self._values and _is_fixed_value(self._values[name])

    def _refuse(self, name: str, place: int) -> None:
        text = ast.unparse(self._statements[place]).partition("\n")[0]
        raise InvalidRequest(
            f"`{text:.100}` may have changed `{name}`, which the flow uses, and the cells do not say how; give "
            f"`{name}` to the flow as an input, or assign it anew in a cell after that"
        )


def _is_constant(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
    computed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)
    return value is not None and all(isinstance(each, computed) for each in ast.walk(value))


def _is_fixed_value(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_fixed_value, value))
    return isinstance(value, FIXED)


def _changed_by_functions(
    statements: Sequence[ast.stmt], effects: Sequence[CellEffects], *, by_assignment: bool
) -> dict[str, set[str]]:
    """What each function of the cells changes, and what the functions that it uses do."""
    changed: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    for statement, does in zip(statements, effects, strict=True):
        if isinstance(statement, DEFINITIONS[:3]):
            changed.setdefault(statement.name, set()).update(changed_inside(statement, by_assignment=by_assignment))
            uses.setdefault(statement.name, set()).update(does.later)
    is_growing = True
    while is_growing:
        is_growing = False
        for name, others in uses.items():
            more = {each for other in others for each in changed.get(other, ())} - changed[name]
            changed[name] |= more
            is_growing = is_growing or bool(more)
    return changed


def _names_of_the_same(effects: Sequence[CellEffects]) -> dict[str, set[str]]:
    """For each name those that may be names of the same value, or of a part of it."""
    groups: dict[str, set[str]] = {}
    for each in effects:
        if each.shares:
            joined = set(each.shares).union(*(groups.get(name, ()) for name in each.shares))
            for name in joined:
                groups[name] = joined
    return groups
