"""Targets of a transfer. A file gets its name in one step, when it is complete and the writer may still do it.

On disks, and wherever rename is atomic, it is written beside its place under a temporary name. In object stores it is
invisible until finished: finishing is the step.

An existing file is not overwritten, unless it was checked and may be replaced. On disks and in S3 that is part of the
atomic step; elsewhere it is checked again right before."""

import errno
import hashlib
import os
import posixpath
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from mendflow.core.model.values import FileRef
from mendflow.transfer.client_programs import OpenSshFiles
from mendflow.transfer.errors import TransferFailed, WriterSuperseded
from mendflow.transfer.partial_files import PART, arrive, discard, sync_folder
from mendflow.transfer.sources import LocalFile, call_with_timeout

ASIDE: Final = ".mendflow."
"""Prefix of the name of an unfinished file."""

EARLIER: Final = 8
PART_BYTES: Final = 16 << 20
PARTS_MAX: Final = 9_000
"""Parts of one object; the protocol allows 10,000."""

NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Errors of a file system without hard links."""


def _came_between() -> TransferFailed:
    return TransferFailed("something came to lie there while it was written", passing=True)


class TargetWriter(Protocol):
    """One file that is being written."""

    def write(self, source: str, ref: FileRef) -> None:
        """Write all of it under a temporary name, and verify it."""
        ...

    def show(self, ref: FileRef, *, over: bool) -> None:
        """Move it into place in one step; replace what is there, if it is `over` that."""
        ...

    def forget(self) -> None:
        """Remove everything temporary, as far as possible."""
        ...


def publish(
    writing: TargetWriter,
    source: str,
    ref: FileRef,
    may_rename: Callable[[], bool],
    *,
    over: str = "",
    now: Callable[[], str] = str,
) -> None:
    """`over` is the identity of the existing file to replace, empty if there is none; `now` checks again."""
    try:
        writing.write(source, ref)
        if not may_rename():
            raise WriterSuperseded(f"{ref.name} is written, but its writer may no longer give it its name")
        if now() != over:
            raise _came_between()
        writing.show(ref, over=bool(over))
    except BaseException:
        writing.forget()
        raise


def aside(path: str, mark: str, turn: int) -> str:
    """The temporary name. `mark` is the owner, `turn` the attempt: leftovers of earlier ones are recognised by it."""
    folder, name = posixpath.split(path)
    short = hashlib.sha256(f"{name}\0{mark}".encode()).hexdigest()[:24]
    return posixpath.join(folder, f"{ASIDE}{short}.{turn}")


def earlier(path: str, mark: str, turn: int) -> list[str]:
    """Leftovers of earlier attempts. A writer that is still active can no longer rename its file."""
    return [aside(path, mark, number) for number in range(max(0, turn - EARLIER), turn)]


class DiskWriter:
    def __init__(self, path: str, mark: str, turn: int) -> None:
        self._path = path
        self._aside = aside(path, mark, turn)
        self._earlier = earlier(path, mark, turn)

    def write(self, source: str, ref: FileRef) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        for left in self._earlier:
            discard(left)
        if _linked(self._aside + PART):
            discard(self._aside)  # it is in its place too, and must not be written to
        digest, size = arrive(LocalFile(source), self._aside, size=ref.bytes, mode=0o666)
        _check(digest, size, ref)

    def show(self, ref: FileRef, *, over: bool) -> None:
        if over:
            os.unlink(self._path)
        try:
            os.link(self._aside + PART, self._path)
        except FileExistsError:
            raise _came_between() from None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            os.replace(self._aside + PART, self._path)
        sync_folder(os.path.dirname(self._path))
        discard(self._aside)

    def forget(self) -> None:
        discard(self._aside)


class ObjectWriter:
    """`translate` makes a failure of whatever the file system raises."""

    def __init__(self, system: Any, path: str, translate: Callable[[Exception], Exception], timeout_s: float) -> None:
        self._system, self._path, self._translate = system, path, translate
        self._timeout_s = timeout_s
        self._file: Any = None

    def write(self, source: str, ref: FileRef) -> None:
        if not ref.bytes:
            return
        block = max(PART_BYTES, -(-ref.bytes // PARTS_MAX))
        more = {"Metadata": {"sha256": ref.sha256}} if "s3" in _protocols(self._system) else {}
        self._file = self._ask(lambda: self._system.open(self._path, "wb", autocommit=False, block_size=block, **more))
        digest, size = _sent(source, block, lambda piece: self._ask(lambda: self._file.write(piece)))
        self._ask(self._file.close)
        _check(digest, size, ref)

    def show(self, ref: FileRef, *, over: bool) -> None:
        if self._file is None:
            self._ask(lambda: self._system.pipe_file(self._path, b""))
        else:
            self._ask(self._file.commit if over else self._finish_alone)
        found = self._ask(lambda: self._system.info(self._path))
        if int(found["size"]) != ref.bytes:
            raise TransferFailed(f"{found['size']} of {ref.bytes} bytes are there after it was written", passing=True)
        expected = _whole_tag(getattr(self._file, "parts", None) or [])
        if expected and (tag := str(found.get("ETag", "")).strip('"')) and tag != expected:
            raise TransferFailed(f"what is there has the tag {tag}, not {expected}", passing=True)

    def _finish_alone(self) -> None:
        """Create only: S3 has a precondition for that, which s3fs sets by the mode; not every store supports it."""
        self._file.mode = "xb"
        try:
            self._file.commit()
        except FileExistsError:
            raise _came_between() from None
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            self._file.mode = "wb"
            self._file.commit()

    def forget(self) -> None:
        if self._file is not None:
            try:
                self._ask(self._file.discard)
            except TransferFailed:
                pass  # an unfinished upload is never visible

    def _ask(self, call: Callable[[], Any]) -> Any:
        return call_with_timeout(call, self._translate, self._timeout_s)


class RenameWriter:
    """A file system with an atomic rename: SFTP, HDFS, SMB."""

    def __init__(
        self,
        system: Any,
        path: str,
        translate: Callable[[Exception], Exception],
        timeout_s: float,
        mark: str,
        turn: int,
    ) -> None:
        self._system, self._path, self._translate = system, path, translate
        self._timeout_s = timeout_s
        self._aside = aside(path, mark, turn)
        self._earlier = earlier(path, mark, turn)

    def write(self, source: str, ref: FileRef) -> None:
        self._ask(lambda: self._system.makedirs(posixpath.dirname(self._path), exist_ok=True))
        for left in self._earlier:
            self._remove(left)
        target = self._ask(lambda: self._system.open(self._aside, "wb"))
        try:
            digest, size = _sent(source, PART_BYTES, lambda piece: self._ask(lambda: target.write(piece)))
        finally:
            self._ask(target.close)
        _check(digest, size, ref)
        there = int(self._ask(lambda: self._system.info(self._aside))["size"])
        if there != ref.bytes:
            raise TransferFailed(f"{there} of {ref.bytes} bytes are there after it was written", passing=True)

    def show(self, ref: FileRef, *, over: bool) -> None:
        self._ask(lambda: self._system.mv(self._aside, self._path))

    def forget(self) -> None:
        self._remove(self._aside)

    def _remove(self, path: str) -> None:
        try:
            self._ask(lambda: self._system.rm_file(path))
        except TransferFailed:
            pass  # it was not there, or is litter under a temporary name

    def _ask(self, call: Callable[[], Any]) -> Any:
        return call_with_timeout(call, self._translate, self._timeout_s)


class ProgramWriter:
    """A machine that is reached by OpenSSH's client."""

    def __init__(self, system: OpenSshFiles, path: str, mark: str, turn: int) -> None:
        self._system, self._path = system, path
        self._aside = aside(path, mark, turn)
        self._earlier = earlier(path, mark, turn)

    def write(self, source: str, ref: FileRef) -> None:
        self._system.makedirs(posixpath.dirname(self._path))
        for left in self._earlier:
            self._remove(left)
        self._system.put(source, self._aside)
        file = LocalFile(source)
        _check(file.digest(), file.size, ref)
        there = self._system.info(self._aside)["size"]
        if there != ref.bytes:
            raise TransferFailed(f"{there} of {ref.bytes} bytes are there after it was written", passing=True)

    def show(self, ref: FileRef, *, over: bool) -> None:
        self._system.mv(self._aside, self._path)

    def forget(self) -> None:
        self._remove(self._aside)

    def _remove(self, path: str) -> None:
        try:
            self._system.rm_file(path)
        except TransferFailed:
            pass  # it was not there, or is litter under a temporary name


def _linked(path: str) -> bool:
    try:
        return os.stat(path, follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def _sent(source: str, piece_bytes: int, send: Callable[[bytes], object]) -> tuple[str, int]:
    """Send a file piece by piece, hashing each; returns its digest and size."""
    digest, size = hashlib.sha256(), 0
    with open(source, "rb") as file, ThreadPoolExecutor(1, thread_name_prefix="mendflow-digest") as beside:
        while piece := file.read(piece_bytes):
            hashed = beside.submit(digest.update, piece)
            send(piece)
            hashed.result()
            size += len(piece)
    return digest.hexdigest(), size


def _check(digest: str, size: int, ref: FileRef) -> None:
    if (digest, size) != (ref.sha256, ref.bytes):
        raise TransferFailed(f"{ref.name} has changed since it was made: something still writes to it")


def _whole_tag(parts: list[dict[str, Any]]) -> str:
    """The ETag that an S3 store gives an object of these parts, if part tags are MD5 digests as usual."""
    tags = [str(part.get("ETag", "")).strip('"') for part in parts]
    if not tags or any(len(tag) != 32 or set(tag) - set("0123456789abcdef") for tag in tags):
        return ""
    return f"{hashlib.md5(b''.join(map(bytes.fromhex, tags)), usedforsecurity=False).hexdigest()}-{len(tags)}"


def _protocols(system: Any) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
