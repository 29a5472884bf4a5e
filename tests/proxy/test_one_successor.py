"""Of each submission of a job there is one successor, however many repairs were decided about it."""

import pytest

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.recovery.decision_subject import DecisionSubject
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import Change
from tests.proxy.far_domain import FarDomain
from tests.proxy.world import EXIT, JOB, World, bad, hold, new

SECOND, THIRD = JobId("c-1/1~2"), JobId("c-1/1~3")
FIRST_FAILED = DecisionSubject(1, "c-1/1:1:1/abort")
FIRST_SLOW = DecisionSubject(1, "c-1/1:1/timeout")


async def fail_once(world: World) -> None:
    world.mend = hold
    await world.submit(new())
    await world.sync()
    await world.sync(want=0, align=bad(EXIT))


async def submissions(world: World) -> int:
    await world.ledger.settled()
    return len([found async for found in world.store.scan(JOB_KIND)])


@pytest.mark.parametrize("crash", [False, True])
async def test_two_repairs_decided_about_one_submission_submit_it_again_once(crash: bool) -> None:
    # FM-10
    async with World() as world:
        await fail_once(world)
        await world.proxy.resubmit(JOB, Change(), key="x/1", decided=FIRST_FAILED)
        if crash:
            await world.crash()
            await world.submit(new(), reissued=True)
        await world.proxy.resubmit(JOB, Change(env={"N": "2"}), key="y/1", decided=FIRST_SLOW)
        await world.sync()
        assert world.running() == [SECOND] and await submissions(world) == 2
        await world.sync(align=Outcome(outputs=1))
        assert [outcome.outputs for _, outcome in world.told] == [1]


async def test_the_successor_is_handed_over_by_whoever_comes_after_a_crash() -> None:
    # it was written down, and the domain never got it
    far = FarDomain()
    async with World(domains={"far": far}) as world:
        await fail_once(world)
        far.fault = EXIT
        await world.proxy.resubmit(JOB, Change(domain="far"), key="x/1", decided=FIRST_FAILED)
        far.fault = None
        await world.crash()
        await world.submit(new(), reissued=True)
        await world.proxy.resubmit(JOB, Change(), key="y/1", decided=DecisionSubject(2, "c-1/1~2:1:2/abort"))
        await world.proxy.resubmit(JOB, Change(), key="z/1", decided=FIRST_SLOW)
        assert list(far.jobs) == [THIRD]


async def test_one_repair_may_submit_again_twice() -> None:
    async with World() as world:
        await fail_once(world)
        await world.proxy.resubmit(JOB, Change(), key="x/1", decided=FIRST_FAILED)
        await world.proxy.resubmit(JOB, Change(env={"N": "2"}), key="x/2", decided=FIRST_FAILED)
        await world.sync()
        assert world.running() == [THIRD]


async def test_a_later_submission_that_fails_is_decided_about_anew() -> None:
    async with World() as world:
        await fail_once(world)
        await world.proxy.resubmit(JOB, Change(), key="x/1", decided=FIRST_FAILED)
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        await world.proxy.resubmit(JOB, Change(), key="y/1", decided=FIRST_SLOW)
        assert world.proxy.phase_of(JOB) == "held", "it knows nothing of the second"
        await world.proxy.resubmit(JOB, Change(), key="z/1", decided=DecisionSubject(2, "c-1/1~2:2:2/abort"))
        await world.sync()
        assert world.running() == [THIRD]


async def test_who_gives_up_on_a_submission_does_not_give_up_on_its_successor() -> None:
    async with World() as world:
        await fail_once(world)
        await world.proxy.resubmit(JOB, Change(), key="x/1", decided=FIRST_FAILED)
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        await world.proxy.pass_on(JOB, decided=FIRST_SLOW)
        assert world.told == []
        await world.proxy.pass_on(JOB, decided=DecisionSubject(2, "c-1/1~2:2:2/abort"))
        assert [outcome.fault for _, outcome in world.told] == [EXIT]
