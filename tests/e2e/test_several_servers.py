"""Two servers and two pilots as real processes on one PostgreSQL; one server is killed while jobs run.

Every attempt writes when it started and when it ended. Nothing that runs is interrupted because a server died, and
every job ends once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.core.model.jobs import JobState
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site

JOBS = 12
FLOW = """
name: twelve
inputs:
  jobs: {type: list}
  folder: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    run: |
      echo "$MENDFLOW_JOB $MENDFLOW_FENCE start" >> ${{ inputs.folder }}/lines
      sleep 4
      echo "$MENDFLOW_JOB $MENDFLOW_FENCE end" >> ${{ inputs.folder }}/lines
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path, lease_s=90) as site:  # a busy machine may keep a server from its beats
        yield site


def knows_both(site: Site, pilot: str) -> bool:
    """Whether a pilot has been told of both servers: one that was given a single address knows no other before."""
    kept = site.folder / pilot / "servers.json"
    return kept.exists() and all(url in kept.read_text() for url in site.urls.values())


@pytest.mark.law
@pytest.mark.timeout(600)  # on a busy machine each of the four programs takes half a minute to start
def test_a_killed_server_costs_no_running_job_and_every_job_ends_once(site: Site) -> None:  # JS-6 JS-7 JS-8
    east, west = site.serve("east"), site.serve("west")
    site.until(lambda: len(west.servers()) == 2, "the servers to see each other")
    site.pilot("p-east", "east")
    site.pilot("p-west", "west")
    site.until(lambda: len(west.pilots()) == 2, "both pilots to be seen by west")
    site.until(lambda: all(knows_both(site, name) for name in ("p-east", "p-west")), "both pilots to know where to go")
    (site.folder / "twelve.yaml").write_text(FLOW)
    site.asked(lambda: east.deploy(load(site.folder / "twelve.yaml")), "the flow to be taken")
    inputs = {"jobs": list(range(JOBS)), "folder": str(site.folder)}
    case = site.asked(lambda: east.start("twelve", inputs, key="the one"), "the case to start").id
    site.until(lambda: len(site.lines()) >= 6, "jobs of east to run in both pilots")
    site.processes["east"].kill()
    begun = {line.rpartition(" ")[0] for line in site.lines()}
    site.until(lambda: west.case(case).status == "completed", "the case to be over")
    jobs = site.asked(lambda: west.jobs(JobQuery(case=case, limit=100)), "its jobs")
    assert len(jobs) == JOBS and all(job.state is JobState.COMPLETED for job in jobs)
    lines = site.lines()
    assert len(lines) == len(set(lines)) == 2 * JOBS, f"ran twice, or was stopped: {sorted(lines)} {site.log()}"
    assert all(f"{attempt} end" in lines for attempt in begun)
    ran = {attempt.rpartition(" ")[0] for attempt in lines}
    assert ran == {f"{job.id} {job.history[-1].fence}" for job in jobs}, "an attempt ran that is not the job's last"
