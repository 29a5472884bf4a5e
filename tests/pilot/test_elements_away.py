"""Storage elements that are away when a job has something for them: the job's work is not lost for that."""

import asyncio
import contextlib
import os
import urllib.parse
from collections.abc import AsyncIterator, Callable
from pathlib import Path

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
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.recovery.classification import classify
from mendflow.pilot.files.retries import ElementRetries, ElementUnavailable
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.messages import FinishedAttempt
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_parts import Shelf
from tests.servers import s3
from tests.servers.processes import free_port

Hire = Callable[..., Pilot]
KEY = ("c/1", 1)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def at(element: StorageElement, port: int) -> StorageElement:
    """An element behind a port; one try each time is enough here."""
    return replace(element, options={**s3.OPTIONS, "endpoint_url": f"http://127.0.0.1:{port}"}, tries=1)


def away(patience_ms: int) -> StorageElement:
    """An element that nobody answers for."""
    return at(StorageElement(name="far", url=f"s3://{s3.BUCKET}/away", patience_ms=patience_ms), 1)


@contextlib.asynccontextmanager
async def line(port: int, target: str) -> AsyncIterator[None]:
    """Whoever comes to the port reaches the target."""
    host = urllib.parse.urlsplit(target)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # one side is gone, and the other hears of it
        finally:
            writer.close()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection(host.hostname, host.port)
        await asyncio.gather(carry(reader, outer), carry(inner, writer))

    relay = await asyncio.start_server(join, "127.0.0.1", port)
    try:
        yield
    finally:
        relay.close()


@pytest.mark.full
async def test_a_pilot_keeps_what_a_job_made_until_the_element_is_back(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # FM-6
    """Its slot runs other jobs meanwhile, and the job itself runs once."""
    target, port = s3.server(), free_port(s3.PORTS)
    server.ledger.element = element = at(target.element(), port)
    hire()
    publish = {"out": Publication(logical="/reco/out.dat", element="objects")}
    command = "echo made > out.dat; echo once >> ../../starts"
    job = await server.submit(JobSpec(item=ItemId("i"), command=command, files={"out": "out.dat"}, publish=publish))
    await server.until(lambda: len(server.ledger.placed) >= 2, "it to be tried again")
    assert (await server.outcome(await server.shell("echo meanwhile"))).ok
    assert job not in server.ledger.outcomes and server.ledger.beats[job].state == "keeping"
    async with line(port, target.url):
        outcome = await server.outcome(job)
    assert outcome.ok and outcome.files["out"].logical == "/reco/out.dat", outcome.fault
    assert target.raw().cat_file(f"{element.url}/reco/out.dat") == b"made\n"
    assert (tmp_path / "work" / "starts").read_text() == "once\n"


class Near:
    """A catalogue with several elements near the pilot; what names one goes there."""

    def __init__(self, *elements: StorageElement) -> None:
        self._elements = {each.name: each for each in elements}
        self.avoided_elements: list[tuple[str, ...]] = []

    def locate(self, names: list[str]) -> LocateAnswer:
        raise AssertionError("nothing is read")

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        self.avoided_elements.append(avoid)
        answer = PlaceAnswer()
        for name, each in files.items():
            wanted = each.publication
            left = [one for one in self._elements.values() if one.name == (wanted.element or one.name)]
            left = left if wanted.element else [one for one in left if one.name not in avoid]
            if left:
                answer.files[name] = ReplicaLocation(element=left[0], url=left[0].url + wanted.logical)
            else:
                answer.wrong[name] = "it has nowhere to go"
        return answer


def made(tmp_path: Path, near: Near, element: str = "") -> tuple[FileStager, FinishedAttempt]:
    """A job that has ended, and what is left to do."""
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    os.makedirs(work_folder.attempt(*KEY))
    Path(work_folder.attempt(*KEY), "out").write_bytes(b"made")
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(exit_code=0)))
    publish = {"out": Publication(logical="/out", element=element)}
    done = FinishedAttempt(JobId(KEY[0]), KEY[1], outcome, 1, {"out": "out"}, publish=publish)
    return FileStager(work_folder, Shelf({}), catalogue=near), done


def told(staging: FileStager, done: FinishedAttempt) -> Outcome:
    return msgspec.msgpack.decode(staging.keep(done), type=Outcome)


def test_what_may_go_anywhere_goes_elsewhere_when_patience_is_over(tmp_path: Path) -> None:
    (tmp_path / "next").mkdir()
    near = Near(away(0), StorageElement(name="next", url=(tmp_path / "next").as_uri()))
    staging, done = made(tmp_path, near)
    with pytest.raises(ElementUnavailable):
        staging.keep(done)
    assert told(staging, done).ok
    assert near.avoided_elements == [(), ("far",)] and (tmp_path / "next" / "out").read_bytes() == b"made"


@pytest.mark.parametrize("named", ["far", ""])
def test_when_patience_is_over_and_no_other_takes_it_the_fault_may_pass(tmp_path: Path, named: str) -> None:
    staging, done = made(tmp_path, Near(away(0)), named)
    if not named:
        with pytest.raises(ElementUnavailable):
            staging.keep(done)
    fault = told(staging, done).fault
    assert fault is not None and fault.name == "notPublished" and fault.data["element"] == "far"
    assert classify(fault).recoverable, "the rules try it again later"


def test_what_cannot_pass_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "store" / "out").mkdir(parents=True)
    staging, done = made(tmp_path, Near(StorageElement(name="disk", url=(tmp_path / "store").as_uri())), "disk")
    outcome = told(staging, done)
    fault = outcome.fault
    assert fault is not None and fault.name == "notPublished" and not fault.data["passing"]
    assert outcome.has_rescued_files and classify(fault).recoverable, "somebody may see to it, and publish it later"


def test_an_element_is_borne_with_from_its_first_failure_on() -> None:
    now = 100.0
    trials = ElementRetries(lambda: now)
    element = away(5_000)
    assert trials.should_wait(KEY, element, "no answer")
    now = 104.9
    assert trials.should_wait(KEY, element, "no answer")
    now = 105.0
    assert not trials.should_wait(KEY, element, "no answer") and trials.should_wait(("c/2", 1), element, "no answer")
    trials.forget(KEY)
    assert trials.should_wait(KEY, element, "no answer"), "another attempt begins anew"
