"""What a cache reports to its server: the files added and removed since the version that the server knows, or all
files.

Versions count changes. After a restart of the pilot they continue with larger numbers, so that a version is never
ambiguous."""

from collections import deque
from itertools import islice

from mendflow.core.model.data import CACHE_FILES_MAX, CachedFile

CHANGES_MAX = 10_000
"""How many changes are remembered. A server that has missed more gets the full list."""


class ChangeLog:
    """Not thread-safe."""

    def __init__(self, first_version: int) -> None:
        self.version = max(1, first_version)
        self._files: dict[str, int] = {}
        self._changes: deque[tuple[int, str]] = deque(maxlen=CHANGES_MAX)

    def added(self, digest: str, bytes: int) -> None:
        self._files[digest] = bytes
        self._changed(digest)

    def gone(self, digest: str) -> None:
        del self._files[digest]
        self._changed(digest)

    def _changed(self, digest: str) -> None:
        self.version += 1
        self._changes.append((self.version, digest))

    def since(self, seen: int) -> tuple[int, list[CachedFile], list[str]]:
        """The base version, and the files added and removed since; base 0 means the full list,
        or the newest of it where that is too long for the server."""
        if seen == self.version:
            return seen, [], []
        if not self._changes or not self._changes[0][0] - 1 <= seen < self.version:
            newest = islice(self._files.items(), max(0, len(self._files) - CACHE_FILES_MAX), None)
            return 0, [CachedFile(digest, bytes) for digest, bytes in newest], []
        changed = dict.fromkeys(digest for version, digest in self._changes if version > seen)
        added = [CachedFile(digest, self._files[digest]) for digest in changed if digest in self._files]
        return seen, added, [digest for digest in changed if digest not in self._files]
