"""What can be written to. A file gets its name in one step, when all of it is there and the writer may still do it.

On disks, and wherever a rename is one step, it is written beside its place under a name that nobody looks for. In
object stores it is not seen before it is finished: finishing is the step.

What lies at the place already is not written over, unless it was looked at and may be replaced. On disks and in S3 that
is part of the step itself; elsewhere it is looked at once more right before."""

import errno
import hashlib
import os
import posixpath
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from mendflow.core.model.values import FileRef
from mendflow.transfer.errors import TransferFailed, WriterSuperseded
from mendflow.transfer.partial_files import PART, arrive, discard, sync_folder
from mendflow.transfer.sources import LocalFile, call_with_timeout

ASIDE: Final = ".mendflow."
"""What the name of a file begins with that is still being written."""

EARLIER: Final = 8
PART_BYTES: Final = 16 << 20
PARTS_MAX: Final = 9_000
"""Of one object; the protocol knows 10,000."""

NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system says that has no hard links."""


def _came_between() -> TransferFailed:
    return TransferFailed("something came to lie there while it was written", passing=True)


class TargetWriter(Protocol):
    """One file on its way to its place."""

    def write(self, source: str, ref: FileRef) -> None:
        """All of it, where nobody sees it, and checked."""
        ...

    def show(self, ref: FileRef, *, over: bool) -> None:
        """In one step, in its place; instead of what is there, if it is `over` that."""
        ...

    def forget(self) -> None:
        """Leave nothing behind, as far as that is possible."""
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
    """`over` is the identity of what is there and is to be replaced, nothing if nothing is; `now` looks again."""
    try:
        writing.write(source, ref)
        if not may_rename():
            raise WriterSuperseded(f"{ref.name} is written, but may not be given its name any more")
        if now() != over:
            raise _came_between()
        writing.show(ref, over=bool(over))
    except BaseException:
        writing.forget()
        raise


def aside(path: str, mark: str, turn: int) -> str:
    """The name under which a file is written. `mark` is whose it is, `turn` the attempt: those of earlier ones are
    known by it."""
    folder, name = posixpath.split(path)
    short = hashlib.sha256(f"{name}\0{mark}".encode()).hexdigest()[:24]
    return posixpath.join(folder, f"{ASIDE}{short}.{turn}")


def earlier(path: str, mark: str, turn: int) -> list[str]:
    """What attempts before this one may have left. One that still writes there can no longer give it its name."""
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
        """Where nothing is. S3 has that as a wish, which s3fs makes of the mode; not every store knows it."""
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
                pass  # what was never finished is never seen

    def _ask(self, call: Callable[[], Any]) -> Any:
        return call_with_timeout(call, self._translate, self._timeout_s)


class RenameWriter:
    """A file system whose own rename is one step: SFTP, HDFS, SMB."""

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
            pass  # it was not there, or is litter under a name that nobody looks for

    def _ask(self, call: Callable[[], Any]) -> Any:
        return call_with_timeout(call, self._translate, self._timeout_s)


def _linked(path: str) -> bool:
    try:
        return os.stat(path, follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def _sent(source: str, piece_bytes: int, send: Callable[[bytes], object]) -> tuple[str, int]:
    """Send a file piece by piece, each hashed while it is on its way: its digest and its size."""
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
    """The tag that an S3 store gives an object of these parts, where their tags are digests as they usually are."""
    tags = [str(part.get("ETag", "")).strip('"') for part in parts]
    if not tags or any(len(tag) != 32 or set(tag) - set("0123456789abcdef") for tag in tags):
        return ""
    return f"{hashlib.md5(b''.join(map(bytes.fromhex, tags)), usedforsecurity=False).hexdigest()}-{len(tags)}"


def _protocols(system: Any) -> tuple[str, ...]:
    protocol = system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
