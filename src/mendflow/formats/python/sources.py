"""Where a Python function's code is: the module and the folder that a pilot imports it from."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mendflow.core.model.flow import Flow, Job
from mendflow.core.model.jobs import FunctionRef
from mendflow.formats.python.places import bad


def function_ref(function: Callable[..., Any]) -> FunctionRef:
    """The function by name. It must stand at the top of a file, where others can find it."""
    name = function.__qualname__
    if "<" in name:
        raise bad(f"the job `{function.__name__}` is defined inside another function; move it to the top of its file")
    source = inspect.getsourcefile(function)
    if source is None or not Path(source).is_file():
        raise bad(f"the job `{name}` is not in a file; put it into one, so that pilots can import it")
    path = Path(source).resolve()
    parts = function.__module__.split(".")
    inside = path.with_suffix("").parts[-len(parts) :]
    if function.__module__ != "__main__" and list(inside) == parts:
        return FunctionRef(module=function.__module__, name=name, folder=str(path.parents[len(parts) - 1]))
    return FunctionRef(module=path.stem, name=name, folder=str(path.parent))


def code_files(flow: Flow) -> dict[str, Path]:
    """The source files of the Python functions of a flow and of the flows it calls, by module. A module that is not
    found in its folder is installed where the pilot is, and has no file here."""
    found: dict[str, Path] = {}
    pending: list[Any] = [flow]
    while pending:
        value = pending.pop()
        if isinstance(value, Job):
            if (function := value.function) is not None and (path := source_of(function)) is not None:
                found[function.module] = path
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif hasattr(value, "__struct_fields__"):
            pending.extend(getattr(value, field) for field in value.__struct_fields__)
    return found


def source_of(function: FunctionRef) -> Path | None:
    base = Path(function.folder, *function.module.split(".")) if function.folder else None
    if base is None:
        return None
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
