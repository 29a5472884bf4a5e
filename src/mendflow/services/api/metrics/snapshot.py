"""A look at a server as it is now: what was counted so far, and what its memory holds.

It costs what there are of sites, shapes of needs, pilots, running jobs and live cases, and nothing for each job that
waits. While the store is away there are no services to look at, and what was counted is told all the same."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job
from mendflow.core.model.stats import (
    REST,
    CaseCount,
    EndCount,
    JobsCount,
    MessageCount,
    RepairCount,
    RunningJob,
    SiteCount,
    StatsView,
    StoreCount,
)
from mendflow.services.base.counters import Counts
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.runtime.server import House, Services
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import QueueAndPilots
from mendflow.stores.contract import RETRIED

FLOWS_MAX: Final = 50
"""So many flows have a number of their own, those with the most live cases; the others have one together."""


class Census:
    def __init__(self, house: House) -> None:
        self._house = house

    async def look(self, *, running: int = 0) -> StatsView:
        """`running`: so many of the running jobs are named, those that run longest."""
        house, services = self._house, self._house.present
        view = _counted(house)
        if services is None:
            return view
        longest = heapq.nlargest(running, _running(services, view.at), key=lambda job: job.ran_ms) if running else []
        return _with_state(view, services, [await _expecting(services, job) for job in longest])


def _counted(house: House) -> StatsView:
    counts, now, membership = house.counts, house.clock.now(), house.membership
    jobs, health = counts.jobs, house.health()
    return StatsView(
        server=membership.id,
        version=health.version,
        store=health.store,
        at=now,
        uptime_ms=health.uptime_ms,
        store_up=house.present is not None,
        store_away_s=counts.away_ms(house.meter()) / 1000,
        servers_alive=len(membership.living()) + 1,
        servers_closed=membership.found_dead if isinstance(membership, ServerMembership) else 0,
        trees_taken=counts.trees_taken,
        jobs_submitted=jobs.submitted,
        jobs_ended=dict(jobs.ended),
        attempts_granted=jobs.granted,
        attempts=[EndCount(end=end, site=site, attempts=count) for (end, site), count in jobs.ends.items()],
        placed=jobs.placed.flat(),
        input_files=dict(jobs.input_files),
        input_bytes=dict(jobs.input_bytes),
        reports_refused=jobs.reports_refused,
        leases_lost=jobs.leases_lost,
        cases_started=counts.cases_started.flat(),
        cases_ended=_cases({(flow, status): count for (flow, status), count in counts.cases_ended.items()}),
        repairs=[
            RepairCount(rules=rules, rule=rule, exlet=exlet, outcome=outcome, repairs=count)
            for (rules, rule, exlet, outcome), count in counts.repairs.items()
        ],
        queue_s=jobs.queue_s.view(),
        start_s=jobs.start_s.view(),
        known_s=jobs.known_s.view(),
        run_s=jobs.run_s.view(),
        ledger_writes=counts.ledger.writes.view(),
        ledger_s=counts.ledger.seconds.view(),
        store_calls=_store_calls(counts),
        store_conflicts=counts.store.conflicts.flat(),
        store_retries=RETRIED.times,
        spans=dict(counts.spans),
        messages=[
            MessageCount(flow=flow, result=result, messages=count) for (flow, result), count in counts.messages.items()
        ],
        partner_calls=counts.partner_calls.flat(),
        transforms=counts.transforms.flat(),
    )


def _with_state(view: StatsView, services: Services, running: list[RunningJob]) -> StatsView:
    live = Counter[tuple[str, str]](
        (case.document.flow, case.document.status) for case in services.manager.live.values()
    )
    return replace(
        view,
        jobs=_jobs(services),
        levels=services.levels.counts(),
        pilots=_pilots(services.meta),
        cases=_cases(_greatest(live)),
        alerts=dict(Counter(known.alert.kind for known in services.monitor.alerts.open.values())),
        running=running,
    )


def _store_calls(counts: Counts) -> list[StoreCount]:
    store = counts.store
    return [
        StoreCount(operation=operation, seconds=seconds.view(), errors=store.errors.get(operation, 0))
        for operation, seconds in store.seconds.items()
    ]


def _jobs(services: Services) -> list[JobsCount]:
    meta, found = services.meta, Counter[tuple[str, str]]()
    for site, count in meta.queue.depths().items():
        found["waiting", site] += count
    for site, count in meta.queue.depths_later().items():
        found["delayed", site] += count
    held = 0
    for pilot in meta.pilots.values():
        begun = sum(each.runs for each in pilot.held.values())
        held += len(pilot.held)
        found["running", pilot.site] += begun
        found["held", pilot.site] += len(pilot.held) - begun
    found["suspended", ""] += max(0, len(meta.jobs) - len(meta.queue) - held)
    always = {(state, ""): 0 for state in ("waiting", "delayed", "held", "running")}
    return [JobsCount(state=state, site=site, jobs=jobs) for (state, site), jobs in {**always, **found}.items()]


def _pilots(meta: QueueAndPilots) -> list[SiteCount]:
    sites: dict[str, list[PilotRecord]] = {}
    for pilot in meta.pilots_here():
        sites.setdefault(pilot.site, []).append(pilot)
    caches = {site: [meta.caches.size(pilot.id) for pilot in here] for site, here in sites.items()}
    return [
        SiteCount(
            site=site,
            pilots=len(here),
            slots=sum(pilot.capacity.slots for pilot in here),
            free_slots=sum(pilot.free_slots for pilot in here),
            cache_files=sum(files for files, _ in caches[site]),
            cache_bytes=sum(size for _, size in caches[site]),
        )
        for site, here in sorted(sites.items())
    ]


def _greatest(live: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Those of the flows with the most cases, and of all others together."""
    flows = Counter[str]()
    for (flow, _), count in live.items():
        flows[flow] += count
    kept = {flow for flow, _ in flows.most_common(FLOWS_MAX)}
    found = Counter[tuple[str, str]]()
    for (flow, status), count in live.items():
        found[flow if flow in kept else REST, status] += count
    return dict(found)


def _cases(counts: Mapping[tuple[str, str], int]) -> list[CaseCount]:
    return [CaseCount(flow=flow, status=status, cases=count) for (flow, status), count in sorted(counts.items())]


def _running(services: Services, now: Instant) -> Iterator[RunningJob]:
    """How long a job runs is what its pilot last measured, and until it tells, the time since it was given to it."""
    meta = services.meta
    for pilot in meta.pilots.values():
        for id, held in pilot.held.items():
            job = meta.jobs.get(id)
            if job is None or not held.runs:
                continue
            granted_ms = now - job.history[-1].granted_at
            ran_ms = held.measures.ran_ms if held.measures is not None and held.measures.ran_ms else granted_ms
            yield _running_job(job, pilot, max(0, ran_ms))


def _running_job(job: Job, pilot: PilotRecord, ran_ms: int) -> RunningJob:
    return RunningJob(
        job=job.id,
        case=job.case,
        item=job.spec.item,
        pilot=pilot.id,
        host=pilot.host,
        site=pilot.site,
        attempt=job.tries,
        ran_ms=ran_ms,
        expected_ms=job.spec.expected_ms,
    )


async def _expecting(services: Services, running: RunningJob) -> RunningJob:
    """With what is known from earlier ones, where nobody said how long it should take."""
    job, live = services.meta.jobs.get(running.job), services.manager.live.get(running.case)
    if running.expected_ms or job is None or live is None:
        return running
    learned_ms = await services.monitor.runtimes.expected_ms(live.document.flow, job.name)
    return replace(running, expected_ms=learned_ms)
