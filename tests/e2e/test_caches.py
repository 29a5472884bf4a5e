"""A real server and real pilots that share their caches: on one host by links, between hosts over the line.

One slot each, and jobs that last, so that every pilot gets one that reads the same file."""

import os
from pathlib import Path

from mendflow.core.model.jobs import Measurements
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.conftest import World

FLOW = """
name: share
jobs:
  make:
    run: head -c 3000000 /dev/urandom > raw; sha256sum < raw > sum; echo "sum=$(cut -c1-64 sum)" >> $MENDFLOW_OUTPUT
    files: {raw: raw}
  arrive:
    needs: make
    wait: 5 s
  read:
    needs: [make, arrive]
    for-each: [1, 2, 3]
    run: test "$(sha256sum < in | cut -c1-64)" = ${{ jobs.make.outputs.sum }} && sleep 4
    inputs: {in: "${{ jobs.make.files.raw }}"}
"""


def measures(world: World, case: str) -> list[Measurements]:
    jobs = [world.client.job(job.id) for job in world.client.jobs(JobQuery(case=case))]
    return [job.outcome.measures for job in jobs if job.outcome is not None and job.name == "read"]


def test_a_file_goes_by_a_link_on_its_host_and_over_the_line_on_its_site(world: World, tmp_path: Path) -> None:
    """PJ-6 and PJ-11, with the neighbours that the server tells of."""
    shared = ("--site", "s", "--share", "site", "--share-address", "127.0.0.1")
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one", 1, "--host", "h1", *shared)
    (tmp_path / "share.yaml").write_text(FLOW)
    world.client.deploy(load(tmp_path / "share.yaml"))
    case = world.client.start("share").id
    world.until(lambda: any(pilot.cache_files for pilot in world.client.pilots()), "the file to be made")
    world.start_pilot("two", 1, "--host", "h1", *shared)
    world.start_pilot("three", 1, "--host", "h2", *shared)
    assert world.client.wait(case, timeout_s=60).status == "completed"
    found = measures(world, case)
    assert sum(each.cached_files for each in found) == 3 and not any(each.fetched_files for each in found)
    assert sum(each.shared_files for each in found) >= 1, "from the other host"
    (made,) = os.listdir(tmp_path / "pilots" / "one" / "cache")
    links = {name: os.stat(tmp_path / "pilots" / name / "cache" / made) for name in ("one", "two", "three")}
    assert links["one"].st_ino == links["two"].st_ino != links["three"].st_ino


def test_a_server_that_was_killed_hears_again_what_is_in_caches(world: World, tmp_path: Path) -> None:  # PJ-3
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one", 1)
    (tmp_path / "make.yaml").write_text('name: make\njobs: {make: {run: "echo made > out", files: {out: out}}}\n')
    world.client.deploy(load(tmp_path / "make.yaml"))
    case = world.client.start("make").id
    assert world.client.wait(case, timeout_s=30).status == "completed"
    world.kill_server()
    world.start_server()
    world.wait_for_server()
    world.until(lambda: [pilot.cache_files for pilot in world.client.pilots()] == [1], "the pilot to tell it")
