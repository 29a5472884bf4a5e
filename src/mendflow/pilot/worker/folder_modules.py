"""The modules of the folders that functions come from, as this process has loaded them.

A module beside a flow may be edited while a case runs, loaded by a name that nobody sees in the source, or have the
name of another flow's module. So such modules are loaded from their source, never from bytecode, with the digest of
what was executed; each folder has modules of its own in `sys.modules`, and those that are older than what a call names
are loaded again. Then it can be said of each call whether the code that ran is the code that its job names.

Modules from elsewhere, neither in the folder nor installed, that a function imports while it runs are put away after
it, and given again to the next that imports them: so it is seen of each call that it uses them."""

import hashlib
import os
import sys
import time
import types
from collections.abc import Iterable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Final, NamedTuple

from mendflow.pilot.worker.outside_reads import STARTS_PYTHON, OutsideReads
from mendflow.pilot.worker.recorded_lookups import unrecorded_stat

FileState = tuple[int, int, int]
"""The inode of a file, its size, and when it was changed last, in nanoseconds."""

_SETTLED_NS: Final = 2_000_000_000
"""A file that was changed so shortly before it was looked at may change again without its state telling it."""

_HIDDEN = ("__pycache__", "site-packages")


class LoadedModule(NamedTuple):
    """A module as it was executed: its name, the digest of its source, and the state of the file then."""

    name: str
    digest: str
    state: FileState


class ModuleTexts:
    """The compiled texts of modules beside flows, by file and digest; the digests of files by the state in which they
    were read; and what this process has read that a later one need not."""

    COMPILED_MAX: Final = 500

    def __init__(self) -> None:
        self.compiled: dict[tuple[str, str], types.CodeType] = {}
        self._digests: dict[tuple[str, FileState], str] = {}
        self.read: list[tuple[str, str]] = []

    def digest(self, path: str, state: FileState) -> str:
        """The digest of a file that was not touched since it was read; empty if it has to be read."""
        return self._digests.get((path, state), "")

    def note_read(self, path: str, digest: str, state: FileState) -> None:
        """This process had to read a file: another may be spared that."""
        if (path, digest) not in self.compiled or _is_settled(state):
            self.read.append((path, digest))

    def take_up(self, path: str, digest: str) -> None:
        """Read and compile a file that has this digest, for the processes to come. Nothing of it is executed."""
        if len(self.compiled) >= self.COMPILED_MAX:
            self.compiled.clear()
            self._digests.clear()
        state = state_of(path)
        try:
            with open(path, "rb") as file:
                source = file.read()
            if hashlib.sha256(source).hexdigest() != digest:
                return
            if (path, digest) not in self.compiled:
                self.compiled[path, digest] = compile(source, path, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return
        if _is_settled(state):
            self._digests[path, state] = digest


class CodeFolder:
    """One folder that functions come from. `loaded` are its modules by their paths below it, `at_import` those that a
    module loaded while it was imported itself and that its job does not name, `read_at_import` what modules read
    elsewhere while they were imported, and `loaded_outside` the first module that one of them loaded from elsewhere.
    `frozen` is a folder with the modules that the present call is made from, if others are in this one by now."""

    def __init__(self, path: str, reads: OutsideReads, texts: ModuleTexts) -> None:
        self.path = path
        self.frozen = ""
        self.reads = reads
        self.texts = texts
        self.read_at_import: dict[str, str] = {}
        self.loaded_outside = ""
        self.loaded: dict[str, LoadedModule] = {}
        self.at_import: dict[str, set[str]] = {}
        self.modules: dict[str, types.ModuleType] = {}

    def add_outside(self, file: str) -> None:
        """A module of this folder has loaded one from elsewhere."""
        self.loaded_outside = self.loaded_outside or file

    def below(self, path: str) -> str:
        """The path below this folder; empty if it is elsewhere."""
        return path[len(self.path) + 1 :] if path.startswith(self.path + os.sep) else ""

    def is_outdated(self, marks: Iterable[str]) -> bool:
        """Whether a loaded module is other than it should be, and the right one can be loaded."""
        if self.frozen:
            return any(True for _ in self._unlike(marks))
        return any(state_of(os.path.join(self.path, path)) != each.state for path, each in self._unlike(marks))

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
            self.read_at_import.pop(path, None)
            if each is not None:
                sys.modules.pop(each.name, None)


class FolderModules:
    """A finder of modules, in front of Python's own: install it once in a process."""

    def __init__(self, work_folder: str) -> None:
        """What is below `work_folder` belongs to the pilot, also if that is below a flow's folder."""
        self.reads = OutsideReads(work_folder)
        self.texts = ModuleTexts()
        self._folders: dict[str, CodeFolder] = {}
        self._current: CodeFolder | None = None
        self._put_away: dict[str, types.ModuleType] = {}
        self._staying: set[str] = set()

    def install(self) -> None:
        place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(place, self)
        self._staying = set(sys.modules)
        self.reads.install()

    def enter(self, path: str) -> CodeFolder:
        """Let imports find the modules of this folder, and of no other that was entered before."""
        folder = self._folders.get(path)
        if folder is None:
            folder = self._folders[path] = CodeFolder(path, self.reads, self.texts)
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

    def keep_outside(self, folder: CodeFolder) -> None:
        """A module of the folder was imported: what it loaded from elsewhere stays loaded, and counts for each call."""
        for name, module in self._take_outside():
            self._staying.add(name)
            folder.add_outside(str(module.__file__))

    def put_away_outside(self) -> None:
        """A call has ended: what it loaded from elsewhere is put away."""
        for name, module in self._take_outside():
            self._put_away[name] = module
            del sys.modules[name]

    def _take_outside(self) -> list[tuple[str, types.ModuleType]]:
        if not self.reads.take_loaded_outside():
            return []
        return [
            (name, module)
            for name, module in list(sys.modules.items())
            if name not in self._staying
            if name in STARTS_PYTHON or self._is_outside(module)
        ]

    def _is_outside(self, module: types.ModuleType) -> bool:
        file = getattr(module, "__dict__", {}).get("__file__")
        within = isinstance(file, str) and self._current is not None and self._current.below(file)
        return isinstance(file, str) and os.path.isabs(file) and not within and not self.reads.places.has(file)

    # as Python's import system asks it

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if (known := self._put_away.pop(fullname, None)) is not None:
            self.reads.note_loaded(known.__name__, known.__file__ or "")
            return ModuleSpec(fullname, _LoadedAlready(known))
        folder = self._current
        if folder is None:
            return None
        if folder.frozen and (frozen := _frozen_spec(fullname, path, folder)) is not None:
            return frozen
        places = [folder.path] if path is None else [each for each in path if folder.below(each)]
        spec = PathFinder.find_spec(fullname, places, target) if places else None
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not folder.below(spec.origin or ""):
            return None
        spec.loader = SourceLoader(fullname, spec.origin or "", folder)
        spec.cached = None
        return spec


def _frozen_spec(fullname: str, path: Sequence[str] | None, folder: CodeFolder) -> ModuleSpec | None:
    """A module as the flow was deployed with it, at the place that it has beside the flow."""
    inner = [folder.below(each) for each in path or ()]
    places = [folder.frozen] if path is None else [os.path.join(folder.frozen, each) for each in inner if each]
    spec = PathFinder.find_spec(fullname, places) if places else None
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or not spec.origin:
        return None
    home = os.path.join(folder.path, os.path.relpath(spec.origin, folder.frozen))
    loader = SourceLoader(fullname, home, folder, spec.origin)
    is_package = spec.submodule_search_locations is not None
    found = ModuleSpec(fullname, loader, origin=home, is_package=is_package)
    found.has_location = True
    if is_package:
        found.submodule_search_locations = [os.path.dirname(home)]
    return found


class _LoadedAlready(Loader):
    """Gives a module that was put away, as it is."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, _spec: ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec


class SourceLoader(SourceFileLoader):
    """Loads a module from its source, never from bytecode, and remembers what it executed. `source` is where the source
    is, if not at `path`, the module's place in the folder."""

    def __init__(self, module: str, path: str, folder: CodeFolder, source: str = "") -> None:
        super().__init__(module, path)
        self._module = module
        self._folder = folder
        self._source = source or path

    def get_code(self, _fullname: str) -> types.CodeType:
        texts, state = self._folder.texts, state_of(self._source)
        digest, source = texts.digest(self._source, state), b""
        if not digest:
            source = self.get_data(self._source)
            digest = hashlib.sha256(source).hexdigest()
            texts.note_read(self._source, digest, state)
        self.check(digest)
        self._folder.loaded[self._folder.below(self.path)] = LoadedModule(self._module, digest, state)
        return texts.compiled.get((self._source, digest)) or self.source_to_code(source, self._source)

    def exec_module(self, module: types.ModuleType) -> None:
        before = self._folder.reads.set_aside(self._folder.path)
        try:
            super().exec_module(module)
        finally:
            if found := self._folder.reads.take_up(before):
                self._folder.read_at_import[self._folder.below(self.path)] = found

    def check(self, digest: str) -> None:
        """Called before the source is executed."""


def state_of(path: str) -> FileState:
    try:
        status = unrecorded_stat(path)
    except OSError:
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_ctime_ns


def _is_settled(state: FileState) -> bool:
    return 0 < state[2] < time.time_ns() - _SETTLED_NS


def _is_of(module: types.ModuleType, folder: CodeFolder) -> bool:
    known = getattr(module, "__dict__", {})
    file = known.get("__file__")
    if isinstance(file, str):
        return bool(folder.below(file)) and not any(part in _HIDDEN for part in file.split(os.sep))
    return any(folder.below(str(each)) for each in known.get("__path__", ()))
