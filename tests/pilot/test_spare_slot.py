"""A slot process that is started before its pilot knows its work folder."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from mendflow.pilot.agent.slot_link import SlotLink, end_slot, start_slot
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.process_tags import find_slots
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.spare import MODULE, OPTION, SpareSlot
from mendflow.pilot.standby import StandbyPilot
from tests.pilot.conftest import Server
from tests.pilot.test_limits import dead, pids_in
from tests.pilot.test_survival import Hire, command_line, waiting_command


def made_folder(path: Path) -> WorkFolder:
    folder = WorkFolder(path)
    folder.make()
    return folder


def new_link() -> SlotLink:
    return SlotLink(0, lambda *_: None, lambda *_: None)


def is_spare(pid: int) -> bool:
    return OPTION.encode() in command_line(pid).split(b"\0")


async def test_it_is_a_slot_of_the_pilot_that_stood_by_and_its_job_outlives_a_killed_agent(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    standby, work = StandbyPilot(), tmp_path / "work"
    standby.start()
    options = ["--server", server.url, "--work", str(work), "--jobs", "1"]
    first = standby.take(options, {}, tmp_path / "log")
    assert first is not None
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    (slot,) = find_slots(str(work))
    assert is_spare(slot)
    await server.until(lambda: job in server.ledger.beats, "the job to be named")
    first.kill()
    first.wait()
    assert find_slots(str(work)) == {slot} and not dead(pid), "the job goes on without its agent"
    hire()
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok
    assert (tmp_path / "a.starts").read_text() == "start\n"


async def test_one_that_has_died_is_replaced_by_a_new_slot(tmp_path: Path) -> None:
    folder, spare, link = made_folder(tmp_path), SpareSlot(dict(os.environ)), new_link()
    spare.drop()
    await start_slot(link, folder, pilot="p", settings=SlotSettings(), spare=spare)
    assert await link.hello_received
    assert not is_spare(link.pid)
    await end_slot(link, 20)


async def test_it_gets_the_pilots_name_and_writes_where_the_pilot_does(tmp_path: Path) -> None:
    folder, spare, link = made_folder(tmp_path), SpareSlot(dict(os.environ)), new_link()
    await start_slot(link, folder, pilot="p", settings=SlotSettings(), spare=spare)
    assert await link.hello_received
    assert is_spare(link.pid) and find_slots(str(tmp_path)) == {link.pid}
    assert [os.readlink(f"/proc/{link.pid}/fd/{each}") for each in (1, 2)] == [
        os.readlink(f"/proc/self/fd/{each}") for each in (1, 2)
    ]
    await end_slot(link, 20)
    assert not find_slots(str(tmp_path))


def test_it_ends_with_the_pilot_that_stood_by(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        spare = subprocess.Popen([sys.executable, "-m", MODULE, OPTION], stdin=theirs.fileno(), cwd=tmp_path)
    ours.close()
    assert spare.wait() == 0
    assert not list(tmp_path.iterdir())


async def test_a_slot_that_has_not_loaded_yet_is_not_waited_for_at_the_end(tmp_path: Path) -> None:
    folder, link = made_folder(tmp_path), new_link()
    await start_slot(link, folder, pilot="p", settings=SlotSettings())
    assert link.process is not None
    os.kill(link.process.pid, signal.SIGSTOP)
    await end_slot(link, 3_600)
    assert link.process.returncode == -signal.SIGKILL
