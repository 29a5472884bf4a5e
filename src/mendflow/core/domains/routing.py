"""Which domain does a piece of work best. Every domain gets a row that says why it was, or was not, chosen.

First, who can do it at all: not one that it has come through or that has refused it, nor one without a pilot that it
fits. Of the others those come first whose reports are fresh, and that have not lost it before. Then counts when it
would be done: how long it would wait there, and how long the files would take that are not there. Among those that are
about as fast the cheapest is taken, and the own domain before any other."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.domains import DomainReport
from mendflow.core.model.jobs import Resources
from mendflow.core.model.platforms import suits
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling.amounts import duration, size
from mendflow.core.scheduling.offer import CPU_GRAIN

STALE_MS: Final = 30_000
BYTES_PER_MS: Final = 50_000
"""What the way to another domain is taken to carry, where nothing is known of it: 50 MB/s."""
EXCHANGES: Final = 3
"""How many exchanges with another domain come on top of the work itself."""
TURN_MS: Final = 60_000
"""How long a job is taken to run of which nobody has said anything."""
SLACK_MS: Final = 1_000
SLACK_PERCENT: Final = 10
"""Who would be done so much later counts as just as fast."""
HOUR_MS: Final = 3_600_000


class WorkNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece of work needs. `logical` are its logical files, with their bytes, `stored_bytes` the size of its
    other files. `publishes` is a logical name that it publishes. `flow` is a flow that only the other domain has. `way`
    are the domains that it has come through; `refused` those that have refused it, with their reasons; `lost` those
    that have lost it before."""

    resources: Resources = Resources()
    logical: Mapping[str, int] = {}
    stored_bytes: int = 0
    publishes: str = ""
    flow: str = ""
    expected_ms: int = 0
    way: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}
    lost: frozenset[str] = frozenset()


class DomainOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A domain as it stands: its report and how old that is, or why it takes nothing now (`closed`)."""

    name: str
    report: DomainReport | None = None
    age_ms: int = 0
    latency_ms: float = 0.0
    closed: str = ""


class RoutingRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A domain, and what speaks for or against it. `finish_ms` is when the work would be done there, from now on."""

    domain: str
    fits: bool
    reason: str
    is_stale: bool = False
    start_ms: int = 0
    finish_ms: int = 0
    cost: float = 0.0


class RoutingDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a piece of work goes; empty: it stays here. The rows are in the order of preference."""

    domain: str
    reason: str
    rows: tuple[RoutingRow, ...] = ()


def route(needs: WorkNeeds, here: DomainOffer, others: Sequence[DomainOffer]) -> RoutingDecision:
    own = _row(needs, here, is_here=True)
    rows = [own, *(_row(needs, each, is_here=False) for each in sorted(others, key=lambda each: each.name))]
    fit = [row for row in rows if row.fits]
    ordered: list[RoutingRow] = []
    for group in _groups(fit, needs):
        ordered += _ranked(group, here.name)
    ordered += [row for row in rows if not row.fits]
    if not fit:
        return RoutingDecision(
            domain="", reason=f"no domain can do it now, so it waits in {here.name}", rows=tuple(ordered)
        )
    best = ordered[0]
    reason = f"{best.domain}: {best.reason}"
    return RoutingDecision(domain="" if best is own else best.domain, reason=reason, rows=tuple(ordered))


def _groups(fit: Sequence[RoutingRow], needs: WorkNeeds) -> list[list[RoutingRow]]:
    """Those that are surely there, those that have lost it before, and those of which nothing new was heard."""
    stale = [row for row in fit if row.is_stale]
    fresh = [row for row in fit if not row.is_stale]
    return [[r for r in fresh if r.domain not in needs.lost], [r for r in fresh if r.domain in needs.lost], stale]


def _ranked(rows: Sequence[RoutingRow], here: str) -> list[RoutingRow]:
    """About as fast as the fastest: the cheapest first, and the own domain before others. Then the slower ones."""
    if not rows:
        return []
    soonest = min(row.finish_ms for row in rows)
    bound = soonest + soonest * SLACK_PERCENT // 100 + SLACK_MS
    return sorted(
        rows,
        key=lambda row: (
            row.finish_ms > bound,
            row.finish_ms if row.finish_ms > bound else 0,
            row.cost,
            row.domain != here,
            row.finish_ms,
            row.domain,
        ),
    )


def _row(needs: WorkNeeds, offer: DomainOffer, *, is_here: bool) -> RoutingRow:
    against = _against(needs, offer, is_here=is_here)
    if against or offer.report is None:
        return RoutingRow(domain=offer.name, fits=False, reason=against or "nothing was heard of it yet")
    report, missing = offer.report, _missing_bytes(needs, offer.report, is_here=is_here)
    start_ms = _start_ms(report) + (0 if is_here else round(EXCHANGES * offer.latency_ms) + missing // BYTES_PER_MS)
    run_ms = needs.expected_ms or TURN_MS
    cost = report.charge * needs.resources.cpus * run_ms / HOUR_MS if not is_here else 0.0
    stale = not is_here and offer.age_ms > STALE_MS
    parts = [_start_text(report, start_ms)]
    if missing and not is_here:
        parts.append(f"{size(missing)} would go there")
    elif needs.logical and not is_here:
        parts.append("its data is there")
    if cost:
        parts.append(f"it costs {cost:.3g}")
    if offer.name in needs.lost:
        parts.append("it was lost there before")
    if stale:
        parts.append(f"its report is {duration(offer.age_ms)} old")
    return RoutingRow(
        domain=offer.name,
        fits=True,
        reason=", ".join(parts),
        is_stale=stale,
        start_ms=start_ms,
        finish_ms=start_ms + run_ms,
        cost=cost,
    )


def _against(needs: WorkNeeds, offer: DomainOffer, *, is_here: bool) -> str:
    """Why it cannot go there at all; empty if it can."""
    if offer.name in needs.way:
        return "it came from there"
    if offer.name in needs.refused:
        return f"it was refused there: {needs.refused[offer.name]}"
    if offer.closed:
        return offer.closed
    if needs.publishes and not is_here:
        return f"it publishes {needs.publishes}, which belongs into the catalogue of this domain"
    report = offer.report
    if report is None:
        return ""
    if report.draining:
        return "it takes no new work"
    if needs.flow and (is_here or needs.flow not in report.flows):
        return f"it offers no flow {needs.flow}"
    return _misfit(needs.resources, report, is_here=is_here)


def _misfit(needs: Resources, report: DomainReport, *, is_here: bool) -> str:
    """What its pilots lack."""
    if (needs.site or needs.hosts) and not is_here:
        return f"it is bound to {needs.site or ', '.join(needs.hosts)}, which is a place of this domain"
    shapes = report.shapes or ((report.largest,) if report.largest is not None else ())
    if not shapes:
        return "it has no pilots"
    if any(_fits(needs, shape) for shape in shapes):
        return ""
    return _lacking(needs, shapes)


def lack_of(needs: Resources, report: DomainReport) -> str:
    """What none of the domain's pilots has, of a job that names the domain; empty if one can take it, or if it has
    told of none."""
    shapes = report.shapes or ((report.largest,) if report.largest is not None else ())
    return _lacking(needs, shapes) if shapes and not any(_fits(needs, shape) for shape in shapes) else ""


def _fits(needs: Resources, shape: Capacity) -> bool:
    return (
        needs.cpus <= shape.cpus + CPU_GRAIN
        and needs.memory_bytes <= shape.memory_bytes
        and needs.disk_bytes <= shape.disk_bytes
        and needs.gpus <= shape.gpus
        and (not needs.system or shape.system == needs.system)
        and (not needs.machine or suits(shape.machine, needs.machine))
        and (not needs.runtimes or shape.runtime in needs.runtimes)
    )


def _lacking(needs: Resources, shapes: Sequence[Capacity]) -> str:
    """The first thing that none of its pilots has, or that none has together with the rest."""
    asked = (
        (needs.cpus - CPU_GRAIN, max(shape.cpus for shape in shapes), f"{needs.cpus:g} cpus"),
        (needs.memory_bytes, max(shape.memory_bytes for shape in shapes), f"{size(needs.memory_bytes)} of memory"),
        (needs.disk_bytes, max(shape.disk_bytes for shape in shapes), f"{size(needs.disk_bytes)} of disk"),
        (needs.gpus, max(shape.gpus for shape in shapes), f"{needs.gpus} gpus"),
    )
    for wanted, most, text in asked:
        if wanted > most:
            return f"none of its pilots has {text}"
    if needs.system and all(shape.system != needs.system for shape in shapes):
        return f"none of its pilots runs {needs.system}"
    if needs.machine and not any(suits(shape.machine, needs.machine) for shape in shapes):
        return f"none of its pilots is a machine of the kind {needs.machine}"
    if needs.runtimes and not any(shape.runtime in needs.runtimes for shape in shapes):
        return f"none of its pilots has {' or '.join(needs.runtimes)} for its container"
    return "none of its pilots has all of it"


def _missing_bytes(needs: WorkNeeds, report: DomainReport, *, is_here: bool) -> int:
    """What would have to be brought there. A list of logical files that was cut says nothing of those behind."""
    if is_here:
        return 0
    there = frozenset(report.logical_files)
    return needs.stored_bytes + sum(size for name, size in needs.logical.items() if name not in there)


def _start_ms(report: DomainReport) -> int:
    """When it would begin: at once if a slot is free, else after what jobs have waited of late, and no less than those
    before it take."""
    if report.slots_free > report.waiting:
        return 0
    behind_ms = (report.waiting + 1) * TURN_MS // max(report.slots, 1)
    return max(report.wait_ms, behind_ms)


def _start_text(report: DomainReport, start_ms: int) -> str:
    if report.slots_free > report.waiting:
        return f"{report.slots_free} of {report.slots} slots are free"
    return f"it would begin in about {duration(start_ms)}: {report.waiting} jobs wait for {report.slots} slots"
