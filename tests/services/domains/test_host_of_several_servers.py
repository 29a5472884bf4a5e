"""A host of several servers: whichever of them is asked, the one that has the case does what the origin wants."""

import asyncio
from collections.abc import Collection

import pytest

from mendflow.core.model.domains import DomainRights, WorkRef
from mendflow.core.model.ids import CaseId
from tests.patience import PATIENCE_S
from tests.services.cluster.kit import Cluster, ServerProcess, run
from tests.services.domains.by_hand import HandOrigin, sent_job


async def taken(one: ServerProcess, origin: HandOrigin) -> str:
    """The case of a job that this server has taken, which goes on while its origin vouches for another job."""
    await origin.say(one.runtime.domains.hosted, sent_job("kept"), sent_job("dropped"), do=one.do)
    works = one.runtime.domains.runs.register.by_case.values()
    return next(work.case for work in works if work.document.key == "dropped")


async def vouch(server: ServerProcess, origin: HandOrigin, seconds: int) -> None:
    for _ in range(seconds):
        await origin.say(server.runtime.domains.hosted, do=server.do)
        await asyncio.sleep(1)


def test_what_is_claimed_no_longer_at_one_server_is_stopped_at_the_other() -> None:  # FM-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        origin = HandOrigin()
        case = await taken(one, origin)
        await vouch(two, origin, 2)
        del origin.claims["dropped"]
        await vouch(two, origin, 5)
        assert (await cluster.document(case)).status == "cancelled"
        assert [live.document.status for live in one.runtime.manager.live.values()] == ["running"]

    run(story)


def test_what_is_acknowledged_while_it_runs_at_the_other_server_is_stopped_there() -> None:  # FM-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        origin = HandOrigin()
        case = await taken(one, origin)
        del origin.claims["dropped"]
        hosted = two.runtime.domains.hosted
        await origin.say(hosted, acknowledged=[WorkRef("dropped", 1)], do=two.do)
        await vouch(two, origin, 5)
        assert (await cluster.document(case)).status == "cancelled"

    run(story)


def test_what_is_sent_anew_to_one_server_is_stopped_at_the_other_first() -> None:  # FM-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        origin = HandOrigin()
        case = await taken(one, origin)
        del origin.claims["dropped"]
        anew = sent_job("dropped", 2)
        said = await origin.say(two.runtime.domains.hosted, anew, do=two.do)
        assert said["dropped"].state == "unknown"
        for _ in range(40):
            await asyncio.sleep(1)
            said = await origin.say(two.runtime.domains.hosted, anew, do=two.do)
            if said.get("dropped") is not None and said["dropped"].state == "running":
                break
        assert (await cluster.document(case)).status == "cancelled"
        assert said["dropped"].state == "running"

    run(story)


def test_a_domain_has_no_more_work_here_than_it_may_whichever_servers_it_asks() -> None:  # FM-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        rights = DomainRights(work_max=3)
        first, second = HandOrigin(rights), HandOrigin(rights)
        await first.say(one.runtime.domains.hosted, *(sent_job(f"a-{number}") for number in range(2)), do=one.do)
        said = await second.say(
            two.runtime.domains.hosted, *(sent_job(f"b-{number}") for number in range(3)), do=two.do
        )
        assert sorted(each.state for each in said.values()) == ["refused", "refused", "running"]

    run(story)


def test_servers_that_take_work_at_the_same_time_take_no_more_than_is_allowed() -> None:  # FM-4
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        rights = DomainRights(work_max=3)
        first, second = HandOrigin(rights), HandOrigin(rights)
        await asyncio.gather(
            first.say(one.runtime.domains.hosted, *(sent_job(f"a-{number}") for number in range(3)), do=one.do),
            second.say(two.runtime.domains.hosted, *(sent_job(f"b-{number}") for number in range(3)), do=two.do),
        )
        assert len(one.runtime.manager.live) + len(two.runtime.manager.live) <= 3

    run(story)


def test_work_whose_lease_ends_while_its_case_is_taken_over_is_stopped_and_others_are_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # FM-4: who loads the case and who stops what is due must not wait for each other
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        origin, later = HandOrigin(), HandOrigin()
        case = await taken(one, origin)
        await vouch(two, origin, 1)
        resume, loading = two.runtime.recovery.resume, asyncio.Event()

        async def resume_slowly(roots: Collection[CaseId]) -> None:
            loading.set()
            await resume(roots)
            await asyncio.sleep(150)  # longer than the lease of the origin, which says nothing more

        monkeypatch.setattr(two.runtime.recovery, "resume", resume_slowly)
        one.kill()
        await asyncio.wait_for(loading.wait(), PATIENCE_S)
        await cluster.until_status(case, "cancelled", 300)
        await later.say(two.runtime.domains.hosted, sent_job("another"), do=two.do)
        [another] = [
            work.case for work in two.runtime.domains.runs.register.by_case.values() if work.sender[1] == later.sender
        ]
        await cluster.until_status(another, "cancelled", 300)

    run(story)
