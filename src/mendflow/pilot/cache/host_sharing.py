"""Shares caches between pilots on one machine: reads the neighbours' folders and hard-links their files.

A link keeps a file alive after its first owner removes it; the space is freed with the last link. A folder that cannot
be read belongs to a pilot that is gone. Folders are not trusted: only a plain file of ours with an intact seal is
linked, and it is hashed before a job gets it."""

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path

import msgspec

from mendflow.core.model.data import Neighbour
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.disk import ArrivalKind
from mendflow.pilot.files.work_folder import write_atomically

LINGER_S = 120.0
_PIECE_BYTES = 1 << 20
_YOUNG_NS = 2_000_000_000
_PROMISED = ".promised"
_NUMBER_BYTES = 20


def promise(folder: str, bytes: int) -> None:
    """Publish how many bytes are being fetched into this folder. The number is overwritten in one step, so readers
    never see a partial one."""
    descriptor = os.open(folder + _PROMISED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.pwrite(descriptor, f"{bytes:0{_NUMBER_BYTES}}".encode(), 0)
    finally:
        os.close(descriptor)


class _Folder:
    """A neighbour's folder as last read. A name may refer to another file at the next look, and then counts as new."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, int] = {}
        self.merged: set[str] = set()  # files that we have too, as links to the same inode
        self.new: list[str] = []  # files added since the list was last taken
        self.numbers: dict[str, int] = {}  # inode numbers of the files
        self._changed_ns = -1

    def promised_bytes(self) -> int:
        """Bytes being fetched there. Read this before the folder: a file appears before its reservation ends."""
        try:
            with open(self.path + _PROMISED, "rb") as file:
                return max(0, int(file.read(_NUMBER_BYTES)))
        except (OSError, ValueError):
            return 0

    def look(self) -> bool:
        """False if it cannot be read, or is not ours."""
        try:
            status = os.lstat(self.path)
            if not stat.S_ISDIR(status.st_mode) or not entries.is_owned_by_us(status):
                return False
            if status.st_mtime_ns == self._changed_ns:
                return True
            found = {entry.name: entry.inode() for entry in os.scandir(self.path) if entries.is_digest(entry.name)}
        except OSError:
            return False
        # A change right after a look may leave the folder's modification time unchanged: look again if it is recent.
        self._changed_ns = status.st_mtime_ns if time.time_ns() - status.st_mtime_ns > _YOUNG_NS else -1
        same = {name for name, number in found.items() if self.numbers.get(name) == number}
        files = {}
        for name in found:
            known = self.files.get(name) if name in same else None
            size = entries.whole_bytes(f"{self.path}/{name}", name) if known is None else known
            if size is not None:
                files[name] = size
        self.new += [name for name in files if name not in self.files]
        self.files, self.numbers = files, found
        self.merged &= same & files.keys()
        return True

    def shares(self, digest: str, folder: str) -> bool:
        """Whether both folders have the same inode under this name."""
        if digest not in self.merged and _same(f"{self.path}/{digest}", f"{folder}/{digest}"):
            self.merged.add(digest)
        return digest in self.merged


class HostSharing:
    """A `NeighbourSource`. A lookup reads every neighbour's folder, whatever was seen there before. Thread-safe:
    fetching threads and the maintenance thread use it concurrently.

    A restarted server or pilot knows no neighbours at first. If neighbours counted as gone then, each would discard
    what it holds beyond its own share. So those that are no longer named count for a while longer, as long as their
    folders exist, although nothing is taken from them; the file `memory` keeps them over restarts."""

    def __init__(self, memory: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = memory
        self._clock = clock
        self._guard = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._before = {path: (_Folder(path), clock() + LINGER_S) for path in self._remembered()}

    def set_neighbours(self, neighbours: Iterable[Neighbour]) -> None:
        """Set the pilots on this machine."""
        paths = {neighbour.folder for neighbour in neighbours if os.path.isabs(neighbour.folder)}
        with self._guard:
            changed = self._know(paths)
        if changed:
            self._remember()

    def _know(self, paths: set[str]) -> bool:
        """True if the list has changed."""
        now, last = self._clock(), self._folders
        known = {**{path: folder for path, (folder, _) in self._before.items()}, **last}
        self._folders = {path: known.get(path) or _Folder(path) for path in sorted(paths)}
        ending = {**self._before, **{path: (folder, now + LINGER_S) for path, folder in last.items()}}
        self._before = {path: each for path, each in ending.items() if path not in paths and each[1] > now}
        return self._folders.keys() != last.keys()

    def _counted(self) -> list[_Folder]:
        now = self._clock()
        return [*self._folders.values(), *(folder for folder, until in self._before.values() if until > now)]

    def _remember(self) -> None:
        if self._memory is not None:
            try:
                write_atomically(self._memory, msgspec.json.encode(list(self._folders)))
            except OSError:
                pass  # needed only at the next start

    def _remembered(self) -> list[str]:
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=list[str]) if self._memory is not None else []
        except (OSError, msgspec.MsgspecError):
            return []

    def look(self) -> int:
        """How many pilots of this machine share with this one."""
        with self._guard:
            return sum(folder.look() for folder in self._counted())

    def news(self) -> list[str]:
        """Files that were added to their caches since the last call, as far as the folders were read."""
        new = []
        with self._guard:
            for folder in self._folders.values():
                taken, folder.new = folder.new, []
                new += taken
        return new

    def elsewhere_bytes(self, own: set[str], folder: str, *, coming: Container[str] = ()) -> int:
        """Bytes that the neighbours use in addition to our files: files that we lack, and files that we have as another
        inode. Several links to one inode count once, separate copies each. Files in `coming` are about to be linked."""
        theirs: dict[tuple[str, int], int] = {}
        with self._guard:
            for near in self._counted():
                near.merged &= own
                for digest, size in near.files.items():
                    if digest not in coming and not (digest in own and near.shares(digest, folder)):
                        theirs[digest, near.numbers[digest]] = size
        return sum(theirs.values())

    def promised_bytes(self) -> int:
        return sum(near.promised_bytes() for near in self._counted())

    def find_duplicates(self, own: set[str], folder: str) -> list[tuple[str, str]]:
        """Our files that a neighbour has too, as another inode: both have fetched it. Only the first neighbour by name
        counts, and only if it sorts before us, so that all converge on one inode."""
        found, looked = [], set[str]()
        with self._guard:
            for near in [near for near in self._folders.values() if near.path < folder]:
                for digest in (own & near.files.keys()) - looked:
                    theirs = f"{near.path}/{digest}"
                    if near.shares(digest, folder):
                        looked.add(digest)
                    elif entries.whole_bytes(theirs, digest) is not None:
                        looked.add(digest)
                        found.append((digest, theirs))
        return found

    def record_merge(self, digest: str) -> None:
        """Our file of this name now has another inode."""
        with self._guard:
            for near in self._counted():
                near.merged.discard(digest)

    def link(self, digest: str, target: str) -> bool:
        return any(_linked(source, digest, target) for source in self._having(digest))

    def bring(self, digest: str, target: str) -> ArrivalKind | None:
        if self.link(digest, target):
            return ArrivalKind.LINKED
        return ArrivalKind.HASHED if any(_copied(source, digest, target) for source in self._having(digest)) else None

    def _having(self, digest: str) -> list[str]:
        sources = [f"{path}/{digest}" for path in list(self._folders)]
        return [source for source in sources if entries.whole_bytes(source, digest) is not None]


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _linked(source: str, digest: str, target: str) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    if entries.whole_bytes(target, digest) is not None:
        return True
    entries.discard(target)
    return False


def _copied(source: str, digest: str, target: str) -> bool:
    """Copy from another disk, or from a user whose files may be read but not linked."""
    found = hashlib.sha256()
    try:
        with open(source, "rb") as file, open(target, "xb") as made:
            while piece := file.read(_PIECE_BYTES):
                found.update(piece)
                made.write(piece)
    except OSError:
        pass
    else:
        if found.hexdigest() == digest:
            return True
    entries.discard(target)
    return False
