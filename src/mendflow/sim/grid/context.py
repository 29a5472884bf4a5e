"""What all parts of a grid share: the clock, random numbers, the exchange with the server, and the record of events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from random import Random

from mendflow.core.model.ids import PilotId
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.sim.grid.caches import VirtualCache
from mendflow.sim.grid.job_model import JobModel
from mendflow.sim.grid.results import JobRecord
from mendflow.sim.grid.scene import GridScene, SiteScene
from mendflow.sim.loop import VirtualLoop

Sync = Callable[[SyncRequest], Awaitable[SyncAnswer]]


class GridContext:
    """`sync` is the product's exchange. `attempts_running` counts attempts under way, `pending` what batch systems have
    been given: while there are any, the world is not stuck."""

    def __init__(self, loop: VirtualLoop, scene: GridScene, job_model: JobModel, sync: Sync) -> None:
        self.loop = loop
        self.sync = sync
        self.over: asyncio.Future[None] = loop.create_future()
        self.scene = scene
        self.job_model = job_model
        self.caches: dict[PilotId, VirtualCache] = {}
        self.records: list[JobRecord] = []
        self.attempts_running = 0
        self.pending = 0
        self._next_start_s = 0.0
        self._context = copy_context()
        loop.in_trouble = self.fail

    def fail(self, error: BaseException) -> None:
        """An unexpected error: it ends the run."""
        if not self.over.done():
            self.over.set_exception(error)

    @property
    def now_s(self) -> float:
        return self.loop.true_s

    def chance(self, *what: object) -> Random:
        """A random generator for this purpose alone."""
        return Random(f"{self.scene.seed} {' '.join(map(str, what))}")

    def start_delay_s(self) -> float:
        """How long an attempt that could begin now has to wait for those before it."""
        gap_s = self.scene.start_gap_s
        if not gap_s:
            return 0.0
        self._next_start_s = max(self.now_s, self._next_start_s) + gap_s
        return self._next_start_s - self.now_s

    def after(self, seconds: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        return self.loop.call_at(self.loop.true_s + seconds, callback, *args, context=self._context)

    def cache(self, pilot: PilotId, host: str, site: SiteScene) -> VirtualCache | None:
        """A cache for a new pilot, if the site gives it one."""
        if not site.caches:
            return None
        known: Mapping[PilotId, VirtualCache] = self.caches
        chance = self.chance("cache", pilot)
        cache = VirtualCache(pilot, host, site, known, now_s=lambda: self.loop.true_s, after=self.after, chance=chance)
        self.caches[pilot] = cache
        return cache
