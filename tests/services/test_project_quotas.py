"""Quotas of projects: what waits, what is refused, what is said of it, and when room is given back."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, RequestError, TooManyRequests
from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import CaseId, FlowName, Instant
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import Sight
from mendflow.core.model.projects import FairShareSettings, ProjectSettings, Quotas, quota_name
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.membership import SingleServer
from mendflow.services.cases.facts import CaseAdmission
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.limit_store import LimitStore
from mendflow.services.scheduling.stored_bytes import StoredBytes
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.services.conftest import HandPilot, server_on
from tests.services.lab import Lab


def flow_of(name: str, jobs: int, **about: Any) -> Flow:
    branches = tuple(JobActivity(name=f"j{number}", command="true", **about) for number in range(jobs))
    return Flow(name=FlowName(name), body=Parallel(name="all", branches=branches))


async def start(domain: Domain, jobs: int = 3, project: str = "red", who: str = "ann", **about: Any) -> str:
    name = f"{project}-flow"
    await domain.deploy(flow_of(name, jobs, **about), project=project)
    return (await domain.start(name, {}, who=who)).id


async def bound(domain: Domain, project: str = "red", **quotas: Any) -> None:
    await domain.set_project(project, ProjectSettings(quotas=Quotas(**quotas)), who="root")


async def used(domain: Domain, field: str, project: str = "red") -> Any:
    return getattr((await domain.project(project)).used, field)


async def until_used(domain: Domain, field: str, amount: Any) -> None:
    async def reached() -> bool:
        return bool(await used(domain, field) == amount)

    await until(reached, f"{amount} of {field} are used")


def done(pilot: HandPilot) -> dict[str, Outcome]:
    return {each.spec.item: Outcome() for each in pilot.held}


# Running jobs


async def test_no_more_jobs_run_than_the_quota_allows_and_why_names_it(domain: Domain, pilot: HandPilot) -> None:
    await bound(domain, running_jobs=2)  # SE-6
    case = await start(domain, 3)
    await pilot.sync(want=4, wait_ms=1000)
    assert len(pilot.held) == 2 and await used(domain, "running_jobs") == 2
    held = {each.spec.item for each in pilot.held}
    [waits] = {"j0", "j1", "j2"} - held
    told = await domain.why(f"{case}:{waits}")
    assert "it waits for the quota of project red for running jobs: 2 of 2 are in use (by " in told.sentence
    assert all(each.job in told.sentence for each in pilot.held)
    await pilot.exchange(done(pilot))
    await pilot.sync(want=4, wait_ms=5000)
    assert [each.spec.item for each in pilot.held] == [waits]
    await pilot.exchange(done(pilot))
    await until_used(domain, "running_jobs", 0)


async def test_quotas_of_cpus_and_memory_count_what_jobs_ask_for(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, cpus=2.5, memory_bytes=3 << 30)
    await start(domain, 3, resources=ResourceTemplates(cpus=1, memory_bytes=1 << 30))
    await pilot.sync(want=4, wait_ms=1000)
    assert len(pilot.held) == 2 and await used(domain, "memory_bytes") == 2 << 30
    await bound(domain, cpus=8, memory_bytes=2 << 30)
    await pilot.sync(want=4)
    assert len(pilot.held) == 2
    await bound(domain, memory_bytes=3 << 30)
    await pilot.sync(want=4, wait_ms=5000)
    assert len(pilot.held) == 3


async def test_a_job_that_is_larger_than_the_quota_says_what_to_do(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, cpus=1)
    case = await start(domain, 1, resources=ResourceTemplates(cpus=3))
    await pilot.sync(want=1)
    told = await domain.why(f"{case}:j0")
    assert "the quota of project red for CPUs is 1, and it needs 3" in told.sentence
    assert "mendflow admin projects set red --cpus N" in told.sentence and told.stuck


async def test_other_projects_are_not_held_up(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, running_jobs=0)
    await start(domain, 2)
    await start(domain, 2, project="blue")
    await pilot.sync(want=4, wait_ms=1000)
    assert {each.spec.project for each in pilot.held} == {"blue"} and len(pilot.held) == 2


async def test_a_quota_counts_what_runs_already(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await start(domain, 3)
    await pilot.sync(want=2, wait_ms=1000)
    assert len(pilot.held) == 2
    await bound(domain, running_jobs=1)
    await until_used(domain, "running_jobs", 2)
    await pilot.sync(want=1)
    assert len(pilot.held) == 2, "nothing is stopped, and nothing starts"
    first = pilot.held[0].spec.item
    await pilot.exchange({first: Outcome()})
    await pilot.sync(want=1)
    assert len(pilot.held) == 1
    await pilot.exchange(done(pilot))
    await pilot.sync(want=1, wait_ms=5000)
    assert len(pilot.held) == 1


async def test_a_removed_quota_holds_no_longer(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, running_jobs=1)
    await start(domain, 3)
    await pilot.sync(want=3, wait_ms=1000)
    assert len(pilot.held) == 1
    await domain.remove_project_settings("red", who="root")
    await pilot.sync(want=3, wait_ms=2000)
    assert len(pilot.held) == 3
    with pytest.raises(NotFound, match="nothing is set for project"):
        await domain.remove_project_settings("red", who="root")


async def test_a_quota_that_another_server_removed_holds_no_longer(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # SE-6
    await bound(domain, running_jobs=1)
    case = await start(domain, 3)
    await pilot.sync(want=3, wait_ms=1000)
    assert len(pilot.held) == 1
    limits = server.runtime.limits
    elsewhere = LimitStore(server.store, server.runtime.ledger)
    await elsewhere.read_all()
    await elsewhere.change(quota_name("red", "running-jobs"), lambda before: replace(before, count=None))
    await until(lambda: not limits.kinds, "the server has looked at its limits")
    await limits.read_shared()  # as when it hears that the project was changed
    await pilot.sync(want=3, wait_ms=2000)
    assert len(pilot.held) == 3, (await domain.why(f"{case}:j2")).sentence


# Cases


async def test_a_case_over_the_quota_is_refused_with_what_to_do(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, cases=1)
    case = await start(domain, 1)
    with pytest.raises(QuotaExceeded) as refused:
        await start(domain, 1)
    assert refused.value.code == "quota-exceeded"
    assert f"the quota of project red for cases: 1 of 1 are in use (by {case})" in refused.value.message
    assert "an administrator raises it: mendflow admin projects set red --cases N" in refused.value.message
    assert refused.value.fields == {"project": "red", "quota": "cases", "used": 1, "limit": 1}
    assert len(await domain.cases()) == 1
    await pilot.sync(want=1, wait_ms=1000)
    await pilot.exchange(done(pilot))
    await until_used(domain, "cases", 0)
    await start(domain, 1)


async def test_a_case_that_does_not_begin_takes_no_room(domain: Domain) -> None:  # SE-6
    await bound(domain, cases=1)
    await domain.deploy(flow_of("red-flow", 1), project="red")
    with pytest.raises(RequestError, match="not an input"):
        await domain.start("red-flow", {"unknown": 1}, who="ann")
    await until_used(domain, "cases", 0)
    assert await start(domain, 1)


async def test_whoever_leaves_while_a_case_is_admitted_keeps_no_room(
    domain: Domain, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-6
    await bound(domain, cases=1)
    await domain.deploy(flow_of("red-flow", 1), project="red")
    admission, taken = server.runtime.hub.provider(CaseAdmission), asyncio.Event()
    assert admission is not None
    admit = admission.admit

    async def admit_and_wait(case: CaseId, project: str) -> None:
        await admit(case, project)
        taken.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(admission, "admit", admit_and_wait)
    starting = asyncio.create_task(domain.start("red-flow", {}, who="ann"))
    await taken.wait()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await until_used(domain, "cases", 0)
    monkeypatch.setattr(admission, "admit", admit)
    assert await start(domain, 1)


async def test_cases_and_jobs_count_after_a_crash(
    server: Server, domain: Domain, pilot: HandPilot, restart: Callable[[Server], Awaitable[None]]
) -> None:  # SE-6
    await bound(domain, cases=2, running_jobs=1)
    await start(domain, 2)
    await pilot.sync(want=2, wait_ms=1000)
    await restart(server)
    with pytest.raises(QuotaExceeded):
        for _ in range(2):
            await start(domain, 1)
    await pilot.sync(want=2)
    assert len(pilot.held) == 1 and await used(domain, "running_jobs") == 1


# Waiting jobs


async def test_jobs_over_the_quota_of_waiting_ones_are_queued_later(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, waiting_jobs=2)
    await until_settled(domain)
    case = await start(domain, 5)
    queue = domain._server.runtime.meta.queue
    assert len(queue) == 2
    told = await domain.why(f"{case}:j4")
    assert "it is queued when project red has fewer than 2 waiting jobs, its quota" in told.sentence
    await pilot.sync(want=1, wait_ms=1000)
    assert len(pilot.held) == 1 and len(queue) == 2, "the next one enters at once"
    await domain.cancel(case, who="ann")
    assert len(queue) == 0


async def test_the_overview_counts_jobs_outside_the_queue_as_waiting(domain: Domain) -> None:  # SE-6, UI-1
    await bound(domain, waiting_jobs=2)
    await until_settled(domain)
    await start(domain, 5)
    seen = await domain.overview()
    assert seen.jobs == {"waiting": 5}
    assert sorted(each.jobs for each in seen.waiting) == [2, 3]
    [held] = [each for each in seen.waiting if "fewer than 2 waiting jobs, its quota" in each.reason]
    assert held.jobs == 3


async def test_a_case_with_more_jobs_than_may_wait_ends_all_the_same(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, waiting_jobs=1)
    await until_settled(domain)
    case = await start(domain, 6)
    await pilot.run_all(lambda _: Outcome())
    assert (await domain.case(case)).status == "completed"


async def test_without_a_place_for_a_waiting_job_no_case_is_started(domain: Domain) -> None:  # SE-6
    await bound(domain, waiting_jobs=0)
    with pytest.raises(QuotaExceeded, match="waiting jobs"):
        await start(domain, 1)


async def test_a_quota_of_waiting_jobs_that_is_removed_lets_all_in(domain: Domain) -> None:  # SE-6
    await bound(domain, waiting_jobs=1)
    await until_settled(domain)
    await start(domain, 4)
    await domain.remove_project_settings("red", who="root")
    queue = domain._server.runtime.meta.queue

    async def all_in() -> bool:
        return len(queue) == 4

    await until(all_in, "all jobs are in the queue")


async def until_settled(domain: Domain) -> None:
    """Until the server has read what was set."""
    projects = domain._server.runtime.projects

    async def settled() -> bool:
        return bool(projects._admission.allowed)

    await until(settled, "the quota of waiting jobs is known")


# Bytes


async def test_stored_files_count_and_an_exhausted_quota_starts_nothing(server: Server) -> None:  # SE-6
    lab = Lab(server)
    flow = Flow(name=FlowName("makes"), body=JobActivity(name="make", command="true", files={"out": "out.txt"}))
    await lab.domain.deploy(flow, project="red")
    await lab.domain.start("makes", {}, who="ann")
    await lab.work()
    await bound(lab.domain, stored_bytes=1000)

    async def counted() -> bool:
        return (await used(lab.domain, "stored_bytes") or 0) > 0

    await until(counted, "the stored bytes are counted")
    stored = await used(lab.domain, "stored_bytes")
    case = await lab.domain.start("makes", {}, who="ann")
    await bound(lab.domain, stored_bytes=stored)
    await lab.pilot.sync(want=1)
    told = await lab.domain.why(f"{case.id}:make")
    assert "the quota of project red for stored files" in told.sentence and "prune cases" in told.sentence
    with pytest.raises(QuotaExceeded, match="stored files") as refused:
        await lab.domain.start("makes", {}, who="ann")
    assert refused.value.fields["used"] == stored


async def test_what_is_stored_between_two_counts_is_not_lost(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-6
    limits, other = server.runtime.limits, SingleServer()
    other.id = "another"
    monkeypatch.setattr(server.runtime.projects._bytes, "look", nothing)  # the test does it
    await bound(domain, stored_bytes=1000)
    theirs = StoredBytes(limits, LaterClock(), other, nothing)
    theirs._new["red"] = 5

    async def stored_while_they_write(project: str) -> int:
        await theirs._add_new(project)
        return 100

    ours = StoredBytes(limits, SystemClock(), server.membership, stored_while_they_write)
    ours._new["red"] = 7
    with monkeypatch.context() as patched, pytest.raises(Conflict):
        patched.setattr(limits.store, "change", always_refused)
        await ours._add_new("red")
    await ours._add_new("red")
    assert await used(domain, "stored_bytes") == 7
    await ours._add_new("red")
    assert await used(domain, "stored_bytes") == 7, "added once"
    await ours._count("red")
    assert await used(domain, "stored_bytes") == 105


class LaterClock(SystemClock):
    def now(self) -> Instant:
        return super().now() + 60_000


async def nothing(*_: object) -> int:
    return 0


async def always_refused(*_: object) -> None:
    raise Conflict("somebody else is always first")


# Requests


async def test_requests_of_a_project_are_bounded(domain: Domain) -> None:  # SE-6
    await bound(domain, requests_per_s=2)
    for _ in range(4):
        domain.count_request("red")
    with pytest.raises(TooManyRequests, match="project red") as refused:
        domain.count_request("red")
    assert refused.value.fields["retry_after_s"] == 1
    domain.count_request("blue")


# Settings


async def test_settings_are_checked(domain: Domain) -> None:  # SE-6
    for settings in (
        ProjectSettings(weight=-1),
        ProjectSettings(user_weights={"ann": -1}),
        ProjectSettings(quotas=Quotas(cases=-1)),
        ProjectSettings(quotas=Quotas(requests_per_s=0)),
    ):
        with pytest.raises(InvalidRequest):
            await domain.set_project("red", settings, who="root")
    with pytest.raises(InvalidRequest, match="name of a project"):
        await domain.set_project("no such/name", ProjectSettings(), who="root")
    with pytest.raises(InvalidRequest, match="half-life"):
        await domain.set_fair_share(FairShareSettings(half_life_ms=1), who="root")


async def test_what_is_set_and_used_is_there_after_a_restart(tmp_path: Path) -> None:  # SE-6
    store = MemoryStore()
    first = server_on(store, tmp_path)
    await first.open()
    domain = Domain(first)
    settings = ProjectSettings(weight=3, share_users=True, user_weights={"ann": 2}, quotas=Quotas(cases=5, cpus=2.5))
    await domain.set_project("red", settings, who="root")
    await domain.set_fair_share(FairShareSettings(half_life_ms=3_600_000), who="root")
    await start(domain, 1)
    pilot = HandPilot(domain)
    await pilot.sync(want=1, wait_ms=1000)
    await first.runtime.projects.usage.look()
    await first.close()
    second = server_on(store, tmp_path)
    await second.open()
    view = await Domain(second).project("red")
    assert (view.settings, view.set_by) == (settings, "root") and view.used.cases == 1
    assert [each.user for each in view.users] == ["ann"]
    assert (await Domain(second).fair_share()).half_life_ms == 3_600_000
    await second.close()


async def test_shares_are_for_those_who_see_all_projects(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await domain.set_project("red", ProjectSettings(weight=3), who="root")
    await start(domain, 1, project="blue")
    views = await domain.projects()
    assert {each.name: each.share for each in views} == {"red": 0.75, "blue": 0.25}
    seen = await domain.projects(sight=Sight(frozenset({"blue", "green"})))
    assert [(each.name, each.share, each.used_share) for each in seen] == [("blue", None, None), ("green", None, None)]


async def test_why_says_that_another_goes_first(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await start(domain, 5)
    await pilot.sync(want=4, wait_ms=1000)
    assert len(pilot.held) == 4
    await start(domain, 2, project="blue")
    [red] = {f"j{number}" for number in range(5)} - {each.spec.item for each in pilot.held}
    [case] = [each.id for each in await domain.cases() if each.project == "red"]
    told = await domain.why(f"{case}:{red}")
    assert any(
        "by the fair share another of the projects and users that wait has used less" in each for each in told.facts
    )
    assert not any("blue" in each for each in told.facts), "whoever asks may not know the others"


async def test_quotas_are_no_named_limits_that_people_see(domain: Domain) -> None:  # SE-6
    await bound(domain, cpus=1, cases=1)
    assert await domain.limits() == []
    with pytest.raises(NotFound, match="quotas of projects"):
        await domain.limit("project:red:cpus")
    with pytest.raises(NotFound):
        await domain.remove_limit("project:red:cpus", who="root")
