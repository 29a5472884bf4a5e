"""A disk that is full for all processes of a pilot. They are told so by what stands in the place of the system."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import JobId
from tests.patience import PATIENCE_S
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import dead, pids_in
from tests.pilot.test_survival import slots_of, waiting_command

Hire = Callable[..., Pilot]

FULL = """\
import errno, os, pathlib

FULL = {mark!r}
statvfs, write_bytes = os.statvfs, pathlib.Path.write_bytes


def told(path):
    found = list(statvfs(path))
    if os.path.exists(FULL):
        found[3] = found[4] = 0
    return os.statvfs_result(found)


def written(path, content):
    if os.path.exists(FULL):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return write_bytes(path, content)


os.statvfs, pathlib.Path.write_bytes = told, written
"""


class Disk:
    """While a file of this name exists, the disk has no room."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def fill(self) -> None:
        self.mark.touch()

    def clear(self) -> None:
        self.mark.unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    mark = tmp_path / "full"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FULL.format(mark=str(mark)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    return Disk(mark)


async def ended_alone(server: Server, pilot: Pilot, disk: Disk, folder: Path) -> tuple[JobId, int]:
    """A job that ends while the disk is full and its agent is dead; its slot."""
    job = await server.shell(waiting_command(folder))
    (pid,) = await pids_in(server, folder / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    (slot,) = slots_of(pilot)
    pilot.kill()
    disk.fill()
    (folder / "go").touch()
    await server.until(lambda: dead(pid), "the job to end")
    return job, slot


@pytest.mark.full
async def test_a_slot_waits_with_a_result_until_it_can_be_written(
    server: Server, hire: Hire, disk: Disk, tmp_path: Path
) -> None:
    pilot = hire()
    job, slot = await ended_alone(server, pilot, disk, tmp_path)
    await asyncio.sleep(1.0)  # it looks more often than that whether it is needed
    assert not dead(slot)
    disk.clear()
    await server.until(lambda: dead(slot), "the slot to end")
    pilot.restart()
    assert (await server.outcome(job)).ok
    assert (tmp_path / "a.starts").read_text() == "start\n"


@pytest.mark.full
async def test_a_pilot_comes_back_to_its_slots_on_a_full_disk_and_takes_no_new_job_there(
    server: Server, hire: Hire, disk: Disk, tmp_path: Path
) -> None:
    pilot = hire()
    job, slot = await ended_alone(server, pilot, disk, tmp_path)
    last = server.ledger.requests[-1]
    pilot.restart()
    assert (await server.outcome(job)).ok
    assert (tmp_path / "a.starts").read_text() == "start\n" and not dead(slot)
    new = server.ledger.requests[-1]
    assert new.pilot == last.pilot and new.serial > last.serial and new.want == 0
    waiting = await server.shell("true")
    seen = len(server.ledger.requests)
    await server.until(lambda: len(server.ledger.requests) > seen + 1, "further exchanges")
    assert waiting in server.ledger.waiting
    disk.clear()
    assert (await server.outcome(waiting)).ok
    assert await asyncio.to_thread(pilot.end) == 0
    assert pilot.process.stderr is not None
    said = pilot.process.stderr.read().decode()
    assert "no new job is taken" in said and "there is enough disk again" in said


async def test_a_pilot_that_has_nothing_here_does_not_begin_on_a_full_disk(
    server: Server, hire: Hire, disk: Disk
) -> None:
    disk.fill()
    pilot = hire()
    assert await asyncio.to_thread(pilot.process.wait, PATIENCE_S) == 3
    (request,) = server.ledger.requests
    assert "No space left" in request.unfit and request.leaving and not request.want


@pytest.mark.full
@pytest.mark.parametrize("own", [True, False])
async def test_a_full_disk_is_the_fault_of_the_job_that_filled_it_and_else_of_the_place(
    server: Server, hire: Hire, disk: Disk, own: bool
) -> None:
    hire(slots=2)
    much = 17 << 20 if own else 4096
    command = f"head -c {much} /dev/urandom > part; mkdir -p deep/er; mv part deep/er; touch {disk.mark}; exit 1"
    source = (
        "import os\n"
        "def f(much, mark):\n"
        "  open('part', 'wb').write(os.urandom(much))\n"
        "  open(mark, 'w').close()\n"
        "  raise OSError(28, 'No space left on device')\n"
    )
    for submitted in (server.shell(command), server.call(source, "f", much, str(disk.mark))):  # one after the other
        fault = (await server.outcome(await submitted)).fault
        assert fault is not None
        assert (fault.category, fault.infrastructure) == (
            (Category.JOB, False) if own else (Category.RESOURCE, True)
        ), fault.message
        disk.clear()
