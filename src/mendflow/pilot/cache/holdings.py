"""What is in a pilot's cache: what is on its disk is what is on its shelf.

A file is in the folder under its digest from the moment when it is on the shelf, and goes from the folder before it
goes from the shelf. So whatever moment the pilot is killed at, the next one finds files that it may use once it has
hashed them, and litter, which it removes.

Nothing is brought into the folder before it has room there. What can have none is a *guest*: a job gets it all the
same, past the cache, through a folder beside it. It goes when the job has it, nobody hears of it, and it counts as the
job's. So does a file of which nobody knows how large it is, until it is here."""

import errno
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from mendflow.core.caching.policies import Uses, Worth
from mendflow.core.caching.shelf import Shelf
from mendflow.core.model.data import CachedFile
from mendflow.pilot.cache import entries
from mendflow.pilot.cache.news import News
from mendflow.pilot.home import write_whole

log = logging.getLogger("mendflow.pilot")

GIVE_WAY_S = 5.0
"""So long a file waits for neighbours that have more than their part; they look around every two seconds."""

ASK_AGAIN_S = 0.1
STILL_WANTED_S = 0.5
OWN_FIRST = 3
"""So many times what is worth least goes from here before neighbours are waited for."""


class Beside(Protocol):
    """The caches that this one shares its room with."""

    def bring(self, bytes: int) -> None:
        """Let them know that so much is on its way to here."""
        ...

    def room(self, own: set[str]) -> tuple[int, int] | None:
        """What this cache may hold if it has these files, with what all the others have and bring at this moment; and
        what is its own part whatever they have. None if there are no others."""
        ...


class Holdings:
    def __init__(
        self,
        folder: Path,
        size_bytes: int,
        policy: Worth,
        *,
        first_version: int,
        memory: Path | None,
        beside: Beside | None = None,
        patience_s: float = GIVE_WAY_S,
    ) -> None:
        """In `memory` the uses of files are remembered over restarts, as far as `remember` was called."""
        self.news = News(first_version)
        self.last_links = 0
        self._folder = str(folder)
        self._aside = self._folder + entries.GUESTS
        self._memory = memory
        self._shelf = Shelf(size_bytes, policy)
        self._hashed: set[str] = set()
        self._guests: dict[str, int] = {}
        self._rests: set[str] = set()
        self._linked: set[str] = set()  # jobs may have links to these, and could write through them
        self._passing: Counter[str] = Counter()  # pins that go soon, whatever else does not
        self._line: list[str] = []  # who waits for room, first come first served
        self._beside = beside
        self._patience_s = self._left_s = patience_s
        self._asked_bytes = 0
        self._guard = threading.RLock()
        self._freed = threading.Condition(self._guard)
        os.makedirs(self._aside, exist_ok=True)
        with self._guard:
            self._find()

    def _path(self, digest: str) -> str:
        return f"{self._aside if digest in self._guests else self._folder}/{digest}"

    def _arriving(self, digest: str, *, room: bool) -> str:
        return f"{self._folder if room else self._aside}/{digest}{entries.ARRIVING}"

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
        for each in entries.found_in(self._aside):
            self._guests[each.digest] = each.bytes  # a call that an earlier agent has handed over may want it
        for digest, size in entries.rests_in(self._aside).items():
            self._keep_rest(digest, size)
        self._tell()

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
                if self._shelf.release(digest) and digest in self._guests:
                    entries.discard(self._path(digest))
                    del self._guests[digest]
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
            promised = self._shelf.promised(digest)
            self._shelf.break_promise(digest)
            room = self._make_room(size) if linked or promised >= size else self._room_now(digest, size)
            self._shelf.break_promise(digest)
            if not room and not self._shelf.in_use(digest):
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

    # room

    def resize(self, size_bytes: int) -> None:
        with self._guard:
            self._shelf.size_bytes = size_bytes
            self._give_way()
            self._freed.notify_all()

    def _give_way(self) -> None:
        """Get back to the size, as far as what is in use allows."""
        if self._shelf.free_bytes < 0 and not self._make_room(0):
            for digest in [digest for digest in self._shelf if not self._shelf.in_use(digest)]:
                self._evict(digest)

    def _begin(self, digest: str, size: int, wanted: Callable[[], bool]) -> str:
        """Where a file is to be brought. It waits for its room as long as there will be some; what there is of it
        already is taken along."""
        aside, inside = self._arriving(digest, room=False), self._arriving(digest, room=True)
        with self._freed:
            if digest in self._rests:
                self._rests.discard(digest)
                self._shelf.break_promise(digest)
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
        """Promise a file its room if there is some; what is worth least may have to go."""
        for _ in range(OWN_FIRST):
            if not self._make_room(size):
                return False
            if (limit_bytes := self._promise(digest, size)) is None:
                return True
            if limit_bytes >= self._shelf.size_bytes:
                return False
            self._shelf.size_bytes = limit_bytes
        return False

    def _promise(self, digest: str, size: int) -> int | None:
        """Promise a file the room that there is, if all the others leave it; if not, what this cache may have. They
        hear of it before it is looked what they have and bring: of two that promise at a time one sees the other."""
        self._shelf.promise(digest, size)
        self._tell()
        found = self._beside.room(set(self._shelf)) if self._beside is not None else None
        if found is None or self._shelf.size_bytes - self._shelf.free_bytes <= found[0]:
            return None
        self._shelf.break_promise(digest)
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
            self._shelf.break_promise(digest)
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
            self._shelf.break_promise(digest)
            entries.discard(self._arriving(digest, room=True) + entries.PART)

    def _make_room(self, required_bytes: int) -> bool:
        """Let go of rests, then of what is worth least, until so much is free; False if that cannot be."""
        while self._rests and self._shelf.free_bytes < required_bytes:
            self._give_up_rest(next(iter(self._rests)))
        victims = self._shelf.victims(required_bytes)
        for digest in victims or ():
            self._evict(digest)
        return self._shelf.free_bytes >= required_bytes
