"""A server in numbers, as /metrics and `mendflow admin top` show it.

Counters grow for as long as the process lives, and whoever wants a rate takes two looks. A histogram is kept as plain
counts of fixed buckets, so that those of several servers, or of two moments, can be added and subtracted. No number
has the id of a case or of a job in its labels: there are as many series as there are sites, flows and rules, and of
those only so many, and the rest together."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId

OTHER = "other"
"""What everything is counted under for which there is no series of its own."""


class HistogramView(msgspec.Struct, frozen=True, kw_only=True):
    """`counts` has one number for each of the `bounds`, of what is at most that, and one more for what is beyond."""

    bounds: list[float]
    counts: list[int]
    sum: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def plus(self, other: "HistogramView") -> "HistogramView":
        assert self.bounds == other.bounds, "histograms of other buckets cannot be added"
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        return HistogramView(bounds=self.bounds, counts=counts, sum=self.sum + other.sum)

    def minus(self, earlier: "HistogramView") -> "HistogramView":
        """What came since; all of it, if the earlier look was at another life of the server."""
        counts = [now - then for now, then in zip(self.counts, earlier.counts, strict=True)]
        if any(count < 0 for count in counts):
            return self
        return HistogramView(bounds=self.bounds, counts=counts, sum=self.sum - earlier.sum)

    def quantile(self, part: float) -> float | None:
        """The value that this part of all is at most, as if they lay evenly in their bucket; None: there are none. What
        lies beyond the last bound is said to be at it."""
        rank, below = part * self.count, 0
        if not self.count:
            return None
        for place, count in enumerate(self.counts[:-1]):
            if below + count >= rank and count:
                low = self.bounds[place - 1] if place else 0.0
                return low + (self.bounds[place] - low) * (rank - below) / count
            below += count
        return self.bounds[-1]


class JobsCount(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are not over. `state` is waiting, delayed (until a time), suspended, held (by a pilot that has not
    begun it) or running; `site` where it runs, or must run."""

    state: str
    site: str
    jobs: int


class EndCount(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that have ended: completed, failed, lost, requeued, returned or cancelled."""

    end: str
    site: str
    attempts: int


class RepairCount(msgspec.Struct, frozen=True, kw_only=True):
    rules: str
    rule: str
    exlet: str
    outcome: str
    repairs: int


class CaseCount(msgspec.Struct, frozen=True, kw_only=True):
    flow: str
    status: str
    cases: int


class MessageCount(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that came for a flow: taken, repeated, or answered with a reply, a fault, or the end of a case."""

    flow: str
    result: str
    messages: int


class SiteCount(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    pilots: int
    slots: int
    free_slots: int
    cache_files: int = 0
    cache_bytes: int = 0


class StoreCount(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the store: how long calls took, in seconds, and how many found the store away."""

    operation: str
    seconds: HistogramView
    errors: int = 0


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """`expected_ms` is 0 where nobody knows."""

    job: JobId
    case: CaseId
    item: ItemId
    pilot: PilotId
    host: str
    site: str
    attempt: int
    ran_ms: int
    expected_ms: int = 0

    @property
    def late(self) -> bool:
        return 0 < self.expected_ms < self.ran_ms


class StatsView(msgspec.Struct, frozen=True, kw_only=True):
    """One server. Of jobs, attempts and cases it counts those that live on it; of pilots those that speak to it.
    Lengths of time are in seconds."""

    server: str
    version: str
    store: str
    at: Instant
    uptime_ms: int
    store_up: bool
    store_away_s: float
    servers_alive: int
    servers_closed: int = 0
    trees_taken: int = 0
    jobs: list[JobsCount] = []
    levels: dict[int, int] = {}
    pilots: list[SiteCount] = []
    cases: list[CaseCount] = []
    alerts: dict[str, int] = {}
    jobs_submitted: int = 0
    jobs_ended: dict[str, int] = {}
    attempts_granted: int = 0
    attempts: list[EndCount] = []
    placed: dict[str, int] = {}  # jobs with inputs that pilots got: by data, in their turn, or in order
    input_files: dict[str, int] = {}  # by where they came from: cache, neighbour, elsewhere
    input_bytes: dict[str, int] = {}
    reports_refused: int = 0
    leases_lost: int = 0
    cases_started: dict[str, int] = {}
    cases_ended: list[CaseCount] = []
    repairs: list[RepairCount] = []
    queue_s: HistogramView
    start_s: HistogramView
    known_s: HistogramView
    run_s: HistogramView
    ledger_writes: HistogramView
    ledger_s: HistogramView
    store_calls: list[StoreCount] = []
    store_conflicts: dict[str, int] = {}
    store_retries: int = 0
    spans: dict[str, int] = {}
    messages: list[MessageCount] = []
    partner_calls: dict[str, int] = {}  # by how they ended
    transforms: dict[str, int] = {}  # style sheets that were run, by how they ended
    running: list[RunningJob] = []


def merge_histograms(histograms: Sequence[HistogramView]) -> HistogramView:
    """All together. There is at least one."""
    whole = histograms[0]
    for each in histograms[1:]:
        whole = whole.plus(each)
    return whole
