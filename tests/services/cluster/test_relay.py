"""A pilot's exchange goes round the servers that its attempts live on, and one answer comes back."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mendflow.core.model.errors import Unreachable
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import JobState, Outcome, Resources
from mendflow.core.model.sync import AttemptControl, AttemptRef
from tests.patience import PATIENCE_S
from tests.services.cluster.world import LEASE_MS, Hand, Line, World, spin


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World("a", "b", "c") as world:
        yield world


async def lent(world: World, jobs: int = 1) -> Hand:
    """A pilot of b that holds jobs of a."""
    await world.servers["a"].begin("align", jobs)
    pilot = Hand(world, "p", "b")
    world.servers["a"].document.waiting = jobs
    await pilot.sync(want=jobs)
    assert len(pilot.held) == jobs
    return pilot


async def test_an_idle_pilot_gets_another_servers_job(world: World) -> None:  # JS-6
    pilot = await lent(world)
    [(id, fence)] = pilot.held.items()
    job = await world.job(id)
    assert (job.state, job.pilot, job.fence) == (JobState.RUNNING, "p", fence)


async def test_a_result_reaches_its_home_through_the_front(world: World) -> None:
    pilot = await lent(world)
    [id] = pilot.held
    pilot.end(id)
    answer = await pilot.sync()
    assert [ref.job for ref in answer.accepted] == [id]
    assert (await world.job(id)).state is JobState.COMPLETED


async def test_nothing_is_passed_on_while_a_pilot_has_only_its_fronts_jobs(world: World) -> None:
    await world.servers["b"].begin("own", 3)
    pilot = Hand(world, "p", "b")
    for want in (3, 0, 0):
        await pilot.sync(want=want)
    await spin()
    world.passed.clear()
    looked = world.lookups
    pilot.end(next(iter(pilot.held)))
    await pilot.sync()
    await pilot.sync()
    assert (world.passed, world.lookups) == ([], looked)


async def test_a_lease_is_renewed_when_all_homes_have_answered(world: World) -> None:
    pilot = await lent(world)
    await world.servers["b"].begin("own", 1)
    await pilot.sync(want=1)
    await world.time.pass_by(LEASE_MS // 2)
    answer = await pilot.sync()
    assert not answer.unclaimed and pilot.stop_at == world.time.at + LEASE_MS
    lease = world.servers["a"].meta.leases.lease_of(pilot.name)
    assert lease is not None and [each.until for each in lease.attempts.values()] == [pilot.stop_at]


@pytest.mark.parametrize("fate", [Line.LOST, Line.DEAF, Line.LATE])
async def test_a_lease_is_not_renewed_while_one_home_does_not_answer(world: World, fate: str) -> None:
    pilot = await lent(world)
    await world.servers["b"].begin("own", 1)
    await pilot.sync(want=1)
    promised = pilot.stop_at
    await world.time.pass_by(LEASE_MS // 4)
    world.fate = lambda one, other: fate if other == "a" else Line.FINE
    answer = await pilot.sync()
    assert [ref.job for ref in answer.unclaimed] == ["align/0"]
    assert pilot.stop_at == promised and len(pilot.held) == 2


async def test_a_home_that_is_away_for_long_costs_its_attempts_and_no_others(world: World) -> None:
    pilot = await lent(world)
    await world.servers["b"].begin("own", 1)
    await pilot.sync(want=1)
    world.fate = lambda one, other: Line.LOST if other == "a" else Line.FINE
    for _ in range(20):
        await world.time.pass_by(LEASE_MS // 20)
        await pilot.sync()
    assert list(pilot.held) == ["own/0"]
    assert pilot.stop_at > world.time.at + LEASE_MS // 2, "what is left is renewed again"


async def test_a_server_that_is_asked_by_mistake_takes_nothing_and_says_nothing_of_it(world: World) -> None:
    pilot = await lent(world)
    [(id, fence)] = pilot.held.items()
    await world.servers["c"].begin("other", 1)
    world.servers["b"].believed[CaseId("align")] = "c"
    answer = await pilot.sync()
    assert (answer.unclaimed, answer.lost) == ([], []), "the right one was asked after it"
    assert [other for _, other, _ in world.passed[-2:]] == ["c", "a"]
    pilot.end(id)
    answer = await pilot.sync()
    assert answer.accepted == [AttemptRef(id, fence)]


async def test_whoever_is_asked_hears_of_all_that_the_pilot_holds(world: World) -> None:
    pilot = await lent(world, jobs=2)
    await world.servers["b"].begin("own", 1)
    await pilot.sync(want=1)
    pilot.end(next(iter(pilot.held)))
    pilot.end(JobId("own/0"))
    await pilot.sync()
    _, _, request = next(each for each in reversed(world.passed) if each[1] == "a")
    assert {beat.job for beat in request.running} | {each.job for each in request.reports} == {
        "align/0",
        "align/1",
        "own/0",
    }
    assert request.front == "b" and [each.job for each in request.reports] == ["align/0"]


async def test_an_attempt_goes_on_when_its_case_moves_to_another_server(world: World) -> None:
    pilot = await lent(world)
    [id] = pilot.held
    await world.kill("a")
    answer = await pilot.sync()
    assert [ref.job for ref in answer.unclaimed] == [id]
    await world.servers["c"].take_up(CaseId("align"))
    answer = await pilot.sync()
    assert (answer.unclaimed, answer.lost) == ([], [])
    pilot.end(id)
    assert (await pilot.sync()).accepted
    assert [attempt.end for attempt in (await world.job(id)).history] == ["completed"]


async def test_a_case_that_is_read_just_now_costs_no_pilot_its_attempt(world: World) -> None:
    pilot = await lent(world)
    await world.kill("a")
    world.homes[CaseId("align")] = "c"
    answer = await pilot.sync()
    assert [ref.job for ref in answer.unclaimed] == ["align/0"] and not answer.lost


async def test_a_pilot_comes_to_another_front_with_what_it_holds(world: World) -> None:
    await world.servers["a"].begin("align", 1)
    pilot = Hand(world, "p", "a")
    await pilot.sync(want=1)
    pilot.front = "c"
    answer = await pilot.sync()
    assert not answer.unclaimed and pilot.stop_at == world.time.at + LEASE_MS
    pilot.end(next(iter(pilot.held)))
    assert (await pilot.sync()).accepted


async def test_a_job_whose_answer_got_lost_between_servers_goes_back_at_no_charge(world: World) -> None:
    [id] = await world.servers["a"].begin("align", 1)
    pilot = Hand(world, "p", "b")
    world.servers["a"].document.waiting = 1
    world.fate = lambda one, other: Line.DEAF
    await pilot.sync(want=1)
    assert not pilot.held and (await world.job(id)).state is JobState.RUNNING
    world.fate = lambda one, other: Line.FINE
    await world.time.pass_by(LEASE_MS // 10)
    await pilot.sync()
    await spin()
    job = await world.job(id)
    assert (job.state, job.losses) == (JobState.AVAILABLE, 0)


async def test_a_job_that_was_given_into_the_void_goes_back_when_its_pilot_speaks_elsewhere(world: World) -> None:
    [id] = await world.servers["a"].begin("align", 1)
    pilot = Hand(world, "p", "a")
    await world.servers["a"].exchange.sync(pilot.request(want=1), "token")  # nobody reads the answer
    pilot.front = "b"
    await pilot.sync()
    await pilot.sync()
    await spin()
    job = await world.job(id)
    assert (job.state, job.losses) == (JobState.AVAILABLE, 0)


async def test_an_order_for_a_lent_pilot_is_answered_through_its_front(world: World) -> None:
    pilot = await lent(world)
    held = asyncio.create_task(pilot.sync(wait_ms=400))
    await spin()
    await world.servers["a"].meta.suspend(JobId("align/0"))
    await asyncio.wait_for(held, PATIENCE_S)
    assert world.nudges[-1] == ("a", "b", ["p"], False)
    answer = await pilot.sync()
    assert [(order.job, order.control) for order in answer.orders] == [("align/0", AttemptControl.SUSPEND)]


async def test_idle_pilots_elsewhere_hear_of_work_that_nobody_here_takes(world: World) -> None:  # JS-6
    pilot = Hand(world, "p", "b")
    held = asyncio.create_task(pilot.sync(want=1, wait_ms=900))
    await spin()
    await world.servers["a"].begin("align", 1)
    await world.time.pass_by(50)
    answer = await asyncio.wait_for(held, PATIENCE_S)
    assert [job.job for job in answer.jobs] == ["align/0"]
    assert ("a", "b", [], True) in world.nudges


async def test_whoever_asks_in_vain_does_not_ask_again_before_there_is_a_new_sign(world: World) -> None:
    world.servers["a"].document.waiting = 1
    pilot = Hand(world, "p", "b")
    for _ in range(4):
        await pilot.sync(want=1)
    assert sum(request.want > 0 for _, other, request in world.passed if other == "a") == 1
    world.servers["a"].document.beat += 1
    await pilot.sync(want=1)
    assert sum(request.want > 0 for _, other, request in world.passed if other == "a") == 2


async def test_a_pilot_gets_no_more_of_all_servers_together_than_fits_into_it(world: World) -> None:
    large = Resources(cpus=3.0)
    await world.servers["a"].begin("align", 1, large)
    pilot = Hand(world, "p", "b")
    world.servers["a"].document.waiting = 1
    await pilot.sync(want=1)
    await world.servers["b"].begin("own", 1, large)
    assert not (await pilot.sync(want=1)).jobs
    pilot.end(JobId("align/0"))
    await pilot.sync()
    assert [job.job for job in (await pilot.sync(want=1)).jobs] == ["own/0"]


async def test_an_attempt_of_a_case_that_is_over_is_nobodys(world: World) -> None:
    pilot = await lent(world)
    world.over("align")
    answer = await pilot.sync()
    assert [ref.job for ref in answer.lost] == ["align/0"] and not answer.unclaimed


async def test_any_server_judges_a_report_of_a_case_that_is_over(world: World) -> None:
    pilot = await lent(world)
    [(id, fence)] = pilot.held.items()
    pilot.end(id)
    await pilot.sync()
    world.over("align")
    pilot.results[id] = (fence, Outcome(outputs=1))
    assert (await pilot.sync()).accepted == [AttemptRef(id, fence)], "told again, accepted again"
    pilot.results[id] = (fence + 1, Outcome(outputs=1))
    assert (await pilot.sync()).refused == [AttemptRef(id, fence + 1)]


async def test_a_report_is_judged_by_nobody_but_its_home(world: World) -> None:
    pilot = await lent(world)
    [id] = pilot.held
    pilot.end(id)
    world.fate = lambda one, other: Line.LOST
    answer = await pilot.sync()
    assert (answer.accepted, answer.refused, list(pilot.results)) == ([], [], [id])
    world.fate = lambda one, other: Line.FINE
    await world.time.pass_by(LEASE_MS // 10)
    assert [ref.job for ref in (await pilot.sync()).accepted] == [id]


async def test_a_server_that_may_not_promise_answers_no_pilot(world: World) -> None:
    pilot = await lent(world)
    world.servers["b"].promises = False
    with pytest.raises(Unreachable):
        await pilot.sync()
    pilot.front = "c"
    world.servers["a"].promises = False
    answer = await pilot.sync()
    assert [ref.job for ref in answer.unclaimed] == ["align/0"]


async def test_a_pilot_that_leaves_takes_leave_of_all(world: World) -> None:
    pilot = await lent(world, jobs=2)
    [first, second] = pilot.held
    pilot.end(first)
    del pilot.held[second]
    answer = await pilot.sync(leaving=True)
    assert [ref.job for ref in answer.accepted] == [first]
    assert (await world.job(second)).state is JobState.AVAILABLE
    assert all(pilot.name not in server.meta.pilots for server in world.servers.values())


async def test_pilots_are_told_which_servers_there_are_and_not_again(world: World) -> None:
    pilot = Hand(world, "p", "b")
    answer = await pilot.sync()
    assert answer.servers == ["http://a:1", "http://b:1", "http://c:1"]


async def test_a_server_knows_which_pilots_of_others_could_take_its_jobs(world: World) -> None:
    large = Resources(cpus=4.0)
    await world.servers["a"].begin("align", 1, large)
    assert not world.servers["a"].meta.waiting()[0].has_pilot
    pilot = Hand(world, "p", "b")
    await pilot.sync()
    await world.time.pass_by(LEASE_MS)
    await pilot.sync()
    await world.time.pass_by(LEASE_MS // 2)
    assert world.servers["a"].meta.waiting()[0].has_pilot
    [known] = world.servers["a"].meta.pilots.values()
    assert (known.front, known.want, world.servers["a"].meta.own_pilots()) == ("b", 0, [])
    await world.time.pass_by(2 * LEASE_MS)
    assert not world.servers["a"].meta.waiting()[0].has_pilot, "it is gone"


async def test_a_home_that_has_heard_a_newer_request_promises_nothing_for_an_older_one(world: World) -> None:
    pilot = await lent(world)
    older, newer = pilot.request(), pilot.request()
    await world.servers["c"].exchange.sync(newer, "token")
    answer = await world.servers["b"].exchange.sync(older, "token")
    assert [ref.job for ref in answer.unclaimed] == ["align/0"]


async def test_requests_that_are_older_than_a_grant_do_not_give_it_up_at_a_server_that_starts_anew(
    world: World,
) -> None:
    [id] = await world.servers["a"].begin("align", 1)
    pilot = Hand(world, "p", "a")
    stale = [pilot.request()]
    await pilot.sync()
    stale.append(pilot.request())
    await pilot.sync(want=1)
    server = world.servers["a"]
    await world.kill("a")
    server.build()
    world.up.add("a")
    await server.take_up(CaseId("align"))
    for request in stale:  # they come out of the network only now
        await server.exchange.sync(request, "token")
    assert (await world.job(id)).state is JobState.RUNNING, "the pilot runs it, and these requests could not say so"
    await pilot.sync()
    assert list(pilot.held) == [id]


async def test_what_an_old_home_still_writes_takes_no_attempt_from_its_pilot(world: World) -> None:  # JS-7
    pilot = await lent(world)
    await world.servers["c"].take_up(CaseId("align"))
    await pilot.sync()
    await world.servers["a"].meta.cancel(JobId("align/0"), reason="a does not know that c has the case")
    await spin()
    assert "was changed by another server" in world.servers["a"].broken
    assert (await world.job(JobId("align/0"))).state is JobState.RUNNING
