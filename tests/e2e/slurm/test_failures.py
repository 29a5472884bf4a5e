"""What a real Slurm does to pilots, and what must hold all the same: no job is lost, and none runs twice at a time."""

import shlex
import sys

import pytest

from mendflow.core.model.sites import PilotSettings
from tests.e2e.slurm.conftest import Farm

pytestmark = pytest.mark.slurm

BRIEF = PilotSettings(idle_exit_ms=1_500, grace_ms=1_000)
LONG_S = 600


def pilot_by_hand(farm: Farm, name: str, *options: str) -> int:
    """One that a person gives to Slurm, and that no site knows of; its folder is one of the node's own."""
    work = f"{shlex.quote(str(farm.folder))}/$SLURMD_NODENAME"
    given = f"--server {farm.world.url} --name {name} --jobs 1 --cpus 1 --host $SLURMD_NODENAME --away-exit-ms 20000"
    command = f"exec {shlex.quote(sys.executable)} -m mendflow.pilot --work {work} {given}"
    return farm.slurm.submit(command, *options, name=name)


def state_of(farm: Farm, name: str) -> str:
    (job,) = farm.slurm.jobs(name)
    return job.state


def test_a_cancelled_pilot_costs_no_job(farm: Farm) -> None:  # PJ-8, JS-7
    farm.put(max_pilots=1, pilots=BRIEF)
    case = farm.start(1, seconds=LONG_S)
    farm.until(lambda: farm.begun() == 1, "the job to run")
    (pilot,) = farm.pilots()
    farm.slurm.run("scancel", str(pilot.id))
    farm.until_over(case)
    farm.each_ran_alone(1)
    assert farm.begun() == 2
    farm.until(lambda: state_of(farm, pilot.name) == "CANCELLED", "Slurm to call the pilot cancelled")


def test_a_pilot_whose_node_is_cut_off_finishes_what_it_has_begun(farm: Farm) -> None:  # PJ-8, JS-7
    farm.put(max_pilots=2, pilots=BRIEF)
    case = farm.start(1, seconds=16)
    farm.until(lambda: farm.begun() == 1, "the job to run")
    (pilot,) = farm.pilots()
    farm.slurm.kill_node(pilot.node)
    farm.until(lambda: state_of(farm, pilot.name) == "NODE_FAIL", "Slurm to give the node up")
    assert farm.client.case(case).status == "running"
    farm.until_over(case)
    farm.each_ran_alone(1)
    (job,) = farm.jobs(case)
    assert len(job.history) == 1, "what still ran was taken for lost"


def test_a_pilot_that_is_requeued_while_it_still_runs_does_nothing_twice(farm: Farm) -> None:  # PJ-8, JS-7
    pilot_by_hand(farm, "twin", "--requeue")
    farm.until(lambda: len(farm.client.pilots()) == 1, "the pilot to be there")
    case = farm.start(1, seconds=30)
    farm.until(lambda: farm.begun() == 1, "the job to run")
    (before,) = farm.slurm.jobs("twin")
    farm.slurm.kill_node(before.node)
    farm.until(lambda: len(farm.client.pilots()) == 2, "the same pilot to run on two nodes")
    (after,) = farm.slurm.jobs("twin")
    assert (after.id, after.state) == (before.id, "RUNNING") and after.node != before.node
    assert farm.client.case(case).status == "running"
    farm.until_over(case)
    farm.each_ran_alone(1)
    (job,) = farm.jobs(case)
    assert len(job.history) == 1 and farm.lines() == ["0 start", "0 end"]


def test_a_node_that_loses_power_takes_no_job_with_it(farm: Farm) -> None:  # PJ-8, JS-7
    farm.put(max_pilots=2, pilots=BRIEF)
    case = farm.start(2, seconds=LONG_S)
    farm.until(lambda: farm.begun() == 2, "the jobs to run")
    farm.slurm.kill_node(farm.pilots()[0].node, and_jobs=True)
    farm.until_over(case)
    farm.each_ran_alone(2)
    assert all(ending.how in ("gone", "left") for ending in farm.view().endings)


def test_a_pilot_leaves_before_its_time_is_over_and_one_that_does_not_costs_no_job(farm: Farm) -> None:  # PJ-8, JS-7
    pilot_by_hand(farm, "late", "--time=1")
    farm.until(lambda: len(farm.client.pilots()) == 1, "the pilot to be there")
    farm.put(max_pilots=2, pilots=BRIEF, wall_ms=60_000)
    case = farm.start(2, seconds=LONG_S)
    farm.until(lambda: farm.begun() == 2, "both jobs to run")
    (first,) = farm.pilots()
    farm.put(max_pilots=2, pilots=BRIEF, wall_ms=240_000)  # what has outlived a pilot goes to one that stays longer
    farm.until_over(case)
    farm.each_ran_alone(2)
    farm.until(lambda: state_of(farm, "late") == "TIMEOUT", "Slurm to have ended the one that stayed")
    assert state_of(farm, first.name) == "COMPLETED"


def test_a_job_that_slurm_took_and_lost_is_noticed_though_its_number_is_given_again(farm: Farm) -> None:  # PJ-8
    written = farm.slurm.on_disk()
    farm.slurm.run("scontrol", "update", "partition=main", "state=down")  # what is submitted now waits
    farm.put(max_pilots=1, pilots=BRIEF, lost_ms=2_000)
    case = farm.start(3, seconds=0.5)
    farm.until(lambda: [each.native for each in farm.view().submissions] == ["1"], "Slurm to take a pilot")
    (lost,) = farm.view().submissions
    farm.slurm.kill_controller(since=written)
    farm.slurm.start_controller()
    assert farm.slurm.submit("sleep 600", name="of-somebody-else") == 1
    assert not farm.slurm.jobs(lost.name)
    farm.until_over(case)
    farm.each_ran_alone(3)
    assert [ending.how for ending in farm.view().endings if ending.name == lost.name] == ["lost"]
    assert state_of(farm, "of-somebody-else") == "RUNNING", "it has the number of a pilot of ours, and is none"


def test_while_the_controller_is_away_jobs_go_on_and_nothing_is_submitted(farm: Farm) -> None:  # PJ-8
    farm.put(max_pilots=3, pilots=BRIEF, lost_ms=1_000)
    case = farm.start(1, seconds=12)
    farm.until(lambda: farm.begun() == 1, "a job to run")
    spent = 60 - farm.view().left_this_hour
    farm.slurm.kill_controller()
    more = farm.start(6, seconds=0.2)
    farm.until(lambda: farm.view().trouble, "the site to say that Slurm does not answer")
    assert 60 - farm.view().left_this_hour == spent
    farm.until(lambda: farm.client.case(case).status == "completed", "the job to end as if nothing were")
    farm.slurm.start_controller()
    farm.until_over(more)
    assert farm.most <= 3 and 60 - farm.view().left_this_hour <= spent + 3


def test_a_server_that_is_killed_and_comes_back_knows_its_pilots_and_sends_no_others(farm: Farm) -> None:  # PJ-8, JS-6
    farm.put(max_pilots=2, pilots=BRIEF, lost_ms=5_000)
    case = farm.start(2, seconds=15)
    farm.until(lambda: len(farm.view().submissions) == 2, "two pilots to be planned")
    farm.world.lease_s = 30.0  # a busy machine may need longer than the usual one to start a server
    farm.world.kill_server()  # before or after Slurm was told of them
    farm.world.start_server()
    farm.world.wait_for_server()
    farm.until(lambda: farm.begun() == 2, "both jobs to run")
    farm.world.kill_server()
    farm.world.start_server()
    farm.world.wait_for_server()
    farm.until_over(case)
    farm.each_ran_alone(2)
    assert farm.most <= 2 and 60 - farm.view().left_this_hour <= 4
    assert farm.begun() == 2, "a grant whose answer died with the server never ran"
