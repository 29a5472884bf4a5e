"""Jobs that hide, and jobs that turn against whoever watches them, while their watchers are killed or stopped."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.jobs import Resources
from mendflow.pilot.slot.deadline import Deadline
from mendflow.pilot.slot.lease import boot_ms
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.process_tags import list_unwatched, tag_of, tag_process
from tests.patience import PATIENCE_S
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import dead, pids_in
from tests.pilot.test_survival import guard_of, slots_of, waiting_command

Hire = Callable[..., Pilot]

HIDE = """\
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 1024)
open(sys.argv[1], "w").write(str(os.getpid()))
os.execve("/bin/sleep", ["sleep", "600"], {})
"""


def hidden(path: Path) -> str:
    """A process with a session of its own, no parent, no descriptors and no environment."""
    return f"{sys.executable} -c {shlex.quote(HIDE)} {path}; "


def bare(path: Path) -> str:
    """The command itself goes on without its environment."""
    return f"exec env -i sh -c 'echo $$ > {path}; exec sleep 600'"


async def test_when_a_slot_of_an_earlier_agent_is_killed_its_job_is_dead_before_that_is_told(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    pilot = hire()
    job = await server.shell(hidden(tmp_path / "h") + waiting_command(tmp_path))
    pids = await pids_in(server, tmp_path / "a", tmp_path / "h")
    starts = server.starts
    pilot.kill()
    pilot.restart()
    await server.until_next_agent_names(job, starts)
    (slot,) = slots_of(pilot)
    os.kill(slot, signal.SIGKILL)
    fault = (await server.outcome(job)).fault
    assert [pid for pid in pids if not dead(pid)] == []
    assert fault is not None and fault.name == "slotDied"
    (tmp_path / "go").touch()
    assert (await server.outcome(await server.shell("true"))).ok


@pytest.mark.full
async def test_without_agent_and_slot_even_a_job_that_cleared_its_environment_is_dead_before_its_lease_ends(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    server.ledger.lease_ms = 10_000
    pilot = hire()
    job = await server.shell(hidden(tmp_path / "h") + bare(tmp_path / "a"))
    pids = await pids_in(server, tmp_path / "a", tmp_path / "h")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    for pid in [pilot.process.pid, *slots_of(pilot)]:
        os.kill(pid, signal.SIGKILL)
    await server.until(lambda: all(dead(pid) for pid in pids), "all processes to be dead")
    assert time.monotonic() < server.ledger.lease_end, "they were dead only after the lease had ended"
    await server.until(lambda: guard_of(pilot) == 0, "the guard to end, having nothing to guard")


@pytest.mark.full
async def test_what_cleared_its_environment_is_killed_by_the_next_agent(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(hidden(tmp_path / "h") + bare(tmp_path / "a"))
    pids = await pids_in(server, tmp_path / "a", tmp_path / "h")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    for pid in [guard_of(pilot), pilot.process.pid, *slots_of(pilot)]:
        os.kill(pid, signal.SIGKILL)
    pilot.process.wait()
    pilot.restart()
    await server.until(lambda: server.ledger.fences[job] == 2, "the job to be granted anew")
    assert all(dead(pid) for pid in pids)


async def test_without_agent_slot_and_guard_a_job_is_dead_at_once(server: Server, hire: Hire, tmp_path: Path) -> None:
    server.ledger.lease_ms = 120_000
    pilot = hire(slots=2)
    job = await server.shell(f"sleep 600 & echo $! > {tmp_path}/c; " + bare(tmp_path / "a"))
    call = await server.call(
        "import os, subprocess\n"
        "def f(folder):\n"
        "  child = subprocess.Popen(['sleep', '600'], env={})\n"
        "  open(folder + '/d', 'w').write(str(child.pid))\n"
        "  open(folder + '/b', 'w').write(str(os.getpid()))\n"
        "  child.wait()\n",
        "f",
        str(tmp_path),
    )
    pids = await pids_in(server, *(tmp_path / name for name in "abcd"))
    await server.until(lambda: {job, call} <= set(server.ledger.beats), "both to be named")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    watchers = [pilot.process.pid, guard_of(pilot), *slots_of(pilot)]
    for how in (signal.SIGSTOP, signal.SIGKILL):  # so that none of them sees another die
        for pid in watchers:
            os.kill(pid, how)
    await server.until(lambda: all(dead(pid) for pid in pids), "all processes to be dead")
    assert time.monotonic() < server.ledger.lease_end


@pytest.mark.full
async def test_when_agent_slot_and_guard_are_all_stopped_a_job_is_dead_before_its_lease_ends(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    server.ledger.lease_ms = 10_000
    pilot = hire()
    job = await server.shell(f"sleep 600 & echo $! > {tmp_path}/c; " + bare(tmp_path / "a"))
    pids = await pids_in(server, tmp_path / "a", tmp_path / "c")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    stop_fault = [pilot.process.pid, guard_of(pilot), *slots_of(pilot)]
    for pid in stop_fault:
        os.kill(pid, signal.SIGSTOP)
    await server.until(lambda: all(dead(pid) for pid in pids), "all processes to be dead")
    assert time.monotonic() < server.ledger.lease_end, "they were dead only after the lease had ended"
    for pid in stop_fault[:2]:
        os.kill(pid, signal.SIGCONT)
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.name == "leaseEnded"


@pytest.mark.full
async def test_a_call_whose_whole_pilot_is_stopped_in_its_first_moment_never_goes_on_after_its_lease(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7: law 3
    server.ledger.lease_ms = 4_500
    pilot = hire()
    source = (
        "import os, signal\n"
        "def f(folder, watchers):\n"
        "  for pid in watchers:\n"
        "    os.kill(pid, signal.SIGSTOP)\n"
        "  open(folder + '/began', 'w').write(str(os.getpid()))\n"
        "  os.kill(os.getpid(), signal.SIGSTOP)\n"
        "  open(folder + '/went-on', 'w').write('')\n"
    )
    assert (await server.outcome(await server.call(source, "f", str(tmp_path / "nowhere"), []))).fault is not None
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    stop_fault = [pilot.process.pid, guard_of(pilot), *slots_of(pilot)]
    await server.call(source, "f", str(tmp_path), stop_fault)
    (worker,) = await pids_in(server, tmp_path / "began")
    await server.until(lambda: time.monotonic() > server.ledger.lease_end, "the lease to end")
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGCONT)
    await asyncio.sleep(0.3)
    for pid in stop_fault[:2]:
        os.kill(pid, signal.SIGCONT)
    assert not (tmp_path / "went-on").exists(), "it ran on when somebody else may have had it"


async def test_a_job_that_stops_its_slot_is_still_held_to_its_time(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    job = await server.shell("kill -STOP $PPID; sleep 600", resources=Resources(wall_ms=1_000))
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.category is Category.TIME
    assert (await server.outcome(await server.shell("true"))).ok


@pytest.mark.full
async def test_a_job_that_stops_its_slot_again_and_again_dies_with_it_and_the_slot_is_replaced(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(f"echo $$ > {tmp_path}/a; while kill -STOP $PPID; do sleep 0.1; done")
    (pid,) = await pids_in(server, tmp_path / "a")
    (slot,) = slots_of(pilot)
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.name == "slotDied" and dead(pid) and dead(slot)
    assert (await server.outcome(await server.shell("true"))).ok


async def test_a_slot_that_was_stopped_is_adopted_by_the_next_agent(server: Server, hire: Hire, tmp_path: Path) -> None:
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    (slot,) = slots_of(pilot)
    pilot.kill()
    os.kill(slot, signal.SIGSTOP)
    pilot.restart()
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok
    assert server.ledger.accepted_fences[job] == [1]


def test_a_sign_bounds_nothing_and_is_told_apart(tmp_path: Path) -> None:
    assert tag_of("one") != tag_of("two")
    pilot = f"pilot-{os.getpid()}"
    child = os.posix_spawn("/bin/sleep", ["sleep", "600"], {}, setsid=True)
    try:
        assert child not in list_unwatched(pilot, frozenset())
        tag_process(child, pilot)
        assert list_unwatched(pilot, frozenset()) == [child]
        assert list_unwatched(pilot, {child}) == list_unwatched(pilot, frozenset(), {child}) == []
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_deadline_is_kept_by_the_kernel_while_a_process_stands_still() -> None:
    child = os.fork()
    if not child:
        Deadline().move(boot_ms() + 50)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    end = time.monotonic() + PATIENCE_S
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGCONT)
        os.waitpid(child, 0)
    assert os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) == signal.SIGKILL
    spared = os.fork()
    if not spared:
        deadline = Deadline()
        deadline.move(boot_ms() + 50)
        deadline.move(0)
        time.sleep(0.2)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(spared, 0)[1]) == 7


@pytest.mark.parametrize("times", [1, 2])
def test_a_leash_holds_one_group_at_a_time(times: int) -> None:
    """In a process of its own, which holds one group after another and dies; only the last is held."""
    read, write = os.pipe()
    holder = os.fork()
    if not holder:
        parent_death = KillOnParentDeath()
        for _ in range(times):
            group = os.posix_spawn(
                "/bin/sleep", ["sleep", "600"], {}, setsid=True, file_actions=parent_death.file_actions()
            )
            parent_death.hold(group)
            os.write(write, b"%d " % group)
        os._exit(0)
    os.waitpid(holder, 0)
    *others, last = map(int, os.read(read, 100).split())
    os.close(read)
    os.close(write)
    end = time.monotonic() + PATIENCE_S
    while not dead(last):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not any(dead(pid) for pid in others)
    for pid in others:
        os.kill(pid, signal.SIGKILL)
