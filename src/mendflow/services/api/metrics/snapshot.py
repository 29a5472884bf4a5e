"""A snapshot of a server: its counters, and what is in its memory.

The cost grows with the number of sites, kinds of requirements, pilots, running jobs and live cases, and not with the
number of waiting jobs. While the store is unreachable there are no services to look at, and only the counters are
reported."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job
from mendflow.core.model.stats import (
    OTHER,
    CaseCount,
    EndCount,
    JobsCount,
    LimitUse,
    MessageCount,
    ProjectCount,
    RepairCount,
    RunningJob,
    SiteCount,
    SiteLookCount,
    StatsView,
    StoreCount,
)
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.runtime.server import Runtime, Server
from mendflow.services.scheduling.pilot_records import PilotRecord
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import RETRIES

FLOWS_MAX: Final = 50
"""How many flows have a number of their own, those with the most live cases; the others share one."""

PROJECTS_MAX: Final = 100
"""The same for projects, those with the most jobs and cases."""

LIMITS_MAX: Final = 100


class StatsCollector:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def look(self, *, running: int = 0) -> StatsView:
        """`running`: how many of the running jobs are listed, those that have run longest."""
        server, runtime = self._server, self._server.present
        view = _counted(server)
        if runtime is None:
            return view
        longest = heapq.nlargest(running, _running(runtime, view.at), key=lambda job: job.ran_ms) if running else []
        return _add_state(view, runtime, [await _with_estimate(runtime, job) for job in longest])


def _counted(server: Server) -> StatsView:
    counts, now, membership = server.counts, server.clock.now(), server.membership
    jobs, health = counts.jobs, server.health()
    return StatsView(
        server=membership.id,
        version=health.version,
        store=health.store,
        at=now,
        uptime_ms=health.uptime_ms,
        store_up=server.present is not None,
        store_away_s=counts.away_ms(server.meter()) / 1000,
        servers_alive=len(membership.live_servers()) + 1,
        servers_closed=membership.found_dead_count if isinstance(membership, ServerMembership) else 0,
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
        store_retries=RETRIES.times,
        spans=dict(counts.spans),
        messages=[
            MessageCount(flow=flow, result=result, messages=count) for (flow, result), count in counts.messages.items()
        ],
        partner_calls=counts.partner_calls.flat(),
        access_refused=counts.access_refused.flat(),
        transforms=counts.transforms.flat(),
        site_looks=[
            SiteLookCount(site=site, result=result, looks=count) for (site, result), count in counts.site_looks.items()
        ],
    )


def _add_state(view: StatsView, runtime: Runtime, running: list[RunningJob]) -> StatsView:
    manager = runtime.manager
    documents = [each.document for each in manager.live.values()]
    live = Counter[tuple[str, str]]((each.counted_flow, each.status) for each in documents)
    return replace(
        view,
        jobs=_jobs(runtime),
        levels=runtime.levels.counts(),
        pilots=_pilots(runtime.meta),
        cases=_cases(_greatest(live)),
        alerts=dict(Counter(known.alert.kind for known in runtime.monitor.alerts.open.values())),
        limits=[
            LimitUse(name=view.name, count=view.count or 0, used=view.used, waiting=view.waiting)
            for view in runtime.limits.views()[:LIMITS_MAX]
        ],
        projects=_projects(runtime, view.at),
        running=running,
    )


def _projects(runtime: Runtime, now: Instant) -> list[ProjectCount]:
    """The projects with the most jobs and cases, by name, and all others together."""
    cases = Counter(case.document.project for case in runtime.manager.live.values())
    held = (runtime.meta.jobs.get(id) for pilot in runtime.meta.pilots.values() for id in pilot.held)
    running = Counter(job.spec.project for job in held if job is not None)
    waiting, shares = runtime.meta.queue.depths_by_project(), runtime.projects.usage.shares
    used = {name: (usage.value(now, shares.half_life_ms), usage.cpus) for name, usage in shares.own.totals.items()}
    size = Counter[str]({name: 0 for name in used})
    for counts in (cases, running, waiting):
        size.update(counts)
    kept = {name for name, _ in size.most_common(PROJECTS_MAX)}
    found: dict[str, ProjectCount] = {}
    for name in size:
        before = found.get(label := name if name in kept else OTHER, ProjectCount(project=label))
        cpu_ms, cpus = used.get(name, (0.0, 0.0))
        found[label] = ProjectCount(
            project=label,
            cases=before.cases + cases[name],
            waiting=before.waiting + waiting.get(name, 0),
            running=before.running + running[name],
            cpus=round(before.cpus + cpus, 3),
            cpu_s=round(before.cpu_s + cpu_ms / 1000, 1),
        )
    return sorted(found.values(), key=lambda each: each.project)


def _store_calls(counts: ServerMetrics) -> list[StoreCount]:
    store = counts.store
    return [
        StoreCount(operation=operation, seconds=seconds.view(), errors=store.errors.get(operation, 0))
        for operation, seconds in store.seconds.items()
    ]


def _jobs(runtime: Runtime) -> list[JobsCount]:
    meta, found = runtime.meta, Counter[tuple[str, str]]()
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


def _pilots(meta: PilotScheduler) -> list[SiteCount]:
    sites: dict[str, list[PilotRecord]] = {}
    for pilot in meta.own_pilots():
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
    """The flows with the most cases, and all others together."""
    flows = Counter[str]()
    for (flow, _), count in live.items():
        flows[flow] += count
    kept = {flow for flow, _ in flows.most_common(FLOWS_MAX)}
    found = Counter[tuple[str, str]]()
    for (flow, status), count in live.items():
        found[flow if flow in kept else OTHER, status] += count
    return dict(found)


def _cases(counts: Mapping[tuple[str, str], int]) -> list[CaseCount]:
    return [CaseCount(flow=flow, status=status, cases=count) for (flow, status), count in sorted(counts.items())]


def _running(runtime: Runtime, now: Instant) -> Iterator[RunningJob]:
    """How long a job has run is what its pilot last measured, and until it reports, the time since the grant."""
    meta = runtime.meta
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
        element=job.spec.element,
    )


async def _with_estimate(runtime: Runtime, running: RunningJob) -> RunningJob:
    """Add the learned run time, where the flow does not say how long the job should take."""
    job, live = runtime.meta.jobs.get(running.job), runtime.manager.live.get(running.case)
    if running.expected_ms or job is None or live is None:
        return running
    learned_ms = await runtime.monitor.runtimes.expected_ms(live.document.counted_flow, job.name)
    return replace(running, expected_ms=learned_ms)
