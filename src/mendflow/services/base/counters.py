"""The counters and histograms of one server. They outlive its services, which may be rebuilt.

Instants of two machines are never compared. A pilot says when it sent its request, by the same clock that timed the
attempt; so it reports durations, and this server measures durations by its own clock. How long a job waited for its
start is the time from when it could have run until its end is reported here, minus the time from its start until the
pilot sent that report: each measured by one clock. The only error is the network delay."""

import time
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job, JobState, Measurements
from mendflow.core.model.repair import Decision
from mendflow.core.model.stats import OTHER, HistogramView
from mendflow.core.scheduling import job_events

LABELS_MAX: Final = 100
"""How many flows, rules or sites have a series of their own: those that came first. A counter must not move from one
series to another, so the largest cannot be chosen."""

LATENCY_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
WAIT_S: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    14400.0,
)
STORE_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)


class Histogram:
    """Counts in fixed buckets. `bounds` and the values for `observe` are in the unit that is reported."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def view(self) -> HistogramView:
        return HistogramView(bounds=list(self.bounds), counts=list(self.counts), sum=self.sum)


class LabeledCounter:
    """A counter for each of a bounded number of keys; all further keys share one."""

    def __init__(self, *, width: int = 1, most: int = LABELS_MAX) -> None:
        self.counts: dict[tuple[str, ...], int] = {}
        self._rest = (OTHER,) * width
        self._labels_max = most

    def add(self, *key: str) -> None:
        counts = self.counts
        if key in counts:
            counts[key] += 1
            return
        if len(counts) >= self._labels_max:
            key = self._rest
        counts[key] = counts.get(key, 0) + 1

    def items(self) -> Iterable[tuple[tuple[str, ...], int]]:
        return self.counts.items()

    def flat(self) -> dict[str, int]:
        """The counts, where each key is one word."""
        return {word: count for (word,), count in self.counts.items()}


SOURCES: Final = ("cache", "neighbour", "elsewhere")
"""Where the inputs of a job come from: its pilot's cache, another pilot's, or further away."""

_END_EVENTS: Final = (job_events.JobFinished, job_events.AttemptRequeued)


class JobMetrics:
    """Attempts and jobs. `trusted_since` is when cases were last loaded from the store: waiting times that began before
    that were measured by another clock, and are not counted."""

    def __init__(self) -> None:
        self.submitted = 0
        self.granted = 0
        self.leases_lost = 0
        self.reports_refused = 0
        # jobs with inputs that pilots got: because of their data, in their turn, or in order
        self.placed = LabeledCounter()
        self.input_files = dict.fromkeys(SOURCES, 0)
        self.input_bytes = dict.fromkeys(SOURCES, 0)
        self.ends = LabeledCounter(width=2)
        self.ended: dict[str, int] = {JobState.COMPLETED.value: 0, JobState.FAILED.value: 0}
        self.queue_s = Histogram(WAIT_S)
        self.start_s = Histogram(WAIT_S)
        self.known_s = Histogram(LATENCY_S)
        self.run_s = Histogram(WAIT_S)
        self.trusted_since: Instant = 0

    def job_changed(self, job: Job, event: job_events.JobEvent) -> None:
        """Called after the event was applied to the job."""
        if type(event) is job_events.AttemptGranted:
            self.granted += 1
            if job.available_at >= self.trusted_since:
                self.queue_s.observe((job.history[-1].granted_at - job.available_at) / 1000)
            return
        if isinstance(event, _END_EVENTS) and job.history:
            last = job.history[-1]
            if last.ended_at == event.at and last.end == event.end:  # otherwise no pilot had it when it was cancelled
                self.ends.add(last.end, last.site)
        if job.outcome is not None:
            self.ended[job.state] += 1

    def report_accepted(self, job: Job, measures: Measurements, *, now: Instant, sent_at: Instant) -> None:
        """A pilot's report was accepted; the job is still as it was before. `sent_at` is when the pilot sent it, by the
        clock that timed the attempt; 0: unknown."""
        if measures.cached_files or measures.fetched_files:
            self._count_inputs(measures)
        if not sent_at or not measures.started_at or not measures.ended_at:
            return
        self.known_s.observe(max(0, sent_at - measures.ended_at) / 1000)
        self.run_s.observe((measures.ran_ms or max(0, measures.ended_at - measures.started_at)) / 1000)
        if job.available_at >= self.trusted_since:
            self.start_s.observe(max(0, now - job.available_at - (sent_at - measures.started_at)) / 1000)

    def _count_inputs(self, measures: Measurements) -> None:
        """Where its inputs came from."""
        own_files, own_bytes = (
            measures.cached_files - measures.shared_files,
            measures.cached_bytes - measures.shared_bytes,
        )
        found = (own_files, own_bytes), (measures.shared_files, measures.shared_bytes)
        for source, (files, size) in zip(
            SOURCES, (*found, (measures.fetched_files, measures.fetched_bytes)), strict=True
        ):
            self.input_files[source] += max(0, files)
            self.input_bytes[source] += max(0, size)


class LedgerMetrics:
    """Batches of writes: how many changes each had, and how long the write took. A batch that failed is not counted."""

    def __init__(self) -> None:
        self.writes = Histogram(SIZES)
        self.seconds = Histogram(STORE_S)
        self._began_ns = self._size = 0

    def began(self, size: int) -> None:
        self._began_ns, self._size = time.perf_counter_ns(), size

    def ended(self) -> None:
        self.writes.observe(self._size)
        self.seconds.observe((time.perf_counter_ns() - self._began_ns) / 1e9)


class StoreMetrics:
    def __init__(self) -> None:
        self.seconds: dict[str, Histogram] = {}
        self.errors: dict[str, int] = {}
        self.conflicts = LabeledCounter()

    def observe_call(self, operation: str, ns: int) -> None:
        known = self.seconds.get(operation)
        if known is None:
            known = self.seconds[operation] = Histogram(STORE_S)
        known.observe(ns / 1e9)

    def failed(self, operation: str) -> None:
        self.errors[operation] = self.errors.get(operation, 0) + 1


class ServerMetrics:
    """All metrics of one server."""

    def __init__(self) -> None:
        self.jobs = JobMetrics()
        self.ledger = LedgerMetrics()
        self.store = StoreMetrics()
        self.cases_started = LabeledCounter()
        self.cases_ended = LabeledCounter(width=2)
        self.repairs = LabeledCounter(width=4)
        self.messages = LabeledCounter(width=2)  # messages for flows, by what was done with them
        self.partner_calls = LabeledCounter()  # by how they ended
        self.transforms = LabeledCounter()  # by how they ended
        self.access_refused = LabeledCounter()  # requests that were not let in, by reason
        self.site_looks = LabeledCounter(width=2, most=LABELS_MAX * 8)  # at sites, by site and how they ended
        self.trees_taken = 0
        self.spans = {"sent": 0, "dropped": 0}
        self.store_away_ms = 0
        self.store_away_since: int | None = None  # by the server's meter, while the store is unreachable

    def count_repair(self, decision: Decision) -> None:
        """Count a decision that is finished."""
        found = decision.conclusion
        rules, rule = (found.rules, str(found.rule)) if found is not None else ("", "")
        self.repairs.add(rules, rule, decision.exlet, decision.result or decision.state)

    def cases_loaded(self, *, trees: int, now: Instant) -> None:
        """Cases were loaded from the store; `trees` of them were taken over from another server."""
        self.trees_taken += trees
        self.jobs.trusted_since = now

    def store_lost(self, now: int) -> None:
        if self.store_away_since is None:
            self.store_away_since = now

    def store_returned(self, now: int) -> None:
        self.store_away_ms = self.away_ms(now)
        self.store_away_since = None

    def away_ms(self, now: int) -> int:
        """For how long the store was unreachable in total."""
        since = self.store_away_since
        return self.store_away_ms + (now - since if since is not None else 0)
