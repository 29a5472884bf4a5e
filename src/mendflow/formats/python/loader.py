"""Reads flows from a Python file: imports it, and builds the functions marked with `@flow`."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.formats.files import flow_text
from mendflow.formats.python.flows import FlowFunction
from mendflow.formats.python.handles import Handle
from mendflow.formats.python.module_names import name_clashes
from mendflow.formats.python.problems import problem_list


def load_python(path: str | Path, only: str = "") -> dict[str, Flow]:
    """The flows of a Python file, by name. Raises BadFlow with every problem and its place. With `only`, problems of
    other flows in the file are ignored, as long as that one exists."""
    path, file_name = Path(path).resolve(), str(path)
    text = flow_text(path, file_name)
    try:
        compile(text, file_name, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _bad_flow(file_name, error.lineno, f"this is not Python: {error.msg}", error.offset) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _bad_flow(file_name, 0, f"this is not Python: {error}") from None
    _demand_clear_names(path, file_name)
    with _first_on_path(path.parent):
        return _flows_of(path, file_name, only)


def _flows_of(path: Path, file_name: str, only: str) -> dict[str, Flow]:
    found: dict[str, Flow] = {}
    module, problems = _import_file(path, file_name)
    functions = _flows_in(module)
    if chosen := [each for each in functions if each.name == only]:
        functions, problems = chosen, []
    for function in functions:
        try:
            flow = function.build()
        except BadFlow as error:
            located = [_with_file(problem, path, file_name) for problem in error.problems]
            problems += [each for each in located if each not in problems]
        except Exception as error:  # noqa: BLE001 - the flow's own code ran, and may raise anything
            problems.append(_problem_from(error, path, file_name))
        else:
            if flow.name in found:
                problems.append(Problem(file=file_name, message=f"two flows of this file are named `{flow.name}`"))
            found[flow.name] = flow
    if problems:
        problems.sort(key=lambda problem: (problem.line, problem.column))
        raise BadFlow(problems=problems)
    return found


def _demand_clear_names(path: Path, file_name: str) -> None:
    clashes = name_clashes(path, path.parent)
    if clashes:
        raise BadFlow(
            problems=[
                Problem(
                    file=file_name if each.path == path else str(Path(file_name).with_name(each.path.name)),
                    line=each.line,
                    column=each.column,
                    message=each.sentence(path.parent),
                )
                for each in clashes
            ]
        )


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """As when Python runs a file in this folder. Afterwards, what this program imports for itself is not looked for
    there."""
    place = str(folder)
    if place in sys.path:
        yield
        return
    sys.path.insert(0, place)
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)


def _import_file(path: Path, file_name: str) -> tuple[ModuleType, list[Problem]]:
    """Import the file; returns its module, and problems of its jobs."""
    name = path.stem
    loaded = sys.modules.get(name)
    taken = loaded is not None and getattr(loaded, "__file__", None) != str(path)
    if taken or name in sys.stdlib_module_names:  # what this program imports later must not find the flow
        name = f"{name}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "a path that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    problems: list[Problem] = []
    token = problem_list.set(problems)
    try:
        spec.loader.exec_module(module)
    except BadFlow as error:
        sys.modules.pop(name, None)
        raise BadFlow(
            problems=[_with_file(problem, path, file_name) for problem in (*problems, *error.problems)]
        ) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a file may raise anything while it is imported
        sys.modules.pop(name, None)
        known = [_with_file(problem, path, file_name) for problem in problems]
        raise BadFlow(problems=[*known, _problem_from(error, path, file_name)]) from None
    finally:
        problem_list.reset(token)
    return module, [_with_file(problem, path, file_name) for problem in problems]


def _flows_in(module: ModuleType) -> list[FlowFunction[..., object]]:
    """The flows that the file defines; those it only imports count if it defines none."""
    flows = [value for value in vars(module).values() if isinstance(value, FlowFunction)]
    own = [each for each in flows if each.__module__ == module.__name__]
    return own or flows


def _problem_from(error: BaseException, path: Path, file_name: str) -> Problem:
    """The file's own exception as a problem, with the line that caused it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    message = f"{type(error).__name__} while the file was read: {error}{_hint_for(error)}"
    if not frames:
        return Problem(file=file_name, message=message)
    column = -1 if frames[-1].colno is None else frames[-1].colno
    return Problem(file=file_name, line=frames[-1].lineno or 0, column=column + 1, message=message)


def _hint_for(error: BaseException) -> str:
    """What helps somebody who used a value that is not known yet, or wrote f before a command of `shell.map`."""
    if isinstance(error, TypeError) and Handle.__name__ in str(error):
        return "; a value that is not known while the flow is being built can be passed to a job: do it there"
    if isinstance(error, NameError) and error.name in ("item", "index"):
        return (
            f"; in shell.map the command is a plain text, without f before it, and {{{error.name}}} is filled in later"
        )
    return ""


def _with_file(problem: Problem, path: Path, file_name: str) -> Problem:
    if problem.file != str(path):
        return problem
    return msgspec.structs.replace(problem, file=file_name)


def _bad_flow(file_name: str, line: int | None, message: str, column: int | None = 0) -> BadFlow:
    return BadFlow(problems=[Problem(file=file_name, line=line or 0, column=column or 0, message=message)])
