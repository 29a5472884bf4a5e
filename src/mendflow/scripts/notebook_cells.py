"""Flows and jobs that are defined in the cells of a notebook, as a file that pilots can import.

The file has what the flow needs of the cells, in the order in which they were run, and nothing else: what binds the
names that it uses, and what changes them. Of a name that was defined again the last definition counts, as in the
notebook itself."""

import ast
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.python.flows import FlowFunction
from mendflow.scripts.cell_history import CellHistory
from mendflow.scripts.displays import notebook_shell


def is_in_cell(flow: FlowFunction[..., Any]) -> bool:
    """Whether the flow stands in a cell, and so in no file."""
    if flow.function.__module__ != "__main__" or notebook_shell() is None:
        return False
    source = inspect.getsourcefile(flow.function)
    return source is None or not Path(source).is_file()


def flow_in_file(flow: FlowFunction[..., Any], folder: Path) -> FlowFunction[..., Any]:
    """The same flow, imported from a file below the folder that has what it needs of the cells."""
    cells: list[str] = notebook_shell().history_manager.input_hist_parsed
    text = module_text(cells, flow.function.__name__, notebook_shell().user_ns)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = folder / "notebook" / f"cells_{digest}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    found = getattr(_imported(path), flow.function.__name__, None)
    assert isinstance(found, FlowFunction), "the text was made to define it"
    return found


def module_text(cells: Iterable[str], name: str, values: Mapping[str, object] | None = None) -> str:
    """The statements of cells that the definition of a name needs. `values` are those that the notebook has now: what
    cannot be changed, such as a number, stays the same wherever it is handed to. Raises InvalidRequest where it cannot
    be seen what a needed name is."""
    statements = _statements(cells)
    history = CellHistory(statements, values or {})
    if not history.binds(name):
        raise InvalidRequest(f"the flow {name} is in none of the cells that were run; run its cell again")
    needed = history.needed_for(name)
    needed |= {place for place, each in enumerate(statements) if _is_future(each) or _is_star(each)}
    future = [each for each in sorted(needed) if _is_future(statements[each])]
    order = [*future, *(each for each in sorted(needed) if each not in future)]
    return "\n\n\n".join(ast.unparse(statements[place]) for place in order) + "\n"


def _statements(cells: Iterable[str]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for cell in cells:
        try:
            found += ast.parse(cell).body
        except (SyntaxError, ValueError):
            continue  # it was not run either
    return found


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_star(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names)


def _imported(path: Path) -> ModuleType:
    name = path.stem
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "a path that ends in .py has a loader"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
