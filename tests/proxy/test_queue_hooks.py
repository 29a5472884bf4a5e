"""What the queue tells of running and waiting jobs, and how it asks before it tries again."""

import asyncio

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Job, Outcome, Resources
from mendflow.core.recovery.patterns import FaultPattern, JobPattern
from mendflow.formats.shipped import default_patterns
from mendflow.services.recovery.proxy.patterns import PatternStore
from tests.proxy.world import EXIT, JOB, Judge, World, bad, hold, new, turns


async def test_the_latest_measures_and_values_of_a_running_job_can_be_read() -> None:
    async with World() as world:
        await world.submit(new())
        assert world.meta.running(JOB) is None
        await world.sync()
        assert world.meta.running(JOB) is None, "nothing was told yet"
        await world.sync(values={"step": 1})
        await world.sync()
        found = world.meta.running(JOB)
        assert found is not None
        assert (found.pilot, found.measures.peak_bytes, found.values) == (PilotId("p-1"), 7, {"step": 1})
        await world.sync(values={"step": 2})
        assert (world.meta.running(JOB) or found).values == {"step": 2}
        await world.sync(align=Outcome())
        assert world.meta.running(JOB) is None


async def test_since_when_nobody_can_take_a_job_is_remembered() -> None:
    async with World() as world:
        await world.submit(new(resources=Resources(cpus=64)))
        start = world.clock.at
        await world.sync()
        [first] = world.meta.waiting()
        assert (first.has_pilot, first.first, first.unable_since) == (False, JOB, start)
        world.clock.at += 5_000
        await world.submit(new(id=JobId("c-1/2"), resources=Resources(cpus=32)))
        by_first = {each.first: each.unable_since for each in world.meta.waiting()}
        assert by_first == {JOB: start, "c-1/2": start + 5_000}
        await world.submit(new(id=JobId("c-1/3"), resources=Resources()))
        assert [each.first for each in world.meta.waiting() if each.has_pilot] == ["c-1/3"]


async def test_a_report_that_is_told_again_while_somebody_is_asked_is_heard_once() -> None:
    asked: list[JobId] = []
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def slowly(job: Job, outcome: Outcome) -> bool:
        asked.append(job.id)
        return await answer

    async with World(judge=Judge(slowly)) as world:
        await world.submit(new(retries=1))
        await world.sync()
        held = list(world.held["p-1"])
        first = asyncio.create_task(world.sync(want=0, align=bad(EXIT)))
        await turns()
        world.held["p-1"] = held
        again = await world.sync(want=0, align=bad(EXIT))
        assert not again.accepted and not again.refused and not again.lost, "the pilot tells it again"
        answer.set_result(False)
        assert [ref.job for ref in (await first).accepted] == [JOB]
        assert asked == [JOB]
        assert world.meta.jobs[JOB].failures == 1


async def test_a_job_that_is_cancelled_while_somebody_is_asked_stays_cancelled() -> None:
    async def cancels(job: Job, outcome: Outcome) -> bool:
        await world.meta.cancel(job.id)
        return True

    async with World(judge=Judge(cancels)) as world:
        await world.submit(new(retries=1))
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        status = await world.meta.status(JOB)
        assert status.outcome is not None and status.outcome.fault is not None
        assert status.outcome.fault.name == "cancelled"


async def test_a_stored_pattern_holds_at_once_and_after_a_restart() -> None:
    # FM-11: extended without code
    async with World(hold) as world:
        book = PatternStore(world.store, world.ledger, default_patterns(), world.proxy.use_patterns)
        await book.start()
        await book.add(JobPattern(name="told", messages="submit subscribe notify end"))
        await book.add(FaultPattern(name="mine", does="Gives up.", do=default_patterns().repairs[-1].do))
        await book.add(JobPattern(name="submit-and-notify", messages="submit subscribe notify notify end"))
        assert world.proxy.recovery.patterns is book.patterns
        await world.crash()
        again = PatternStore(world.store, world.ledger, default_patterns(), world.proxy.use_patterns)
        await again.start()
        assert again.patterns == book.patterns
        assert again.patterns.repair("mine") is not None
        await world.submit(new())
        await world.sync()
        await world.sync(align=bad(EXIT))
        assert world.failures[-1].pattern == "", "two patterns may still come of it"
