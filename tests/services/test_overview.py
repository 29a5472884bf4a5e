"""Everything at a glance: what runs, what waits and why, what failed in the last day and what was mended."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import ForEach, JobActivity, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.overview import HOURS, OverviewView
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RepairRequest
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.views import CaseQuery, JobQuery
from mendflow.services.api.overview import AHEAD, DELAYED, SUSPENDED
from mendflow.services.api.paced_answers import PacedAnswers
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


async def looked(world: World, sight: Sight | None = None) -> OverviewView:
    """As whoever has not looked before sees it."""
    return await type(world.domain)(world.server).overview(**({"sight": sight} if sight else {}))


async def test_an_empty_server_has_nothing_to_show(world: World) -> None:
    seen = await looked(world)
    assert (seen.cases, seen.jobs, seen.waiting, seen.failures, seen.alerts) == ({}, {}, [], [], [])
    assert len(seen.per_hour.started) == HOURS and not any(seen.per_hour.started)
    assert seen.since % 3_600_000 == 0


async def test_what_waits_says_for_what_and_names_one_of_them(world: World) -> None:
    case = await world.start(flow(ForEach(name="each.a", first=1, last=3, body=A)))
    await world.start(flow(UserTask(name="ask", role="clerk"), "asking"))
    await world.quiet()
    seen = await looked(world)
    assert seen.cases == {"running": 2} and seen.jobs == {"waiting": 3}
    [jobs, task] = seen.waiting
    assert (jobs.kind, jobs.jobs, jobs.sample) == ("job", 3, f"{case}/1")
    assert "pilot" in jobs.reason
    assert (task.kind, task.jobs) == ("user-task", 1)
    assert seen.per_hour.started[-1] + seen.per_hour.started[-2] == 2


async def test_pilots_and_their_jobs_are_counted(world: World) -> None:
    await world.start(flow(ForEach(name="each.a", first=1, last=6, body=A)))
    await world.take(items=4)
    seen = await looked(world)
    assert (seen.pilots.up, seen.pilots.slots, seen.pilots.busy) == (1, 4, 4)
    assert [(site.name, site.pilots, site.slots, site.busy) for site in seen.sites] == [("", 1, 4, 4)]
    assert sum(seen.jobs.values()) == 6 and seen.jobs["running"] == 4


async def test_failures_are_counted_by_cause_and_what_was_mended_by_rule(world: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    seen = await looked(world)
    [cause] = seen.failures
    assert cause.count == 1 == sum(cause.per_hour) and "exit code" in cause.message
    [group] = await world.domain.failures()
    assert cause.group == group.id
    assert seen.recovered.count == 1
    [by] = seen.recovered.by_rule
    assert (by.rules, by.exlet, by.count) == ("f", "again", 1)
    assert (seen.recovered.count_by_hand, seen.recovered.by_hand) == (0, [])
    assert seen.cases == {"completed": 1} and seen.inner == {"completed": 1}, "what somebody started, and the exlet"
    assert sum(seen.per_hour.started) == sum(seen.per_hour.completed) == 1
    listed = await world.domain.count_cases(CaseQuery(where="parent == null && mends == null"), by="status")
    assert seen.cases == listed.counts


async def test_what_people_mended_is_counted_apart_from_what_rules_did(world: World) -> None:
    await world.put(
        rule_set("f", ExceptionType.ABORT, ("false", "again"), exlets=[exlet("again", mend(Primitive.RESUBMIT))])
    )
    case = await world.start(flow(A, on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    await world.domain.mend(case, RepairRequest(exlet="again"), who="ann")
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    seen = (await looked(world)).recovered
    assert (seen.count, seen.by_rule, seen.count_by_hand) == (0, [], 1)
    assert [(by.rules, by.exlet, by.count) for by in seen.by_hand] == [("", "again", 1)]


async def found(world: World, where: str) -> int:
    return (await world.domain.count_jobs(JobQuery(where=where))).counts[""]


async def test_reasons_add_up_to_the_jobs_that_wait_and_each_finds_its_own(world: World) -> None:
    retried = JobActivity(name="b", command="false", retries=2, retry_wait_ms=3_600_000)
    await world.start(flow(retried, "r"))
    await world.take()
    await world.report(b=FAILED)
    case = await world.start(flow(ForEach(name="e", first=1, last=7, body=A)))
    await world.quiet()
    await world.domain.suspend(case, "a[6]", who="me")
    world.pilot.state = "held"
    await world.take(items=4)
    await world.pilot.sync()
    seen = await looked(world)
    waits = {each.where or each.kind: each for each in seen.waiting}
    assert sum(each.jobs for each in seen.waiting) == sum(seen.jobs.values()) - seen.jobs.get("running", 0)
    for where in (AHEAD, DELAYED, SUSPENDED):
        assert waits[where].jobs == await found(world, where), where
    assert (waits[DELAYED].jobs, waits[SUSPENDED].jobs) == (1, 1)
    assert seen.pilots.busy == seen.jobs.get("running", 0) == 0, "what is fetched ahead takes no slot"
    assert "before it" not in " ".join(each.reason for each in seen.waiting)


async def test_only_what_may_be_seen_is_counted(world: World) -> None:
    await world.domain.deploy(flow(A, "red"), project="red")
    await world.domain.deploy(flow(ForEach(name="e", first=1, last=2, body=A), "blue"), project="blue")
    for name in ("red", "blue"):
        await world.domain.start(name, {}, who="me")
    await world.quiet()
    red, nobody = await looked(world, Sight(frozenset({"red"}))), await looked(world, Sight(frozenset({"other"})))
    assert red.cases == {"running": 1} and red.jobs == {"waiting": 1}
    assert [(each.jobs, each.sample.split("-")[0]) for each in red.waiting] == [(1, "red")]
    assert (nobody.cases, nobody.jobs, nobody.waiting) == ({}, {}, [])
    assert (await looked(world)).jobs == {"waiting": 3}


async def test_an_answer_is_made_again_when_ten_times_as_long_has_passed_as_it_took() -> None:
    now, made = 0, 0

    async def make() -> int:
        nonlocal now, made
        now, made = now + 5, made + 1
        return made

    answers: PacedAnswers[int] = PacedAnswers(lambda: now)
    assert await answers.get("a", make) == 1
    now = 54
    assert await answers.get("a", make) == 1 and await answers.get("b", make) == 2
    now = 120
    assert await answers.get("a", make) == 3


async def test_what_a_person_was_only_told_of_is_not_mended(world: World) -> None:
    # FM-12, UI-1: nobody can take the job, and the exlet says so; the job waits as before
    tell = exlet("tell", mend(Primitive.NOTIFY, message="nobody can take it"))
    await world.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[tell]))
    case = await world.start(flow(A))
    decision = await world.until_decided(case, "done")
    assert (decision.result, decision.steps) == ("told", [Primitive.NOTIFY])
    seen = await looked(world)
    assert (seen.recovered.count, seen.recovered.by_rule) == (0, [])
    assert [(cause.count, cause.told, cause.unhandled) for cause in seen.failures] == [(1, 1, 0)]
    [group] = await world.domain.failures()
    assert (group.told, group.handled[0].results) == (1, {"told": 1})
    [result] = await world.domain.exlet_results()
    assert (result.exlet, result.known, result.recovered) == ("tell", 1, 0)
    said = {entry.what: entry.message for entry in await world.domain.history(case) if entry.exlet == "tell"}
    assert "repaired" not in said and said["told"].startswith("tell: a person was told, and nothing else was done")


async def test_the_cause_of_jobs_that_nobody_can_take_is_what_they_ask_for_and_what_there_is(world: World) -> None:
    # FM-12, UI-1: the figures differ from case to case, the cause does not
    tell = exlet("tell", mend(Primitive.NOTIFY, message="nobody can take it"))
    await world.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[tell], task="*"))
    await world.pilot.sync()
    for name, gigabytes in (("big", 500), ("bigger", 700)):
        needs = ResourceTemplates(memory_bytes=gigabytes * 10**9)
        case = await world.start(flow(JobActivity(name=name, command="true", resources=needs)))
        decision = await world.until_decided(case, "done")
        assert f"{gigabytes} GB" in decision.note == decision.context["job"]["why"]
    [group] = await world.domain.failures()
    assert (group.count, group.tasks) == (2, ["bigger", "big"]) or group.tasks == ["big", "bigger"]
    assert group.message.startswith("no pilot can take it: it asks for <n> GB of memory"), group.message
    assert [cause.message for cause in (await looked(world)).failures] == [group.message]


async def test_an_exlet_that_tells_and_does_more_has_not_only_told(world: World) -> None:
    # FM-12
    steps = mend(Primitive.NOTIFY, message="it fails"), mend(Primitive.WRITE, target="case", values={"seen": True})
    await world.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "note"), exlets=[exlet("note", *steps)]))
    case = await world.start(flow(A))
    decision = await world.until_decided(case, "done")
    assert (decision.result, decision.steps) == ("completed", [Primitive.NOTIFY, Primitive.WRITE])
    assert (await looked(world)).recovered.count == 0, "the item waits as before"
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    assert (await looked(world)).recovered.count == 1


async def test_an_item_that_was_begun_again_is_mended_when_it_is_over_and_did_not_fail_again(world: World) -> None:
    # FM-1, UI-1
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ("history.case.of_task == 0", "again"), exlets=[again]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.take()
    assert (await looked(world)).recovered.count == 0, "it runs"
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    assert (await looked(world)).recovered.count == 0, "it failed again"
