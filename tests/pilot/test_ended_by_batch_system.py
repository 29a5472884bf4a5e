"""A batch system that ends a pilot tells every process of it to end, in whatever order, and kills later."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import JobId
from tests.patience import PATIENCE_S
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import dead, pids_in
from tests.pilot.test_survival import guard_of, slots_of

Hire = Callable[..., Pilot]

CALL = """
import os, time
def f(path):
  open(path, 'w').write(str(os.getpid()))
  time.sleep(600)
"""


async def _running(server: Server, kind: str, path: Path) -> tuple[JobId, int]:
    if kind == "command":
        job = await server.shell(f"echo $$ > {path}; exec sleep 600")
    else:
        job = await server.call(CALL, "f", str(path))
    (pid,) = await pids_in(server, path)
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    return job, pid


async def _fault(server: Server, job: JobId) -> Fault:
    fault = (await server.outcome(job)).fault
    assert fault is not None
    return fault


@pytest.mark.full
@pytest.mark.parametrize("kind", ["command", "call"])
@pytest.mark.parametrize("first", ["the job", "its slot"])
async def test_a_job_that_is_told_to_end_with_its_pilot_is_lost_and_has_not_failed(
    server: Server, hire: Hire, tmp_path: Path, kind: str, first: str
) -> None:  # PJ-8
    pilot = hire("--grace-ms", "3000")
    job, pid = await _running(server, kind, tmp_path / "a")
    (slot,) = slots_of(pilot)
    order = [pid, slot] if first == "the job" else [slot, pid]
    for each in (*order, guard_of(pilot)):
        os.kill(each, signal.SIGTERM)
    fault = await _fault(server, job)
    assert (fault.name, fault.infrastructure, fault.data) == ("lost", True, {"left": "told"})
    assert not dead(slot), "that is for the agent to do"
    assert await asyncio.to_thread(pilot.end) == 0


async def test_a_job_that_nobody_but_itself_tells_to_end_has_failed(server: Server, hire: Hire, tmp_path: Path) -> None:
    hire()
    fault = await _fault(server, await server.shell("kill -TERM $$; sleep 600"))
    assert (fault.name, fault.signal, fault.infrastructure) == ("signal", signal.SIGTERM, False)


async def test_a_job_that_ends_well_after_it_was_told_to_end_has_done_its_work(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire("--grace-ms", "5000")
    job = await server.shell(f"trap 'sleep 0.6; exit 0' TERM; echo $$ > {tmp_path}/a; while :; do sleep 0.05; done")
    (pid,) = await pids_in(server, tmp_path / "a")
    for each in (*slots_of(pilot), pid, pilot.process.pid):
        os.kill(each, signal.SIGTERM)
    assert (await server.outcome(job)).ok
    assert await asyncio.to_thread(pilot.process.wait, PATIENCE_S) == 0


async def test_a_script_that_goes_on_because_its_command_was_told_to_end_has_not_done_its_work(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire("--grace-ms", "3000")
    job = await server.shell(f"sleep 600 & echo $! > {tmp_path}/a; wait $!; true")
    (pid,) = await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    for each in (*slots_of(pilot), pid):
        os.kill(each, signal.SIGTERM)
    assert (await _fault(server, job)).name == "lost"


async def test_a_slot_without_an_agent_that_is_told_to_end_takes_its_job_along(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    _, pid = await _running(server, "command", tmp_path / "a")
    (slot,) = slots_of(pilot)
    pilot.kill()
    os.kill(slot, signal.SIGTERM)
    await server.until(lambda: dead(slot) and dead(pid), "slot and job to be dead")
