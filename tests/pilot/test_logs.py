"""What a job prints, whole and in order; and the folder of one that failed."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.sync import LOG_PART_BYTES, AttemptControl
from mendflow.pilot.bounds import KeepLimits
from mendflow.pilot.files.kept_folders import KeptFolders
from mendflow.pilot.files.work_folder import WorkFolder
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")

PRINTS = "import sys\ndef f(lines):\n  for line in range(lines): print('line', line)\n  {then}\n"


def content(folder: str, name: str) -> str:
    return Path(folder, name).read_text()


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_the_whole_log_is_stored_in_the_order_written(server: Server, hire: Hire) -> None:  # DU-4
    pilot = hire()
    outcome = await server.outcome(
        await server.shell("i=0; while [ $i -lt 4000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done")
    )
    lines = server.log(outcome).decode().splitlines()
    assert lines == [f"{stream} {number}" for number in range(4000) for stream in ("out", "err")]
    assert outcome.log is not None and outcome.log.bytes == outcome.measures.printed_bytes
    assert outcome.log.left_out_bytes == 0 and outcome.log.file.bytes < outcome.log.bytes // 3
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "nothing to be left behind")


async def test_a_short_log_travels_with_the_result_alone(server: Server, hire: Hire) -> None:  # DU-4
    hire()
    outcome = await server.outcome(await server.shell("echo a; echo b >&2; echo c"))
    assert outcome.log_tail == "a\nb\nc\n" and outcome.log is None and not server.ledger.files


@ONE_LOOP
async def test_a_short_log_that_is_no_text_is_stored_byte_by_byte(staffed: Server) -> None:  # DU-4
    source = "import sys\ndef f():\n  sys.stdout.buffer.write(b'caf\\xe9 \\xff\\n')\n  sys.stdout.buffer.flush()\n"
    jobs = [await staffed.shell(r"printf 'caf\351 \377\n'"), await staffed.call(source, "f")]
    for outcome in [await staffed.outcome(job) for job in jobs]:
        assert staffed.log(outcome) == b"caf\xe9 \xff\n"
        assert outcome.log_tail == "caf\ufffd \ufffd\n"


@pytest.mark.full
@ONE_LOOP
async def test_a_function_has_its_whole_log_and_the_next_one_its_own(staffed: Server) -> None:  # DU-4
    source = PRINTS.format(then="if lines == 7000: raise ValueError('no')")
    jobs = [await staffed.call(source, "f", lines) for lines in (9000, 3, 7000, 4)]
    long, short, failed, last = [await staffed.outcome(job) for job in jobs]
    assert staffed.log(long).decode() == "".join(f"line {number}\n" for number in range(9000))
    assert short.log is None and short.log_tail == "line 0\nline 1\nline 2\n"
    printed = staffed.log(failed).decode()
    assert printed.startswith("line 0\n") and "line 6999\nTraceback" in printed and printed.endswith("ValueError: no\n")
    assert last.log is None and last.log_tail == "line 0\nline 1\nline 2\nline 3\n"


@pytest.mark.full
@ONE_LOOP
async def test_the_log_of_a_function_that_kills_its_process_is_whole(staffed: Server) -> None:  # DU-4
    source = PRINTS.format(then="sys.stdout.flush(); import os; os.kill(os.getpid(), 9)")
    outcome = await staffed.outcome(await staffed.call(source, "f", 9000))
    assert not outcome.ok and staffed.log(outcome).decode() == "".join(f"line {number}\n" for number in range(9000))


@ONE_LOOP
async def test_the_log_of_a_job_that_runs_is_read_from_any_byte_on(staffed: Server) -> None:  # DU-4
    job = await staffed.shell("head -c 600000 /dev/zero | tr '\\0' x; echo; while :; do sleep 0.1; done")
    await staffed.running(job)
    whole, at = b"", 0
    while len(whole) < 600_001:
        part = await staffed.log_part(job, at)
        assert part.offset == at and len(part.data) <= LOG_PART_BYTES
        whole, at = whole + part.data, at + len(part.data)
    assert whole == b"x" * 600_000 + b"\n"
    assert (await staffed.log_part(job, 599_999)).data == b"x\n"
    await staffed.order(job, AttemptControl.CANCEL)


@ONE_LOOP
async def test_the_log_of_a_function_that_runs_can_be_read(staffed: Server) -> None:  # DU-4
    source = "import time\ndef f():\n  print('begun')\n  time.sleep(600)\n"
    job = await staffed.call(source, "f")
    await staffed.running(job)
    seen = b""
    while not seen:
        seen = (await staffed.log_part(job, 0)).data
    assert seen == b"begun\n"
    await staffed.order(job, AttemptControl.CANCEL)


@pytest.mark.full
async def test_the_folder_of_a_failed_command_stays_with_what_it_was_run_with(  # DU-4
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    secrets = {"PGPASSWORD": "hush-1", "API_TOKEN": "hush-2", "STORE": "https://me:hush-3@host/x"}
    command = 'test "$PGPASSWORD" = hush-1; echo half > part.txt; exit 3'
    failed = await server.outcome(await server.shell(command, env={"COLOUR": "blue", **secrets}))
    folder = pilot.work / "attempts" / os.path.basename(failed.folder)
    assert (folder / "part.txt").read_text() == "half\n" and str(folder) == failed.folder
    kept = json.loads(folder.with_name(f"{folder.name}.kept").read_text())
    assert kept["env"]["COLOUR"] == "blue" and kept["env"]["MENDFLOW_JOB"] == "case-1/1" and kept["number"] == 1
    written = folder.with_name(f"{folder.name}.kept").read_text()
    assert {*secrets} <= {*kept["secrets"]} and not {*secrets} & {*kept["env"]}
    assert "hush-" not in written.replace(json.dumps(command), "")
    assert "exit code 3" in kept["fault"] and os.stat(f"{folder}.kept").st_mode & 0o077 == 0
    assert await asyncio.to_thread(pilot.end) == 0 and (folder / "part.txt").exists()
    pilot.restart()
    well = await server.outcome(await server.shell("echo done > part.txt"))
    assert well.ok and not well.folder and (folder / "part.txt").exists()
    await server.until(lambda: len(list((pilot.work / "attempts").glob("*/"))) == 1, "only the failed one to be left")


@pytest.mark.full
@ONE_LOOP
async def test_the_folder_of_a_failed_function_stays_too(staffed: Server) -> None:  # DU-4
    source = (
        "import os\n"
        "def f(how):\n"
        "  open('part.txt', 'w').write(how)\n"
        "  if how == 'raise': raise ValueError(how)\n"
        "  if how == 'die': os.kill(os.getpid(), 9)\n"
        "  return os.listdir()\n"
    )
    jobs = [await staffed.call(source, "f", how) for how in ("raise", "well", "die", "well")]
    raised, first, died, second = [await staffed.outcome(job) for job in jobs]
    assert content(raised.folder, "part.txt") == "raise"
    assert content(died.folder, "part.txt") == "die"
    assert first.outputs == second.outputs == ["part.txt"] and not first.folder


@ONE_LOOP
async def test_nothing_is_kept_of_what_was_cancelled_or_where_it_is_not_wanted(  # DU-4
    staffed: Server, tmp_path: Path
) -> None:
    job = await staffed.shell("sleep 600")
    await staffed.running(job)
    await staffed.order(job, AttemptControl.CANCEL)
    cancelled = await staffed.outcome(job)
    assert cancelled.fault is not None and cancelled.fault.category is Category.CANCELLED and not cancelled.folder


@pytest.mark.full
async def test_a_pilot_that_keeps_no_folders_removes_those_that_another_has_left(server: Server, hire: Hire) -> None:
    pilot = hire()
    failed = await server.outcome(await server.shell("exit 3"))
    assert await asyncio.to_thread(pilot.end) == 0 and os.listdir(failed.folder) == []
    other = hire("--keep-failed-max", "0", work=pilot.work)
    again = await server.outcome(await server.shell("exit 3"))
    assert not again.folder
    await server.until(lambda: not list((other.work / "attempts").iterdir()), "all folders to be removed")
    assert await asyncio.to_thread(other.end) == 0


def test_kept_folders_are_swept_by_age_number_and_size(tmp_path: Path) -> None:  # DU-4
    def keep(name: str, *, age_s: float = 0, size: int = 4096) -> Path:
        folder = work.attempts / name
        folder.mkdir()
        (folder / "data").write_bytes(b"x" * size)
        (work.attempts / f"{name}.log").write_bytes(b"said")
        mark = work.attempts / f"{name}.kept"
        mark.write_bytes(b"{}")
        os.utime(mark, (time.time() - age_s, time.time() - age_s))
        return folder

    work = WorkFolder(tmp_path / "work")
    work.make()
    ages = [keep(f"a{number}.1", age_s=number * 10) for number in range(5)]
    KeptFolders(work, KeepLimits(age_ms=35_000)).sweep()
    assert [folder.exists() for folder in ages] == [True, True, True, True, False]
    KeptFolders(work, KeepLimits(number=2)).sweep()
    assert [folder.exists() for folder in ages] == [True, True, False, False, False]
    large = keep("b.1", age_s=20, size=1 << 20)
    KeptFolders(work, KeepLimits(bytes=500_000)).sweep()
    assert [folder.exists() for folder in (*ages, large)] == [True, True, False, False, False, False]
    KeptFolders(work, KeepLimits()).sweep(short=True)
    assert not list(work.attempts.iterdir())


@pytest.mark.full
async def test_what_was_printed_before_the_slot_was_killed_is_not_lost(server: Server, hire: Hire) -> None:  # DU-4
    pilot = hire()
    job = await server.shell("seq 1 9000; touch printed; while :; do sleep 0.1; done")
    await server.running(job)
    await server.until(lambda: any((pilot.work / "attempts").glob("*/printed")), "all to be printed")
    (slot,) = [pid for pid in pilot.pids() if b"mendflow.pilot.slot.process" in command_of(pid)]
    os.kill(slot, 9)
    outcome = await server.outcome(job)
    assert outcome.fault is not None and outcome.fault.name == "slotDied"
    assert server.log(outcome).decode() == "".join(f"{number}\n" for number in range(1, 9001))
    assert outcome.log_tail.endswith("8999\n9000\n")
