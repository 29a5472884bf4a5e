"""Two domains as real processes, with a relay between them that drops, delays, doubles and cuts; both servers are
killed at random. Every job ends once, and no two attempts of one run at the same time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.domains import ConnectionSpec, InvitationSpec
from mendflow.core.model.errors import RequestError
from mendflow.core.model.jobs import JobState
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.bad_line import BadLine
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

LEASE_S = 4
TICK = Path(__file__).parent / "chaos" / "tick.py"
FLOW = """
name: many
inputs:
  jobs: {type: list}
  calls: {type: list}
  log: {type: string}
jobs:
  tick:
    for-each: ${{ inputs.jobs }}
    domain: south
    run: MENDFLOW_JOB=many-${{ item }} MENDFLOW_FENCE=$$ @PYTHON@ @TICK@ ${{ inputs.log }} 0.1
    retries: 3
  sub:
    for-each: ${{ inputs.calls }}
    domain: south
    call: part.yaml
    with: {number: "${{ item }}", log: "${{ inputs.log }}"}
"""
PART = """
name: part
inputs:
  number: {type: number}
  log: {type: string}
jobs:
  one:
    run: MENDFLOW_JOB=part-${{ inputs.number }}-one MENDFLOW_FENCE=$$ @PYTHON@ @TICK@ ${{ inputs.log }} 0.05
  two:
    needs: one
    run: MENDFLOW_JOB=part-${{ inputs.number }}-two MENDFLOW_FENCE=$$ @PYTHON@ @TICK@ ${{ inputs.log }} 0.05
"""


class TwoDomains:
    """North sends, south does the work; each reaches the other through a relay."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._log = (folder / "site.log").open("ab")
        self.ports = {name: free_port() for name in ("north", "south")}
        self.lines = {name: BadLine(port, seed) for name, port in self.ports.items()}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.clients: dict[str, SyncClient] = {}

    def __enter__(self) -> "TwoDomains":
        for name, line in self.lines.items():
            line.__enter__()
            self.serve(name)
            self.clients[name] = SyncClient(f"http://127.0.0.1:{self.ports[name]}")
        for name in self.ports:
            self.until(partial(self._answers, name), f"{name} to be there")
            self._start(
                f"pilot of {name}", "pilot", "--server", f"http://127.0.0.1:{self.ports[name]}", "--work",
                str(self.folder / f"work-{name}"), "--jobs", "4", "--cpus", "4",
            )  # fmt: skip
        north, south = self.clients["north"], self.clients["south"]
        invitation = south.invite_domain("north", InvitationSpec(urls=(self.lines["north"].url,)))
        north.connect_domain("south", ConnectionSpec(urls=(self.lines["south"].url,), token=invitation.token))
        self.until(lambda: north.connected_domain("south").state == "connected", "the two to be connected")
        return self

    def _answers(self, name: str) -> bool:
        return self.clients[name].health().status == "ok"

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()
        for line in self.lines.values():
            line.__exit__()
        self._log.close()

    def serve(self, name: str) -> None:
        place = ["--data-dir", str(self.folder / name), "--port", str(self.ports[name]), "--domain", name]
        self._start(name, "serve", *place, "--lease", str(LEASE_S))

    def _start(self, name: str, *words: str) -> None:
        command = [sys.executable, "-m", "mendflow", *words]
        quiet = subprocess.DEVNULL
        self.processes[name] = subprocess.Popen(command, stdin=quiet, stdout=self._log, stderr=self._log)

    def start(self, jobs: int, calls: int) -> str:
        given = {"jobs": list(range(jobs)), "calls": list(range(calls)), "log": str(self.folder / "lines")}
        return self.clients["north"].start("many", given).id

    def kill(self, name: str) -> None:
        os.kill(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        end = time.monotonic() + patience_s
        while True:
            try:
                if holds():
                    return
            except RequestError:
                pass
            said = (self.folder / "site.log").read_text()[-4000:]
            assert time.monotonic() < end, f"waited {patience_s:.0f} s for {what}: {said}"
            time.sleep(0.1)

    def torment(self, over: threading.Event, seed: int, pause_s: float) -> None:
        """Kill servers, cut lines, and mend both, until it is over."""
        chance = Random(seed)
        while not over.wait(chance.uniform(0.3, 1.7) * pause_s):
            name = chance.choice(["north", "south"])
            if chance.random() < 0.5:
                self.kill(name)
                over.wait(chance.uniform(0, 2))
                self.serve(name)
            else:
                cut = [name] if chance.random() < 0.5 else ["north", "south"]
                for each in cut:
                    self.lines[each].cut = True
                over.wait(chance.choice([0.5, 3.0, LEASE_S * 2.0]))
                for each in cut:
                    self.lines[each].cut = False


@pytest.fixture
def domains(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TwoDomains]:
    with TwoDomains(tmp_path, getattr(request, "param", 1)) as two:
        yield two


def _deploy(domains: TwoDomains) -> None:
    for name, text in (("many", FLOW), ("part", PART)):
        text = text.replace("@PYTHON@", sys.executable).replace("@TICK@", str(TICK))
        (domains.folder / f"{name}.yaml").write_text(text)
    domains.clients["north"].deploy(load(domains.folder / "many.yaml"))


def _check(domains: TwoDomains, case: str, jobs: int, calls: int) -> None:
    """Nothing lost, nothing overlapping, each accepted once: by what the attempts themselves have written."""
    attempts: dict[str, dict[tuple[str, str], list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for line in (domains.folder / "lines").read_text().splitlines():
        name, fence, pilot, what, at = line.split()
        attempts[name][(fence, pilot)].append((int(at), what))
    wanted = {f"many-{number}" for number in range(jobs)}
    wanted |= {f"part-{number}-{step}" for number in range(calls) for step in ("one", "two")}
    assert attempts.keys() == wanted
    for name, tries in attempts.items():
        spans = sorted((min(said)[0], max(said)[0]) for said in tries.values())
        for one, other in pairwise(spans):
            assert one[1] <= other[0], f"{name}: two attempts overlap: {tries}"
        assert any("end" in {what for _, what in said} for said in tries.values()), f"{name} never ended"
    done = domains.clients["north"].jobs(JobQuery(case=case, limit=10_000))
    completed = [job for job in done if job.state is JobState.COMPLETED]
    assert len({job.spec.item for job in completed}) == len(completed) == jobs, "each job is accepted once"


def test_jobs_and_calls_run_in_another_domain(domains: TwoDomains) -> None:  # FM-4
    _deploy(domains)
    case = domains.start(6, 2)
    domains.until(lambda: domains.clients["north"].case(case).status == "completed", "the case")
    _check(domains, case, 6, 2)
    domains.until(lambda: domains.clients["south"].connected_domain("north").held == 0, "all to be acknowledged")


@pytest.mark.full
@pytest.mark.parametrize("domains", [int(os.environ.get("MENDFLOW_DOMAIN_SEED", "1"))], indirect=True)
def test_a_bad_line_and_killed_servers_lose_nothing_and_do_nothing_twice(domains: TwoDomains) -> None:  # FM-4 FM-8
    jobs, calls = int(os.environ.get("MENDFLOW_DOMAIN_JOBS", "120")), int(os.environ.get("MENDFLOW_DOMAIN_CALLS", "6"))
    seed = int(os.environ.get("MENDFLOW_DOMAIN_SEED", "1"))
    _deploy(domains)
    case = domains.start(jobs, calls)
    for line in domains.lines.values():
        line.get_bad()
    over = threading.Event()
    storm = threading.Thread(target=domains.torment, args=(over, seed, 4.0))
    storm.start()
    try:
        time.sleep(0.1)
        over.wait(20 + jobs / 20)
    finally:
        over.set()
        storm.join()
    for line in domains.lines.values():
        line.get_good()
    patience_s = 120 + jobs / 5
    domains.until(lambda: domains.clients["north"].case(case).status == "completed", "the case to end", patience_s)
    _check(domains, case, jobs, calls)
    domains.until(lambda: domains.clients["south"].connected_domain("north").held == 0, "all to be acknowledged")
