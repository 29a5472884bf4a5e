"""Three servers as real processes on one PostgreSQL run cases of a project with quotas; one of them is killed.

Each job writes a line when it begins and one when it ends: there are never more between these than the quota allows,
and there are never more cases than it allows. When all is over nobody holds any of it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import QuotaExceeded
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.counted_jobs import NAMES, check_counts, counted_flow, serve_with_pilots
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site

pytestmark = pytest.mark.law

RUNNING = 4
CASES = 3
JOBS = 10


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path, lease_s=24) as site:  # also on a busy machine a case is taken over within a lease
        yield site


def test_a_killed_server_neither_exceeds_a_quota_nor_keeps_some_of_it(site: Site) -> None:  # SE-6
    clients = serve_with_pilots(site)
    west = clients["west"]
    (site.folder / "bounded.yaml").write_text(counted_flow("bounded", JOBS))
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
    check_counts(site, at_once_max=RUNNING, jobs=CASES * JOBS)
    site.until(lambda: _running(west) == 0 and west.project("default").used.cases == 0, "all to have given back")
    usage = {each.user for each in west.project("default").users}
    assert usage, "what the killed server has counted is known to the others"


def _knows(client: SyncClient, quotas: Quotas) -> bool:
    return client.project("default").settings.quotas == quotas


def _running(client: SyncClient) -> int | None:
    return client.project("default").used.running_jobs
