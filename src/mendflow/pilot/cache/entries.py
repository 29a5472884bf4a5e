"""Files of a cache on the disk, and how one knows that nobody has touched them.

Whoever puts a file into a cache *seals* it: its time of modification becomes one that follows from its digest, long
ago. Whatever is written into the file afterwards, through whichever of its links, gives it another time, and breaks the
seal for all who have a link. Nobody ever seals a file that others may have a link to: then a seal that is whole says
that the content is what it was when one process sealed it, over restarts and from pilot to pilot. Whether it was right
then, each finds out by hashing it once for itself."""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from mendflow.pilot.files.work_folder import remove_tree

ARRIVING = ".new"
PART = ".part"
REST = ARRIVING + PART
"""What was brought so far of a file, when that was broken off."""

GUESTS = ".guests"
"""Beside a cache's folder, with this behind its name, is what goes past the cache."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SEALS_FROM = 315_532_800
_READ_ONLY, _OWN_MODE = 0o444, 0o644
_NO_LINK = frozenset({errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP})
"""A file that cannot be linked can still be copied."""

_FICLONE = 0x40049409


class EntryOnDisk(NamedTuple):
    """A file with a digest for its name and its seal whole."""

    digest: str
    bytes: int
    used_ns: int


class DamagedEntry(OSError):
    """A file in the cache was changed, and is not there any more."""


def is_digest(name: str) -> bool:
    return _DIGEST.fullmatch(name) is not None


def seal_of(digest: str) -> int:
    """In whole seconds: every file system keeps those."""
    return _SEALS_FROM + int(digest[:7], 16)


def seal(path: str, digest: str) -> None:
    os.chmod(path, _READ_ONLY)
    os.utime(path, (time.time(), seal_of(digest)))


def whole_bytes(path: str, digest: str) -> int | None:
    """The size of a file whose seal is whole; None of anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    regular = stat.S_ISREG(status.st_mode) and status.st_mtime_ns == seal_of(digest) * 1_000_000_000
    return status.st_size if regular and is_owned_by_us(status) else None


def is_owned_by_us(status: os.stat_result) -> bool:
    """Whether it belongs to our user, or to a group that we are in and nobody else may write to it."""
    if status.st_uid == os.geteuid():
        return True
    return status.st_gid in {os.getegid(), *os.getgroups()} and not status.st_mode & 0o022


def digest_of(path: str) -> str:
    """The digest of the content as it is now; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def copy(source: str, target: str) -> None:
    """A file of its own with the same content; on disks that can, the blocks are shared until somebody writes."""
    try:
        with open(source, "rb") as known, open(target, "wb") as made:
            fcntl.ioctl(made.fileno(), _FICLONE, known.fileno())
    except OSError:
        shutil.copyfile(source, target)


def remove(path: str) -> bool:
    """True if that was the last link to the file. What cannot be removed raises; what is not there is no matter."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        os.unlink(path)
        return False
    try:
        os.unlink(path)
        return os.fstat(descriptor).st_nlink == 0
    except FileNotFoundError:
        return False
    finally:
        os.close(descriptor)


def discard(path: str) -> None:
    """Remove what is only litter; if that cannot be, it stays."""
    try:
        os.unlink(path)
    except OSError:
        pass


def move(path: str, target: str) -> None:
    """If it is there."""
    try:
        os.replace(path, target)
    except FileNotFoundError:
        pass


def find_entries(folder: str) -> Iterator[EntryOnDisk]:
    """What an earlier process left that may be used. The rests of what it was bringing stay; anything else goes."""
    for entry in list(os.scandir(folder)):
        if is_digest(entry.name) and (size := whole_bytes(entry.path, entry.name)) is not None:
            yield EntryOnDisk(entry.name, size, entry.stat(follow_symlinks=False).st_atime_ns)
        elif entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        elif not entry.name.startswith(".") and not entry.name.endswith(REST):
            discard(entry.path)


def find_partials(folder: str) -> dict[str, int]:
    """Digests of files that were being brought, with what there is of each."""
    rests = {}
    for entry in os.scandir(folder):
        if entry.name.endswith(REST) and is_digest(entry.name.removesuffix(REST)):
            rests[entry.name.removesuffix(REST)] = entry.stat(follow_symlinks=False).st_size
    return rests


def has_content(path: str, digest: str) -> bool:
    """Whether this is the content. What is written while it is read breaks its seal, so that is looked at again."""
    before = whole_bytes(path, digest)
    return before is not None and digest_of(path) == digest and whole_bytes(path, digest) == before


def make_own(path: str) -> None:
    """A guest that was handed over is the job's to write to, unless others have links to it."""
    if os.lstat(path).st_nlink == 1:
        os.chmod(path, _OWN_MODE)
        os.utime(path)
    else:
        copy(path, path + ARRIVING)
        os.replace(path + ARRIVING, path)


def bytes_of(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def link_or_copy(source: str, target: str, *, link: bool) -> None:
    if link:
        try:
            os.link(source, target, follow_symlinks=False)
            return
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
    copy(source, target)
