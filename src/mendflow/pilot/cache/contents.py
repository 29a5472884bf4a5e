"""What is in a pilot's cache: what is on its disk is what is on its shelf.

A file is in the folder under its digest from the moment when it is on the shelf, and goes from the folder before it
goes from the shelf. So whatever moment the pilot is killed at, the next one finds files that it may use once it has
hashed them, and litter, which it removes.

What can have no room there (allocation.py) is a *guest*: a job gets it all the same, past the cache, through a folder
beside it. It goes when the job has it, nobody hears of it, and it counts as the job's. So does a file of which nobody
knows how large it is, until it is here."""

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
        """In `memory` the uses of files are remembered over restarts, as far as `remember` was called."""
        super().__init__(folder, size_bytes, policy, beside=beside, patience_s=patience_s)
        self.news = ChangeLog(first_version)
        self.last_links = 0
        self._memory = memory
        self._hashed: set[str] = set()
        self._guests: dict[str, int] = {}
        self._linked: set[str] = set()  # jobs may have links to these, and could write through them
        os.makedirs(self._aside, exist_ok=True)
        with self._guard:
            self._find()

    def _path(self, digest: str) -> str:
        return f"{self._aside if digest in self._guests else self._folder}/{digest}"

    def _find(self) -> None:
        """Take over what an earlier pilot left here, the latest used first if there is not room for all."""
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
            self._guests[each.digest] = each.bytes  # a call that an earlier agent has handed over may want it
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

    # in use

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
        """Pin everything that is here: what is to be released later is given."""
        with self._guard:
            digests = [*self._shelf, *self._guests]
            for digest in digests:
                self._shelf.pin(digest)
            return digests

    # in and out

    def _has(self, digest: str) -> bool:
        with self._guard:
            return digest in self._shelf or digest in self._guests

    def _arrive(
        self, digest: str, arriving: str, *, hashed: bool, linked: bool = False, cost_ms: float | None = None
    ) -> int:
        """Give a file that is here its name, and its place on the shelf if there is room. One that is `linked` takes
        nothing from the disk that a neighbour has not taken."""
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
            (self._hashed.add if hashed else self._hashed.discard)(digest)
            if room:
                self._shelf.put(digest, size, cost_ms=cost_ms)
                self.news.added(digest, size)
            self._tell()
        return size

    def _evict(self, digest: str) -> None:
        """From the disk first: what cannot be removed stays on the shelf, and counts."""
        try:
            self.last_links += entries.remove(self._path(digest))
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
            self._hashed.discard(digest)
            self._linked.discard(digest)
            self._freed.notify_all()

    def _forget(self, digest: str) -> None:
        self._hashed.discard(digest)
        self._linked.discard(digest)
        self.news.gone(digest)

    # what others hear of it

    @property
    def held_bytes(self) -> int:
        return self._shelf.held_bytes

    @property
    def size_bytes(self) -> int:
        return self._shelf.size_bytes

    @property
    def free_bytes(self) -> int:
        """What is neither held nor promised."""
        return self._shelf.free_bytes

    @property
    def waiting(self) -> int:
        """How many files wait for room."""
        return len(self._line)

    def digests(self) -> set[str]:
        with self._guard:
            return set(self._shelf)

    def news_since(self, seen: int) -> tuple[int, list[CachedFile], list[str]]:
        with self._guard:
            return self.news.since(seen)
