"""Three servers as real processes on one PostgreSQL run jobs that use a named limit; one of them is killed.

Each job writes a line when it begins and one when it ends: there are never more between these than the limit allows,
no job that has ended begins again, and when all is over nobody holds any of it."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.site import Site
from tests.servers.postgresql import postgresql_server

pytestmark = pytest.mark.law

NAMES = ("east", "west", "north")
LIMIT = 4
JOBS = 10
FLOW = f"""
name: licensed
inputs:
  folder: {{type: string}}
jobs:
  work:
    for-each: {{i: {{from: 1, to: {JOBS}}}}}
    limits: {{licence-x: 1}}
    run: |
      echo + $MENDFLOW_JOB >> ${{{{ inputs.folder }}}}/lines
      sleep 0.7
      echo - $MENDFLOW_JOB >> ${{{{ inputs.folder }}}}/lines
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with postgresql_server() as store:
        site = Site(tmp_path, store.url, lease_s=24)  # also on a busy machine a case is taken over within a lease
        try:
            yield site
        finally:
            site.close()


def test_a_killed_server_neither_exceeds_a_limit_nor_keeps_some_of_it(site: Site) -> None:  # DU-6
    clients = {name: site.serve(name) for name in NAMES}
    west = clients["west"]
    site.until(lambda: len(west.servers()) == 3, "the servers to see each other")
    for name in NAMES:
        site.pilot(f"p-{name}", name)
    (site.folder / "licensed.yaml").write_text(FLOW)
    site.asked(lambda: west.deploy(load(site.folder / "licensed.yaml")), "the flow to be deployed")
    site.asked(lambda: west.set_limit("licence-x", LimitCount(LIMIT)), "the limit to be set")
    for name, client in clients.items():  # a case has its home where it was started
        begin(site, client, name)
    site.until(lambda: len(site.lines()) >= 2 * LIMIT and _used(west) == LIMIT, "jobs to use all of the limit")
    site.processes["east"].kill()
    site.until(lambda: not west.find_cases(CaseQuery(status="running")).rows, "the end")
    assert [case.status for case in west.find_cases(CaseQuery()).rows] == ["completed"] * 3
    running = list(accumulate(_step(line) for line in site.lines()))
    assert 1 < max(running) <= LIMIT, "more jobs ran at once than the limit allows"
    assert running[-1] == 0
    assert len(set(site.lines())) == len(site.lines()) == 2 * 3 * JOBS, "no job whose server was killed ran again"
    site.until(lambda: _used(west) == 0, "everybody to have given back what they used")


def test_a_lowered_limit_stops_no_job_and_starts_none(site: Site) -> None:  # DU-6
    east, west = (site.serve(name) for name in NAMES[:2])
    site.until(lambda: len(west.servers()) == 2, "the servers to see each other")
    for name in NAMES[:2]:
        site.pilot(f"p-{name}", name)
    (site.folder / "licensed.yaml").write_text(FLOW)
    site.asked(lambda: west.deploy(load(site.folder / "licensed.yaml")), "the flow to be deployed")
    site.asked(lambda: west.set_limit("licence-x", LimitCount(LIMIT)), "the limit to be set")
    for name, client in (("east", east), ("west", west)):
        begin(site, client, name)
    site.until(lambda: _used(west) == LIMIT, "jobs to use all of the limit")
    lowered = site.asked(lambda: east.set_limit("licence-x", LimitCount(1)), "the limit to be lowered")
    began = len([line for line in site.lines() if _step(line) > 0])
    assert lowered.used <= LIMIT
    site.until(lambda: _used(west) == 1, "the others to have ended")
    site.until(lambda: not west.find_cases(CaseQuery(status="running")).rows, "the end")
    later = [line for line in site.lines() if _step(line) > 0][began + lowered.used :]
    assert len(later) >= 2 * JOBS - began - LIMIT
    running = list(accumulate(_step(line) for line in site.lines()))
    assert max(running[2 * (began + LIMIT) :], default=1) <= 1


def begin(site: Site, client: SyncClient, key: str) -> None:
    inputs: dict[str, Value] = {"folder": str(site.folder)}
    site.asked(lambda: client.start("licensed", inputs, key=key), "a case to be started")


def _step(line: str) -> int:
    return 1 if line.startswith("+") else -1


def _used(client: SyncClient) -> int:
    return client.limit("licence-x").used
