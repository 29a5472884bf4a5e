"""Caches of other pilots on this machine: their folders are looked into, and their files are had by hard links.

A link keeps a file alive after its first owner has let go of it; only the last link's removal removes the file. A
folder that cannot be looked into belongs to a pilot that is gone. A folder is not believed: what is linked must be a
plain file of ours with its seal whole, and is hashed before a job gets it."""

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
    """Let whoever looks into this folder know how much is on its way there. The number is written over the one before
    in one step: nobody sees half of it, or none."""
    descriptor = os.open(folder + _PROMISED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.pwrite(descriptor, f"{bytes:0{_NUMBER_BYTES}}".encode(), 0)
    finally:
        os.close(descriptor)


class _Folder:
    """What was in a neighbour's folder when it was last looked into. A name that it has may be another file the next
    time: then it is as new as any."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, int] = {}
        self.merged: set[str] = set()  # what we have too, by a link to the same file
        self.new: list[str] = []  # what has come since somebody has taken this list
        self.numbers: dict[str, int] = {}  # of the files, as the disk knows them
        self._changed_ns = -1

    def promised_bytes(self) -> int:
        """What is on its way there. To be read before the folder: there a file is seen before its promise ends."""
        try:
            with open(self.path + _PROMISED, "rb") as file:
                return max(0, int(file.read(_NUMBER_BYTES)))
        except (OSError, ValueError):
            return 0

    def look(self) -> bool:
        """False if it cannot be looked into, or is nothing of ours."""
        try:
            status = os.lstat(self.path)
            if not stat.S_ISDIR(status.st_mode) or not entries.is_owned_by_us(status):
                return False
            if status.st_mtime_ns == self._changed_ns:
                return True
            found = {entry.name: entry.inode() for entry in os.scandir(self.path) if entries.is_digest(entry.name)}
        except OSError:
            return False
        # What changes right after a look may leave the folder's time as it was: a young one is looked at again.
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
        """Whether its file is the one in that folder."""
        if digest not in self.merged and _same(f"{self.path}/{digest}", f"{folder}/{digest}"):
            self.merged.add(digest)
        return digest in self.merged


class HostSharing:
    """A `NeighbourSource`. What is looked for is looked for in every neighbour's folder, whatever was seen there last.
    Threads that bring files and the one that looks around ask it at the same time; what was seen is one thread's at a
    time.

    A server that has just been started knows nobody yet, and so does a pilot. Were neighbours taken for gone then, each
    would throw away what it holds beyond its own part. So those that are no longer named go on to count for a while, as
    long as their folders are there, though nothing is taken from them; and they are remembered in a file, `memory`."""

    def __init__(self, memory: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = memory
        self._clock = clock
        self._guard = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._before = {path: (_Folder(path), clock() + LINGER_S) for path in self._remembered()}

    def set_neighbours(self, neighbours: Iterable[Neighbour]) -> None:
        """Which pilots there are on this machine now."""
        paths = {neighbour.folder for neighbour in neighbours if os.path.isabs(neighbour.folder)}
        with self._guard:
            changed = self._know(paths)
        if changed:
            self._remember()

    def _know(self, paths: set[str]) -> bool:
        """True if these are others than before."""
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
                pass  # it is only for the next start

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
        """What has come into their caches since this was last asked, as far as it was looked."""
        new = []
        with self._guard:
            for folder in self._folders.values():
                taken, folder.new = folder.new, []
                new += taken
        return new

    def elsewhere_bytes(self, own: set[str], folder: str, *, coming: Container[str] = ()) -> int:
        """What they have together that takes room beside the files of ours in this folder: what we do not have, and
        what we have as another file. What two of them have by a link counts once, and what each has for itself twice.
        Links to what is `coming` are about to be made."""
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
        """Files of ours that a neighbour has too, but as another file: both have fetched it. Only the first by name of
        those that have it counts, and only if it comes before us, so that all come to have the same one."""
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

    def merged(self, digest: str) -> None:
        """Our file of this name is another one now."""
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
    """From another disk, or from a user whose files may be read and not linked."""
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
