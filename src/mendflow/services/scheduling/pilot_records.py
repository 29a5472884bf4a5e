"""What a server knows of its pilots: in memory only, reported anew by each exchange.

Which attempts a pilot holds, and whether it has confirmed them, is here; until when it may hold them is in
core/scheduling/leases.py. Neither is written to disk: after a restart both are made from the documents of running
jobs."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from mendflow.core.model.data import CacheUpdate
from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Measurements, Resources
from mendflow.core.model.sync import NOT_STARTED, AttemptOrder, AttemptStatus, Capacity, LogRequest, SyncRequest
from mendflow.core.model.values import Value, check_value
from mendflow.core.model.views import PilotView
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.report_bounds import bounded_measures, bounded_values, cut_log

NO_TOKEN = "local"
"""The owner of all pilots of a server without tokens."""

PAUSED_CHARS_MAX = 300
NO_CAPACITY = Capacity(slots=0, cpus=0.0, memory_bytes=0, disk_bytes=0)


class PilotNames(Protocol):
    """Knows whose the names of pilots are."""

    async def claim(self, pilot: PilotId, who: str) -> str:
        """Who has the name: this token, unless it is another's."""
        ...

    def release(self, pilot: PilotId) -> None:
        """The pilot has left, or is lost."""
        ...


class SubmissionClaim(NamedTuple):
    """What a pilot says of its submission, and whether that is so."""

    name: str
    secret: str
    holds: bool


class GrantedAttempt:
    """An attempt that is with a pilot. `since` is the serial of the answer that granted it, `begun` whether the pilot
    has reported that it has begun. `runs` is what people are shown: until the pilot reports which have begun, as many
    count as running as it had free slots. Measures and values are the latest that it reported."""

    __slots__ = ("begun", "is_staging", "is_storing", "measures", "runs", "since", "values")

    def __init__(self, since: int | None, *, runs: bool = False) -> None:
        self.since = since
        self.begun = False
        self.is_staging = False  # its files are fetched, or its software is made ready
        self.is_storing = False  # the job has ended, and its files are stored
        self.runs = runs
        self.measures: Measurements | None = None
        self.values: dict[str, Value] | None = None

    def was_delivered(self, request: SyncRequest) -> bool:
        """Whether the pilot had read the answer that granted it when it sent this."""
        return self.since is not None and request.heard >= self.since

    def hear(self, beat: AttemptStatus, *, ahead: bool = False) -> bool:
        """Record a report; whether the attempt has started or stopped running by that. `ahead`: it is made ready while
        it has no slot."""
        runs, ran = beat.state != "held" and not ahead, self.runs
        self.runs = runs
        self.begun |= beat.state not in NOT_STARTED
        self.is_staging = beat.state == "staging"
        self.is_storing = beat.state == "keeping"
        self.measures = bounded_measures(beat.measures)
        if beat.values and not check_value(beat.values):
            self.values = bounded_values(beat.values)
        return runs is not ran


class PilotRecord:
    def __init__(self, id: PilotId) -> None:
        self.id = id
        self.owner = ""
        self.host = ""
        self.site = ""
        self.capacity = NO_CAPACITY
        self.want = 0
        self.attempts = 0  # all its attempts, whichever servers they belong to, as far as it reports them
        self.seen_at: Instant = 0
        self.sent_at = 0  # its newest request, by its own clock
        self.ends_at: Instant = 0
        self.newest = 0
        self.front = ""  # the server that the pilot is connected to, if it is not this one
        self.paused = ""  # why it takes no new job for now
        self.paused_since: Instant = 0
        self.drained = ""  # who wants that it takes no new job, and why
        self.is_unfit = False  # it takes no job ever again, and only delivers its results
        self.projects: frozenset[str] | None = None  # those that it works for; None: all
        self.submission = ""  # the name under which it was submitted to a batch system
        self.claim: SubmissionClaim | None = None  # what it last said of that
        self.cache: CacheUpdate | None = None  # how it is shared; its content is in the queue
        self.cache_asked = -1  # the version of it that the pilot was asked about
        self.wants_jobs = False  # our queue had fewer jobs for it than it wanted
        self.released = False
        self.held: dict[JobId, GrantedAttempt] = {}
        # accepted reports, with the request that brought them, until the pilot has the answer to that
        self._accepted: dict[tuple[JobId, int], int] = {}
        self.orders: list[AttemptOrder] = []
        self.log_requests: list[LogRequest] = []
        self.log_tails: dict[JobId, str] = {}
        self.wake = asyncio.Event()

    def hear_log(self, job: JobId, tail: str) -> None:
        """The end of the log of a running job, as it may be shown."""
        self.log_tails[job] = cut_log(tail)

    @property
    def lacks_room(self) -> bool:
        """Whether it takes no new job until there is room on its disk."""
        return bool(self.paused) and not self.is_unfit

    def hear(self, request: SyncRequest, now: Instant) -> None:
        self.host = request.host
        self.site = request.site
        self.capacity = request.capacity
        self.want = request.want
        self.attempts = request.taken.attempts if request.taken is not None else 0
        self.seen_at = now
        self.sent_at = request.sent_at
        self.ends_at = now + request.ttl_ms if request.ttl_ms else 0
        self.newest = request.serial
        self.front = request.front
        self.paused_since = 0 if not request.paused else self.paused_since if self.paused else now
        self.paused = request.paused[:PAUSED_CHARS_MAX]
        self.is_unfit = bool(request.unfit)
        self.submission = request.submission
        self.projects = frozenset(request.projects) or None
        self.released = False
        self._forget_accepted(request.heard)
        for held in self.held.values():
            if held.since is None:  # granted by the server before this one, in an answer older than this request
                held.since = request.serial
        self.wake.set()

    def note_accepted(self, job: JobId, fence: int) -> None:
        """A report was accepted, and its effect is recorded in the ledger."""
        self._accepted[job, fence] = self.newest

    def knows_accepted(self, job: JobId, fence: int) -> bool:
        """Whether this report was accepted in a request whose answer the pilot has not read yet. It sends the next
        request meanwhile, and repeats in it what is not judged as far as it knows."""
        return (job, fence) in self._accepted

    def _forget_accepted(self, heard: int) -> None:
        accepted = self._accepted
        while accepted and accepted[first := next(iter(accepted))] <= heard:
            del accepted[first]

    def meet(self, view: PilotView, server: str, seen_at: Instant) -> None:
        """Record a pilot that is connected to another server."""
        self.host, self.site, self.capacity = view.host, view.site, view.capacity
        self.attempts = view.capacity.slots - view.free_slots
        self.front, self.want, self.seen_at = server, 0, seen_at
        self.submission = view.submission
        self.projects = frozenset(view.projects) or None

    @property
    def free_slots(self) -> int:
        return max(0, self.capacity.slots - max(len(self.held), self.attempts))

    def belongs_to(self, who: str) -> bool:
        """Whether it uses the token that it first used, or was granted its jobs under: one pilot cannot report for
        another. Without tokens all are the same."""
        if who != NO_TOKEN:
            self.owner = self.owner or who
        return self.owner in ("", who)

    def slots_open(self) -> int:
        """Slots in which nothing runs, as far as is known; prefetched jobs take none."""
        return self.capacity.slots - sum(held.runs for held in self.held.values())

    def take_orders(self) -> list[AttemptOrder]:
        orders, self.orders = self.orders, []
        return orders

    def take_log_requests(self) -> list[LogRequest]:
        requests, self.log_requests = self.log_requests, []
        return requests

    def offer(self, held: Iterable[Resources], *, rounds: int, now: Instant, idle_ms: int = 0) -> Offer:
        """The free resources besides the jobs that it holds. `rounds` is how many times over it means to use them,
        `idle_ms` how long it waits if there is nothing for it."""
        whole = self.capacity
        cpus, memory, disk, gpus = whole.cpus, whole.memory_bytes, whole.disk_bytes, whole.gpus
        for needs in held:
            cpus -= needs.cpus
            memory -= needs.memory_bytes
            disk -= needs.disk_bytes
            gpus -= needs.gpus
        return Offer(
            cpus=cpus,
            memory_bytes=memory,
            disk_bytes=disk,
            gpus=gpus,
            ttl_ms=max(1, self.ends_at - now) if self.ends_at else 0,
            site=self.site,
            host=self.host,
            rounds=rounds,
            pilot=self.id,
            whole=whole,
            idle_ms=idle_ms,
            projects=self.projects,
        )

    def view(self, now: Instant, left_ms: int, cache: tuple[int, int] = (0, 0)) -> PilotView:
        """`cache` is the number of files in its cache, and their bytes."""
        return PilotView(
            id=self.id,
            host=self.host,
            site=self.site,
            capacity=self.capacity,
            free_slots=self.free_slots,
            running=list(self.held),
            state="gone" if left_ms <= 0 else "active" if self.seen_at else "silent",
            seen_ms_ago=now - self.seen_at if self.seen_at else -1,
            lease_ms_left=max(0, left_ms),
            front=self.front,
            submission=self.submission,
            cache_files=cache[0],
            cache_bytes=cache[1],
            projects=sorted(self.projects or ()),
            drained=self.drained,
            busy_slots=self.capacity.slots - self.slots_open(),
        )
