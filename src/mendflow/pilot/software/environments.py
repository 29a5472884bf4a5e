"""Environments of a host: each is made once from its description, for all pilots here, and used by many jobs.

An environment stands in a folder that is named after what it was made from. Whoever makes it holds its lock, and the
others wait; it counts when `complete` stands in it, so one that was being made when its pilot was killed is made anew.
Pilots hold the lock of what they use together, and one that nobody has used for long is removed."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.software import Software
from mendflow.core.model.values import FileRef
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.files.work_folder import remove_tree
from mendflow.pilot.software.builders import build_of, file_names, run_build, write_packages
from mendflow.pilot.software.faults import bad_environment, environment_not_made

SHAPE: Final = 1
"""Raised when environments of the same description become others."""

KEY_CHARS: Final = 32
FAILED_MS: Final = 10 * 60_000
"""So long nobody tries again what failed because of its description."""

UNUSED_DAYS: Final = 30
WAIT_S: Final = 0.2
COMPLETE: Final = "mendflow-complete.json"


class MadeEnvironment(msgspec.Struct, frozen=True):
    """An environment that jobs can run in: its folder, and the version of its Python (empty if it has none)."""

    prefix: str
    python: str

    @property
    def interpreter(self) -> str:
        return os.path.join(self.prefix, "bin", "python")

    @property
    def can_run_functions(self) -> bool:
        return self.python == own_python()


class _Failure(msgspec.Struct, frozen=True):
    """How the last try to make an environment ended, and when."""

    fault: Fault
    at_ms: int


def own_python() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def environments_folder() -> Path:
    """Where the environments of this host are: those of one account, for all of its pilots."""
    if given := os.environ.get("MENDFLOW_ENVIRONMENTS"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mendflow", "environments")


class Environments:
    """Every method blocks and is meant for a thread. `fetch` puts a stored file at a path,
    `variables` are what programs get that make environments."""

    def __init__(
        self,
        folder: Path,
        fetch: Callable[[FileRef, str], None],
        variables: Callable[[], Mapping[str, str]] = lambda: os.environ,
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._fetch = fetch
        self._made: dict[str, MadeEnvironment] = {}
        self._held: dict[str, int] = {}  # locks of those that are used here
        self._making: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def make(self, software: Software, wanted: Callable[[], bool]) -> MadeEnvironment:
        """The environment, made if there is none yet. Raises StagingFailed."""
        key = environment_key(software)
        with self._guard:
            lock = self._making.setdefault(key, threading.Lock())
        with lock:
            if (made := self._made.get(key)) is None:
                try:
                    made = self._made[key] = self._shared(key, software, wanted)
                except OSError as error:
                    raise StagingFailed(environment_not_made(software.shown, str(error))) from None
            return made

    def _shared(self, key: str, software: Software, wanted: Callable[[], bool]) -> MadeEnvironment:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        prefix = self._folder / key
        descriptor = os.open(f"{prefix}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, fcntl.LOCK_SH, wanted, software)
            made = self._complete(prefix)
            if made is None:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # over NFS a lock is not given up for a stronger one
                _lock(descriptor, fcntl.LOCK_EX, wanted, software)
                made = self._complete(prefix)
            if made is None:
                self._refuse_again(prefix)  # whoever has just held the lock may have failed
                made = self._build(prefix, software, wanted, descriptor)
            os.utime(f"{prefix}.lock")
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            _lock(descriptor, fcntl.LOCK_SH, wanted, software)
        except BaseException:
            os.close(descriptor)
            raise
        self._held[key] = descriptor
        return made

    def _complete(self, prefix: Path) -> MadeEnvironment | None:
        try:
            return msgspec.json.decode((prefix / COMPLETE).read_bytes(), type=MadeEnvironment)
        except (OSError, msgspec.MsgspecError):
            return None

    def _refuse_again(self, prefix: Path) -> None:
        """What failed a moment ago because of its description would fail again."""
        try:
            last = msgspec.json.decode(Path(f"{prefix}.failed").read_bytes(), type=_Failure)
        except (OSError, msgspec.MsgspecError):
            return
        if time.time() * 1000 < last.at_ms + FAILED_MS:
            raise StagingFailed(last.fault)

    def _build(self, prefix: Path, software: Software, wanted: Callable[[], bool], lock: int) -> MadeEnvironment:
        remove_tree(str(prefix))
        try:
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=f"{prefix.name}.files-") as files:
                self._write_files(software, Path(files))
                build = build_of(software, str(prefix), files)
                run_build(software, build, files, self._variables(), wanted, lock)
            made = MadeEnvironment(str(prefix), _python_in(prefix))
            _write(prefix / COMPLETE, msgspec.json.encode(made))
            _make_read_only(prefix)
        except StagingFailed as error:
            remove_tree(str(prefix))
            if error.fault.category is Category.INPUT:
                failure = _Failure(error.fault, int(time.time() * 1000))
                _write(Path(f"{prefix}.failed"), msgspec.json.encode(failure))
            raise
        Path(f"{prefix}.failed").unlink(missing_ok=True)
        return made

    def _write_files(self, software: Software, folder: Path) -> None:
        if software.sources:
            named = ", ".join(software.sources.values())
            raise StagingFailed(bad_environment(software.shown, f"{named} was not stored when the flow was deployed"))
        write_packages(software, folder)
        allowed = file_names(software)
        for name, ref in software.files.items():
            if name not in allowed or ".." in name.split("/") or name.startswith("/") or "\0" in name:
                raise StagingFailed(bad_environment(software.shown, f"{name!r} is no file of such a description"))
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._fetch(ref, str(target))

    def remove_unused(self, days: float = UNUSED_DAYS) -> list[str]:
        """Remove environments that no pilot of this host has used for so long, and what was left half made. Their
        locks stay: somebody may just be waiting for one."""
        removed = []
        for path in self._lock_files():
            prefix = path.with_suffix("")
            if prefix.name in self._held:
                continue
            with _alone(path) as is_alone:
                if is_alone:
                    for left in self._folder.glob(f"{prefix.name}.files-*"):
                        remove_tree(str(left))
                if is_alone and prefix.exists() and time.time() - path.stat().st_mtime > days * 86_400:
                    remove_tree(str(prefix))
                    Path(f"{prefix}.failed").unlink(missing_ok=True)
                    removed.append(prefix.name)
        return removed

    def _lock_files(self) -> list[Path]:
        try:
            return sorted(self._folder.glob("*.lock"))
        except OSError:
            return []

    def close(self) -> None:
        """Let go of all that was used."""
        while self._held:
            os.close(self._held.popitem()[1])
        self._made.clear()


def environment_key(software: Software) -> str:
    """The same for two descriptions of the same, on machines of one kind with the same Python."""
    content = [
        SHAPE,
        software.kind,
        sorted(software.packages),
        sorted((name, ref.sha256) for name, ref in software.files.items()),
        software.python or (f"{sys.executable} {sys.version}" if software.kind != "conda" else ""),
        platform.machine(),
        platform.libc_ver(),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:KEY_CHARS]


def _lock(descriptor: int, way: int, wanted: Callable[[], bool], software: Software) -> None:
    """Wait for the lock of an environment: together with others who use it, or alone, to make it."""
    while True:
        try:
            fcntl.flock(descriptor, way | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not wanted():
                raise StagingFailed(environment_not_made(software.shown, "the pilot leaves")) from None
            time.sleep(WAIT_S)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether nobody else holds the lock of this file; it is held meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _python_in(prefix: Path) -> str:
    """The version of the Python in an environment; empty if it has none."""
    interpreter = prefix / "bin" / "python"
    if not interpreter.exists():
        return ""
    script = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", script], capture_output=True, text=True, check=False, timeout=60
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, "its Python does not start", str(interpreter)) from None
    return done.stdout.strip()


def _make_read_only(prefix: Path) -> None:
    """Jobs share it: one that installs something more, or writes into it, is refused, unless it runs as root."""
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & ~0o222)
        os.chmod(folder, os.stat(folder).st_mode & ~0o222)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
