"""What is in a pilot's cache: what is on its disk is what is on its shelf.

A file is in the folder under its digest from the moment when it is on the shelf, and goes from the folder before it
goes from the shelf. So whatever moment the pilot is killed at, the next one finds files that it may use once it has
hashed them, and litter, which it removes.

What there is no room for is a *guest*: a job gets it all the same, in the space that is kept free for jobs. It goes
when the job has it, and nobody hears of it."""

import errno
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from mendflow.core.caching.policies import Uses, Worth
from mendflow.core.caching.shelf import Shelf
from mendflow.core.model.data import CachedFile
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.news import News
from mendflow.pilot.home import write_whole

log = logging.getLogger("mendflow.pilot")


class Holdings:
    def __init__(
        self, folder: Path, size_bytes: int, policy: Worth, *, first_version: int, memory: Path | None
    ) -> None:
        """In `memory` the uses of files are remembered over restarts, as far as `remember` was called."""
        self.news = News(first_version)
        self.last_links = 0
        self._folder = str(folder)
        self._memory = memory
        self._shelf = Shelf(size_bytes, policy)
        self._hashed: set[str] = set()
        self._guests: dict[str, int] = {}
        self._rests: set[str] = set()
        self._linked: set[str] = set()  # jobs may have links to these, and could write through them
        self._guard = threading.RLock()
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

    # in and out

    def _has(self, digest: str) -> bool:
        with self._guard:
            return digest in self._shelf or digest in self._guests

    def _arrive(self, digest: str, *, hashed: bool, cost_ms: float | None = None) -> int:
        """Give a file that is here its name, and its place on the shelf if there is room."""
        path = self._path(digest)
        size = os.stat(path + entries.ARRIVING).st_size
        with self._guard:
            self._shelf.break_promise(digest)
            room = self._make_room(size)
            if not room and not self._shelf.in_use(digest):
                raise OSError(errno.ENOSPC, f"there is no room for the file {digest[:12]}, and nobody needs it now")
            os.replace(path + entries.ARRIVING, path)
            entries.discard(path + entries.REST)
            (self._hashed.add if hashed else self._hashed.discard)(digest)
            if room:
                self._shelf.put(digest, size, cost_ms=cost_ms)
                self.news.added(digest, size)
            else:
                self._guests[digest] = size
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
