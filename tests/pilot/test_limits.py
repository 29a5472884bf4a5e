"""What a job may not do, and what may be done to a job."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import AttemptControl
from tests.patience import until
from tests.pilot.conftest import Pilot, Server
from tests.pilot.processes import living, state

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")
MB = 1 << 20


def dead(pid: int) -> bool:
    return state(pid) in ("", "Z")


def stands_still(pid: int) -> bool:
    """Stopped, or waiting without end for a stopped child that it shares its memory with."""
    return state(pid) in ("T", "D")


def peak_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


async def pids_in(server: Server, *paths: Path) -> list[int]:
    """Pids that jobs write, when all are there."""
    await server.until(lambda: all(path.exists() and path.read_text().strip() for path in paths), "pids")
    return [int(path.read_text()) for path in paths]


@pytest.mark.full
async def test_a_command_over_its_wall_time_is_killed_with_all_it_started(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire()
    command = f"sleep 600 & echo $! > {tmp_path}/pid; echo begun; sleep 600"
    fault = (await server.outcome(await server.shell(command, resources=Resources(wall_ms=300)))).fault
    assert fault is not None and fault.category is Category.TIME and fault.log_tail == "begun\n"
    assert dead((await pids_in(server, tmp_path / "pid"))[0])


@pytest.mark.full
@ONE_LOOP
async def test_a_function_over_its_wall_time_is_killed_and_the_next_one_runs(staffed: Server) -> None:
    source = "import time\ndef f(s): print('begun'); time.sleep(s); return 'slept'"
    fault = (await staffed.outcome(await staffed.call(source, "f", 600, resources=Resources(wall_ms=2_000)))).fault
    assert fault is not None and fault.category is Category.TIME and fault.log_tail == "begun\n"
    assert (await staffed.outcome(await staffed.call(source, "f", 0))).outputs == "slept"


@ONE_LOOP
async def test_a_command_over_its_memory_is_killed(staffed: Server) -> None:
    hog = "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(600)'"
    fault = (await staffed.outcome(await staffed.shell(hog, resources=Resources(memory_bytes=100 * MB)))).fault
    assert fault is not None and fault.category is Category.MEMORY and "100 MiB" in fault.message


@pytest.mark.full
@ONE_LOOP
async def test_a_function_over_its_memory_is_killed(staffed: Server) -> None:
    source = "import time\ndef f(): x = bytearray(300 << 20); time.sleep(600)"
    outcome = await staffed.outcome(await staffed.call(source, "f", resources=Resources(memory_bytes=150 * MB)))
    assert outcome.fault is not None and outcome.fault.category is Category.MEMORY
    assert outcome.measures.peak_bytes > 150 * MB


@ONE_LOOP
async def test_peak_memory_and_cpu_are_measured(staffed: Server) -> None:
    hog = "python3 -c 'x = bytearray(80 << 20); [i * i for i in range(3000000)]'"
    measures = (await staffed.outcome(await staffed.shell(hog))).measures
    assert 80 * MB < measures.peak_bytes < 300 * MB and measures.cpu_ms > 30


@pytest.mark.full
async def test_the_memory_of_a_small_job_is_not_that_of_the_pilot(server: Server, hire: Hire) -> None:
    hire()
    measures = (await server.outcome(await server.shell("sleep 0.2"))).measures
    assert 0 < measures.peak_bytes < 10 * MB


@pytest.mark.full
async def test_a_job_that_forks_and_hides_is_found_and_killed_before_its_result_is_told(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire()
    command = f"setsid sh -c '(setsid sh -c \"echo \\$\\$ > {tmp_path}/hidden; exec sleep 600\" &)' & sleep 0.3; wait"
    outcome = await server.outcome(await server.shell(command))
    assert outcome.ok
    assert dead((await pids_in(server, tmp_path / "hidden"))[0])


@pytest.mark.full
async def test_a_function_that_forks_and_hides_is_cleaned_up_after(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    source = (
        "import os, time\n"
        "def f(path):\n"
        "  if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "      open(path, 'w').write(str(os.getpid())); time.sleep(600)\n"
        "    os._exit(0)\n"
        "  os.wait()\n"
        "  while not os.path.exists(path) or not open(path).read(): time.sleep(0.01)\n"
        "  return os.getppid()\n"
    )
    first = await server.outcome(await server.call(source, "f", str(tmp_path / "hidden")))
    assert dead((await pids_in(server, tmp_path / "hidden"))[0])
    second = await server.outcome(await server.call(source, "f", str(tmp_path / "hidden2")))
    assert first.outputs == second.outputs, "the warm worker should have been kept"


@pytest.mark.full
async def test_a_job_that_prints_without_end_costs_little(server: Server, hire: Hire) -> None:
    pilot = hire("--keep", "--log-size", "10MB")
    job = await server.shell("echo first; head -c 200000000 /dev/zero | tr '\\0' 'x'; echo; echo last")
    outcome = await server.outcome(job)
    assert outcome.ok and outcome.log_tail.endswith("last\n") and len(outcome.log_tail) <= 16 * 1024
    assert outcome.measures.printed_bytes == 200_000_000 + len("first\n\nlast\n")
    assert next((pilot.work / "attempts").glob("*.log")).stat().st_blocks * 512 < 11 * MB
    log = server.log(outcome)
    assert len(log) < 11 * MB and log.startswith(b"first\n") and log.endswith(b"last\n")
    assert outcome.log is not None and outcome.log.left_out_bytes > 189_000_000
    peaks = [peak_of(pid) for pid in [pilot.process.pid, *pilot.pids()]]
    assert len(peaks) >= 2 and max(peaks) < 100 * MB


@pytest.mark.full
async def test_a_function_that_prints_without_end_costs_little(server: Server, hire: Hire) -> None:
    pilot = hire("--log-size", "10MB")
    source = (
        "import time\ndef f():\n  for turn in range(100): print('x' * 1_000_000); time.sleep(0.01)\n  print('last')\n"
    )
    job = await server.call(source, "f")
    sizes: list[int] = []

    def over() -> bool:
        sizes.append(sum(path.stat().st_blocks * 512 for path in (pilot.work / "slots").glob("*.log")))
        return job in server.ledger.outcomes

    await server.until(over, "the outcome")
    outcome = server.ledger.outcomes[job]
    assert outcome.ok and outcome.log_tail.endswith("last\n")
    assert max(sizes) < 60 * MB and outcome.measures.printed_bytes == 100 * 1_000_001 + len("last\n")


@pytest.mark.full
async def test_suspending_really_stops_the_whole_tree_and_resuming_lets_it_end(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire()
    job = await server.shell(
        f"echo $$ > {tmp_path}/a;"
        f"setsid -w sh -c 'echo $$ > {tmp_path}/b; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done'",
        resources=Resources(wall_ms=10_000),
    )
    pids = await pids_in(server, tmp_path / "a", tmp_path / "b")
    await server.running(job)
    await server.order(job, AttemptControl.SUSPEND)
    await server.until(lambda: all(stands_still(pid) for pid in pids), "all processes to stand still")
    await server.until(lambda: server.ledger.beats[job].state == "suspended", "the beat to say so")
    (tmp_path / "go").touch()
    assert job not in server.ledger.outcomes
    await server.order(job, AttemptControl.RESUME)
    assert (await server.outcome(job)).ok


@pytest.mark.full
async def test_a_function_can_be_suspended_and_resumed(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    source = (
        "import os, time\n"
        "def f(folder):\n"
        "  open(folder + '/a', 'w').write(str(os.getpid()))\n"
        "  while not os.path.exists(folder + '/go'): time.sleep(0.01)\n"
        "  return 'went on'\n"
    )
    job = await server.call(source, "f", str(tmp_path))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.running(job)
    await server.order(job, AttemptControl.SUSPEND)
    await server.until(lambda: state(pid) == "T", "the worker to stand still")
    (tmp_path / "go").touch()
    await server.order(job, AttemptControl.RESUME)
    assert (await server.outcome(job)).outputs == "went on"


@pytest.mark.full
async def test_time_that_a_job_stands_still_does_not_count(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    command = f"echo $$ > {tmp_path}/a; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    job = await server.shell(command, resources=Resources(wall_ms=1_500))
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.running(job)
    await server.order(job, AttemptControl.SUSPEND)
    await server.until(lambda: stands_still(pid), "it to stand still")
    await asyncio.sleep(1.6)  # longer than the wall time, which must not matter
    (tmp_path / "go").touch()
    await server.order(job, AttemptControl.RESUME)
    assert (await server.outcome(job)).ok


async def test_cancelling_asks_first_and_then_kills_the_whole_tree(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    stubborn = f"setsid sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/b; while :; do sleep 0.1; done' &"
    polite = f"trap 'echo asked; exit 0' TERM; echo $$ > {tmp_path}/a; while :; do sleep 0.1; done"
    job = await server.shell(f"{stubborn} {polite}")
    pids = await pids_in(server, tmp_path / "a", tmp_path / "b")
    await server.running(job)
    await server.order(job, AttemptControl.CANCEL)
    fault = (await server.outcome(job)).fault
    assert fault is not None and fault.category is Category.CANCELLED and "asked" in fault.log_tail
    assert all(dead(pid) for pid in pids)


@pytest.mark.parametrize("late", [False, True])
async def test_a_cancelled_job_has_its_time_to_end_though_it_is_no_longer_the_pilots(
    server: Server, hire: Hire, tmp_path: Path, late: bool
) -> None:  # JS-6
    """A request that was sent before the order names it still: it is told that the attempt is lost."""
    hire()
    polite = f"trap 'sleep 0.3; echo asked > {tmp_path}/told; exit 0' TERM; echo $$ > {tmp_path}/a"
    job = await server.shell(f"{polite}; while :; do sleep 0.05; done")
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.running(job)
    await server.order(job, AttemptControl.CANCEL)
    if late:
        await server.until(lambda: not server.ledger.orders, "the order to be read")
    server.ledger.lapse(job)
    server.ledger.waiting.clear()
    await server.until(lambda: dead(pid), "the job to end")
    assert (tmp_path / "told").read_text() == "asked\n"


@pytest.mark.full
async def test_a_job_that_waits_in_the_pilot_can_be_cancelled(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    for _ in range(30):  # short ones, so that the pilot asks for several at a time
        await server.outcome(await server.call("def f(): pass", "f"))
    source = "import os, time\ndef f(path):\n  while not os.path.exists(path): time.sleep(0.01)\n"
    jobs = [await server.call(source, "f", str(tmp_path / "go"), module="slow") for _ in range(6)]
    await server.until(lambda: len(server.ledger.grants) > 1, "several jobs to be granted")
    granted = [job for job in jobs if job in server.ledger.grants]
    await server.until(lambda: all(job in server.ledger.beats for job in granted), "them to be named")
    await server.order(granted[-1], AttemptControl.CANCEL)
    fault = (await server.outcome(granted[-1])).fault
    assert fault is not None and fault.category is Category.CANCELLED
    (tmp_path / "go").touch()
    for job in jobs:
        if job != granted[-1]:
            assert (await server.outcome(job)).ok


@pytest.mark.full
async def test_short_jobs_do_not_wait_behind_a_long_one_while_another_slot_is_free(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire(slots=2)
    for _ in range(30):
        await server.outcome(await server.call("def f(): pass", "f"))
    source = (
        "import os, time\n"
        "def f(number, path):\n"
        "  open(f'{path}.{number}', 'a').write('x')\n"
        "  while number == 0 and not os.path.exists(path): time.sleep(0.01)\n"
        "  return number\n"
    )
    jobs = [await server.call(source, "f", number, str(tmp_path / "go")) for number in range(20)]
    for job in jobs[1:]:
        assert (await server.outcome(job)).ok
    assert jobs[0] not in server.ledger.outcomes
    (tmp_path / "go").touch()
    assert (await server.outcome(jobs[0])).ok
    assert [(tmp_path / f"go.{number}").read_text() for number in range(20)] == ["x"] * 20  # each ran once


@pytest.mark.full
async def test_a_folder_that_cannot_be_made_is_a_fault_of_the_place(server: Server, hire: Hire, tmp_path: Path) -> None:
    work = tmp_path / "work"
    pilot = hire(work=work)
    assert (await server.outcome(await server.shell("true"))).ok
    await until(lambda: not any((work / "attempts").iterdir()), "the first job's folder is gone")
    (work / "attempts").rmdir()
    (work / "attempts").write_text("in the way")
    fault = (await server.outcome(await server.shell("true"))).fault
    assert fault is not None and fault.infrastructure and "could not start" in fault.message
    (work / "attempts").unlink()
    (work / "attempts").mkdir()
    assert (await server.outcome(await server.shell("true"))).ok
    assert pilot.process.poll() is None


def listening(pid: int) -> set[str]:
    """Inodes of sockets of a process that listen for TCP connections."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    table = Path(f"/proc/{pid}/net/tcp").read_text() + Path(f"/proc/{pid}/net/tcp6").read_text()
    listens = {row.split()[9] for row in table.splitlines() if len(row.split()) > 9 and row.split()[3] == "0A"}
    return inodes & listens


@pytest.mark.full
async def test_a_pilot_pulls_and_opens_no_port(server: Server, hire: Hire) -> None:  # PJ-1
    pilot = hire()
    job: JobId = await server.shell("true")
    assert (await server.outcome(job)).ok
    for pid in [pilot.process.pid, *(pid for pid in pilot.pids() if pid in living())]:
        assert not listening(pid)
