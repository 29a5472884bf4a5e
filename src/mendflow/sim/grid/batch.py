"""Simulated batch systems behind the product's provisioning, and the hosts on which they start pilots."""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from mendflow.core.model.ids import PilotId
from mendflow.core.model.sites import (
    PILOTS_MAX,
    BatchJobStatus,
    BatchSettings,
    PilotSettings,
    PilotSubmission,
    Site,
    SubmitAccepted,
    SubmitResult,
)
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.elements import draw_seconds
from mendflow.sim.grid.pilots import LeanPilot
from mendflow.sim.grid.scene import SiteScene


class HostPool:
    """The hosts of a site, and how many pilots each has."""

    def __init__(self, site: SiteScene) -> None:
        self.site = site
        self._there = [0] * site.hosts
        self._names = [f"{site.name}-h{number:03d}" for number in range(site.hosts)]
        self._numbers = {name: number for number, name in enumerate(self._names)}

    def place(self) -> str:
        """The host with the fewest pilots; None if all are full."""
        fewest = min(self._there)
        if self.site.pilots_a_host and fewest >= self.site.pilots_a_host:
            return ""
        number = self._there.index(fewest)
        self._there[number] += 1
        return self._names[number]

    def leave(self, host: str) -> None:
        self._there[self._numbers[host]] -= 1


class _Submitted(msgspec.Struct):
    native: str
    secret: str
    state: Literal["queued", "running", "ended"] = "queued"
    pilot: LeanPilot | None = None


class VirtualBatch:
    """The product's `BatchSystems`, one for all sites."""

    host = "grid"
    ready = True

    def __init__(self, context: GridContext, pools: Iterable[HostPool]) -> None:
        self._context = context
        self._pools: Mapping[str, HostPool] = {pool.site.name: pool for pool in pools}
        self._jobs: dict[str, dict[str, _Submitted]] = {name: {} for name in self._pools}
        # those that wait for room on a host
        self._line: dict[str, deque[str]] = {name: deque() for name in self._pools}
        self.submitted = 0

    async def submit(
        self, site: Site, submissions: Sequence[PilotSubmission], secrets: Mapping[str, str]
    ) -> dict[str, SubmitResult]:
        context, scene, answers, longest = (
            self._context,
            self._pools[site.name].site.batch,
            dict[str, SubmitResult](),
            0.0,
        )
        for each in submissions:
            self.submitted += 1
            context.pending += 1
            chance = context.chance("batch", site.name, self.submitted)
            submit_s, queue_s = draw_seconds(scene.submit_s, chance), draw_seconds(scene.queue_s, chance)
            native = str(self.submitted)
            self._jobs[site.name][each.name] = _Submitted(native, secrets[each.name])
            context.after(submit_s + queue_s, self._start, site.name, each.name)
            answers[each.name] = SubmitAccepted(native)
            longest = max(longest, submit_s)
        await asyncio.sleep(longest)
        return answers

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        return {name: BatchJobStatus(job.state, job.native) for name, job in self._jobs[site.name].items()}

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        for name in names:
            job = self._jobs[site.name].get(name)
            if job is not None and job.pilot is not None:
                job.pilot.kill()
            elif job is not None:
                job.state = "ended"

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        for name in left:
            self._jobs[site.name].pop(name, None)

    async def sweep(self, sites: Collection[str]) -> None:
        """Nothing to do: there are no folders."""

    async def lacks(self, site: Site) -> list[str]:
        return []

    def _start(self, site: str, name: str) -> None:
        job, pool = self._jobs[site].get(name), self._pools[site]
        if job is None or job.state != "queued":
            self._context.pending -= 1
            return
        host = pool.place()
        if not host:
            self._line[site].append(name)
            return
        self._context.pending -= 1
        job.state = "running"
        own_name = PilotId(f"{site}-b{job.native}")
        job.pilot = LeanPilot(
            self._context, own_name, pool.site, host, submission=name, secret=job.secret, ended=self._ended
        )
        job.pilot.start()

    def _ended(self, pilot: LeanPilot) -> None:
        site = pilot.site
        job = self._jobs[site].get(pilot.submission)
        if job is not None:
            job.state, job.pilot = "ended", None
        self._pools[site].leave(pilot.host)
        if self._line[site]:
            self._start(site, self._line[site].popleft())


def as_product(site: SiteScene) -> Site:
    """The site as the product's pilot monitor knows it."""
    idle_ms = round(site.idle_exit_s * 1000) or PilotSettings().idle_exit_ms
    return Site(
        name=site.name,
        min_pilots=site.min_pilots,
        max_pilots=site.max_pilots,
        min_idle=site.min_idle,
        submissions_per_hour=PILOTS_MAX,
        start_ms=3_600_000,
        batch=BatchSettings(wall_ms=round(site.life_s * 1000), host=VirtualBatch.host),
        pilots=PilotSettings(
            slots=site.slots,
            cpus=max(1, int(site.cpus or site.slots)),
            memory_bytes=site.memory_bytes,
            disk_bytes=site.disk_bytes,
            idle_exit_ms=idle_ms,
            share=site.share,
        ),
    )
