"""Files on their way to a job and back.

What a job needs is fetched once by its digest, checked, and linked into each attempt's folder. What a job made is taken
into the server's keeping before anybody hears that the job is done, so an output is never seen half."""

import errno
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from mendflow.core.model.faults import Category, Fault, Stage
from mendflow.core.model.jobs import KEPT, FunctionRef, JobSpec, Outcome, sources_of
from mendflow.core.model.values import FileRef, Value
from mendflow.pilot.cache.contract import Cache
from mendflow.pilot.cache.plain import PlainCache
from mendflow.pilot.code import source_file
from mendflow.pilot.home import Home, remove_tree
from mendflow.pilot.http import Files, ServerRefused
from mendflow.pilot.sources import USUAL, BadSource, NoSource, Transfer, digest_in, pieces
from mendflow.pilot.verdicts import NO_ROOM, full_disk
from mendflow.pilot.wire import Done
from mendflow.pilot.works import has_own_folder

FETCH_WAIT_S_MAX = 10.0
NAME_BYTES_MAX = 200


WRONG_PLACE = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL})
"""What the system says when paths of a job contradict each other, or cannot be."""


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
        raise StagingFailed(_wrong("badPath", text, path))
    return path


def needs_files(spec: JobSpec) -> bool:
    """Whether files must be put in place before a slot can have the job."""
    return bool(spec.inputs or spec.files or spec.replicas) or any(
        True for _ in spilled_digests([spec.args, spec.kwargs])
    )


class Staging:
    """Every method blocks and is meant for a thread; they may run side by side."""

    def __init__(self, home: Home, files: Files, *, cache: Cache | None = None) -> None:
        self._home = home
        self._files = files
        self._cache = cache if cache is not None else PlainCache(home.cache)
        self._sources: dict[tuple[str, int, int], str] = {}
        self._code: dict[FunctionRef, str] = {}

    # in

    def bring(self, spec: JobSpec, folder: str) -> list[str]:
        """Put everything where the job will look for it; give the digests that must stay in the cache meanwhile."""
        pinned = [digest for digest in spilled_digests([spec.args, spec.kwargs])]
        path = ""
        try:
            transfer = _transfer_of(spec)
            for promised in spec.files.values():
                inside(promised)
            if has_own_folder(spec):
                os.makedirs(folder, exist_ok=True)
            for digest in pinned:
                self._cache.pin(digest)
                self._fetched(digest, (KEPT + digest,), "", transfer)
            for path in (*spec.inputs, *(path for path in spec.replicas if path not in spec.inputs)):
                self._place(spec, folder, inside(path), transfer)
            for path in spec.files.values():
                os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            return pinned
        except (OSError, StagingFailed) as error:
            self.release(pinned)
            remove_tree(folder)
            raise StagingFailed(_fault_of(error, folder, path)) from None

    def _place(self, spec: JobSpec, folder: str, path: str, transfer: Transfer) -> None:
        sources = sources_of(spec, path)
        kept = spec.inputs.get(path)
        digest = digest_in(sources[0]) or (kept.sha256 if kept is not None else "")
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not digest:
            self._fetch("", target, sources, path, transfer)
            return
        self._cache.pin(digest)
        try:
            self._fetched(digest, sources, path, transfer)
            self._cache.give(digest, target, link=spec.link_inputs)
        finally:
            self._cache.release([digest])

    def _fetched(self, digest: str, sources: tuple[str, ...], path: str, transfer: Transfer = USUAL) -> str:
        """The file in the cache, from the first of its sources if it is not there yet."""
        entry = self._cache.take_in(digest, lambda target: self._fetch(digest, target, sources, path, transfer))
        return entry.path

    def _fetch(self, digest: str, target: str, sources: tuple[str, ...], path: str, transfer: Transfer) -> None:
        temporary = f"{target}.{os.getpid()}.tmp"
        reason = ""
        for turn in range(transfer.tries):
            found = hashlib.sha256()
            try:
                with open(temporary, "wb") as file:
                    for piece in pieces(sources[0], self._files, transfer):
                        found.update(piece)
                        file.write(piece)
            except BadSource as error:
                raise StagingFailed(_wrong("badSource", f"input {path}: {error}", path)) from None
            except NoSource as error:
                reason = str(error)
                if not error.passing:
                    break
                if turn < transfer.tries - 1:
                    time.sleep(min(0.2 * 2**turn, FETCH_WAIT_S_MAX))
                continue
            except OSError:
                _forget(temporary)
                raise
            if not digest or found.hexdigest() == digest:
                os.replace(temporary, target)
                return
            reason = f"it arrived damaged, or is another file: its digest is {found.hexdigest()[:12]}"
        _forget(temporary)
        raise StagingFailed(_missing(path, sources, reason))

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
            raise StagingFailed(_wrong("badModule", f"{function.module!r} is not the name of a Python module"))
        folder = os.path.join(self._home.code, code.sha256)
        target = os.path.join(folder, *parts) + ".py"
        try:
            if not os.path.exists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                temporary = f"{target}.{threading.get_ident()}.tmp"
                shutil.copyfile(self._fetched(code.sha256, (KEPT + code.sha256,), code.name), temporary)
                os.replace(temporary, target)
        except OSError as error:
            raise StagingFailed(_fault_of(error, target, "")) from None
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
        path = ""
        try:
            for path in done.spills:
                self._upload(path, "value.json")
            files = {}
            for name, path in done.files.items():
                files[name] = self._upload(os.path.join(folder, path), path)
            outcome = msgspec.structs.replace(outcome, files=files)
        except (OSError, ServerRefused) as error:
            fault = msgspec.structs.replace(_not_kept(path, error), log_tail=outcome.log_tail)
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

    def release(self, digests: Iterable[str]) -> None:
        """Let go of what `bring` has given."""
        self._cache.release(digests)


def _transfer_of(spec: JobSpec) -> Transfer:
    if not spec.transfer:
        return USUAL
    try:
        return msgspec.convert(spec.transfer, Transfer)
    except msgspec.ValidationError as error:
        text = f"its files cannot be brought in this way: {error}; there are tries, timeout_ms and chunk_bytes"
        raise StagingFailed(_wrong("badTransfer", text)) from None


def _forget(temporary: str) -> None:
    try:
        os.unlink(temporary)
    except OSError:
        pass


def _missing(path: str, sources: tuple[str, ...], reason: str) -> Fault:
    what = f"input {path}" if path else "an argument"
    others = f"; it may also be had from {', '.join(sources[1:])}" if sources[1:] else ""
    return Fault(
        name="missingInput",
        category=Category.DATA,
        message=f"{what} could not be had from {_short(sources[0])}: {reason}{others}",
        stage=Stage.STAGE_IN,
        file=path,
        data={"source": sources[0], "others": list(sources[1:]), "reason": reason},
    )


def _short(source: str) -> str:
    return f"the server's keeping ({digest_in(source)[:12]})" if digest_in(source) else source


def _wrong(name: str, text: str, path: str = "") -> Fault:
    return Fault(name=name, category=Category.INPUT, message=text, stage=Stage.STAGE_IN, file=path)


def _not_kept(path: str, error: OSError | ServerRefused) -> Fault:
    text = f"the job ended well, but its files could not be kept: {error}"
    data = {"reason": str(error)}
    return Fault(name="notKept", category=Category.OUTPUT, message=text, stage=Stage.STAGE_OUT, file=path, data=data)


def _fault_of(error: OSError | StagingFailed, folder: str, path: str) -> Fault:
    """What came in the way of putting files into their places: the disk, the job's own paths, or the place."""
    if isinstance(error, StagingFailed):
        return error.fault
    full = full_disk(folder, str(error), stage=Stage.STAGE_IN, known=error.errno in NO_ROOM)
    if full is not None:
        return msgspec.structs.replace(full, file=path)
    if path and error.errno in WRONG_PLACE:
        return _wrong("badPath", f"{path} cannot be put into the job's folder: {error}", path)
    return Fault(
        name="cannotStage",
        category=Category.RESOURCE,
        message=f"the pilot could not put the job's files in place: {error}",
        stage=Stage.STAGE_IN,
        file=path,
        data={"errno": errno.errorcode.get(error.errno or 0, "")},
    )
