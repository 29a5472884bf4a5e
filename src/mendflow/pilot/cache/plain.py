"""A cache of one pilot, for itself: the files that were not used for longest go first."""

import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mendflow.pilot.cache.contract import Entry, Fetch, Origin

CACHE_BYTES_MAX = 2 << 30
ARRIVING = ".new"


class PlainCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pins: Counter[str] = Counter()
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def pin(self, digest: str) -> None:
        with self._guard:
            self._pins[digest] += 1

    def release(self, digests: Iterable[str]) -> None:
        with self._guard:
            for digest in digests:
                self._pins[digest] -= 1
                if self._pins[digest] <= 0:
                    del self._pins[digest]

    def at_hand(self, digest: str) -> Entry | None:
        path = self._path(digest)
        try:
            os.utime(path)
            return Entry(path, os.stat(path).st_size, Origin.OWN)
        except FileNotFoundError:
            return None

    def take_in(self, digest: str, fetch: Fetch, *, size: int = 0) -> Entry:
        with self._guard:
            lock = self._locks.setdefault(digest, threading.Lock())
        with lock:
            if (found := self.at_hand(digest)) is not None:
                return found
            path = self._path(digest)
            fetch(path + ARRIVING)
            os.replace(path + ARRIVING, path)
            self._shrink()
            return Entry(path, os.stat(path).st_size, Origin.FETCHED)

    def adopt(self, path: str, digest: str) -> None:
        """A cache that trusts no file which others may have open takes none from jobs."""

    def give(self, digest: str, target: str, *, link: bool) -> None:
        # A copy, not a link: a job may write into its inputs, and the next job must not see that.
        shutil.copyfile(self._path(digest), target)

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest)

    def _shrink(self) -> None:
        """Drop what was not used for longest, until the cache is within its bound."""
        entries = []
        for entry in os.scandir(self._folder):
            try:
                entries.append((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path, entry.name))
            except OSError:
                continue
        excess = sum(size for _, size, _, _ in entries) - CACHE_BYTES_MAX
        for _, size, path, name in sorted(entries):
            if excess <= 0:
                return
            with self._guard:
                if name.partition(".")[0] in self._pins:
                    continue
                try:
                    os.unlink(path)
                    excess -= size
                except OSError:
                    continue
