"""The contents of a pilot's cache; the index in memory matches the folder on disk.

A file has its digest as its name in the folder before it is in the index, and leaves the folder before it leaves the
index. So whenever the pilot is killed, the next one finds complete files, which it hashes before use, and litter, which
it removes.

A file that gets no space (allocation.py) is a *guest*: the job gets it through a folder beside the cache. It is not
reported, belongs to the job, and is removed once the job has it. A file of unknown size is a guest until it is here."""

import errno
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mendflow.core.caching.policies import EvictionPolicy, FileUsage
from mendflow.core.model.data import CachedFile
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.allocation import GIVE_WAY_S, CacheAllocation, SharedSpace
from mendflow.pilot.cache.changes import ChangeLog
from mendflow.pilot.files.work_folder import write_atomically

log = logging.getLogger("mendflow.pilot")


class CacheContents(CacheAllocation):
    def __init__(
        self,
        folder: Path,
        size_bytes: int,
        policy: EvictionPolicy,
        *,
        first_version: int,
        memory: Path | None,
        beside: SharedSpace | None = None,
        patience_s: float = GIVE_WAY_S,
    ) -> None:
        """`memory` keeps usage counts over restarts; `remember` writes it."""
        super().__init__(folder, size_bytes, policy, beside=beside, patience_s=patience_s)
        self.news = ChangeLog(first_version)
        self._memory = memory
        self._hashed: dict[str, entries.FileState] = {}  # the state in which this process knows each to be right
        self._guests: dict[str, int] = {}
        self._linked: set[str] = set()  # jobs may have hard links to these and could write through them
        os.makedirs(self._aside, exist_ok=True)
        with self._guard:
            self._find()

    def _path(self, digest: str) -> str:
        return f"{self._aside if digest in self._guests else self._folder}/{digest}"

    def _find(self) -> None:
        """Take over the files of an earlier pilot, the last used first if there is not space for all."""
        known = self._recalled()
        self._shelf.restore_usage(known)
        used = {digest: uses.last[0] for digest, uses in known.items() if uses.last}
        order = sorted(entries.find_entries(self._folder), key=lambda each: (used.get(each.digest, 0), each.used_ns))
        found = reversed(order)
        room, kept = self._shelf.size_bytes, []
        for each in found:
            if each.bytes <= room:
                room -= each.bytes
                kept.append(each)
            else:
                entries.discard(self._path(each.digest))
        for each in reversed(kept):
            self._shelf.put(each.digest, each.bytes)
            self.news.added(each.digest, each.bytes)
        for digest, size in entries.find_partials(self._folder).items():
            self._keep_rest(digest, size)
        for each in entries.find_entries(self._aside):
            self._guests[each.digest] = each.bytes  # a call that an earlier agent sent to a slot may read it
        for digest, size in entries.find_partials(self._aside).items():
            self._keep_rest(digest, size)
        self._tell()

    def remember(self) -> None:
        if self._memory is None:
            return
        with self._guard:
            memory = self._shelf.usage_history()
        try:
            write_atomically(self._memory, msgspec.msgpack.encode(memory))
        except OSError as error:
            log.warning("the cache's usage counts cannot be written: %s", error)

    def _recalled(self) -> dict[str, FileUsage]:
        try:
            known = self._memory.read_bytes() if self._memory is not None else b""
            return msgspec.msgpack.decode(known, type=dict[str, FileUsage]) if known else {}
        except (OSError, msgspec.MsgspecError):
            return {}

    # pins

    def pin(self, digest: str) -> None:
        with self._guard:
            self._shelf.pin(digest)

    def release(self, digests: Iterable[str]) -> None:
        with self._guard:
            for digest in digests:
                if self._shelf.release(digest) and digest in self._guests:
                    entries.discard(self._path(digest))
                    del self._guests[digest]
                    self._linked.discard(digest)
            self._give_way()
            self._freed.notify_all()

    @contextmanager
    def using(self, digest: str) -> Iterator[None]:
        with self._guard:
            self._passing[digest] += 1
            self.pin(digest)
        try:
            yield
        finally:
            with self._guard:
                self._passing[digest] -= 1
                self._passing += Counter()
                self.release([digest])

    def pin_all(self) -> list[str]:
        """Pin every file; returns the digests to release later."""
        with self._guard:
            digests = [*self._shelf, *self._guests]
            for digest in digests:
                self._shelf.pin(digest)
            return digests

    # add and remove

    def _has(self, digest: str) -> bool:
        with self._guard:
            return digest in self._shelf or digest in self._guests

    def _arrive(
        self, digest: str, arriving: str, *, hashed: bool, linked: bool = False, cost_ms: float | None = None
    ) -> int:
        """Rename a fetched file to its digest, and index it if there is space. A `linked` file uses no space beyond the
        neighbour's."""
        size = os.stat(arriving).st_size
        with self._guard:
            promised = self._shelf.reserved_bytes(digest)
            self._shelf.cancel_reservation(digest)
            room = self._make_room(size) if linked or promised >= size else self._room_now(digest, size)
            self._shelf.cancel_reservation(digest)
            if not room and not self._shelf.is_pinned(digest):
                raise OSError(errno.ENOSPC, f"there is no room for the file {digest[:12]}, and nobody needs it now")
            if not room:
                self._guests[digest] = size
            os.replace(arriving, self._path(digest))
            entries.discard(arriving + entries.PART)
            self._note(digest) if hashed else self._hashed.pop(digest, None)
            if room:
                self._shelf.put(digest, size, cost_ms=cost_ms)
                self.news.added(digest, size)
            self._tell()
        return size

    def _note(self, digest: str) -> None:
        """Note the state of a file that was right before this cache itself renamed, linked or unlinked it."""
        state = entries.sealed_state(self._path(digest), digest)
        if state is None:
            self._hashed.pop(digest, None)
        else:
            self._hashed[digest] = state

    def _evict(self, digest: str) -> None:
        """Remove from the disk first: a file that cannot be removed stays in the index and counts."""
        try:
            entries.remove(self._path(digest))
        except OSError as error:
            log.warning("the file %s cannot be removed from the cache: %s", digest[:12], error)
            return
        self._shelf.evict(digest)
        self._forget(digest)

    def _drop(self, digest: str) -> None:
        with self._guard:
            entries.discard(self._path(digest))
            self._guests.pop(digest, None)
            if digest in self._shelf:
                self._shelf.drop(digest)
                self._forget(digest)
            self._hashed.pop(digest, None)
            self._linked.discard(digest)
            self._freed.notify_all()

    def _forget(self, digest: str) -> None:
        self._hashed.pop(digest, None)
        self._linked.discard(digest)
        self.news.gone(digest)

    # for reports and statistics

    @property
    def held_bytes(self) -> int:
        return self._shelf.held_bytes

    @property
    def size_bytes(self) -> int:
        return self._shelf.size_bytes

    @property
    def free_bytes(self) -> int:
        """Bytes that are neither used nor reserved."""
        return self._shelf.free_bytes

    @property
    def waiting(self) -> int:
        """How many files wait for space."""
        return len(self._line)

    def digests(self) -> set[str]:
        with self._guard:
            return set(self._shelf)

    def news_since(self, seen: int) -> tuple[int, list[CachedFile], list[str]]:
        with self._guard:
            return self.news.since(seen)
