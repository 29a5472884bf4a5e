"""Files of a cache on disk, and the seal that shows that nobody has changed them.

The process that puts a file into a cache *seals* it: it sets the modification time to a value in the distant past that
follows from the digest. Any later write, through any hard link, changes that time and breaks the seal for all links. A
file that others may have linked is never sealed. So an intact seal means that the content is the same as when it was
sealed, over restarts and between pilots. Whether it was right then, each process verifies by hashing it once.

A program can set the modification time back after a write, but not the change time, which the kernel sets. So a process
notes the whole *state* of a file that it has hashed. Links alter the change time too: it notes the state again after
its own, and after those of others it hashes the file again."""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from mendflow.lazy import lazy_pattern
from mendflow.pilot.files.work_folder import remove_tree

ARRIVING = ".new"
PART = ".part"
REST = ARRIVING + PART
"""Suffix of a file whose transfer broke off."""

GUESTS = ".guests"
"""Suffix of the folder, beside the cache, for guests."""

STORED = ".stored"
"""Suffix of the folder, beside the cache, for links to files that a server stores on this disk."""

READ_AGAIN_MAX = 5
"""So often a file is hashed that others link or unlink meanwhile; then it counts as changed, and is fetched again."""

_DIGEST = lazy_pattern(r"[0-9a-f]{64}")
_SEALS_FROM = 315_532_800
_READ_ONLY, _OWN_MODE = 0o444, 0o644
_NO_LINK = frozenset({errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP})
"""Errors after which a file cannot be linked but can be copied."""

_FICLONE = 0x40049409
_COARSE_CLOCK = 5
"""The clock from which Linux takes the times of files: it advances with the timer, every few milliseconds."""

_TICKS_WAITED_MAX = 30


class EntryOnDisk(NamedTuple):
    """A file whose name is a digest and whose seal is intact."""

    digest: str
    bytes: int
    used_ns: int


class FileState(NamedTuple):
    """What is other once a file was changed, whatever the program that did it sets back afterwards."""

    inode: int
    bytes: int
    modified_ns: int
    changed_ns: int


class DamagedEntry(OSError):
    """A file in the cache was changed and has been removed."""


def is_digest(name: str) -> bool:
    return _DIGEST.fullmatch(name) is not None


def seal_of(digest: str) -> int:
    """The modification time for this digest, in whole seconds: every file system stores those."""
    return _SEALS_FROM + int(digest[:7], 16)


def seal(path: str, digest: str) -> None:
    os.chmod(path, _READ_ONLY)
    os.utime(path, (time.time(), seal_of(digest)))


def sealed_state(path: str, digest: str) -> FileState | None:
    """The state of a file whose seal is intact; None otherwise."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    regular = stat.S_ISREG(status.st_mode) and status.st_mtime_ns == seal_of(digest) * 1_000_000_000
    if not (regular and is_owned_by_us(status)):
        return None
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def whole_bytes(path: str, digest: str) -> int | None:
    """The size of a file whose seal is intact; None otherwise."""
    state = sealed_state(path, digest)
    return state.bytes if state is not None else None


def is_owned_by_us(status: os.stat_result) -> bool:
    """Whether it belongs to our user, or to one of our groups with no write access for anybody else."""
    if status.st_uid == os.geteuid():
        return True
    return status.st_gid in {os.getegid(), *os.getgroups()} and not status.st_mode & 0o022


def digest_of(path: str) -> str:
    """The digest of the current content; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def copy(source: str, target: str) -> None:
    """Copy the file; file systems with reflinks share the blocks until one is written."""
    try:
        with open(source, "rb") as known, open(target, "wb") as made:
            fcntl.ioctl(made.fileno(), _FICLONE, known.fileno())
    except OSError:
        shutil.copyfile(source, target)


def remove(path: str) -> None:
    """Remove the file. Raises if it cannot be removed; a missing file is no error."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def discard(path: str) -> None:
    """Remove litter; ignore errors."""
    try:
        os.unlink(path)
    except OSError:
        pass


def move(path: str, target: str) -> None:
    """Move the file if it exists."""
    try:
        os.replace(path, target)
    except FileNotFoundError:
        pass


def find_entries(folder: str) -> Iterator[EntryOnDisk]:
    """Usable files that an earlier process left. Partial files stay; anything else is removed."""
    for entry in list(os.scandir(folder)):
        if is_digest(entry.name) and (size := whole_bytes(entry.path, entry.name)) is not None:
            yield EntryOnDisk(entry.name, size, entry.stat(follow_symlinks=False).st_atime_ns)
        elif entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        elif not entry.name.startswith(".") and not entry.name.endswith(REST):
            discard(entry.path)


def find_partials(folder: str) -> dict[str, int]:
    """Digests of partial files, with their sizes."""
    rests = {}
    for entry in os.scandir(folder):
        if entry.name.endswith(REST) and is_digest(entry.name.removesuffix(REST)):
            rests[entry.name.removesuffix(REST)] = entry.stat(follow_symlinks=False).st_size
    return rests


def hashed_state(path: str, digest: str) -> FileState | None:
    """The state of a file whose content has this digest; None otherwise. If its state changes while it is read, it was
    linked or written to meanwhile, and is read again."""
    for _ in range(READ_AGAIN_MAX):
        before = sealed_state(path, digest)
        if before is None or digest_of(path) != digest:
            return None
        if sealed_state(path, digest) == before:
            return before
    return None


def wait_for_tick() -> None:
    """Wait until a change that comes now gets another change time than one that was made before."""
    now_ns = time.clock_gettime_ns(_COARSE_CLOCK)
    for _ in range(_TICKS_WAITED_MAX):
        if time.clock_gettime_ns(_COARSE_CLOCK) > now_ns:
            return
        time.sleep(0.001)


def make_own(path: str) -> None:
    """Make a guest that was handed over writable for the job, unless others have links to it."""
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


def inode_of(path: str) -> int:
    """0 if there is no such file."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def links_of(path: str) -> int:
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return 0


def link(source: str, target: str) -> bool:
    """False if the file cannot be linked there but may be copied."""
    try:
        os.link(source, target, follow_symlinks=False)
        return True
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False


def link_or_copy(source: str, target: str, *, may_link: bool) -> None:
    if not (may_link and link(source, target)):
        copy(source, target)


def kept_path(cache: str, digest: str) -> str:
    """Where a stored file lies in the pilot's cache, or beside it."""
    places = (os.path.join(cache + end, digest) for end in ("", GUESTS))
    return next((path for path in places if os.path.exists(path)), os.path.join(cache + STORED, digest))
