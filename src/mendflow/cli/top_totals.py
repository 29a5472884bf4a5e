"""Sums up the counters of several servers at two moments, with rates.

A restarted server counts from zero, so its value is the increase. One that was absent at the earlier moment has no rate
yet."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.stats import HistogramView, LimitUse, RunningJob, StatsView, merge_histograms

LATENCIES = {
    "queued": "queue_s",
    "started": "start_s",
    "known": "known_s",
    "ran": "run_s",
    "flushed": "ledger_s",
}


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds; None where nothing was measured."""

    count: int
    p50: float | None
    p95: float | None


class ClusterTotals(msgspec.Struct, frozen=True, kw_only=True):
    """`over_s` is the period of the rates; 0 means averages since the servers started. Rates are per second."""

    servers: int
    over_s: float
    jobs: dict[str, dict[str, int]]
    levels: dict[int, int]
    limits: list[LimitUse]
    slots: int
    slots_free: int
    pilots: int
    cases: dict[str, int]
    rates: dict[str, float]
    latencies: dict[str, Latency]
    store: dict[str, Latency]
    conflicts: int
    leases_lost: int
    repairs: list[tuple[str, int]]
    alerts: dict[str, int]
    running: list[RunningJob]


def cluster_totals(now: Sequence[StatsView], before: Sequence[StatsView] = ()) -> ClusterTotals:
    """Requires at least one server."""
    earlier = {each.server: each for each in before}
    over_s = (now[0].at - earlier[now[0].server].at) / 1000 if now[0].server in earlier else 0.0
    jobs: dict[str, Counter[str]] = {}
    for count in (count for each in now for count in each.jobs):
        jobs.setdefault(count.state, Counter())[count.site] += count.jobs
    return ClusterTotals(
        servers=len(now),
        over_s=over_s,
        jobs={state: {site: n for site, n in sites.items() if n} for state, sites in jobs.items()},
        levels={level: sum(each.levels.get(level, 0) for each in now) for level in sorted({*_levels(now)})},
        limits=list({limit.name: limit for each in now for limit in each.limits}.values()),
        slots=sum(site.slots for each in now for site in each.pilots),
        slots_free=sum(site.free_slots for each in now for site in each.pilots),
        pilots=sum(site.pilots for each in now for site in each.pilots),
        cases=_by_status(now),
        rates=_rates(now, earlier),
        latencies={
            name: latency([getattr(each, field) for each in now], [getattr(each, field) for each in before])
            for name, field in LATENCIES.items()
        },
        store=_store(now),
        conflicts=sum(sum(each.store_conflicts.values()) for each in now),
        leases_lost=sum(each.leases_lost for each in now),
        repairs=_repairs(now),
        alerts=_max_by_key(each.alerts for each in now),
        running=sorted((job for each in now for job in each.running), key=lambda job: -job.ran_ms),
    )


def latency(now: Sequence[HistogramView], before: Sequence[HistogramView] = ()) -> Latency:
    """Over the recent events if there are any, else over all."""
    whole = merge_histograms(now)
    since = whole.minus(merge_histograms(before)) if before else whole
    seen = since if since.count else whole
    return Latency(count=seen.count, p50=seen.quantile(0.5), p95=seen.quantile(0.95))


def _levels(now: Sequence[StatsView]) -> Iterable[int]:
    return (level for each in now for level in each.levels)


def _by_status(now: Sequence[StatsView]) -> dict[str, int]:
    found = Counter[str]()
    for count in (count for each in now for count in each.cases):
        found[count.status] += count.cases
    return dict(found)


def _max_by_key(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    """The maximum, because each server reports the alerts of all."""
    found: dict[str, int] = {}
    for part in parts:
        for kind, count in part.items():
            found[kind] = max(count, found.get(kind, 0))
    return found


def _totals(stats: StatsView) -> Counter[str]:
    found = Counter({"submitted": stats.jobs_submitted, "granted": stats.attempts_granted})
    for count in stats.attempts:
        found[count.end] += count.attempts
    found["repairs"] = sum(count.repairs for count in stats.repairs)
    return found


def _rates(now: Sequence[StatsView], earlier: dict[str, StatsView]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in now:
        totals, then = _totals(each), earlier.get(each.server)
        if earlier and then is None:
            continue
        same = then is not None and then.uptime_ms <= each.uptime_ms
        spent_s = (each.at - then.at if then is not None and same else each.uptime_ms) / 1000
        for name, count in totals.items():
            grown = count - (_totals(then)[name] if then is not None and same else 0)
            found[name] = found.get(name, 0.0) + (grown / spent_s if spent_s > 0 else 0.0)
    return found


def _store(now: Sequence[StatsView]) -> dict[str, Latency]:
    calls: dict[str, list[HistogramView]] = {}
    for call in (call for each in now for call in each.store_calls):
        calls.setdefault(call.operation, []).append(call.seconds)
    return {operation: latency(seconds) for operation, seconds in calls.items()}


def _repairs(now: Sequence[StatsView]) -> list[tuple[str, int]]:
    found = Counter[str]()
    for count in (count for each in now for count in each.repairs):
        rule = f"{count.rules}#{count.rule}" if count.rules else "no rule"
        found[" ".join(filter(None, (rule, count.exlet, count.outcome)))] += count.repairs
    return found.most_common()
