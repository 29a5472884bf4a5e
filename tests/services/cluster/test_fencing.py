"""A server that was asleep, and others have its cases: whatever it does when it wakes up changes nothing."""

import asyncio
from collections import Counter
from collections.abc import Sequence as Many

import pytest

from mendflow.core.engine import Case, evolve
from mendflow.core.engine.messages import CaseMoved, FinishItem
from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.base.cluster import HOME_KIND, SERVER_KIND
from mendflow.services.base.cluster_terms import cluster_terms
from mendflow.services.cluster.membership import ServerMembership
from mendflow.sim.virtual_store import run_synchronously
from mendflow.stores.contract import Append, Write
from tests.services.cluster.kit import LEASE_MS, TRAVEL_S, Cluster, ServerProcess, completed, pilot_of, run
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow

FIVE = flow(Sequence(name="s", body=tuple(JobActivity(name=name, command="true") for name in "abcde")))
TERMS = cluster_terms(LEASE_MS)
LONG_S = 4 * TERMS.takeover_ms / 1000


async def begun(server: ServerProcess) -> str:
    await server.do(server.domain.deploy(FIVE))
    return (await server.do(server.domain.start("f", {}, who="me"))).id


async def work(pilot: HandPilot) -> None:
    """Run whatever there is, once, if somebody is there to ask."""
    try:
        await pilot.sync(want=1, wait_ms=100)
        await pilot.exchange({str(each.spec.item): Outcome() for each in pilot.held})
    except RequestError:
        await asyncio.sleep(0.3)


async def until_ended(cluster: Cluster, case: str, *pilots: HandPilot) -> None:
    async def ended() -> bool:
        for pilot in pilots:
            await work(pilot)
        return (await cluster.document(case)).status == "completed"

    await cluster.until(ended, f"the end of {case}", within_s=240)


async def demand_told_once(cluster: Cluster, case: str) -> None:
    """Each job was accepted once and reached its case once; and the journal is one that a case can be rebuilt from."""
    journal = await cluster.journal(case)
    finished = Counter(event.fact.serial for event in journal if isinstance(event.fact, FinishItem))
    assert finished == {serial: 1 for serial in range(1, 6)}
    assert completed(await cluster.jobs(case)) == {name: 1 for name in "abcde"}
    rebuilt = Case.blank()
    for event in journal:
        evolve(rebuilt, event)
    assert rebuilt.status == "completed"


def stop_before(server: ServerProcess, wanted: type[Write], kind: str = "") -> asyncio.Event:
    """Let the process be stopped when it has checked everything, and just before such a write leaves it."""
    stopped = asyncio.Event()

    async def before(writes: Many[Write]) -> None:
        if not stopped.is_set() and any(
            isinstance(write, wanted) and (not kind or getattr(write, "kind", "") == kind) for write in writes
        ):
            stopped.set()
            server.process.stop()

    server.line.before = before
    return stopped


def test_an_append_that_was_on_its_way_when_others_took_over_is_refused() -> None:  # laws 1, 2 and 4; JS-7
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(one)
        pilot = pilot_of(cluster, "one", "two")
        await pilot.sync(want=1)
        stopped = stop_before(one, Append)
        await work(pilot)
        assert stopped.is_set()
        await cluster.until_home(case, "two")
        length = len(await cluster.journal(case))
        one.process.resume()
        await asyncio.sleep(1)
        assert isinstance((await cluster.journal(case))[length - 1].fact, CaseMoved)
        await until_ended(cluster, case, pilot)
        await demand_told_once(cluster, case)
        assert await cluster.home(case) in ("", "two")

    run(story)


def test_a_server_that_slept_registers_anew_and_serves_again() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(one)
        one.process.stop()
        await cluster.until_home(case, "two")
        one.process.resume()

        async def serves() -> bool:
            try:
                return bool(await one.do(one.domain.start("f", {}, who="me"), patience_s=1.0))
            except (RequestError, TimeoutError):
                return False

        await cluster.until(serves, "one serves again")
        assert case not in one.runtime.manager.live
        assert {found.id async for found in cluster.store.scan(SERVER_KIND)} == {"one", "two"}

    run(story)


def test_a_server_that_may_not_promise_answers_nobody() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        await begun(one)
        membership = one.server.membership
        assert isinstance(membership, ServerMembership)
        await membership.drop()
        await asyncio.sleep(TERMS.promise_ms / 1000 + 0.1)
        with pytest.raises((TimeoutError, RequestError)):
            await one.do(one.domain.start("f", {}, who="me"), patience_s=1.0)

    run(story)


@pytest.mark.parametrize("asleep_s", [0.0, LONG_S])
def test_a_server_without_any_check_of_its_promise_changes_nothing_once_others_took_over(asleep_s: float) -> None:
    """The fence alone: this server believes that it may promise whatever happens, and beats no longer. Its pilot works
    on with it, while others work on the same case."""  # laws 2 and 4; JS-7

    async def story(cluster: Cluster) -> None:
        one, *_ = await cluster.start("one", "two", "three")
        case = await begun(one)
        fooled, other = pilot_of(cluster, "one"), pilot_of(cluster, "two", "three", pilot="p-2")
        await fooled.sync(want=1)
        membership = one.server.membership
        assert isinstance(membership, ServerMembership)
        await membership.drop()
        membership.may_promise = lambda: True  # type: ignore[method-assign]  # the mutant
        if asleep_s:
            one.process.stop()
        await cluster.until_home(case, "two", "three")
        if asleep_s:
            await asyncio.sleep(asleep_s)
            one.process.resume()
        await until_ended(cluster, case, fooled, other)
        await demand_told_once(cluster, case)

    run(story)


def test_two_who_take_the_same_case_at_the_same_moment_are_one_winner_and_one_who_passes_on() -> None:  # JS-1
    async def story(cluster: Cluster) -> None:
        one, two, three = await cluster.start("one", "two", "three")
        case = await begun(one)
        both = asyncio.Event()
        waiting: list[str] = []

        async def together(server: ServerProcess, writes: Many[Write]) -> None:
            if any(getattr(write, "kind", "") == HOME_KIND for write in writes) and not both.is_set():
                waiting.append(server.name)
                if len(waiting) == 2:
                    both.set()
                await both.wait()

        two.line.before = lambda writes: together(two, writes)
        three.line.before = lambda writes: together(three, writes)
        one.kill()
        winner = await cluster.until_home(case, "two", "three")
        assert sorted(waiting) == ["three", "two"]
        loser = cluster.servers["three" if winner == "two" else "two"]
        await asyncio.sleep(1)
        assert not loser.runtime.homes.mine(CaseId(case)) and case not in loser.runtime.manager.live
        await until_ended(cluster, case, pilot_of(cluster, "two", "three"))
        await demand_told_once(cluster, case)

    run(story)


@pytest.mark.parametrize("at", range(12))
def test_a_taker_that_dies_at_any_write_of_its_take_over_leaves_all_to_the_next(at: int) -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        case = await begun(one)
        pilot = pilot_of(cluster, "one", "two", "three")
        await pilot.sync(want=1)
        left = at

        async def doomed(writes: Many[Write]) -> None:
            nonlocal left
            writes = [write for write in writes if getattr(write, "kind", "") != SERVER_KIND]
            if len(writes) > left:
                await cluster.store.write(writes[:left])
                two.kill()
                await asyncio.Event().wait()
            left -= len(writes)

        one.kill()
        two.line.before = doomed
        await asyncio.sleep(TERMS.takeover_ms / 2 / 1000)
        await cluster.start("three")
        await until_ended(cluster, case, pilot)
        await demand_told_once(cluster, case)

    run(story)


def test_a_taker_that_slept_between_home_and_journal_does_not_pass_the_next_takers_fence() -> None:  # law 2; JS-7
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        case = await begun(one)

        async def beat_slowly(writes: Many[Write]) -> None:
            """So that it does not hear at once, when it wakes up, that it was closed."""
            if any(getattr(write, "kind", "") == SERVER_KIND for write in writes):
                await asyncio.sleep(0.5)

        async def sleep_when_it_is_taken(writes: Many[Write]) -> None:
            if any(getattr(write, "kind", "") == HOME_KIND for write in writes):
                two.line.before = beat_slowly
                cluster.loop.at(cluster.loop.true_s + 1.5 * TRAVEL_S, two.process.stop)

        two.line.before = sleep_when_it_is_taken
        one.kill()

        async def taken() -> bool:
            return await cluster.home(case) == "two"

        await cluster.until(taken)
        await cluster.start("three")
        await cluster.until_home(case, "three")
        length = len(await cluster.journal(case))
        two.process.resume()
        await asyncio.sleep(1)
        assert len(await cluster.journal(case)) == length
        assert await cluster.home(case) == "three"
        await until_ended(cluster, case, pilot_of(cluster, "three"))
        await demand_told_once(cluster, case)

    run(story)


def test_what_a_server_gave_up_to_write_changes_nothing_when_it_comes_through_later() -> None:  # laws 4 and 5
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        case = await begun(one)
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=1)

        async def give_up(writes: Many[Write]) -> None:
            if any(isinstance(write, Append) for write in writes):
                one.line.before = None
                cluster.loop.at(cluster.loop.true_s + 2, lambda: run_synchronously(cluster.store.write(writes)))
                raise StoreUnavailable("it does not answer")

        one.line.before = give_up
        await work(pilot)
        await asyncio.sleep(3)
        assert one.runtime.manager.live[CaseId(case)].position == len(await cluster.journal(case))
        await until_ended(cluster, case, pilot)
        await demand_told_once(cluster, case)
        assert all(job.finished for job in await cluster.jobs(case))

    run(story)


def test_a_server_whose_store_is_away_takes_nothing_and_loses_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        case = await begun(one)

        async def away(writes: Many[Write]) -> None:
            raise StoreUnavailable("it does not answer")

        one.line.before = two.line.before = away
        await asyncio.sleep(LONG_S)
        one.line.before = two.line.before = None
        await asyncio.sleep(LONG_S)
        assert await cluster.home(case) == "one"
        await until_ended(cluster, case, pilot_of(cluster, "two", "one"))
        await demand_told_once(cluster, case)

    run(story)
