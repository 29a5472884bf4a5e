"""A server ends, and others go on with its cases: nothing is lost, nothing is done twice, nothing that runs is
stopped."""

import asyncio
from collections.abc import Iterable

import pytest

from mendflow.core.engine.messages import CaseMoved
from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.services.base.cluster import SERVER_KIND, root_of
from mendflow.services.base.cluster_terms import cluster_terms
from mendflow.services.base.homes import CaseTree
from mendflow.services.runtime.runtime import Runtime
from tests.services.cluster.kit import LEASE_MS, Cluster, completed, keep_running, pilot_of, run
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow

TWO = flow(Sequence(name="s", body=(JobActivity(name="a", command="true"), JobActivity(name="b", command="true"))))
TERMS = cluster_terms(LEASE_MS)


async def begun(cluster: Cluster, server: str = "one") -> str:
    """A case of two jobs on that server."""
    home = cluster.servers[server]
    await home.do(home.domain.deploy(TWO))
    return (await home.do(home.domain.start("f", {}, who="me"))).id


def test_a_case_of_a_killed_server_goes_on_at_another_and_ends_once() -> None:  # JS-4, JS-9
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(cluster)
        assert await cluster.home(case) == "one"
        pilot = pilot_of(cluster, "two")
        await pilot.sync(want=1, wait_ms=900)
        [held] = pilot.held
        one.kill()
        await keep_running(pilot, LEASE_MS / 1000)
        assert [each.job for each in pilot.held] == [held.job]  # what runs was not stopped
        await cluster.until_home(case, "two")
        answer = await pilot.sync(a=Outcome())
        assert [ref.job for ref in answer.accepted] == [held.job]
        await pilot.run_all(lambda _: Outcome())
        await cluster.until_status(case, "completed")
        assert completed(await cluster.jobs(case)) == {"a": 1, "b": 1}
        assert {job.fence for job in await cluster.jobs(case)} == {1}
        moved = [event.fact for event in await cluster.journal(case) if isinstance(event.fact, CaseMoved)]
        assert [fact.server for fact in moved] == ["two"]
        await cluster.servers["two"].do(cluster.servers["two"].runtime.ledger.settled())
        assert await cluster.home(case) == ""

    run(story)


def test_a_job_whose_server_and_pilot_die_together_runs_again_within_a_lease_and_five_seconds() -> None:  # JS-9
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(cluster)
        dying, other = pilot_of(cluster, "one"), pilot_of(cluster, "two", pilot="p-2")
        await dying.sync(want=1)
        [held] = dying.held
        await dying.sync()
        one.kill()
        killed_s = cluster.loop.true_s

        async def runs_again() -> bool:
            await other.sync(want=1)
            return bool(other.held)

        await cluster.until(runs_again)
        after_ms = (cluster.loop.true_s - killed_s) * 1000
        assert LEASE_MS <= after_ms < LEASE_MS + 5_000
        assert [(each.job, each.fence) for each in other.held] == [(held.job, 2)]
        assert case in held.job

    run(story)


@pytest.mark.parametrize("second_s", [TERMS.takeover_ms / 1000 + 0.5, LEASE_MS / 2000, LEASE_MS / 1000])
def test_a_job_whose_pilot_and_two_servers_die_in_turn_runs_again_within_a_lease_and_five_seconds(
    second_s: float,
) -> None:  # JS-9
    async def story(cluster: Cluster) -> None:
        one, _, _ = await cluster.start("one", "two", "three")
        case = await begun(cluster)
        dying = pilot_of(cluster, "one")
        await dying.sync(want=1)
        [held] = dying.held
        one.kill()
        killed_s = cluster.loop.true_s
        taker = await cluster.until_home(case, "two", "three")
        await asyncio.sleep(max(0.0, second_s - (cluster.loop.true_s - killed_s)))
        left = "three" if taker == "two" else "two"
        cluster.servers[taker].kill()
        other = pilot_of(cluster, left, pilot="p-2")

        async def runs_again() -> bool:
            await other.sync(want=1)
            return bool(other.held)

        await cluster.until(runs_again)
        after_ms = (cluster.loop.true_s - killed_s) * 1000
        assert LEASE_MS <= after_ms < LEASE_MS + 5_000
        assert [(each.job, each.fence) for each in other.held] == [(held.job, 2)]

    run(story)


def test_each_tree_that_is_taken_over_comes_with_the_promises_of_its_own_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, take_up = list[CaseTree](), Runtime.take_up  # JS-9

    async def noting(runtime: Runtime, trees: Iterable[CaseTree]) -> None:
        taken.extend(trees)
        await take_up(runtime, [*trees])

    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        cases = [await begun(cluster) for _ in range(3)]
        dying = pilot_of(cluster, "one")
        await dying.sync(want=len(cases), wait_ms=900)
        held = {root_of(each.job): each.job for each in dying.held}
        assert set(held) == set(cases)
        one.kill()
        for case in cases:
            await cluster.until_home(case, "two")
        await asyncio.sleep(TERMS.takeover_ms / 1000)  # until its heartbeat has told what it took over
        monkeypatch.setattr(Runtime, "take_up", noting)
        await cluster.start("three")
        two.kill()
        for case in cases:
            await cluster.until_home(case, "three")
        inherited = {tree.root: set(tree.inherited_ms) for tree in taken}
        assert inherited == {case: {held[case]} for case in held}

    run(story)


def test_a_job_that_the_second_server_promised_again_is_given_to_nobody_else_when_that_dies_too() -> None:  # JS-9
    async def story(cluster: Cluster) -> None:
        one, _, _ = await cluster.start("one", "two", "three")
        case = await begun(cluster)
        pilot = pilot_of(cluster, "one", "two", "three")
        await pilot.sync(want=1)
        one.kill()
        taker = await cluster.until_home(case, "two", "three")
        left = "three" if taker == "two" else "two"
        pilot = adopted(pilot, pilot_of(cluster, taker))
        await pilot.sync()  # the taker promises
        promised_s = cluster.loop.true_s
        cluster.servers[taker].kill()
        other = pilot_of(cluster, left, pilot="p-2")

        async def runs_again() -> bool:
            await other.sync(want=1)
            return bool(other.held)

        await cluster.until(runs_again)
        assert (cluster.loop.true_s - promised_s) * 1000 >= LEASE_MS

    run(story)


def adopted(before: HandPilot, after: HandPilot) -> HandPilot:
    """The same pilot, which talks to other servers from now on."""
    after.serial, after.heard, after.held = before.serial, before.heard, before.held
    return after


def test_a_server_that_is_stopped_in_order_hands_its_cases_over_at_once() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        case = await begun(cluster)
        await one.close()
        await cluster.until_home(case, "two", within_s=TERMS.takeover_ms / 1000 / 2)
        told = await two.do(two.domain.history(case))
        assert [(each.what, each.message) for each in told if each.what == "moved"] == [
            ("moved", "server two goes on with it")
        ]

    run(story)


def test_three_servers_share_what_a_fourth_has_left() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, *_ = await cluster.start("one", "two", "three", "four")
        cases = [await begun(cluster) for _ in range(100)]
        one.kill()
        homes = [await cluster.until_home(case, "two", "three", "four") for case in cases]
        assert {homes.count(name) > 0 for name in ("two", "three", "four")} == {True}
        for case in cases:
            moved = [event for event in await cluster.journal(case) if isinstance(event.fact, CaseMoved)]
            assert len(moved) == 1

    run(story)


def test_a_server_that_starts_again_in_its_folder_goes_on_with_its_own_cases_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(cluster)
        one.kill()
        await cluster.start("one")
        await cluster.until_home(case, "one", within_s=0.1)
        await asyncio.sleep(3 * TERMS.takeover_ms / 1000)
        assert await cluster.home(case) == "one"
        moved = [event.fact for event in await cluster.journal(case) if isinstance(event.fact, CaseMoved)]
        assert [fact.server for fact in moved] == ["one"]  # it has fenced out what it wrote before it was killed

    run(story)


def test_nobody_is_found_dead_because_the_store_was_away_for_all() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        case = await begun(cluster)
        one.process.stop()
        two.process.stop()
        await asyncio.sleep(4 * TERMS.takeover_ms / 1000)
        one.process.resume()
        two.process.resume()
        await asyncio.sleep(2 * TERMS.takeover_ms / 1000)
        assert await cluster.home(case) == "one"

    run(story)


def test_a_dead_server_without_homes_is_forgotten_after_a_while() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        one.kill()
        await asyncio.sleep(10 * TERMS.takeover_ms / 1000)
        assert await cluster.store.get(SERVER_KIND, "one") is not None
        await asyncio.sleep(70 * TERMS.takeover_ms / 1000)
        assert await cluster.store.get(SERVER_KIND, "one") is None

    run(story)


def test_a_job_that_ended_while_its_server_was_dead_is_reported_to_the_next() -> None:
    async def story(cluster: Cluster) -> None:
        one, _ = await cluster.start("one", "two")
        case = await begun(cluster)
        pilot = pilot_of(cluster, "one", "two")
        await pilot.sync(want=1)
        one.kill()

        async def heard() -> bool:
            return bool((await pilot.sync(a=Outcome())).accepted)

        await cluster.until(heard)
        jobs = {str(job.spec.item): job for job in await cluster.jobs(case)}
        assert jobs["a"].state is JobState.COMPLETED and jobs["a"].fence == 1

    run(story)


def _runs_again_no_sooner_than(lease_ms: int, *, alone: bool) -> None:
    """A pilot was promised that lease. Its server is killed with it; whoever goes on has a much shorter one."""

    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one", lease_ms=lease_ms, alone=alone)
        if not alone:
            await cluster.start("two", lease_ms=LEASE_MS)
        await begun(cluster)
        dying = pilot_of(cluster, "one")
        await dying.sync(want=1)
        [held] = dying.held
        await dying.sync()
        one.kill()
        killed_s = cluster.loop.true_s
        next_server = "one" if alone else "two"
        if alone:
            await cluster.start("one", lease_ms=LEASE_MS, alone=True)
        other = pilot_of(cluster, next_server, pilot="p-2")

        async def runs_again() -> bool:
            await other.sync(want=1)
            return bool(other.held)

        await cluster.until(runs_again, within_s=3 * lease_ms / 1000)
        assert (cluster.loop.true_s - killed_s) * 1000 >= lease_ms - 100
        assert [(each.job, each.fence) for each in other.held] == [(held.job, 2)]

    run(story)


def test_a_server_with_a_shorter_lease_waits_for_what_the_one_before_had_promised() -> None:  # JS-7
    _runs_again_no_sooner_than(5 * LEASE_MS, alone=False)


def test_a_server_that_starts_again_with_a_shorter_lease_keeps_what_it_had_promised() -> None:  # JS-7
    _runs_again_no_sooner_than(5 * LEASE_MS, alone=True)


async def _until_it_runs_again(cluster: Cluster, *, away_s: float, rebooted: bool) -> float:
    """How long after the kill of the only server, and of the pilot, a job runs again; in milliseconds."""
    [one] = await cluster.start("one")
    await begun(cluster)
    dying = pilot_of(cluster, "one")
    await dying.sync(want=1)
    await dying.sync()
    one.kill()
    killed_s = cluster.loop.true_s
    await asyncio.sleep(away_s)
    await cluster.start("one", rebooted=rebooted)
    other = pilot_of(cluster, "one", pilot="p-2")

    async def runs_again() -> bool:
        await other.sync(want=1)
        return bool(other.held)

    await cluster.until(runs_again)
    return (cluster.loop.true_s - killed_s) * 1000


def test_a_server_that_was_away_for_a_while_waits_only_for_what_it_can_still_have_promised() -> None:  # JS-9
    async def story(cluster: Cluster) -> None:
        after_ms = await _until_it_runs_again(cluster, away_s=LEASE_MS / 2_000, rebooted=False)
        assert LEASE_MS <= after_ms < LEASE_MS + 5_000

    run(story)


def test_a_server_that_was_away_for_longer_than_a_lease_waits_for_nobody() -> None:  # JS-9
    async def story(cluster: Cluster) -> None:
        away_ms = LEASE_MS + TERMS.promise_ms
        after_ms = await _until_it_runs_again(cluster, away_s=away_ms / 1000, rebooted=False)
        assert away_ms <= after_ms < away_ms + 1_000

    run(story)


def test_a_server_whose_machine_was_started_anew_cannot_know_and_waits_a_whole_lease() -> None:  # JS-7
    async def story(cluster: Cluster) -> None:
        after_ms = await _until_it_runs_again(cluster, away_s=LEASE_MS / 1000, rebooted=True)
        assert after_ms >= 2 * LEASE_MS

    run(story)
