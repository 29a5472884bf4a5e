"""The queue of waiting jobs, and which of them a pilot gets.

The order is priority, then age; a pilot gets the first jobs in that order that fit into its free resources. So a
small job may overtake a large one that does not fit; but not for ever. When a job that would fit into the empty
pilot has waited longer than the queue's patience and is passed over there, the pilot is reserved for it: it gets
nothing that comes later in the order until enough is free. One pilot is reserved for one job, and one job reserves
one pilot, so a large job costs others no more than that.

Among jobs of one priority a pilot first gets the one with most of its input there, in its own cache or in others on
its host (data_match.py); and a job whose data an idle pilot has is kept back for that one (data_wait.py).

Jobs of several projects go in the order of their shares first (fair_share.py), and within each as above.

A match examines shapes, not jobs (ready_jobs.py, match.py), so a million waiting jobs cost it no more than a
thousand."""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.scheduling.cache_index import CacheIndex
from mendflow.core.scheduling.data_match import DataMatch, LocalBytes, MatchReason
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS, DataWait, Deferral
from mendflow.core.scheduling.fair_share import FairShares, ShareOrder, project_of_account
from mendflow.core.scheduling.job_heap import Entry, Files, order_key, since
from mendflow.core.scheduling.limit_levels import LimitLevels
from mendflow.core.scheduling.matching import Match
from mendflow.core.scheduling.offer import IdleResources, Offer, free_for_one, free_in_total, free_when_empty
from mendflow.core.scheduling.ready_jobs import ReadyJobs

PATIENCE_MS = 60_000
"""How long a job may be passed over before a pilot is reserved for it."""

RESERVATION_SILENT_MS = 60_000
"""The reservation of a pilot that has not asked for this long ends."""

WAKE_BATCH_MAX = 1000
"""How many delayed jobs one match moves into the queue; the next match continues."""

LOOK_BEHIND_EVERY = 8
"""Every so many matches, the jobs behind the heads of rough shapes go first, so that none is hidden for ever."""

LOOKS_LIKE = 4
"""How many similar jobs are examined per wanted one."""

PARTS_A_REQUEST = 8
"""Where several accounts wait, a pilot that wants many jobs gets them in so many parts, each from whose turn it is."""

DelayedEntry = tuple[Instant, int, JobId, Resources, Files, str]


class WaitingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of like needs that wait, by the first of them in order. `has_pilot`: some pilot could take it, were it
    empty; otherwise none can since `unable_since`."""

    needs: Resources
    first: JobId
    since: Instant
    jobs: int
    has_pilot: bool
    unable_since: Instant = 0

    def unable(self, known_since: Instant) -> "WaitingGroup":
        return msgspec.structs.replace(self, unable_since=max(known_since, self.since))


class Reservation:
    """What a pilot is reserved for, and when it last asked."""

    __slots__ = ("asked_at", "job")

    def __init__(self, job: JobId, asked_at: Instant) -> None:
        self.job = job
        self.asked_at = asked_at


class JobQueue:
    """`caches` is what pilots have, `limits` what is free of named limits, `shares` whose jobs go first; `chosen`
    explains what was taken last."""

    def __init__(self, *, patience_ms: int = PATIENCE_MS, data_wait_ms: int = DATA_WAIT_MS) -> None:
        """Without `data_wait_ms` no job is kept back."""
        self._patience_ms = patience_ms
        self.caches = CacheIndex()
        self.limits = LimitLevels()
        self.shares = FairShares()
        self.chosen: dict[JobId, MatchReason] = {}
        self._wait = DataWait(self.caches, data_wait_ms)
        self._overtaken: dict[JobId, int] = {}
        self._line = ReadyJobs()
        self._later: dict[JobId, DelayedEntry] = {}
        self._alarms: list[DelayedEntry] = []
        self._kept: dict[PilotId, Reservation] = {}
        self._keeps: dict[JobId, PilotId] = {}
        self._serial = 0
        self._turn = 0

    def __len__(self) -> int:
        return len(self._line.waiting) + len(self._later)

    def __contains__(self, id: JobId) -> bool:
        return id in self._line.waiting or id in self._later

    def add(
        self,
        id: JobId,
        resources: Resources,
        priority: int,
        since: Instant,
        not_before: Instant = 0,
        files: Files = (),
        account: str = "",
    ) -> None:
        """Add a job. `since` is when it started to wait, and gives its place among those of its priority. `files` are
        its inputs, each once. `account` is whose share it counts against."""
        assert id not in self, f"job {id} waits already"
        self._serial += 1
        place = order_key(priority, since, self._serial)
        if not_before > since:
            later = self._later[id] = (not_before, place, id, resources, files, account)
            heappush(self._alarms, later)
        else:
            self._line.add(place, id, resources, files, account)

    def remove(self, id: JobId) -> bool:
        """Remove a job; whether it was waiting."""
        entry = self._line.waiting.get(id)
        if entry is None:
            return self._later.pop(id, None) is not None
        self._line.remove(entry)
        self._gone(id)
        return True

    def take(self, offer: Offer, most: int, now: Instant, limited_most: int | None = None) -> list[JobId]:
        """The jobs that this pilot gets, at most so many, and of those that use named limits at most `limited_most`;
        they no longer wait. If it gets less, it is idle."""
        self.wake(now)
        self.chosen = {}
        kept_back = self._wait.begin_request(offer.pilot)
        taken: list[JobId] = []
        if most > 0 and self._line.waiting:
            room = self.limits.room(most if limited_most is None else limited_most)
            taken = self._take(msgspec.structs.replace(offer, limits=room), most, now)
        if self._overtaken or self._wait.kept:
            for id in taken:
                self._gone(id)
        if kept_back:
            self._wait.return_jobs(kept_back)
        if len(taken) < most:
            self._wait.pilot_idle(offer, most - len(taken), now)
        return taken

    def expect(self, offer: Offer, most: int, now: Instant) -> None:
        """The pilot is about to ask for so many jobs."""
        self._wait.pilot_idle(offer, most, now)

    def mark_busy(self, pilot: PilotId) -> None:
        """The pilot wants nothing now: nothing is kept back for it."""
        self._wait.return_jobs(self._wait.begin_request(pilot))

    def take_freed(self, now: Instant) -> bool:
        """Whether jobs that were kept back have been freed since the last call."""
        return self._wait.take_freed(now)

    def kept_back(self, id: JobId, now: Instant) -> Deferral | None:
        """Which pilot a job is kept back for, because of its data."""
        return self._wait.of(id, now)

    def overtaken_count(self, id: JobId) -> int:
        """How often others overtook it because of their data while it was the first."""
        return self._overtaken.get(id, 0)

    def jobs_ahead(self, id: JobId, now: Instant) -> int:
        """How many jobs are before this one. Scans all of them: for a person's question, not for matching."""
        waiting, line = self._line.waiting, self._line
        entry = waiting.get(id)
        if entry is None:
            return len(waiting)
        if len(line.accounts) == 1:
            return sum(other[0] < entry[0] for other in waiting.values())
        mine, first = line.shape(entry).place.account, self.accounts_first(id, now)
        accounts = ((other, line.shape(other).place.account) for other in waiting.values())
        return sum(account in first or (account == mine and other[0] < entry[0]) for other, account in accounts)

    def accounts_first(self, id: JobId, now: Instant) -> set[str]:
        """The accounts whose jobs go before this one, because they have had less of their share."""
        entry = self._line.waiting.get(id)
        if entry is None or len(self._line.accounts) == 1:
            return set()
        mine, before = self._line.shape(entry).place.account, set[str]()
        order = ShareOrder(self.shares, self._line.accounts, now)
        while (account := order.first()) is not None and account != mine:
            before.add(account)
            order.drop()
        return before

    def waiting(self, offers: Iterable[Offer]) -> list[WaitingGroup]:
        """The waiting jobs, one entry per shape. It examines shapes and kinds of pilots, never all jobs: others behind
        the head of a rough shape are seen when they reach its head."""
        rooms = IdleResources(offers)
        return [
            WaitingGroup(needs=head[2], first=head[1], since=since(head), jobs=jobs, has_pilot=rooms.any_fits(head[2]))
            for shape in self._line.shapes()
            for head, jobs in ((shape.heap[0], len(shape.heap) - shape.dead),)
        ]

    def limited(self) -> list[WaitingGroup]:
        """The waiting jobs that use named limits."""
        if not any(shape.picky is None or shape.picky.named_limits for shape in self._line.shapes_that_choose()):
            return []
        return [each for each in self.waiting(()) if each.needs.named_limits]

    def depths(self) -> dict[str, int]:
        """How many jobs may be taken now, by required site."""
        depths: Counter[str] = Counter()
        for places in self._line.accounts.values():
            for site, place in places.items():
                depths[site] += sum(len(shape.heap) - shape.dead for shape in place.shapes.values())
        return depths

    def depths_by_project(self) -> dict[str, int]:
        """How many jobs may be taken now, by project."""
        depths: Counter[str] = Counter()
        for account, places in self._line.accounts.items():
            jobs = (len(shape.heap) - shape.dead for place in places.values() for shape in place.shapes.values())
            depths[project_of_account(account)] += sum(jobs)
        return depths

    def depths_later(self) -> dict[str, int]:
        """How many are delayed, by site."""
        return Counter(later[3].site for later in self._later.values())

    def similar_jobs(self, first: JobId, most: int) -> list[JobId]:
        """Waiting jobs of the same needs as this one, including itself; at most so many, of those near it in the
        queue."""
        waiting = self._line.waiting
        entry = waiting.get(first)
        if entry is None:
            return []
        near = self._line.shape(entry).heap[: LOOKS_LIKE * most]
        found = [each[1] for each in near if each[2] == entry[2] and waiting.get(each[1]) is each]
        return (found if first in found else [first, *found])[:most]

    def next_wake(self) -> Instant | None:
        """When the next delayed job is due, if any."""
        while self._alarms and self._later.get(self._alarms[0][2]) is not self._alarms[0]:
            heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def wake(self, now: Instant) -> None:
        """Move jobs whose delay is over into the queue."""
        for _ in range(WAKE_BATCH_MAX):
            if not self._alarms or self._alarms[0][0] > now:
                return
            later = heappop(self._alarms)
            if self._later.get(later[2]) is later:
                del self._later[later[2]]
                self._line.add(*later[1:])

    def reserved_for(self, pilot: PilotId) -> JobId | None:
        """The job that this pilot is reserved for."""
        kept = self._kept.get(pilot)
        return kept.job if kept is not None and kept.job in self._line.waiting else None

    def leave(self, pilot: PilotId) -> None:
        """The pilot is gone."""
        self.forget(pilot)
        self.mark_busy(pilot)
        self.caches.forget(pilot)

    def forget(self, pilot: PilotId) -> None:
        """The pilot is no longer reserved."""
        kept = self._kept.pop(pilot, None)
        if kept is not None:
            self._keeps.pop(kept.job, None)

    def _take(self, offer: Offer, most: int, now: Instant) -> list[JobId]:
        kept = self._kept_entry(offer, now)
        if kept is not None and free_for_one(offer).fits(kept[2]):
            self.forget(offer.pilot)
            self._line.remove(kept)
            return [kept[1]]
        accounts = self._line.accounts
        if len(accounts) > 1 and kept is None:
            return self._take_fairly(offer, most, now)
        of_one = self._line.shape(kept).place.account if kept is not None else next(iter(accounts))
        match = Match(self._line, offer, accounts[of_one])
        if kept is None:
            kept = self._keep(match, offer, now)
        self._turn += kept is None
        return self._take_matched(match, offer, most, now, kept)

    def _take_matched(self, match: Match, offer: Offer, most: int, now: Instant, kept: Entry | None) -> list[JobId]:
        by_data = self._by_data(match, offer, now)
        taken = self._take_by(by_data or match, match, most, kept)
        if by_data is not None:
            self.chosen |= by_data.chosen
        return taken

    def _take_fairly(self, offer: Offer, most: int, now: Instant) -> list[JobId]:
        """Each part comes from the account whose turn it is by then. A pilot that is reserved for a job of one gets
        nothing of those that come later."""
        line, room, part = self._line, free_in_total(offer), -(-most // PARTS_A_REQUEST)
        order = ShareOrder(self.shares, line.accounts, now)
        looked: set[str] = set()
        taken: list[JobId] = []
        self._turn += 1
        while len(taken) < most and (account := order.first()) is not None:
            match, kept = Match(line, offer, line.accounts[account], room), None
            if account not in looked:
                looked.add(account)
                kept = self._keep(match, offer, now, others=True)
            free = room.cpus
            got = self._take_matched(match, offer, min(part, most - len(taken)), now, kept)
            taken += got
            if kept is not None:
                break
            order.charge(account, free - room.cpus)
            if not got or account not in line.accounts:
                order.drop()
        return taken

    def _by_data(self, match: Match, offer: Offer, now: Instant) -> DataMatch | None:
        """Whether data matters: waiting jobs read local files, or files that an idle pilot may have."""
        wanted = self._line.wanted
        if not wanted.jobs:
            return None
        here = LocalBytes(self.caches, wanted, self.caches.of(offer.pilot), self._turn)
        return DataMatch(match, here, self._wait, self._overtaken, now) if here.counts or self._wait else None

    def _take_by(self, order_key: Match | DataMatch, match: Match, most: int, kept: Entry | None) -> list[JobId]:
        if kept is not None:
            return order_key.take(most, before=kept[0])
        taken = match.take_behind(most, self._turn) if self._turn % LOOK_BEHIND_EVERY == 0 else []
        taken += order_key.take(most - len(taken))
        if len(taken) < most:
            taken += match.take_behind(most - len(taken), self._turn)
        return taken

    def _gone(self, id: JobId) -> None:
        self._overtaken.pop(id, None)
        self._wait.remove(id)

    def _kept_entry(self, offer: Offer, now: Instant) -> Entry | None:
        """The job that this pilot is reserved for, if that still makes sense."""
        kept = self._kept.get(offer.pilot)
        if kept is None:
            return None
        kept.asked_at = now
        entry = self._line.waiting.get(kept.job)
        when_empty = free_when_empty(offer)
        if entry is None or when_empty is None or not when_empty.fits(entry[2]):
            self.forget(offer.pilot)
            return None
        return entry

    def _keep(self, match: Match, offer: Offer, now: Instant, *, others: bool = False) -> Entry | None:
        """Reserve the pilot for a job that was passed over for too long and would be again now."""
        when_empty = free_when_empty(offer)
        if when_empty is None:
            return None
        elder = match.find_passed_over(when_empty, now - self._patience_ms, others=others)
        if elder is None:
            return None
        holder = self._keeps.get(elder[1])
        if holder is not None:
            if now - self._kept[holder].asked_at < RESERVATION_SILENT_MS:
                return None
            self.forget(holder)
        self._kept[offer.pilot] = Reservation(elder[1], now)
        self._keeps[elder[1]] = offer.pilot
        return elder
