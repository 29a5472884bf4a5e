"""What becomes of jobs when their pilot is killed, or their server is away. The lease decides, and nothing else."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.jobs import Resources
from tests.patience import PATIENCE_S
from tests.pilot.conftest import Pilot, Server
from tests.pilot.processes import living, state
from tests.pilot.test_limits import dead, pids_in

Hire = Callable[..., Pilot]


def waiting_command(folder: Path, name: str = "a") -> str:
    """Counts its own starts, and ends when told."""
    return (
        f"echo start >> {folder}/{name}.starts; echo $$ > {folder}/{name};"
        f"while [ ! -e {folder}/go ]; do sleep 0.02; done; echo finished"
    )


async def test_a_job_that_ran_on_while_its_pilot_was_restarted_is_credited(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    starts = server.starts
    pilot.kill()
    assert not dead(pid), "the job goes on without its agent"
    pilot.restart()
    await server.until_next_agent_names(job, starts)
    (tmp_path / "go").touch()
    outcome = await server.outcome(job)
    assert outcome.ok and outcome.log_tail == "finished\n"
    assert (tmp_path / "a.starts").read_text() == "start\n"
    assert server.ledger.accepted_fences[job] == [1]


async def test_a_job_that_ended_while_its_pilot_was_dead_is_credited(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    pilot = hire(slots=2)
    command = waiting_command(tmp_path) + "; echo made > out.txt"
    shell = await server.shell(command, files={"out": "out.txt"})
    source = (
        "import os, time\n"
        "def f(folder):\n"
        "  open(folder + '/b', 'w').write(str(os.getpid()))\n"
        "  while not os.path.exists(folder + '/go'): time.sleep(0.01)\n"
        "  return 'made'\n"
    )
    function = await server.call(source, "f", str(tmp_path))
    pids = await pids_in(server, tmp_path / "a", tmp_path / "b")
    await server.until(lambda: {shell, function} <= set(server.ledger.beats), "both to be named")
    pilot.kill()
    (tmp_path / "go").touch()
    await server.until(lambda: all(dead(pid) for pid in pids) and not pilot.pids(), "the jobs and their slots to end")
    pilot.restart()
    one, two = await server.outcome(shell), await server.outcome(function)
    assert server.ledger.files[one.files["out"].sha256] == b"made\n"
    assert two.outputs == "made"
    assert server.ledger.accepted_fences == {shell: [1], function: [1]}
    await server.until(lambda: not list((pilot.work / "results").iterdir()), "the results to be put away")


async def test_without_an_agent_a_job_is_dead_before_its_lease_ends(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    server.ledger.lease_ms = 6_000
    pilot = hire(slots=2)
    hidden = f"setsid sh -c '(setsid sh -c \"echo \\$\\$ > {tmp_path}/h; exec sleep 600\" &)';"
    await server.shell(hidden + waiting_command(tmp_path))
    await server.call(
        "import os, time\ndef f(p): open(p, 'w').write(str(os.getpid())); time.sleep(600)", "f", f"{tmp_path}/b"
    )
    pids = await pids_in(server, tmp_path / "a", tmp_path / "b", tmp_path / "h")
    await server.until(lambda: len(server.ledger.beats) == 2, "both to be named")
    pilot.kill()
    await server.until(lambda: all(dead(pid) for pid in pids), "all processes to be dead")
    assert time.monotonic() < server.ledger.lease_end, "they were dead only after the lease had ended"
    await server.until(lambda: not pilot.pids(), "the slots to end as well")


def slots_of(pilot: Pilot) -> list[int]:
    return [pid for pid in pilot.pids() if b"mendflow.pilot.slot.process" in command_line(pid)]


def guard_of(pilot: Pilot) -> int:
    """The one guard of the pilot's work folder; 0 if there is none."""
    wanted = [b"mendflow.pilot.slot.guard", os.fsencode(pilot.work)]
    found = [pid for pid in living() if command_line(pid).split(b"\0")[3:5] == wanted]
    assert len(found) <= 1
    return found[0] if found else 0


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_without_agent_and_slot_a_job_is_dead_before_its_lease_ends(
    server: Server, hire: Hire, tmp_path: Path, how: signal.Signals
) -> None:  # JS-7
    server.ledger.lease_ms = 10_000
    pilot = hire(slots=2)
    hidden = f"env -i setsid sh -c 'echo $$ > {tmp_path}/h; exec sleep 600' &"
    shell = await server.shell(hidden + waiting_command(tmp_path))
    await server.call(
        "import os, time\ndef f(p): open(p, 'w').write(str(os.getpid())); time.sleep(600)", "f", f"{tmp_path}/b"
    )
    pids = await pids_in(server, tmp_path / "a", tmp_path / "b", tmp_path / "h")
    await server.until(lambda: len(server.ledger.beats) == 2, "both to be named")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    stop_fault = [pilot.process.pid, *slots_of(pilot)]
    for pid in stop_fault:
        os.kill(pid, how)
    await server.until(lambda: all(dead(pid) for pid in pids), "all processes to be dead")
    assert time.monotonic() < server.ledger.lease_end, "they were dead only after the lease had ended"
    if how is signal.SIGKILL:
        await server.until(lambda: guard_of(pilot) == 0, "the guard to end, having nothing to guard")
        return
    for pid in stop_fault:
        with contextlib.suppress(ProcessLookupError):  # the kernel may have killed a slot, and its agent goes on first
            os.kill(pid, signal.SIGCONT)
    fault = (await server.outcome(shell)).fault
    # The guard comes first, unless it gets the processor later than the kernel's timer of the slot.
    assert fault is not None and fault.name in ("leaseEnded", "slotDied")


@pytest.mark.full
async def test_a_guard_is_taken_over_by_the_next_agent_replaced_when_killed_and_ends_with_the_pilot(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.until(lambda: guard_of(pilot) > 0, "the guard")
    first = guard_of(pilot)
    pilot.kill()
    said = len(server.ledger.requests)
    pilot.restart()
    await server.until(lambda: len(server.ledger.requests) > said, "the next agent, before there is nothing to guard")
    (tmp_path / "go").touch()
    assert (await server.outcome(await server.shell("true"))).ok
    assert guard_of(pilot) == first
    os.kill(first, signal.SIGKILL)
    await server.until(lambda: guard_of(pilot) not in (0, first), "another guard")
    assert await asyncio.to_thread(pilot.end) == 0
    assert guard_of(pilot) == 0


@pytest.mark.full
async def test_a_result_whose_lease_passed_is_still_reported_and_the_server_decides(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    server.ledger.lease_ms = 4_500
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    pilot.kill()
    await server.until(lambda: not pilot.pids(), "the slot to give up")
    pilot.restart()
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.infrastructure and fault.name == "leaseEnded"


async def test_attempts_that_died_with_all_their_processes_are_not_named_any_more(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    everything = [pilot.process.pid, *pilot.pids()]
    for pid in everything:
        with contextlib.suppress(ProcessLookupError):  # what the job runs comes and goes
            os.kill(pid, signal.SIGKILL)
    pilot.process.wait()
    pilot.restart()
    await server.until(lambda: server.ledger.fences[job] == 2, "the job to be granted anew")
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok
    assert (tmp_path / "a.starts").read_text() == "start\nstart\n"


async def test_jobs_of_dead_slots_are_killed_by_the_next_agent(server: Server, hire: Hire, tmp_path: Path) -> None:
    pilot = hire()
    await server.shell(waiting_command(tmp_path))
    (job_pid,) = await pids_in(server, tmp_path / "a")
    pilot.kill()
    for pid in pilot.pids():
        if b"mendflow.pilot.slot.process" in command_line(pid):
            os.kill(pid, signal.SIGKILL)
    pilot.restart()
    await server.until(lambda: dead(job_pid), "the orphan to be killed")
    (tmp_path / "go").touch()


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_slot_that_is_killed_takes_its_job_with_it_and_is_replaced(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    (job_pid,) = await pids_in(server, tmp_path / "a")
    for pid in pilot.pids():
        if b"mendflow.pilot.slot.process" in command_line(pid):
            os.kill(pid, signal.SIGKILL)
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.category is Category.RESOURCE
    assert dead(job_pid)
    (tmp_path / "go").touch()
    assert (await server.outcome(await server.shell("true"))).ok


async def test_a_job_goes_on_while_the_server_is_away_and_is_reported_after(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    hire()
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.down()
    (tmp_path / "go").touch()
    await server.until(lambda: dead(pid), "the job to end while the server is away")
    await server.up()
    assert (await server.outcome(job)).ok
    assert server.ledger.accepted_fences[job] == [1]


@pytest.mark.full
async def test_a_server_away_for_longer_than_the_lease_costs_the_job(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    server.ledger.lease_ms = 4_500
    hire()
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    await server.down()
    await server.until(lambda: dead(pid), "the job to be killed")
    assert time.monotonic() < server.ledger.lease_end
    await server.up()
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.name == "leaseEnded"


async def test_an_attempt_that_the_server_has_given_to_another_is_killed_at_once(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    hire()
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    del server.ledger.grants[job]
    async with server.changed:
        server.changed.notify_all()
    await server.until(lambda: dead(pid), "the lost attempt to be killed")
    other = await server.shell("true")
    assert (await server.outcome(other)).ok
    assert job not in server.ledger.outcomes


async def test_a_newer_attempt_of_the_same_job_starts_only_when_the_older_is_dead(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire(slots=2)
    alone = f"mkdir {tmp_path}/alone || exit 9; trap 'rmdir {tmp_path}/alone' EXIT;"
    job = await server.shell(alone + waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    async with server.changed:
        server.ledger.lapse(job)
        (tmp_path / "alone").rmdir()
        server.changed.notify_all()
    await server.until(lambda: dead(pid), "the older attempt to be killed")
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok
    assert server.ledger.accepted_fences[job] == [2]


@pytest.mark.full
async def test_killing_the_agent_again_and_again_loses_and_repeats_nothing_that_was_running(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # JS-7
    pilot = hire(slots=2)
    jobs = [
        await server.shell(f"echo {number} >> {tmp_path}/starts; sleep 0.2; echo {number} >> {tmp_path}/ends")
        for number in range(12)
    ]
    for _ in range(4):
        await asyncio.sleep(0.25)  # in the middle of things, wherever that is
        pilot.kill()
        pilot.restart()
    for job in jobs:
        assert (await server.outcome(job)).ok
    starts = (tmp_path / "starts").read_text().split()
    assert sorted(starts) == sorted((tmp_path / "ends").read_text().split()), "what was started was let to end"
    assert all(len(fences) == 1 for fences in server.ledger.accepted_fences.values())


async def test_only_one_agent_may_have_a_folder(server: Server, hire: Hire, tmp_path: Path) -> None:
    first = hire()
    assert (await server.outcome(await server.shell("true"))).ok
    second = hire()
    assert await asyncio.to_thread(second.process.wait, PATIENCE_S) == 3
    assert second.process.stderr is not None
    assert f"process {first.process.pid}" in second.process.stderr.read().decode()
    assert (await server.outcome(await server.shell("true"))).ok


async def test_a_pilot_keeps_its_name_over_restarts_and_its_serials_grow(server: Server, hire: Hire) -> None:
    pilot = hire()
    await server.until(lambda: bool(server.ledger.requests), "the first request")
    pilot.kill()
    last = server.ledger.requests[-1]
    pilot.restart()
    await server.until(lambda: server.ledger.requests[-1] is not last, "a request of the new agent")
    new = server.ledger.requests[-1]
    assert new.pilot == last.pilot and new.serial > last.serial


async def test_a_pilot_told_to_leave_lets_running_jobs_end_and_gives_the_others_back(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    waiting = await server.shell("true", resources=Resources(cpus=64))
    pilot.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.1)
    (tmp_path / "go").touch()
    assert await asyncio.to_thread(pilot.process.wait, PATIENCE_S) == 0
    assert server.ledger.outcomes[job].ok
    assert waiting in server.ledger.waiting and not pilot.pids()
    assert server.ledger.requests[-1].leaving and server.ledger.requests[-1].leaves == "told"


async def test_a_pilot_that_must_leave_now_gives_its_running_job_up(server: Server, hire: Hire, tmp_path: Path) -> None:
    pilot = hire("--grace-ms", "100")
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    assert await asyncio.to_thread(pilot.end) == 0
    assert dead(pid) and not pilot.pids()
    assert job in server.ledger.waiting, "the server learns at once that the job is free again"


@pytest.mark.full
async def test_a_pilot_leaves_when_it_has_nothing_to_do_or_its_time_is_over(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    idle = hire("--idle-exit-ms", "200", work=tmp_path / "one")
    aged = hire("--ttl-ms", "300", work=tmp_path / "two")
    assert await asyncio.to_thread(idle.process.wait, PATIENCE_S) == 0
    assert await asyncio.to_thread(aged.process.wait, PATIENCE_S) == 0
    ttls = [request.ttl_ms for request in server.ledger.requests if request.ttl_ms]
    assert ttls and max(ttls) <= 300
    assert {request.leaves for request in server.ledger.requests if request.leaving} == {"idle", "time"}


async def test_a_server_can_want_a_pilot_to_leave_when_it_has_no_job(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    server.ledger.idle_exit_ms = 200
    later = await server.shell("true")
    (tmp_path / "go").touch()
    assert await asyncio.to_thread(pilot.process.wait, PATIENCE_S) == 0
    assert server.ledger.outcomes[job].ok and server.ledger.outcomes[later].ok, "only then"
    assert server.ledger.requests[-1].leaves == "idle"


async def test_a_pilot_that_cannot_work_here_says_why_and_takes_no_job(server: Server, tmp_path: Path) -> None:  # PJ-2
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "mendflow.pilot", "--server", server.url, "--work", str(tmp_path / "file" / "x")]
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 3 and b"cannot be written to" in ended.stderr
    assert ["cannot be written to" in request.unfit for request in server.ledger.requests] == [True]
    assert server.ledger.requests[0].want == 0


@pytest.mark.full
async def test_a_server_that_wants_a_token_gets_it_or_ends_the_pilot(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    server.ledger.token = "sesame"
    stranger = hire(work=tmp_path / "one")
    assert await asyncio.to_thread(stranger.process.wait, PATIENCE_S) == 4
    hire("--token", "sesame", work=tmp_path / "two")
    outcome = await server.outcome(await server.shell("env; cat /proc/$PPID/cmdline"))
    assert outcome.ok and "sesame" not in outcome.log_tail


async def test_a_stopped_job_too_is_killed_before_its_lease_ends(server: Server, hire: Hire, tmp_path: Path) -> None:
    server.ledger.lease_ms = 4_500
    pilot = hire()
    job = await server.shell(waiting_command(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    os.kill(pid, signal.SIGSTOP)
    await server.until(lambda: state(pid) == "T", "it to stand still")
    pilot.kill()
    await server.until(lambda: dead(pid) and not pilot.pids(), "everything to be gone")
