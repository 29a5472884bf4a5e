"""Three servers as real processes on one PostgreSQL run cases of a project with quotas; one of them is killed.

Each job writes a line when it begins and one when it ends: there are never more between these than the quota allows,
and there are never more cases than it allows. When all is over nobody holds any of it."""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import QuotaExceeded
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.site import Site
from tests.servers.postgresql import postgresql_server

pytestmark = pytest.mark.law

NAMES = ("east", "west", "north")
RUNNING = 4
CASES = 3
JOBS = 10
FLOW = f"""
name: bounded
inputs:
  folder: {{type: string}}
jobs:
  work:
    for-each: {{i: {{from: 1, to: {JOBS}}}}}
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


def test_a_killed_server_neither_exceeds_a_quota_nor_keeps_some_of_it(site: Site) -> None:  # SE-6
    clients = {name: site.serve(name) for name in NAMES}
    west = clients["west"]
    site.until(lambda: len(west.servers()) == 3, "the servers to see each other")
    for name in NAMES:
        site.pilot(f"p-{name}", name)
    (site.folder / "bounded.yaml").write_text(FLOW)
    west.deploy(load(site.folder / "bounded.yaml"))
    quotas = Quotas(running_jobs=RUNNING, cases=CASES, waiting_jobs=6)
    west.set_project("default", ProjectSettings(quotas=quotas))
    for client in clients.values():  # a case has its home where it was started
        site.until(partial(_knows, client, quotas), "all to know the quotas")
    for client in clients.values():
        client.start("bounded", {"folder": str(site.folder)})
    for name in NAMES:
        with pytest.raises(QuotaExceeded, match="the quota of project default for cases: 3 of 3 are in use"):
            clients[name].start("bounded", {"folder": str(site.folder)})
    site.until(lambda: len(site.lines()) >= 2 * RUNNING and _running(west) == RUNNING, "jobs to use all of the quota")
    site.processes["east"].kill()
    with pytest.raises(QuotaExceeded):  # also while nobody has its cases
        clients["north"].start("bounded", {"folder": str(site.folder)})
    site.until(lambda: not west.find_cases(CaseQuery(status="running")).rows, "the end")
    assert [case.status for case in west.find_cases(CaseQuery()).rows] == ["completed"] * CASES
    running = list(accumulate(1 if line.startswith("+") else -1 for line in site.lines()))
    assert 1 < max(running) <= RUNNING, "more jobs ran at once than the quota allows"
    assert running[-1] == 0
    assert len(set(site.lines())) == len(site.lines()) == 2 * CASES * JOBS, "no job whose server was killed ran again"
    site.until(lambda: _running(west) == 0 and west.project("default").used.cases == 0, "all to have given back")
    usage = {each.user for each in west.project("default").users}
    assert usage, "what the killed server has counted is known to the others"


def _knows(client: SyncClient, quotas: Quotas) -> bool:
    return client.project("default").settings.quotas == quotas


def _running(client: SyncClient) -> int | None:
    return client.project("default").used.running_jobs
