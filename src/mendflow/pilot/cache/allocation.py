"""Allocates space in a pilot's cache.

A file is fetched only after its space is reserved, and neighbours that share the host see the reservation before this
cache reads theirs. Files without space yet wait in a queue, first come, first served. The part of a file whose transfer
broke off is a *partial*: it keeps its space until another file needs it."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mendflow.core.caching.policies import EvictionPolicy
from mendflow.core.caching.space import CacheSpace
from mendflow.pilot.cache import entries

GIVE_WAY_S = 5.0
"""How long a file waits for neighbours that use more than their share; they check every two seconds."""

ASK_AGAIN_S = 0.1
STILL_WANTED_S = 0.5
OWN_FIRST = 3
"""How often this cache evicts its own files before it waits for neighbours."""


class SharedSpace(Protocol):
    """The caches that this one shares its space with."""

    def bring(self, bytes: int) -> None:
        """Announce that so many bytes are being fetched."""
        ...

    def room(self, own: set[str]) -> tuple[int, int] | None:
        """How much this cache may hold if it has these files, given what the others hold and fetch now; and its
        guaranteed share. None if there are no others."""
        ...


class CacheAllocation(ABC):
    def __init__(
        self,
        folder: Path,
        size_bytes: int,
        policy: EvictionPolicy,
        *,
        beside: SharedSpace | None,
        patience_s: float = GIVE_WAY_S,
    ) -> None:
        self._folder = str(folder)
        self._aside = self._folder + entries.GUESTS
        self._shelf = CacheSpace(size_bytes, policy)
        self._rests: set[str] = set()
        self._passing: Counter[str] = Counter()  # short-lived pins, unlike those of running jobs
        self._line: list[str] = []  # files waiting for space, first come, first served
        self._beside = beside
        self._patience_s = self._left_s = patience_s
        self._asked_bytes = 0
        self._guard = threading.RLock()
        self._freed = threading.Condition(self._guard)

    @abstractmethod
    def _evict(self, digest: str) -> None:
        """Evict a file that nobody uses. One that cannot be removed still counts."""

    def _arriving(self, digest: str, *, room: bool) -> str:
        return f"{self._folder if room else self._aside}/{digest}{entries.ARRIVING}"

    def resize(self, size_bytes: int) -> None:
        with self._guard:
            self._shelf.size_bytes = size_bytes
            self._give_way()
            self._freed.notify_all()

    def _give_way(self) -> None:
        """Shrink to the allowed size, as far as files in use permit."""
        if self._shelf.free_bytes < 0 and not self._make_room(0):
            for digest in [digest for digest in self._shelf if not self._shelf.is_pinned(digest)]:
                self._evict(digest)

    def _begin(self, digest: str, size: int, wanted: Callable[[], bool]) -> str:
        """The path for fetching a file, once it has space; waits while space can still become free. Continues a partial
        file if there is one."""
        aside, inside = self._arriving(digest, room=False), self._arriving(digest, room=True)
        with self._freed:
            if digest in self._rests:
                self._rests.discard(digest)
                self._shelf.cancel_reservation(digest)
                entries.move(inside + entries.PART, aside + entries.PART)
            room = size > 0 and self._room(digest, size, wanted)
            if room:
                entries.move(aside + entries.PART, inside + entries.PART)
        arriving = inside if room else aside
        entries.discard(arriving)
        return arriving

    def _room(self, digest: str, size: int, wanted: Callable[[], bool]) -> bool:
        """Wait for space, in turn. Waits for files in transit, and a while for neighbours; not for files in long use,
        nor for space that can never be free."""
        self._line.append(digest)
        self._asked_bytes += size
        try:
            while self._line[0] != digest or not self._room_now(digest, size):
                if not wanted() or size > self._shelf.size_bytes - self._lasting_bytes():
                    return False
                if self._line[0] != digest or self._shelf.victims(size) is None:
                    self._freed.wait(STILL_WANTED_S)
                elif self._left_s > 0:
                    self._freed.wait(ASK_AGAIN_S)
                    self._left_s -= ASK_AGAIN_S
                else:
                    return False  # the next files need not wait for neighbours either, until there was space again
            self._left_s = self._patience_s
            return True
        finally:
            self._line.remove(digest)
            self._asked_bytes -= size
            self._tell()

    def _room_now(self, digest: str, size: int) -> bool:
        """Reserve space if there is some, evicting the least valuable files. If there is none, shrink to the size that
        the others leave."""
        for _ in range(OWN_FIRST):
            if not self._make_room(size):
                break
            if (limit_bytes := self._promise(digest, size)) is None:
                return True
            if limit_bytes >= self._shelf.size_bytes:
                break
            self._shelf.size_bytes = limit_bytes
        self._give_way()
        return False

    def _promise(self, digest: str, size: int) -> int | None:
        """Reserve the space if the others leave it; otherwise return what this cache may have. The reservation is
        published before theirs are read, so of two caches that reserve at the same time at least one sees the other."""
        self._shelf.reserve(digest, size)
        self._tell()
        found = self._beside.room(set(self._shelf)) if self._beside is not None else None
        if found is None or self._shelf.size_bytes - self._shelf.free_bytes <= found[0]:
            return None
        self._shelf.cancel_reservation(digest)
        return max(found)

    def _lasting_bytes(self) -> int:
        """Bytes of files that are in use for as long as a job runs."""
        pinned = [digest for digest in self._shelf if self._shelf.pins(digest) > self._passing[digest]]
        return sum(self._shelf.uses(digest).bytes for digest in pinned)

    def _tell(self) -> None:
        if self._beside is not None:
            self._beside.bring(self._shelf.promised_bytes + self._asked_bytes)
        self._freed.notify_all()

    def _broken_off(self, digest: str, arriving: str) -> None:
        entries.discard(arriving)
        with self._guard:
            self._shelf.cancel_reservation(digest)
            if (size := entries.bytes_of(arriving + entries.PART)) is not None:
                self._keep_rest(digest, size)
            self._tell()

    def _keep_rest(self, digest: str, size: int) -> None:
        """Keep a partial file until another file needs its space."""
        aside, inside = (self._arriving(digest, room=room) + entries.PART for room in (False, True))
        if digest in self._shelf or size > self._shelf.free_bytes or self._promise(digest, size) is not None:
            entries.discard(aside)
            entries.discard(inside)
            return
        entries.move(aside, inside)
        self._rests.add(digest)

    def _give_up_rest(self, digest: str) -> None:
        if digest in self._rests:
            self._rests.discard(digest)
            self._shelf.cancel_reservation(digest)
            entries.discard(self._arriving(digest, room=True) + entries.PART)

    def _make_room(self, required_bytes: int) -> bool:
        """Remove partial files, then the least valuable ones, until so many bytes are free; False if that is
        impossible."""
        while self._rests and self._shelf.free_bytes < required_bytes:
            self._give_up_rest(next(iter(self._rests)))
        victims = self._shelf.victims(required_bytes)
        for digest in victims or ():
            self._evict(digest)
        return self._shelf.free_bytes >= required_bytes
