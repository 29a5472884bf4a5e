"""Loads a Python function by its module's name, with exactly the source that the flow was deployed with.

The source is read once, its digest compared, and those same bytes are executed: an edit cannot slip in between the
check and the import."""

import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from typing import Final, NamedTuple

from mendflow.core.model.jobs import CHANGED_BESIDE
from mendflow.core.model.values import Value
from mendflow.pilot.slot.messages import FunctionCall
from mendflow.pilot.worker.folder_modules import CodeFolder, FolderModules, SourceLoader
from mendflow.pilot.worker.module_sources import source_file


class CodeMismatch(Exception):
    """The source is missing, or is not the one that was deployed."""


class NoSuchFunction(Exception):
    """The module has no callable of that name."""


class _ExactLoader(SourceLoader):
    """Loads a module only from source with the given digest."""

    def __init__(self, module: str, path: str, folder: CodeFolder, source: str, sha256: str) -> None:
        super().__init__(module, path, folder, source)
        self._sha256 = sha256

    def check(self, digest: str) -> None:
        if digest != self._sha256:
            raise CodeMismatch(f"{self._source} has changed since the flow was deployed: deploy it again")


class CodeUsed(NamedTuple):
    """What is to be said of the code of a call; see `Outcome`."""

    code_mismatch: str = ""
    undeclared_reads: str = ""


CODE_AS_NAMED: Final = CodeUsed()
"""There is nothing to be said of it."""


class FunctionLoader:
    """The functions that this process has loaded."""

    def __init__(self, modules: FolderModules) -> None:
        self._modules = modules
        self._reads = modules.reads
        self._known: dict[tuple[str, str, str, str], Callable[..., Value]] = {}
        self._before = 0  # how many modules of its folder were loaded when the function of the current call was at hand

    def find(self, call: FunctionCall) -> Callable[..., Value]:
        home = _home(call)
        folder = self._modules.enter(home) if call.sha256 else None
        if folder is not None:
            folder.frozen = call.folder if call.folder != home else ""
        if folder is None:
            self._modules.leave()
        elif folder.is_outdated(call.modules or ()):
            folder.forget(list(folder.loaded))
            self._known = {key: each for key, each in self._known.items() if key[3] != home}
        key = (call.module, call.name, call.sha256, home)
        function = self._known.get(key)
        if function is None:
            function = self._known[key] = _named(_module(call, folder), call.name)
            if folder is not None:
                self._modules.keep_outside(folder)
        if folder is not None:
            self._before = len(folder.loaded)
            self._reads.begin(home, lambda: _named_paths(call, folder) | folder.loaded.keys(), call.env)
        return function

    def used(self, call: FunctionCall) -> CodeUsed:
        """What the call used of the folder of its flow. Modules that it loaded and that its job does not name are
        loaded again by the next call that needs them."""
        if not call.sha256:
            return CODE_AS_NAMED
        read = self._reads.end()
        folder = self._modules.enter(_home(call))
        self._modules.put_away_outside()
        if call.modules is None:
            return CODE_AS_NAMED
        changed = folder.changed(call.modules)
        other = f"{changed}{CHANGED_BESIDE}" if changed else ""
        new, at_import = list(folder.loaded)[self._before :], folder.at_import.get(call.module)
        unnamed = _loaded_unnamed(call, folder, new, at_import) if new or at_import else ""
        return CodeUsed(other, unnamed or read or _read_at_import(call, folder))


def _home(call: FunctionCall) -> str:
    """The folder that the function's module belongs to, and imports others from. When the flow's file, or a module
    beside it, was edited while its case runs, the sources come from the pilot's copy, with their places beside the
    flow."""
    return call.beside if call.beside and os.path.isdir(call.beside) else call.folder


def _own_path(call: FunctionCall, folder: CodeFolder) -> str:
    """The place of the function's module in its folder, also if its file is not there any more."""
    return source_file(folder.path, call.module) or os.path.join(folder.path, *call.module.split(".")) + ".py"


def _loaded_unnamed(call: FunctionCall, folder: CodeFolder, new: list[str], at_import: set[str] | None) -> str:
    loaded = set(new) - _named_paths(call, folder)
    folder.forget(loaded)
    unnamed = loaded | (at_import or set())
    return f"it loaded {min(unnamed)}, which the flow does not import by its name" if unnamed else ""


def _read_at_import(call: FunctionCall, folder: CodeFolder) -> str:
    """What the modules of the call read elsewhere when they were imported, by an earlier call or by this one."""
    if not (folder.read_at_import or folder.loaded_outside):
        return ""
    known = folder.read_at_import
    read = next((known[path] for path in sorted(_named_paths(call, folder)) if path in known), "")
    outside = folder.loaded_outside
    return read or (f"its flow loaded {outside}, which is not beside it and may have changed" if outside else "")


def _named_paths(call: FunctionCall, folder: CodeFolder) -> set[str]:
    """The files of the folder whose content is part of what the job is made from."""
    own = folder.below(_own_path(call, folder))
    return {own, *(mark.partition(" ")[2] for mark in call.modules or ())}


def _named(module: types.ModuleType, name: str) -> Callable[..., Value]:
    target: object = module
    for part in name.split("."):
        target = getattr(target, part, None)
    if not callable(target):
        raise NoSuchFunction(f"module {module.__name__} has no function {name}")
    return target


def _module(call: FunctionCall, folder: CodeFolder | None) -> types.ModuleType:
    if folder is None:
        if call.folder and call.folder not in sys.path:
            sys.path.insert(0, call.folder)
        return importlib.import_module(call.module)
    source = source_file(call.folder, call.module)
    path = source if source and call.folder == folder.path else _own_path(call, folder)
    if not source:
        raise CodeMismatch(f"the source of module {call.module} is not in {call.folder}")
    before = set(folder.loaded)
    parent = call.module.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
    loader = _ExactLoader(call.module, path, folder, source, call.sha256)
    spec = importlib.util.spec_from_file_location(call.module, path, loader=loader)
    assert spec is not None, "a spec with a loader was given"
    module = importlib.util.module_from_spec(spec)
    sys.modules[call.module] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(call.module, None)
        raise
    if call.modules is not None:
        unnamed = folder.at_import[call.module] = folder.loaded.keys() - before - _named_paths(call, folder)
        folder.forget(unnamed)
    return module
