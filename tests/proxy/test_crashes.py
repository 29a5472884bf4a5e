"""Crashes in the middle of repairs and of levels: nothing is skipped, nothing is repeated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.recovery.ids import generation_of
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import Change
from mendflow.services.recovery.levels import LEVEL_KIND, Mode
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from tests.examples import examples
from tests.proxy.durable import LEVELS, DurableWorld
from tests.proxy.world import EXIT, JOB, OUT_OF_MEMORY, World, bad, hold, new, nothing


async def ends_as_it_should(world: DurableWorld) -> int:
    """Play it to its end; how many writes that took."""
    async with world:
        await world.play()
        recovered = world.good <= LEVELS + 1
        [outcome] = world.outcomes
        assert (outcome.outputs, outcome.fault) == (("good", None) if recovered else (None, EXIT))
        jobs = [JobId(found.id) async for found in world.store.scan(JOB_KIND)]
        submitted = min(world.good, LEVELS + 1)
        assert sorted(map(generation_of, jobs)) == list(range(1, submitted + 1)), "none skipped, none repeated"
        assert world.levels.entries() == []
        await world.ledger.settled()
        assert [found async for found in world.store.scan(LEVEL_KIND)] == []
        return world.crashing.writes


@pytest.mark.parametrize("mode", ["recoverable", "express"])
@pytest.mark.parametrize("way", list(Submission))
@pytest.mark.parametrize("good", [2, 4])
async def test_a_crash_at_any_write_neither_skips_nor_repeats_a_repair(way: Submission, mode: Mode, good: int) -> None:
    # AD-2 AD-4 FM-10: recovery through levels, or past the last of them, with a crash before each single write
    writes = await ends_as_it_should(DurableWorld((), way=way, mode=mode, good=good))
    assert writes > 10
    for crash in range(1, writes + 1):
        await ends_as_it_should(DurableWorld([crash], way=way, mode=mode, good=good))


@settings(max_examples=examples(60), deadline=None)
@given(
    crashes=st.lists(st.integers(1, 60), max_size=6),
    way=st.sampled_from(Submission),
    mode=st.sampled_from(["recoverable", "express"]),
    good=st.integers(1, 4),
    retries=st.integers(0, 2),
)
async def test_many_crashes_neither_skip_nor_repeat_a_repair(
    crashes: list[int], way: Submission, mode: Mode, good: int, retries: int
) -> None:
    # AD-2 AD-4 FM-10
    await ends_as_it_should(DurableWorld(crashes, way=way, mode=mode, good=good, retries=retries))


@pytest.mark.parametrize("way", list(Submission))
async def test_a_held_failure_survives_a_crash_and_is_asked_about_once_more_under_the_same_id(way: Submission) -> None:
    # FM-10
    async with World(hold) as world:
        await world.submit(new(way=way))
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        while not world.failures:
            await world.sync()
        await world.ledger.settled()
        await world.crash()
        await world.submit(new(way=way), reissued=True)
        assert len(world.failures) == 2 and world.failures[0] == world.failures[1]
        assert world.told == [], "whoever mends it is still at it"


async def test_a_failure_whose_repair_is_over_after_a_crash_is_passed_on() -> None:
    async with World(hold) as world:
        await world.submit(new())
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        await world.crash()
        world.mend = nothing
        await world.submit(new(), reissued=True)
        await world.sync()
        assert [outcome.fault for _, outcome in world.told] == [OUT_OF_MEMORY]


async def test_a_job_that_was_mended_before_a_crash_is_followed_after_it() -> None:
    # FM-10
    async with World(hold) as world:
        await world.submit(new())
        await world.sync()
        await world.sync(align=bad(OUT_OF_MEMORY))
        await world.proxy.resubmit(JOB, Change(resources={"memory_bytes": 1 << 30}), key="k")
        await world.sync()
        await world.crash()
        await world.submit(new(), reissued=True)
        await world.proxy.resubmit(JOB, Change(), key="k")
        await world.sync(align=Outcome(outputs=1))
        assert [outcome.outputs for _, outcome in world.told] == [1]
        assert len([found async for found in world.store.scan(JOB_KIND)]) == 2
        talk = await world.proxy._conversations.look_up(JOB)
        assert talk is not None and talk.over and talk.newest == "c-1/1~2"
        await world.crash()
        await world.submit(new(), reissued=True)
        await world.sync()
        assert [outcome.outputs for _, outcome in world.told] == [1, 1], "who asks again is told again, the same"


async def test_an_attempt_that_was_mended_before_the_queue_wrote_its_end_runs_no_more_after_a_crash() -> None:
    async with World(hold) as world:
        await world.submit(new(retries=3))
        await world.sync()
        held = list(world.held["p-1"])
        talk_only = world.proxy.attempt_failed(world.meta.jobs[JOB], bad(EXIT))
        assert await talk_only
        await world.ledger.settled()
        await world.crash()
        await world.submit(new(retries=3), reissued=True)
        world.held["p-1"] = held
        answer = await world.sync(align=bad(EXIT))
        assert world.running() == [] and not answer.accepted
        assert world.proxy.phase_of(JOB) == "held" and world.told == []


async def test_conversations_are_documents_only_of_what_went_wrong_and_is_mended() -> None:
    # the good way costs nothing
    async with World(nothing) as world:
        for number in range(1, 4):
            await world.submit(new(id=JobId(f"c-1/{number}")))
        await world.sync()
        await world.sync(align=Outcome())
        assert len(world.told) == 3
        assert [found async for found in world.store.scan(CONVERSATION_KIND)] == []
        assert world.proxy._tracked == {} and world.proxy._failed_jobs == {}
