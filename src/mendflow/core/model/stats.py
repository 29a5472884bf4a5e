"""A server in numbers, as /metrics and `mendflow admin top` show it.

Counters grow while the process lives; for a rate, take the difference of two samples. A histogram has plain counts of
fixed buckets, so that those of several servers, or of two moments, can be added and subtracted. No label contains the
id of a case or job: there are as many series as sites, flows and rules, up to a limit, with the rest in one series."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId, item_text

OTHER = "(other)"
"""The series for everything beyond that limit. No project or flow can have this name."""


class HistogramView(msgspec.Struct, frozen=True, kw_only=True):
    """`counts` has one number for each of the `bounds` (at most that value), and one more for larger values."""

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
        """The difference since an earlier sample; the whole if the server was restarted since."""
        counts = [now - then for now, then in zip(self.counts, earlier.counts, strict=True)]
        if any(count < 0 for count in counts):
            return self
        return HistogramView(bounds=self.bounds, counts=counts, sum=self.sum - earlier.sum)

    def quantile(self, part: float) -> float | None:
        """The quantile, by linear interpolation within its bucket; None if empty. Values beyond the last bound count as
        that bound."""
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
    """Jobs that have not ended. `state` is waiting, delayed (until a time), suspended, held (by a pilot that has not
    started it) or running; `site` is where it runs, or must run."""

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
    """Messages for a flow: taken, repeated, or answered with a reply, a fault, or the end of a case."""

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


class SiteLookCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often the server looked at a site, by how that ended: answered and unanswered (by the batch system), unasked
    (nothing depended on it), skipped (the look before was still under way), overtaken (others changed the site too
    often), store-away, failed, or cancelled (the server stopped)."""

    site: str
    result: str
    looks: int


class StoreCount(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the store: durations in seconds, and how many calls found the store away."""

    operation: str
    seconds: HistogramView
    errors: int = 0


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """`expected_ms` is 0 if unknown."""

    job: JobId
    case: CaseId
    item: ItemId
    pilot: PilotId
    host: str
    site: str
    attempt: int
    ran_ms: int
    expected_ms: int = 0
    element: str = ""

    @property
    def shown(self) -> str:
        """The item, with the element that it is for."""
        return item_text(self.item, self.element)

    @property
    def late(self) -> bool:
        return 0 < self.expected_ms < self.ran_ms


class LimitUse(msgspec.Struct, frozen=True, kw_only=True):
    """A named limit, over all servers; `count` is 0 if nobody has set it."""

    name: str
    count: int
    used: int
    waiting: int


class ProjectCount(msgspec.Struct, frozen=True, kw_only=True):
    """A project on one server: what is live there, and the CPUs that its running jobs ask for. `cpu_s` is the CPU time
    of its jobs there that counts in the fair share."""

    project: str
    cases: int = 0
    waiting: int = 0
    running: int = 0
    cpus: float = 0.0
    cpu_s: float = 0.0


class StatsView(msgspec.Struct, frozen=True, kw_only=True):
    """One server. It counts its own jobs, attempts and cases, and the pilots that talk to it. Times are in seconds."""

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
    limits: list[LimitUse] = []  # of all servers
    projects: list[ProjectCount] = []
    jobs_submitted: int = 0
    jobs_ended: dict[str, int] = {}
    attempts_granted: int = 0
    attempts: list[EndCount] = []
    placed: dict[str, int] = {}  # jobs with inputs that pilots got: by data, in their turn, or in order
    input_files: dict[str, int] = {}  # by source: cache, neighbour, elsewhere
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
    partner_calls: dict[str, int] = {}  # by result
    site_looks: list[SiteLookCount] = []
    access_refused: dict[str, int] = {}  # requests that were not let in, by reason
    transforms: dict[str, int] = {}  # style sheets that were run, by result
    running: list[RunningJob] = []


def merge_histograms(histograms: Sequence[HistogramView]) -> HistogramView:
    """The sum; requires at least one."""
    whole = histograms[0]
    for each in histograms[1:]:
        whole = whole.plus(each)
    return whole
