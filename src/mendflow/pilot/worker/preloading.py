"""What a worker has loaded before it forks a process for a call: installed modules, which earlier calls have imported,
and the compiled text of modules beside flows. Of a flow it executes nothing, so there is nothing to leave behind.

A process tells its worker what it has loaded through shared memory; the next ones find it loaded already."""

import ast
import importlib
import mmap
import os
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from importlib.machinery import PathFinder
from itertools import islice
from typing import Final

import msgspec

from mendflow.pilot.slot.messages import FunctionCall
from mendflow.pilot.worker.folder_modules import FolderModules
from mendflow.pilot.worker.module_sources import source_file

_TOLD_BYTES: Final = 1 << 16
_LENGTH_BYTES: Final = 4
_OWN_PACKAGE: Final = "mendflow"
_READ_AT_START: Final = ("LANG", "LC_", "LD_", "PYTHON", "TZ")


class Loaded(msgspec.Struct, frozen=True, array_like=True):
    """Names of installed modules, and the files of others with the digests of what was executed."""

    installed: list[str] = []
    sources: list[tuple[str, str]] = []


class Preloading:
    """One for a worker and the processes that it forks."""

    def __init__(self, modules: FolderModules) -> None:
        self._places, self._texts = modules.reads.places, modules.texts
        self._told = mmap.mmap(-1, _TOLD_BYTES)
        self._before = 0
        self._refused: set[str] = set()
        self._foreseen: set[tuple[str, str, str]] = set()
        self.names: set[str] = set()
        self._others: set[str] = set()  # those of neither Python nor mendflow

    @property
    def is_forkable(self) -> bool:
        """Whether a fork has all of this process: a thread that a module has started would be missing there."""
        return threading.active_count() == 1

    def needs_new_interpreter(self, env: Collection[str]) -> bool:
        """Whether a call with these variables has to begin in a process that has loaded nothing: a library may look at
        them when it is imported, and Python and the system do so when they start."""
        return not self.is_forkable or (bool(env) and (bool(self._others) or any(map(_is_read_at_start, env))))

    # in the worker

    def foresee(self, call: FunctionCall) -> None:
        """Load the installed modules that the module of a call imports at its top, before the first of its calls."""
        key = (call.folder, call.module, call.sha256)
        if key in self._foreseen or call.env or not self.is_forkable:
            return
        self._foreseen.add(key)
        try:
            with open(source_file(call.folder, call.module), "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError):
            return
        beside = _names_in(call.beside or call.folder)
        for name, members in _imported(tree):
            if name.partition(".")[0] not in beside and self._is_found_installed(name.partition(".")[0]):
                self._load(name, members)

    def _is_found_installed(self, name: str) -> bool:
        if name in sys.builtin_module_names or name in sys.modules:
            return self._is_installed(name)
        spec = PathFinder.find_spec(name)
        return spec is not None and isinstance(spec.origin, str) and self._places.is_installed(spec.origin)

    def take_up(self) -> None:
        """Load what the process that has just ended told."""
        length = int.from_bytes(self._told[:_LENGTH_BYTES])
        if not length:
            return
        told = msgspec.msgpack.decode(self._told[_LENGTH_BYTES : _LENGTH_BYTES + length], type=Loaded)
        self._told[:_LENGTH_BYTES] = bytes(_LENGTH_BYTES)
        for name in told.installed:
            if name not in sys.modules and name not in self._refused and self.is_forkable:
                self._load(name)
        for path, digest in told.sources:
            self._texts.take_up(path, digest)

    def _load(self, name: str, members: Iterable[str] = ()) -> None:
        before = set(sys.modules)
        try:
            module = importlib.import_module(name)
            for member in members:
                getattr(module, member, None)  # a package may load its parts when they are asked for
        except BaseException:  # noqa: BLE001 - it is loaded where it is needed, and fails there
            self._refused.add(name)
        loaded = set(sys.modules) - before
        self.names |= loaded
        if name.partition(".")[0] != _OWN_PACKAGE:
            self._others |= {each for each in loaded if each.partition(".")[0] not in sys.stdlib_module_names}

    # in the process of a call

    def begin(self, home: str) -> None:
        """Begin as a new process would: with random numbers of its own, and with the modules of the flow's folder where
        an installed one has the same name."""
        if (numbers := sys.modules.get("numpy.random")) is not None:
            numbers.seed()
        if self.names and home:
            self._give_way(home)
        self._before = len(sys.modules)

    def _give_way(self, home: str) -> None:
        beside = _names_in(home)
        for name in [name for name in self.names if name.partition(".")[0] in beside]:
            sys.modules.pop(name, None)

    def tell(self, *, with_modules: bool) -> None:
        """Tell the worker what this process has loaded that others may need. The newest stand last; to look at all
        would write to memory that both processes share."""
        new = islice(reversed(sys.modules), max(0, len(sys.modules) - self._before)) if with_modules else ()
        installed = [name for name in reversed(list(new)) if self._is_installed(name)]
        sources = self._texts.read
        if not installed and not sources:
            return
        told = msgspec.msgpack.encode(Loaded(installed, sources))
        if len(told) <= _TOLD_BYTES - _LENGTH_BYTES:
            self._told[_LENGTH_BYTES : _LENGTH_BYTES + len(told)] = told
            self._told[:_LENGTH_BYTES] = len(told).to_bytes(_LENGTH_BYTES)

    def _is_installed(self, name: str) -> bool:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is None or spec.name != name or not isinstance(spec.origin, str):
            return False
        return spec.origin in ("built-in", "frozen") or self._places.is_installed(os.path.abspath(spec.origin))


def _is_read_at_start(variable: str) -> bool:
    return variable.startswith(_READ_AT_START)


def _names_in(folder: str) -> set[str]:
    """The names of modules that a folder may have."""
    try:
        return {name.removesuffix(".py") for name in os.listdir(folder)}
    except OSError:
        return set()


def _imported(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """The modules that stand in imports at the top of a file, and what is taken from them."""
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, []) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module, [alias.name for alias in statement.names]
