"""Flows out of a Python file: the file is imported, and the functions marked with `@flow` are built."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import BadFlow, Problem
from mendflow.formats.files import flow_text
from mendflow.formats.python.decorators import FlowFunction


def load_python(path: str | Path) -> dict[str, Flow]:
    """The flows of a Python file, by name. Raises BadFlow with every problem and its line."""
    path, shown = Path(path).resolve(), str(path)
    text = flow_text(path, shown)
    try:
        compile(text, shown, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _bad(shown, error.lineno, f"this is not Python: {error.msg}", error.offset) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _bad(shown, 0, f"this is not Python: {error}") from None
    found: dict[str, Flow] = {}
    problems: list[Problem] = []
    for function in _flows_in(_imported(path, shown)):
        try:
            flow = function.build()
        except BadFlow as error:
            problems += [_shown(problem, path, shown) for problem in error.problems]
        except Exception as error:  # noqa: BLE001 - the flow's own code ran, and may raise anything
            problems.append(_told(error, path, shown))
        else:
            if flow.name in found:
                problems.append(Problem(file=shown, message=f"two flows of this file are named `{flow.name}`"))
            found[flow.name] = flow
    if problems:
        raise BadFlow(problems=problems)
    return found


def _imported(path: Path, shown: str) -> ModuleType:
    """The file's module. Its folder is on the path, as it is when Python runs a file."""
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) != str(path):
        name = f"{name}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "a path that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BadFlow as error:
        sys.modules.pop(name, None)
        raise BadFlow(problems=[_shown(problem, path, shown) for problem in error.problems]) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a file may raise anything while it is imported
        sys.modules.pop(name, None)
        raise BadFlow(problems=[_told(error, path, shown)]) from None
    return module


def _flows_in(module: ModuleType) -> list[FlowFunction[..., object]]:
    """The flows that the file defines; those it only imports count if it defines none."""
    flows = [value for value in vars(module).values() if isinstance(value, FlowFunction)]
    own = [each for each in flows if each.__module__ == module.__name__]
    return own or flows


def _told(error: BaseException, path: Path, shown: str) -> Problem:
    """What the file's own code raised, with the line of the file that led to it."""
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    message = f"{type(error).__name__} while the file was read: {error}"
    return Problem(file=shown, line=lines[-1] if lines else 0, message=message)


def _shown(problem: Problem, path: Path, shown: str) -> Problem:
    if problem.file != str(path):
        return problem
    return Problem(file=shown, line=problem.line, message=problem.message, suggestion=problem.suggestion)


def _bad(shown: str, line: int | None, message: str, column: int | None = 0) -> BadFlow:
    return BadFlow(problems=[Problem(file=shown, line=line or 0, column=column or 0, message=message)])
