"""Three servers of an older version are replaced by those of today, one after the other, on one PostgreSQL, while
pilots of the older version run jobs and people start cases at whichever server there is.

Every attempt writes when it starts and when it ends. No job is lost, none runs twice, and every case ends."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.jobs import JobState
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.older_version import older_source
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site
from tests.patience import PATIENCE_S

SERVERS = ("one", "two", "three")
JOBS = 6
FLOW = """
name: load
inputs:
  jobs: {type: list}
  folder: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    run: |
      echo "$MENDFLOW_JOB start" >> ${{ inputs.folder }}/lines
      sleep 2
      echo "$MENDFLOW_JOB end" >> ${{ inputs.folder }}/lines
  last:
    after: tick
    run: |
      echo "$MENDFLOW_JOB start" >> ${{ inputs.folder }}/lines
      echo "$MENDFLOW_JOB end" >> ${{ inputs.folder }}/lines
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path, lease_s=20) as site:  # a busy machine may keep a server from its beats
        yield site


@pytest.mark.law
@pytest.mark.timeout(600)  # on a busy machine each of the six starts of a server takes half a minute
def test_servers_are_upgraded_one_after_the_other_under_load(site: Site) -> None:  # JS-6 JS-7 JS-8
    older = {"PYTHONPATH": str(older_source(site.folder / "older"))}
    clients = site.serve_all(*SERVERS, **older)
    site.pilot("p-one", "one", **older)
    site.pilot("p-two", "two", **older)
    site.until(lambda: all(len(each.servers()) == 3 for each in clients.values()), "the servers to see each other")
    site.until(lambda: len(clients["three"].pilots()) == 2, "both pilots to be seen")
    (site.folder / "load.yaml").write_text(FLOW)
    clients["one"].deploy(load(site.folder / "load.yaml"))
    cases = [_start(site, clients[name], f"first at {name}") for name in SERVERS]
    for name in SERVERS:
        _await_jobs(site, len(site.lines()) + 2)
        _replace(site, name, clients)
        cases += [_start(site, clients[each], f"when {name} was new, at {each}") for each in {name, "three"}]
    site.pilot("p-new", "three")
    _all_end(site, clients["one"], cases)


def _await_jobs(site: Site, lines: int) -> None:
    site.until(lambda: len(site.lines()) >= lines, "jobs to run while a server is replaced")


def _start(site: Site, client: SyncClient, key: str) -> str:
    inputs = {"jobs": list(range(JOBS)), "folder": str(site.folder)}
    return client.start("load", inputs, key=key).id


def _replace(site: Site, name: str, clients: dict[str, SyncClient]) -> None:
    """Stop the older server as an administrator does, and start the present one on its folder and its port."""
    before = site.processes[name]
    before.send_signal(signal.SIGTERM)
    assert before.wait(PATIENCE_S) == 0, f"{name} did not end well: {site.log()}"
    site.start_server(name)
    client = clients[name]
    site.until(lambda: client.health().status == "ok", f"the new server {name} to be there")
    site.until(lambda: sum(each.state == "alive" for each in client.servers()) == 3, "the three to see each other")


def _all_end(site: Site, client: SyncClient, cases: list[str]) -> None:
    site.until(lambda: all(client.case(case).status != "running" for case in cases), "the cases to end")
    ended = {case: client.case(case).status for case in cases}
    assert set(ended.values()) == {"completed"}, ended
    jobs = [job for case in cases for job in client.jobs(JobQuery(case=case, limit=100))]
    assert len(jobs) == len(cases) * (JOBS + 1) and all(job.state is JobState.COMPLETED for job in jobs)
    lines = site.lines()
    assert sorted(lines) == sorted(f"{job.id} {word}" for job in jobs for word in ("start", "end")), (
        "a job was lost, stopped, or run twice"
    )
    ends = {job.id: [attempt.end for attempt in job.history] for job in jobs}  # one that began nothing may come before
    assert all(each.count("completed") == 1 and each[-1] == "completed" for each in ends.values()), ends
