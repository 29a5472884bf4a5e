"""The modules of the folders that functions come from, as this process has loaded them.

A module beside a flow may be edited while a case runs, loaded by a name that nobody sees in the source, or have the
name of another flow's module. So such modules are loaded from their source, never from bytecode, with the digest of
what was executed; each folder has modules of its own in `sys.modules`, and those that are older than what a call names
are loaded again. Then it can be said of each call whether the code that ran is the code that its job names."""

import hashlib
import os
import sys
import types
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import NamedTuple

_HIDDEN = ("__pycache__", "site-packages")


class LoadedModule(NamedTuple):
    """A module as it was executed: its name, the digest of its source, and the state of the file then."""

    name: str
    digest: str
    state: tuple[int, int, int]


class CodeFolder:
    """One folder that functions come from. `loaded` are its modules by their paths below it, `at_import` those that a
    module loaded while it was imported itself and that its job does not name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.loaded: dict[str, LoadedModule] = {}
        self.at_import: dict[str, set[str]] = {}
        self.modules: dict[str, types.ModuleType] = {}

    def below(self, path: str) -> str:
        """The path below this folder; empty if it is elsewhere."""
        return path[len(self.path) + 1 :] if path.startswith(self.path + os.sep) else ""

    def is_outdated(self, marks: Iterable[str]) -> bool:
        """Whether a loaded module is other than it should be, and its file has changed since."""
        return any(_state_of(os.path.join(self.path, path)) != each.state for path, each in self._unlike(marks))

    def changed(self, marks: Iterable[str]) -> str:
        """The first loaded module that is other than it should be; empty if there is none."""
        return next((path for path, _ in self._unlike(marks)), "")

    def _unlike(self, marks: Iterable[str]) -> Iterable[tuple[str, LoadedModule]]:
        for mark in marks:
            digest, _, path = mark.partition(" ")
            each = self.loaded.get(path)
            if each is not None and not each.digest.startswith(digest):
                yield path, each

    def forget(self, paths: Iterable[str]) -> None:
        """Have these modules loaded again when they are needed."""
        for path in paths:
            each = self.loaded.pop(path, None)
            if each is not None:
                sys.modules.pop(each.name, None)


class FolderModules:
    """A finder of modules, in front of Python's own: install it once in a process."""

    def __init__(self, work_folder: str) -> None:
        """What is below `work_folder` belongs to the pilot, also if that is below a flow's folder."""
        self._work_folder = work_folder
        self._folders: dict[str, CodeFolder] = {}
        self._current: CodeFolder | None = None
        self._opened: set[str] | None = None

    def install(self) -> None:
        place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(place, self)
        sys.addaudithook(self._on_event)

    def enter(self, path: str) -> CodeFolder:
        """Let imports find the modules of this folder, and of no other that was entered before."""
        folder = self._folders.get(path)
        if folder is None:
            folder = self._folders[path] = CodeFolder(path)
        if folder is not self._current:
            self.leave()
            sys.path.insert(0, path)
            sys.modules.update(folder.modules)
            self._current = folder
        return folder

    def leave(self) -> None:
        """Let imports find the modules of no folder."""
        folder, self._current = self._current, None
        if folder is None:
            return
        if folder.path in sys.path:
            sys.path.remove(folder.path)
        folder.modules = {name: each for name, each in list(sys.modules.items()) if _is_of(each, folder)}
        for name in folder.modules:
            del sys.modules[name]

    def watch(self) -> None:
        """Note which files are opened from now on."""
        self._opened = set()

    def take_opened(self) -> list[str]:
        """The files of the current folder that were opened to be read since `watch`, by their paths below it."""
        opened, self._opened = self._opened or set(), None
        folder = self._current
        if folder is None:
            return []
        found = [below for path in sorted(opened) if (below := folder.below(path)) and self._counts(path, below)]
        return [below for below in found if os.path.isfile(os.path.join(folder.path, below))]

    def _counts(self, path: str, below: str) -> bool:
        parts = below.split(os.sep)
        elsewhere = (self._work_folder, sys.prefix, sys.base_prefix)
        return not any(part.startswith(".") or part in _HIDDEN for part in parts) and not any(
            path.startswith(other + os.sep) for other in elsewhere
        )

    def _on_event(self, event: str, arguments: tuple[object, ...]) -> None:
        # another thread may end the watch at any time
        opened, folder = self._opened, self._current
        if event != "open" or opened is None or folder is None or len(arguments) < 3:
            return
        path, _, flags = arguments
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, str) and not (isinstance(flags, int) and flags & os.O_ACCMODE == os.O_WRONLY):
            path = os.path.abspath(path)
            if folder.below(path):
                opened.add(path)

    # as Python's import system asks it

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = self._current
        if folder is None:
            return None
        places = [folder.path] if path is None else [each for each in path if folder.below(each)]
        spec = PathFinder.find_spec(fullname, places, target) if places else None
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not folder.below(spec.origin or ""):
            return None
        spec.loader = SourceLoader(fullname, spec.origin or "", folder)
        spec.cached = None
        return spec


class SourceLoader(SourceFileLoader):
    """Loads a module from its source, never from bytecode, and remembers what it executed."""

    def __init__(self, module: str, path: str, folder: CodeFolder) -> None:
        super().__init__(module, path)
        self._module = module
        self._folder = folder

    def get_code(self, _fullname: str) -> types.CodeType:
        state = _state_of(self.path)
        source = self.get_data(self.path)
        digest = hashlib.sha256(source).hexdigest()
        self.check(digest)
        self._folder.loaded[self._folder.below(self.path)] = LoadedModule(self._module, digest, state)
        return self.source_to_code(source, self.path)

    def check(self, digest: str) -> None:
        """Called before the source is executed."""


def _state_of(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_ctime_ns


def _is_of(module: types.ModuleType, folder: CodeFolder) -> bool:
    known = getattr(module, "__dict__", {})
    file = known.get("__file__")
    if isinstance(file, str):
        return bool(folder.below(file)) and not any(part in _HIDDEN for part in file.split(os.sep))
    return any(folder.below(str(each)) for each in known.get("__path__", ()))
