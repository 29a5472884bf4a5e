"""The cache of a pilot: what is on its disk is what is on its shelf.

A file is given out only if this process has hashed it and its seal is whole since. It is in the folder under its digest
from the moment when it is on the shelf, and goes from the folder before it goes from the shelf. So whatever moment the
pilot is killed at, the next one finds files that it may use once it has hashed them, and litter, which it removes.

What there is no room for is a *guest*: a job gets it all the same, in the space that is kept free for jobs. It goes
when the job has it, and nobody hears of it."""

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

import msgspec

from mendflow.core.caching.policies import Uses, Worth, lru
from mendflow.core.caching.shelf import Shelf
from mendflow.core.model.data import CachedFile
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.contract import Entry, Fetch, Origin
from mendflow.pilot.cache.news import News
from mendflow.pilot.cache.turns import Turns
from mendflow.pilot.home import write_whole

log = logging.getLogger("mendflow.pilot")


class Brought(Enum):
    """How a file came from a neighbour: as one of our own, hashed on the way; or as a link to the neighbour's, which
    nobody here has read."""

    HASHED = "hashed"
    LINKED = "linked"


class Sharer(Protocol):
    def bring(self, digest: str, target: str) -> Brought | None:
        """Put the file at this path, if a neighbour has it."""
        ...


class DiskCache:
    """The `Cache` of the contract. Sharers are asked in their order before anything is fetched."""

    def __init__(
        self,
        folder: Path,
        size_bytes: int,
        policy: Worth = lru,
        *,
        first_version: int = 1,
        sharers: Sequence[Sharer] = (),
        memory: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """In `memory` the uses of files are remembered over restarts, as far as `remember` was called."""
        self.news = News(first_version)
        self._folder = str(folder)
        self._sharers = sharers
        self._memory = memory
        self._clock = clock
        self._shelf = Shelf(size_bytes, policy)
        self._hashed: set[str] = set()
        self._guests: dict[str, int] = {}
        self._rests: set[str] = set()
        self._linked: set[str] = set()  # jobs may have links to these, and could write through them
        self._guard = threading.RLock()
        self._turns = Turns()
        self.last_links = 0
        self._find()

    def _path(self, digest: str) -> str:
        return f"{self._folder}/{digest}"

    def _find(self) -> None:
        """Take over what an earlier pilot left here, the latest used first if there is not room for all."""
        known = self._recalled()
        self._shelf.recall(known)
        used = {digest: uses.last[0] for digest, uses in known.items() if uses.last}
        order = sorted(entries.found_in(self._folder), key=lambda each: (used.get(each.digest, 0), each.used_ns))
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
        for digest, size in entries.rests_in(self._folder).items():
            self._keep_rest(digest, size)

    def remember(self) -> None:
        if self._memory is None:
            return
        with self._guard:
            memory = self._shelf.memory()
        try:
            write_whole(self._memory, msgspec.msgpack.encode(memory))
        except OSError as error:
            log.warning("which files are used most cannot be noted: %s", error)

    def _recalled(self) -> dict[str, Uses]:
        try:
            known = self._memory.read_bytes() if self._memory is not None else b""
            return msgspec.msgpack.decode(known, type=dict[str, Uses]) if known else {}
        except (OSError, msgspec.MsgspecError):
            return {}

    # in use

    def pin(self, digest: str) -> None:
        with self._guard:
            self._shelf.pin(digest)

    def release(self, digests: Iterable[str]) -> None:
        with self._guard:
            for digest in digests:
                if self._shelf.release(digest) and self._guests.pop(digest, None) is not None:
                    entries.discard(self._path(digest))
            self._give_way()

    def pin_all(self) -> list[str]:
        """Pin everything that is here: what is to be released later is given."""
        with self._guard:
            digests = list(self._shelf)
            for digest in digests:
                self._shelf.pin(digest)
            return digests

    # what is asked of it

    def at_hand(self, digest: str) -> Entry | None:
        if not self._has(digest):
            return None  # it may be on its way, but two pilots that ask each other must not wait for each other
        with self._turns.of(digest):
            with self._guard:
                if digest in self._shelf:
                    self._shelf.use(digest)
                elif digest not in self._guests:
                    return None
            size = self._right(digest)
            return None if size is None else Entry(self._path(digest), size, Origin.OWN)

    def _right(self, digest: str) -> int | None:
        """The size of a file that is what its name says; one that is not goes, in use or not."""
        path = self._path(digest)
        if digest not in self._hashed and entries.is_right(path, digest):
            self._hashed.add(digest)
        size = entries.whole_bytes(path, digest) if digest in self._hashed else None
        if size is None:
            log.warning("the file %s in the cache was changed by somebody, and is thrown away", digest[:12])
            self._drop(digest)
        return size

    def take_in(self, digest: str, fetch: Fetch, *, size: int = 0) -> Entry:
        with self._turns.of(digest):
            if (found := self.at_hand(digest)) is not None:
                return found
            began = self._clock()
            self._promise(digest, size)
            try:
                origin = self._bring(digest, fetch)
            except BaseException:
                self._broken_off(digest)
                raise
            size = self._arrive(digest, hashed=True, cost_ms=(self._clock() - began) * 1000)
            return Entry(self._path(digest), size, origin)

    def _bring(self, digest: str, fetch: Fetch) -> Origin:
        arriving = self._path(digest) + entries.ARRIVING
        entries.discard(arriving)
        for sharer in self._sharers:
            brought = sharer.bring(digest, arriving)
            if brought is Brought.HASHED:
                entries.seal(arriving, digest)
                return Origin.SHARED
            if brought is Brought.LINKED:
                if entries.is_right(arriving, digest):
                    return Origin.SHARED
                log.warning("a neighbour has another file under the name %s; it is not used", digest[:12])
                entries.discard(arriving)
        fetch(arriving)
        entries.seal(arriving, digest)
        return Origin.FETCHED

    def _arrive(self, digest: str, *, hashed: bool, cost_ms: float | None = None) -> int:
        """Give a file that is here its name, and its place on the shelf if there is room."""
        path = self._path(digest)
        size = os.stat(path + entries.ARRIVING).st_size
        with self._guard:
            self._shelf.break_promise(digest)
            room = self._make_room(size)
            assert room or self._shelf.in_use(digest), "a guest is pinned by whoever has it brought"
            os.replace(path + entries.ARRIVING, path)
            entries.discard(path + entries.REST)
            if hashed:
                self._hashed.add(digest)
            if room:
                self._shelf.put(digest, size, cost_ms=cost_ms)
                self.news.added(digest, size)
            else:
                self._guests[digest] = size
        return size

    def adopt(self, path: str, digest: str) -> None:
        """By a link, if nobody else has one: then it costs nothing, and is hashed when it is first asked for."""
        arriving = self._path(digest) + entries.ARRIVING
        with self._turns.of(digest):
            try:
                status = os.lstat(path)
                if self._has(digest) or not stat.S_ISREG(status.st_mode) or not self._promise(digest, status.st_size):
                    return
                entries.discard(arriving)
                entries.link_or_copy(path, arriving, link=status.st_nlink == 1)
                entries.seal(arriving, digest)
                self._arrive(digest, hashed=False)
            except OSError as error:
                log.warning("%s could not be taken into the cache: %s", path, error)
            finally:
                self._broken_off(digest)

    def _has(self, digest: str) -> bool:
        with self._guard:
            return digest in self._shelf or digest in self._guests

    def link_in(self, digest: str, link: Callable[[str, str], bool]) -> bool:
        """Take in by a link what a neighbour has, if there is room without letting anything go. It is hashed when it is
        first asked for."""
        arriving = self._path(digest) + entries.ARRIVING
        if self._turns.taken(digest):
            return False  # it is being brought
        with self._turns.of(digest):
            if self._has(digest):
                return False
            entries.discard(arriving)
            if not link(digest, arriving):
                return False
            with self._guard:
                size = entries.whole_bytes(arriving, digest)
                if size is not None and size <= self._shelf.free_bytes:
                    self._arrive(digest, hashed=False)
                    return True
            entries.discard(arriving)
            return False

    def merge(self, digest: str, twin: str) -> bool:
        """Have a link to a neighbour's file in the place of one of our own with the same content, if nobody uses it:
        then the disk has it once."""
        path = self._path(digest)
        if self._turns.taken(digest):
            return False
        with self._turns.of(digest):
            entries.discard(path + entries.ARRIVING)
            try:
                os.link(twin, path + entries.ARRIVING, follow_symlinks=False)
                right = entries.is_right(path + entries.ARRIVING, digest)
                with self._guard:
                    if right and digest in self._shelf and not self._shelf.in_use(digest):
                        os.replace(path + entries.ARRIVING, path)
                        return True
            except OSError:
                pass  # it is gone, or on another disk
            finally:
                entries.discard(path + entries.ARRIVING)
            return False

    def give(self, digest: str, target: str, *, link: bool) -> None:
        path = self._path(digest)
        with self._guard:
            assert self._shelf.in_use(digest), "what is given is pinned"
            handed_over = not link and self._shelf.pins(digest) == 1 and self._guests.pop(digest, None) is not None
            if link:
                self._linked.add(digest)
        if handed_over:
            os.replace(path, target)
        else:
            entries.link_or_copy(path, target, link=link)
        if entries.whole_bytes(target if handed_over else path, digest) is None:
            os.unlink(target)
            self._drop(digest)
            raise entries.Damaged(errno.EIO, f"the file {digest[:12]} was changed while a job was given it")
        if handed_over:
            entries.make_own(target)

    def look_at_links(self) -> None:
        """A job that has links to files here has promised only to read them. What one has written into goes."""
        with self._guard:
            linked = list(self._linked)
        for digest in linked:
            if entries.whole_bytes(self._path(digest), digest) is None:
                log.warning("a job has changed its linked input %s, which is thrown away", digest[:12])
                self._drop(digest)

    # what others hear of it

    @property
    def held_bytes(self) -> int:
        return self._shelf.held_bytes

    @property
    def size_bytes(self) -> int:
        return self._shelf.size_bytes

    def digests(self) -> set[str]:
        with self._guard:
            return set(self._shelf)

    def news_since(self, seen: int) -> tuple[int, list[CachedFile], list[str]]:
        with self._guard:
            return self.news.since(seen)

    # room

    def resize(self, size_bytes: int) -> None:
        with self._guard:
            self._shelf.size_bytes = size_bytes
            self._give_way()

    def _give_way(self) -> None:
        """Get back to the size, as far as what is in use allows."""
        if self._shelf.free_bytes < 0 and not self._make_room(0):
            for digest in [digest for digest in self._shelf if not self._shelf.in_use(digest)]:
                self._evict(digest)

    def _promise(self, digest: str, size: int) -> bool:
        with self._guard:
            self._shelf.break_promise(digest)
            self._rests.discard(digest)
            room = self._make_room(size)
            if room:
                self._shelf.promise(digest, size)
            return room

    def _broken_off(self, digest: str) -> None:
        path = self._path(digest)
        entries.discard(path + entries.ARRIVING)
        with self._guard:
            self._shelf.break_promise(digest)
            if (size := entries.bytes_of(path + entries.REST)) is not None:
                self._keep_rest(digest, size)

    def _keep_rest(self, digest: str, size: int) -> None:
        """What was brought so far need not be brought again, as long as nothing else needs the room."""
        if digest in self._shelf or size > self._shelf.free_bytes:
            entries.discard(self._path(digest) + entries.REST)
        else:
            self._shelf.promise(digest, size)
            self._rests.add(digest)

    def _make_room(self, required_bytes: int) -> bool:
        """Let go of rests, then of what is worth least, until so much is free; False if that cannot be."""
        while self._rests and self._shelf.free_bytes < required_bytes:
            rest = self._rests.pop()
            self._shelf.break_promise(rest)
            entries.discard(self._path(rest) + entries.REST)
        victims = self._shelf.victims(required_bytes)
        for digest in victims or ():
            self._evict(digest)
        return self._shelf.free_bytes >= required_bytes

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
        entries.discard(self._path(digest))
        with self._guard:
            self._guests.pop(digest, None)
            if digest in self._shelf:
                self._shelf.drop(digest)
                self._forget(digest)
            self._hashed.discard(digest)
            self._linked.discard(digest)

    def _forget(self, digest: str) -> None:
        self._hashed.discard(digest)
        self._linked.discard(digest)
        self.news.gone(digest)
