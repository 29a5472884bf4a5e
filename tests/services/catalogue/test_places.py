"""A place is one file's: no two names are given the same one, and what is nobody's is told from what is somebody's."""

import asyncio

import msgspec
import pytest

from mendflow.core.model.data import NameRule, NameRules, Replica
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import PublicationTemplate
from mendflow.services.api.domain import Domain
from mendflow.services.data.catalogue.holds import PLACE_KIND, PlaceDocument, StoragePlace
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Put
from tests.services.catalogue.test_catalogue import WHO, A, B, Making, element, file, over
from tests.services.conftest import HandPilot

FLAT = NameRules(to_physical=(NameRule(protocol="p", match="/store/(.*)/(.*)", result="flat/$2"),))
HERE = Replica(element="here", path="store/out")


@pytest.fixture
async def making(domain: Domain, pilot: HandPilot) -> Making:
    await domain.put_element(element("here", sites=("S",)), who=WHO)
    return await Making(domain, pilot).begin()


async def add(domain: Domain, name: str, sha256: str = A, project: str = "") -> None:
    await domain.add_data(msgspec.structs.replace(file(name, sha256), replicas=(HERE,)), who=WHO, project=project)


def publishes(name: str, logical: str) -> Flow:
    job = JobActivity(
        name="make", command="x", files={"out": "o"}, publish={"out": PublicationTemplate(logical=logical)}
    )
    return Flow(name=FlowName(name), body=job)


async def test_a_place_that_another_file_has_is_not_given_out(making: Making) -> None:  # PJ-7
    await add(making.domain, "/logical/a")
    assert "where /logical/a lies already" in (await making.place(B)).wrong["out"]
    assert [each.name for each in await making.domain.data(every=True)] == ["/logical/a"], "no name is kept for it"


async def test_rules_that_make_one_place_of_two_names_lose_no_file(domain: Domain, pilot: HandPilot) -> None:
    await domain.put_element(element("flat", rules=FLAT, protocol="p"), who=WHO)
    one = await Making(domain, pilot).begin(publishes("one", "/store/a/f"))
    two = await Making(domain, HandPilot(domain, "p-2")).begin(publishes("two", "/store/b/f"))
    answers = await asyncio.gather(
        one.place(A, logical="/store/a/f", data_set=""), two.place(B, logical="/store/b/f", data_set="")
    )
    assert sorted(len(each.files) for each in answers) == [0, 1]
    (wrong,) = [each.wrong["out"] for each in answers if each.wrong]
    assert "flat/f on flat" in wrong and "mend the element's rules" in wrong


async def test_a_place_is_free_when_its_file_is_forgotten(making: Making, server: Server) -> None:
    await add(making.domain, "/logical/a")
    await making.domain.remove_data("/logical/a", who=WHO)
    store = server.runtime.catalogue.files._store
    assert [each async for each in store.scan(PLACE_KIND)] == []
    answer = await making.place(B)
    assert answer.files and not answer.replaces, "what was the file lies there, and is not a job's to replace"
    assert await making.end(B) == "completed"
    with pytest.raises(Conflict, match="where /store/out lies already"):
        await add(making.domain, "/logical/a")


async def test_a_place_is_free_when_a_replica_is_forgotten(making: Making) -> None:
    await add(making.domain, "/logical/a")
    await making.domain.add_replica("/logical/a", Replica(element="here", path="elsewhere"), who=WHO)
    await making.domain.remove_replica("/logical/a", HERE, who=WHO)
    assert (await making.place(B)).files


async def test_people_may_give_a_second_name_to_what_is_the_same(making: Making) -> None:
    await add(making.domain, "/logical/a")
    await add(making.domain, "/logical/b")
    with pytest.raises(Conflict, match="lies already"):
        await add(making.domain, "/logical/c", B)
    assert [each.name for each in await making.domain.data(every=True)] == ["/logical/a", "/logical/b"]
    assert (await making.place(A)).wrong, "a job may yet come with other content"


async def test_a_place_that_was_given_to_a_job_that_is_over_is_free(making: Making) -> None:
    await making.place(A)
    with pytest.raises(Conflict, match="where /store/out lies already"):
        await add(making.domain, "/logical/a", B)
    await making.pilot.exchange({"make": Outcome(files={})})
    await over(making.domain, making.case)
    await add(making.domain, "/logical/a", B)


async def test_a_job_that_tries_again_may_replace_what_it_left_and_nothing_else(making: Making) -> None:
    assert (await making.place(A)).replaces == {}
    assert (await making.place(B)).replaces == {"out": (A,)}
    assert (await making.place(B)).replaces == {"out": (A,)}, "also when it asks twice"
    assert (await making.place(A)).replaces == {"out": (B,)}
    assert await making.end(A) == "completed"
    await making.domain.remove_data("/store/out", who=WHO)
    other = await Making(making.domain, HandPilot(making.domain, "p-2")).begin()
    assert (await other.place(B)).replaces == {}, "that was published"


async def test_the_places_of_files_that_are_older_than_places_are_known(making: Making, server: Server) -> None:
    store = server.runtime.catalogue.files._store
    old = msgspec.structs.replace(file("/logical/a"), replicas=(HERE,))
    await store.write([Put("file", old.name, msgspec.json.encode(old), 0)])
    assert "where /logical/a lies already" in (await making.place(B)).wrong["out"]


async def test_what_a_kill_left_between_a_file_and_its_place_holds_nothing_up(making: Making, server: Server) -> None:
    store = server.runtime.catalogue.files._store
    spot = StoragePlace("here", "store/out")
    ghost = PlaceDocument(element=spot.element, path=spot.path, name="/ghost")
    await store.write([Put(PLACE_KIND, spot.id, msgspec.json.encode(ghost), 0)])
    assert (await making.place(A)).files
    await making.pilot.exchange({})
    found = await store.get(PLACE_KIND, spot.id)
    assert found is not None and msgspec.json.decode(found.body, type=PlaceDocument).name == "/store/out"


async def test_a_job_whose_place_went_to_another_meanwhile_publishes_nothing(making: Making, server: Server) -> None:
    await making.place(A)
    store = server.runtime.catalogue.files._store
    spot = StoragePlace("here", "store/out")
    found = await store.get(PLACE_KIND, spot.id)
    assert found is not None
    other = msgspec.structs.replace(file("/logical/a", B), replicas=(HERE,))
    hold = PlaceDocument(element=spot.element, path=spot.path, name=other.name)
    await store.write([Put("file", other.name, msgspec.json.encode(other), 0)])
    await store.write([Put(PLACE_KIND, spot.id, msgspec.json.encode(hold), found.version)])
    assert await making.end(A) == "failed"
    assert [each.name for each in await making.domain.data()] == ["/logical/a"]


async def test_what_one_element_did_not_take_goes_to_the_next_and_is_known_there(making: Making) -> None:  # FM-6
    await making.domain.put_element(element("all"), who=WHO)
    assert (await making.place()).files["out"].element.name == "here"
    assert (await making.place(avoid=("here",))).files["out"].element.name == "all"
    assert "has nowhere to go" in (await making.place(avoid=("here", "all"))).wrong["out"]
    assert await making.end() == "completed"
    assert (await making.domain.datum("/store/out")).replicas == (Replica(element="all"),)


async def test_no_file_is_sent_to_what_cannot_be_written(making: Making, server: Server) -> None:
    """Also if it was added when that was not looked at."""
    old = element("a-web", "http://host/data", sites=("S",))
    await making.domain.put_element(old, who=WHO, replace=True)
    store = server.runtime.catalogue.files._store
    found = await store.get("storage", "a-web")
    assert found is not None
    await store.write([Put("storage", "a-web", msgspec.json.encode(old), found.version)])
    await server.runtime.catalogue.elements.start()
    assert (await making.domain.element("a-web")) == old
    assert (await making.place(site="S")).files["out"].element.name == "here"


async def test_nobody_gets_the_place_of_another_project_by_knowing_what_lies_there(making: Making) -> None:  # SE-1
    """With a digest and a size alone, a file of one's own at that place would be read by pilots."""
    await add(making.domain, "/logical/a", project="red")
    refusals = []
    for digest in (A, B):
        with pytest.raises(Conflict) as refused:
            await add(making.domain, "/logical/b", digest, project="blue")
        refusals.append(refused.value.message)
    assert len(set(refusals)) == 1, "whether the digest is right makes no difference"
    assert "where another file lies already" in refusals[0] and "/logical/a" not in refusals[0]
    assert [each.name for each in await making.domain.data(every=True)] == ["/logical/a"]
    await add(making.domain, "/logical/c", project="red")
    assert "where another file lies already" in (await making.place(B)).wrong["out"]


async def test_a_logical_file_of_another_project_is_not_there_in_the_same_words(
    making: Making, server: Server
) -> None:  # SE-1
    await add(making.domain, "/logical/a", project="red")
    told = []
    for name in ("/logical/a", "/logical/b"):
        with pytest.raises(NotFound) as refused:
            await server.runtime.catalogue.resolve(f"lfn:{name}", "blue")
        told.append(refused.value.message.replace(name, "NAME"))
    assert told[0] == told[1]
    assert (await server.runtime.catalogue.resolve("lfn:/logical/a", "red")).sha256 == A
