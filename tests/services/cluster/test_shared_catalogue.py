"""Any of several servers answers about files and storage elements, and what one was told the others know."""

import asyncio

from mendflow.core.model.data import (
    LocateRequest,
    LogicalFile,
    OutputPlacement,
    PlaceRequest,
    Publication,
    Replica,
    StorageElement,
)
from mendflow.core.model.errors import Conflict, Unreachable
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId, PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import FileRef
from mendflow.services.base.cluster_terms import cluster_terms
from tests.services.cluster.kit import LEASE_MS, Cluster, ServerProcess, pilot_of, run
from tests.services.recovery.kit import flow

TERMS = cluster_terms(LEASE_MS)
A = "a" * 64
NEAR = StorageElement(name="near", url="file:///near")
MAKES = flow(
    JobActivity(
        name="make", command="x", files={"out": "o"}, publish={"out": PublicationTemplate(logical="/store/out")}
    )
)
REF = FileRef(sha256=A, bytes=3, name="out", logical="/store/out")


def file(name: str, sha256: str = A) -> LogicalFile:
    return LogicalFile(name=name, sha256=sha256, bytes=3, replicas=(Replica(element="near"),))


async def added(server: ServerProcess, name: str, sha256: str) -> bool:
    try:
        await server.do(server.domain.add_data(file(name, sha256), who="me"))
    except Conflict:
        return False
    return True


def test_a_file_that_one_server_was_told_of_is_located_by_another_at_once() -> None:  # PJ-7
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))
        await one.do(one.domain.add_data(file("/store/a"), who="me"))
        asked = LocateRequest(pilot=PilotId("p"), names=["/store/a"])
        answer = await two.do(two.domain.locate(asked))
        assert [each.url for each in answer.files["/store/a"]] == ["file:///near/store/a"]

    run(story)


def test_an_element_that_changed_is_known_to_the_others_after_two_beats() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))
        await one.do(one.domain.add_data(file("/store/a"), who="me"))
        await two.do(two.domain.places("/store/a"))
        other = StorageElement(name="near", url="file:///moved")
        await one.do(one.domain.put_element(other, who="me", replace=True))
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        assert (await two.do(two.domain.places("/store/a")))[0].url == "file:///moved/store/a"
        await one.do(one.domain.remove_element("near", who="me"))
        await asyncio.sleep(3 * TERMS.beat_ms / 1000)
        assert two.runtime.catalogue.elements.known() == []

    run(story)


def test_of_two_contents_under_one_name_on_two_servers_one_wins() -> None:  # PJ-7
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))
        for number in range(5):
            name = f"/store/{number}"
            won = await asyncio.gather(added(one, name, A), added(two, name, "b" * 64))
            assert sorted(won) == [False, True]

    run(story)


def test_of_two_names_at_one_place_on_two_servers_one_wins() -> None:  # PJ-7
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))

        async def lies(server: ServerProcess, name: str, sha256: str, path: str) -> bool:
            lying = LogicalFile(name=name, sha256=sha256, bytes=3, replicas=(Replica(element="near", path=path),))
            try:
                await server.do(server.domain.add_data(lying, who="me"))
            except Conflict:
                return False
            return True

        for turn in range(5):
            path = f"place/{turn}"
            won = await asyncio.gather(lies(one, f"/a/{turn}", A, path), lies(two, f"/b/{turn}", "b" * 64, path))
            assert sorted(won) == [False, True]
        assert len(await one.do(one.domain.data(every=True))) == 5, "of those that were refused nothing is left"

    run(story)


def test_a_pilot_asks_one_server_for_the_place_of_a_file_and_another_takes_its_report() -> None:  # FM-6
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))
        await two.do(two.domain.deploy(MAKES))
        case = CaseId((await two.do(two.domain.start("f", {}, who="me"))).id)
        pilot = pilot_of(cluster, "two")
        await pilot.sync(want=1)
        placing = OutputPlacement(publication=Publication(logical="/store/out"), file=REF)
        asked = PlaceRequest(pilot=pilot.name, job=pilot.held[0].job, files={"out": placing})
        answer = await one.do(one.domain.place(asked))
        assert answer.files["out"].url == "file:///near/store/out"
        await pilot.sync(make=Outcome(files={"out": REF}))

        async def over() -> bool:
            return (await two.do(two.domain.case(case))).status == "completed"

        await cluster.until(over, "the case to end")
        assert (await one.do(one.domain.datum("/store/out"))).replicas == (Replica(element="near"),)

    run(story)


def test_a_server_that_dies_when_it_has_told_the_catalogue_leaves_the_case_to_another() -> None:  # FM-6
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        await one.do(one.domain.put_element(NEAR, who="me"))
        await two.do(two.domain.deploy(MAKES))
        case = CaseId((await two.do(two.domain.start("f", {}, who="me"))).id)
        assert await cluster.home(case) == "two"
        pilot = pilot_of(cluster, "two", "one")
        await pilot.sync(want=1)
        placing = OutputPlacement(publication=Publication(logical="/store/out"), file=REF)
        asked = PlaceRequest(pilot=pilot.name, job=pilot.held[0].job, files={"out": placing})
        assert (await two.do(two.domain.place(asked))).files  # though the element was added on the other a moment ago
        told = asyncio.Event()

        async def hears(file: LogicalFile) -> None:
            told.set()
            await asyncio.Event().wait()

        two.runtime.data_sets.added = hears  # type: ignore[method-assign]  # it hangs in there
        reporting = asyncio.create_task(pilot.sync(make=Outcome(files={"out": REF})))
        await told.wait()
        two.kill()
        await asyncio.gather(reporting, return_exceptions=True)

        async def reported() -> bool:
            try:
                await pilot.sync(make=Outcome(files={"out": REF}))
            except Unreachable:
                return False
            return (await one.do(one.domain.case(case))).status == "completed"

        await cluster.until(reported, "the case to end on the other server")
        known = await one.do(one.domain.datum("/store/out"))
        assert (known.replicas, known.writing) == ((Replica(element="near"),), {})

    run(story)
