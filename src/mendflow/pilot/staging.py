"""Files on their way to a job and back.

What a job needs is fetched once by its digest, checked, and linked into each attempt's folder. What a job made is taken
into the server's keeping before anybody hears that the job is done, so an output is never seen half."""

import errno
import hashlib
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import FunctionRef, JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value
from mendflow.pilot.code import source_file
from mendflow.pilot.home import Home, remove_tree
from mendflow.pilot.http import Files, ServerAway, ServerRefused
from mendflow.pilot.wire import Done

CACHE_BYTES_MAX = 2 << 30
FETCH_TRIES = 4
NAME_BYTES_MAX = 200


class StagingFailed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def spilled_digests(value: Value) -> Iterator[str]:
    """The digests of all spilled values inside a value."""
    if isinstance(value, dict):
        digest = value.get("$spilled")
        if isinstance(digest, str):
            yield digest
            return
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from spilled_digests(element)


def inside(path: str) -> str:
    """The path, if it stays inside the folder it is meant for."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        text = f"the path {path!r} leaves the job's folder: use a relative path without `..`"
        raise StagingFailed(Fault(name="badPath", category=Category.INPUT, message=text))
    return path


def needs_files(spec: JobSpec) -> bool:
    """Whether files must be put in place before a slot can have the job."""
    return bool(spec.inputs or spec.files) or any(True for _ in spilled_digests([spec.args, spec.kwargs]))


class Staging:
    """Every method blocks and is meant for a thread; they may run side by side."""

    def __init__(self, home: Home, files: Files) -> None:
        self._home = home
        self._files = files
        self._pins: Counter[str] = Counter()
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._sources: dict[tuple[str, int, int], str] = {}
        self._code: dict[FunctionRef, str] = {}

    # in

    def bring(self, spec: JobSpec, folder: str) -> list[str]:
        """Put everything where the job will look for it; give the digests that must stay in the cache meanwhile."""
        pinned = [digest for digest in spilled_digests([spec.args, spec.kwargs])]
        try:
            for path in spec.files.values():
                inside(path)
            if spec.inputs or spec.files:
                os.makedirs(folder, exist_ok=True)
            for digest in pinned:
                self._pin(digest)
                self._fetched(digest)
            for path, ref in spec.inputs.items():
                self._place(ref, folder, inside(path))
            for path in spec.files.values():
                os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            return pinned
        except (OSError, StagingFailed) as error:
            self.release(pinned)
            remove_tree(folder)
            raise StagingFailed(_fault_of(error)) from None

    def _place(self, ref: FileRef, folder: str, path: str) -> None:
        self._pin(ref.sha256)
        try:
            kept = self._fetched(ref.sha256)
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            # A copy, not a link: a job may write into its inputs, and the next job must not see that.
            shutil.copyfile(kept, target)
        finally:
            self.release([ref.sha256])

    def _fetched(self, digest: str) -> str:
        path = os.path.join(self._home.cache, digest)
        with self._guard:
            lock = self._locks.setdefault(digest, threading.Lock())
        with lock:
            if os.path.exists(path):
                os.utime(path)
            else:
                self._fetch(digest, path)
                self._shrink()
        return path

    def _fetch(self, digest: str, path: str) -> None:
        temporary = f"{path}.{os.getpid()}.tmp"
        for turn in range(FETCH_TRIES):
            found = hashlib.sha256()
            try:
                with open(temporary, "wb") as file:
                    for chunk in self._files.get(digest):
                        found.update(chunk)
                        file.write(chunk)
            except ServerRefused as error:
                raise StagingFailed(_data(f"the file {digest[:12]} could not be fetched: {error}")) from None
            except ServerAway as error:
                if turn == FETCH_TRIES - 1:
                    raise StagingFailed(_data(f"the file {digest[:12]} could not be fetched: {error}")) from None
                time.sleep(0.2 * 2**turn)
                continue
            if found.hexdigest() == digest:
                os.replace(temporary, path)
                return
        raise StagingFailed(_data(f"the file {digest[:12]} arrived damaged {FETCH_TRIES} times"))

    def code_at_hand(self, function: FunctionRef) -> str | None:
        """The folder of the function's code if it is known already; this one does not block."""
        if function.code is None:
            return function.folder
        known = self._code.get(function)
        if known is None or known != function.folder:
            return known
        path = source_file(function.folder, function.module)
        return known if self._digest_of(path) == function.code.sha256 else None

    def bring_code(self, function: FunctionRef) -> str:
        folder = self._code[function] = self._code_folder(function)
        return folder

    def _code_folder(self, function: FunctionRef) -> str:
        """The folder from which the function's module is to be loaded: the flow's own if the source there is the
        deployed one, otherwise one with the source as the server keeps it."""
        code = function.code
        assert code is not None, "without a source there is nothing to look for"
        path = source_file(function.folder, function.module) if function.folder else ""
        if path and self._digest_of(path) == code.sha256:
            return function.folder
        parts = function.module.split(".")
        if not all(part.isidentifier() for part in parts):
            text = f"{function.module!r} is not the name of a Python module"
            raise StagingFailed(Fault(name="badModule", category=Category.INPUT, message=text))
        folder = os.path.join(self._home.code, code.sha256)
        target = os.path.join(folder, *parts) + ".py"
        try:
            if not os.path.exists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                temporary = f"{target}.{threading.get_ident()}.tmp"
                shutil.copyfile(self._fetched(code.sha256), temporary)
                os.replace(temporary, target)
        except OSError as error:
            raise StagingFailed(_fault_of(error)) from None
        return folder

    def _digest_of(self, path: str) -> str:
        try:
            status = os.stat(path)
            key = (path, status.st_mtime_ns, status.st_size)
            if key not in self._sources:
                with open(path, "rb") as file:
                    self._sources[key] = hashlib.file_digest(file, "sha256").hexdigest()
            return self._sources[key]
        except OSError:
            return ""

    # out

    def keep(self, done: Done) -> msgspec.Raw:
        """Take all files of a finished attempt into keeping; the outcome with their references. Raises `ServerAway`
        when it must be tried again later."""
        outcome = msgspec.msgpack.decode(done.outcome, type=Outcome)
        folder = self._home.attempt(done.job, done.fence)
        try:
            for path in done.spills:
                self._upload(path, "value.json")
            files = {name: self._upload(os.path.join(folder, path), path) for name, path in done.files.items()}
            outcome = msgspec.structs.replace(outcome, files=files)
        except (OSError, ServerRefused) as error:
            text = f"the job ended well, but its files could not be kept: {error}"
            fault = Fault(name="notKept", category=Category.OUTPUT, message=text, log_tail=outcome.log_tail)
            outcome = msgspec.structs.replace(outcome, fault=fault, outputs=None, files={})
        return msgspec.Raw(msgspec.msgpack.encode(outcome))

    def _upload(self, path: str, name: str) -> FileRef:
        short = os.path.basename(name)[-NAME_BYTES_MAX:]
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
            file.seek(0)
            self._files.put(digest, short, file, size)
        return FileRef(sha256=digest, bytes=size, name=short)

    # the cache

    def _pin(self, digest: str) -> None:
        with self._guard:
            self._pins[digest] += 1

    def release(self, digests: Iterable[str]) -> None:
        with self._guard:
            for digest in digests:
                self._pins[digest] -= 1
                if self._pins[digest] <= 0:
                    del self._pins[digest]

    def _shrink(self) -> None:
        """Drop what was not used for longest, until the cache is within its bound."""
        entries = []
        for entry in os.scandir(self._home.cache):
            try:
                entries.append((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path, entry.name))
            except OSError:
                continue
        excess = sum(size for _, size, _, _ in entries) - CACHE_BYTES_MAX
        for _, size, path, name in sorted(entries):
            if excess <= 0:
                return
            with self._guard:
                if name in self._pins or name.endswith(".tmp"):
                    continue
                try:
                    os.unlink(path)
                    excess -= size
                except OSError:
                    continue


def _data(message: str) -> Fault:
    return Fault(name="missingInput", category=Category.DATA, message=message)


def _fault_of(error: OSError | StagingFailed) -> Fault:
    if isinstance(error, StagingFailed):
        return error.fault
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Fault(name="diskFull", category=Category.RESOURCE, message=f"the pilot's disk is full: {error}")
    return Fault(name="staging", category=Category.DATA, message=f"the job's files could not be put in place: {error}")
