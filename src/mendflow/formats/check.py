"""Checks flow files without running anything except the top level of Python files."""

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.engine.files_at_start import files_at_start
from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import FILES, Flow
from mendflow.formats import load
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.python import loader as python_files
else:
    python_files = LazyModule("mendflow.formats.python.loader")

REMARKS_MAX = 20


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


def absent_defaults(flow: Flow) -> list[str]:
    """Files that a case with the defaults of the inputs would read at its start and that are not here: another input
    may name others."""
    folder = Path(flow.folder)
    found = [
        f"job {each.item}, input {each.key}: with the defaults of the inputs there is no file {each.source} in {folder}"
        for each in files_at_start(flow, {})
        if not (folder / each.source).exists()
    ]
    for name, declared in flow.inputs.items():
        default = declared.default if declared.type == FILES and declared.default is not None else []
        for pattern in default if isinstance(default, list) else [default]:
            if isinstance(pattern, str) and not pattern.startswith(LOGICAL_PREFIX) and not _matches(pattern, folder):
                found.append(f"input {name}: no file matches its default {pattern} in {folder}")
    return found[:REMARKS_MAX]


def _matches(pattern: str, folder: Path) -> bool:
    return next(glob.iglob(pattern, root_dir=folder, recursive=True), None) is not None


def flows_of(path: str) -> list[Flow]:
    """All flows of a Python file, unless one is named; else the file's one flow."""
    if path.endswith(".py"):
        flows = list(python_files.load_python(Path(path)).values())
        if flows:
            return flows
    return [load(path)]
