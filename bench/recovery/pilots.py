"""Pilots that obey nature: they speak to the domain as real ones do, and their jobs run in virtual time."""

import asyncio
from collections.abc import Iterable

from bench.recovery.nature import GIB, FailureModel, HostLoss
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import (
    Assignment,
    AttemptControl,
    AttemptReport,
    AttemptStatus,
    Capacity,
    SyncAnswer,
    SyncRequest,
)
from mendflow.services.api.domain import Domain

SLOTS = 2
WAIT_MS = 10_000
MEMORY_BYTES = {"ant": 16 * GIB, "bee": 16 * GIB, "elk": 64 * GIB}
"""The hosts of the world and what they have. One is much larger than the others."""


class ModelPilot:
    """One life of a pilot on a host. After `vanish` it is as if the machine had never been there."""

    def __init__(self, domain: Domain, nature: FailureModel, host: str, life: int) -> None:
        self._domain = domain
        self._model = nature
        self._host = host
        self._id = PilotId(f"{host}-{life}")
        self._capacity = Capacity(slots=SLOTS, cpus=float(SLOTS), memory_bytes=MEMORY_BYTES[host], disk_bytes=500 * GIB)
        self._serial = self._heard = 0
        self._held: dict[JobId, Assignment] = {}
        self._ended: dict[JobId, Outcome] = {}
        self._tasks: dict[JobId, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._main = asyncio.create_task(self._live(), name=f"pilot {self._id}")

    async def vanish(self) -> None:
        tasks = [self._main, *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self) -> None:
        """Ask; and ask anew, which releases what is held at the server, when a job has ended meanwhile."""
        while True:
            self._news.clear()
            asked = asyncio.create_task(self._exchange())
            heard = asyncio.create_task(self._news.wait())
            try:
                await asyncio.wait({asked, heard}, return_when=asyncio.FIRST_COMPLETED)
                if not asked.done():
                    await self._exchange()
                await asked
            finally:
                for task in (asked, heard):
                    task.cancel()

    async def _exchange(self) -> None:
        self._serial += 1
        serial = self._serial
        running = [each for job, each in self._held.items() if job not in self._ended]
        request = SyncRequest(
            pilot=self._id,
            serial=serial,
            heard=self._heard,
            host=self._host,
            capacity=self._capacity,
            want=SLOTS - len(running),
            wait_ms=WAIT_MS,
            running=[AttemptStatus(each.job, each.fence, "running", Measurements()) for each in running],
            reports=[AttemptReport(job, self._held[job].fence, outcome) for job, outcome in self._ended.items()],
        )
        answer = await self._domain.sync(request)
        if serial > self._heard:
            self._heard = serial
            self._take(answer)

    def _take(self, answer: SyncAnswer) -> None:
        cancelled = [order.job for order in answer.orders if order.control is AttemptControl.CANCEL]
        self._forget([*(ref.job for ref in (*answer.accepted, *answer.refused, *answer.lost)), *cancelled])
        for assignment in answer.jobs:
            self._held[assignment.job] = assignment
            self._tasks[assignment.job] = asyncio.create_task(self._run(assignment))

    def _forget(self, jobs: Iterable[JobId]) -> None:
        for job in jobs:
            self._held.pop(job, None)
            self._ended.pop(job, None)
            if (task := self._tasks.pop(job, None)) is not None:
                task.cancel()

    async def _run(self, assignment: Assignment) -> None:
        ending = self._model.attempt(assignment.spec, self._host, asyncio.get_running_loop().time())
        await asyncio.sleep(ending.after_s)
        self._ended[assignment.job] = self._model.ended(assignment.spec, ending)
        self._news.set()


class Hosts:
    """The machines of the world. Some of them come and go."""

    def __init__(self, domain: Domain, nature: FailureModel, vanishing: Iterable[HostLoss]) -> None:
        self._domain = domain
        self._model = nature
        self._lives: dict[str, int] = {}
        self._pilots: dict[str, ModelPilot] = {}
        for host in MEMORY_BYTES:
            self._appear(host)
        self._fates = [asyncio.create_task(self._lose_host(each)) for each in vanishing]

    def _appear(self, host: str) -> None:
        life = self._lives[host] = self._lives.get(host, 0) + 1
        self._pilots[host] = ModelPilot(self._domain, self._model, host, life)

    async def _lose_host(self, fate: HostLoss) -> None:
        await asyncio.sleep(fate.at_s)
        while True:
            await self._pilots[fate.host].vanish()
            if fate.back_s is None:
                return
            await asyncio.sleep(fate.back_s)
            self._appear(fate.host)
            if fate.again_s is None:
                return
            await asyncio.sleep(fate.again_s)

    async def close(self) -> None:
        for fate in self._fates:
            fate.cancel()
        await asyncio.gather(*self._fates, return_exceptions=True)
        for pilot in self._pilots.values():
            await pilot.vanish()
