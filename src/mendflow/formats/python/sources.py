"""Locates a Python function's code: the module and the folder that a pilot imports it from."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.values import FileRef
from mendflow.formats.python.problems import bad_flow


def function_ref(function: Callable[..., Any]) -> FunctionRef:
    """The function by name. It must be at the top level of a file, so that it can be imported."""
    name = function.__qualname__
    if "<" in name:
        raise bad_flow(
            f"the job `{function.__name__}` is defined inside another function; move it to the top of its file"
        )
    source = inspect.getsourcefile(function)
    if source is None or not Path(source).is_file():
        raise bad_flow(f"the job `{name}` is not in a file; put it into one, so that pilots can import it")
    path = Path(source).resolve()
    parts = function.__module__.split(".")
    inside = path.with_suffix("").parts[-len(parts) :]
    if function.__module__ != "__main__" and list(inside) == parts:
        return FunctionRef(module=function.__module__, name=name, folder=str(path.parents[len(parts) - 1]))
    return FunctionRef(module=path.stem, name=name, folder=str(path.parent))


def functions_of(flow: Flow) -> list[FunctionRef]:
    """The Python functions of a flow and of the flows it calls."""
    found: list[FunctionRef] = []
    pending: list[Any] = [flow]
    while pending:
        value = pending.pop()
        if isinstance(value, FunctionRef):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, msgspec.Struct):
            pending.extend(getattr(value, field) for field in value.__struct_fields__)
    return found


def code_files(flow: Flow) -> dict[str, Path]:
    """The source files of a flow's Python functions, by module. A module that is not in its folder is installed on the
    pilot's machine, and has no file here."""
    return {each.module: path for each in functions_of(flow) if (path := source_of(each)) is not None}


def with_code(flow: Flow, kept: Mapping[Path, FileRef]) -> Flow:
    """The flow with each function's source replaced by the stored file."""

    def changed(value: Any) -> Any:
        if isinstance(value, FunctionRef):
            return msgspec.structs.replace(value, code=kept.get(source_of(value) or Path(), value.code))
        if isinstance(value, tuple):
            return tuple(changed(part) for part in value)
        if isinstance(value, msgspec.Struct):
            fields = {name: changed(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        return value

    result: Flow = changed(flow)
    return result


def source_of(function: FunctionRef) -> Path | None:
    base = Path(function.folder, *function.module.split(".")) if function.folder else None
    if base is None:
        return None
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
