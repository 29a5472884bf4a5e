"""Files that the server stores on this pilot's own disk, for jobs that read them from where they are.

Such a file is neither sent nor put into the cache: a link to it lies beside the cache while somebody needs it, so the
server may remove its own meanwhile. What is linked is only read. Jobs that may write to their inputs get copies of it.

The server has hashed what it stores, but a disk or a person may have changed it since. So the pilot hashes each file
once itself, but for those that it has handed to the server in the same state: these were hashed a moment ago."""

import os
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Final

from mendflow.core.model.values import FileRef
from mendflow.pilot.agent.http import FileClient
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.digest_locks import DigestLocks

LINKED_BYTES_MIN: Final = 16 << 20
"""Smaller files are worth a copy in the cache, for the jobs that use them next."""

KNOWN_MAX: Final = 10_000
"""Of so many files it is remembered that they are right: one that is forgotten is hashed again."""

_State = tuple[int, int, int]
"""Inode, size and time of modification. The time of change is none of it: each link alters that."""


class StoredHere:
    """`folder` is where the links lie. Every method may block, and is thread-safe."""

    def __init__(self, files: FileClient, folder: Path) -> None:
        self._files = files
        self._folder = str(folder)
        self._guard = threading.Lock()
        self._turns = DigestLocks()
        self._right: dict[str, _State] = {}
        self._holds: Counter[str] = Counter()
        try:
            self._left = frozenset(os.listdir(self._folder))
        except OSError:
            self._left = frozenset()

    def give(self, path: str, ref: FileRef, name: str) -> bool:
        """Hand a large file to a server on this machine as it is; whether that was possible. The server has hashed it
        then, and nobody writes to it any more."""
        if ref.bytes < LINKED_BYTES_MIN:
            return False
        before = _state_of(path)
        if not self._files.give(ref.sha256, name, path):
            return False
        stored = self._files.stored_path(ref.sha256)
        if before is not None and stored and _state_of(stored) == before:
            self._note(ref.sha256, before)
        return True

    def hold(self, digest: str) -> None:
        """Let the link of this file stay, once there is one, until it was released as often."""
        with self._guard:
            self._holds[digest] += 1

    def release(self, digest: str) -> None:
        """Remove the link if nobody else holds it. One that an earlier agent left stays: its call may be running."""
        with self._turns.of(digest), self._guard:
            self._holds[digest] -= 1
            if self._holds[digest] <= 0:
                del self._holds[digest]
                if digest not in self._left:
                    entries.discard(self._link(digest))

    def tidy(self) -> None:
        """Remove the links that an earlier agent left: none of its calls runs any more."""
        for digest in self._left:
            with self._turns.of(digest), self._guard:
                if digest not in self._holds:
                    entries.discard(self._link(digest))
        self._left = frozenset()

    def link(self, ref: FileRef) -> bool:
        """Link a file that is held; whether the server has it on this disk, and it is what it should be."""
        stored = self._files.stored_path(ref.sha256) if ref.bytes >= LINKED_BYTES_MIN else ""
        if not stored:
            return False
        path = self._link(ref.sha256)
        with self._turns.of(ref.sha256):
            try:
                os.makedirs(self._folder, 0o700, exist_ok=True)
                if not os.path.lexists(path):
                    os.link(stored, path, follow_symlinks=False)
            except OSError:
                return False  # it is on another disk, or was removed a moment ago
            if self._is_right(path, ref):
                return True
            entries.discard(path)
            return False

    def copy(self, ref: FileRef, target: str) -> bool:
        """Copy a file to a job's folder; whether the server has it on this disk, and it is what it should be."""
        self.hold(ref.sha256)
        try:
            if not self.link(ref):
                return False
            state = _state_of(self._link(ref.sha256))
            entries.copy(self._link(ref.sha256), target)
            if _state_of(self._link(ref.sha256)) == state or entries.digest_of(target) == ref.sha256:
                return True
            entries.discard(target)  # it was changed meanwhile
            return False
        finally:
            self.release(ref.sha256)

    def _link(self, digest: str) -> str:
        return os.path.join(self._folder, digest)

    def _is_right(self, path: str, ref: FileRef) -> bool:
        state = _state_of(path)
        if state is None or state[1] != ref.bytes:
            return False
        if self._right.get(ref.sha256) != state:
            if entries.digest_of(path) != ref.sha256 or _state_of(path) != state:
                return False
            self._note(ref.sha256, state)
        return True

    def _note(self, digest: str, state: _State) -> None:
        with self._guard:
            self._right.pop(digest, None)
            self._right[digest] = state
            while len(self._right) > KNOWN_MAX:
                del self._right[next(iter(self._right))]


def _state_of(path: str) -> _State | None:
    """The state of a plain file of ours; None of anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not entries.is_owned_by_us(status):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
