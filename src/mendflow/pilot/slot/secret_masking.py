"""Masks the secrets of an attempt in what it leaves on disk: its log, and its folder, if that is kept for people.

In a kept folder nothing stays in which a secret was found and cannot be masked, and nothing in which none can be looked
for. What was removed says so itself."""

import gzip
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from mendflow.core.model.text_masks import TextMask
from mendflow.lazy import LazyModule
from mendflow.pilot.slot.logs import CHUNK_BYTES, extent_of

if TYPE_CHECKING:
    import bz2
    import lzma
else:
    bz2, lzma = LazyModule("bz2"), LazyModule("lzma")

UNPACKED_BYTES_MAX: Final = 256 << 20
"""What unpacks to more is not searched, and not kept."""
MAGIC_BYTES: Final = 8
READERS: Final[dict[bytes, Callable[[BinaryIO], "Readable"]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": lambda file: bz2.BZ2File(file),
    b"\xfd7zXZ\x00": lambda file: lzma.LZMAFile(file),
}
"""How a packed file is read, by its first bytes."""
UNREADABLE: Final = (b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\x04\x22\x4d\x18")
"""The first bytes of packed files that are not searched: zip, Zstandard, 7-Zip, RAR, LZ4."""
REMOVED: Final = b"mendflow removed the content of this file: it is packed, and has or may have a secret of its job\n"
BESIDE: Final = (".output", ".report", ".kept")


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def mask_file(path: str, mask: TextMask) -> None:
    """Mask a file where it stands. What cannot be masked is removed."""
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return
    except OSError:
        _remove(path)
        return
    try:
        extent = extent_of(descriptor)
        for start, end in ((0, extent.gap_start), (extent.gap_end, extent.size)):
            while start < end:
                data = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
                masked = mask.mask_bytes(data)
                if masked != data:
                    os.pwrite(descriptor, masked, start)
                if not data or start + len(data) >= end:
                    break
                start += max(len(data) - mask.margin, 1)
    except OSError:
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    """Open a file to be changed, also one that its job may only read."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except PermissionError:
        os.chmod(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # somebody else has removed it, or it is beyond what this user may change, as its job was


def mask_kept(folder: str, mask: TextMask) -> None:
    """Mask what a failed attempt leaves for people: the files that it has written, their names, and what it has
    reported. Its inputs are left alone, which others may share, unless it has written a secret there: then the folder
    gets a masked copy."""
    for suffix in BESIDE:
        mask_file(folder + suffix, mask)
    found = list(_files(folder))
    links = Counter((status.st_dev, status.st_ino) for _, status in found)
    for path, status in found:
        if status.st_nlink > links[status.st_dev, status.st_ino]:
            _mask_shared(path, mask)
        else:
            _mask_own(path, mask)
    _mask_names(folder, mask)


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    _let_in(folder)
    for place, folders, names in os.walk(folder):
        for name in folders:
            _let_in(os.path.join(place, name))
        for path in (os.path.join(place, name) for name in names):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status


def _let_in(folder: str) -> None:
    """Let ourselves into a folder that its job has closed."""
    try:
        mode = os.lstat(folder).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(folder, stat.S_IMODE(mode) | stat.S_IRWXU)
    except OSError:
        pass  # somebody else has removed it, or it is beyond what this user may change, as its job was


def _mask_own(path: str, mask: TextMask) -> None:
    if not _is_packed_with_secret(path, mask):
        mask_file(path, mask)
        return
    try:
        _replace(path, REMOVED)
    except OSError:
        _remove(path)


def _mask_shared(path: str, mask: TextMask) -> None:
    """Mask a file that has other names outside of the folder, and is left as it is there. An input of a packed kind
    that is not searched stays: it was there before the job had its secrets."""
    try:
        with open(path, "rb") as file:
            magic = file.read(MAGIC_BYTES)
        if _reader_of(magic) is not None:
            if _is_packed_with_secret(path, mask):
                _replace(path, REMOVED)
            return
        with open(path, "rb") as file:
            if not _has_secret(file, mask):
                return
            file.seek(0)
            _replace(path, file)
    except OSError:
        _remove(path)
        return
    mask_file(path, mask)


def _is_packed_with_secret(path: str, mask: TextMask) -> bool:
    """Whether a packed file has a secret, or cannot be searched for one."""
    try:
        with _open_to_read(path) as file:
            magic = file.read(MAGIC_BYTES)
            if magic.startswith(UNREADABLE):
                return True
            reader = _reader_of(magic)
            if reader is None:
                return False
            file.seek(0)
            return _has_secret(reader(file), mask, UNPACKED_BYTES_MAX)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return True  # damaged or closed to us, so that nobody can say what is in it


def _open_to_read(path: str) -> BinaryIO:
    """Open a file, also one that its job has closed."""
    try:
        return open(path, "rb")
    except PermissionError:
        os.chmod(path, 0o600, follow_symlinks=False)
        return open(path, "rb")


def _reader_of(magic: bytes) -> Callable[[BinaryIO], Readable] | None:
    return next((reader for first, reader in READERS.items() if magic.startswith(first)), None)


def _has_secret(file: Readable, mask: TextMask, bytes_max: int = 0) -> bool:
    """Whether something here would be masked; also if there is more than is searched."""
    rest, total = b"", 0
    while data := file.read(CHUNK_BYTES):
        total += len(data)
        data = rest + data
        if (bytes_max and total > bytes_max) or mask.mask_bytes(data) != data:
            return True
        rest = data[-mask.margin :] if mask.margin else b""
    return False


def _replace(path: str, content: bytes | BinaryIO) -> None:
    """Another file in its place; who has the old one under another name keeps it."""
    draft = f"{path}.masked"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            while data := content.read(CHUNK_BYTES):
                file.write(data)
    os.replace(draft, path)


def _mask_names(folder: str, mask: TextMask) -> None:
    """Give names without secrets to files, links and folders; and links that lead to such a name go."""
    for place, folders, names in os.walk(folder, topdown=False):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            try:
                if os.path.islink(path) and mask.mask(target := os.readlink(path)) != target:
                    os.unlink(path)
                elif (masked := mask.mask(name)) != name:
                    os.rename(path, _free_path(os.path.join(place, masked)))
            except OSError:
                continue  # nobody else works there: it is beyond what this user may change, as its job was


def _free_path(path: str) -> str:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}-{number}"
    return free
