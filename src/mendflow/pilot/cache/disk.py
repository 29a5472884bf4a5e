"""The cache of a pilot: gets files from its own disk, from a neighbour, or from their source.

A file is given out only if this process has hashed it and its state is the same since. One thread at a time works on a
digest; different digests run in parallel."""

import errno
import logging
import os
import stat
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

from mendflow.core.caching.policies import EvictionPolicy, lru
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.allocation import GIVE_WAY_S, SharedSpace
from mendflow.pilot.cache.contents import CacheContents
from mendflow.pilot.cache.contract import CacheEntry, CacheOrigin, Fetch, LinkState
from mendflow.pilot.cache.digest_locks import DigestLocks
from mendflow.transfer.fetch import always

log = logging.getLogger("mendflow.pilot")


_UNKNOWN = entries.FileState(0, 0, 0, 0)


class ArrivalKind(Enum):
    """How a file came from a neighbour: as a copy that was hashed on the way, or as a hard link that is not hashed
    yet."""

    HASHED = "hashed"
    LINKED = "linked"


class NeighbourSource(Protocol):
    def bring(self, digest: str, target: str) -> ArrivalKind | None:
        """Put the file at this path, if a neighbour has it."""
        ...


class DiskCache(CacheContents):
    """The `Cache` of the contract. Asks the neighbour sources in order before it fetches anything."""

    def __init__(
        self,
        folder: Path,
        size_bytes: int,
        policy: EvictionPolicy = lru,
        *,
        first_version: int = 1,
        sharers: Sequence[NeighbourSource] = (),
        memory: Path | None = None,
        beside: SharedSpace | None = None,
        patience_s: float = GIVE_WAY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`patience_s` is how long a file waits for neighbours that use more than their share."""
        super().__init__(
            folder,
            size_bytes,
            policy,
            first_version=first_version,
            memory=memory,
            beside=beside,
            patience_s=patience_s,
        )
        self._sharers = sharers
        self._clock = clock
        self._turns = DigestLocks()

    def lookup(self, digest: str) -> CacheEntry | None:
        if not self._has(digest):
            return None  # do not wait for a file in transit: two pilots could wait for each other
        with self._turns.of(digest):
            with self._guard:
                if digest in self._shelf:
                    self._shelf.use(digest)
                elif digest not in self._guests:
                    return None
            size = self._right(digest)
            return None if size is None else CacheEntry(self._path(digest), size, CacheOrigin.OWN)

    def _right(self, digest: str) -> int | None:
        """The size of a file whose content matches its digest; one that does not match is removed, even if in use."""
        state = self._verified(digest)
        if state is None:
            log.warning("the cached file %s was changed by another program; it is removed from the cache", digest[:12])
            self._drop(digest)
            return None
        return state.bytes

    def _verified(self, digest: str) -> entries.FileState | None:
        """The state of a file whose content is right: by its noted state, or it is hashed."""
        path = self._path(digest)
        state = entries.sealed_state(path, digest)
        if state is None or state != self._hashed.get(digest):
            state = entries.hashed_state(path, digest)
        if state is not None:
            self._hashed[digest] = state
        return state

    def take_in(self, digest: str, fetch: Fetch, *, size: int = 0, wanted: Callable[[], bool] = always) -> CacheEntry:
        with self._turns.of(digest):
            if (found := self.lookup(digest)) is not None:
                return found
            arriving = self._begin(digest, size, wanted)
            began = self._clock()
            try:
                origin = self._bring(digest, arriving, fetch)
                size = self._arrive(digest, arriving, hashed=True, cost_ms=(self._clock() - began) * 1000)
            except BaseException:
                self._broken_off(digest, arriving)
                raise
            return CacheEntry(self._path(digest), size, origin)

    def _bring(self, digest: str, arriving: str, fetch: Fetch) -> CacheOrigin:
        for sharer in self._sharers:
            arrival = sharer.bring(digest, arriving)
            if arrival is ArrivalKind.HASHED:
                entries.seal(arriving, digest)
                return CacheOrigin.SHARED
            if arrival is ArrivalKind.LINKED:
                if entries.hashed_state(arriving, digest) is not None:
                    return CacheOrigin.SHARED
                log.warning("a neighbour's cache has other content under the digest %s; it is not used", digest[:12])
                entries.discard(arriving)
        fetch(arriving)
        entries.seal(arriving, digest)
        return CacheOrigin.FETCHED

    def adopt(self, path: str, digest: str) -> None:
        """By a link, if nobody else has one: that is free, and the file is hashed at its first use."""
        arriving = self._arriving(digest, room=True)
        with self._turns.of(digest):
            try:
                status = os.lstat(path)
                if self._has(digest) or not stat.S_ISREG(status.st_mode):
                    return
                with self._guard:
                    self._give_up_rest(digest)
                    if not self._room_now(digest, status.st_size):
                        return
                entries.discard(arriving)
                entries.link_or_copy(path, arriving, may_link=status.st_nlink == 1)
                entries.seal(arriving, digest)
                self._arrive(digest, arriving, hashed=False)
            except OSError as error:
                log.warning("file %s could not be added to the cache: %s", path, error)
            finally:
                self._broken_off(digest, arriving)

    def link_in(self, digest: str, link: Callable[[str, str], bool]) -> bool:
        """Link a neighbour's file if there is space without evicting anything. It is hashed at its first use."""
        arriving = self._arriving(digest, room=True)
        if self._turns.is_locked(digest):
            return False  # it is being fetched
        with self._turns.of(digest):
            if self._has(digest):
                return False
            entries.discard(arriving)
            if not link(digest, arriving):
                return False
            with self._guard:
                size = entries.whole_bytes(arriving, digest)
                if size is not None and size <= self._shelf.free_bytes:
                    self._give_up_rest(digest)
                    self._arrive(digest, arriving, hashed=False, linked=True)
                    return True
            entries.discard(arriving)
            return False

    def merge(self, digest: str, twin: str) -> bool:
        """Replace our file by a link to a neighbour's with the same content, unless it is in use: then the disk holds
        it once."""
        path = self._path(digest)
        if self._turns.is_locked(digest):
            return False
        with self._turns.of(digest):
            entries.discard(path + entries.ARRIVING)
            try:
                os.link(twin, path + entries.ARRIVING, follow_symlinks=False)
                right = entries.hashed_state(path + entries.ARRIVING, digest)
                with self._guard:
                    if right is None or digest not in self._shelf or self._shelf.is_pinned(digest):
                        return False
                    if right.bytes != self._shelf.uses(digest).bytes:
                        self._drop(digest)  # ours differs from its digest; count its real size
                        return False
                    os.replace(path + entries.ARRIVING, path)
                    self._note(digest)
                    return True
            except OSError:
                return False  # it is gone, or on another disk
            finally:
                entries.discard(path + entries.ARRIVING)

    def give(self, digest: str, target: str, *, link: bool) -> None:
        with self._guard:
            assert self._shelf.is_pinned(digest), "only pinned files are handed over"
        with self._turns.of(digest):
            state = self._verified(digest)
            if state is None:
                self._drop(digest)
                raise _damaged(digest, "does not have the content that it should have")
            if link and self._linked_to(digest, target):
                return
        with self._guard:
            path = self._path(digest)
            handed_over = not link and self._shelf.pins(digest) == 1 and self._guests.pop(digest, None) is not None
        if handed_over:
            os.replace(path, target)
            entries.make_own(target)
            return
        entries.copy(path, target)
        if entries.sealed_state(path, digest) != state and entries.digest_of(target) != digest:
            os.unlink(target)
            self._drop(digest)
            raise _damaged(digest, "was changed while it was handed to a job")

    def _linked_to(self, digest: str, target: str) -> bool:
        """Whether the file could be linked. Nobody else links it through this cache meanwhile."""
        with self._guard:
            self._linked.add(digest)
        if not entries.link(self._path(digest), target):
            return False
        self._note(digest)
        return True

    def unlink(self, digest: str, target: str) -> None:
        """Remove a link that was given to a job, so that the file need not be hashed again because of that."""
        with self._turns.of(digest):
            is_right = self._hashed.get(digest) == entries.sealed_state(self._path(digest), digest)
            entries.discard(target)
            if is_right and self._has(digest):
                self._note(digest)

    def check_link(self, digest: str, target: str, inode: int) -> LinkState:
        with self._turns.of(digest):
            cached = self._path(digest) if self._has(digest) else ""
            is_ours = bool(cached) and entries.inode_of(cached) == inode
            # The job may have removed its link, or put a file of its own in its place.
            path = target if entries.inode_of(target) == inode else cached if is_ours else ""
            if not path or entries.sealed_state(path, digest) == self._hashed.get(digest, _UNKNOWN):
                return LinkState.INTACT
            if entries.digest_of(path) == digest:
                return LinkState.INTACT
            had_one_holder = is_ours and entries.links_of(path) <= 2
            if is_ours:
                log.warning("a job changed its linked input %s; it is removed from the cache", digest[:12])
                self._drop(digest)
            return LinkState.CHANGED_BY_HOLDER if had_one_holder else LinkState.CHANGED

    def look_at_links(self) -> None:
        """Remove linked files that a job has written to, although it declared that it only reads them."""
        with self._guard:
            linked = list(self._linked)
        for digest in linked:
            with self._guard:  # otherwise it could be evicted and fetched again meanwhile, and be taken for changed
                if not self._has(digest):
                    self._linked.discard(digest)
                elif entries.whole_bytes(self._path(digest), digest) is None:
                    log.warning("a job changed its linked input %s; it is removed from the cache", digest[:12])
                    self._drop(digest)


def _damaged(digest: str, what: str) -> entries.DamagedEntry:
    return entries.DamagedEntry(errno.EIO, f"the file {digest[:12]} in the cache {what}")
