"""Files that a job takes to URLs of its own: whole, and over what is there only if it may."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import Publication
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Limits, Outcome
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.messages import FinishedAttempt
from mendflow.transfer.errors import WriterSuperseded
from mendflow.transfer.file_systems import options_from_url
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_parts import Shelf

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


def keep(
    folder: Path, target: str, *, overwrite: bool = True, may_rename: bool = True, made: bytes = b"made"
) -> Outcome:
    work_folder = WorkFolder(folder / "work")
    work_folder.make()
    staging = FileStager(work_folder, Shelf({}))
    os.makedirs(work_folder.attempt("c/1", 3), exist_ok=True)
    Path(work_folder.attempt("c/1", 3), "out.dat").write_bytes(made)
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(exit_code=0)))
    publish = {"out": Publication(url=target, overwrite=overwrite)}
    done = FinishedAttempt(JobId("c/1"), 3, outcome, 1, {"out": "out.dat"}, publish=publish)
    return msgspec.msgpack.decode(staging.keep(done, lambda: may_rename), type=Outcome)


def test_a_file_is_taken_to_its_url_and_not_into_keeping(tmp_path: Path) -> None:  # FM-2
    told = keep(tmp_path, f"file://{tmp_path}/far/away/out.dat")
    assert told.ok and told.files == {}
    assert (tmp_path / "far/away/out.dat").read_bytes() == b"made"
    assert os.listdir(tmp_path / "far/away") == ["out.dat"]


def test_what_lies_there_is_replaced_only_if_it_may_be(tmp_path: Path) -> None:  # FM-2
    target = tmp_path / "out.dat"
    target.write_bytes(b"precious")
    told = keep(tmp_path, target.as_uri(), overwrite=False)
    assert told.fault is not None and (told.fault.name, told.fault.category) == ("notPublished", Category.OUTPUT)
    assert "another file lies at" in told.fault.message and target.read_bytes() == b"precious"
    assert keep(tmp_path, target.as_uri()).ok and target.read_bytes() == b"made"
    assert keep(tmp_path, target.as_uri(), overwrite=False).ok, "an attempt that is repeated finds its own file there"


def test_a_file_gets_its_name_only_as_long_as_the_job_is_ours(tmp_path: Path) -> None:  # JS-7
    with pytest.raises(WriterSuperseded):
        keep(tmp_path, f"file://{tmp_path}/out.dat", may_rename=False)
    assert not (tmp_path / "out.dat").exists()


def test_no_password_is_told_when_a_place_is_not_reached(tmp_path: Path) -> None:
    told = keep(tmp_path, f"webdav://me:s3cret@127.0.0.1:1/{tmp_path.name}")
    assert told.fault is not None and "s3cret" not in str(told.fault)


@ONE_LOOP
async def test_a_pilot_takes_a_file_away_and_fails_for_one_that_is_missing(
    staffed: Server, tmp_path: Path
) -> None:  # FM-2
    publish = {"out": Publication(url=(tmp_path / "there").as_uri())}
    for command, well in (("echo made > out.dat", True), (":", False)):
        spec = JobSpec(item=ItemId("i"), command=command, files={"out": "out.dat"}, publish=publish)
        outcome = await staffed.outcome(await staffed.submit(spec))
        assert outcome.ok is well and outcome.files == {}
        if outcome.fault is not None:
            assert outcome.fault.name == "missingOutput"
    assert (tmp_path / "there").read_text() == "made\n"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://me:p%40ss@host:2121/a/b", {"host": "host", "port": 2121, "username": "me", "password": "p@ss"}),
        ("ftp://host/a", {"host": "host"}),
        ("s3://bucket/a", {}),
        ("http://me:pass@host/a", {}),
    ],
)
def test_a_url_says_which_machine_to_speak_to_and_as_whom(url: str, said: dict[str, object]) -> None:
    assert options_from_url(url.partition(":")[0], url) == said


LIMITS = Limits(
    cpu_ms=7_500, stack_bytes=4 << 20, data_bytes=1 << 30, locked_bytes=32 << 10, virtual_bytes=8 << 30, core_bytes=0
)


@ONE_LOOP
async def test_a_command_runs_within_all_its_limits(staffed: Server) -> None:  # FM-2
    command = "for each in t s d l v c; do ulimit -$each; done"
    outcome = await staffed.outcome(await staffed.shell(command, limits=LIMITS))
    assert outcome.log_tail.split() == ["8", "4096", "1048576", "32", "8388608", "0"]


@ONE_LOOP
async def test_a_function_runs_within_all_its_limits_and_the_next_one_without(staffed: Server) -> None:
    source = (
        "import resource as r\n"
        "def f(): return [r.getrlimit(k)[0] for k in (r.RLIMIT_STACK, r.RLIMIT_DATA, r.RLIMIT_AS, r.RLIMIT_CORE)]"
    )
    before = (await staffed.outcome(await staffed.call(source, "f"))).outputs
    within = (await staffed.outcome(await staffed.call(source, "f", limits=LIMITS))).outputs
    assert within == [4 << 20, 1 << 30, 8 << 30, 0]
    assert (await staffed.outcome(await staffed.call(source, "f"))).outputs == before != within


@pytest.mark.full
@ONE_LOOP
async def test_a_command_that_computes_for_too_long_is_ended(staffed: Server) -> None:
    spin = await staffed.shell("while :; do :; done", limits=Limits(cpu_ms=1_000))
    fault = (await staffed.outcome(spin)).fault
    assert fault is not None and fault.signal is not None
