"""A grid around the product: all services of a server on a store in memory, lean pilots, and flows that run there.

Nothing in it reads a clock of the machine or draws from a chance that is not the seed's. So the same scene, flows and
nature give the same results, to the last byte."""

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import JobState
from mendflow.core.model.problems import Mistake
from mendflow.core.model.sync import SyncRequest
from mendflow.core.model.values import Value
from mendflow.pages.words import count_text, duration_text
from mendflow.services.api.local_domain import LocalDomain
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.observe.monitor_settings import MonitorRules
from mendflow.services.runtime.server import NO_PATTERNS, House, HouseRules
from mendflow.sim.grid.batch import VirtualBatch, Yard, as_product
from mendflow.sim.grid.clock import GridClock
from mendflow.sim.grid.direct import DirectSubmission
from mendflow.sim.grid.fitting import waiting_text
from mendflow.sim.grid.flows import with_settings
from mendflow.sim.grid.ground import Ground
from mendflow.sim.grid.keeping import Imagined, catalogue
from mendflow.sim.grid.nature import Nature
from mendflow.sim.grid.pilots import LeanPilot
from mendflow.sim.grid.results import CaseResult, GridResult
from mendflow.sim.grid.scene import GridScene, check_scene
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import BEGINNING
from mendflow.sim.shipped import shipped_patterns, shipped_rules
from mendflow.stores.memory import MemoryStore

_LOG = logging.getLogger("mendflow")
NOTHING: Mapping[str, Value] = MappingProxyType({})
DATA_WAIT_MS = HouseRules().data_wait_ms
SELDOM_MS = 3_600_000
"""How often monitors look that speak to people: there are none here."""


class CaseScene(msgspec.Struct, frozen=True, kw_only=True):
    """A case of a flow, begun at a moment. The priority is for its jobs that have none."""

    flow: Flow
    inputs: Mapping[str, Value] = {}
    priority: int = 0
    at_s: float = 0.0


class Stuck(Mistake):
    """Nothing more happens in a world, and its cases are not over."""

    code = "stuck"


def play(scene: GridScene, flow: Flow, nature: Nature, inputs: Mapping[str, Value] = NOTHING) -> GridResult:
    """Run one case of a flow in a grid, from its start to its end."""
    return play_all(scene, [CaseScene(flow=flow, inputs=dict(inputs))], nature)


def play_all(scene: GridScene, cases: Sequence[CaseScene], nature: Nature) -> GridResult:
    """Run several cases in one grid, until all are over."""
    check_scene(scene)
    loop = VirtualLoop(steps_max=scene.steps_max)  # type: ignore[abstract]  # sockets and threads are not of this world
    with _undisturbed():
        return loop.run(_played(loop, scene, cases, nature))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without looks for garbage that refers to itself: a run leaves none, and with ten thousand pilots these looks were
    a third of its time. And without warnings: whoever is warned of a long job, or of a pilot that left, is not here."""
    looks, level = gc.isenabled(), _LOG.level
    gc.disable()
    _LOG.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _LOG.setLevel(level)
        if looks:
            gc.enable()


async def _played(loop: VirtualLoop, scene: GridScene, cases: Sequence[CaseScene], nature: Nature) -> GridResult:
    return await _World(loop, scene, nature).live(cases)


class _World:
    def __init__(self, loop: VirtualLoop, scene: GridScene, nature: Nature) -> None:
        self._scene = scene
        self._ground = ground = Ground(loop, scene, nature, self._sync)
        self._yards = [Yard(site) for site in scene.sites]
        direct = scene.submission == "direct"
        on_demand = any(site.max_pilots for site in scene.sites) and not direct
        self._batch = VirtualBatch(ground, self._yards) if on_demand else None
        self._direct = DirectSubmission(ground, self._yards) if direct else None
        names = ground.chance("names")
        self._house = House(
            store=MemoryStore(),
            keeper=Imagined(scene.files),
            clock=GridClock(loop, scene.look_s),
            rules=HouseRules(
                lease_ms=scene.lease_ms,
                losses_max=scene.losses_max,
                files_roots=None,
                recovery=scene.recovery or direct,
                monitor=MonitorRules(look_ms=SELDOM_MS),
                sites_look_ms=round(scene.monitor_s * 1000),
                data_wait_ms=DATA_WAIT_MS if scene.wait_for_data else 0,
            ),
            version="grid",
            shipped=shipped_rules() if scene.recovery else None,
            patterns=shipped_patterns() if scene.recovery else NO_PATTERNS,
            batches=self._batch,
            way_to_queue=lambda queue: self._direct or queue,
            chance=lambda size: names.randbytes(size).hex(),
        )
        self._domain = LocalDomain(self._house, chance=self._house.chance)
        self._deployed: dict[str, Flow] = {}
        self._ended: list[CaseResult] = []
        self._expected = 0

    async def live(self, cases: Sequence[CaseScene]) -> GridResult:
        await self._house.open()
        self._hear_of_ends()
        await catalogue(self._domain, self._scene.files)
        await self._people_sites()
        self._expected = len(cases)
        beginning = asyncio.get_running_loop().create_task(self._begin(cases))
        await self._end()
        beginning.cancel()
        return self._result()

    def _sync(self, request: SyncRequest) -> Any:
        return self._house.services.exchange.sync(request)

    async def _people_sites(self) -> None:
        for site, yard in zip(self._scene.sites, self._yards, strict=True):
            if self._batch is not None and site.max_pilots:
                await self._domain.put_site(as_product(site), who="grid")
            if self._direct is None:
                chance = self._ground.chance("arrivals", site.name)
                for number in range(site.running):
                    pilot = LeanPilot(self._ground, PilotId(f"{site.name}-p{number:05d}"), site, yard.place())
                    if site.arrive_s:
                        self._ground.after(chance.uniform(0.0, site.arrive_s), pilot.start)
                    else:
                        pilot.start()

    async def _begin(self, cases: Sequence[CaseScene]) -> None:
        try:
            for case in sorted(cases, key=lambda case: case.at_s):
                await asyncio.sleep(max(0.0, case.at_s - self._ground.now_s))
                await self._begin_one(case)
        except Exception as error:  # noqa: BLE001 - whoever plays this world gets it
            self._ground.fail(error)

    async def _begin_one(self, case: CaseScene) -> None:
        scene = self._scene
        flow = with_settings(
            case.flow, retries=scene.retries, retry_wait_ms=scene.retry_wait_ms, priority=case.priority
        )
        if self._deployed.get(flow.name) != flow:
            await self._domain.deploy(flow)
            self._deployed[flow.name] = flow
        await self._domain.start(flow.name, dict(case.inputs), who="grid")

    def _hear_of_ends(self) -> None:
        def ended(end: CaseEnded) -> None:
            if end.document.parent is None and end.document.mends is None:
                self._case_ended(end.document)

        self._house.services.hub.subscribe(CaseEnded, ended)

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
        if len(self._ended) == self._expected and not self._ground.over.done():
            self._ground.over.set_result(None)

    async def _end(self) -> None:
        """Wait for the last case. Where nothing happens any more, say what waits."""
        ground, seen = self._ground, -1
        while True:
            try:
                await asyncio.wait_for(asyncio.shield(ground.over), self._scene.quiet_s)
                return
            except TimeoutError:
                done = len(ground.records) + len(self._ended)
                if done == seen and not ground.courses and not ground.pending:
                    raise Stuck(self._why()) from None
                seen = done

    def _why(self) -> str:
        meta, sites = self._house.services.meta, self._scene.sites
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
            records=self._ground.records,
            pilots_submitted=self._batch.submitted if self._batch is not None else 0,
            steps=self._ground.loop.steps,
        )
