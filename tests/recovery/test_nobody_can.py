"""A job that no pilot can take, in virtual time: the administrator is told once, and the job waits until one can."""

import asyncio
from pathlib import Path

from bench.recovery.nature import GIB, FailureModel, ScenarioNeeds
from bench.recovery.pilots import Hosts
from bench.recovery.schedulers import SchedulerLink
from bench.recovery.strategies import HOUSE, server_with
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.api.domain import Domain
from mendflow.sim.loop import run

WORK = JobActivity(name="work", command="work", resources=ResourceTemplates(memory_bytes=32 * GIB, wall_ms=600_000))
MANY = Flow(name=FlowName("many"), body=ForEach(name="all", first=1, last=5, parallel=True, body=WORK))


async def _no_pilot_for_two_minutes(folder: Path) -> tuple[list[str], str, list[str]]:
    """What the administrator was told by then, how the case ended when pilots had come, and what was told in all."""
    server = await server_with(HOUSE, folder, SchedulerLink("", ()), None)
    domain = Domain(server)
    await domain.deploy(MANY)
    case = (await domain.start("many", {}, who="somebody")).id
    await asyncio.sleep(120)
    told = [notice.message for notice in await domain.notices(limit=100)]
    hosts = Hosts(domain, FailureModel(ScenarioNeeds(), ()), ())
    while (status := (await domain.case(case)).status) == "running":
        await asyncio.sleep(1)
    later = [notice.message for notice in await domain.notices(limit=100)]
    await hosts.close()
    await server.close()
    return told, status, later


def test_the_administrator_is_told_once_what_is_missing_and_the_jobs_go_on_waiting(tmp_path: Path) -> None:
    # FM-12: nobody can take it
    told, status, later = run(_no_pilot_for_two_minutes(tmp_path))
    assert len(told) == 1 and "waits, and there is no pilot. It asks for 1 CPUs, 34359 MB of memory" in told[0]
    assert "`mendflow pilot`" in told[0]
    assert status == "completed" and later == told
