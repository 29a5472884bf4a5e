"""Room for files in a pilot's cache: who gets it, and who waits.

Nothing is brought into the folder before it has room there: a file is *promised* its room, and neighbours that share
the host hear of that before it is looked what they have. Those for which there is none yet wait in a line, first come
first served. What was brought of a file when that was broken off is a *rest*: it has its room as long as nobody needs
it."""

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
"""So long a file waits for neighbours that have more than their part; they look around every two seconds."""

ASK_AGAIN_S = 0.1
STILL_WANTED_S = 0.5
OWN_FIRST = 3
"""So many times what is worth least goes from here before neighbours are waited for."""


class SharedSpace(Protocol):
    """The caches that this one shares its room with."""

    def bring(self, bytes: int) -> None:
        """Let them know that so much is on its way to here."""
        ...

    def room(self, own: set[str]) -> tuple[int, int] | None:
        """What this cache may hold if it has these files, with what all the others have and bring at this moment; and
        what is its own part whatever they have. None if there are no others."""
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
        self._passing: Counter[str] = Counter()  # pins that go soon, whatever else does not
        self._line: list[str] = []  # who waits for room, first come first served
        self._beside = beside
        self._patience_s = self._left_s = patience_s
        self._asked_bytes = 0
        self._guard = threading.RLock()
        self._freed = threading.Condition(self._guard)

    @abstractmethod
    def _evict(self, digest: str) -> None:
        """Let go of a file that nobody uses. One that cannot be removed stays on the shelf, and counts."""

    def _arriving(self, digest: str, *, room: bool) -> str:
        return f"{self._folder if room else self._aside}/{digest}{entries.ARRIVING}"

    def resize(self, size_bytes: int) -> None:
        with self._guard:
            self._shelf.size_bytes = size_bytes
            self._give_way()
            self._freed.notify_all()

    def _give_way(self) -> None:
        """Get back to the size, as far as what is in use allows."""
        if self._shelf.free_bytes < 0 and not self._make_room(0):
            for digest in [digest for digest in self._shelf if not self._shelf.is_pinned(digest)]:
                self._evict(digest)

    def _begin(self, digest: str, size: int, wanted: Callable[[], bool]) -> str:
        """Where a file is to be brought. It waits for its room as long as there will be some; what there is of it
        already is taken along."""
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
        """Room for a file, in its turn. What is passing is waited for, and neighbours for a while; what is in use for
        long is not, nor what can never be."""
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
                    return False  # nor need the next ones wait for them, until there was room again
            self._left_s = self._patience_s
            return True
        finally:
            self._line.remove(digest)
            self._asked_bytes -= size
            self._tell()

    def _room_now(self, digest: str, size: int) -> bool:
        """Promise a file its room if there is some; what is worth least may have to go. Where there is none, this cache
        at least keeps to what the others leave it."""
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
        """Promise a file the room that there is, if all the others leave it; if not, what this cache may have. They
        hear of it before it is looked what they have and bring: of two that promise at a time one sees the other."""
        self._shelf.reserve(digest, size)
        self._tell()
        found = self._beside.room(set(self._shelf)) if self._beside is not None else None
        if found is None or self._shelf.size_bytes - self._shelf.free_bytes <= found[0]:
            return None
        self._shelf.cancel_reservation(digest)
        return max(found)

    def _lasting_bytes(self) -> int:
        """What is in use for as long as a job takes."""
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
        """What was brought so far need not be brought again, as long as nothing else needs the room."""
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
        """Let go of rests, then of what is worth least, until so much is free; False if that cannot be."""
        while self._rests and self._shelf.free_bytes < required_bytes:
            self._give_up_rest(next(iter(self._rests)))
        victims = self._shelf.victims(required_bytes)
        for digest in victims or ():
            self._evict(digest)
        return self._shelf.free_bytes >= required_bytes
