"""Play one scenario with one strategy, and see what it came to.

The domain is the product's own, on a store in memory and in virtual time: its engine, queue, proxy, rules and exlets.
Only the line, the hosts and what runs on them are nature's."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from bench.recovery.nature import Nature, Needs, Vanishes
from bench.recovery.pilots import Hosts
from bench.recovery.scenario import Scenario
from bench.recovery.schedulers import FarScheduler, Line
from bench.recovery.strategies import Strategy, house_with
from mendflow.core.model.flow import Flow, Job, NeededResources, Parallel
from mendflow.core.model.ids import FlowName, JobId
from mendflow.core.model.jobs import Submission
from mendflow.services.api.local_domain import LocalDomain
from mendflow.services.runtime.server import House
from mendflow.sim.loop import run

PLACES = ("one", "two")
BOUND_S = 6 * 3600.0
"""Nothing that can be mended takes longer than this; what is not over by then counts as failed."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` from the start to the end that the user sees; `attempts` are all that were begun or refused."""

    recovered: bool
    seconds: float
    attempts: int
    over: bool = True  # within the bound


def play(scenario: Scenario, strategy: Strategy) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        return run(_play(scenario, strategy, Path(folder)))


def fair_weather(scenario: Scenario) -> Scenario:
    """The same work where nothing is wrong and what is asked for is enough."""
    needs = Needs(seconds=scenario.needs.seconds)
    return msgspec.structs.replace(scenario, troubles=(), needs=needs, wall_s=100 * needs.seconds)


async def _play(scenario: Scenario, strategy: Strategy, folder: Path) -> Result:
    nature = Nature(scenario.needs, scenario.troubles)
    line = Line("", scenario.troubles)
    far = FarScheduler(nature) if scenario.domains else None
    async with _world(scenario, strategy, folder, nature, line, far) as (house, domain):
        if scenario.before:
            await domain.deploy(_flow("earlier", scenario.before, scenario))
            earlier = (await domain.start("earlier", {}, who="somebody")).id
            await _over(house, earlier, 0)
            nature.forget()
        began = asyncio.get_running_loop().time()
        await domain.deploy(_flow("scenario", scenario.jobs, scenario))
        case = (await domain.start("scenario", {}, who="somebody")).id
        over = await _over(house, case, scenario.jobs if scenario.pattern is Submission.FORGET else 0)
        seconds = asyncio.get_running_loop().time() - began
        recovered = over and (await domain.case(case)).status == "completed" and len(nature.good) == scenario.jobs
        return Result(
            recovered=recovered,
            seconds=seconds,
            attempts=sum(nature.begun.values()) + line.refusals,
            over=over,
        )


@contextlib.asynccontextmanager
async def _world(
    scenario: Scenario, strategy: Strategy, folder: Path, nature: Nature, line: Line, far: FarScheduler | None
) -> AsyncIterator[tuple[House, LocalDomain]]:
    house: House = await house_with(strategy, folder, line, far)
    domain = LocalDomain(house)
    vanishing = [trouble for trouble in scenario.troubles if isinstance(trouble, Vanishes)]
    hosts = Hosts(domain, nature, vanishing)
    try:
        yield house, domain
    finally:
        await hosts.close()
        if far is not None:
            await far.close()
        await house.close()


def _flow(name: str, count: int, scenario: Scenario) -> Flow:
    wall_ms = round(scenario.wall_s * 1000)
    jobs = tuple(
        Job(
            name=f"job-{number}",
            command="work",
            replicas={"plate": [f"/archive/{place}/plate" for place in (PLACES if scenario.replicas else PLACES[:1])]},
            resources=NeededResources(memory_bytes=scenario.memory_bytes, wall_ms=wall_ms),
            submission=scenario.pattern,
        )
        for number in range(count)
    )
    return Flow(name=FlowName(name), body=Parallel(name="all", branches=jobs, on_fault="finish"))


async def _over(house: House, case: str, forgotten: int) -> bool:
    """Wait for the end that the user sees: of the case, and of the jobs that it does not wait for."""
    domain, proxy = LocalDomain(house), house.services.proxy
    while asyncio.get_running_loop().time() < BOUND_S:
        await asyncio.sleep(1)
        if (await domain.case(case)).status in ("running", "suspended"):
            continue
        if not any(proxy.standing(JobId(f"{case}/{serial}")) for serial in range(1, forgotten + 1)):
            return True
    return False
