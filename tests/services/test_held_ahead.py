"""Short jobs are handed out ahead. What a pilot holds and has not begun waits, whoever asks."""

from collections import Counter
from typing import Any

from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobState, Measurements, Outcome
from mendflow.core.model.sync import AttemptReport, AttemptStatus, Capacity, SyncRequest
from mendflow.core.model.views import JobQuery
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server

TWO_SLOTS = Capacity(slots=2, cpus=2.0, memory_bytes=8 << 30, disk_bytes=8 << 30)


async def start(domain: Domain, *, turns: int) -> str:
    body = ForEach(name="loop", items=list(range(turns)), body=JobActivity(name="a", command="true"))
    await domain.deploy(Flow(name=FlowName("f"), body=body))
    return (await domain.start("f", {}, who="me")).id


async def says(pilot: Any, *, ended: str = "", runs: tuple[str, ...] = (), stages: tuple[str, ...] = ()) -> None:
    """An exchange in which these items are said to run, or to be staged, and all others that the pilot has to be
    held."""
    pilot.serial += 1
    words = {**dict.fromkeys(runs, "running"), **dict.fromkeys(stages, "staging")}
    states = [(each, words.get(each.spec.item, "held")) for each in pilot.held if each.spec.item != ended]
    request = SyncRequest(
        pilot=pilot.name,
        serial=pilot.serial,
        heard=pilot.heard,
        host="here",
        capacity=pilot.capacity,
        want=0,
        running=[AttemptStatus(each.job, each.fence, state, Measurements()) for each, state in states],
        reports=[AttemptReport(each.job, each.fence, Outcome()) for each in pilot.held if each.spec.item == ended],
    )
    await pilot.domain.sync(request)
    pilot.heard = pilot.serial
    pilot.held = [each for each, _ in states]


async def running(domain: Domain, case: str) -> list[str]:
    """The items that run; everything that can be asked must agree."""
    items = [str(item.item) for item in await domain.items(case, state="running")]
    [count] = (await domain.case(case)).counts
    jobs = await domain.jobs(JobQuery(case=case, state="running"))
    waiting = await domain.jobs(JobQuery(case=case, state="available"))
    assert count.running == (await domain.health()).jobs_running == len(items)
    assert count.waiting == (await domain.health()).jobs_waiting == len(waiting)
    assert sorted(job.spec.item for job in jobs) == sorted(items)
    return items


async def test_never_more_jobs_run_than_there_are_slots(server: Server, domain: Domain, another_pilot: Any) -> None:
    pilot = another_pilot("p-1", TWO_SLOTS)
    case = await start(domain, turns=10)
    await pilot.sync(want=8)
    assert len(pilot.held) == 8
    assert await running(domain, case) == ["a[0]", "a[1]"], "the first of them, until the pilot says otherwise"
    await says(pilot, runs=("a[1]", "a[2]"))
    assert await running(domain, case) == ["a[1]", "a[2]"]
    await says(pilot, ended="a[1]", runs=("a[2]", "a[3]"))
    assert await running(domain, case) == ["a[2]", "a[3]"]
    assert (await domain.why(f"{case}:a[3]")).state == "running"
    told = await domain.why(f"{case}:a[5]")
    assert (told.state, told.sentence) == ("waiting", "a[5] waits for a slot of pilot p-1 on here, attempt 1.")


async def test_what_a_pilot_gets_while_its_slots_are_full_waits(domain: Domain, another_pilot: Any) -> None:
    pilot = another_pilot("p-1", TWO_SLOTS)
    case = await start(domain, turns=6)
    await pilot.sync(want=2)
    await pilot.sync(want=4)
    assert len(pilot.held) > 2, "some are ahead"
    assert await running(domain, case) == ["a[0]", "a[1]"]


async def test_a_job_that_is_held_ahead_is_still_leased_to_its_pilot(domain: Domain, another_pilot: Any) -> None:
    pilot = another_pilot("p-1", TWO_SLOTS)
    case = await start(domain, turns=4)
    await pilot.sync(want=4)
    documents = [job async for job in domain._server.store.scan("job", f"{case}/")]
    assert all(b'"state":"running"' in document.body for document in documents)
    views = await domain.jobs(JobQuery(case=case))
    assert Counter(job.state for job in views) == {JobState.RUNNING: 2, JobState.AVAILABLE: 2}
    assert {job.pilot for job in views} == {"p-1"}


async def test_jobs_of_one_moment_are_listed_by_their_number(domain: Domain) -> None:
    case = await start(domain, turns=12)
    jobs = await domain.jobs(JobQuery(case=case))
    numbers = [int(job.id.rpartition("/")[2]) for job in jobs]
    created = [job.created_at for job in jobs]
    assert created == sorted(created, reverse=True)
    assert numbers == sorted(numbers, reverse=True), "the newest first"
    pages = [job for at in range(0, 12, 5) for job in await domain.jobs(JobQuery(case=case, limit=5, offset=at))]
    assert pages == jobs


async def test_what_is_staged_while_all_slots_are_taken_waits(domain: Domain, another_pilot: Any) -> None:
    pilot = another_pilot("p-1", TWO_SLOTS)
    case = await start(domain, turns=6)
    await pilot.sync(want=4)
    await says(pilot, runs=("a[0]", "a[1]"), stages=("a[2]", "a[3]"))
    assert await running(domain, case) == ["a[0]", "a[1]"]
    await says(pilot, ended="a[0]", runs=("a[1]",), stages=("a[2]", "a[3]"))
    assert await running(domain, case) == ["a[1]", "a[2]"], "its files come into a slot that is free"
