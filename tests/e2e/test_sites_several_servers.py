"""Two servers on one PostgreSQL look after one site; the one that acts is killed while its pilots work."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.jobs import JobState
from mendflow.core.model.sites import BatchSettings, PilotSettings, SubmissionState
from mendflow.core.model.sites import Site as Farm
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site
from tests.e2e.test_several_servers import FLOW

JOBS, MOST = 6, 2


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path, lease_s=20) as site:  # a busy machine may keep a server from its beats
        yield site


def working(client: SyncClient) -> int:
    return sum(each.state is SubmissionState.WORKING for each in client.site("farm").submissions)


def completed(client: SyncClient, case: str) -> bool:
    return client.case(case).status == "completed"


def test_the_other_server_goes_on_with_the_pilots_that_are_there(site: Site) -> None:  # PJ-8, JS-7
    clients = {name: site.serve(name) for name in ("east", "west")}
    site.until(lambda: len(clients["west"].servers()) == 2, "the servers to see each other")
    farm = Farm(
        name="farm",
        max_pilots=MOST,
        batch=BatchSettings(folder=str(site.folder / "farm")),
        pilots=PilotSettings(idle_exit_ms=3_000, away_exit_ms=60_000),
    )
    clients["east"].put_site(farm)
    (site.folder / "twelve.yaml").write_text(FLOW)
    clients["west"].deploy(load(site.folder / "twelve.yaml"))
    inputs = {"jobs": list(range(JOBS)), "folder": str(site.folder)}
    cases = [client.start("twelve", dict(inputs)).id for client in clients.values()]
    site.until(lambda: working(clients["west"]) == MOST, "both pilots to work")
    ids = {view.id: name for view in clients["west"].servers() for name, url in site.urls.items() if url == view.url}
    acting = ids[clients["west"].site("farm").submissions[0].by]
    site.processes[acting].kill()
    left = clients[next(name for name in clients if name != acting)]
    for case in cases:
        site.until(partial(completed, left, case), "the case to be over")
    jobs = [job for case in cases for job in left.jobs(JobQuery(case=case, limit=100))]
    assert len(jobs) == 2 * JOBS and all(job.state is JobState.COMPLETED for job in jobs)
    lines = site.lines()
    assert len(lines) == len(set(lines)) == 4 * JOBS, f"something ran twice, or was stopped: {sorted(lines)}"
    ran = {line.rpartition(" ")[0] for line in lines}
    assert ran == {f"{job.id} {job.history[-1].fence}" for job in jobs}, "an attempt ran that is not the job's last"
    pilots = {job.history[-1].pilot for job in jobs}
    assert len(pilots) == MOST, "there was no need for others"
    site.until(lambda: not left.site("farm").submissions, "the pilots to leave")
    assert {each.how for each in left.site("farm").endings} == {"left"}
    left.remove_site("farm")
    assert left.sites() == []
