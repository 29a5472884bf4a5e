"""What a function reads while it runs that its job does not name: files and folders elsewhere, variables, the network.

Python tells its audit hooks of what it opens, lists, starts and connects to, in whichever thread. The first of it that
is not the function's own is enough: a result that depends on it is not used again by itself. What a library in C opens
by itself, and what a program that is started opens by a path of its own, nobody tells."""

import mmap
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import source_from_cache
from types import FrameType
from typing import Any, ClassVar, Final

from mendflow.core.results.known_programs import SHELLS
from mendflow.core.results.script_dependencies import OF_THE_ATTEMPT, SET_FOR_EACH_JOB, Doubt, first_doubt
from mendflow.pilot.worker.recorded_lookups import record_lookups
from mendflow.pilot.worker.trusted_paths import TrustedPaths

SENTENCE_BYTES_MAX: Final = 2000
"""How much a process that the function forked can tell of what it read."""

_SAY_NOTHING: Final = (SET_FOR_EACH_JOB | {"TMPDIR", "TMP", "TEMP", "MENDFLOW_PILOT"}) - OF_THE_ATTEMPT
_IMPORT_SYSTEM: Final = ("<frozen importlib", "<frozen zipimport")
_ASKS_FOR_OTHERS: Final = (
    *("<frozen os>", "<frozen posixpath>", "<frozen genericpath>", "<frozen _collections_abc>"),
    *(
        os.path.join(os.path.dirname(os.__file__), name)
        for name in ("os.py", "posixpath.py", "genericpath.py", "_collections_abc.py", "pathlib", "getpass.py")
    ),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded_lookups.py"),
)
"""Where the files begin that ask for a variable or a path because their caller does."""

STARTS_PYTHON: Final = frozenset({"multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"})
_SHELL_OPTION: Final = "-c"
_O_TMPFILE: Final = getattr(os, "O_TMPFILE", 0)


class OutsideReads:
    """Install it once in a process; then each call begins and ends. `beside` is the folder of the flow."""

    def __init__(self, work_folder: str) -> None:
        self.places = TrustedPaths(work_folder)
        self._loaded_outside = False
        self.is_active = False  # whether a call is watched
        self._doubt = ""
        self._beside = ""
        self._named: Callable[[], set[str]] = set
        self._variables: frozenset[str] = frozenset()
        self._set_names: set[str] = set()
        self._process = os.getpid()
        self._told = mmap.mmap(-1, SENTENCE_BYTES_MAX)  # shared with the processes that the function forks
        self._judges: dict[str, Callable[[tuple[Any, ...]], object]] = {
            "open": self._on_open,
            "import": self._on_import,
            "os.mkdir": self._on_mkdir,
            "sqlite3.connect": self._on_database,
            "ctypes.dlopen": self._on_library,
            "subprocess.Popen": lambda given: self._on_start(given[1], given[0], given[2], given[3]),
            "os.posix_spawn": lambda given: self._on_start(given[1], given[0]),
            "os.exec": lambda given: self._on_start(given[1], given[0]),
            "os.spawn": lambda given: self._on_start(given[2], given[1]),
            "pty.spawn": lambda given: self._on_start(given[0]),
            "os.system": lambda given: self._on_script(given[0]),
            "urllib.Request": lambda given: self._on_address(given[0]),
            "socket.connect": lambda given: self._on_address(given[1]),
            "socket.sendto": lambda given: self._on_address(given[1]),
            "socket.sendmsg": lambda given: self._on_address(given[1]),
            "socket.getaddrinfo": lambda given: self._on_address(given[:2]),
            "socket.gethostbyname": lambda given: self._on_address(given[0]),
            "socket.gethostname": lambda _: self._on_host_name(),
        }
        for event in ("os.listdir", "os.scandir", "os.chdir", "os.rename", "os.link", "os.symlink"):
            self._judges[event] = self._on_path

    def install(self) -> None:
        recording = type("_Environ", (_RecordingEnvironment,), {"reads": self, "__module__": "os"})
        for environment in (os.environ, os.environb):
            environment.__class__ = recording  # the same object, as others may hold it
        record_lookups(self.on_look)
        sys.addaudithook(self._on_event)

    def continue_in_fork(self) -> None:
        """This process was forked, and is now the one whose calls are watched."""
        self._process = os.getpid()

    def begin(self, beside: str, named: Callable[[], set[str]], variables: Iterable[str]) -> None:
        """A call begins. `named` gives the files of its flow's folder that its job names, `variables` are those that
        the job sets."""
        self.places.begin()
        self._beside, self._named, self._variables = beside, named, frozenset(variables)
        if self._set_names:
            self._set_names = set()
        self._doubt, self.is_active = "", True

    def end(self) -> str:
        """What the call read first that is not its own; empty if it read nothing of that kind."""
        self.is_active = False
        if self._told[0]:
            told = self._told[:].rstrip(b"\0").decode(errors="replace")
            self._told[:] = bytes(SENTENCE_BYTES_MAX)
            return self._doubt or told
        return self._doubt

    def unobserved(self) -> "_Unobserved":
        """What is read meanwhile is not read by the function."""
        return _Unobserved(self)

    def set_aside(self, beside: str) -> tuple[bool, str, str]:
        """A module is about to be loaded: what it reads is told of it, whoever loads it. Give back what this returns
        to `take_up`."""
        before = self.is_active, self._doubt, self._beside
        self.is_active, self._doubt, self._beside = True, "", beside
        return before

    def take_up(self, before: tuple[bool, str, str]) -> str:
        """The module is loaded: what it read, and go on as before."""
        found = self._doubt
        self.is_active, self._doubt, self._beside = before
        self.is_active = self.is_active and not self._doubt
        return found

    def take_loaded_outside(self) -> bool:
        """Whether a module from elsewhere was loaded since this was asked last."""
        found, self._loaded_outside = self._loaded_outside, False
        return found

    def note(self, doubt: str) -> None:
        """The first is enough."""
        if not self.is_active:
            return
        self.is_active = False
        if os.getpid() == self._process:
            self._doubt = doubt
        else:
            told = doubt.encode(errors="replace")[:SENTENCE_BYTES_MAX]
            self._told[: len(told)] = told

    def note_loaded(self, name: str, file: str) -> None:
        """A module from elsewhere was loaded, or is given again."""
        self._loaded_outside = True
        if name in STARTS_PYTHON:
            self.note("it started another Python, of which nobody sees what it reads")
        else:
            self.note(f"it loaded {_source_of(file)}, which is not beside the flow and may have changed")

    # As the environment tells

    def on_variable(self, name: object) -> None:
        """Only what the user's own code asks for: libraries read many variables, of which the result does not
        depend."""
        name = os.fsdecode(name) if isinstance(name, bytes) else name
        if not self.is_active or name in _SAY_NOTHING or name in self._variables or name in self._set_names:
            return
        if isinstance(name, str) and self._is_users(_asker()):
            self.note(Doubt(name, is_variable=True).sentence())

    def on_all_variables(self) -> None:
        if self.is_active and self._is_users(_asker()):
            self.note("it reads the whole environment, which may be another now")

    def on_set(self, name: object) -> None:
        if self.is_active:
            self._set_names.add(os.fsdecode(name) if isinstance(name, bytes) else str(name))

    # As functions of os tell

    def on_look(self, path: Any) -> None:
        """A path is looked at without being opened: whether it is there, how large it is, where it leads. Only what the
        user's own code asks: libraries look at many places."""
        if not self.is_active:
            return
        place = _path_of(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if not place or self.places.has(place) or self.places.is_above(place) or not self._is_users(_asker()):
            return
        below = place[len(self._beside) + 1 :] if self._beside and place.startswith(self._beside + os.sep) else ""
        if place != self._beside and not (below and below in self._named()):
            self.note(f"it looked at {place}, which is none of its inputs and may have changed")

    # As Python tells

    def _on_event(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.is_active:
            return
        judge = self._judges.get(event)
        if judge is not None:
            judge(given)

    def _on_open(self, given: tuple[Any, ...]) -> None:
        path, flags = _path_of(given[0]), given[2] if isinstance(given[2], int) else 0
        if not path or flags & os.O_ACCMODE == os.O_WRONLY:
            if path and flags & (os.O_TRUNC | os.O_EXCL):
                self.places.add_created(path)
        elif flags & (os.O_TRUNC | os.O_EXCL):
            if not (_O_TMPFILE and flags & _O_TMPFILE == _O_TMPFILE):
                self.places.add_created(path)
        elif not self.places.has(path):
            self._on_read(path)

    def _on_read(self, path: str) -> None:
        below = path[len(self._beside) + 1 :] if self._beside and path.startswith(self._beside + os.sep) else ""
        frame = _caller()
        if _is_import(frame):
            if not below and self._counts(frame):
                self.note_loaded("", path)
        elif below:
            if below not in self._named() and "__pycache__" not in below and self._counts(frame):
                self.note(f"it read {below} beside the flow, which is not among its inputs")
        else:
            self._outside(path, frame)

    def _on_path(self, given: tuple[Any, ...]) -> None:
        """A folder that is listed or entered, or a file that gets another name."""
        path = _path_of("." if given[0] is None else given[0])
        if path and not self.places.has(path):
            frame = _caller()
            if not _is_import(frame):
                self._outside(path, frame)

    def _on_mkdir(self, given: tuple[Any, ...]) -> None:
        path = _path_of(given[0])
        if path and not os.path.lexists(path):
            self.places.add_created(path)

    def _on_import(self, given: tuple[Any, ...]) -> None:
        """An extension in C tells its file here; a module that starts another Python is as good as its start."""
        name, file = given[0], _path_of(given[1])
        if name in STARTS_PYTHON or (file and not self.places.has(file) and self._counts(_caller())):
            self.note_loaded(name, file)

    def _on_database(self, given: tuple[Any, ...]) -> None:
        name = os.fsdecode(given[0]) if isinstance(given[0], bytes | os.PathLike) else given[0]
        if not isinstance(name, str) or not name or name == ":memory:":
            return
        path = _path_of(name.removeprefix("file:").partition("?")[0] if name.startswith("file:") else name)
        if path and not self.places.has(path):
            self._outside(path, _caller())

    def _on_library(self, given: tuple[Any, ...]) -> None:
        name = given[0]
        path = _path_of(name) if isinstance(name, str | bytes) and os.path.dirname(name) else ""
        if path and not self.places.has_library(path):
            self._outside(path, _caller())

    def _on_address(self, address: Any) -> None:
        if isinstance(address, str) and address.startswith("file:"):
            return  # it is opened as a file
        if isinstance(address, str | bytes) and os.path.isabs(address) and self.places.has(os.fsdecode(address)):
            return
        if self._counts(_caller()):
            self.note(f"it got data from {_address(address)}, which may have changed")

    def _on_host_name(self) -> None:
        if self._is_users(_asker()):
            self.note("it asked for the name of its machine, which may be another now")

    def _on_start(self, words: Any, program: Any = None, folder: Any = None, environment: Any = None) -> None:
        if isinstance(words, str | bytes | os.PathLike):
            words = [words]
        texts = [_text(word) for word in words]
        if program is not None and texts and os.path.basename(_text(program)) != os.path.basename(texts[0]):
            texts[0] = _text(program)
        place = _path_of(folder) if folder is not None else ""
        if place and not self.places.has(place):
            self._outside(place, _caller())
        elif os.path.basename(texts[0]) in SHELLS and texts[1:2] == [_SHELL_OPTION] and len(texts) > 2:
            self._on_script(texts[2], environment)
        else:
            self._on_script(shlex.join(texts), environment)

    def _on_script(self, script: Any, environment: Any = None) -> None:
        """Commands are judged as the scripts of jobs are."""
        variables = self._variables | self._set_names
        if isinstance(environment, Mapping):
            variables |= {_text(name) for name in environment if _text(name) not in os.environ}
        doubt = first_doubt(self.places.shortened(_text(script)), "sh", frozenset(variables))
        if doubt and self._counts(_caller()):
            self.note(f"{doubt} (in a command that it ran)")

    def _outside(self, path: str, frame: FrameType | None) -> None:
        if self._counts(frame):
            self.note(f"it read {path}, which is none of its inputs: declare it as an input")

    def _counts(self, frame: FrameType | None) -> bool:
        """Whether it is the function that wants it: what an installed module reads when it is imported says nothing
        of the function, and is read once in each process."""
        files = (each.f_code.co_filename for each in _frames(frame))
        inner = True
        for file in files:
            of_import = file.startswith(_IMPORT_SYSTEM)
            if of_import and not inner:
                return False
            if not of_import and not self.places.is_installed(file):
                return True
            inner = inner and of_import
        return True

    def _is_users(self, file: str) -> bool:
        return bool(file) and not self.places.is_installed(file)


class _Unobserved:
    """A class, not a generator: each call has its result written within one."""

    __slots__ = ("_before", "_reads")

    def __init__(self, reads: OutsideReads) -> None:
        self._reads = reads
        self._before = False

    def __enter__(self) -> None:
        self._before, self._reads.is_active = self._reads.is_active, False

    def __exit__(self, *raised: object) -> None:
        self._reads.is_active = self._before


class _RecordingEnvironment(os._Environ):  # type: ignore[type-arg]  # of texts, and of bytes
    """The environment, which tells who reads it."""

    reads: ClassVar[OutsideReads]

    def __getitem__(self, key: Any) -> Any:
        self.reads.on_variable(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.reads.on_set(key)

    def __iter__(self) -> Iterator[Any]:
        self.reads.on_all_variables()
        return super().__iter__()


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_import(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(_IMPORT_SYSTEM)


def _caller() -> FrameType | None:
    """Where Python was when it told us."""
    return next((frame for frame in _frames(sys._getframe(1)) if frame.f_code.co_filename != __file__), None)


def _asker() -> str:
    """The file of the code that asked for a variable or looked at a path; empty if it is a folder that is made, which
    looks at those above it."""
    for frame in _frames(_caller()):
        file = frame.f_code.co_filename
        if not file.startswith(_ASKS_FOR_OTHERS):
            return file
        if frame.f_code.co_name in ("makedirs", "mkdir"):
            return ""
    return ""


def _path_of(given: Any) -> str:
    """The absolute path; empty for what is no path, such as the number of an open file."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if isinstance(given, bytes):
        given = os.fsdecode(given)
    return os.path.abspath(given) if isinstance(given, str) and given else ""


def _source_of(file: str) -> str:
    return source_from_cache(file) if file.endswith(".pyc") and "__pycache__" in file else file


def _text(given: Any) -> str:
    return os.fsdecode(given) if isinstance(given, bytes | os.PathLike) else str(given)


def _address(address: Any) -> str:
    if isinstance(address, tuple):
        return ":".join(_text(part) for part in address[:2] if part is not None)
    return _text(address)
