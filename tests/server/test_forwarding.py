"""Several servers look like one: any of them answers for any case, and none can be made to ask anybody else."""

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict, Forbidden, NotFound, Unauthorized
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.views import ChangeEvent
from mendflow.server.access import AccessControl, read_tokens, token_hash
from mendflow.services.recovery.reopening import Reopened
from tests.patience import PATIENCE_S
from tests.server.conversation import do_jobs, job_flow, loop_flow, task_flow
from tests.server.town import SERVERS_TOKEN, Citizen, town, until
from tests.services.test_repairs import AGAIN

PEOPLE = read_tokens(f"boss admin {token_hash('t-boss')}\nrita reader {token_hash('t-rita')}")
OF_A_SERVER = {"X-Mendflow-Passed-On": f"Bearer {SERVERS_TOKEN}", "X-Mendflow-Admitted": "account"}


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Citizen, Citizen]]:
    async with town(tmp_path, "east", "west") as (east, west):
        yield east, west


@pytest.fixture
async def east(two: tuple[Citizen, Citizen]) -> AsyncIterator[Client]:
    async with two[0].client() as client:
        yield client


@pytest.fixture
async def west(two: tuple[Citizen, Citizen]) -> AsyncIterator[Client]:
    async with two[1].client() as client:
        yield client


async def test_any_server_answers_and_steers_any_case(east: Client, west: Client) -> None:
    await east.deploy(task_flow())
    case = await east.start("ask")
    task = (await west.worklist(case=case.id))[0]
    assert (await west.suspend(case.id)).status == "suspended"
    assert (await east.case(case.id)).status == "suspended"
    await west.resume(case.id)
    await west.complete(task.id, {})
    assert (await west.case(case.id)).status == (await east.case(case.id)).status == "completed"
    assert [entry.case for entry in await west.history(case.id)]


async def test_what_last_means_is_settled_by_the_server_that_was_asked(east: Client, west: Client) -> None:
    await east.deploy(task_flow())
    case = await east.start("ask")
    assert (await west.suspend("last")).id == case.id
    assert (await west.why("last")).subject == case.id


async def test_a_stream_of_events_comes_through_and_ends_with_the_case(east: Client, west: Client) -> None:
    await east.deploy(job_flow())
    case = await east.start("one")
    told = west.events(case.id, kind="case")
    assert (await anext(told)).state == "running"
    await do_jobs(east, 1)
    assert [happening.state async for happening in told] == ["completed"]


async def test_what_nobody_knows_is_not_found_wherever_one_asks(west: Client) -> None:
    with pytest.raises(NotFound):
        await west.case("nothing-000000")


async def test_a_case_goes_on_elsewhere_when_its_server_dies(  # JS-7
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    await east.deploy(task_flow())
    case = await east.start("ask")
    await two[0].die()
    async with aiohttp.ClientSession() as line, line.get(f"{two[1].url}/api/v1/cases/{case.id}") as answer:
        assert answer.status == 503 and answer.headers["Retry-After"] == "1"
        told = await answer.json()
        assert told["code"] == "not-now" and "east" in told["message"]
    await until(lambda: two[1].homes.here(case.id))
    assert (await west.suspend(case.id)).status == "suspended"


async def test_a_watcher_goes_on_at_another_server_and_hears_the_end_that_it_missed(
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    await east.deploy(loop_flow())
    case = await east.start("many", {"n": 1})
    told = [happening async for happening in _first(east.events(case.id), 2)]
    await do_jobs(east, 3)
    await east.wait(case.id)
    rest = [happening async for happening in west.events(case.id, told[-1].serial)]
    assert [each.state for each in rest if each.kind == "item"] == ["completed"] * 3
    assert (rest[-1].kind, rest[-1].state) == ("case", "completed")
    assert [each.state async for each in west.events(case.id, kind="case")] == ["completed"]


async def _first(told: AsyncIterator[ChangeEvent], number: int) -> AsyncIterator[ChangeEvent]:
    for _ in range(number):
        yield await anext(told)


async def test_only_a_server_can_say_that_it_passes_something_on(two: tuple[Citizen, Citizen], east: Client) -> None:
    await east.deploy(task_flow())
    case = await east.start("ask")
    url = f"{two[1].url}/api/v1/cases/{case.id}"
    async with aiohttp.ClientSession() as line:
        async with line.get(url, headers={"X-Mendflow-Passed-On": "Bearer guessed"}) as answer:
            assert answer.status == 401
        async with line.get(url, headers=OF_A_SERVER) as answer:
            assert answer.status == 421, "it is not at home there, and nobody is passed on twice"


async def test_roles_are_asked_at_both_servers(tmp_path: Path) -> None:
    async with town(tmp_path, "east", "west", tokens=PEOPLE) as (east, west):
        async with east.client("t-boss") as boss, west.client("t-rita") as reader, west.client("t-none") as stranger:
            await boss.deploy(task_flow())
            case = await boss.start("ask")
            assert (await reader.case(case.id)).id == case.id
            with pytest.raises(Forbidden):
                await reader.suspend(case.id)
            with pytest.raises(Unauthorized):
                await stranger.case(case.id)
            west.served.app.access = AccessControl([*PEOPLE, *read_tokens(f"rita admin {token_hash('t-more')}")])
        async with west.client("t-more") as promoted:
            with pytest.raises(Unauthorized):
                await promoted.suspend(case.id)


@pytest.mark.parametrize("path", ["peers/sync", "peers/", "peers//nudge", "/peers/pilots"])
async def test_what_servers_say_to_each_other_is_for_servers_alone(two: tuple[Citizen, Citizen], path: str) -> None:
    async with aiohttp.ClientSession() as line, line.post(f"{two[0].url}/api/v1/{path}") as answer:
        assert answer.status == 401


async def test_two_servers_that_are_asked_with_the_same_key_at_once_start_one_case(
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    await east.deploy(task_flow())
    for number in range(5):
        asked = (each.start("ask", {}, key=f"order {number}") for each in (east, west, east, west))
        started = {case.id for case in await asyncio.gather(*asked)}
        assert len(started) == 1
    assert len(await west.cases()) == 5
    assert all(citizen.server.runtime.ledger.broken == "" for citizen in two)


async def test_a_flow_that_was_deployed_elsewhere_a_moment_ago_is_known(east: Client, west: Client) -> None:
    await asyncio.gather(*(each.deploy(job_flow(f"f{number}")) for number in range(5) for each in (east, west)))
    for number in range(5):
        assert (await west.flow(f"f{number}")).version == (await east.flow(f"f{number}")).version == 1
    await east.deploy(task_flow("f0"))
    case = await west.start("f0")
    assert [task.case for task in await east.worklist(case=case.id)] == [case.id]


async def test_a_list_shows_each_case_as_its_own_server_knows_it(
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    await east.deploy(loop_flow())
    here, there = await east.start("many", {"n": 1}), await west.start("many", {"n": 1})
    for each in (east, west):
        found = {case.id: case for case in await each.cases()}
        assert {found[here.id].server, found[there.id].server} == {"east", "west"}
        assert [count.waiting for case in found.values() for count in case.counts] == [3, 3]


async def test_a_server_that_says_nothing_is_named_in_the_answer(
    two: tuple[Citizen, Citizen], east: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await two[1].served.stop()
    assert await east.cases() == []
    assert "server west did not answer" in caplog.text


async def test_the_events_of_all_servers_come_as_one_stream(east: Client, west: Client) -> None:
    await east.deploy(task_flow())
    told = west.events(kind="case")
    first = asyncio.ensure_future(anext(told))
    cases: list[str] = []
    while not first.done():
        cases.append((await east.start("ask")).id)
        await asyncio.wait((first,), timeout=0.2)
    assert first.result().case in cases
    own = (await west.start("ask")).id
    async with asyncio.timeout(PATIENCE_S):
        assert own in [happening.case async for happening in _until(told, own)]


async def _until(told: AsyncIterator[ChangeEvent], case: str) -> AsyncIterator[ChangeEvent]:
    async for happening in told:
        yield happening
        if happening.case == case:
            return


async def test_levels_are_drained_on_all_servers(two: tuple[Citizen, Citizen], west: Client) -> None:
    for citizen in two:
        case = f"f-{citizen.name}"
        await citizen.server.runtime.levels.enter(
            f"{case}/1", level=1, job=JobId(f"{case}/1"), case=CaseId(case), item=ItemId("a"), mode="express"
        )
    assert [level.waiting for level in await west.levels()] == [2, 0, 0]
    assert (await west.drain("1")).let_go == 2


async def test_rules_that_are_put_on_two_servers_at_once_are_put_one_after_the_other(
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    put = [each.put_rules(RuleSet(name="f"), note=str(number)) for number in range(3) for each in (east, west)]
    versions = sorted(view.version for view in await asyncio.gather(*put))
    assert versions == [1, 2, 3, 4, 5, 6]
    assert (await east.rule_set("f")).version == (await west.rule_set("f")).version == 6
    assert [view.version for view in await west.rule_versions("f")] == [6, 5, 4, 3, 2, 1]
    with pytest.raises(Conflict):
        await west.put_rules(RuleSet(name="f"), expected=4)
    assert all(citizen.server.runtime.ledger.broken == "" for citizen in two)


async def test_ex_7_how_far_rules_are_applied_to_a_group_is_told_for_all_servers(east: Client, west: Client) -> None:
    await east.deploy(job_flow())
    cases = []
    for server in (east, west):
        cases.append((await server.start("one")).id)
        await do_jobs(server, 1, fail=True)
    [group] = await west.failures(flow="one")
    assert group.count == 2
    assert [(await server.apply_progress(group.id)).started_at for server in (east, west)] == [0, 0]
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="again", cornerstone={})}, 1)
    await west.put_rules(RuleSet(name="one", trees={ExceptionType.ABORT: {"work": tree}}, exlets={"again": AGAIN}))
    await west.apply_rules(group.id)
    told = [await server.apply_progress(group.id) for server in (east, west)]
    assert [(set(each.cases), each.running, each.left, each.total, each.done) for each in told] == [
        (set(cases), False, [], 2, 2)
    ] * 2
    assert not (await east.stop_apply(group.id)).stopped, "it is over already"


async def test_ex_7_an_application_over_two_servers_is_told_while_it_runs_and_apart_from_one_before(
    two: tuple[Citizen, Citizen], east: Client, west: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await east.deploy(job_flow())
    cases = []
    for server in (east, west):
        cases.append((await server.start("one")).id)
        await do_jobs(server, 1, fail=True)
    [group] = await west.failures(flow="one")
    await two[0].domain.apply_rules(group.id, who="boss")  # west was not reached for it
    before = await west.apply_progress(group.id)
    assert (before.application, before.running, len(before.left)) == ("", False, 2)
    reopener, goes_on = two[1].server.runtime.recovery.groups._reopener, asyncio.Event()
    reopen = reopener.reopen

    async def held(case: CaseId, *, who: str, about: Collection[str], sight: Sight) -> Reopened:
        await goes_on.wait()
        return await reopen(case, who=who, about=about, sight=sight)

    monkeypatch.setattr(reopener, "reopen", held)
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="again", cornerstone={})}, 1)
    await west.put_rules(RuleSet(name="one", trees={ExceptionType.ABORT: {"work": tree}}, exlets={"again": AGAIN}))
    applying = asyncio.ensure_future(east.apply_rules(group.id))
    async with asyncio.timeout(PATIENCE_S):
        while not (told := await east.apply_progress(group.id)).cases or not told.running:
            await asyncio.sleep(0.05)
    also = await west.apply_progress(group.id)
    assert told.application and (also.application, also.running, also.ended_at) == (told.application, True, 0)
    assert (also.total, also.done) == (2, 0), "the slowest has not done its first"
    goes_on.set()
    assert set((await applying).cases) == set(cases)
    done = await west.apply_progress(group.id)
    assert (done.application, done.running, set(done.cases), done.left) == (told.application, False, set(cases), [])


async def test_nobody_but_servers_says_what_an_application_is_called(
    two: tuple[Citizen, Citizen], east: Client
) -> None:
    await east.deploy(job_flow())
    await east.start("one")
    await do_jobs(east, 1, fail=True)
    [group] = await east.failures(flow="one")
    headers = {"X-Mendflow-Application": "mine"}

    async def apply(**more: str) -> None:
        url = f"{two[0].url}/api/v1/failures/{group.id}/apply"
        async with aiohttp.ClientSession() as line:
            async with line.post(f"{url}?application=mine", headers={**headers, **more}) as refused:
                assert refused.status == 400
            async with line.post(url, headers={**headers, **more}) as answer:
                assert answer.status in (200, 201)

    await apply()
    called = [(await each.domain.apply_progress(group.id)).application for each in two]
    assert called[0] == called[1] not in ("", "mine")
    await two[1].die()
    await until(lambda: not two[0].member.live_servers())
    await apply()
    assert (await two[0].domain.apply_progress(group.id)).application == ""
    await apply(**OF_A_SERVER)
    assert (await two[0].domain.apply_progress(group.id)).application == "mine", "a server may say so"


async def test_ex_7_what_another_server_has_made_its_own_is_left_to_it_at_once(
    two: tuple[Citizen, Citizen], east: Client, west: Client
) -> None:
    await east.deploy(job_flow())
    cases = []
    for server in (east, west, east):
        cases.append((await server.start("one")).id)
        await do_jobs(server, 1, fail=True)
    [group] = await west.failures(flow="one")
    homes = two[0].server.runtime.homes
    async with asyncio.timeout(PATIENCE_S):
        while not all([await homes.claim(case, "reopening") for case in cases[:2] if not homes.mine(case)]):
            await asyncio.sleep(0.05)
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="again", cornerstone={})}, 1)
    await west.put_rules(RuleSet(name="one", trees={ExceptionType.ABORT: {"work": tree}}, exlets={"again": AGAIN}))
    began = asyncio.get_running_loop().time()
    applied = await two[1].domain.apply_rules(group.id, who="boss")
    assert asyncio.get_running_loop().time() - began < 3, "nobody waits for what has another home"
    assert (applied.cases, applied.refused) == (cases[2:], {})
    assert [id.partition("/")[0] for id in applied.left] == [case for case in reversed(cases[:2])]
