"""Loads a Python function by its module's name, with exactly the source that the flow was deployed with.

The source is read once, its digest compared, and those same bytes are executed: an edit cannot slip in between the
check and the import."""

import hashlib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader

from mendflow.core.model.values import Value
from mendflow.pilot.slot.messages import FunctionCall


class CodeMismatch(Exception):
    """The source is missing, or is not the one that was deployed."""


class NoSuchFunction(Exception):
    """The module has no callable of that name."""


def source_file(folder: str, module: str) -> str:
    """The file of a module below a folder, or an empty string."""
    base = os.path.join(folder, *module.split("."))
    for path in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            return path
    return ""


class _ExactLoader(SourceFileLoader):
    """Loads a module only from source with the given digest, never from bytecode."""

    def __init__(self, module: str, path: str, sha256: str) -> None:
        super().__init__(module, path)
        self._sha256 = sha256

    def get_code(self, _fullname: str) -> types.CodeType:
        source = self.get_data(self.path)
        found = hashlib.sha256(source).hexdigest()
        if found != self._sha256:
            raise CodeMismatch(f"{self.path} has changed since the flow was deployed: deploy it again")
        return self.source_to_code(source, self.path)


class FunctionLoader:
    """The functions that this process has loaded."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, str], Callable[..., Value]] = {}

    def find(self, call: FunctionCall) -> Callable[..., Value]:
        key = (call.module, call.name, call.sha256, call.folder)
        function = self._known.get(key)
        if function is None:
            function = self._known[key] = _named(_module(call), call.name)
        return function


def _named(module: types.ModuleType, name: str) -> Callable[..., Value]:
    target: object = module
    for part in name.split("."):
        target = getattr(target, part, None)
    if not callable(target):
        raise NoSuchFunction(f"module {module.__name__} has no function {name}")
    return target


def _module(call: FunctionCall) -> types.ModuleType:
    if call.folder and call.folder not in sys.path:
        sys.path.insert(0, call.folder)
    if not call.sha256:
        return importlib.import_module(call.module)
    path = source_file(call.folder, call.module)
    if not path:
        raise CodeMismatch(f"the source of module {call.module} is not in {call.folder}")
    parent = call.module.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
    loader = _ExactLoader(call.module, path, call.sha256)
    spec = importlib.util.spec_from_file_location(call.module, path, loader=loader)
    assert spec is not None, "a spec with a loader was given"
    module = importlib.util.module_from_spec(spec)
    sys.modules[call.module] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(call.module, None)
        raise
    return module
