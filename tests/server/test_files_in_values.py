"""A value that is stored because of its size, and a logical name, open no more than the value itself would: what they
lead to has to have come to the case, or to be of its project. SE-2"""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.errors import Forbidden
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef, Outcome
from mendflow.core.model.principals import PILOT, Principal
from mendflow.core.model.sync import AttemptReport
from mendflow.core.model.values import Value
from mendflow.server.runner import HttpServer
from mendflow.services.domains.spilled_values import BYTES_MAX, SpilledValues
from mendflow.stores.files import FolderFileStore
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import sync_request
from tests.server.people import PEOPLE, KnownPeople
from tests.server.test_files_of_cases import reading_flow
from tests.server.test_made_up_files import catalogued

SECRET = b'{"secret": "of red"}'
DIGEST = hashlib.sha256(SECRET).hexdigest()
STOLEN: dict[str, Value] = {"$file": DIGEST, "bytes": len(SECRET), "name": "a.json", "python": "bytes"}
FOREIGN = "did not come to this case"
OTHERS = [Principal("pilot", frozenset({PILOT})), Principal("both", frozenset(), {"blue": "author", "red": "viewer"})]


def calling_flow(given: Value, name: str = "thief") -> Flow:
    """A job that is called with this, and gets the files that it refers to."""
    job = model.JobActivity(name="work", function=FunctionRef(module="m", name="f"), kwargs={"given": given})
    inputs = {"v": model.Input(default=None), "a": model.Input(default=None)}
    return Flow(name=FlowName(name), body=job, inputs=inputs)


def spilled_in(folder: Path, text: str) -> tuple[Path, dict[str, Value]]:
    """A file with this JSON, and what stands for that."""
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    path.write_text(text)
    return path, {"$spilled": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople([*PEOPLE.values(), *OTHERS]))


@pytest.fixture
async def boris(served: HttpServer, tmp_path: Path) -> AsyncIterator[Client]:
    """An author of another project than the one that the file is in."""
    (tmp_path / "a.json").write_bytes(SECRET)
    async with Client(served.url, token="ann", project="red") as ann:
        await ann.deploy(reading_flow("read"))
        await ann.start("read", {"a": (await ann.upload(tmp_path / "a.json")).as_value()})
    async with Client(served.url, token="pilot") as pilot:
        await pilot.sync(sync_request(1, want=1, wait_ms=5000))  # so that no job of red is in the queue
    async with Client(served.url, token="boris", project="blue") as client:
        yield client


async def refusal(client: Client, flow: str, inputs: dict[str, Value] | None = None) -> str:
    case = (await client.start(flow, inputs or {})).id
    async with asyncio.timeout(20):
        ended = await client.wait(case)
    return ended.fault.message if ended.fault is not None else ended.status


async def is_queued(client: Client, served: HttpServer, flow: str, inputs: dict[str, Value]) -> bool:
    await client.start(flow, inputs)
    async with Client(served.url, token="pilot") as pilot:
        return len((await pilot.sync(sync_request(2, want=1, wait_ms=5000))).jobs) == 1


@pytest.mark.parametrize("way", ["plain", "escaped", "deep", "twice"])
async def test_a_stored_value_names_no_file_that_did_not_come(way: str, boris: Client, tmp_path: Path) -> None:
    text = json.dumps({"x": [STOLEN], "filling": "z" * 70_000})
    if way == "escaped":
        text = text.replace("$file", "\\u0024file")
    path, given = spilled_in(tmp_path, text)
    await boris.upload(path)
    if way == "deep":
        path, given = spilled_in(tmp_path, json.dumps([given]))
        await boris.upload(path)
    if way == "twice":  # whoever looks for one kind of reference first sees that alone
        own = (await boris.upload(path)).as_value()
        given = {**own, **given}
    await boris.deploy(calling_flow("${{ inputs.v }}"))
    assert FOREIGN in await refusal(boris, "thief", {"v": given})


async def test_a_stored_value_may_name_what_the_case_was_given(
    boris: Client, served: HttpServer, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_bytes(b"own")
    own = (await boris.upload(tmp_path / "own.txt")).as_value()
    path, given = spilled_in(tmp_path, json.dumps([own]))
    await boris.upload(path)
    await boris.deploy(calling_flow("${{ inputs.v }}", "honest"))
    assert await is_queued(boris, served, "honest", {"v": given, "a": own})


async def test_what_the_code_of_a_job_refers_to_has_not_come_by_that(
    boris: Client, served: HttpServer, domain: DomainUnderTest, tmp_path: Path
) -> None:
    """Of a job with a stored argument the server cannot know what it was given, and its code may say anything."""
    path, given = spilled_in(tmp_path, json.dumps({"filling": "z" * 70_000}))
    await boris.upload(path)
    call = calling_flow("${{ inputs.v }}").body
    last = model.Wait(name="wait", duration=3_600_000)
    body = model.Sequence(name="both", body=(call, last))
    await boris.deploy(Flow(name=FlowName("liar"), body=body, inputs={"v": model.Input()}))
    case = (await boris.start("liar", {"v": given})).id
    async with Client(served.url, token="pilot") as pilot:
        [job] = (await pilot.sync(sync_request(2, want=1, wait_ms=5000))).jobs
        report = AttemptReport(job.job, job.fence, Outcome(outputs={"loot": STOLEN}))
        await pilot.sync(sync_request(3, reports=(report,)))
    assert await domain.file_origins.foreign(case, {DIGEST}) == {DIGEST}
    domain.file_origins._came.clear()
    assert await domain.file_origins.foreign(case, {DIGEST}) == {DIGEST}, "nor do the journals say so"


async def test_what_is_written_to_a_file_has_come(boris: Client) -> None:
    """The server itself reads a stored value that a job gets as a file."""
    made_up = {"deep": f'${{{{ {{"$spilled": "{DIGEST}", "bytes": {len(SECRET)}}} }}}}'}
    job = model.JobActivity(name="work", command="cat a.json", inputs={"a.json": made_up})
    await boris.deploy(Flow(name=FlowName("writer"), body=job))
    assert FOREIGN in await refusal(boris, "writer")


async def test_a_name_of_another_project_opens_nothing(boris: Client, domain: DomainUnderTest) -> None:
    """Neither with the right digest, nor as a place that an input is read from."""
    await catalogued(domain, "/red/a", DIGEST, "red")
    made_up = f'${{{{ {{"$file": "{DIGEST}", "bytes": {len(SECRET)}, "name": "a", "logical": "/red/a"}} }}}}'
    for number, job in enumerate(
        (
            model.JobActivity(name="work", command="x", inputs={"a": made_up}),
            model.JobActivity(name="work", command="x", replicas={"a": "lfn:/red/a"}),
            model.JobActivity(name="work", command="x", replicas={"a": ["lfn:/blue/none", "lfn:" + "${{ '/red/a' }}"]}),
        )
    ):
        await boris.deploy(Flow(name=FlowName(f"named-{number}"), body=job))
        assert FOREIGN in await refusal(boris, f"named-{number}"), job


async def test_a_name_of_another_project_is_given_by_who_can_look_at_it(
    boris: Client, served: HttpServer, domain: DomainUnderTest
) -> None:
    await catalogued(domain, "/red/a", DIGEST, "red")
    async with Client(served.url, token="both", project="blue") as both:
        await both.deploy(reading_flow("own"))
        assert await is_queued(both, served, "own", {"a": {**STOLEN, "logical": "/red/a"}})


async def test_a_name_of_the_same_project_is_read(boris: Client, served: HttpServer, domain: DomainUnderTest) -> None:
    await catalogued(domain, "/blue/a", DIGEST, "blue")
    job = model.JobActivity(name="work", command="x", replicas={"a": "lfn:/blue/a"})
    await boris.deploy(Flow(name=FlowName("named"), body=job))
    assert await is_queued(boris, served, "named", {})


async def test_what_a_stored_value_refers_to_is_read_once(tmp_path: Path) -> None:
    files = FolderFileStore(tmp_path / "files")
    files.open()
    reads: list[str] = []
    looked_into = FolderFileStore.read

    def read(store: FolderFileStore, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        reads.append(sha256)
        return looked_into(store, sha256, offset)

    kept = [await files.keep_path(str(spilled_in(tmp_path, text)[0])) for text in ('{"a": 1}', json.dumps([STOLEN]))]
    spilled = SpilledValues(files)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderFileStore, "read", read)
        for _ in range(3):
            assert await digests_in(spilled, [each.sha256 for each in kept]) == [DIGEST]
    assert len(reads) == 3, "one look at each, and one to read what may have a reference"


async def digests_in(spilled: SpilledValues, digests: list[str]) -> list[str]:
    return [each.sha256 async for files in spilled.files_by_depth(digests) for each in files]


async def test_a_value_that_did_not_come_is_not_looked_into(
    boris: Client, served: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the refusal would tell what is in a value of somebody else."""
    path, _ = spilled_in(tmp_path, json.dumps({"x": [{**STOLEN, "logical": "/red/plan"}], "filling": "z" * 70_000}))
    async with Client(served.url, token="ann", project="red") as ann:
        of_red = await ann.upload(path)
    reads: list[str] = []
    read = FolderFileStore.read

    def noted(store: FolderFileStore, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        reads.append(sha256)
        return read(store, sha256, offset)

    monkeypatch.setattr(FolderFileStore, "read", noted)
    await boris.deploy(
        calling_flow(f'${{{{ {{"$spilled": "{of_red.sha256}", "bytes": {of_red.bytes}}} }}}}', "curious")
    )
    told = await refusal(boris, "curious")
    assert FOREIGN in told and of_red.sha256[:12] in told and "/red/plan" not in told
    assert of_red.sha256 not in reads


async def test_one_value_at_a_time_is_taken_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FolderFileStore(tmp_path / "files")
    files.open()
    texts = [json.dumps([{**STOLEN, "name": f"{number}"}]) for number in range(6)]
    kept = [await files.keep_path(str(spilled_in(tmp_path, text)[0])) for text in texts]
    open_now, most, read = 0, 0, FolderFileStore.read

    async def slow(store: FolderFileStore, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        nonlocal open_now, most
        open_now, most = open_now + 1, max(most, open_now + 1)
        try:
            async for chunk in read(store, sha256, offset):
                await asyncio.sleep(0.01)
                yield chunk
        finally:
            open_now -= 1

    monkeypatch.setattr(FolderFileStore, "read", slow)
    spilled = SpilledValues(files)
    found = await asyncio.gather(*(digests_in(spilled, [each.sha256]) for each in (*kept, *kept)))
    assert found == [[DIGEST]] * 12 and most == 1


async def test_only_a_value_that_refers_to_files_must_not_be_too_large(tmp_path: Path) -> None:
    files = FolderFileStore(tmp_path / "files")
    files.open()
    plain = '["$fil", "\\u00e9", "' + "z" * BYTES_MAX + '"]'
    refers = json.dumps([STOLEN, "z" * BYTES_MAX]).replace("$file", "\\u0024fi\\u006Ce")
    kept = [await files.keep_path(str(spilled_in(tmp_path, text)[0])) for text in (plain, refers)]
    assert await digests_in(SpilledValues(files), [kept[0].sha256]) == []
    with pytest.raises(Forbidden, match="give the files one by one"):
        await digests_in(SpilledValues(files), [kept[1].sha256])
