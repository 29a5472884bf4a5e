"""One lock per digest."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class DigestLocks:
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.RLock, int]] = {}

    @contextmanager
    def of(self, digest: str) -> Iterator[None]:
        with self._guard:
            lock, waiting = self._locks.get(digest, (threading.RLock(), 0))
            self._locks[digest] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, waiting = self._locks[digest]
                if waiting > 1:
                    self._locks[digest] = (lock, waiting - 1)
                else:
                    del self._locks[digest]

    def is_locked(self, digest: str) -> bool:
        """Whether the lock is held now, for callers that would rather come back later."""
        with self._guard:
            return digest in self._locks
