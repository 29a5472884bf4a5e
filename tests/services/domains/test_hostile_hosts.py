"""A host that names files which are not its own gets none of them, and fills no disk of the origin."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.domains import DomainAnswer, DomainRequest, DomainRights, TriesThere, WorkStatus
from mendflow.core.model.errors import Forbidden, RequestError, Unreachable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName, PilotId
from mendflow.core.model.jobs import Attempt, Outcome, StoredLog
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import FileRef
from mendflow.services.domains.outcome_files import OutcomeFiles
from mendflow.services.domains.request_bounds import bounded_status
from tests.services.domains.kit import DirectLine, Domains
from tests.services.recovery.kit import World, flow

JOB = JobActivity(name="j", command="true", domain="away")


async def one(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def kept(world: World, content: bytes) -> FileRef:
    return await world.server.file_store.keep("f", one(content))


class HostileHost:
    """Answers all work with an outcome, and each file that is asked for with these chunks."""

    def __init__(self, patch: pytest.MonkeyPatch, outcome: Outcome, chunks: list[bytes] | None = None) -> None:
        self.taken = 0

        async def exchange(line: DirectLine, request: DomainRequest) -> DomainAnswer:
            works = [
                WorkStatus(key=each.key, fence=each.fence, state="ended", outcome=outcome) for each in request.sent
            ]
            return DomainAnswer(stamp=7, meter="m", serial=request.serial, works=tuple(works))

        async def get_file(line: DirectLine, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
            if chunks is None:
                raise Forbidden("this file is not mine to give")
            for chunk in chunks:
                self.taken += len(chunk)
                yield chunk

        patch.setattr(DirectLine, "exchange", exchange)
        patch.setattr(DirectLine, "get_file", get_file)


async def until_told(world: World, case: CaseId, text: str) -> None:
    async def told() -> bool:
        return text in str(await world.decisions(case))

    await world.until(told, f"the job failed with: {text}")


def named(ref: FileRef, place: str) -> Outcome:
    match place:
        case "files":
            return Outcome(outputs={}, files={"out": ref})
        case "lists":
            return Outcome(outputs={}, file_lists={"out": [ref]})
        case "log":
            return Outcome(outputs={}, log=StoredLog(file=ref, bytes=6))
        case _:
            return Outcome(outputs={"v": [{"$file": ref.sha256}]})


@pytest.mark.parametrize("place", ["files", "lists", "log", "outputs"])
async def test_an_outcome_that_names_a_private_file_of_the_origin_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with Domains(tmp_path) as domains:
        secret = await kept(domains.home, b"secret")
        HostileHost(monkeypatch, named(secret, place))
        case = await domains.home.start(flow(JOB))
        await until_told(domains.home, case, "does not give its files")


async def test_a_file_that_the_origin_has_too_is_accepted_when_the_host_delivers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        ref = await kept(domains.home, b"the same")
        host = HostileHost(monkeypatch, named(ref, "outputs"), [b"the ", b"same"])
        case = await domains.home.start(flow(JOB))
        await domains.home.until_status(case, "completed")
        assert host.taken == ref.bytes


async def test_a_file_that_was_sent_with_the_work_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        ref = await kept(domains.home, b"ours")
        HostileHost(monkeypatch, named(ref, "outputs"))
        job = JobActivity(name="j", command="true", domain="away", inputs={"f": ref.as_value()})
        case = await domains.home.start(flow(job))
        await domains.home.until_status(case, "completed")


async def test_no_more_of_a_file_is_taken_than_the_outcome_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        ref = FileRef(sha256="a" * 64, bytes=5, name="x")
        host = HostileHost(monkeypatch, named(ref, "files"), [b"1234"] * 1_000)
        case = await domains.home.start(flow(JOB))
        await until_told(domains.home, case, "more than the 5 bytes")
        assert host.taken == 8


async def test_the_files_of_an_outcome_are_bounded_by_the_rights_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        large = DomainRights().bytes_max + 1
        host = HostileHost(monkeypatch, named(FileRef(sha256="a" * 64, bytes=large, name="x"), "files"), [b"1234"])
        case = await domains.home.start(flow(JOB))
        await until_told(domains.home, case, "that the domain may bring here")
        assert host.taken == 0


async def test_files_without_a_size_share_what_their_host_may_bring(tmp_path: Path) -> None:
    class Line(DirectLine):
        async def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
            yield b"four" if sha256 == four.sha256 else b"more"

    async with Domains(tmp_path) as domains:
        four, more = await kept(domains.away, b"four"), await kept(domains.away, b"more")
        line, home = Line("home", lambda: domains.away.server), domains.home.server
        outcome = Outcome(outputs=[{"$file": four.sha256}, {"$file": more.sha256}])
        await OutcomeFiles(outcome, (), 8, files=home.file_store, clock=home.clock, source="away").fetch(line)
        with pytest.raises(RequestError, match="more than the 3 bytes"):
            await OutcomeFiles(outcome, (), 7, files=home.file_store, clock=home.clock, source="away").fetch(line)


async def test_what_was_fetched_before_the_line_broke_is_not_fetched_again(tmp_path: Path) -> None:
    class Line(DirectLine):
        cut = True
        asked: list[str] = []

        async def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
            self.asked.append(sha256)
            if sha256 == second.sha256 and self.cut:
                raise Unreachable("cut")
            yield b"1" if sha256 == first.sha256 else b"2"

    async with Domains(tmp_path) as domains:
        first, second = await kept(domains.away, b"1"), await kept(domains.away, b"2")
        line, home = Line("home", lambda: domains.away.server), domains.home.server
        outcome = Outcome(files={"1": first, "2": second})
        files = OutcomeFiles(outcome, (), 100, files=home.file_store, clock=home.clock, source="away")
        with pytest.raises(Unreachable):
            await files.fetch(line)
        line.cut = False
        await files.fetch(line)
        assert line.asked.count(first.sha256) == 1
        assert await home.file_store.size(second.sha256) == 1


async def catalogued(world: World, name: str, content: bytes) -> FileRef:
    """A logical file of this domain."""
    catalogue = world.runtime.catalogue
    await catalogue.elements.put(StorageElement(name="store", url="file:///data"), replace=False)
    digest = hashlib.sha256(content).hexdigest()
    file = LogicalFile(name=name, sha256=digest, bytes=len(content), replicas=(Replica(element="store"),))
    return (await catalogue.add(file)).ref()


def reading(ref: FileRef) -> JobActivity:
    return JobActivity(name="j", command="true", domain="away", inputs={"f": f"lfn:{ref.logical}"})


@pytest.mark.parametrize("place", ["files", "lists", "outputs"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"logical": "/unknown"}, "which the job neither reads nor publishes"),
        ({"sha256": "a" * 64}, "which is not what has that name in this domain"),
        ({"bytes": 7}, "which is not what has that name in this domain"),
        ({"logical": "/private"}, "which the job neither reads nor publishes"),
    ],
)
async def test_an_outcome_with_a_logical_name_that_is_not_the_jobs_or_has_another_content_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, change: dict[str, object], why: str
) -> None:  # FM-4, DM-4
    async with Domains(tmp_path) as domains:
        known = await catalogued(domains.home, "/known", b"open to all")
        forged = msgspec.structs.replace(known, **change)
        outcome = Outcome(outputs={"v": forged.as_value()}) if place == "outputs" else named(forged, place)
        HostileHost(monkeypatch, outcome)
        case = await domains.home.start(flow(reading(known)))
        await until_told(domains.home, case, why)
        assert "foreignName" in str(await domains.home.decisions(case))


async def test_an_outcome_may_refer_to_a_logical_file_that_its_job_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        known = await catalogued(domains.home, "/known", b"open to all")
        HostileHost(monkeypatch, Outcome(outputs={"v": known.as_value()}))
        case = await domains.home.start(flow(reading(known)))
        await domains.home.until_status(case, "completed")


async def test_the_outcome_of_a_call_has_no_logical_name_that_the_origin_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        forged = FileRef(sha256="a" * 64, bytes=7, name="x", logical="/unknown")
        HostileHost(monkeypatch, Outcome(outputs={"v": forged.as_value()}))
        called = flow(JobActivity(name="j", command="true"), "called")
        await domains.home.domain.deploy(called)
        case = await domains.home.start(flow(Call(name="c", flow="called", domain="away"), "calling"))
        await until_told(domains.home, case, "which this domain does not have")


async def test_a_job_that_publishes_a_logical_name_is_not_sent_and_stays_here_where_it_may(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        publish = {"out": PublicationTemplate(logical="/store/x")}
        job = JobActivity(name="j", command="true", domain="away", files={"out": "x"}, publish=publish)
        case = await domains.home.start(flow(job))
        await domains.home.until_status(case, "failed")
        assert not domains.line.requests or not any(each.sent for each in domains.line.requests)
        fault = (await domains.home.domain.case(case)).fault
        assert fault is not None and "in the catalogue of away" in fault.message
        await domains.home.start(flow(msgspec.structs.replace(job, domain="any"), "any"))
        assert await domains.home.take() == ["j"]


async def test_what_is_told_beside_the_outputs_names_no_file_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Domains(tmp_path) as domains:
        secret = await kept(domains.home, b"secret")
        fault = Fault(name="bad", category=Category.DATA, message="so it is", data={"f": secret.as_value()})
        HostileHost(monkeypatch, Outcome(fault=fault, values={"f": secret.as_value()}))
        case = await domains.home.start(flow(JOB))
        await until_told(domains.home, case, "so it is")
        assert secret.sha256 not in str(await domains.home.decisions(case))


def test_what_a_host_says_of_work_is_bounded() -> None:
    attempts = tuple(Attempt(fence=1, pilot=PilotId("p"), granted_at=0) for _ in range(2_000))
    said = bounded_status(
        WorkStatus(
            key="k",
            fence=1,
            state="running",
            host="a\x1b[31m\nb" * 1_000,
            reason="why\n\x1b" * 100_000,
            attempts=-5,
            losses=1 << 62,
            log_tail="x" * 1_000_000,
            outcome=Outcome(cached_from="theirs-1d90a7/1"),
            tries=TriesThere(fence=-1, attempts=attempts),
        ),
        "away",
    )
    assert said.outcome == Outcome()
    assert len(said.host) == 255 and said.host.isprintable()
    assert len(said.reason) == 10_000 and "\x1b" not in said.reason
    assert (said.attempts, said.losses) == (0, 1 << 53)
    assert len(said.log_tail) == 10_000
    assert said.tries is not None and said.tries.fence == 0 and len(said.tries.attempts) == 1_000


async def test_no_host_says_that_a_person_has_rejected_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(name="rejected", category=Category.FLOW, message="no, said ann", rejected_by="ann")
    async with Domains(tmp_path, recovery=False) as domains:
        HostileHost(monkeypatch, Outcome(fault=fault))
        inner = Flow(name=FlowName("inner"), body=JobActivity(name="count", command="wc"))
        case = await domains.home.start(flow(Call(name="far", flow="inner", domain="away"), calls=(inner,)))
        await domains.home.until_status(case, "failed")
        told = (await domains.home.case(case)).fault
        assert told is not None and (told.message, told.rejected_by, told.data) == (
            "domain away says: no, said ann",
            "",
            {"by": "away/ann"},
        )


def test_nor_that_one_rejected_an_attempt() -> None:
    fault = Fault(name="rejected", category=Category.FLOW, message="no, said ann", rejected_by="ann")
    attempt = Attempt(fence=1, pilot=PilotId("p"), granted_at=0, fault=fault)
    said = WorkStatus(key="k", fence=1, state="ended", tries=TriesThere(fence=1, attempts=(attempt,)))
    tries = bounded_status(said, "away").tries
    assert tries is not None and (known := tries.attempts[0].fault) is not None
    assert (known.message, known.rejected_by) == ("domain away says: no, said ann", "")
