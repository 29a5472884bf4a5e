"""How many jobs a second a server gives to pilots and closes, by projects and quotas.

A server with its store in memory, in this process, and four pilots of 64 slots that end every job at once: what is
measured is the processor time of the server's own work. Run it in two checkouts in turn to compare them; with a name it
profiles that scene instead."""

import asyncio
import cProfile
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.core.model.sync import Capacity
from mendflow.services.api.domain import Domain
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on

JOBS = 6000
ROUNDS = 7
SLOTS = 64
PILOTS = 4
FUNCTIONS_SHOWN = 40

Scene = tuple[tuple[str, ...], ProjectSettings | None]
SCENES: dict[str, Scene] = {
    "one project": (("default",), None),
    "one project, quotas that never bind": (
        ("default",),
        ProjectSettings(quotas=Quotas(running_jobs=JOBS, cpus=JOBS, cases=10)),
    ),
    "two projects": (("red", "blue"), None),
    "two projects, 3:1": (("red", "blue"), ProjectSettings(weight=3)),
}


def flow_of(project: str, jobs: int) -> Flow:
    job = JobActivity(name="work.iteration", label="work", command="true")
    return Flow(name=FlowName(f"of-{project}"), body=ForEach(name="work", first=0, last=jobs - 1, body=job))


async def claims_per_s(scene: Scene, folder: Path) -> float:
    projects, settings = scene
    server = server_on(MemoryStore(), folder)
    await server.open()
    domain = Domain(server)
    if settings is not None:
        await domain.set_project(projects[0], settings, who="bench")
    for project in projects:
        await domain.deploy(flow_of(project, JOBS // len(projects)), project=project)
        await domain.start(f"of-{project}", {}, who="bench")
    capacity = Capacity(slots=SLOTS, cpus=float(SLOTS), memory_bytes=64 << 30, disk_bytes=64 << 30)
    pilots = [HandPilot(domain, f"p-{number}", capacity) for number in range(PILOTS)]
    begun, done = time.process_time(), 0
    while done < JOBS:
        for pilot in pilots:
            done += len(pilot.held)
            await pilot.exchange({each.spec.item: Outcome() for each in pilot.held}, want=SLOTS)
    took_s = time.process_time() - begun
    await server.close()
    return JOBS / took_s


def measured(scene: Scene) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(claims_per_s(scene, Path(folder)))


def profile(measure: Callable[[], float]) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(measure)
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(FUNCTIONS_SHOWN)


def main() -> None:
    if len(sys.argv) > 1:
        profile(lambda: measured(SCENES[sys.argv[1]]))
        return
    found: dict[str, list[float]] = {name: [] for name in SCENES}
    for _ in range(ROUNDS):  # in turn, so that what else the machine does falls on all of them
        for name, scene in SCENES.items():
            found[name].append(measured(scene))
    for name, rates in found.items():
        print(f"{name:40} {statistics.median(rates):8,.0f} jobs/s (best {max(rates):,.0f})")


if __name__ == "__main__":
    main()
