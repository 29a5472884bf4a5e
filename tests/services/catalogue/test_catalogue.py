"""Logical files and storage elements: one content a name, places that stay on their elements, and jobs that publish."""

import asyncio

import pytest
from msgspec.structs import replace

from mendflow.core.data.paths import OutsideElement
from mendflow.core.model.data import (
    LocateRequest,
    LogicalFile,
    NameRule,
    NameRules,
    OutputPlacement,
    PlaceAnswer,
    PlaceRequest,
    Publication,
    Replica,
    StorageElement,
)
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName, JobId, PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import CaseView
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.conftest import HandPilot

A, B = "a" * 64, "b" * 64
WHO = "somebody"


def element(name: str, url: str = "", **more: object) -> StorageElement:
    return StorageElement(name=name, url=url or f"file:///{name}", **more)  # type: ignore[arg-type]  # fields of the model


def file(name: str = "/store/a", sha256: str = A, *on: str) -> LogicalFile:
    replicas = tuple(Replica(element=each) for each in on or ("here",))
    return LogicalFile(name=name, sha256=sha256, bytes=3, replicas=replicas)


def ref(sha256: str = A, logical: str = "/store/out") -> FileRef:
    return FileRef(sha256=sha256, bytes=3, name="out", logical=logical)


@pytest.fixture
async def data(domain: Domain) -> Domain:
    await domain.put_element(element("here", sites=("S",)), who=WHO)
    return domain


# What people do


async def test_a_name_never_gets_another_content(data: Domain) -> None:  # PJ-7
    await data.add_data(file(), who=WHO)
    with pytest.raises(Conflict, match="a name never gets another content"):
        await data.add_data(file(sha256=B), who=WHO)
    assert (await data.datum("lfn:/store/a")).sha256 == A


async def test_adding_a_file_again_adds_its_replicas(data: Domain) -> None:
    await data.put_element(element("there"), who=WHO)
    first = await data.add_data(file(), who=WHO)
    again = await data.add_data(file("/store/a", A, "there", "here"), who=WHO)
    assert [each.element for each in again.replicas] == ["here", "there"]
    assert again.added_at == first.added_at > 0


async def test_two_who_add_replicas_at_once_both_have_them_added(data: Domain) -> None:
    names = [f"e{number}" for number in range(6)]
    for name in names:
        await data.put_element(element(name), who=WHO)
    await data.add_data(file(), who=WHO)
    await asyncio.gather(*(data.add_replica("/store/a", Replica(element=name), who=WHO) for name in names))
    assert {each.element for each in (await data.datum("/store/a")).replicas} == {"here", *names}


async def test_the_last_replica_cannot_be_forgotten_but_the_file_can(data: Domain) -> None:
    await data.add_data(file(), who=WHO)
    with pytest.raises(Conflict, match="remove the file instead"):
        await data.remove_replica("/store/a", Replica(element="here"), who=WHO)
    with pytest.raises(NotFound):
        await data.remove_replica("/store/a", Replica(element="there"), who=WHO)
    await data.remove_data("/store/a", who=WHO)
    with pytest.raises(NotFound):
        await data.datum("/store/a")


@pytest.mark.parametrize(
    "given",
    [
        file("store/a"),
        file("/store/../a"),
        file("lfn:/store/a"),
        file(sha256="A" * 64),
        file("/store/a", A, "nowhere"),
        replace(file(), replicas=()),
        replace(file(), replicas=(Replica(element="here", path="../x"),)),
        replace(file(), replicas=(Replica(element="here", path="/etc/passwd"),)),
        replace(file(), bytes=-1),
        replace(file(), meta={"a": "x\0"}),
    ],
)
async def test_what_cannot_be_a_file_is_refused(data: Domain, given: LogicalFile) -> None:
    with pytest.raises((InvalidRequest, NotFound, OutsideElement)):
        await data.add_data(given, who=WHO)
    assert await data.data(every=True) == []


async def test_files_are_listed_by_name_page_by_page(data: Domain) -> None:
    for name in ("/a/1", "/a/2", "/b/1", "/a/3", "/ab"):
        await data.add_data(replace(file(name), data_set="evens" if name.endswith("2") else ""), who=WHO)
    page = await data.data(prefix="/a/", limit=2)
    assert [each.name for each in page] == ["/a/1", "/a/2"]
    assert [each.name for each in await data.data(prefix="/a/", limit=2, after="/a/2")] == ["/a/3"]
    assert [each.name for each in await data.data(data_set="evens")] == ["/a/2"]
    assert len(await data.data()) == 5


async def test_an_element_is_changed_only_if_that_is_said(data: Domain) -> None:
    assert await data.put_element(element("here", sites=("S",)), who=WHO) == await data.element("here")
    with pytest.raises(Conflict, match="--replace changes them"):
        await data.put_element(element("here", tries=7), who=WHO)
    assert (await data.put_element(element("here", tries=7), who=WHO, replace=True)).tries == 7
    assert [each.name for each in await data.elements()] == ["here"]
    await data.remove_element("here", who=WHO)
    with pytest.raises(NotFound):
        await data.element("here")


# Where files are read


async def located(domain: Domain, *names: str, site: str = "", storage: str = "") -> dict[str, list[str]]:
    asked = LocateRequest(pilot=PilotId("p"), names=list(names), site=site, storage=storage)
    answer = await domain.locate(asked)
    return {name: [each.url for each in found] for name, found in answer.files.items()} | {
        name: [f"wrong: {why}"] for name, why in answer.wrong.items()
    }


async def test_a_pilot_that_asks_for_nothing_is_told_what_its_own_element_is(data: Domain) -> None:  # PJ-2
    await data.put_element(element("own"), who=WHO)
    known, unknown, none = [
        await data.locate(LocateRequest(pilot=PilotId("p"), names=[], storage=name)) for name in ("own", "other", "")
    ]
    assert known.near is not None and known.near.name == "own"
    assert unknown.near is None and none.near is None


async def test_a_pilot_is_told_the_nearest_replica_first(data: Domain) -> None:  # PJ-7
    for each in (element("far", sites=("T",)), element("all"), element("own", sites=("T",))):
        await data.put_element(each, who=WHO)
    await data.add_data(file("/store/a", A, "far", "all", "here", "own"), who=WHO)
    found = await located(data, "/store/a", site="S", storage="own")
    assert [url.split("/")[3] for url in found["/store/a"]] == ["own", "here", "all", "far"]
    assert (await data.places("lfn:/store/a", site="T"))[0].url == "file:///far/store/a"


async def test_what_can_be_read_nowhere_is_told_with_its_reason(data: Domain) -> None:
    await data.put_element(element("gone"), who=WHO)
    await data.add_data(file("/store/a", A, "gone"), who=WHO)
    await data.remove_element("gone", who=WHO)
    found = await located(data, "/store/a", "/store/none")
    assert "no longer exists" in found["/store/a"][0]
    assert "does not know it" in found["/store/none"][0]
    with pytest.raises(NotFound, match="no longer exists"):
        await data.places("/store/a")


@pytest.mark.parametrize("name", ["", "x", "/../a", "/" + "x" * 100_000, "/a\0b", "lfn:/store/a"])
async def test_what_is_no_name_is_nowhere(data: Domain, name: str) -> None:  # PJ-7
    assert "cannot be read anywhere" in (await located(data, name))[name][0]


async def test_rules_that_lead_out_of_their_element_give_no_place(data: Domain) -> None:  # PJ-7
    rules = NameRules(to_physical=(NameRule(protocol="p", match="/store/(.*)", result="/etc/$1"),))
    await data.add_data(file(), who=WHO)
    await data.put_element(element("here", rules=rules, protocol="p"), who=WHO, replace=True)
    assert "is not below file:///here" in (await located(data, "/store/a"))["/store/a"][0]


# Jobs that publish

PUBLISHED = PublicationTemplate(logical="lfn:/store/out", data_set="outs")
FLOW = Flow(
    name=FlowName("make"),
    body=JobActivity(name="make", command="x", files={"out": "out.dat"}, publish={"out": PUBLISHED}),
    outputs={"out": "${{ jobs.make.files.out }}"},
)


async def over(domain: Domain, case: str) -> CaseView:
    """The case, when it has ended."""
    async for _ in domain.events(case):
        pass
    return await domain.case(case)


class Making:
    """A case whose job runs with a pilot and is about to publish its file."""

    def __init__(self, domain: Domain, pilot: HandPilot) -> None:
        self.domain, self.pilot = domain, pilot
        self.case = ""
        self.job = JobId("")

    async def begin(self, flow: Flow = FLOW) -> "Making":
        await self.domain.deploy(flow)
        self.case = (await self.domain.start(flow.name, {}, who=WHO)).id
        while not (mine := [each for each in self.pilot.held if each.job.startswith(self.case)]):
            await self.pilot.sync(want=1, wait_ms=100)
        self.job = mine[0].job
        return self

    async def place(
        self, sha256: str = A, *, site: str = "S", pilot: str = "", avoid: tuple[str, ...] = (), **more: str
    ) -> PlaceAnswer:
        publication = Publication(logical=more.get("logical", "/store/out"), data_set=more.get("data_set", "outs"))
        placing = OutputPlacement(publication=publication, file=ref(sha256, ""))
        return await self.domain.place(
            PlaceRequest(
                pilot=PilotId(pilot) if pilot else self.pilot.name,
                job=self.job,
                files={more.get("output", "out"): placing},
                site=site,
                storage=more.get("storage", ""),
                avoid=avoid,
            )
        )

    async def end(self, sha256: str = A) -> str:
        await self.pilot.exchange({"make": Outcome(files={"out": ref(sha256)})})
        return (await over(self.domain, self.case)).status


@pytest.fixture
async def making(data: Domain, pilot: HandPilot) -> Making:
    return await Making(data, pilot).begin()


async def test_a_published_file_is_in_the_catalogue_before_its_case_hears_of_it(making: Making) -> None:  # FM-6
    answer = await making.place()
    assert answer.files["out"].url == "file:///here/store/out"
    assert await making.domain.data() == []  # nobody can read it yet
    assert await making.end() == "completed"
    known = await making.domain.datum("/store/out")
    assert (known.sha256, known.data_set, known.made_by) == (A, "outs", making.job)
    assert (known.replicas, known.writing) == ((Replica(element="here"),), {})
    view = await making.domain.case(making.case)
    assert view.outputs["out"]["logical"] == "/store/out"


async def test_what_was_published_twice_is_published_once(making: Making, server: Server) -> None:
    await making.place()
    outcome = Outcome(files={"out": ref()})
    first = await server.runtime.catalogue.published(making.job, outcome)
    known = await making.domain.datum("/store/out")
    assert await server.runtime.catalogue.published(making.job, outcome) == first == outcome
    assert await making.domain.datum("/store/out") == known


async def test_an_outcome_publishes_nothing_that_its_job_asked_no_place_for(making: Making) -> None:  # PJ-7
    assert await making.end() == "failed"
    view = await making.domain.case(making.case)
    assert view.fault is not None and view.fault.name == "notPublished"
    assert "asked no place" in view.fault.message
    assert await making.domain.data(every=True) == []


async def test_a_failed_job_publishes_nothing(making: Making, server: Server) -> None:
    await making.place()
    await making.domain.cancel(making.case, who=WHO)
    assert await making.domain.data() == []
    with pytest.raises(NotFound, match="lies nowhere yet"):
        await server.runtime.catalogue.resolve("/store/out")


async def test_the_second_of_two_jobs_is_told_before_it_writes(making: Making, data: Domain) -> None:
    other = await Making(data, HandPilot(data, "p-2")).begin()
    await making.place(A)
    assert "a name never gets another content" in (await other.place(B)).wrong["out"]
    assert (await other.place(A)).files  # the same content is no harm


async def test_a_job_that_tries_again_may_come_with_other_content(making: Making) -> None:
    await making.place(A)
    assert (await making.place(B)).files
    assert await making.end(B) == "completed"
    assert (await making.domain.datum("/store/out")).sha256 == B


async def test_a_name_that_was_kept_for_a_job_that_is_over_is_free(making: Making, data: Domain) -> None:
    other = await Making(data, HandPilot(data, "p-2")).begin()
    await making.place(A)
    await making.pilot.exchange({"make": Outcome(files={})})  # its file was lost, and it ended
    await over(data, making.case)
    assert (await other.place(B)).files
    assert await other.end(B) == "completed"


async def test_only_the_pilot_that_runs_a_job_places_its_files(making: Making) -> None:
    with pytest.raises(Forbidden):
        await making.place(pilot="p-9")
    with pytest.raises(Forbidden):
        await making.place(output="other")
    with pytest.raises(Forbidden):
        await making.place(logical="/store/other")
    assert "SHA-256" in (await making.place("../../etc/passwd")).wrong["out"]
    making.job = JobId("nobody/1")
    with pytest.raises(NotFound):
        await making.place()


async def test_a_file_goes_near_its_pilot_and_never_where_only_is_read(making: Making, data: Domain) -> None:
    await data.put_element(element("tape", sites=("S",), read_only=True), who=WHO)
    await data.put_element(element("all"), who=WHO)
    assert (await making.place(site="S")).files["out"].element.name == "here"
    assert (await making.place(site="T")).files["out"].element.name == "all"
    assert (await making.place(site="T", storage="here")).files["out"].element.name == "here"
    assert (await making.place(site="T", storage="tape")).files["out"].element.name == "all"
    await data.remove_element("all", who=WHO)
    assert "has nowhere to go" in (await making.place(site="T")).wrong["out"]


async def test_a_crash_between_the_catalogue_and_the_case_publishes_once(
    making: Making, server: Server
) -> None:  # FM-6
    await making.place()
    told: list[LogicalFile] = []

    async def heard(file: LogicalFile) -> None:
        told.append(file)
        if len(told) == 1:
            raise RuntimeError("the process died here")

    server.runtime.data_sets.added = heard  # type: ignore[method-assign]  # it dies in there
    with pytest.raises(RuntimeError):
        await making.pilot.exchange({"make": Outcome(files={"out": ref()})})
    while server.health().status != "ok":
        await server.clock.sleep(20)
    assert (await making.domain.datum("/store/out")).replicas  # that much had happened
    await making.pilot.exchange({"make": Outcome(files={"out": ref()})})  # as pilots do until there is a verdict
    assert (await over(making.domain, making.case)).status == "completed"
    assert (await making.domain.datum("/store/out")).replicas == (Replica(element="here"),)


# Flows that read


async def test_a_job_reads_a_logical_file_by_its_content(data: Domain, pilot: HandPilot) -> None:  # FM-6, PJ-7
    await data.add_data(file(), who=WHO)
    flow = Flow(name=FlowName("read"), body=JobActivity(name="read", command="x", inputs={"in": "lfn:/store/a"}))
    await data.deploy(flow)
    case = await data.start("read", {}, who=WHO)
    while not pilot.held:
        await pilot.sync(want=1, wait_ms=100)
    assert pilot.held[0].spec.inputs == {"in": FileRef(sha256=A, bytes=3, name="a", logical="/store/a")}
    await pilot.exchange({"read": Outcome()})
    assert case.id


async def test_a_logical_file_that_is_not_there_is_a_fault_of_the_data(data: Domain) -> None:  # FM-6
    flow = Flow(name=FlowName("read"), body=JobActivity(name="read", command="x", inputs={"in": "lfn:/store/none"}))
    await data.deploy(flow)
    case = await data.start("read", {}, who=WHO)
    view = await over(data, case.id)
    assert view.fault is not None and view.fault.category == "data"
    assert "the catalogue has no file" in view.fault.message


async def test_a_job_is_taken_over_while_what_it_published_is_there(making: Making, data: Domain) -> None:
    await making.place()
    assert await making.end() == "completed"
    again = await data.rerun(making.case, who=WHO)
    await over(data, again.id)
    assert [item.state for item in await data.items(again.id)] == ["cached"]
    await data.remove_data("/store/out", who=WHO)
    third = await data.rerun(making.case, who=WHO)
    [item] = await data.items(third.id)
    assert item.state != "cached"
    assert item.job and "no longer in the catalogue" in (await data.job(item.job)).cache_reason
