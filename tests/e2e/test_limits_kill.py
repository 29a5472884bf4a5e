"""Three servers as real processes on one PostgreSQL run jobs that use a named limit; one of them is killed.

Each job writes a line when it begins and one when it ends: there are never more between these than the limit allows,
no job that has ended begins again, and when all is over nobody holds any of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.counted_jobs import NAMES, begins, check_counts, counted_flow, running_after, serve_with_pilots
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site

pytestmark = pytest.mark.law

LIMIT = 4
JOBS = 10
FLOW = counted_flow("licensed", JOBS, "limits: {licence-x: 1}")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path, lease_s=24) as site:  # also on a busy machine a case is taken over within a lease
        yield site


def test_a_killed_server_neither_exceeds_a_limit_nor_keeps_some_of_it(site: Site) -> None:  # DU-6
    clients = serve_with_pilots(site)
    west = clients["west"]
    (site.folder / "licensed.yaml").write_text(FLOW)
    site.asked(lambda: west.deploy(load(site.folder / "licensed.yaml")), "the flow to be deployed")
    site.asked(lambda: west.set_limit("licence-x", LimitCount(LIMIT)), "the limit to be set")
    for name, client in clients.items():  # a case has its home where it was started
        begin(site, client, name)
    site.until(lambda: len(site.lines()) >= 2 * LIMIT and _used(west) == LIMIT, "jobs to use all of the limit")
    site.processes["east"].kill()
    site.until(lambda: not west.find_cases(CaseQuery(status="running")).rows, "the end")
    assert [case.status for case in west.find_cases(CaseQuery()).rows] == ["completed"] * 3
    check_counts(site, at_once_max=LIMIT, jobs=3 * JOBS)
    site.until(lambda: _used(west) == 0, "everybody to have given back what they used")


def test_a_lowered_limit_stops_no_job_and_starts_none(site: Site) -> None:  # DU-6
    clients = serve_with_pilots(site, NAMES[:2])
    east, west = clients["east"], clients["west"]
    (site.folder / "licensed.yaml").write_text(FLOW)
    site.asked(lambda: west.deploy(load(site.folder / "licensed.yaml")), "the flow to be deployed")
    site.asked(lambda: west.set_limit("licence-x", LimitCount(LIMIT)), "the limit to be set")
    for name, client in clients.items():
        begin(site, client, name)
    site.until(lambda: _used(west) == LIMIT, "jobs to use all of the limit")
    lowered = site.asked(lambda: east.set_limit("licence-x", LimitCount(1)), "the limit to be lowered")
    began = len([line for line in site.lines() if begins(line)])
    assert lowered.used <= LIMIT
    site.until(lambda: _used(west) == 1, "the others to have ended")
    site.until(lambda: not west.find_cases(CaseQuery(status="running")).rows, "the end")
    later = [line for line in site.lines() if begins(line)][began + lowered.used :]
    assert len(later) >= 2 * JOBS - began - LIMIT
    running = running_after(site.lines())
    assert max(running[2 * (began + LIMIT) :], default=1) <= 1


def begin(site: Site, client: SyncClient, key: str) -> None:
    inputs: dict[str, Value] = {"folder": str(site.folder)}
    site.asked(lambda: client.start("licensed", inputs, key=key), "a case to be started")


def _used(client: SyncClient) -> int:
    return client.limit("licence-x").used
