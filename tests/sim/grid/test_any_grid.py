"""What holds in every grid, whatever it is made of: drawn scenes, and the laws that their records keep."""

from collections import Counter
from random import Random

import pytest

from mendflow.core.caching.policies import POLICIES
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult, JobRecord, steps_of
from mendflow.sim.grid.scene import GB, MB, BatchScene, ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import play
from tests.sim.grid.chains import chain, splitting


def drawn_site(chance: Random, number: int) -> SiteScene:
    hosts, a_host = chance.randint(1, 4), chance.randint(1, 4)
    running = chance.randint(0, hosts * a_host)
    return SiteScene(
        name=f"s{number}",
        hosts=hosts,
        pilots_a_host=a_host,
        running=running,
        max_pilots=0 if running and chance.random() < 0.5 else hosts * a_host,
        min_idle=chance.choice((0, 0, 1)),
        idle_exit_s=chance.choice((0.0, 30.0)) if not running else 0.0,
        life_s=chance.choice((0.0, 0.0, 700.0)) if not running else 0.0,
        slots=chance.choice((1, 1, 3)),
        element=ElementScene(delay=chance.choice((0.01, 0.15)), failure=chance.choice((0.0, 0.1))),
        batch=BatchScene(submit_s=(5, 2), queue_s=(60, 40), notify_s=(30, 10)),
        share=chance.choice(("none", "host", "site")),
        caches=chance.random() < 0.8,
        cache_bytes=chance.choice((GB, 3 * GB, 10 * GB)),
        threshold_bytes=500 * MB,
        policy=chance.choice(sorted(POLICIES)),
    )


def drawn_scene(seed: int) -> GridScene:
    chance = Random(f"scene {seed}")
    direct, mends = chance.random() < 0.25, chance.random() < 0.3
    return GridScene(
        seed=seed,
        sites=tuple(drawn_site(chance, number) for number in range(chance.randint(1, 3))),
        submission="direct" if direct else "pilots",
        wait_for_data=chance.random() < 0.5,
        retries=0 if mends else 30,  # who mends submits again by itself
        retry_wait_ms=chance.choice((0, 5_000)),
        attentive=chance.random() < 0.3,
        recovery=mends,
    )


def run_synchronously(records: list[JobRecord]) -> int:
    return max(count for _, count in steps_of((each.granted_s, each.ended_s) for each in records))


def check(scene: GridScene, result: GridResult, jobs: int, inputs: dict[str, int]) -> None:
    sites = {site.name: site for site in scene.sites}
    well = Counter(record.item for record in result.records if record.well)
    assert result.status == "completed", result.cases
    assert len(well) == jobs and set(well.values()) == {1}, "each job ends well once"
    for record in result.records:
        assert 0 <= record.granted_s <= record.begun_s <= record.ended_s
        read = record.own_files + record.shared_files + record.fetched_files
        assert read == inputs[record.step] or not record.well, "each input is read once, from somewhere"
        assert record.shared_files == 0 or sites[record.site].share != "none"
        assert record.own_files == 0 or sites[record.site].caches
    for pilot in {record.pilot for record in result.records}:
        own = [record for record in result.records if record.pilot == pilot]
        room = sites[own[0].site].slots if scene.submission == "pilots" else sites[own[0].site].pilots_a_host
        assert run_synchronously(own) <= room, f"{pilot} ran more at a time than it has slots"


@pytest.mark.parametrize("seed", range(24))
def test_the_laws_hold_in_a_drawn_grid(seed: int) -> None:  # PJ-10
    scene = drawn_scene(seed)
    flow, jobs = (chain(14), 28) if seed % 2 else (splitting(8), 24)
    result = play(scene, flow, SteadyJobs(100, 20, file_bytes=700 * MB))
    check(scene, result, jobs, {"first": 0, "then": 1})
