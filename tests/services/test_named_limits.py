"""Jobs that use named limits: who gets them, when they are given back, and what is said of those that wait."""

import asyncio
from typing import Any

import pytest

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Limits, Outcome
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.sync import Capacity
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.patience import until
from tests.services.conftest import HandPilot

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))


def job(name: str, *named: tuple[str, int], **options: Any) -> JobActivity:
    return JobActivity(name=name, command="true", limits=Limits(named=named), **options)


async def start(domain: Domain, *jobs: JobActivity) -> str:
    await domain.deploy(Flow(name=FlowName("limited"), body=Parallel(name="all", branches=jobs)))
    return (await domain.start("limited", {}, who="me")).id


async def used(domain: Domain, name: str = "x") -> int:
    return (await domain.limit(name)).used


async def until_used(domain: Domain, amount: int) -> None:
    async def reached() -> bool:
        return await used(domain) == amount

    await until(reached, f"{amount} are used")


async def test_no_more_jobs_start_than_the_limit_allows_and_others_are_not_held_up(
    domain: Domain, pilot: HandPilot
) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(2), who="root")
    await start(domain, job("a", ("x", 1)), job("b", ("x", 1)), job("c", ("x", 1)), job("d"))
    await pilot.sync(want=4, wait_ms=2000)
    got = sorted(each.spec.item for each in pilot.held)
    if "d" not in got:
        await pilot.sync(want=2, wait_ms=2000)
    assert sorted(each.spec.item for each in pilot.held) == ["a", "b", "d"]
    assert await used(domain) == 2
    await pilot.sync(a=Outcome())
    await pilot.sync(want=2, wait_ms=5000)
    assert sorted(each.spec.item for each in pilot.held) == ["b", "c", "d"]
    await pilot.sync(b=FAILED, c=Outcome(), d=Outcome())
    await pilot.sync()  # the failure of b ends the others, and this says that none of them runs
    await until_used(domain, 0)


async def test_a_limit_that_nobody_has_set_lets_its_jobs_wait_and_why_says_so(domain: Domain, pilot: HandPilot) -> None:
    case = await start(domain, job("a", ("x", 1)))  # DU-6
    await pilot.sync(want=1)
    assert not pilot.held
    told = await domain.why(f"{case}:a")
    assert "it waits for limit x, which nobody has set; an administrator sets it" in told.sentence
    limits = await until(domain.limits, "the limit that it waits for")
    assert [(view.name, view.count, view.waiting) for view in limits] == [("x", None, 1)]
    await domain.set_limit("x", LimitCount(1), who="root")
    await pilot.sync(want=1, wait_ms=5000)
    assert len(pilot.held) == 1


async def test_why_says_who_uses_the_limit(domain: Domain, pilot: HandPilot) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(1), who="root")
    case = await start(domain, job("a", ("x", 1)), job("b", ("x", 1)))
    await pilot.sync(want=2, wait_ms=2000)
    [held] = pilot.held
    waiting = "b" if held.spec.item == "a" else "a"
    told = await domain.why(f"{case}:{waiting}")
    assert f"it waits for limit x: 1 of 1 are in use (by {held.job})" in told.sentence


async def test_why_names_no_job_of_another_project(domain: Domain, pilot: HandPilot) -> None:  # SE-1, DU-6
    await domain.set_limit("x", LimitCount(1), who="root")
    for project in ("red", "blue"):
        await domain.deploy(Flow(name=FlowName(project), body=job("a", ("x", 1))), project=project)
    await domain.start("red", {}, who="ann")
    await pilot.sync(want=1, wait_ms=2000)
    [held] = pilot.held
    case = (await domain.start("blue", {}, who="bob")).id
    told = await domain.why(f"{case}:a")
    assert "it waits for limit x: 1 of 1 are in use" in told.sentence and "(by" not in told.sentence
    assert held.job not in told.sentence


async def test_a_cancelled_job_holds_its_limit_until_its_pilot_runs_it_no_longer(
    domain: Domain, pilot: HandPilot
) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(1), who="root")
    case = await start(domain, job("a", ("x", 1)))
    await pilot.sync(want=1, wait_ms=2000)
    await domain.cancel(case, who="me")
    await asyncio.sleep(0.7)
    assert await used(domain) == 1, "its pilot still runs it"
    await pilot.sync()
    assert await used(domain) == 1, "it was told to stop it, and has not yet"
    pilot.held = []
    await pilot.sync()
    await until_used(domain, 0)


async def test_pilots_do_not_hold_limits_for_jobs_that_they_begin_later(domain: Domain) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(5), who="root")
    await start(domain, *(job(name, ("x", 1)) for name in "abcde"))
    small = HandPilot(domain, "small", Capacity(slots=1, cpus=1.0, memory_bytes=1 << 30, disk_bytes=1 << 30))
    await small.sync(want=4, wait_ms=1000)
    assert len(small.held) == 1 and await used(domain) == 1


async def test_a_restarted_server_gives_back_what_no_attempt_uses(server: Server, domain: Domain) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(1), who="root")
    limits = server.runtime.limits
    await start(domain, job("a", ("x", 1)))
    [waiting] = server.runtime.meta.jobs.values()
    assert await limits.take([waiting]) == {waiting.id}, "a server is killed here: the hold is written, the grant not"
    limits.granted([waiting])
    await until_used(domain, 0)


async def test_counts_and_names_are_checked(domain: Domain) -> None:
    with pytest.raises(InvalidRequest, match="0 or more"):
        await domain.set_limit("x", LimitCount(-1), who="root")
    with pytest.raises(InvalidRequest, match="is no name of a limit"):
        await domain.set_limit("a b", LimitCount(1), who="root")
    with pytest.raises(NotFound, match="there is no limit"):
        await domain.remove_limit("x", who="root")
