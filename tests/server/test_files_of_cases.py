"""A stored file is for those who can read something that refers to it: its digest alone opens nothing. SE-2"""

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.data import StoreRequest
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, FlowName, Instant, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec, Outcome, StoredLog
from mendflow.core.model.principals import PILOT, Principal
from mendflow.core.model.sync import AttemptReport
from mendflow.core.model.values import FileRef
from mendflow.server.pilot_lookups import FILES_PATH
from mendflow.server.runner import HttpServer
from mendflow.services.api import file_readers
from mendflow.services.api.file_readers import FileReaders
from mendflow.services.base.clock import SystemClock
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import sync_request
from tests.server.people import PEOPLE, KnownPeople

CONTENT = b"what only project red may know"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
MADE = b"what a job of red has made"
PILOTS = [
    Principal("of-red", frozenset({PILOT}), {"red": "operator"}),
    Principal("of-blue", frozenset({PILOT})),
    Principal("of-blue-alone", frozenset({PILOT}), {"blue": "operator"}),
]


def reading_flow(name: str) -> Flow:
    """Its job reads the file that the case is given, and leaves another."""
    job = model.JobActivity(name="work", command="true", inputs={"a.txt": "${{ inputs.a }}"}, files={"b": "b.txt"})
    return Flow(name=FlowName(name), body=job, inputs={"a": model.Input(), "note": model.Input(default="")}, outputs={})


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople([*PEOPLE.values(), *PILOTS]))


class SetClock(SystemClock):
    def __init__(self, time: Instant) -> None:
        super().__init__()
        self.time = time

    def now(self) -> Instant:
        return self.time


class Reading:
    """Requests for a file, and what they are answered."""

    def __init__(self, served: HttpServer, http: aiohttp.ClientSession) -> None:
        self._served, self.http = served, http

    async def __call__(self, who: str, digest: str = DIGEST, method: str = "GET", **query: str) -> tuple[int, bytes]:
        url, headers = f"{self._served.url}/api/v1/files/{digest}", {"authorization": f"Bearer {who}"}
        async with self.http.request(method, url, params=query, headers=headers) as response:
            return response.status, await response.read()


@pytest.fixture
def reading(served: HttpServer, http: aiohttp.ClientSession) -> Reading:
    return Reading(served, http)


@pytest.fixture
async def case(served: HttpServer, tmp_path: Path) -> AsyncIterator[str]:
    """A case of red that was given the file."""
    source = tmp_path / "a.txt"
    source.write_bytes(CONTENT)
    async with Client(served.url, token="ann", project="red") as ann:
        await ann.deploy(reading_flow("read"))
        yield str((await ann.start("read", {"a": (await ann.upload(source)).as_value()})).id)


async def test_a_digest_alone_opens_nothing(reading: Reading, case: str) -> None:
    for who in ("vera", "olga", "boris", "clerk", "of-blue"):
        status, told = await reading(who)
        assert status == 404, (who, told)
    unknown = await reading("boris", "0" * 64)
    assert unknown[0] == 404
    assert unknown[1].replace(b"0" * 64, b"") == (await reading("boris"))[1].replace(DIGEST.encode(), b"")
    assert (await reading("boris", method="HEAD"))[0] == 404


async def test_whoever_reads_the_case_reads_its_files(reading: Reading, case: str) -> None:
    for who in ("vera", "olga", "ann"):
        assert await reading(who, of=case) == (200, CONTENT)
        assert (await reading(who, method="HEAD", of=case))[0] == 200
    assert await reading("vera", of="last") == (200, CONTENT)
    assert await reading("ann") == (200, CONTENT), "she has sent it"
    assert await reading("root") == (200, CONTENT), "administrators need not say"
    for who in ("boris", "clerk", "guest", "of-blue"):
        status, told = await reading(who, of=case)
        assert status == 404
        assert told.replace(case.encode(), b"") == (await reading(who, of="nope"))[1].replace(b"nope", b"")


async def test_a_case_that_does_not_refer_to_the_file_opens_nothing(
    served: HttpServer, reading: Reading, case: str, tmp_path: Path
) -> None:
    """Nor does one that has its digest as a text."""
    (tmp_path / "own.txt").write_bytes(b"own")
    async with Client(served.url, token="boris", project="blue") as boris:
        await boris.deploy(reading_flow("other"))
        own = (await boris.upload(tmp_path / "own.txt")).as_value()
        told: Any = {"sha256": DIGEST, "text": f'"$file":"{DIGEST}"'}
        mine = (await boris.start("other", {"a": own, "note": told})).id
        assert (await reading("boris", of=mine))[0] == 404
        assert await reading("boris", str(own["$file"]), of=mine) == (200, b"own")


async def test_pilots_read_what_their_jobs_refer_to(
    served: HttpServer, reading: Reading, case: str, tmp_path: Path
) -> None:
    assert (await reading("of-red"))[0] == 404
    async with Client(served.url, token="of-red") as pilot:
        [job] = (await pilot.sync(sync_request(1, want=1, wait_ms=5000))).jobs
        assert await reading("of-red") == (200, CONTENT)
        assert (await reading("of-blue"))[0] == 404
        digest = hashlib.sha256(MADE).hexdigest()
        headers = {"authorization": "Bearer of-red"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.put(f"{served.url}/api/v1/files/{digest}", data=MADE) as response,
        ):
            assert response.status == 200
        outcome = Outcome(files={"b": FileRef(sha256=digest, bytes=len(MADE), name="b.txt")})
        await pilot.sync(sync_request(2, reports=(AttemptReport(job.job, job.fence, outcome),)))
    async with Client(served.url, token="vera") as vera, asyncio.timeout(20):
        await vera.wait(case)
        target = await vera.download(digest, tmp_path / "b.txt", of=case)
    assert target.read_bytes() == MADE
    assert (await reading("vera", digest))[0] == 404
    assert (await reading("of-red"))[0] == 404, "the job is over"


async def test_what_the_projects_know_is_not_sent_again(served: HttpServer, case: str, tmp_path: Path) -> None:
    async with Client(served.url, token="olga") as olga, Client(served.url, token="boris") as boris:
        assert await olga.has(DIGEST)
        assert not await boris.has(DIGEST)
        with pytest.raises(NotFound, match="name a case that refers to it"):
            await boris.download(DIGEST, tmp_path / "copy")
        (tmp_path / "same.txt").write_bytes(CONTENT)
        await boris.upload(tmp_path / "same.txt")
        assert await boris.has(DIGEST), "who has the content has proved it"


async def test_what_was_looked_at_is_not_read_again(
    domain: DomainUnderTest, reading: Reading, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await reading("vera", of=case))[0] == 200
    monkeypatch.setattr(domain.file_readers, "_digests_of", None)
    assert (await reading("olga", of=case))[0] == 200


async def test_a_file_that_one_may_not_read_is_given_to_no_case(  # or a job would tell what is in it
    served: HttpServer, reading: Reading, case: str, tmp_path: Path
) -> None:
    stolen: Any = {"$file": DIGEST, "bytes": len(CONTENT), "name": "a.txt"}
    async with Client(served.url, token="boris", project="blue") as boris:
        await boris.deploy(reading_flow("other"))
        for given in (stolen, [{"deep": stolen}], {"$spilled": DIGEST, "bytes": len(CONTENT)}):
            with pytest.raises(NotFound, match="send it first"):
                await boris.start("other", {"a": given})
        with pytest.raises(NotFound, match="send it first"):
            await boris.add_to_set("night", [FileRef(sha256=DIGEST, bytes=len(CONTENT), name="a.txt")])
        (tmp_path / "same.txt").write_bytes(CONTENT)
        await boris.start("other", {"a": (await boris.upload(tmp_path / "same.txt")).as_value()})
    async with Client(served.url, token="olga") as olga:
        await olga.start("read", {"a": stolen})


async def test_many_files_are_looked_for_at_once(
    served: HttpServer, domain: DomainUnderTest, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[Any] = []
    async with Client(served.url, token="ann", project="red") as ann:
        for number in range(5):
            (tmp_path / "b.txt").write_text(f"{number}")
            files.append((await ann.upload(tmp_path / "b.txt")).as_value())
        await ann.start("read", {"a": files[0], "note": files[1:4]})
    searched: list[str] = []
    search = domain._server.store.search

    async def counted(kind: str, *args: Any, **named: Any) -> Any:
        searched.extend([kind] if named.get("order_by") == "started_at" else [])
        return await search(kind, *args, **named)

    monkeypatch.setattr(domain._server.store, "search", counted)
    async with Client(served.url, token="olga") as olga:
        await olga.start("read", {"a": files[0]})
        assert "case" in (for_one := searched.copy())
        await olga.start("read", {"a": files[0], "note": files[1:4]})
        assert searched == for_one * 2, "four files as one"
        with pytest.raises(NotFound, match=files[4]["$file"]):
            await olga.start("read", {"a": files[0], "note": files})


async def test_who_has_sent_a_file_is_known_to_other_servers(
    served: HttpServer, domain: DomainUnderTest, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FileReaders(domain._server)
    assert await other.has_given("ann", DIGEST)
    assert not await other.has_given("boris", DIGEST)
    monkeypatch.setattr(file_readers, "GIVEN_MS", -1)
    await other.note_given("boris", "0" * 64)
    assert [each.id async for each in domain._server.store.scan(file_readers.GIVEN_KIND)] == []


async def test_a_file_that_is_sent_again_is_known_for_a_day_from_then_on(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the server that it was sent to before, and at another; whichever removes old notes."""
    hour, now = 3_600_000, domain._server.clock.now()
    monkeypatch.setattr(domain._server, "clock", clock := SetClock(now))
    first, second = FileReaders(domain._server), FileReaders(domain._server)
    await first.note_given("ann", DIGEST)
    await second.note_given("olga", DIGEST)
    clock.time = now + 23 * hour
    await first.note_given("ann", DIGEST)
    await first.note_given("olga", DIGEST)
    clock.time = now + 23 * hour + hour // 2
    await second.note_given("ann", DIGEST)
    for passed, is_known in ((47, True), (49, False)):
        clock.time = now + passed * hour
        await FileReaders(domain._server).note_given("boris", "0" * 64)  # which removes what is old
        for who in ("ann", "olga"):
            assert await FileReaders(domain._server).has_given(who, DIGEST) == is_known, (who, passed)


async def test_what_is_remembered_of_jobs_is_bounded_by_their_files(
    domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_readers, "DIGESTS_MAX", 100)
    readers = FileReaders(domain._server)
    for number in range(20):
        files = {f"{each}": FileRef(sha256=f"{number:032x}{each:032x}", bytes=1, name="a") for each in range(30)}
        spec = JobSpec(item=ItemId("work"), command="true", inputs=files)
        job = Job(id=JobId(f"c/{number}"), case=CaseId("c"), spec=spec)
        for _ in range(2):
            assert len(await readers._digests_of_job(job)) == 30
        assert sum(map(len, readers._of_jobs.values())) <= 100
    assert [id for id, _ in readers._of_jobs] == ["c/17", "c/18", "c/19"]


async def test_a_job_of_another_server_counts_by_its_project(
    served: HttpServer, domain: DomainUnderTest, case: str
) -> None:
    readers, red, blue = domain.file_readers, PILOTS[0], Principal("p", frozenset({PILOT}), {"blue": "operator"})
    for pilot in (red, blue, PILOTS[1]):
        assert not await readers._is_held_elsewhere(pilot.projects, DIGEST.encode()), "no pilot has the job"
    async with Client(served.url, token="of-red") as of_red:
        assert (await of_red.sync(sync_request(1, want=1, wait_ms=5000))).jobs
    await domain._server.runtime.ledger.settled()
    assert await readers._is_held_elsewhere(red.projects, DIGEST.encode())
    assert await readers._is_held_elsewhere({}, DIGEST.encode())
    assert not await readers._is_held_elsewhere(blue.projects, DIGEST.encode())


async def test_the_stored_log_of_a_job_is_not_read_as_a_file(
    served: HttpServer, domain: DomainUnderTest, reading: Reading, case: str
) -> None:
    """It has what is masked when the log is shown."""
    printed, made = b"tell-nobody-42", hashlib.sha256(MADE).hexdigest()
    log, packed = hashlib.sha256(gzip.compress(printed, mtime=0)).hexdigest(), gzip.compress(printed, mtime=0)
    await domain.store_files(StoreRequest(contents={log: packed, made: MADE}))
    async with Client(served.url, token="of-red") as pilot:
        [job] = (await pilot.sync(sync_request(1, want=1, wait_ms=5000))).jobs
        outcome = Outcome(
            files={"b": FileRef(sha256=made, bytes=len(MADE), name="b.txt")},
            log=StoredLog(file=FileRef(sha256=log, bytes=len(packed), name="log.gz"), bytes=len(printed)),
        )
        domain._server.hidden.add(printed.decode())
        for each in (made, log):
            await domain.file_readers.note_given("of-red", each)
        await pilot.sync(sync_request(2, reports=(AttemptReport(job.job, job.fence, outcome),)))
    async with Client(served.url, token="ann", project="red") as ann:
        await ann.wait(case)
        assert (await ann.log(job.job)).text == "*" * len(printed)
    assert await reading("ann", made, of=case) == (200, MADE)
    for who in ("vera", "olga", "ann"):
        for of in (case, str(job.job)):
            assert (await reading(who, log, of=of))[0] == (await reading(who, log, "HEAD", of=of))[0] == 404
    assert await reading("of-red", log) == (200, packed), "its pilot has sent it"


async def test_a_pilot_of_some_projects_opens_no_file_by_saying_that_its_job_has_left_it(
    served: HttpServer, reading: Reading, case: str, tmp_path: Path
) -> None:
    """Neither for whoever reads the case, nor for the next job. What it has sent itself, and what the case was given,
    it may name."""
    stolen = FileRef(sha256=DIGEST, bytes=len(CONTENT), name="b.txt")
    (tmp_path / "own.txt").write_bytes(b"own")
    async with Client(served.url, token="boris", project="blue") as boris:
        await boris.deploy(reading_flow("other"))
        own = await boris.upload(tmp_path / "own.txt")
        given: Any = own.as_value()
        lies = [
            Outcome(files={"b": stolen}),
            Outcome(file_lists={"b": [stolen]}),
            Outcome(contents=(stolen,)),
            Outcome(outputs={"$spilled": DIGEST, "bytes": len(CONTENT)}),
            Outcome(log=StoredLog(file=stolen, bytes=1 << 20)),
            Outcome(files={"b": stolen}, fault=Fault(name="x", category=Category.OUTPUT, message="x")),
        ]
        async with Client(served.url, token="of-blue-alone") as pilot, asyncio.timeout(60):
            for serial, outcome in enumerate(lies):
                mine = (await boris.start("other", {"a": given})).id
                [job] = (await pilot.sync(sync_request(2 * serial + 1, want=1, wait_ms=5000))).jobs
                await pilot.sync(sync_request(2 * serial + 2, reports=(AttemptReport(job.job, job.fence, outcome),)))
                ended = await boris.wait(mine)
                assert ended.fault is not None and "which that pilot has not sent" in ended.fault.message
                assert (await reading("boris", of=mine))[0] == 404
            mine, serial = (await boris.start("other", {"a": given})).id, 2 * len(lies) + 1
            [job] = (await pilot.sync(sync_request(serial, want=1, wait_ms=5000))).jobs
            made = FileRef(sha256=hashlib.sha256(MADE).hexdigest(), bytes=len(MADE), name="c.txt")
            async with reading.http.post(
                f"{served.url}{FILES_PATH}",
                data=msgspec.msgpack.encode(StoreRequest(contents={made.sha256: MADE})),
                headers={"authorization": "Bearer of-blue-alone"},
            ) as response:
                assert response.status == 200
            outcome = Outcome(files={"b": own}, file_lists={"c": [made]})
            await pilot.sync(sync_request(serial + 1, reports=(AttemptReport(job.job, job.fence, outcome),)))
            assert (await boris.wait(mine)).status == "completed"
            assert await reading("boris", made.sha256, of=mine) == (200, MADE)
