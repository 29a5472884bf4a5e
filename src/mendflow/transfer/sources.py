"""Sources of a transfer: a local file, an HTTP response, and anything that fsspec reads.

Each can start in the middle. A local file is copied by the kernel; pieces of a remote one are requested ahead, so that
the network is not idle during writes."""

import base64
import errno
import hashlib
import http.client
import os
import stat
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from typing import Any, Final

from mendflow.address_guard import AddressGuard
from mendflow.transfer.errors import CannotResume, FileMissing, TransferFailed
from mendflow.transfer.guarded_web import guarded_opener
from mendflow.transfer.rooted_paths import open_inside

PASSING_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_KERNEL_COPY: Final = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF})
LASTING_ERRORS: Final = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, RuntimeError)
KERNEL_BYTES: Final = 8 << 20
WEB_BYTES: Final = 1 << 20
AHEAD: Final = 4
"""How many pieces of a file are requested in parallel."""

OnGrowth = Callable[[int], None]


def write_all(descriptor: int, piece: bytes | memoryview, offset: int) -> int:
    """Write a piece at its position; returns the next position."""
    left = memoryview(piece)
    while left:
        done = os.pwrite(descriptor, left, offset)
        left, offset = left[done:], offset + done
    return offset


class LocalFile:
    """`within` is a folder that no link may lead out of; empty: links are followed wherever they lead."""

    def __init__(self, path: str, within: str = "") -> None:
        self._path, self._within = path, within
        try:
            status = self._status()
        except FileNotFoundError as error:
            raise FileMissing(str(error)) from None
        except OSError as error:
            raise TransferFailed(str(error)) from None
        if not stat.S_ISREG(status.st_mode):
            raise TransferFailed(f"{path} is no plain file")
        self.size = status.st_size
        self.identity = f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"

    def _status(self) -> os.stat_result:
        if not self._within:
            return os.stat(self._path)
        descriptor = open_inside(self._within, self._path)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # what was a plain file may be something else by now
        return open_inside(self._within, self._path, flags) if self._within else os.open(self._path, flags)

    def send(self, descriptor: int, offset: int, grown: OnGrowth) -> None:
        try:
            source = self._opened()
        except OSError as error:
            raise TransferFailed(str(error)) from None
        try:
            os.posix_fadvise(source, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            copy = _in_kernel
            while True:
                try:
                    done = copy(source, descriptor, offset)
                except OSError as error:
                    if copy is _in_kernel and error.errno in NO_KERNEL_COPY:
                        copy = _through_memory
                        continue
                    raise
                if not done:
                    return
                offset += done
                grown(offset)
        finally:
            os.close(source)

    def digest(self) -> str:
        with os.fdopen(self._opened(), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _in_kernel(source: int, target: int, offset: int) -> int:
    return os.copy_file_range(source, target, KERNEL_BYTES, offset, offset)


def _through_memory(source: int, target: int, offset: int) -> int:
    piece = os.pread(source, KERNEL_BYTES, offset)
    return write_all(target, piece, offset) - offset


class WebFile:
    """One response to one GET. A server without range support sends everything again. With a `guard` only what that
    allows is reached."""

    size = -1
    identity = ""

    def __init__(self, url: str, *, timeout_s: float, chunk_bytes: int, guard: AddressGuard | None = None) -> None:
        self._url = url
        self._guard = guard
        self._timeout_s = timeout_s
        self._chunk_bytes = chunk_bytes

    def send(self, descriptor: int, offset: int, grown: OnGrowth) -> None:
        request = self._request("GET")
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            with self._opened(request) as answer:
                if offset and (answer.status != 206 or not _begins_at(answer.headers.get("Content-Range", ""), offset)):
                    raise CannotResume
                end = offset + int(length) if (length := answer.headers.get("Content-Length") or "").isdigit() else -1
                while piece := answer.read1(min(self._chunk_bytes, WEB_BYTES)):  # what there is: a cut loses none of it
                    offset = self._write(descriptor, piece, offset)
                    grown(offset)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                raise CannotResume from None
            reason = f"it answered {error.code} {error.reason}"
            raise TransferFailed(reason, passing=error.code in PASSING_STATUS) from None
        except _DiskError as error:
            raise error.reason from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TransferFailed(str(error) or type(error).__name__, passing=True) from None
        if end >= 0 and offset != end:
            raise TransferFailed(f"it ended after {offset} of {end} bytes", passing=True)

    def _request(self, method: str) -> urllib.request.Request:
        """A user and password in the URL are sent to its own server, and not to redirect targets."""
        parts = urllib.parse.urlsplit(self._url)
        who, at, host = parts.netloc.rpartition("@")
        plain = urllib.parse.urlunsplit(parts._replace(netloc=host))
        request = urllib.request.Request(plain, method=method, headers={"Accept-Encoding": "identity"})
        if at:
            basic = base64.b64encode(urllib.parse.unquote(who).encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {basic}")
        return request

    def _opened(self, request: urllib.request.Request) -> Any:
        if self._guard is None:
            return urllib.request.urlopen(request, timeout=self._timeout_s)
        return guarded_opener(self._guard).open(request, timeout=self._timeout_s)

    def reach(self) -> None:
        """Raise if there is no answer."""
        try:
            self._opened(self._request("HEAD")).close()
        except urllib.error.HTTPError as error:
            error.close()  # the server is there and answers
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TransferFailed(str(error) or type(error).__name__, passing=True) from None

    @staticmethod
    def _write(descriptor: int, piece: bytes, offset: int) -> int:
        try:
            return write_all(descriptor, piece, offset)
        except OSError as error:
            raise _DiskError(error) from None


class _DiskError(Exception):
    """An error of the local disk, to be distinguished from one of the network."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(reason)
        self.reason = reason


def _begins_at(content_range: str, offset: int) -> bool:
    return content_range.replace("bytes ", "").partition("-")[0].strip() == str(offset)


class FsspecFile:
    """A file of an fsspec file system. `translate` makes a failure of whatever that raises."""

    def __init__(
        self, system: Any, path: str, translate: Callable[[Exception], Exception], *, timeout_s: float, chunk_bytes: int
    ) -> None:
        self._system = system
        self._path = path
        self._translate = translate
        self._timeout_s = timeout_s
        self._chunk_bytes = chunk_bytes
        found = call_with_timeout(lambda: system.info(path), translate, timeout_s)
        if found.get("type") == "directory":
            raise TransferFailed("it is a folder")
        self.size = int(found["size"]) if found.get("size") is not None else -1
        self.identity = identity_of(found)

    def send(self, descriptor: int, offset: int, grown: OnGrowth) -> None:
        if self.size < 0:
            raise TransferFailed("its size is unknown")
        ahead = AHEAD if getattr(self._system, "async_impl", False) else 1
        pool = ThreadPoolExecutor(ahead, thread_name_prefix="mendflow-transfer")
        try:
            due: deque[Future[bytes]] = deque()
            at = offset
            while offset < self.size:
                while at < self.size and len(due) < ahead + 1:
                    end = min(at + self._chunk_bytes, self.size)
                    due.append(pool.submit(self._system.cat_file, self._path, start=at, end=end))
                    at = end
                piece = _result(due.popleft(), self._translate, self._timeout_s)
                if len(piece) != min(self._chunk_bytes, self.size - offset):
                    raise TransferFailed(f"it gave {len(piece)} bytes at {offset} of {self.size}", passing=True)
                offset = write_all(descriptor, piece, offset)
                grown(offset)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if (
            identity_of(call_with_timeout(lambda: self._system.info(self._path), self._translate, self._timeout_s))
            != self.identity
        ):
            raise TransferFailed("it changed while it was being read", passing=True)


def call_with_timeout(call: Callable[[], Any], translate: Callable[[Exception], Exception], timeout_s: float) -> Any:
    """The result of one call, with a timeout: the protocol's client may have none."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="mendflow-transfer")
    try:
        return _result(pool.submit(call), translate, timeout_s)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(pending: "Future[Any]", translate: Callable[[Exception], Exception], timeout_s: float) -> Any:
    try:
        return pending.result(timeout_s)
    except TookTooLong:
        raise TransferFailed(f"no answer within {timeout_s:g} s", passing=True) from None
    except Exception as error:  # noqa: BLE001 - every protocol raises what it likes; all of it means: not got
        raise translate(error) from None


def identity_of(info: dict[str, Any]) -> str:
    marks = [info.get(name) for name in ("ETag", "etag", "LastModified", "mtime", "last_modified", "size")]
    return "-".join(str(mark) for mark in marks if mark is not None)
