"""What jobs need is learned on every store: by the same server, by a later one, and by another."""

import asyncio
from pathlib import Path

import pytest

from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.views import JobQuery
from mendflow.services.learning import sizes
from tests.contract.backends import Durable
from tests.contract.test_results import labs, opened
from tests.patience import until
from tests.services.lab import Lab
from tests.services.learning.test_job_sizes import MB, flow

__all__ = ["labs"]


async def run(lab: Lab) -> list[int]:
    """Run the flow; what its jobs asked for, in MB."""
    asked: list[int] = []

    def play(spec: JobSpec) -> Outcome:
        asked.append(spec.resources.memory_bytes // MB)
        return Outcome(measures=Measurements(peak_bytes=200 * MB, ran_ms=1000))

    await lab.domain.deploy(flow(3))
    await lab.domain.start("f", {}, who="me")
    await lab.pilot.run_all(play)
    return asked


async def test_a_later_server_knows_what_was_learned(durable: Durable, tmp_path: Path) -> None:  # LE-2
    async with opened(durable.make(tmp_path), tmp_path) as lab:
        assert await run(lab) == [1509] * 3
    async with opened(durable.make(tmp_path), tmp_path) as lab:
        assert await run(lab) == [285] * 3
        [view] = await lab.domain.sizes(flow="f", name="eat")
        assert view.jobs == 6
        jobs = (await lab.domain.find_jobs(JobQuery(where="resources.memory < '1GB'"))).rows
        assert len(jobs) == 3


async def test_servers_learn_from_each_other(labs: list[Lab]) -> None:  # LE-2
    one, two = labs
    assert await run(one) == [1509] * 3
    await one.server.runtime.sizes.merge()
    assert await run(two) == [285] * 3
    assert [view.jobs for view in await one.domain.sizes()] in ([3], [6])  # the other may have written already

    async def is_told() -> bool:
        await two.server.runtime.sizes.merge()
        return [view.jobs for view in await one.domain.sizes()] == [6]

    await until(is_told, "what the other has learned is known here")


async def test_nothing_is_lost_when_servers_write_the_same_names_at_once(  # LE-2
    labs: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "NAMES_AT_ONCE", 4)
    jobs = tuple(JobActivity(name=f"step{number}", command="true") for number in range(10))
    for lab in labs:
        await lab.domain.deploy(Flow(name=FlowName("long"), body=Parallel(name="steps", branches=jobs)))
        await lab.domain.start("long", {}, who="me")
        await lab.pilot.run_all(lambda spec: Outcome(measures=Measurements(peak_bytes=MB, ran_ms=1000)))
    await asyncio.gather(*(lab.server.runtime.sizes.merge() for lab in labs))
    assert [view.jobs for view in await labs[0].domain.sizes(flow="long")] == [2] * 10
