"""Jobs whose memory is learned, on a server: what they ask for, and what people are told of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.views import JobQuery
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.conftest import HandPilot
from tests.services.test_domain import named, start

MB = 1_000_000


def flow(count: int = 6, memory: str = "auto up to 2 GB", time: Any = 0, retries: int = 0) -> Flow:
    needs = ResourceTemplates(memory_bytes=memory, wall_ms=time)
    job = JobActivity(name="eat", command="eat", resources=needs, retries=retries)
    return named(ForEach(name="loop", items=list(range(count)), body=job, on_fault="finish"))


def used(peak_mb: int) -> Outcome:
    return Outcome(measures=Measurements(peak_bytes=peak_mb * MB, ran_ms=60_000))


def too_much(spec: JobSpec) -> Outcome:
    limit = spec.resources.memory_bytes
    data = {"peak_bytes": limit + MB, "limit_bytes": limit}
    fault = Fault(name="memoryLimit", category=Category.MEMORY, message="it used more", data=data)
    return Outcome(fault=fault, measures=Measurements(peak_bytes=limit + MB, ran_ms=60_000))


async def asked(domain: Domain) -> list[int]:
    """What jobs ask for, in MB, in the order in which they were submitted."""
    found = (await domain.find_jobs(JobQuery(order="created"))).rows
    return [job.spec.resources.memory_bytes // MB for job in sorted(found, key=lambda job: (job.created_at, job.id))]


async def test_scouts_are_followed_by_jobs_that_ask_for_what_is_needed(domain: Domain, pilot: HandPilot) -> None:
    # LE-2
    case = await start(domain, flow())
    assert await asked(domain) == [1509] * 6
    await pilot.sync(want=4, wait_ms=50)
    assert len(pilot.held) == 4
    await pilot.exchange({each.spec.item: used(200) for each in pilot.held})
    assert await asked(domain) == [1509] * 4 + [285] * 2, "those that wait ask for less"
    told = await domain.why(f"{case}/6")
    assert any("it asks for 272 MiB of memory: the most that the last" in fact for fact in told.facts), told.facts
    await pilot.run_all(lambda _: used(200))
    assert (await domain.case(case)).status == "completed"
    [view] = await domain.sizes()
    assert (view.flow, view.name, view.jobs, view.memory_used_bytes) == ("f", "eat", 6, 200 * MB)
    assert view.saved_gb_hours > 0


async def test_without_a_bound_scouts_ask_for_nothing(domain: Domain, pilot: HandPilot) -> None:  # LE-2
    await start(domain, flow(memory="auto", time="auto"))
    assert await asked(domain) == [0] * 6
    await pilot.run_all(lambda _: used(300))
    await domain.start("f", {}, who="me")
    newest = (await domain.find_jobs(JobQuery(state="available"))).rows
    assert {job.spec.resources.memory_bytes // MB for job in newest} == {385}
    assert {job.spec.resources.wall_ms for job in newest} == {150_000}


async def test_a_job_that_had_too_little_gets_more_up_to_its_bound(domain: Domain, pilot: HandPilot) -> None:  # LE-2
    case = await start(domain, flow(count=1, retries=1))
    given = []

    def play(spec: JobSpec) -> Outcome:
        given.append(spec.resources.memory_bytes // MB)
        return too_much(spec)

    await pilot.run_all(play)
    assert given == [1509, 2000], "and no more: it is the flow's bound"
    assert (await domain.case(case)).status == "failed"


async def test_a_failed_scout_has_the_others_ask_for_all_they_may(domain: Domain, pilot: HandPilot) -> None:  # LE-2
    await start(domain, flow())
    await pilot.sync(want=1, wait_ms=50)
    [held] = pilot.held
    await pilot.exchange({held.spec.item: too_much(held.spec)})
    waiting = (await domain.find_jobs(JobQuery(state="available"))).rows
    assert {job.spec.resources.memory_bytes for job in waiting} == {2000 * MB}


async def test_what_was_learned_and_asked_for_survives_a_crash(
    server: Server, domain: Domain, pilot: HandPilot, restart: Callable[[Server], Awaitable[None]]
) -> None:  # LE-2
    await start(domain, flow())
    await pilot.sync(want=4, wait_ms=50)
    await pilot.exchange({each.spec.item: used(200) for each in pilot.held})
    before = await asked(domain)
    await server.runtime.sizes.merge()
    await restart(server)
    assert await asked(domain) == before
    await domain.start("f", {}, who="me")
    assert (await asked(domain))[6:] == [285] * 6


async def test_jobs_that_state_their_memory_teach_and_keep_it(domain: Domain, pilot: HandPilot) -> None:  # LE-2
    stated = JobActivity(name="eat", command="eat", resources=ResourceTemplates(memory_bytes=1000 * MB))
    await start(domain, named(ForEach(name="loop", items=[1, 2, 3, 4], body=stated)))
    await pilot.run_all(lambda _: used(100))
    assert await asked(domain) == [1000] * 4
    await domain.deploy(flow())
    await domain.sizes()  # what has ended is written
    await domain.start("f", {}, who="me")
    assert (await asked(domain))[4:] == [184] * 6


@pytest.mark.parametrize("text", ["auto up to much", "auto up to 0 B", "automatic"])
async def test_a_bound_that_is_none_is_refused(domain: Domain, text: str) -> None:  # LE-2
    refused = named(JobActivity(name="a", command="x", resources=ResourceTemplates(memory_bytes=text)))
    with pytest.raises(BadFlow, match="memory_bytes is"):
        await domain.deploy(refused)
