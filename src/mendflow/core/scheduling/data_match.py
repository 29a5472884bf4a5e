"""Matches jobs to an offer with data locality: by priority, then by local bytes, then by age.

It goes from the pilot's files to the jobs that read them, never from waiting jobs to files; and it examines a bounded
number of both, so a match costs the same however many jobs wait. The first jobs in order, regardless of data, compete
with those found that way. The first job for a pilot may be overtaken by jobs with more local input only a limited
number of times; then it is its turn."""

from heapq import heappop, heappush
from itertools import islice, repeat
from typing import NamedTuple

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.scheduling.cache_index import CacheIndex, PilotCache
from mendflow.core.scheduling.data_wait import DataWait
from mendflow.core.scheduling.job_heap import LEVEL_BITS, Entry, level_end, priority_level
from mendflow.core.scheduling.matching import Match
from mendflow.core.scheduling.reader_index import ReaderIndex

OVERTAKES_MAX = 16
"""How often the first job for a pilot may be overtaken because of data."""

FILES_LOOKED = 128
"""How many files, of the pilot and then of others on its host, one match examines; the next continues elsewhere. If
fewer files are wanted at all, each of them is examined."""

JOBS_LOOKED = 48
"""How many jobs that read these files are compared; at least twice as many as are wanted."""

OWN_SHIFT = 10
"""A file in the pilot's own cache counts slightly more than one on its host: by one part in 1024."""

KEPT_LOOKED = 128
"""How many jobs that are kept back for others one match skips; then it takes what comes, so that no pilot is idle while
there is work."""

STEPS_MAX = 256
"""How many jobs that are gone or do not fit it skips in order, besides those that it takes."""


class MatchReason(NamedTuple):
    """Why a job was taken: so many bytes of its input are local, so many of them in the pilot's own cache. `turn`: it
    was overtaken often enough."""

    bytes: int = 0
    own_bytes: int = 0
    turn: bool = False


ScoredEntry = tuple[int, int, int, Entry]
"""A job that reads a local file: its priority level, its negative bytes, its place in the order. The smallest is the
best."""


class LocalBytes:
    """The weight of each file that a pilot has, in its own cache or on its host, and that waiting jobs read."""

    __slots__ = ("_caches", "counts", "shelf")

    def __init__(self, caches: CacheIndex, wanted: ReaderIndex, shelf: PilotCache | None, turn: int) -> None:
        self._caches = caches
        self.shelf = shelf
        self.counts: dict[int, int] = {}
        if shelf is None:
            return
        own = _common(wanted, shelf, FILES_LOOKED, turn)
        if shelf.group:
            self._look_near(wanted, shelf, turn)
        self.counts |= {file: size + (size >> OWN_SHIFT) + 1 for file, size in own.items()}

    def _look_near(self, wanted: ReaderIndex, shelf: PilotCache, turn: int) -> None:
        near = list(self._caches.nearby(shelf))
        looks = FILES_LOOKED - len(shelf.files) if len(wanted.jobs) > FILES_LOOKED else FILES_LOOKED * len(near)
        for number in range(len(near)):
            other = near[(turn + number) % len(near)]
            if looks > 0 and other is not shelf:
                self.counts |= _common(wanted, other, looks, turn)
                looks -= min(len(other.files), len(wanted.jobs))

    def count(self, entry: Entry) -> int:
        """The value for comparing jobs: about the local bytes of its input."""
        return sum(map(self.counts.get, entry[4], repeat(0)))

    def of(self, entry: Entry) -> MatchReason:
        """Local bytes."""
        if self.shelf is None:
            return MatchReason()
        near = {file: size for other in self._caches.nearby(self.shelf) for file, size in other.some(entry[4])}
        return MatchReason(sum(near.values()), self.shelf.bytes_of(entry[4]))


def _common(wanted: ReaderIndex, shelf: PilotCache, looks: int, turn: int) -> dict[int, int]:
    """The files of a cache that are wanted; of very many, another part each time."""
    files, jobs = shelf.files, wanted.jobs
    if len(jobs) < len(files):
        if len(jobs) <= looks:
            return {file: files[file] for file in jobs if file in files}
    elif len(files) <= looks:
        return {file: size for file, size in files.items() if file in jobs}
    start = turn * looks % len(files)
    return {file: size for file, size in islice(files.items(), start, start + looks) if file in jobs}


class DataMatch:
    """Nothing is removed from the queue before everything is chosen: so the heaps can be walked in order."""

    def __init__(
        self, match: Match, at_hand: LocalBytes, wait: DataWait, overtaken: dict[JobId, int], now: Instant
    ) -> None:
        self._match = match
        self._at_hand = at_hand
        self._wait = wait
        self._overtaken = overtaken
        self._now = now
        self._behind: list[tuple[Entry, int]] = []  # the successors of skipped heads, and their place in the heap
        self._past = 0
        self._steps = STEPS_MAX
        self._candidates: list[ScoredEntry] = []
        self._next = 0
        self._entries: dict[JobId, Entry] = {}
        self.chosen: dict[JobId, MatchReason] = {}

    def take(self, most: int, before: int | None = None) -> list[JobId]:
        """The best that fit; with `before`, only those before that place."""
        self._gather(most)
        self._steps += 2 * most
        while len(self._entries) < most:
            first, best = self._first(before), self._best(before)
            entry = self._choose(first, best)
            if entry is None:
                break
            self._entries[entry[1]] = entry
            self._match.room.shrink(entry[2])
        for entry in sorted(self._entries.values()):  # so that each is at the head of its shape, or near it
            self._match.line.remove(entry)
        return list(self._entries)

    def _choose(self, first: Entry | None, best: ScoredEntry | None) -> Entry | None:
        if best is None:
            return self._note_reason(first) if first is not None else None
        if first is None or first[0] >= best[2]:
            return self._note_reason(best[3])
        if (priority_level(first), -self._at_hand.count(first)) <= best[:2]:
            return self._note_reason(first)
        overtaken = self._overtaken.get(first[1], 0)
        if overtaken >= OVERTAKES_MAX:
            return self._note_reason(first, turn=True)
        self._overtaken[first[1]] = overtaken + 1
        return self._note_reason(best[3])

    def _note_reason(self, entry: Entry, *, turn: bool = False) -> Entry:
        if entry[4]:
            self.chosen[entry[1]] = self._at_hand.of(entry)._replace(turn=turn)
        return entry

    # In order

    def _first(self, before: int | None) -> Entry | None:
        """The first in order that fits and is not kept back; it stays the first until it is taken."""
        heads, behind, match = self._match.heads, self._behind, self._match
        while (heads or behind) and self._steps > 0:
            self._steps -= 1
            head = not behind or (bool(heads) and heads[0] < behind[0][0])
            entry = heads[0] if head else behind[0][0]
            if before is not None and entry[0] >= before:
                return None
            if self._is_allowed(entry):
                return entry
            place = 0
            if head:
                heappop(heads)
            else:
                place = heappop(behind)[1]
            shape = match.line.shape(entry)
            if match.room.fits(entry[2]) or not shape.exact:  # otherwise nothing behind it fits either
                for follows in (2 * place + 1, 2 * place + 2):
                    if follows < len(shape.heap):
                        heappush(behind, (shape.heap[follows], follows))
        return None

    def _is_allowed(self, entry: Entry) -> bool:
        match = self._match
        if entry[1] in self._entries or match.line.waiting.get(entry[1]) is not entry or not match.fits(entry):
            return False
        here, wait = self._at_hand, self._wait
        if not entry[4] or not wait or self._past >= KEPT_LOOKED:
            return True
        kept = wait.should_defer(entry, here.shelf, here.count(entry), self._now)
        self._past += kept
        return not kept

    # By data

    def _best(self, before: int | None) -> ScoredEntry | None:
        candidates = self._candidates
        while self._next < len(candidates):
            best = candidates[self._next]
            if (before is None or best[2] < before) and self._is_allowed(best[3]):
                return best
            self._next += 1
        return None

    def _gather(self, most: int) -> None:
        """Compare some of the jobs that read local files. Those of a lower priority than the first of all have no
        chance while one of its priority is left."""
        counts, heads = self._at_hand.counts, self._match.heads
        if not counts:
            return
        looks = max(JOBS_LOOKED, 2 * most)
        files = sorted(counts, key=counts.__getitem__, reverse=True)[:looks]
        a_file = max(1, looks // len(files))
        jobs, get, seen = self._match.line.wanted.readers_of, counts.get, set[int]()
        lowest = level_end(heads[0]) if heads and most == 1 else None
        fitting = {entry[3] for entry in heads} | {shape.number for shape in self._match.rough}
        for file in files:
            for entry in jobs(file, a_file):
                place, _, _, shape, wants = entry
                if shape in fitting and (lowest is None or place < lowest) and place not in seen:
                    seen.add(place)
                    here = sum(map(get, wants, repeat(0)))
                    self._candidates.append((place >> LEVEL_BITS, -here, place, entry))
        self._candidates.sort()
