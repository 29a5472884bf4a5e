"""Jobs under other accounts and in sandboxes are as others: they are stopped, ended and measured, and die with their
slot."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from mendflow.core.model.views import CASE_END_STATES
from tests.e2e.conftest import descendants
from tests.e2e.isolation.conftest import OWNER, Installation

WAYS = pytest.mark.parametrize(
    "way", [("--jobs-as", "nobody"), ("--sandbox", "bubblewrap")], ids=["account", "sandbox"]
)
UNIT = Path(__file__).parents[3] / "deploy" / "systemd" / "mendflow-pilot.service"
COUNT = "i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.1; done"


def count_of(installation: Installation) -> int:
    """How far the job has counted, in its newest attempt."""
    found = sorted(installation.work.glob("attempts/*/count"), key=lambda path: path.stat().st_mtime)
    return int(found[-1].read_text() or 0) if found else 0


def stands_still(installation: Installation) -> bool:
    before = count_of(installation)
    time.sleep(1.0)
    return count_of(installation) == before


def counting(agent: int) -> list[int]:
    """The processes of the counting job."""
    return [pid for pid in descendants(agent) if b"echo $i > count" in read(pid)]


def read(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@WAYS
def test_orders_reach_a_confined_job_and_it_dies_with_its_slot(
    installation: Installation, way: tuple[str, ...]
) -> None:  # SE-2
    installation.serve()
    installation.pilot(*way)
    client, agent = installation.client(OWNER), installation.processes["pilot"].pid
    case = installation.begin(OWNER, "counting", json.dumps({"name": "counting", "jobs": {"a": {"run": COUNT}}}))
    installation.until(lambda: count_of(installation) > 3, "the job to count")
    client.suspend(case)
    installation.until(lambda: stands_still(installation), "the job to stand still")
    client.resume(case)
    before = count_of(installation)
    installation.until(lambda: count_of(installation) > before + 3, "the job to go on")
    first = counting(agent)
    slots = [pid for pid in descendants(agent) if b"mendflow.pilot.slot.process" in read(pid)]
    (busy,) = [pid for pid in slots if {*descendants(pid)} & {*first}]
    os.kill(busy, signal.SIGKILL)
    installation.until(
        lambda: not any(b"echo $i > count" in read(pid) for pid in first), "the job to die with its slot"
    )
    installation.until(lambda: counting(agent), "another attempt")
    client.cancel(case)
    installation.until(lambda: client.case(case).status in CASE_END_STATES, "the end")
    installation.until(lambda: not counting(agent), "its processes to be gone")


def test_the_unit_of_a_pilot_leaves_it_the_rights_that_it_needs(installation: Installation) -> None:  # SE-2
    [named] = re.findall(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)
    kept = ",".join(["-all", *(f"+{each.removeprefix('CAP_').lower()}" for each in named.split())])
    installation.serve()
    installation.pilot("--jobs-as", "nobody", before=["setpriv", f"--bounding-set={kept}", "--no-new-privs", "--"])
    client, agent = installation.client(OWNER), installation.processes["pilot"].pid
    status = Path(f"/proc/{agent}/status").read_text()
    assert f"CapBnd:\t{'0' * 10}" in status and "NoNewPrivs:\t1" in status
    jobs = {
        "first": {"run": "mkdir -m 0 shut; id -un > me", "files": {"me": "me"}},
        "then": {"inputs": {"me": "${{ jobs.first.files.me }}"}, "run": f"grep -q nobody me; {COUNT}"},
    }
    case = installation.begin(OWNER, "counting", json.dumps({"name": "counting", "jobs": jobs}))
    installation.until(lambda: count_of(installation) > 3, "the job to count")
    slots = [pid for pid in descendants(agent) if b"mendflow.pilot.slot.process" in read(pid)]
    (busy,) = [pid for pid in slots if {*descendants(pid)} & {*(first := counting(agent))}]
    os.kill(busy, signal.SIGKILL)
    installation.until(lambda: not any(b"echo $i > count" in read(pid) for pid in first), "it to die with its slot")
    installation.until(lambda: counting(agent), "another attempt")
    client.cancel(case)
    installation.until(lambda: client.case(case).status in CASE_END_STATES, "the end")
    installation.until(lambda: not counting(agent), "its processes to be gone")


@WAYS
def test_a_confined_job_is_measured_and_a_link_out_of_its_folder_is_no_output(
    installation: Installation, way: tuple[str, ...]
) -> None:  # SE-2
    installation.serve()
    installation.pilot(*way)
    client = installation.client(OWNER)
    jobs = {
        "busy": {
            "run": "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo x > out.txt",
            "files": {"out": "out.txt"},
        },
        "linked": {"run": "ln -s /etc/passwd out.txt", "files": {"out": "out.txt"}, "retries": 0},
        "spilling": {
            "run": 'ln -s /etc/passwd .mendflow.value0.json; printf "big=%0200000d\\n" 1 >> "$MENDFLOW_OUTPUT"'
        },
    }
    before = Path("/etc/passwd").read_bytes()
    case = installation.begin(OWNER, "measured", json.dumps({"name": "measured", "on-failure": "finish", "jobs": jobs}))
    installation.until(lambda: client.case(case).status in CASE_END_STATES, "the end")
    items = {str(item.item): item for item in client.items(case)}
    assert {name: str(item.state) for name, item in items.items()} == {
        "busy": "completed",
        "linked": "failed",
        "spilling": "completed",
    }
    assert Path("/etc/passwd").read_bytes() == before, "the pilot writes through no link of a job"
    assert "outside of the job's folder" in client.why(f"{case}:linked").sentence
    job = client.job(str(items["busy"].job))
    assert job.outcome is not None and job.outcome.measures.cpu_ms > 0 and job.outcome.measures.peak_bytes > 0
