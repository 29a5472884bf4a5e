"""A simulated grid: all services of a server on a store in memory, simulated pilots, and flows that run there.

Nothing reads the machine's clock or uses randomness other than the seed's. So the same scene, flows and job model give
the same results, to the last byte."""

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from mendflow.core.engine.flow_needs import limits_named
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import JobState
from mendflow.core.model.named_limits import COUNT_MAX, LimitCount
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.projects import FairShareSettings
from mendflow.core.model.secrets import FoundSecret
from mendflow.core.model.sync import SyncRequest
from mendflow.core.model.values import Value
from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.pages.formatting import count_text, duration_text
from mendflow.services.api.domain import Domain
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.runtime.server import NO_PATTERNS, Server, ServerSettings
from mendflow.sim.grid.batch import HostPool, VirtualBatch, as_product
from mendflow.sim.grid.capacity import waiting_text
from mendflow.sim.grid.clock import GridClock
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.direct import DirectSubmission
from mendflow.sim.grid.files import VirtualFileStore, register_files
from mendflow.sim.grid.flows import with_settings
from mendflow.sim.grid.job_model import JobModel
from mendflow.sim.grid.pilots import LeanPilot
from mendflow.sim.grid.results import CaseResult, GridResult
from mendflow.sim.grid.scene import GridScene, check_scene
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import BEGINNING
from mendflow.stores.memory import MemoryStore

_LOG = logging.getLogger("mendflow")
NOTHING: Mapping[str, Value] = MappingProxyType({})
DATA_WAIT_MS = ServerSettings().data_wait_ms
SELDOM_MS = 3_600_000
"""How often monitors run that notify people: there are none here."""


class CaseScene(msgspec.Struct, frozen=True, kw_only=True):
    """A case of a flow, started at a given time by somebody of a project, which then owns the flow. The priority is for
    its jobs that have none."""

    flow: Flow
    inputs: Mapping[str, Value] = {}
    priority: int = 0
    at_s: float = 0.0
    project: str = DEFAULT_PROJECT
    user: str = "grid"


class Stuck(RequestError):
    """Nothing more happens, and cases have not ended."""

    code = "stuck"


def play(scene: GridScene, flow: Flow, job_model: JobModel, inputs: Mapping[str, Value] = NOTHING) -> GridResult:
    """Run one case of a flow in a grid to its end."""
    return play_all(scene, [CaseScene(flow=flow, inputs=dict(inputs))], job_model)


def play_all(scene: GridScene, cases: Sequence[CaseScene], job_model: JobModel) -> GridResult:
    """Run several cases in one grid until all have ended."""
    check_scene(scene)
    loop = VirtualLoop(steps_max=scene.steps_max)  # type: ignore[abstract]  # sockets and threads are not of this world
    with _quiet_run():
        return loop.run(_play(loop, scene, cases, job_model))


@contextmanager
def _quiet_run() -> Iterator[None]:
    """Disable the cyclic garbage collector: a run creates no cycles, and with ten thousand pilots collections took a
    third of the time. Also disable warnings, which have no reader here."""
    looks, level = gc.isenabled(), _LOG.level
    gc.disable()
    _LOG.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _LOG.setLevel(level)
        if looks:
            gc.enable()


async def _play(loop: VirtualLoop, scene: GridScene, cases: Sequence[CaseScene], job_model: JobModel) -> GridResult:
    return await _GridWorld(loop, scene, job_model).live(cases)


class SimulatedSecrets:
    """Every secret is there: no job of a simulation reads it."""

    key_place = "the simulation"

    def key(self, *, create: bool = False) -> str:
        return "simulated"

    def find(self, name: str) -> FoundSecret | None:
        return FoundSecret("simulated secret", self.key_place)

    def names(self) -> dict[str, str]:
        return {}


class _GridWorld:
    def __init__(self, loop: VirtualLoop, scene: GridScene, job_model: JobModel) -> None:
        self._scene = scene
        self._context = context = GridContext(loop, scene, job_model, self._sync)
        self._pools = [HostPool(site) for site in scene.sites]
        direct = scene.submission == "direct"
        on_demand = any(site.max_pilots for site in scene.sites) and not direct
        self._batch = VirtualBatch(context, self._pools) if on_demand else None
        self._direct = DirectSubmission(context, self._pools) if direct else None
        names = context.chance("names")
        self._server = Server(
            store=MemoryStore(),
            file_store=VirtualFileStore(scene.files),
            clock=GridClock(loop, scene.look_s),
            settings=ServerSettings(
                lease_ms=scene.lease_ms,
                losses_max=scene.losses_max,
                files_roots=None,
                owner_only=True,
                recovery=scene.recovery or direct,
                monitor=MonitorSettings(look_ms=SELDOM_MS),
                sites_look_ms=round(scene.monitor_s * 1000),
                data_wait_ms=DATA_WAIT_MS if scene.wait_for_data else 0,
            ),
            version="grid",
            shipped=default_rules() if scene.recovery else None,
            patterns=default_patterns() if scene.recovery else NO_PATTERNS,
            batch_systems=self._batch,
            way_to_queue=lambda queue: self._direct or queue,
            chance=lambda size: names.randbytes(size).hex(),
            secret_sources=SimulatedSecrets(),
        )
        self._domain = Domain(self._server, chance=self._server.chance)
        self._deployed: dict[str, Flow] = {}
        self._ended: list[CaseResult] = []
        self._expected = 0

    async def live(self, cases: Sequence[CaseScene]) -> GridResult:
        await self._server.open()
        self._subscribe_to_ends()
        await register_files(self._domain, self._scene.files)
        await self._set_projects()
        await self._start_pilots()
        self._expected = len(cases)
        beginning = asyncio.get_running_loop().create_task(self._begin(cases))
        await self._end()
        beginning.cancel()
        return self._result()

    def _sync(self, request: SyncRequest) -> Any:
        return self._server.runtime.exchange.sync(request)

    async def _start_pilots(self) -> None:
        for site, pool in zip(self._scene.sites, self._pools, strict=True):
            if self._batch is not None and site.max_pilots:
                await self._domain.put_site(as_product(site), who="grid")
            if self._direct is None:
                chance = self._context.chance("arrivals", site.name)
                for number in range(site.running):
                    pilot = LeanPilot(self._context, PilotId(f"{site.name}-p{number:05d}"), site, pool.place())
                    if site.arrive_s:
                        self._context.after(chance.uniform(0.0, site.arrive_s), pilot.start)
                    else:
                        pilot.start()

    async def _begin(self, cases: Sequence[CaseScene]) -> None:
        try:
            for case in sorted(cases, key=lambda case: case.at_s):
                await asyncio.sleep(max(0.0, case.at_s - self._context.now_s))
                await self._begin_one(case)
        except Exception as error:  # noqa: BLE001 - whoever plays this world gets it
            self._context.fail(error)

    async def _begin_one(self, case: CaseScene) -> None:
        scene = self._scene
        flow = with_settings(
            case.flow, retries=scene.retries, retry_wait_ms=scene.retry_wait_ms, priority=case.priority
        )
        if self._deployed.get(flow.name) != flow:
            await self._set_limits(flow)
            await self._domain.deploy(flow, project=case.project)
            self._deployed[flow.name] = flow
        await self._domain.start(flow.name, dict(case.inputs), who=case.user)

    async def _set_projects(self) -> None:
        for name, settings in self._scene.projects.items():
            await self._domain.set_project(name, settings, who="grid")
        if self._scene.half_life_s:
            await self._domain.set_fair_share(
                FairShareSettings(half_life_ms=round(self._scene.half_life_s * 1000)), who="grid"
            )

    async def _set_limits(self, flow: Flow) -> None:
        for name in limits_named(flow):
            await self._domain.set_limit(name, LimitCount(self._scene.limits.get(name, COUNT_MAX)), who="grid")

    def _subscribe_to_ends(self) -> None:
        def ended(end: CaseEnded) -> None:
            if end.document.parent is None and end.document.mends is None:
                self._case_ended(end.document)

        self._server.runtime.hub.subscribe(CaseEnded, ended)

    def _case_ended(self, document: CaseDocument) -> None:
        self._ended.append(
            CaseResult(
                case=document.id,
                flow=document.flow,
                status=document.status,
                started_s=(document.started_at - BEGINNING) / 1000,
                turnaround_s=(document.ended_at - document.started_at) / 1000,
                fault=document.fault.message if document.fault is not None else "",
            )
        )
        if len(self._ended) == self._expected and not self._context.over.done():
            self._context.over.set_result(None)

    async def _end(self) -> None:
        """Wait for the last case. If nothing happens any more, raise with what is waiting."""
        context, seen = self._context, -1
        while True:
            try:
                await asyncio.wait_for(asyncio.shield(context.over), self._scene.quiet_s)
                return
            except TimeoutError:
                done = len(context.records) + len(self._ended)
                if done == seen and not context.attempts_running and not context.pending:
                    raise Stuck(self._why()) from None
                seen = done

    def _why(self) -> str:
        meta, sites = self._server.runtime.meta, self._scene.sites
        names = Counter(job.name for job in meta.jobs.values() if job.state is JobState.AVAILABLE)
        quiet = duration_text(self._scene.quiet_s * 1000)
        over = f"nothing has happened in this grid for {quiet}, and {count_text(self._open(), 'case')} did not end"
        return f"{over}; {waiting_text(names, [each.needs for each in meta.waiting()], len(meta.pilots), sites)}"

    def _open(self) -> int:
        return self._expected - len(self._ended)

    def _result(self) -> GridResult:
        cases = self._ended
        failed = next((case.status for case in cases if case.status != "completed"), "completed")
        first = min((case.started_s for case in cases), default=0.0)
        last = max((case.started_s + case.turnaround_s for case in cases), default=0.0)
        return GridResult(
            status=failed,
            turnaround_s=last - first,
            cases=cases,
            records=self._context.records,
            pilots_submitted=self._batch.submitted if self._batch is not None else 0,
            steps=self._context.loop.steps,
        )
