"""Two servers and two pilots as real processes on one PostgreSQL; one server is killed while jobs run.

Every attempt writes when it started and when it ended. Nothing that runs is interrupted because a server died, and
every job ends once."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.jobs import JobState
from mendflow.core.model.problems import Mistake
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.conftest import free_port
from tests.servers.postgresql import postgresql_server

LEASE_S = 8
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
      echo "$MENDFLOW_JOB $MENDFLOW_ATTEMPT start" >> ${{ inputs.folder }}/lines
      sleep 4
      echo "$MENDFLOW_JOB $MENDFLOW_ATTEMPT end" >> ${{ inputs.folder }}/lines
"""


class Site:
    """Processes in a folder, by name."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self._store = store
        self._log = (folder / "site.log").open("ab")
        self._clients: list[SyncClient] = []
        self.urls: dict[str, str] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self, name: str) -> SyncClient:
        port = free_port()
        self.urls[name] = f"http://127.0.0.1:{port}"
        data, lease = str(self.folder / name), str(LEASE_S)
        self._start(name, "serve", "--data", data, "--port", str(port), "--lease", lease, "--store", self._store)
        self._clients.append(client := SyncClient(self.urls[name]))
        self.until(lambda: client.health().status == "ok", f"server {name} to be there")
        return client

    def pilot(self, name: str, server: str) -> None:
        work = str(self.folder / name)
        self._start(name, "pilot", "--server", self.urls[server], "--work", work, "--slots", "3", "--cpus", "3")

    def _start(self, name: str, *words: str) -> None:
        command = [sys.executable, "-m", "mendflow", *words]
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def lines(self) -> list[str]:
        path = self.folder / "lines"
        return path.read_text().splitlines() if path.exists() else []

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = 60) -> None:
        end = time.monotonic() + patience_s
        while True:
            try:
                if holds():
                    return
            except Mistake:
                pass
            assert time.monotonic() < end, f"waited {patience_s} s for {what}: {self.log()}"
            time.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "site.log").read_text()[-6000:]

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with postgresql_server() as store:
        site = Site(tmp_path, store.url)
        try:
            yield site
        finally:
            site.close()


@pytest.mark.timeout(240)
def test_a_killed_server_costs_no_running_job_and_every_job_ends_once(site: Site) -> None:  # JS-6 JS-7 JS-8
    east, west = site.serve("east"), site.serve("west")
    site.until(lambda: len(west.servers()) == 2, "the servers to see each other")
    site.pilot("p-east", "east")
    site.pilot("p-west", "west")
    site.until(lambda: len(west.pilots()) == 2, "both pilots to be seen by west")
    (site.folder / "twelve.yaml").write_text(FLOW)
    east.deploy(load(site.folder / "twelve.yaml"))
    case = east.start("twelve", {"jobs": list(range(JOBS)), "folder": str(site.folder)}).id
    site.until(lambda: len(site.lines()) >= 6, "jobs of east to run in both pilots")
    site.processes["east"].kill()
    begun = {line.rpartition(" ")[0] for line in site.lines()}
    site.until(lambda: west.case(case).status == "completed", "the case to be over", 100)
    jobs = west.jobs(JobQuery(case=case, limit=100))
    assert len(jobs) == JOBS and all(job.state is JobState.COMPLETED for job in jobs)
    lines = site.lines()
    assert len(lines) == len(set(lines)) == 2 * JOBS, f"something ran twice, or was stopped: {sorted(lines)}"
    assert all(f"{attempt} end" in lines for attempt in begun)
    assert all(len(job.history) == 1 for job in jobs)
