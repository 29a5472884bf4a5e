"""Files of storage elements in real pilots: read where the catalogue says, published whole, and killed in between."""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.data import (
    LocateAnswer,
    OutputPlacement,
    PlaceAnswer,
    Publication,
    ReplicaLocation,
    StorageElement,
)
from mendflow.core.model.faults import AttemptStage, Category
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value
from mendflow.core.recovery.classification import classify
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.messages import FinishedAttempt
from mendflow.transfer.errors import WriterSuperseded
from mendflow.transfer.targets import ASIDE
from tests.patience import PATIENCE_S
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_parts import Shelf, kept, stage
from tests.servers import s3

Hire = Callable[..., Pilot]


@pytest.fixture
def storage(tmp_path: Path) -> StorageElement:
    (tmp_path / "store").mkdir()
    return StorageElement(name="disk", url=(tmp_path / "store").as_uri())


def logical(content: bytes, name: str) -> FileRef:
    return replace(kept(content), logical=name)


def publishing(command: str, **more: Value) -> JobSpec:
    publish = {"out": Publication(logical="/reco/out.dat")}
    return JobSpec(item=ItemId("i"), command=command, files={"out": "out.dat"}, publish=publish, **more)


class OnePlace:
    """A catalogue for which everything is in one element."""

    def __init__(self, element: StorageElement) -> None:
        self._element = element
        self.left: tuple[str, ...] = ()

    def _at(self, name: str) -> ReplicaLocation:
        return ReplicaLocation(element=self._element, url=self._element.url + name)

    def locate(self, names: list[str]) -> LocateAnswer:
        return LocateAnswer(files={name: [self._at(name)] for name in names})

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        catalogue = {name: self._at(each.publication.logical) for name, each in files.items()}
        return PlaceAnswer(files=catalogue, replaces=dict.fromkeys(files, self.left))


async def test_what_one_job_publishes_another_reads_by_its_name(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # FM-6
    server.ledger.element = storage
    hire("--site", "here")
    made = await server.outcome(await server.submit(publishing("head -c 100000 /dev/urandom > out.dat")))
    assert made.ok, made.fault
    ref = made.files["out"]
    assert ref.logical == "/reco/out.dat" and ref.sha256 not in server.ledger.files
    assert kept((tmp_path / "store" / "reco" / "out.dat").read_bytes()).sha256 == ref.sha256
    (asked,) = server.ledger.placed
    assert (asked.site, asked.files["out"].file.sha256) == ("here", ref.sha256), "it is hashed before anybody is asked"
    server.ledger.located["/reco/out.dat"] = [ReplicaLocation(element=storage, url=f"{storage.url}/reco/out.dat")]
    reads = JobSpec(item=ItemId("i"), command="sha256sum < in", inputs={"in": ref})
    read = await server.outcome(await server.submit(reads))
    assert read.ok and ref.sha256 in read.log_tail
    assert read.measures.cached_files + read.measures.fetched_files == 1
    assert read.measures.cached_bytes + read.measures.fetched_bytes == 100_000


@pytest.mark.full
async def test_files_of_a_real_s3_server_are_read_and_published(
    server: Server, hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-6
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    element = s3.server().element()
    server.ledger.element = element
    s3.server().raw().pipe_file(f"{element.url}/raw/a", b"raw data")
    server.ledger.located["/raw/a"] = [ReplicaLocation(element=element, url=f"{element.url}/raw/a")]
    hire()
    job = publishing("tr a-z A-Z < in > out.dat", inputs={"in": logical(b"raw data", "/raw/a")})
    outcome = await server.outcome(await server.submit(job))
    assert outcome.ok, outcome.fault
    assert s3.server().raw().cat_file(f"{element.url}/reco/out.dat") == b"RAW DATA"
    assert (outcome.measures.fetched_files, outcome.measures.fetched_bytes) == (1, 8)


async def test_a_job_without_a_command_copies_between_elements(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # FM-6
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").write_bytes(b"to be copied")
    far = StorageElement(name="far", url=(tmp_path / "far").as_uri())
    server.ledger.element = storage
    server.ledger.located["/raw/a"] = [ReplicaLocation(element=far, url=f"{far.url}/a")]
    hire()
    ref = logical(b"to be copied", "/raw/a")
    publish = {"a": Publication(logical="/raw/a", element="disk")}
    job = JobSpec(item=ItemId("i"), inputs={"a": ref}, files={"a": "a"}, publish=publish, link_inputs=True)
    outcome = await server.outcome(await server.submit(job))
    assert outcome.ok and outcome.files["a"].logical == "/raw/a", outcome.fault
    assert (tmp_path / "store" / "raw" / "a").read_bytes() == b"to be copied"


@pytest.mark.full
async def test_an_agent_that_is_killed_while_it_publishes_leaves_nothing_wrong(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # JS-7
    server.ledger.element = storage
    pilot = hire()
    job = await server.submit(publishing("head -c 60000000 /dev/urandom > out.dat; echo once >> ../../starts"))
    target = tmp_path / "store" / "reco" / "out.dat"
    for _ in range(4):
        known = len(server.ledger.placed)
        await server.until(partial(_asked_or_over, server, job, known), "it to be published")
        pilot.kill()
        assert not target.exists() or target.stat().st_size == 60_000_000
        pilot.restart()
    outcome = await server.outcome(job)
    assert outcome.ok, outcome.fault
    assert kept(target.read_bytes()).sha256 == outcome.files["out"].sha256
    assert os.listdir(target.parent) == ["out.dat"], "nothing half is left"
    assert (tmp_path / "work" / "starts").read_text() == "once\n", "the job itself ran once"


def _asked_or_over(server: Server, job: JobId, known: int) -> bool:
    return len(server.ledger.placed) > known or job in server.ledger.outcomes


async def test_no_file_gets_its_name_while_the_lease_is_over(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # JS-7
    """The server is silent from when it is asked for a place until the lease is over, and answers that alone."""
    server.ledger.lease_ms = 1_500
    server.ledger.element = storage
    lease, target = tmp_path / "work" / "lease", tmp_path / "store" / "reco" / "out.dat"

    async def late() -> None:
        server.ledger.silent = True
        last = boot_ms() + server.ledger.lease_ms  # an answer may be on its way, and is good for so long
        await server.until(lambda: LeaseClock(lease).is_over(now := boot_ms()) and now > last, "the lease to be over")

    server.before_place = late
    hire()
    job = await server.submit(publishing("echo x > out.dat"))
    await server.until(lambda: target.parent.exists(), "it to be written")
    await server.until(lambda: not any(path.name.startswith(ASIDE) for path in target.parent.iterdir()), "its end")
    assert not target.exists()
    server.before_place, server.ledger.silent = None, False
    assert (await server.outcome(job)).ok and len(server.ledger.placed) >= 2
    assert target.read_text() == "x\n" and os.listdir(target.parent) == ["out.dat"]


def test_an_attempt_whose_lease_is_over_waits_with_its_file(tmp_path: Path, storage: StorageElement) -> None:  # JS-7
    catalogue = OnePlace(storage)
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    staging = FileStager(work_folder, Shelf({}), catalogue=catalogue)
    os.makedirs(work_folder.attempt("c/1", 3))
    Path(work_folder.attempt("c/1", 3), "out.dat").write_bytes(b"made")
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(exit_code=0)))
    publish = {"out": Publication(logical="/reco/out.dat")}
    done = FinishedAttempt(JobId("c/1"), 3, outcome, 1, {"out": "out.dat"}, publish=publish)
    for _ in range(2):
        with pytest.raises(WriterSuperseded):
            staging.keep(done, lambda: False)
        assert not os.listdir(tmp_path / "store" / "reco")
    told = msgspec.msgpack.decode(staging.keep(done, lambda: True), type=Outcome)
    assert told.files["out"].logical == "/reco/out.dat"
    assert (tmp_path / "store" / "reco" / "out.dat").read_bytes() == b"made"


def test_what_lies_at_the_place_stays_unless_an_earlier_attempt_left_it(  # PJ-7
    tmp_path: Path, storage: StorageElement
) -> None:
    catalogue = OnePlace(storage)
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    staging = FileStager(work_folder, Shelf({}), catalogue=catalogue)
    os.makedirs(work_folder.attempt("c/1", 3))
    Path(work_folder.attempt("c/1", 3), "out.dat").write_bytes(b"made")
    target = tmp_path / "store" / "reco" / "out.dat"
    target.parent.mkdir()
    target.write_bytes(b"precious")
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(exit_code=0)))
    publish = {"out": Publication(logical="/reco/out.dat", element="disk")}
    done = FinishedAttempt(JobId("c/1"), 3, outcome, 1, {"out": "out.dat"}, publish=publish)
    for catalogue.left in ((), (kept(b"something else").sha256,)):
        told = msgspec.msgpack.decode(staging.keep(done, lambda: True), type=Outcome)
        assert told.fault is not None and (told.fault.name, told.fault.category) == ("notPublished", Category.OUTPUT)
        assert "another file lies at" in told.fault.message and "did not write" in told.fault.message
        assert target.read_bytes() == b"precious" and os.listdir(target.parent) == ["out.dat"]
    catalogue.left = (kept(b"precious").sha256,)
    told = msgspec.msgpack.decode(staging.keep(done, lambda: True), type=Outcome)
    assert told.ok and target.read_bytes() == b"made" and os.listdir(target.parent) == ["out.dat"]


async def test_a_place_that_cannot_be_written_to_is_a_fault_of_stage_out(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:
    hire()
    outcome = await server.outcome(await server.submit(publishing("echo x > out.dat")))
    assert outcome.fault is not None and outcome.fault.name == "notPublished" and "nowhere" in outcome.fault.message
    server.ledger.element = replace(storage, read_only=True, name="tape")
    outcome = await server.outcome(await server.submit(publishing("echo x > out.dat")))
    assert outcome.fault is not None and outcome.has_rescued_files
    assert server.ledger.files[outcome.files["out"].sha256] == b"x\n", "what it made is not lost"
    assert (outcome.fault.category, outcome.fault.stage) == (Category.OUTPUT, AttemptStage.STAGE_OUT)
    assert outcome.fault.data["element"] == "tape" and "read-only" in outcome.fault.message
    assert not list((tmp_path / "store").iterdir())


# Bringing


class Counting(Shelf):
    """Knows how many files were under way at a time: each waits a moment for others to come."""

    def __init__(self, files: dict[str, bytes], others: int) -> None:
        super().__init__(files)
        self.most = self.under_way = 0
        self.together = threading.Barrier(others)

    def get(self, sha256: str, **more: float) -> Iterator[bytes]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.together.wait(PATIENCE_S)
        yield from super().get(sha256, **more)
        self.under_way -= 1


@pytest.mark.parametrize(("order", "at_once"), [("sequence", 1), ("parallel", 4)])
def test_inputs_are_brought_together_or_one_after_another(tmp_path: Path, order: Any, at_once: int) -> None:  # FM-6
    contents = {f"in{number}": b"content %d" % number for number in range(4)}
    shelf = Counting({kept(content).sha256: content for content in contents.values()}, at_once)
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    staging = FileStager(work_folder, shelf)
    inputs = {path: kept(content) for path, content in contents.items()}
    job = JobSpec(item=ItemId("i"), command="x", inputs=inputs, stage_in=order)
    brought = staging.stage_in(job, str(tmp_path / "one"))
    assert shelf.most == at_once
    assert (brought.measures.fetched_files, brought.measures.fetched_bytes) == (4, 36)
    assert {path: (tmp_path / "one" / path).read_bytes() for path in inputs} == contents
    again = staging.stage_in(job, str(tmp_path / "two"))
    assert (again.measures.cached_files, again.measures.cached_bytes, again.measures.fetched_files) == (4, 36, 0)


def test_one_input_that_cannot_be_had_fails_the_job_and_leaves_no_folder(tmp_path: Path) -> None:
    staging, _ = stage(tmp_path, b"good")
    inputs = {"a": kept(b"good"), "b": kept(b"nowhere"), "c": kept(b"good")}
    with pytest.raises(StagingFailed, match="input b could not be had"):
        staging.stage_in(JobSpec(item=ItemId("i"), command="x", inputs=inputs), str(tmp_path / "one"))
    end = time.monotonic() + PATIENCE_S  # what was under way beside it may still be giving up
    while (tmp_path / "one").exists():
        assert time.monotonic() < end, "the folder is left"
        time.sleep(0.01)


async def test_the_next_place_is_tried_when_the_nearest_does_not_have_it(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # PJ-7
    (tmp_path / "store" / "a").write_bytes(b"here it is")
    near = StorageElement(name="near", url=(tmp_path / "near").as_uri())
    ref = logical(b"here it is", "/a")
    server.ledger.located["/a"] = [ReplicaLocation(element=each, url=f"{each.url}/a") for each in (near, storage)]
    hire()
    assert (await server.outcome(await server.submit(_cat(ref)))).log_tail == "here it is"
    lost = logical(b"gone", "/b")
    server.ledger.located["/b"] = [ReplicaLocation(element=each, url=f"{each.url}/b") for each in (near, storage)]
    fault = (await server.outcome(await server.submit(_cat(lost)))).fault
    assert fault is not None and fault.name == "missingInput" and fault.data["source"] == "lfn:/b"
    assert "near: " in fault.message and "disk: " in fault.message


async def test_a_replica_that_is_another_file_is_gone_by_and_told_of(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # PJ-7
    near = StorageElement(name="near", url=(tmp_path / "near").as_uri(), tries=1)
    for folder, content in (("near", b"not so good"), ("store", b"as it is!!!")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "a").write_bytes(content)
    server.ledger.located["/a"] = [ReplicaLocation(element=each, url=f"{each.url}/a") for each in (near, storage)]
    hire()
    outcome = await server.outcome(await server.submit(_cat(logical(b"as it is!!!", "/a"))))
    assert outcome.log_tail == "as it is!!!"
    [damaged] = outcome.measures.damaged
    assert damaged.startswith("/a on near: it arrived damaged")


async def test_a_place_that_leads_out_of_its_element_is_not_read(
    server: Server, hire: Hire, tmp_path: Path, storage: StorageElement
) -> None:  # PJ-7
    (tmp_path / "secret").write_bytes(b"not yours")
    server.ledger.located["/a"] = [ReplicaLocation(element=storage, url=f"{storage.url}/../secret")]
    hire()
    fault = (await server.outcome(await server.submit(_cat(logical(b"not yours", "/a"))))).fault
    assert fault is not None and fault.name == "badSource" and "leads elsewhere" in fault.message
    assert not classify(fault).recoverable, "it would lead there the next time too"


def _cat(ref: FileRef) -> JobSpec:
    return JobSpec(item=ItemId("i"), command="cat in", inputs={"in": ref})


def test_a_source_by_its_url_is_spoken_to_as_its_element_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair chooses a replica by its URL, in which no key stands."""
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    element = s3.server().element()
    s3.server().raw().pipe_file(f"{element.url}/a", b"there")
    place = ReplicaLocation(element=element, url=f"{element.url}/a")

    sources = InputSources(FileClient(ServerAddress("http://127.0.0.1:1", "")), OpenElements(), OnePlace(element))
    sources.fetch(place.url, str(tmp_path / "a"), logical(b"there", "/a"))
    assert (tmp_path / "a").read_bytes() == b"there"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
