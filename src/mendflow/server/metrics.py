"""The metrics of a server in the format of Prometheus.

Metrics are made when somebody asks, and at no other time. Names follow the conventions of Prometheus: base units,
`_total` for counters, and labels with few values."""

from collections.abc import Iterable, Iterator, Sequence
from platform import python_version
from typing import NamedTuple, get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from mendflow.core.model.alerts import AlertKind
from mendflow.core.model.stats import HistogramView, StatsView

ALERT_KINDS: tuple[str, ...] = get_args(AlertKind)


class MetricsPage(NamedTuple):
    content: bytes
    content_type: str


class _StatsCollector(Collector):
    """One snapshot, as a collector."""

    def __init__(self, stats: StatsView) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        for part in (_server, _current_gauges, _jobs, _cases, _partners, _sites, _latencies, _store):
            yield from part(self._stats)


def render_metrics(stats: StatsView, accept: str) -> MetricsPage:
    """The metrics in the format that the caller prefers: the classic text, or OpenMetrics."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_StatsCollector(stats))
    encode, content_type = choose_encoder(accept)
    return MetricsPage(encode(registry), content_type)


def _server(stats: StatsView) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "mendflow_build_info", "Always 1; the labels say what runs.", labels=["version", "python", "store", "server"]
    )
    info.add_metric([stats.version, python_version(), stats.store, stats.server], 1)
    yield info
    yield _gauge("mendflow_uptime_seconds", "Since the server was started.", stats.uptime_ms / 1000)
    yield _gauge("mendflow_servers", "Living servers on the store, as this one sees them.", stats.servers_alive)
    yield _counter("mendflow_servers_closed", "Servers that this one was the first to find dead.", stats.servers_closed)
    yield _counter("mendflow_takeovers", "Trees of cases that were taken over from other servers.", stats.trees_taken)
    refused = _flatten(stats.access_refused)
    yield _counters("mendflow_access_refused", "Requests that were not let in, by reason.", ["reason"], refused)
    yield _counters("mendflow_trace_spans", "Spans for the collector of traces.", ["result"], _flatten(stats.spans))


def _current_gauges(stats: StatsView) -> Iterator[Metric]:
    yield _gauges(
        "mendflow_jobs",
        "Jobs that are not over, by state and site.",
        ["state", "site"],
        (((each.state, each.site), each.jobs) for each in stats.jobs),
    )
    levels = (((str(level),), count) for level, count in stats.levels.items())
    yield _gauges("mendflow_level_jobs", "Failed jobs that wait in a level for another try.", ["level"], levels)
    for name, help, field in (
        ("mendflow_pilots", "Pilots that speak to this server.", "pilots"),
        ("mendflow_slots", "Slots of these pilots.", "slots"),
        ("mendflow_slots_free", "Slots of these pilots that hold nothing.", "free_slots"),
        ("mendflow_cache_files", "Files in the caches of these pilots.", "cache_files"),
        ("mendflow_cache_bytes", "Bytes in the caches of these pilots.", "cache_bytes"),
    ):
        yield _gauges(name, help, ["site"], (((each.site,), getattr(each, field)) for each in stats.pilots))
    live = (((each.flow, each.status), each.cases) for each in stats.cases)
    yield _gauges("mendflow_cases", "Cases that are not over.", ["flow", "status"], live)
    for name, help, field in (
        ("mendflow_limit", "Named limits: how much there is, of all servers on the store.", "count"),
        ("mendflow_limit_used", "Named limits: how much running jobs use.", "used"),
        ("mendflow_limit_waiting_jobs", "Jobs that wait for a named limit.", "waiting"),
    ):
        yield _gauges(name, help, ["limit"], (((each.name,), getattr(each, field)) for each in stats.limits))
    for name, help, field in (
        ("mendflow_project_cases", "Cases of a project that are not over.", "cases"),
        ("mendflow_project_jobs_waiting", "Jobs of a project that a pilot could take.", "waiting"),
        ("mendflow_project_jobs_held", "Jobs of a project that pilots hold.", "running"),
        ("mendflow_project_cpus", "CPUs that running jobs of a project ask for.", "cpus"),
        ("mendflow_project_share_seconds", "CPU time of a project that counts in the fair share.", "cpu_s"),
    ):
        yield _gauges(name, help, ["project"], (((each.project,), getattr(each, field)) for each in stats.projects))
    alerts = (((kind,), stats.alerts.get(kind, 0)) for kind in ALERT_KINDS)
    yield _gauges("mendflow_alerts_open", "Open alerts, of all servers on the store.", ["kind"], alerts)


def _jobs(stats: StatsView) -> Iterator[Metric]:
    yield _counter("mendflow_jobs_submitted", "Jobs that came into the queue, new ones only.", stats.jobs_submitted)
    yield _counters("mendflow_jobs_ended", "Jobs that are over.", ["state"], _flatten(stats.jobs_ended))
    yield _counter("mendflow_attempts_granted", "Jobs given to pilots.", stats.attempts_granted)
    ends = (((each.end, each.site), each.attempts) for each in stats.attempts)
    yield _counters("mendflow_attempts_ended", "Attempts by how they ended.", ["end", "site"], ends)
    yield _counters(
        "mendflow_jobs_placed", "Jobs with inputs that pilots got, and why.", ["by"], _flatten(stats.placed)
    )
    for what, counts in (("files", stats.input_files), ("bytes", stats.input_bytes)):
        help = f"Inputs of attempts, in {what}, by where they came from."
        yield _counters(f"mendflow_input_{what}", help, ["source"], _flatten(counts))
    yield _counter("mendflow_leases_lost", "Attempts whose pilot was silent for a lease.", stats.leases_lost)
    yield _counter("mendflow_reports_refused", "Reports under a lease that was over.", stats.reports_refused)


def _cases(stats: StatsView) -> Iterator[Metric]:
    yield _counters("mendflow_cases_started", "Cases that began.", ["flow"], _flatten(stats.cases_started))
    ended = (((each.flow, each.status), each.cases) for each in stats.cases_ended)
    yield _counters("mendflow_cases_ended", "Cases that are over.", ["flow", "status"], ended)
    repairs = (((each.rules, each.rule, each.exlet, each.outcome), each.repairs) for each in stats.repairs)
    labels = ["rules", "rule", "exlet", "outcome"]
    yield _counters(
        "mendflow_repairs", "Exceptions by the rule that took care of them, and what came of it.", labels, repairs
    )


def _partners(stats: StatsView) -> Iterator[Metric]:
    messages = (((each.flow, each.result), each.messages) for each in stats.messages)
    yield _counters("mendflow_soap_messages", "Messages that came for flows.", ["flow", "result"], messages)
    calls = _flatten(stats.partner_calls)
    yield _counters("mendflow_partner_calls", "Calls of partners, by how they ended.", ["result"], calls)
    sheets = _flatten(stats.transforms)
    yield _counters("mendflow_transforms", "Style sheets that were run, by how they ended.", ["result"], sheets)


def _sites(stats: StatsView) -> Iterator[Metric]:
    looks = (((each.site, each.result), each.looks) for each in stats.site_looks)
    yield _counters("mendflow_site_looks", "Looks at sites, by how they ended.", ["site", "result"], looks)


def _latencies(stats: StatsView) -> Iterator[Metric]:
    for name, help, seconds in (
        ("mendflow_job_queue_seconds", "From when a job could run until a pilot got it.", stats.queue_s),
        ("mendflow_job_start_seconds", "From when a job could run until it started, known at its end.", stats.start_s),
        ("mendflow_job_run_seconds", "How long attempts ran.", stats.run_s),
        ("mendflow_job_end_known_seconds", "From an attempt's end until its pilot told it.", stats.known_s),
        ("mendflow_ledger_batch_writes", "Writes in one batch of the ledger.", stats.ledger_writes),
        ("mendflow_ledger_flush_seconds", "From a batch's beginning until it is on disk.", stats.ledger_s),
    ):
        yield _histograms(name, help, [], [((), seconds)])


def _store(stats: StatsView) -> Iterator[Metric]:
    yield _gauge("mendflow_store_up", "1 while the server can work with its store.", int(stats.store_up))
    yield _counter("mendflow_store_away_seconds", "For how long it could not, in all.", stats.store_away_s)
    calls = [((each.operation,), each.seconds) for each in stats.store_calls]
    yield _histograms("mendflow_store_seconds", "Calls of the store.", ["operation"], calls)
    errors = (((each.operation,), each.errors) for each in stats.store_calls)
    yield _counters("mendflow_store_errors", "Calls that found the store away.", ["operation"], errors)
    yield _counter("mendflow_store_retries", "How often the store was asked again.", stats.store_retries)
    conflicts = _flatten(stats.store_conflicts)
    yield _counters("mendflow_store_conflicts", "Writes refused because another was faster.", ["kind"], conflicts)


Samples = Iterable[tuple[tuple[str, ...], float]]


def _flatten(counts: dict[str, int]) -> Samples:
    return (((word,), count) for word, count in counts.items())


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _counter(name: str, help: str, value: float) -> Metric:
    return CounterMetricFamily(name, help, value=value)


def _gauges(name: str, help: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counters(name: str, help: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = CounterMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _histograms(
    name: str, help: str, labels: Sequence[str], samples: Iterable[tuple[tuple[str, ...], HistogramView]]
) -> Metric:
    family = HistogramMetricFamily(name, help, labels=labels)
    for values, seen in samples:
        buckets, below = list[tuple[str, float]](), 0
        for bound, count in zip((*map(str, seen.bounds), "+Inf"), seen.counts, strict=True):
            below += count
            buckets.append((bound, below))
        family.add_metric(values, buckets, sum_value=seen.sum)
    return family
