"""A case refers to files that came to it. One that an author has made up, out of a digest that it has learned, opens
nothing: no job of the case reads it, and nobody by naming the case. SE-2"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import PILOT, Principal
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.sync import AttemptReport
from mendflow.core.model.values import FileRef, Value
from mendflow.server.runner import HttpServer
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import sync_request
from tests.server.people import PEOPLE, KnownPeople
from tests.server.test_files_of_cases import CONTENT, DIGEST, Reading, reading_flow

MADE_UP = f'{{"$file": "{DIGEST}", "bytes": {len(CONTENT)}, "name": "a.txt"}}'
LITERAL: dict[str, Value] = {"$file": DIGEST, "bytes": len(CONTENT), "name": "a.txt"}
REFUSED = "no logical file|must begin with"
OTHERS = [
    Principal("pilot", frozenset({PILOT})),
    Principal("bella", frozenset({"user"}), {"blue": "author"}),
]


def flow_with(given: Value, name: str = "thief") -> Flow:
    """A job with this as its input, and a case that gives it back."""
    job = model.JobActivity(name="work", command="cat a.txt", inputs={"a.txt": given})
    return Flow(name=FlowName(name), body=job, inputs={"digest": model.Input(default="")}, outputs={"loot": given})


def rebuilding_flow(name: str) -> Flow:
    """It waits for a message; then its jobs read maps that are made of what the case was given and of the message."""
    jobs = []
    for label, given in (("first", "inputs.a"), ("second", "news")):
        rebuilt = f'${{{{ {{"$file": {given}["$file"], "bytes": {given}.bytes, "name": "a.txt"}} }}}}'
        jobs.append(model.JobActivity(name=label, command="cat a.txt", inputs={"a.txt": rebuilt}))
    waiting = model.Receive(name="waiting", channel="news", variable="news")
    body = model.Sequence(name="all", body=(waiting, model.Parallel(name="both", branches=tuple(jobs))))
    return Flow(name=FlowName(name), body=body, inputs={"a": model.Input()})


async def catalogued(domain: DomainUnderTest, name: str, sha256: str, project: str) -> None:
    """Somebody of the project says that this is there."""
    await domain.put_element(StorageElement(name="store", url="file:///data"), who="root")
    given = LogicalFile(name=name, sha256=sha256, bytes=len(CONTENT), replicas=(Replica(element="store"),))
    await domain.add_data(given, who="somebody", project=project)


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople([*PEOPLE.values(), *OTHERS]))


@pytest.fixture
def reading(served: HttpServer, http: aiohttp.ClientSession) -> Reading:
    return Reading(served, http)


@pytest.fixture
async def boris(served: HttpServer, tmp_path: Path) -> AsyncIterator[Client]:
    """An author of another project than the one that the file is in."""
    (tmp_path / "a.txt").write_bytes(CONTENT)
    async with Client(served.url, token="ann", project="red") as ann:
        await ann.deploy(reading_flow("read"))
        await ann.start("read", {"a": (await ann.upload(tmp_path / "a.txt")).as_value()})
    async with Client(served.url, token="pilot") as pilot:
        await pilot.sync(sync_request(1, want=1, wait_ms=5000))  # so that no job of red is in the queue
    async with Client(served.url, token="boris", project="blue") as client:
        yield client


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        (f"${{{{ {MADE_UP} }}}}", {}),
        ({"$file": "${{ inputs.digest }}", "bytes": len(CONTENT), "name": "a.txt"}, {"digest": DIGEST}),
        (f'${{{{ {{"$file": "{DIGEST[:30]}" + "{DIGEST[30:]}", "bytes": 30, "name": "a.txt"}} }}}}', {}),
    ],
    ids=["expression", "input", "parts"],
)
async def test_an_expression_makes_up_no_file(
    given: Value, inputs: dict[str, Value], boris: Client, reading: Reading
) -> None:
    await boris.deploy(flow_with(given))
    case = (await boris.start("thief", inputs)).id
    async with asyncio.timeout(20):
        ended = await boris.wait(case)
    assert ended.fault is not None and "did not come to this case" in ended.fault.message, ended
    assert (await reading("boris", of=case))[0] == 404
    assert (await reading("root")) == (200, CONTENT)


async def test_what_a_case_has_made_up_is_given_to_no_other(boris: Client, reading: Reading) -> None:
    nothing, outputs = model.Empty(name="nothing"), {"loot": f"${{{{ {MADE_UP} }}}}"}
    await boris.deploy(Flow(name=FlowName("teller"), body=nothing, outputs=outputs))
    await boris.deploy(reading_flow("own"))
    case = (await boris.start("teller", {})).id
    async with asyncio.timeout(20):
        assert (await boris.wait(case)).outputs == {"loot": LITERAL}
    assert (await reading("boris", of=case))[0] == 404
    assert not await boris.has(DIGEST)
    with pytest.raises(NotFound, match="no stored file"):
        await boris.start("own", {"a": LITERAL})


async def test_a_called_flow_is_no_way_around(boris: Client, reading: Reading) -> None:
    call = model.Call(name="inner", flow=FlowName("read-given"), inputs={"a": f"${{{{ {MADE_UP} }}}}", "note": ""})
    await boris.deploy(reading_flow("read-given"))
    outputs: dict[str, Value] = {"loot": f"${{{{ {MADE_UP} }}}}"}
    await boris.deploy(Flow(name=FlowName("outer"), body=call, outputs=outputs))
    case = (await boris.start("outer", {})).id
    async with asyncio.timeout(20):
        assert (await boris.wait(case)).status == "failed"
    assert (await reading("boris", of=case))[0] == 404


async def test_neither_a_flow_nor_a_schedule_names_what_its_author_may_not_read(boris: Client) -> None:
    with pytest.raises(NotFound, match="no stored file"):
        await boris.deploy(flow_with(LITERAL))
    await boris.deploy(reading_flow("own"))
    with pytest.raises(NotFound, match="no stored file"):
        await boris.put_schedule(ScheduleSpec(name="nightly", flow="own", cron="0 3 * * *", inputs={"a": LITERAL}))
    made_up = ScheduleSpec(name="nightly", flow="own", cron="0 3 * * *", inputs={"a": f"${{{{ {MADE_UP} }}}}"})
    await boris.put_schedule(made_up)
    with pytest.raises(InvalidRequest, match="nobody has given"):
        await boris.trigger_schedule("nightly")


@pytest.mark.parametrize("note", [{"sha256": DIGEST}, {"$file": DIGEST}, {"$spilled": DIGEST, "bytes": -1}])
async def test_a_map_with_the_digest_in_a_flow_vouches_for_nothing(
    note: dict[str, Value], boris: Client, reading: Reading
) -> None:
    await boris.deploy(reading_flow("thief"))
    flow = Flow(
        name=FlowName("launder"),
        body=model.JobActivity(name="work", command="true"),
        inputs={"note": model.Input(type="map", default=note)},
    )
    try:
        await boris.deploy(flow)
    except RequestError:
        pass  # that is as good
    with pytest.raises(NotFound, match="no stored file"):
        await boris.start("thief", {"a": LITERAL})


async def test_what_came_to_a_case_is_handed_on(
    served: HttpServer, domain: DomainUnderTest, boris: Client, reading: Reading, tmp_path: Path
) -> None:
    """Inputs, outputs of jobs, and files that the flow names, also after the server has begun anew."""
    (tmp_path / "own.txt").write_bytes(b"own")
    own = await boris.upload(tmp_path / "own.txt")
    first = model.JobActivity(name="first", command="x", inputs={"a": "${{ inputs.a }}"}, files={"b": "b.txt"})
    second = model.JobActivity(
        name="second",
        command="y",
        inputs={"b": "${{ jobs.first.files.b }}", "a": "${{ inputs.a }}", "c": own.as_value()},
    )
    body = model.Sequence(name="both", body=(first, second))
    outputs: dict[str, Value] = {"b": "${{ jobs.first.files.b }}"}
    await boris.deploy(Flow(name=FlowName("chain"), body=body, inputs={"a": model.Input()}, outputs=outputs))
    case = (await boris.start("chain", {"a": own.as_value()})).id
    made = FileRef(sha256=hashlib.sha256(b"made").hexdigest(), bytes=4, name="b.txt")
    async with Client(served.url, token="pilot") as pilot:
        [job] = (await pilot.sync(sync_request(2, want=1, wait_ms=5000))).jobs
        report = AttemptReport(job.job, job.fence, Outcome(files={"b": made}))
        answer = await pilot.sync(sync_request(3, want=1, wait_ms=5000, reports=(report,)))
        jobs = answer.jobs or (await pilot.sync(sync_request(4, want=1, wait_ms=5000))).jobs
        assert [each.job.rpartition("/")[2] for each in jobs] == ["2"]
        await pilot.sync(sync_request(5, reports=(AttemptReport(jobs[0].job, jobs[0].fence, Outcome()),)))
    async with asyncio.timeout(20):
        assert (await boris.wait(case)).status == "completed"
    assert await reading("boris", of=case, method="HEAD", digest=own.sha256) == (200, b"")
    origins = domain.file_origins
    assert not await origins.foreign(case, {made.sha256, own.sha256})
    assert await origins.foreign(case, {DIGEST}) == {DIGEST}


async def test_a_colleague_deploys_a_flow_again_with_the_files_that_it_names(
    boris: Client, served: HttpServer, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_bytes(b"own")
    flow = flow_with((await boris.upload(tmp_path / "own.txt")).as_value(), "shared")
    await boris.deploy(flow)
    async with Client(served.url, token="bella", project="blue") as bella:
        await bella.deploy(replace(flow, name=FlowName("copied")))
    async with Client(served.url, token="ann", project="red") as ann:
        with pytest.raises(NotFound, match="no stored file"):
            await ann.deploy(replace(flow, name=FlowName("stolen")))


@pytest.mark.parametrize("name", ["whatever", "/red/a", "lfn:/red/a", "/blue/own", "/blue/none"])
async def test_a_logical_name_opens_no_file_that_the_catalogue_does_not_have_there(
    name: str, boris: Client, domain: DomainUnderTest, reading: Reading, tmp_path: Path
) -> None:
    """Neither a name that means nothing, nor one of another project, nor one of a file with another content."""
    await catalogued(domain, "/red/a", DIGEST, "red")
    await catalogued(domain, "/blue/own", hashlib.sha256(b"own").hexdigest(), "blue")
    (tmp_path / "own.txt").write_bytes(b"own")
    own, stolen = (await boris.upload(tmp_path / "own.txt")).as_value(), {**LITERAL, "logical": name}
    await boris.deploy(rebuilding_flow("own"))
    case = (await boris.start("own", {"a": own})).id
    with pytest.raises(RequestError, match=REFUSED):
        await boris.start("own", {"a": stolen})
    with pytest.raises(RequestError, match=REFUSED):
        await boris.rerun(case, inputs={"a": stolen})
    with pytest.raises(RequestError, match=REFUSED):
        await boris.send(case, "news", {"deep": [stolen]})
    with pytest.raises(RequestError, match=REFUSED):
        await boris.deploy(flow_with(stolen))
    with pytest.raises(RequestError, match=REFUSED):
        await boris.put_schedule(ScheduleSpec(name="nightly", flow="own", cron="0 3 * * *", inputs={"a": stolen}))
    assert (await reading("boris", of=case))[0] == 404


@pytest.mark.parametrize("way", ["input", "message", "rerun"])
async def test_a_logical_name_that_one_has_given_a_digest_opens_no_stored_file(
    way: str, boris: Client, domain: DomainUnderTest, reading: Reading, tmp_path: Path
) -> None:
    """Whoever adds a file to the catalogue says which digest it has. A map without the name is another reference."""
    await catalogued(domain, "/blue/said", DIGEST, "blue")
    (tmp_path / "own.txt").write_bytes(b"own")
    own, said = (await boris.upload(tmp_path / "own.txt")).as_value(), {**LITERAL, "logical": "/blue/said"}
    await boris.deploy(rebuilding_flow("rebuild"))
    case = (await boris.start("rebuild", {"a": said if way == "input" else own})).id
    if way == "rerun":
        await boris.cancel(case)
        await boris.wait(case)
        case = (await boris.rerun(case, inputs={"a": said})).id
    await boris.send(case, "news", said if way == "message" else own)
    async with asyncio.timeout(20):
        ended = await boris.wait(case)
    assert ended.fault is not None and "did not come to this case" in ended.fault.message, ended
    assert await domain.file_origins.foreign(case, {DIGEST}) == {DIGEST}
    assert (await reading("boris", of=case))[0] == 404


async def test_a_file_of_the_catalogue_is_read_by_its_name_without_a_look_at_the_journals(
    boris: Client, served: HttpServer, domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given as a reference, or staged by its name."""
    await catalogued(domain, "/blue/a", DIGEST, "blue")
    looks: list[CaseId] = []

    async def look(first: CaseId) -> set[str]:
        looks.append(first)
        return set()

    monkeypatch.setattr(domain.file_origins, "_read", look)
    await boris.deploy(reading_flow("own"))
    await boris.deploy(flow_with("lfn:/blue/a", "staged"))
    await boris.start("own", {"a": {**LITERAL, "logical": "/blue/a"}})
    await boris.start("staged", {})
    given: list[FileRef] = []
    async with Client(served.url, token="pilot") as pilot, asyncio.timeout(20):
        for serial in range(2, 100):
            answer = await pilot.sync(sync_request(serial, want=2, wait_ms=1000))
            given += [each.spec.inputs["a.txt"] for each in answer.jobs]
            if len(given) == 2:
                break
    assert {(each.sha256, each.logical) for each in given} == {(DIGEST, "/blue/a")}
    assert looks == []
