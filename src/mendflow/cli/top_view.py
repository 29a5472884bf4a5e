"""Draws the live view: a few small tables in a fixed order."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mendflow.cli.printing import state_text
from mendflow.cli.top_totals import ClusterTotals, Latency
from mendflow.core.model.stats import RunningJob, StatsView
from mendflow.pages.formatting import duration_text, one_line

STATES = ("waiting", "delayed", "held", "running", "suspended")
RATES = ("submitted", "granted", "completed", "failed", "lost", "requeued", "cancelled", "repairs")
WORDS = {
    "queued": "could run → with a pilot",
    "started": "could run → started",
    "known": "ended → known",
    "ran": "run time",
    "flushed": "ledger flush",
}
REPAIRS_SHOWN = 6
NAME_CHARS_MAX = 40


def frame(now: Sequence[StatsView], totals: ClusterTotals, *, running: int, trouble: str = "") -> RenderableType:
    """Everything, from the servers down to single jobs."""
    parts: list[RenderableType] = [_servers(now)]
    if trouble:
        parts.append(Text(trouble, style="red"))
    parts.append(_columns(_queue(totals), _rates(totals), _latencies(totals)))
    parts.append(_columns(_store(totals), _repairs(totals), _alerts(totals)))
    if running and totals.running:
        parts.append(_running(totals.running[:running]))
    return Group(*(each for part in parts for each in (part, Text(""))))


def _columns(*tables: Table) -> Columns:
    return Columns(tables, padding=(0, 4), equal=False)


def _table(*heads: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", no_wrap=True)
    return table


def _servers(now: Sequence[StatsView]) -> Table:
    numbers = ("cases", "waiting", "running", "pilots", "free slots")
    table = _table("server", "store", "up", *numbers, right=numbers)
    for each in now:
        jobs = {state: sum(count.jobs for count in each.jobs if count.state == state) for state in STATES}
        cells = (
            sum(count.cases for count in each.cases),
            jobs["waiting"],
            jobs["running"],
            sum(site.pilots for site in each.pilots),
            sum(site.free_slots for site in each.pilots),
        )
        store = Text(each.store) if each.store_up else Text("away", style="red")
        table.add_row(one_line(each.server, NAME_CHARS_MAX), store, duration_text(each.uptime_ms), *map(_number, cells))
    return table


def _queue(totals: ClusterTotals) -> Table:
    """Jobs by state, one line per site if there are several; then the levels."""
    table = _table("jobs", "site", "", right=("",))
    for state in STATES:
        sites = totals.jobs.get(state, {})
        for place, (site, jobs) in enumerate(sorted(sites.items()) or [("", 0)]):
            table.add_row(state_text(state) if not place else "", one_line(site, NAME_CHARS_MAX) or "-", _number(jobs))
    for level, jobs in totals.levels.items():
        table.add_row(f"level {level}", "-", _number(jobs))
    for limit in totals.limits:
        used = f"{limit.used} of {limit.count} in use"
        table.add_row(one_line(f"limit {limit.name}", NAME_CHARS_MAX), used, _number(limit.waiting))
    return table


def _rates(totals: ClusterTotals) -> Table:
    table = _table("rate", "per s", right=("per s",))
    for name in RATES:
        table.add_row(state_text(name), f"{totals.rates.get(name, 0.0):,.1f}")
    return table


def _latencies(totals: ClusterTotals) -> Table:
    table = _table("latency", "p50", "p95", right=("p50", "p95"))
    for name, word in WORDS.items():
        table.add_row(word, *_quantiles(totals.latencies[name]))
    return table


def _store(totals: ClusterTotals) -> Table:
    table = _table("store", "calls", "p50", "p95", right=("calls", "p50", "p95"))
    for operation, seen in sorted(totals.store.items()):
        table.add_row(operation, _number(seen.count), *_quantiles(seen))
    table.add_row("conflicts", _number(totals.conflicts), "", "")
    table.add_row("leases lost", _number(totals.leases_lost), "", "")
    return table


def _repairs(totals: ClusterTotals) -> Table:
    table = _table("repairs", "", right=("",))
    for words, count in totals.repairs[:REPAIRS_SHOWN]:
        table.add_row(one_line(words, NAME_CHARS_MAX), _number(count))
    if not totals.repairs:
        table.add_row("none", "")
    return table


def _alerts(totals: ClusterTotals) -> Table:
    table = _table("open alerts", "", right=("",))
    for kind, count in sorted(totals.alerts.items()):
        table.add_row(Text(kind, style="yellow"), _number(count))
    if not totals.alerts:
        table.add_row("none", "")
    return table


def _running(jobs: Sequence[RunningJob]) -> Table:
    table = _table(
        "running longest", "item", "host", "site", "try", "ran", "expected", right=("try", "ran", "expected")
    )
    for job in jobs:
        ran = Text(duration_text(job.ran_ms) + (" !" if job.late else "  "), style="yellow" if job.late else "")
        expected = duration_text(job.expected_ms) if job.expected_ms else "-"
        words = (one_line(text, NAME_CHARS_MAX) or "-" for text in (job.job, job.shown, job.host, job.site))
        table.add_row(*words, str(job.attempt), ran, expected)
    return table


def _quantiles(seen: Latency) -> tuple[str, str]:
    return _seconds(seen.p50), _seconds(seen.p95)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.1f} ms" if value < 1 else duration_text(value * 1000)


def _number(value: int) -> str:
    return f"{value:,}"
