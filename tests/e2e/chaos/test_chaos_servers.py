"""Thousands of short jobs on three servers and six pilots, while all of them, the store and the lines between them are
tormented.

Every attempt writes when it started, that it is alive, and when it ended, by the machine's one steady clock. The laws
are read off these lines and off what the servers say in the end. MENDFLOW_CHAOS_SEEDS says how many seeds are played,
MENDFLOW_CHAOS_JOBS how many jobs each has; docs/understand/reliability.md has the figures."""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.core.model.jobs import Job
from mendflow.core.model.views import CaseView, JobQuery
from mendflow.formats import load
from tests.e2e.chaos import tick
from tests.e2e.chaos.attempts import check_job, read_attempts
from tests.e2e.chaos.fleet import Fleet, fleet, now_us, steady_us
from tests.e2e.chaos.pulse import Pulse, pulse
from tests.e2e.chaos.recovery import HomesSeen, Recoveries, Recovery
from tests.e2e.chaos.torment import ROUND, Torment
from tests.servers import opensearch
from tests.servers.postgresql import postgresql_server

pytestmark = pytest.mark.law

_ASKED = int(os.environ.get("MENDFLOW_CHAOS_SEEDS", "1"))
SEEDS = _ASKED if _ASKED > 2 else 1  # a seed takes a minute: the usual check plays one
JOBS = int(os.environ.get("MENDFLOW_CHAOS_JOBS", "2000"))
CASES = 10
LEASE_S = 8
LEASE_ON_OPENSEARCH_S = 15
"""A node that has just started takes seconds over what it does in milliseconds later; a server's time to promise, which
is a tenth of the lease, must be longer than that or it has no cases most of the time."""

BESIDE_LEASE_S = 5
"""A wait that is longer than the lease and this is told with all that happened meanwhile. It breaks no law: how long
recovery takes is a figure of bench/servers_in_turn."""

TROUBLE_S = 240
"""So long trouble is made at most. What is not over then must be over without it."""

PATIENCE_S = 600
FLOW = """
name: chaos
inputs:
  calls: {type: list}
  commands: {type: list}
  log: {type: string}
  command: {type: string}
jobs:
  call:
    for-each: ${{ inputs.calls }}
    python: tick.py:tick
    with: {log: "${{ inputs.log }}", seconds: "${{ item }}"}
  command:
    for-each: ${{ inputs.commands }}
    run: exec ${{ inputs.command }} ${{ inputs.log }} ${{ item }}
outputs:
  call: ${{ jobs.call.outputs }}
  command: ${{ jobs.command.outputs }}
"""


@contextmanager
def _on_postgresql(folder: Path) -> Iterator[Fleet]:
    with postgresql_server() as store, fleet(folder, store.url, store, lease_s=LEASE_S) as made:
        yield made


@contextmanager
def _on_opensearch(folder: Path) -> Iterator[Fleet]:
    store = opensearch.Node(folder / "node")
    store.start()
    try:
        url = f"elasticsearch://{store.address}/chaos"
        with fleet(folder, url, store, lease_s=LEASE_ON_OPENSEARCH_S) as made:
            yield made
    finally:
        store.kill()


STORES = {"postgresql": _on_postgresql, "opensearch": _on_opensearch}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("store", ["postgresql", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def test_nothing_is_lost_and_nothing_runs_twice_while_servers_pilots_store_and_lines_fail(
    tmp_path: Path, store: str, seed: int
) -> None:  # JS-1 JS-6 JS-7 JS-8: laws 1 to 4
    with STORES[store](tmp_path) as made:
        client = made.begin()
        _deploy(client, tmp_path)
        work = Work(made, seed)
        torment = Torment(made, seed)
        started = time.monotonic()
        with work, pulse(tmp_path / "pulse") as felt:
            torment.go_on_until(lambda: work.over, TROUBLE_S, PATIENCE_S)
        took_s = time.monotonic() - started
        kinds = Counter(trouble.kind for trouble in torment.troubles)
        assert len(kinds) == len(set(ROUND)), f"it was over before everything had happened: {kinds}"
        jobs = _check(client, work, tmp_path / "attempts.log")
        log = read_attempts(tmp_path / "attempts.log")
        found = Recoveries(made, jobs, log, torment.troubles, work.homes)
        print(f"\nseed {seed} on {store}: {JOBS} jobs in {took_s:.0f} s; {_told(kinds, found, felt)}")
        if _worst(found).counted_us / 1e6 >= made.lease_s + BESIDE_LEASE_S:
            print(found.story(_worst(found)))


def _worst(found: Recoveries) -> Recovery:
    return max(found.all, key=lambda each: each.counted_us)


def _told(kinds: Counter[str], found: Recoveries, felt: Pulse) -> str:
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    worst = _worst(found)
    whole_s = max(each.whole_us for each in found.all) / 1e6
    return (
        f"{counts}; {len(found.all)} attempts interrupted; a job ran again after {worst.counted_us / 1e6:.1f} s at most"
        f" ({whole_s:.1f} s with what else happened); work took {felt.slowness(0, now_us()):.1f} times as long as alone"
    )


def _deploy(client: SyncClient, folder: Path) -> None:
    (folder / "tick.py").write_text(Path(tick.__file__).read_text())
    (folder / "chaos.yaml").write_text(FLOW)
    client.deploy(load(folder / "chaos.yaml"))


class Work:
    """Cases that are started one after the other, by key, and looked at until all are over."""

    def __init__(self, made: Fleet, seed: int) -> None:
        self._client = made.client()
        self._seed = seed
        log = str(made.folder / "attempts.log")
        command = f"{sys.executable} -S -E {made.folder / 'tick.py'}"
        self._inputs = {"log": log, "command": command}
        self._threads = [threading.Thread(target=self._start_all), threading.Thread(target=self._look)]
        self._ended = threading.Event()
        self.homes = HomesSeen()
        self.cases: list[str] = []
        self.over = False

    def __enter__(self) -> "Work":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _start_all(self) -> None:
        """Half of the cases at once, the others in the midst of trouble. Whoever gets no answer asks again."""
        for number in range(CASES):
            seconds = [_seconds(turn) for turn in range(number, JOBS, CASES)]
            inputs = {
                **self._inputs,
                "calls": seconds[: -len(seconds) // 10],
                "commands": seconds[-len(seconds) // 10 :],
            }
            while not self._ended.is_set():
                try:
                    case = self._client.start("chaos", inputs, key=f"{self._seed}-{number}")
                    self.homes.see(now_us(), {case.id: case.server})
                    self.cases.append(case.id)
                    break
                except RequestError:
                    self._ended.wait(0.2)
            if number >= CASES // 2:
                self._ended.wait(2)

    def _look(self) -> None:
        while not self._ended.wait(0.4):
            try:
                seen = self._client.cases(flow="chaos")
            except RequestError:
                continue
            self.homes.see(now_us(), {case.id: case.server for case in seen})
            self.over = len(self.cases) == CASES and all(case.status != "running" for case in seen)


def _seconds(turn: int) -> float:
    """Most jobs are short, some take a second, a few three."""
    return 3.0 if turn % 20 == 7 else 1.0 if turn % 7 == 3 else 0.05


def _check(client: SyncClient, work: Work, log: Path) -> list[Job]:
    """Nothing lost; one accepted result a job; one attempt at a time; outputs of the accepted attempts."""
    attempts = read_attempts(log)
    ahead_us = steady_us()
    assert len(set(work.cases)) == len(client.cases(flow="chaos")) == CASES
    jobs: list[Job] = []
    for case in work.cases:
        view = client.case(case)
        assert view.status == "completed", view.fault
        its = _jobs(client, case)
        for job in its:
            # A server tells the time in whole milliseconds, and the two clocks drift a little within a minute.
            check_job(job, attempts[job.id], finished_us=job.finished_at * 1000 + ahead_us + 3_000)
            assert job.failures == 0, f"{job.id}: what failed was not its own: {job.history}"
            assert [each.end for each in job.history].count("completed") == 1, job.history
        _check_outputs(view, its)
        jobs += its
    assert len({job.id for job in jobs}) == len(jobs) == JOBS
    assert {job.id for job in jobs} == set(attempts)
    return jobs


def _jobs(client: SyncClient, case: str) -> list[Job]:
    jobs: list[Job] = []
    while page := client.jobs(JobQuery(case=case, limit=1000, offset=len(jobs))):
        jobs += page
    return jobs


def _check_outputs(view: CaseView, jobs: list[Job]) -> None:
    for name, outputs in view.outputs.items():
        its = [job for job in jobs if job.name == name]
        its.sort(key=lambda job: int(job.spec.item.rpartition("[")[2][:-1]))
        assert isinstance(outputs, list)
        assert [output["attempt"] for output in outputs if isinstance(output, dict)] == [job.fence for job in its]
