"""A pilot that was stopped for longer than its lease, and wakes up: its jobs were dead before the lease was over, they
ran elsewhere meanwhile, and nothing that it still has to say changes anything."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.jobs import Job
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.chaos import tick
from tests.e2e.chaos.attempts import Attempts, check_job, read_attempts
from tests.e2e.chaos.fleet import Fleet, fleet, now_us, steady_us
from tests.servers.postgresql import postgresql_server

pytestmark = pytest.mark.law

LEASE_S = 6
FLOW = """
name: two
inputs:
  log: {type: string}
  command: {type: string}
  release: {type: string}
jobs:
  call: {python: tick.py:tick, with: {log: "${{ inputs.log }}", seconds: 600, release: "${{ inputs.release }}"}}
  command: {run: "exec ${{ inputs.command }} ${{ inputs.log }} 600 ${{ inputs.release }}"}
outputs:
  call: ${{ jobs.call.outputs }}
  command: ${{ jobs.command.outputs }}
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Fleet]:
    with postgresql_server() as store, fleet(tmp_path, store.url, store, lease_s=LEASE_S) as made:
        yield made


STOPS: dict[str, Callable[[Fleet], None]] = {
    "everything of it": lambda made: made.stop_whole("p1"),
    "its agent": lambda made: made.stop("p1"),
}


@pytest.mark.parametrize("what", STOPS)
def test_a_pilot_that_wakes_up_after_its_lease_has_no_job_any_more_and_changes_nothing(made: Fleet, what: str) -> None:
    # JS-4 JS-7 PJ-1: law 3, with two servers
    client = made.begin(servers=("one", "two"), pilots=("p1",))
    case = _start(client, made.folder)
    made.until(lambda: len(_attempts(made)) == 2, "both jobs to run in the first pilot")
    made.start_pilot("p2", "two")
    made.until(lambda: len(client.pilots()) == 2, "the second pilot to be there")
    running = _running(made, "p1")
    STOPS[what](made)
    stopped_us = now_us()
    made.until(lambda: all(2 in each for each in _attempts(made).values()), "both jobs to run in the second pilot")
    assert running and not running & made.processes_of("p1"), "what the first one ran is dead before others run it"
    _release(made.folder).touch()  # not before: no job of the first pilot can end by itself
    made.until(lambda: client.case(case).status == "completed", "the case to be over")
    before = _jobs(client, case)
    first = {job: each[1] for job, each in _attempts(made).items()}

    made.go_on_whole("p1")
    made.until(lambda: max(view.seen_ms_ago for view in client.pilots()) < 1000, "the first pilot to be heard again")
    assert _jobs(client, case) == before, "whoever wakes up too late changes nothing"
    again = _start(client, made.folder)
    made.until(lambda: client.case(again).status == "completed", "another case to be over, with both pilots")
    attempts = _attempts(made)
    for job in before:
        assert [each.end for each in job.history] == ["lost", "completed"] and job.failures == 0
        check_job(job, attempts[job.id], finished_us=job.finished_at * 1000 + steady_us() + 3_000)
        assert attempts[job.id][1] == first[job.id], "not one step after it was woken up"
        assert attempts[job.id][1].last_at < stopped_us + LEASE_S * 1_000_000
    assert client.case(case).outputs == {"call": {"attempt": 2}, "command": {"attempt": 2}}


def _start(client: SyncClient, folder: Path) -> str:
    (folder / "tick.py").write_text(Path(tick.__file__).read_text())
    (folder / "two.yaml").write_text(FLOW)
    client.deploy(load(folder / "two.yaml"))
    command = f"{sys.executable} -S -E {folder / 'tick.py'}"
    inputs = {"log": str(folder / "attempts.log"), "command": command, "release": str(_release(folder))}
    return client.start("two", inputs).id


def _release(folder: Path) -> Path:
    """The file that lets the jobs end."""
    return folder / "release"


def _attempts(made: Fleet) -> Attempts:
    log = made.folder / "attempts.log"
    return read_attempts(log) if log.exists() else {}


def _jobs(client: SyncClient, case: str) -> list[Job]:
    return sorted(client.jobs(JobQuery(case=case)), key=lambda job: job.id)


def _running(made: Fleet, pilot: str) -> set[int]:
    """The processes of a pilot that run its jobs, or might."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in made.processes_of(pilot)}
    return {pid for pid, text in commands.items() if b"tick.py" in text or b"mendflow.pilot.worker.process" in text}
