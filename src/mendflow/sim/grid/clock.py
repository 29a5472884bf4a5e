"""The clock of a simulated server.

Services check leases, timers and data sets several times a second. In a simulation of days, that would be most of the
events. So every sleep is at least as long as the scene says; what is due is found a little later, and at the same
moment in every run."""

import asyncio

from mendflow.core.model.ids import Instant
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import BEGINNING


class GridClock:
    def __init__(self, loop: VirtualLoop, look_s: float) -> None:
        self._loop = loop
        self._look_s = look_s

    def now(self) -> Instant:
        return BEGINNING + round(self._loop.true_s * 1000)

    def catch_up(self, instant: Instant) -> None:
        assert instant <= self.now(), "the given time is in the future"

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(max(ms / 1000, self._look_s))
