"""Play one scenario with one strategy, and see what it came to.

The domain is the product's own, on a store in memory and in virtual time: its engine, queue, proxy, rules and exlets.
Only the line, the hosts and what runs on them are nature's."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from bench.recovery.nature import FailureModel, HostLoss, ScenarioNeeds
from bench.recovery.pilots import Hosts
from bench.recovery.scenario import Scenario
from bench.recovery.schedulers import FarScheduler, SchedulerLink
from bench.recovery.strategies import Strategy, server_with
from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import FlowName, JobId
from mendflow.core.model.jobs import Submission
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.sim.loop import run
from mendflow.stores.contract import Store

PLACES = ("one", "two")
BOUND_S = 6 * 3600.0
"""Nothing that can be mended takes longer than this; what is not over by then counts as failed."""


class PlayResult(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` from the start to the end that the user sees; `attempts` are all that were begun or refused."""

    recovered: bool
    seconds: float
    attempts: int
    over: bool = True  # within the bound


Record = Callable[[Store], Awaitable[None]]
"""What is done with the store of a play when it is over."""


def play(scenario: Scenario, strategy: Strategy, record: Record | None = None) -> PlayResult:
    with tempfile.TemporaryDirectory() as folder:
        return run(_play(scenario, strategy, Path(folder), record))


def without_failures(scenario: Scenario) -> Scenario:
    """The same work where nothing is wrong and what is asked for is enough."""
    needs = ScenarioNeeds(seconds=scenario.needs.seconds)
    return msgspec.structs.replace(scenario, troubles=(), needs=needs, wall_s=100 * needs.seconds)


async def _play(scenario: Scenario, strategy: Strategy, folder: Path, record: Record | None) -> PlayResult:
    nature = FailureModel(scenario.needs, scenario.troubles)
    line = SchedulerLink("", scenario.troubles)
    far = FarScheduler(nature) if scenario.domains else None
    async with _world(scenario, strategy, folder, nature, line, far) as (server, domain):
        if scenario.before:
            await domain.deploy(_flow("earlier", scenario.before, scenario))
            earlier = (await domain.start("earlier", {}, who="somebody")).id
            await _over(server, earlier, 0)
            nature.forget()
        began = asyncio.get_running_loop().time()
        await domain.deploy(_flow("scenario", scenario.jobs, scenario))
        case = (await domain.start("scenario", {}, who="somebody")).id
        over = await _over(server, case, scenario.jobs if scenario.pattern is Submission.FORGET else 0)
        seconds = asyncio.get_running_loop().time() - began
        recovered = over and (await domain.case(case)).status == "completed" and len(nature.good) == scenario.jobs
        if record is not None:
            await server.runtime.ledger.settled()
            await record(server.store)
        return PlayResult(
            recovered=recovered,
            seconds=seconds,
            attempts=sum(nature.begun.values()) + line.refusals,
            over=over,
        )


@contextlib.asynccontextmanager
async def _world(
    scenario: Scenario,
    strategy: Strategy,
    folder: Path,
    nature: FailureModel,
    line: SchedulerLink,
    far: FarScheduler | None,
) -> AsyncIterator[tuple[Server, Domain]]:
    server: Server = await server_with(strategy, folder, line, far)
    domain = Domain(server)
    vanishing = [trouble for trouble in scenario.troubles if isinstance(trouble, HostLoss)]
    hosts = Hosts(domain, nature, vanishing)
    try:
        yield server, domain
    finally:
        await hosts.close()
        if far is not None:
            await far.close()
        await server.close()


def _flow(name: str, count: int, scenario: Scenario) -> Flow:
    wall_ms = round(scenario.wall_s * 1000)
    jobs = tuple(
        JobActivity(
            name=f"job-{number}",
            command="work",
            replicas={"plate": [f"/archive/{place}/plate" for place in (PLACES if scenario.replicas else PLACES[:1])]},
            resources=ResourceTemplates(memory_bytes=scenario.memory_bytes, wall_ms=wall_ms),
            submission=scenario.pattern,
        )
        for number in range(count)
    )
    return Flow(name=FlowName(name), body=Parallel(name="all", branches=jobs, on_fault="finish"))


async def _over(server: Server, case: str, forgotten: int) -> bool:
    """Wait for the end that the user sees: of the case, and of the jobs that it does not wait for."""
    domain, proxy = Domain(server), server.runtime.proxy
    while asyncio.get_running_loop().time() < BOUND_S:
        await asyncio.sleep(1)
        if (await domain.case(case)).status in ("running", "suspended"):
            continue
        if not any(proxy.phase_of(JobId(f"{case}/{serial}")) for serial in range(1, forgotten + 1)):
            return True
    return False
