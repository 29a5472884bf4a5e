"""Whatever a case has in memory comes along to the next server: jobs, exlets and the steps they are at, levels, called
cases, what is being undone, timers, tasks. A server is killed at any of its writes, and so is whoever took over."""

import asyncio
from collections.abc import AsyncIterator
from collections.abc import Sequence as Many

import msgspec
import pytest

from mendflow.core.engine.messages import FinishItem, FireTimer
from mendflow.core.model.errors import RequestError
from mendflow.core.model.flow import JobActivity, Sequence, UserTask, Wait
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job as JobDocument
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.services.cluster.membership import ServerMembership
from mendflow.stores.contract import Write
from mendflow.stores.memory import MemoryStore
from tests.services.cluster.kit import LEASE_MS, Cluster, ServerProcess, completed, pilot_of, run
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import FAILED, flow
from tests.services.recovery.test_crashes import RULES, STORY, WORKLET, check
from tests.services.recovery.test_crashes import journal as commands

STORY_WRITES = 110
"""About so many writes has the whole story on several servers, beats not counted."""


class Doom:
    """Kills a server in the middle of whatever batch its n-th write is in; beats do not count."""

    def __init__(self, server: ServerProcess, at: int) -> None:
        self._server = server
        self._left = at
        server.line.before = self._count

    async def _count(self, writes: Many[Write]) -> None:
        counted = [write for write in writes if getattr(write, "kind", "") != "server"]
        if len(counted) <= self._left:
            self._left -= len(counted)
            return
        await self._server.cluster.store.write(writes[: self._left])
        self._server.kill()
        await asyncio.Event().wait()


def outcome_of(item: str, job: str) -> Outcome:
    if item == "c" or (item == "b" and "~" not in job):
        return FAILED
    return Outcome(outputs=400) if item == "venue" else Outcome()


async def work(pilot: HandPilot) -> None:
    """Let the pilot run whatever there is, once, if somebody is there to ask."""
    try:
        await pilot.sync(want=4, wait_ms=100)
        reports = {str(each.spec.item): outcome_of(str(each.spec.item), each.job) for each in pilot.held}
        if reports:
            await pilot.exchange(reports)
    except RequestError:
        await asyncio.sleep(0.2)


async def play(cluster: Cluster, pilot: HandPilot, case: str, ends: str) -> None:
    """Let the pilot run what there is until the case has ended, and nothing goes on beside it."""

    async def over() -> bool:
        await work(pilot)
        open_ones = [found.id async for found in cluster.store.scan("open-decision")]
        return (await cluster.document(case)).status == ends and not open_ones

    await cluster.until(over, f"{case} {ends}", within_s=240)


@pytest.mark.parametrize("at", range(0, STORY_WRITES, 5))
def test_a_server_that_dies_at_any_write_leaves_a_story_that_another_ends(at: int) -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two, _ = await cluster.start("one", "two", "three")
        for each in (STORY, WORKLET):
            await one.do(one.domain.deploy(each))
        await one.do(_put_rules(one))
        case = (await one.do(one.domain.start("f", {}, who="me", key="the case"))).id
        Doom(one, at)
        Doom(two, 30 + at // 2)
        await play(cluster, pilot_of(cluster, "one", "two", "three"), case, "failed")
        await cluster.until(lambda: _nobodys(cluster, case), "the end of all that belongs to the case")
        assert isinstance(cluster.store, MemoryStore)
        await check(cluster.store, CaseId(case))

    run(story)


async def _nobodys(cluster: Cluster, case: str) -> bool:
    return await cluster.home(case) == ""


async def _put_rules(server: ServerProcess) -> None:
    await server.runtime.exceptions.rules.put(RULES, author="test")
    await server.runtime.ledger.settled()


def test_a_timer_goes_off_at_the_next_server_once() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        waits = flow(Sequence(name="s", body=(Wait(name="w", duration=30_000), JobActivity(name="a", command="true"))))
        await one.do(one.domain.deploy(waits))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        begun_s = cluster.loop.true_s
        one.kill()
        pilot = pilot_of(cluster, "two")

        async def runs() -> bool:
            await pilot.sync(want=1)
            return bool(pilot.held)

        await cluster.until(runs)
        assert 30 <= cluster.loop.true_s - begun_s < 31
        fired = [event for event in await cluster.journal(case) if isinstance(event.fact, FireTimer)]
        assert len(fired) == 1

    run(story)


def test_a_task_that_a_person_has_claimed_is_completed_at_the_next_server() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(flow(UserTask(name="t", role="nurse", title="Look"))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        [task] = await one.do(one.domain.worklist(case=case))
        await one.do(one.domain.claim(task.id, who="ann"))
        one.kill()
        await cluster.until_home(case, "two")
        await two.do(two.domain.complete(task.id, {"ok": True}, who="ann"))
        await cluster.until_status(case, "completed")
        finished = [event for event in await cluster.journal(case) if isinstance(event.fact, FinishItem)]
        assert len(finished) == 1

    run(story)


def test_jobs_of_all_four_ways_of_submission_end_at_the_next_server() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        ways = tuple(JobActivity(name=way.value, command="true", submission=way) for way in Submission)
        await one.do(one.domain.deploy(flow(Sequence(name="s", body=ways))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        one.kill()
        await cluster.until_home(case, "two")
        pilot = pilot_of(cluster, "two")
        await play(cluster, pilot, case, "completed")
        await pilot.run_all(lambda _: Outcome())
        assert completed(await cluster.jobs(case)) == {"wait": 1, "poll": 1, "notify": 1, "forget": 1}

    run(story)


def test_a_lease_of_a_pilot_that_lives_is_renewed_by_whoever_took_over() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        pilot = pilot_of(cluster, "one", "two")
        await pilot.sync(want=1)
        one.kill()
        until = cluster.loop.true_s + 4 * LEASE_MS / 1000
        while cluster.loop.true_s < until:
            try:
                await pilot.sync()
            except RequestError:
                pass
            await asyncio.sleep(0.5)
        [job] = await cluster.jobs(case)
        assert (job.fence, job.losses) == (1, 0)
        assert [each.job for each in pilot.held] == [job.id]
        assert two.runtime.homes.mine(CaseId(case))

    run(story)


class Fool:
    """Makes a server believe, from its n-th write on, that it may promise whatever happens; it beats no longer, and
    sleeps for a while in the middle of that write."""

    def __init__(self, server: ServerProcess, at: int, sleep_s: float) -> None:
        self._server = server
        self._left = at
        self._sleep_s = sleep_s
        server.line.before = self._count

    async def _count(self, writes: Many[Write]) -> None:
        self._left -= sum(getattr(write, "kind", "") != "server" for write in writes)
        if self._left > 0:
            return
        server, loop = self._server, self._server.cluster.loop
        server.line.before = None
        membership = server.server.membership
        assert isinstance(membership, ServerMembership)
        membership.may_promise = lambda: True  # type: ignore[method-assign]  # the mutant
        membership.beat = asyncio.Event().wait  # type: ignore[assignment,method-assign]  # for ever
        server.process.stop()
        loop.at(loop.true_s + self._sleep_s, server.process.resume)


@pytest.mark.parametrize("sleep_s", [0.01, 5.0])
@pytest.mark.parametrize("at", range(5, 75, 12))
def test_repairs_are_carried_out_once_though_their_last_server_works_on_them_too(at: int, sleep_s: float) -> None:
    """The fence alone, for exlets, levels and what is undone; the last server has a pilot of its own."""  # laws 2, 4

    async def story(cluster: Cluster) -> None:
        one, *_ = await cluster.start("one", "two", "three")
        for each in (STORY, WORKLET):
            await one.do(one.domain.deploy(each))
        await one.do(_put_rules(one))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        Fool(one, at, sleep_s)
        pilots = pilot_of(cluster, "one"), pilot_of(cluster, "two", "three", pilot="p-2")

        async def over() -> bool:
            for pilot in pilots:
                await work(pilot)
            return (await cluster.document(case)).status == "failed" and await _nobodys(cluster, case)

        await cluster.until(over, f"the end of {case}", within_s=240)
        assert isinstance(cluster.store, MemoryStore)
        assert set((await commands(cluster.store, case)).values()) == {1}
        jobs = [job async for job in _all_jobs(cluster)]
        assert completed(jobs) == {"hotel": 1, "venue": 1, "a": 1, "b": 1, "undo-hotel": 1}

    run(story)


async def _all_jobs(cluster: Cluster) -> AsyncIterator[JobDocument]:
    async for found in cluster.store.scan("job"):
        yield msgspec.json.decode(found.body, type=JobDocument)
