"""Somebody submits a job again while it is still asked what is to be done about its failure, or where it failed: the
answer is about the earlier submission, and changes nothing of the later one."""

import asyncio

import pytest

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.contracts import Change, Failure
from tests.proxy.far_domain import FarDomain
from tests.proxy.world import AWAY, EXIT, JOB, OUT_OF_MEMORY, World, bad, hold, new, nothing, turns

SECOND, THIRD = JobId("c-1/1~2"), JobId("c-1/1~3")


class SlowAnswers:
    """Mends nothing, and says so about each submission when the test lets it."""

    def __init__(self) -> None:
        self.answers: dict[JobId, asyncio.Event] = {}

    async def __call__(self, world: World, failure: Failure) -> bool:
        await self.answers.setdefault(failure.real, asyncio.Event()).wait()
        return False


@pytest.mark.parametrize("second_ends", ["before the first answer", "after it"])
@pytest.mark.parametrize("ended", [bad(OUT_OF_MEMORY), Outcome(outputs=1)], ids=["badly", "well"])
async def test_where_the_first_submission_ran_is_told_late(second_ends: str, ended: Outcome) -> None:
    far = FarDomain()
    async with World(domains={"": far}) as world:
        await world.submit(new())
        far.slow = gate = asyncio.Event()
        failing = asyncio.create_task(far.end(JOB, bad(EXIT)))
        await turns()
        far.slow = None
        await world.proxy.resubmit(JOB, Change(), key="x/1")
        if second_ends == "after it":
            gate.set()
            await failing
        await far.end(SECOND, ended)
        gate.set()
        await failing
        assert [each.real for each in world.failures] == ([] if ended.ok else [SECOND])
        assert world.told == [(1, ended)]


async def test_who_would_not_mend_the_first_failure_says_nothing_about_the_second() -> None:
    far, judge = FarDomain(), SlowAnswers()
    async with World(judge, domains={"": far}) as world:
        await world.submit(new())
        first = asyncio.create_task(far.end(JOB, bad(EXIT)))
        await turns()
        await world.proxy.resubmit(JOB, Change(), key="x/1")
        second = asyncio.create_task(far.end(SECOND, bad(OUT_OF_MEMORY)))
        await turns()
        judge.answers[JOB].set()
        await first
        assert (world.told, world.proxy.phase_of(JOB)) == ([], "held"), "the second is still asked about"
        judge.answers[SECOND].set()
        await second
        assert world.told == [(1, bad(OUT_OF_MEMORY))]


async def test_an_attempt_that_is_submitted_again_while_it_is_asked_about_is_not_tried_again_besides() -> None:
    judge = SlowAnswers()
    async with World(judge) as world:
        await world.submit(new(retries=2))
        await world.sync()
        asked = asyncio.create_task(world.sync(want=0, align=bad(EXIT)))
        await turns()
        await world.proxy.resubmit(JOB, Change(), key="x/1")
        judge.answers[JOB].set()
        await asked
        await world.sync()
        assert world.running() == [SECOND]
        await world.sync(align=Outcome(outputs=1))
        assert world.told == [(1, Outcome(outputs=1))]


async def test_an_attempt_whose_failure_was_held_is_not_asked_about_if_it_is_submitted_again_while_it_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with World(hold) as world:
        await world.submit(new(retries=2))
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        await world.crash()
        world.failures.clear()
        cancel = world.meta.cancel

        async def cancels(id: JobId, *, reason: str = "") -> None:
            await world.proxy.resubmit(JOB, Change(), key="x/1")
            await cancel(id, reason=reason)

        monkeypatch.setattr(world.meta, "cancel", cancels)
        await world.submit(new(), reissued=True)
        await world.sync()
        assert (world.running(), world.failures) == ([SECOND], [])


async def test_a_domain_that_refuses_late_refuses_nothing_that_was_submitted_elsewhere_meanwhile() -> None:
    far = FarDomain()
    async with World(hold, domains={"far": far}) as world:
        await world.submit(new())
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        world.mend = nothing
        far.slow = asyncio.Event()
        to_far = asyncio.create_task(world.proxy.resubmit(JOB, Change(domain="far"), key="x/1"))
        await turns()
        await world.proxy.resubmit(JOB, Change(domain="."), key="y/1")
        far.fault = AWAY
        far.slow.set()
        await to_far
        assert world.told == []
        await world.sync()
        assert world.running() == [THIRD]
        await world.sync(align=Outcome(outputs=1))
        assert world.told == [(1, Outcome(outputs=1))]
