"""Counters and histograms, and lengths of time that one clock measured each."""

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Measurements, Outcome
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.stats import OTHER, HistogramView, merge_histograms
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as life
from mendflow.services.base.counters import Histogram, JobMetrics, LabeledCounter, ServerMetrics, StoreMetrics
from mendflow.services.observe.metered_store import MeteredStore, store_name
from mendflow.stores.contract import Append, Put, StoredDocument
from mendflow.stores.memory import MemoryStore

POLICY = life.RetryPolicy()


def job(*, now: int = 1_000) -> Job:
    return life.create(JobId("c/1"), CaseId("c"), JobSpec(item=ItemId("a"), command="true"), now=now)


def happen(counts: JobMetrics, job: Job, events: list[job_events.JobEvent]) -> None:
    for event in events:
        job_events.evolve(job, event)
        counts.job_changed(job, event)


def test_a_histogram_counts_what_is_at_most_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    seen = histogram.view()
    assert (seen.bounds, seen.counts) == ([0.1, 1.0], [2, 1, 1])
    assert seen.sum == pytest.approx(7.65)


def test_quantiles_are_found_inside_their_bucket() -> None:
    seen = HistogramView(bounds=[1.0, 2.0], counts=[50, 50, 0])
    assert seen.quantile(0.5) == 1.0
    assert seen.quantile(0.75) == 1.5
    assert HistogramView(bounds=[1.0], counts=[0, 3]).quantile(0.5) == 1.0
    assert HistogramView(bounds=[1.0], counts=[0, 0]).quantile(0.5) is None


def test_what_came_since_is_the_difference_unless_the_server_was_started_again() -> None:
    then = HistogramView(bounds=[1.0], counts=[3, 1], sum=2.0)
    now = HistogramView(bounds=[1.0], counts=[5, 1], sum=3.0)
    assert now.minus(then) == HistogramView(bounds=[1.0], counts=[2, 0], sum=1.0)
    assert then.minus(now) == then
    assert merge_histograms([then, now]).counts == [8, 2]


def test_a_series_has_so_many_keys_and_one_for_the_rest() -> None:
    series = LabeledCounter(width=2, most=2)
    for flow in ("a", "b", "c", "d", "a"):
        series.add(flow, "failed")
    assert dict(series.items()) == {("a", "failed"): 2, ("b", "failed"): 1, (OTHER, OTHER): 2}


def test_an_attempt_is_counted_by_its_end_and_site() -> None:  # JS-8
    counts, one = JobMetrics(), job()
    happen(counts, one, life.grant(one, PilotId("p"), now=3_000, site="north"))
    happen(counts, one, life.lose(one, now=4_000, policy=POLICY))
    happen(counts, one, life.grant(one, PilotId("p"), now=5_000, site="south"))
    verdict = life.report(one, PilotId("p"), 2, Outcome(), now=6_000, policy=POLICY)
    happen(counts, one, list(verdict.events))
    assert counts.granted == 2
    assert dict(counts.ends.items()) == {("lost", "north"): 1, ("completed", "south"): 1}
    assert counts.ended == {"completed": 1, "failed": 0}
    assert counts.queue_s.sum == pytest.approx(2.0 + 1.0)


def test_a_job_that_is_cancelled_before_anybody_held_it_is_no_attempt() -> None:
    counts, one = JobMetrics(), job()
    happen(counts, one, life.cancel(one, now=2_000))
    assert not dict(counts.ends.items())
    assert counts.ended["failed"] == 1


@pytest.mark.parametrize("skew_ms", [-3_600_000, 0, 3_600_000])
def test_no_latency_depends_on_clocks_that_agree(skew_ms: int) -> None:  # JS-8
    """It could run at 1 s, was given away at 2 s, started at 4 s, ended at 9 s, and this was sent at 9.5 s."""
    counts, one = JobMetrics(), job(now=1_000)
    happen(counts, one, life.grant(one, PilotId("p"), now=2_000))
    measures = Measurements(started_at=4_000 + skew_ms, ended_at=9_000 + skew_ms, ran_ms=5_000)
    counts.report_accepted(one, measures, now=9_500, sent_at=9_500 + skew_ms)
    assert counts.start_s.sum == pytest.approx(3.0)
    assert counts.known_s.sum == pytest.approx(0.5)
    assert counts.run_s.sum == pytest.approx(5.0)
    assert counts.queue_s.sum == pytest.approx(1.0)


def test_what_began_to_wait_by_another_clock_is_not_measured() -> None:
    counts, one = ServerMetrics(), job(now=1_000)
    counts.cases_loaded(trees=1, now=5_000)
    happen(counts.jobs, one, life.grant(one, PilotId("p"), now=6_000))
    counts.jobs.report_accepted(one, Measurements(started_at=1, ended_at=2), now=7_000, sent_at=3)
    assert counts.trees_taken == 1
    assert sum(counts.jobs.queue_s.counts) == sum(counts.jobs.start_s.counts) == 0
    assert sum(counts.jobs.known_s.counts) == 1


def test_a_repair_is_counted_by_what_came_of_it() -> None:
    counts = ServerMetrics()
    decision = Decision(id="d", case=CaseId("c"), flow="f", type=ExceptionType.ABORT, at=1, state="ignored")
    counts.count_repair(decision)
    decision.exlet, decision.result = "again", "recovered"
    counts.count_repair(decision)
    assert dict(counts.repairs.items()) == {("", "", "", "ignored"): 1, ("", "", "again", "recovered"): 1}


def test_the_store_is_away_for_as_long_as_it_is() -> None:
    counts = ServerMetrics()
    counts.store_lost(1_000)
    counts.store_lost(1_500)
    assert counts.away_ms(3_000) == 2_000
    counts.store_returned(4_000)
    counts.store_lost(10_000)
    assert counts.away_ms(10_500) == 3_500


class Away(MemoryStore):
    async def get(self, kind: str, id: str) -> StoredDocument | None:
        raise StoreUnavailable("away")


async def test_a_metered_store_counts_calls_conflicts_and_failures_and_changes_nothing() -> None:  # JS-8
    counts = StoreMetrics()
    store = MeteredStore(Away(), counts)
    await store.open()
    assert store_name(store) == "away"
    await store.write([Put("job", "a", b"{}", 0), Append("s", [b"1"], 0)])
    await store.write([Put("job", "a", b"{}", 0), Append("s", [b"1"], 0)])
    assert [each.id async for each in store.scan("job")] == ["a"]
    with pytest.raises(StoreUnavailable):
        await store.get("job", "a")
    await store.close()
    assert counts.conflicts.flat() == {"job": 1, "stream": 1}
    assert counts.errors == {"get": 1}
    assert {name: sum(each.counts) for name, each in counts.seconds.items()} == {
        "open": 1,
        "write": 2,
        "scan": 1,
        "get": 1,
    }
