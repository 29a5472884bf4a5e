"""A host of several servers: whichever of them is asked, the one that has the case does what the origin wants."""

import asyncio

from mendflow.core.model.domains import WorkRef
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
