"""Keeps jobs back for an idle pilot that has their data.

Fetching a file that is in a nearby cache is a waste when the pilot with that cache is idle. So a pilot that would have
to fetch much more than an idle one does not get the job; the idle one is woken when the job comes, and takes it. There
are three bounds. An idle pilot has no more jobs kept back for it than it would take now. Once it has asked and left a
job, or is no longer idle, the job is kept back for another idle pilot with its data; if there is none, anybody may take
it. And no job is kept back for longer than `bound_ms` in total."""

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.scheduling.cache_index import CacheIndex, PilotCache
from mendflow.core.scheduling.job_heap import Entry
from mendflow.core.scheduling.offer import FOREVER_MS, FreeResources, Offer, free_for_one

DATA_WAIT_MS = 3_000
"""How long a job may be kept back. A woken pilot asks within milliseconds; this is for one that cannot."""

MUCH_MORE = 2
"""A job is kept back from a pilot if an idle one has more than so many times the bytes."""

HOLDERS_LOOKED = 8
"""How many of the pilots with a file are examined."""


NOBODY = PilotId("")


class Deferral(NamedTuple):
    """`pilot` is the one that the job is kept back for; it has so many bytes of its input."""

    pilot: PilotId
    there_bytes: int
    until: Instant


class _Idle:
    __slots__ = ("free", "jobs", "room", "site", "until")

    def __init__(self, offer: Offer, free: int, until: Instant) -> None:
        self.room: FreeResources = free_for_one(offer)
        self.site = offer.site
        self.free = free
        self.until = until
        self.jobs: set[JobId] = set()


class DataWait:
    def __init__(self, caches: CacheIndex, bound_ms: int) -> None:
        self._caches = caches
        self._bound_ms = bound_ms
        self._idle: dict[PilotId, _Idle] = {}
        self._freed = False
        self._next_end = FOREVER_MS
        self.kept: dict[JobId, Deferral] = {}  # including those that anybody may take again, until they are taken

    def __bool__(self) -> bool:
        """Whether there is an idle pilot that jobs could be kept back for."""
        return bool(self._idle) and self._bound_ms > 0

    def begin_request(self, pilot: PilotId) -> Iterable[JobId]:
        """The pilot asks: it may now take the jobs that were kept back for it."""
        idle = self._idle.pop(pilot, None)
        return idle.jobs if idle is not None else ()

    def return_jobs(self, jobs: Iterable[JobId]) -> None:
        """The pilot has asked, or is gone: the jobs kept back for it that still wait are for others."""
        for job in jobs:
            if (kept := self.kept.get(job)) is not None:
                self.kept[job] = kept._replace(pilot=NOBODY)
                self._freed = True

    def take_freed(self, now: Instant) -> bool:
        """Whether jobs have been freed for anybody since the last call."""
        if now >= self._next_end:
            for job, kept in self.kept.items():
                if 0 < kept.until <= now:
                    self.kept[job] = kept._replace(until=0)
                    self._freed = True
            self._next_end = min((kept.until for kept in self.kept.values() if kept.until), default=FOREVER_MS)
        freed, self._freed = self._freed, False
        return freed

    def pilot_idle(self, offer: Offer, free: int, now: Instant) -> None:
        """The pilot has asked, and would take so many jobs more."""
        shelf = self._caches.of(offer.pilot)
        if offer.idle_ms and shelf is not None and shelf.files:
            self._idle[offer.pilot] = _Idle(offer, free, now + offer.idle_ms)

    def remove(self, id: JobId) -> None:
        """The job no longer waits."""
        kept = self.kept.pop(id, None)
        if kept is not None and (idle := self._idle.get(kept.pilot)) is not None:
            idle.jobs.discard(id)

    def of(self, id: JobId, now: Instant) -> Deferral | None:
        """Which pilot a job is kept back for now."""
        kept = self.kept.get(id)
        return kept if kept is not None and kept.until > now and kept.pilot in self._idle else None

    def should_defer(self, entry: Entry, asks: PilotCache | None, here_bytes: int, now: Instant) -> bool:
        """Whether the job is kept back from the asking pilot, which has so many bytes of its input."""
        if not self._idle or self._bound_ms <= 0:
            return False
        kept = self.kept.get(entry[1])
        if kept is not None and kept.until <= now:
            return False
        if kept is not None and kept.pilot in self._idle:
            return kept.there_bytes > MUCH_MORE * here_bytes
        found = self._holder(entry, asks, here_bytes, now)
        if found is None:
            return False
        if kept is not None:
            found = found._replace(until=min(kept.until, found.until))
        self.kept[entry[1]] = found
        self._next_end = min(self._next_end, found.until)
        self._idle[found.pilot].jobs.add(entry[1])
        return True

    def _holder(self, entry: Entry, asks: PilotCache | None, here_bytes: int, now: Instant) -> Deferral | None:
        """The idle pilot that has most of the job's input, if that is much more."""
        group = asks.group if asks is not None else ""
        best, there = None, MUCH_MORE * here_bytes
        for pilot in self._candidates(entry):
            idle, shelf = self._idle.get(pilot), self._caches.of(pilot)
            if idle is None or shelf is None or shelf is asks or (group and shelf.group == group):
                continue
            if idle.until <= now:
                del self._idle[pilot]
                continue
            site = entry[2].site
            if len(idle.jobs) >= idle.free or site not in ("", idle.site) or not idle.room.fits(entry[2]):
                continue
            has = shelf.bytes_of(entry[4])
            if has > there:
                best, there = pilot, has
        if best is None:
            return None
        return Deferral(best, there, min(now + self._bound_ms, self._idle[best].until))

    def _candidates(self, entry: Entry) -> list[PilotId]:
        """Idle pilots, if they are few; else some of those that have one of its files."""
        if len(self._idle) <= HOLDERS_LOOKED:
            return list(self._idle)
        holders = self._caches.holders
        return [pilot for file in entry[4] for pilot in islice(holders(file), HOLDERS_LOOKED)]
