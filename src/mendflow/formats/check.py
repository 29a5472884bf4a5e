"""Checks flow files without running anything except the top level of Python files."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.formats import load
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.python import loader as python_files
else:
    python_files = LazyModule("mendflow.formats.python.loader")


def check(paths: Iterable[str | Path]) -> list[Problem]:
    """All problems of all files, in the order of the files."""
    return [problem for path in paths for problem in problems_of(str(path))]


def problems_of(path: str) -> list[Problem]:
    try:
        for flow in flows_of(path):
            compile_flow(flow)
    except BadFlow as error:
        # Problems that only the engine finds have no position in the file.
        return [each if each.file else Problem(file=path, message=each.message) for each in error.problems]
    return []


def flows_of(path: str) -> list[Flow]:
    """All flows of a Python file, unless one is named; else the file's one flow."""
    if path.endswith(".py"):
        flows = list(python_files.load_python(Path(path)).values())
        if flows:
            return flows
    return [load(path)]
