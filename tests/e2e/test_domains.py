"""Two domains as real processes, with a relay between them that drops, delays, doubles and cuts; both servers are
killed at random. Every job ends once, and no two attempts of one run at the same time."""

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from mendflow.core.model.jobs import JobState
from mendflow.core.model.views import JobQuery
from mendflow.formats import load
from tests.e2e.two_domains import LEASE_S, TwoDomains

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


@pytest.mark.law
@pytest.mark.full
def test_servers_that_are_killed_and_come_back_go_on_with_everything_and_nothing_is_sent_again(tmp_path: Path) -> None:
    # FM-4 FM-8
    jobs, calls = 80, 6
    with TwoDomains(tmp_path, 1, domain_lease_s=0) as domains:
        _deploy(domains)
        case = domains.start(jobs, calls)
        south = domains.clients["south"]
        domains.until(lambda: len(south.cases(limit=1_000)) == jobs + calls, "everything to be there")
        for killed in (["south"], ["north"], ["north", "south"]):
            for name in killed:
                domains.kill(name)
            time.sleep(LEASE_S)
            for name in killed:
                domains.serve(name)
            for name in killed:
                domains.until(partial(domains.answers, name), f"{name} to be back")
        domains.until(lambda: domains.clients["north"].case(case).status == "completed", "the case to end")
        _check(domains, case, jobs, calls)
        assert len(domains.clients["north"].jobs(JobQuery(case=case, limit=1_000))) == jobs
        assert len(south.cases(limit=1_000)) == jobs + calls


JOBS = int(os.environ.get("MENDFLOW_DOMAIN_JOBS", "120"))
CALLS = int(os.environ.get("MENDFLOW_DOMAIN_CALLS", "6"))
SEED = int(os.environ.get("MENDFLOW_DOMAIN_SEED", "1"))


@pytest.mark.law
@pytest.mark.full
@pytest.mark.timeout(300 + JOBS)  # 2,000 jobs in a storm take many minutes
@pytest.mark.parametrize("domains", [SEED], indirect=True)
def test_a_bad_line_and_killed_servers_lose_nothing_and_do_nothing_twice(domains: TwoDomains) -> None:  # FM-4 FM-8
    _deploy(domains)
    case = domains.start(JOBS, CALLS)
    for line in domains.lines.values():
        line.get_bad()
    over = threading.Event()
    storm = threading.Thread(target=domains.torment, args=(over, SEED, 4.0))
    storm.start()
    try:
        time.sleep(0.1)
        over.wait(20 + JOBS / 20)
    finally:
        over.set()
        storm.join()
    for line in domains.lines.values():
        line.get_good()
    patience_s = 120 + JOBS / 5
    domains.until(lambda: domains.clients["north"].case(case).status == "completed", "the case to end", patience_s)
    _check(domains, case, JOBS, CALLS)
    domains.until(lambda: domains.clients["south"].connected_domain("north").held == 0, "all to be acknowledged")
