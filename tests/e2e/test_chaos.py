"""Short jobs by the thousand, while the server and the pilots are killed with -9 again and again.

Every attempt writes when it started, that it is still alive, and when it ended. Afterwards the laws are read off these
lines: MENDFLOW_CHAOS_SEEDS says how many seeds are played, MENDFLOW_CHAOS_JOBS how many jobs each has."""

import os
import random
import time
from typing import Any

import pytest

from mendflow.core.model.jobs import Job
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.chaos.attempts import check_job, read_attempts

pytestmark = pytest.mark.law

SEEDS = int(os.environ.get("MENDFLOW_CHAOS_SEEDS", "1"))
JOBS = int(os.environ.get("MENDFLOW_CHAOS_JOBS", "1000"))
PATIENCE_S = 900
"""For what hangs: beside other work, each start of a server takes several times as long."""

FLOW = """
name: chaos
inputs:
  jobs: {type: list}
  folder: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    run: exec bash ${{ inputs.folder }}/tick.sh ${{ inputs.folder }}
    files: {proof: proof.txt}
outputs:
  all: ${{ jobs.tick.outputs }}
"""

# One line per sign of life: job, attempt, what, microseconds. A line this short is written whole by one append.
TICK = """
lines="$1/attempts.log"
say() { echo "$MENDFLOW_JOB $MENDFLOW_FENCE $1 ${EPOCHREALTIME/./}" >> "$lines"; }
say start
for n in 1 2 3; do sleep 0.01; say alive; done
for n in {1..50}; do echo "$MENDFLOW_JOB $MENDFLOW_FENCE"; done > proof.txt
echo "attempt=$MENDFLOW_FENCE" >> "$MENDFLOW_OUTPUT"
say end
"""


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_nothing_is_lost_and_nothing_runs_twice_while_everything_is_killed(world: Any, seed: int) -> None:
    # JS-1 JS-7 PJ-1: laws 1 to 4 under kill -9
    (world.folder / "tick.sh").write_text(TICK)
    (world.folder / "chaos.yaml").write_text(FLOW)
    day_before_us = day_ahead_us()
    world.start_server()
    world.wait_for_server()
    for name in ("east", "west"):
        world.start_pilot(name)
    world.client.deploy(load(world.folder / "chaos.yaml"))
    inputs = {"jobs": list(range(JOBS)), "folder": str(world.folder)}
    case = world.client.start("chaos", inputs, key=f"seed-{seed}").id
    kills = _torment(world, case, random.Random(seed))
    assert kills >= 5, f"only {kills} kills: the case was over before it could be tormented"
    _check(world, case, max(0, day_ahead_us() - day_before_us))


def day_ahead_us() -> int:
    """What the time of day, which attempts tell, shows more than the steady clock that servers go by. It grows while
    the machine's clock is being put right."""
    return (time.time_ns() - time.monotonic_ns()) // 1000


def _torment(world: Any, case: str, chance: random.Random) -> int:
    """Kill something every now and then until the case is over."""
    kills = 0
    end = time.monotonic() + PATIENCE_S
    while True:
        time.sleep(chance.uniform(0.3, 2.5))
        assert time.monotonic() < end, f"the case is not over after {kills} kills: {world.client.case(case)}"
        victim = chance.choice(["server", "east", "west"])
        if victim == "server":
            world.kill_server()
            time.sleep(chance.uniform(0.0, 1.0))
            world.start_server()
        else:
            world.kill_pilot(victim, whole=chance.random() < 0.3)
            time.sleep(chance.uniform(0.0, 1.0))
            world.start_pilot(victim)
        kills += 1
        world.wait_for_server()
        if world.client.case(case).status != "running":
            return kills


def _check(world: Any, case: str, moved_us: int) -> None:
    view = world.client.case(case)
    assert view.status == "completed", view.fault
    jobs: list[Job] = []
    while page := world.client.jobs(JobQuery(case=case, limit=1000, offset=len(jobs))):
        jobs += page
    assert len({job.id for job in jobs}) == len(jobs) == JOBS
    attempts = read_attempts(world.folder / "attempts.log")
    for job in jobs:
        check_job(job, attempts[job.id], finished_us=job.finished_at * 1000 + 999 + moved_us)
    # Outputs once, in their order, each from the accepted attempt.
    by_turn = sorted(jobs, key=lambda job: int(job.spec.item[5:-1]))
    assert [output["attempt"] for output in view.outputs["all"]] == [job.fence for job in by_turn]
    for job in chance_few(jobs):
        _check_file(world, job)


def chance_few(jobs: list[Job]) -> list[Job]:
    return random.Random(1).sample(jobs, min(50, len(jobs)))


def _check_file(world: Any, job: Job) -> None:
    assert job.outcome is not None
    ref: FileRef = job.outcome.files["proof"]
    path = world.client.download(ref, world.folder / "proof")
    assert path.read_text() == f"{job.id} {job.fence}\n" * 50


FOUR_SECONDS = """
name: slow
inputs: {folder: {type: string}}
jobs:
  slow:
    run: |
      echo "start $MENDFLOW_ATTEMPT" >> ${{ inputs.folder }}/slow.log
      sleep 3
      echo "end $MENDFLOW_ATTEMPT" >> ${{ inputs.folder }}/slow.log
"""


def _start_slow(world: Any) -> str:
    (world.folder / "slow.yaml").write_text(FOUR_SECONDS)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("east")
    world.client.deploy(load(world.folder / "slow.yaml"))
    case: str = world.client.start("slow", {"folder": str(world.folder)}).id
    log = world.folder / "slow.log"
    world.until(lambda: log.exists() and log.read_text(), "the job to start")
    return case


def _wait_for_end(world: Any) -> None:
    """The job ends while somebody is away; its lease holds."""
    world.until(lambda: "end" in (world.folder / "slow.log").read_text(), "the job to end")


def _check_credited(world: Any, case: str) -> None:
    world.until(lambda: world.client.case(case).status == "completed", "the case to complete")
    assert (world.folder / "slow.log").read_text() == "start 1\nend 1\n"
    [job] = world.client.jobs(JobQuery(case=case))
    assert (job.fence, job.losses, job.failures) == (1, 0, 0)


def test_a_job_that_ran_on_while_the_server_was_away_is_credited(world: Any) -> None:
    # JS-7
    world.lease_s = 60.0
    case = _start_slow(world)
    world.kill_server()
    _wait_for_end(world)
    world.start_server()
    world.wait_for_server()
    _check_credited(world, case)


def test_a_job_that_ended_while_its_pilot_was_restarted_is_credited(world: Any) -> None:
    # JS-7
    world.lease_s = 60.0
    case = _start_slow(world)
    world.kill_pilot("east")
    _wait_for_end(world)
    world.start_pilot("east")
    _check_credited(world, case)


def test_a_job_whose_pilot_is_gone_for_good_runs_elsewhere_after_one_lease(world: Any) -> None:
    # JS-7
    world.lease_s = 3.0
    case = _start_slow(world)
    world.kill_pilot("east", whole=True)
    world.start_pilot("west")
    world.until(lambda: world.client.case(case).status == "completed", "the case to complete")
    [job] = world.client.jobs(JobQuery(case=case))
    assert (job.fence, job.losses, job.failures) == (2, 1, 0)
    assert (world.folder / "slow.log").read_text() == "start 1\nstart 2\nend 2\n"
