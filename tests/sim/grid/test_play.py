"""Flows in a simulated grid: what runs where, what comes from caches, and what goes wrong."""

import logging
import os
import subprocess
import sys
from random import Random

import msgspec
import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Catch, Flow, ForEach, JobActivity, Parallel, Scope
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.templates import ResourceTemplates
from mendflow.sim.grid.job_model import SimulatedWork, SteadyJobs
from mendflow.sim.grid.results import GridResult, JobRecord
from mendflow.sim.grid.scene import GB, MB, BatchScene, ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import CaseScene, Stuck, play, play_all
from tests.sim.grid.chains import BAD, JOB_MODEL, SLOW, chain, grid, many, splitting


def of(result: GridResult, step: str) -> list[JobRecord]:
    return [record for record in result.records if record.step == step]


# the same seed


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:  # PJ-10
    flow, scene = chain(12), grid(element=BAD, retries=20, share="site")
    first, again = (msgspec.json.encode(play(scene, flow, JOB_MODEL)) for _ in range(2))
    other = msgspec.json.encode(play(msgspec.structs.replace(scene, seed=2), flow, JOB_MODEL))
    assert first == again
    assert first != other


SCRIPT = """
import hashlib, msgspec
from mendflow.sim.grid.scene import BatchScene
from mendflow.sim.grid.world import play
from tests.sim.grid.chains import BAD, JOB_MODEL, chain, grid
batch = BatchScene(submit_s=(5, 1), queue_s=(60, 20), notify_s=(30, 5))
scene = grid(element=BAD, retries=20, share="site", running=0, max_pilots=8, batch=batch, life_s=900.0)
print(hashlib.sha256(msgspec.json.encode(play(scene, chain(12), JOB_MODEL))).hexdigest())
"""


@pytest.mark.full
def test_another_process_with_another_order_of_hashes_gives_the_same_bytes() -> None:  # PJ-10
    told = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1] and len(told[0].strip()) == 64


# staging and caches


def test_a_job_waits_for_its_data_and_reads_it_where_it_was_made() -> None:  # PJ-5
    result = play(grid(), chain(6), JOB_MODEL)
    made = {record.item.replace("first", "then"): record.pilot for record in of(result, "first")}
    assert result.status == "completed" and result.hit_ratio == result.byte_hit_ratio == 1.0
    assert {record.item: record.pilot for record in of(result, "then")} == made


def test_without_waiting_for_data_jobs_go_to_pilots_that_do_not_have_it() -> None:
    patient, hasty = (play(grid(wait_for_data=wait), chain(6), JOB_MODEL) for wait in (True, False))
    assert hasty.hit_ratio < patient.hit_ratio


def test_without_caches_everything_comes_from_the_storage_element() -> None:
    result = play(grid(caches=False), chain(6), JOB_MODEL)
    assert result.hit_ratio == 0.0
    assert all(record.fetched_bytes == 700 * MB for record in of(result, "then"))
    assert 100 < result.mean_stage_in_s < 140  # 700 chunks of 0.15 s, and 14 s for the bytes


def test_pilots_of_one_host_use_each_others_files() -> None:
    alone, shared = (
        play(grid(hosts=1, pilots_a_host=8, share=share), splitting(4), JOB_MODEL) for share in ("none", "host")
    )
    assert alone.hit_ratio == 0.5
    assert shared.hit_ratio == 1.0 and sum(record.shared_files for record in shared.records) >= 4


def test_an_idle_pilot_soon_has_links_to_what_others_of_its_host_have_and_jobs_wait_for_it() -> None:  # PJ-4, PJ-6
    result = play(grid(hosts=4, pilots_a_host=2, share="host"), splitting(4), JOB_MODEL)
    made = {record.item: record.host for record in of(result, "first")}
    assert result.hit_ratio == 1.0
    assert all(each.host == made[f"first[{int(each.item[5:-1]) // 2}]"] for each in of(result, "then"))


def test_pilots_of_one_site_use_each_others_files() -> None:  # PJ-11
    on_host, on_site = (
        play(grid(hosts=8, pilots_a_host=1, share=share), splitting(4), JOB_MODEL) for share in ("host", "site")
    )
    assert on_host.hit_ratio == 0.5
    assert on_site.hit_ratio == 1.0


def test_slots_of_one_pilot_bring_a_file_once_and_wait_for_it() -> None:
    job = JobActivity(name="many.iteration", label="many", command="read", inputs={"in.dat": "/nowhere/raw.dat"})
    flow = Flow(name=FlowName("same"), body=ForEach(name="many", first=0, last=3, body=job))
    scene = msgspec.structs.replace(grid(running=1, slots=4), files={"raw.dat": 700 * MB})
    records = play(scene, flow, SteadyJobs(10)).records
    assert sorted(record.fetched_files for record in records) == [0, 0, 0, 1]
    assert max(record.stage_in_s for record in records) - min(record.stage_in_s for record in records) < 2


def test_a_cache_that_is_too_small_keeps_nothing() -> None:
    result = play(grid(cache_bytes=GB, threshold_bytes=GB), chain(6), JOB_MODEL)
    assert result.hit_ratio == 0.0


def test_a_full_cache_lets_go_of_what_was_not_used_for_longest() -> None:
    result = play(grid(running=1, cache_bytes=3 * GB, threshold_bytes=GB), chain(6), JOB_MODEL)
    assert 0 < result.hit_ratio < 1


def test_a_file_that_cannot_be_read_is_a_fault_of_its_attempt_and_the_job_is_tried_again() -> None:
    result = play(grid(element=BAD, caches=False, retries=30), chain(10), JOB_MODEL)
    assert result.status == "completed"
    assert {record.fault for record in result.records} == {"", "missingInput", "notKept"}
    tried = [record for record in of(result, "then") if record.fault == "missingInput"]
    assert all(record.run_s == 0 and record.stage_in_s > 0 for record in tried)
    again = {record.job for record in result.records if record.attempt > 1 and record.well}
    assert {record.job for record in result.records if not record.well} == again


def test_a_file_that_cannot_be_stored_ends_a_flow_without_retries() -> None:
    result = play(grid(element=ElementScene(failure=1.0)), chain(4), JOB_MODEL)
    assert result.status == "failed"
    assert "could not be" in result.cases[0].fault


def given(source: str) -> Flow:
    job = JobActivity(name="reads", command="read", inputs={"in.dat": source})
    return Flow(name=FlowName("given"), body=job)


@pytest.mark.parametrize("source", ["/nowhere/raw.dat", "lfn:/store/raw.dat"])
def test_a_file_that_a_flow_is_given_is_as_large_as_the_scene_says(source: str) -> None:
    scene = msgspec.structs.replace(grid(), files={"raw.dat": 70 * MB, "lfn:/store/raw.dat": 70 * MB})
    (record,) = play(scene, given(source), SteadyJobs(10)).records
    assert record.fetched_bytes == 70 * MB and record.stage_in_s > 1


def test_a_file_of_which_nothing_is_known_is_asked_for() -> None:
    result = play(grid(), given("/nowhere/raw.dat"), SteadyJobs(10))
    assert result.status == "failed"
    assert "/nowhere/raw.dat cannot be found (No such file or directory); give its size" in result.cases[0].fault


# pilots


def test_running_pilots_may_have_come_one_by_one() -> None:
    begun = sorted(record.granted_s for record in play(grid(arrive_s=60.0), many(8), JOB_MODEL).records)
    assert begun[0] > 0
    assert 20 < begun[-1] - begun[0] < 60


def test_pilots_come_on_demand() -> None:  # PM-2
    batch = BatchScene(submit_s=(5, 0), queue_s=(300, 0))
    result = play(grid(running=0, max_pilots=8, batch=batch), chain(6), JOB_MODEL)
    assert result.status == "completed"
    assert result.pilots_submitted == 6
    assert min(record.granted_s for record in result.records) >= 305


def test_a_site_gets_no_more_pilots_than_it_has_room_for() -> None:
    result = play(grid(running=0, max_pilots=3), many(30), SteadyJobs(100))
    assert result.pilots_submitted == 3
    assert max(count for _, count in result.running()) == 3


def test_a_pilot_with_several_slots_runs_as_many_jobs_at_a_time() -> None:
    result = play(grid(running=2, slots=4), many(16), SteadyJobs(100))
    assert max(count for _, count in result.running()) == 8
    assert result.turnaround_s == pytest.approx(200, abs=2)


def test_short_jobs_are_fetched_ahead() -> None:
    result = play(grid(running=1), many(200), SteadyJobs(0.01))
    assert result.turnaround_s < 200 * 0.05


def test_what_a_pilot_runs_when_its_time_is_over_is_lost_and_runs_elsewhere() -> None:
    result = play(grid(running=0, max_pilots=4, life_s=250.0), many(12), SteadyJobs(100))
    cut = [record for record in result.records if record.fault == "left"]
    assert result.status == "completed" and cut
    assert all(record.ended_s - record.granted_s < 100 for record in cut)
    assert len({record.job for record in result.records if record.well}) == 12
    assert result.pilots_submitted > 4


def test_jobs_go_by_themselves_to_the_batch_system_in_direct_submission() -> None:
    batch = BatchScene(submit_s=(5, 0), queue_s=(300, 0), notify_s=(60, 0))
    site = SiteScene(hosts=2, pilots_a_host=8, element=SLOW, batch=batch)
    result = play(GridScene(seed=1, submission="direct", sites=(site,)), chain(6), JOB_MODEL)
    first, then = of(result, "first"), of(result, "then")
    assert result.status == "completed" and result.hit_ratio == 0.0
    assert min(each.granted_s for each in first) == pytest.approx(305, abs=1)
    assert min(each.granted_s for each in then) >= max(each.ended_s for each in first) + 365


def test_direct_submission_tries_again_what_failed() -> None:
    site = SiteScene(hosts=2, pilots_a_host=8, element=BAD)
    result = play(GridScene(seed=1, submission="direct", retries=30, sites=(site,)), chain(6), JOB_MODEL)
    assert result.status == "completed" and any(not record.well for record in result.records)


# several cases, and worlds that go wrong


def test_jobs_of_a_higher_priority_go_first() -> None:  # PJ-11
    low, high = many(16), Flow(name=FlowName("urgent"), body=many(8).body)
    cases = [CaseScene(flow=low), CaseScene(flow=high, priority=5, at_s=10.0)]
    result = play_all(grid(), cases, SteadyJobs(100))
    ends = {case.flow: case.started_s + case.turnaround_s for case in result.cases}
    assert ends["urgent"] < ends["many"]


def test_cases_of_one_flow_run_beside_each_other() -> None:
    result = play_all(grid(), [CaseScene(flow=many(4)) for _ in range(3)], SteadyJobs(100))
    assert [case.status for case in result.cases] == ["completed"] * 3
    assert len({case.case for case in result.cases}) == 3 and len(result.records) == 12


class OneFails:
    """One job fails soon; the other would take very long."""

    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        fault = Fault(name="broken", category=Category.JOB, message="it broke")
        return SimulatedWork(seconds=10, fault=fault) if spec.command == "bad" else SimulatedWork(seconds=10_000)


def test_an_attentive_pilot_hears_at_once_that_its_job_is_not_wanted_any_more() -> None:
    bad, long, last = (JobActivity(name=name, command=name) for name in ("bad", "long", "last"))
    tried = Scope(name="tried", body=Parallel(name="both", branches=(bad, long)), catches=(Catch(body=last),))
    scene = msgspec.structs.replace(grid(running=2), attentive=True)
    result = play(scene, Flow(name=FlowName("stops"), body=tried), OneFails())
    ends = {record.item: record.ended_s for record in result.records}
    assert result.status == "completed" and ends["long"] == pytest.approx(10, abs=1)


class Mistaken:
    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        raise LookupError("nothing is known of this job")


class OneHangs:
    def of(self, spec: JobSpec, chance: Random) -> SimulatedWork:
        return SimulatedWork(seconds=30_000 if spec.item == "many[39]" else 100)


def test_nobody_is_warned_of_what_happens_in_a_grid(caplog: pytest.LogCaptureFixture) -> None:
    play(grid(), many(40), OneHangs())
    assert caplog.records == []
    logging.getLogger("mendflow").warning("but here")
    assert [record.message for record in caplog.records] == ["but here"]


def test_a_mistake_in_a_nature_ends_the_run_with_it() -> None:
    with pytest.raises(LookupError, match="nothing is known of this job"):
        play(grid(), many(1), Mistaken())


@pytest.mark.full
def test_a_grid_in_which_nothing_happens_any_more_says_what_waits() -> None:
    job = JobActivity(name="large", command="work", resources=ResourceTemplates(cpus=64, memory_bytes=1 << 26))
    with pytest.raises(Stuck) as stuck:
        play(grid(), Flow(name=FlowName("large"), body=job), SteadyJobs(1))
    assert stuck.value.message == (
        "nothing has happened in this grid for 1 d 0 h, and 1 case did not end; 1 job waits that no pilot takes: "
        "1 of large; it wants 64 CPUs and 67.1 MB of memory; each pilot of site has 1 CPU, 16.0 GB of memory and "
        "100 GB of disk; give them more, with --site site:cpus=64"
    )


@pytest.mark.full
def test_a_grid_whose_pilots_have_all_gone_says_how_long_they_lived() -> None:
    with pytest.raises(Stuck) as stuck:
        play(msgspec.structs.replace(grid(running=2, life_s=90.0), quiet_s=3600.0), many(4), SteadyJobs(60))
    assert stuck.value.message.startswith("nothing has happened in this grid for 1 h 0 m, ")
    assert "2 jobs wait that no pilot takes: 2 of many; " in stuck.value.message
    assert "and 1 m 30 s to live, and none is left; let them live longer, with --site " in stuck.value.message


@pytest.mark.parametrize(
    ("scene", "says"),
    [
        (GridScene(sites=()), "at least one site"),
        (GridScene(sites=(SiteScene(), SiteScene())), "a name of its own"),
        (GridScene(sites=(SiteScene(hosts=1, pilots_a_host=2, running=3),)), "no room for its pilots"),
        (GridScene(sites=(SiteScene(),)), "no site has pilots"),
        (GridScene(sites=(SiteScene(running=1, policy="best"),)), "no cache policy 'best'"),
        (GridScene(sites=(SiteScene(running=1, slots=0),)), "at least one slot"),
        (GridScene(sites=(SiteScene(name="near"), SiteScene(), SiteScene(name="near"))), "several .* called near;"),
        (GridScene(sites=(SiteScene(running=1, element=ElementScene(bytes_per_s=0)),)), "site: at 0 bytes a second"),
        (GridScene(sites=(SiteScene(running=1, disk_bytes_per_s=0),)), "site: at 0 bytes a second"),
        (GridScene(sites=(SiteScene(running=1, site_bytes_per_s=0),)), "site: at 0 bytes a second"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(scene: GridScene, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        play(scene, many(1), SteadyJobs(1))
