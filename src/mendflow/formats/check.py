"""Checks flow files without running anything except the top level of Python files."""

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.engine.files_at_start import files_at_start
from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import FILE, FILES, Flow
from mendflow.core.model.values import Value
from mendflow.formats import PROCESS, XML, YAML, load
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats import bpel
    from mendflow.formats.python import loader as python_files
    from mendflow.formats.yaml import exlets
else:
    bpel = LazyModule("mendflow.formats.bpel")
    python_files = LazyModule("mendflow.formats.python.loader")
    exlets = LazyModule("mendflow.formats.yaml.exlets")

REMARKS_MAX = 20


def check(paths: Iterable[str | Path], *, xpath2_as_1: bool = False) -> list[Problem]:
    """All problems of all files, in the order of the files."""
    return [problem for path in paths for problem in problems_of(str(path), xpath2_as_1=xpath2_as_1)]


def problems_of(path: str, *, xpath2_as_1: bool = False) -> list[Problem]:
    is_process, problems = path.endswith(PROCESS), list[Problem]()
    try:
        for flow in checked_flows(path, xpath2_as_1=xpath2_as_1):
            compile_flow(flow)
            is_process = is_process or (path.endswith(XML) and flow.xml is not None)
    except BadFlow as error:
        # Problems that only the engine finds have no position in the file.
        problems = [each if each.file else Problem(file=path, message=each.message) for each in error.problems]
    return _with_flaws(path, problems, xpath2_as_1=xpath2_as_1) if is_process else problems


def _with_flaws(path: str, problems: list[Problem], *, xpath2_as_1: bool) -> list[Problem]:
    """The problems of a process, and those of its expressions, which do not keep it from being deployed. What is wrong
    with a line already is said once."""
    told = {(each.file, each.line) for each in problems}
    try:
        flaws = bpel.expression_flaws(path, xpath2_as_1=xpath2_as_1)
    except BadFlow:
        return problems  # it is no process, which was said
    more = [each for each in flaws if (each.file, each.line) not in told]
    return sorted([*problems, *more], key=lambda each: (each.file, each.line)) if more else problems


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
        if declared.type == FILE and _is_absent(declared.default, folder):
            found.append(f"input {name}: there is no file {declared.default}, its default, in {folder}")
        default = declared.default if declared.type == FILES and declared.default is not None else []
        for pattern in default if isinstance(default, list) else [default]:
            if isinstance(pattern, str) and not pattern.startswith(LOGICAL_PREFIX) and not _matches(pattern, folder):
                found.append(f"input {name}: no file matches its default {pattern} in {folder}")
    return found[:REMARKS_MAX]


def _is_absent(path: Value, folder: Path) -> bool:
    if not isinstance(path, str) or "://" in path or path.startswith(LOGICAL_PREFIX):
        return False
    return not (folder / path).is_file()


def _matches(pattern: str, folder: Path) -> bool:
    return next(glob.iglob(pattern, root_dir=folder, recursive=True), None) is not None


def flows_of(path: str, *, xpath2_as_1: bool = False) -> list[Flow]:
    """All flows of a Python file, unless one is named; else the file's one flow."""
    if path.endswith(".py"):
        flows = list(python_files.load_python(Path(path)).values())
        if flows:
            return flows
    return [load(path, xpath2_as_1=xpath2_as_1)]


def checked_flows(path: str, *, xpath2_as_1: bool = False) -> list[Flow]:
    """The flows of a file, or its exlet, which can be checked, and not be started."""
    try:
        return flows_of(path, xpath2_as_1=xpath2_as_1)
    except BadFlow:
        if not path.endswith(YAML) or not exlets.is_exlet_file(path):
            raise
    return [exlets.load_exlet(path)]
