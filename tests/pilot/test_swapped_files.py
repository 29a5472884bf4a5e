"""Somebody puts a link in place of a folder after the pilot has looked at it: neither is another file published for a
job, nor does another come to it as an input."""

import os
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import OutputPlacement, PlaceAnswer, Publication, StorageElement
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.allowed_transfers import bounds_of, transfer_check
from mendflow.pilot.isolation.options import Isolation
from mendflow.pilot.slot.messages import FinishedAttempt
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from tests.pilot.test_parts import Shelf
from tests.pilot.test_publishing import OnePlace

SECRET = b"of somebody else"


def swap(folder: Path, outside: Path) -> None:
    os.rename(folder, f"{folder}.away")
    os.symlink(outside, folder)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "out.dat").write_bytes(SECRET)
    return tmp_path / "outside"


class SwappedWhenAsked(OnePlace):
    """A server that takes long to say where a file goes: long enough for somebody to swap the job's folder."""

    def __init__(self, element: StorageElement, folder: Path, outside: Path) -> None:
        super().__init__(element)
        self._swapped = folder, outside

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        if not self._swapped[0].is_symlink():
            swap(*self._swapped)
        return super().place(job, files, avoid)


def kept(tmp_path: Path, catalogue: OnePlace, work_folder: WorkFolder) -> Outcome:
    staging = FileStager(work_folder, Shelf({}), catalogue=catalogue)
    publish = {"out": Publication(logical="/reco/out.dat", element="disk")}
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(exit_code=0)))
    done = FinishedAttempt(JobId("c/1"), 3, outcome, 1, {"out": "deep/out.dat"}, publish=publish)
    return msgspec.msgpack.decode(staging.keep(done, lambda: True), type=Outcome)


def made(tmp_path: Path) -> tuple[WorkFolder, Path, StorageElement]:
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    folder = Path(work_folder.attempt("c/1", 3), "deep")
    folder.mkdir(parents=True)
    (folder / "out.dat").write_bytes(b"made by the job!")
    (tmp_path / "store").mkdir()
    return work_folder, folder, StorageElement(name="disk", url=(tmp_path / "store").as_uri())


def test_a_link_that_comes_after_the_file_was_hashed_leads_nowhere(tmp_path: Path, outside: Path) -> None:  # SE-2
    work_folder, folder, storage = made(tmp_path)
    told = kept(tmp_path, SwappedWhenAsked(storage, folder, outside), work_folder)
    assert told.fault is not None and "leads out of the job's folder" in told.fault.message
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def test_what_is_published_is_the_file_that_was_opened(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-2
    work_folder, folder, storage = made(tmp_path)
    real = StorageClient._look

    def look(client: StorageClient, *arguments: object) -> object:
        if not folder.is_symlink():
            swap(folder, outside)
        return real(client, *arguments)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(StorageClient, "_look", look)
    told = kept(tmp_path, OnePlace(storage), work_folder)
    assert told.ok, told.fault
    assert (tmp_path / "store" / "reco" / "out.dat").read_bytes() == b"made by the job!"


def test_a_link_that_comes_after_a_shown_file_was_looked_at_brings_nothing_else(
    tmp_path: Path, outside: Path
) -> None:  # SE-2
    shown = tmp_path / "shown"
    (shown / "deep").mkdir(parents=True)
    (shown / "deep" / "out.dat").write_bytes(b"for everybody")
    isolation = Isolation(jobs_as="nobody", shown=(str(shown),))
    check, bounds = transfer_check(isolation), bounds_of(isolation)

    def swapped(address: str) -> str:
        found = bounds(address)
        swap(shown / "deep", outside)
        return found

    client = FileClient(ServerAddress("http://127.0.0.1:9", ""))
    target = tmp_path / "input"
    for how, address in ((bounds, f"file://{shown}/deep/out.dat"), (swapped, f"{shown}/deep/out.dat")):
        sources = InputSources(client, OpenElements(), check_transfer=check, bounds=how)
        try:
            sources.fetch(address, str(target), None)
        except (BadFileUrl, TransferFailed) as error:
            assert how is swapped and "by a link" in str(error)
        assert target.read_bytes() == b"for everybody"


def test_a_link_that_comes_between_two_looks_at_a_shown_file_brings_nothing(
    tmp_path: Path, outside: Path
) -> None:  # SE-2
    shown = tmp_path / "shown"
    (shown / "deep").mkdir(parents=True)
    (shown / "deep" / "out.dat").write_bytes(b"for everybody")
    isolation = Isolation(jobs_as="nobody", shown=(str(shown),))

    def swapped(address: str, writes: bool) -> str:
        found = transfer_check(isolation)(address, writes)
        swap(shown / "deep", outside)
        return found

    client = FileClient(ServerAddress("http://127.0.0.1:9", ""))
    sources = InputSources(client, OpenElements(), check_transfer=swapped, bounds=bounds_of(isolation))
    with pytest.raises(BadFileUrl, match="transfers no files of its own machine"):
        sources.fetch(f"{shown}/deep/out.dat", str(tmp_path / "input"), None)
    assert not (tmp_path / "input").exists()
