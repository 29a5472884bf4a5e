"""The four ways to submit a job, through the proxy, with nothing changed on either side of it."""

import asyncio

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import JobState, Outcome, Submission
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.conversation import ConversationMessage
from mendflow.services.base.contracts import Change, Failure
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from tests.proxy.far_domain import FarDomain
from tests.proxy.world import AWAY, JOB, OUT_OF_MEMORY, World, bad, hold, new, turns
from tests.proxy.world import nothing as nobody_mends

WAYS = list(Submission)
MORE = Change(resources={"memory_bytes": 4 << 30})


async def at_once(world: World, failure: Failure) -> bool:
    """Mends before the asker has its answer, as an exlet of one step does."""
    await world.proxy.resubmit(failure.job, MORE, key=f"k{failure.generation}")
    return True


async def heard(world: World) -> list[Outcome]:
    """What the flow has heard, with time for whoever polls."""
    for _ in range(50):
        if world.told:
            break
        await world.sync()
    return [outcome for _, outcome in world.told]


@pytest.mark.parametrize("way", WAYS)
async def test_a_job_that_ends_well_is_told_once_and_leaves_nothing(way: Submission) -> None:
    # FM-5 FM-10
    async with World(mend=at_once) as world:
        await world.submit(new(way=way))
        await world.sync()
        await world.sync(align=Outcome(outputs=5))
        assert [outcome.outputs for outcome in await heard(world)] == [5]
        assert not world.failures and world.proxy.phase_of(JOB) == ""
        assert [found async for found in world.store.scan(CONVERSATION_KIND)] == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_failure_that_nobody_mends_reaches_the_flow_and_leaves_nothing(way: Submission) -> None:
    # FM-5 FM-10
    async with World() as world:
        await world.submit(new(way=way))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        assert [outcome.fault for outcome in await heard(world)] == [OUT_OF_MEMORY]
        assert [failure.final for failure in world.failures] == [True]
        assert [found async for found in world.store.scan(CONVERSATION_KIND)] == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_job_that_is_submitted_again_ends_under_the_id_that_the_flow_knows(way: Submission, when: str) -> None:
    # FM-5 FM-8 FM-10: re-submit with changes; polls and callbacks follow
    async with World(mend=at_once if when == "at once" else hold) as world:
        await world.submit(new(way=way))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY), want=0)
        while not world.failures:
            await world.sync(want=0)
        if when == "later":
            assert world.proxy.phase_of(JOB) == "held"
            assert (await world.proxy.status(JOB)).reason == "it is being mended: it took 2 GB"
            await world.proxy.resubmit(JOB, MORE, key="k1")
        assert world.told == []
        await world.sync()
        [assignment] = world.held["p-1"]
        assert (assignment.job, assignment.spec.resources.memory_bytes) == ("c-1/1~2", 4 << 30)
        status = await world.proxy.status(JOB)
        assert (status.job, status.state, status.attempts) == (JOB, JobState.RUNNING, 2)
        await world.sync(align=Outcome(outputs=7))
        assert [(serial, outcome.outputs) for serial, outcome in world.told or [(1, (await heard(world))[0])]] == [
            (1, 7)
        ]
        assert world.proxy.phase_of(JOB) == ""
        after = await world.proxy.status(JOB)
        assert (after.job, after.state, after.attempts) == (JOB, JobState.COMPLETED, 2)


@pytest.mark.parametrize("way", WAYS)
async def test_a_failure_that_was_held_can_be_passed_on(way: Submission) -> None:
    # FM-5 FM-8: force-fail
    async with World(mend=hold) as world:
        await world.submit(new(way=way))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        while not world.failures:
            await world.sync()
        assert world.told == []
        await world.proxy.pass_on(JOB)
        assert [outcome.fault for outcome in await heard(world)] == [OUT_OF_MEMORY]
        await world.proxy.pass_on(JOB)
        assert len(world.told) == 1
        assert (await world.proxy.status(JOB)).state is JobState.FAILED


@pytest.mark.parametrize(
    ("way", "staged", "pattern"),
    [
        (Submission.WAIT, False, "synchronous"),
        (Submission.POLL, False, "submit-and-poll"),
        (Submission.NOTIFY, False, "submit-and-notify"),
        (Submission.FORGET, False, "fire-and-forget"),
        (Submission.NOTIFY, True, "stage-then-submit"),
    ],
)
async def test_the_pattern_of_a_job_is_recognised_from_its_messages(
    way: Submission, staged: bool, pattern: str
) -> None:
    # FM-11
    inputs = {"t": FileRef(sha256="0" * 64, bytes=1, name="t")} if staged else {}
    async with World(mend=hold) as world:
        await world.submit(new(way=way, inputs=inputs))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        while not world.failures:
            await world.sync()
        assert world.failures[0].pattern == pattern
        talk = world.proxy.conversation(JOB)
        assert talk is not None and talk.messages[-1] is ConversationMessage.FAILED


async def test_a_forgotten_job_is_mended_too_and_its_failure_never_touches_the_flow() -> None:
    # FM-5
    async with World(mend=at_once) as world:
        await world.submit(new(way=Submission.FORGET))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        world.mend = nobody_mends
        await world.sync(align=bad(Fault(name="exit", category=Category.JOB, message="code 9")))
        notices = await world.notices.latest(5)
        assert [notice.message for notice in notices] == ["job c-1/1, which nobody waits for, failed: code 9"]


@pytest.mark.parametrize("way", list(Submission))
@pytest.mark.parametrize("fault", [None, AWAY], ids=["taken", "not taken"])
async def test_a_flow_that_goes_on_while_a_job_is_submitted_hears_no_error_and_leaves_no_job(
    way: Submission, fault: Fault | None
) -> None:
    # FM-4, FM-10
    far = FarDomain()

    async def mend_and_go_on(world: World, failure: Failure) -> bool:
        far.fault = None
        await world.proxy.cancel(failure.job)
        return True

    far.fault, far.slow = fault, asyncio.Event()
    async with World(mend_and_go_on, domains={"": far}) as world:
        submitting = asyncio.create_task(world.submit(new(way=way)))
        await turns()
        if fault is None:
            await world.proxy.cancel(JOB)
            far.cancelled.clear()  # it had not arrived yet
        far.slow.set()
        await submitting
        assert set(far.jobs) <= set(far.cancelled)
        assert all(outcome.fault is not None for _, outcome in world.told)
