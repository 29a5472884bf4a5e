"""The shipped BPEL processes, each with jobs in JSDL whose files are staged, on a real server with a real pilot."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mendflow.formats.bpel.ports import port_wsdl
from tests.e2e.soap_client import EXAMPLES, Asking, example, send, sorting, texts
from tests.patience import PATIENCE_S

PATTERNS = ("synchronous", "polling", "callback", "fire-and-forget")
JOBS = "urn:mendflow:jobs:1"
SLOW = """<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl"><JobDescription><Application>
<POSIXApplication xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"><Executable>/bin/sleep</Executable>
<Argument>60</Argument></POSIXApplication></Application></JobDescription></JobDefinition>"""


@pytest.fixture
def served(world: Any) -> Any:
    world.start_server()
    world.wait_for_server()
    world.start_pilot("east", slots=4)
    return world


@pytest.mark.short
def test_the_wsdl_beside_the_examples_is_the_one_that_ships() -> None:
    assert (EXAMPLES / "jobs.wsdl").read_text() == port_wsdl("jobs")


def test_all_four_ways_to_hand_over_jobs_run_as_bpel(served: Any, tmp_path: Path) -> None:  # FM-2 FM-5 FM-6
    source = tmp_path / "in.txt"
    source.write_text("pear\napple\nplum\n")
    asked = {}
    for name in PATTERNS:
        served.client.deploy(example(name, tmp_path / "flows"))
        asked[name] = Asking(f"{served.url}/soap/flows/{name}", sorting(tmp_path, name, source), f"urn:{name}")
    for name in PATTERNS[:3]:
        assert asked[name].said() == "both jobs have completed"
        assert (tmp_path / f"{name}.sorted").read_text() == "apple\npear\nplum\n"
        assert (tmp_path / f"{name}.count").read_text().split() == ["3"]
    assert asked["fire-and-forget"].said() == "both jobs have been handed over"
    for end in ("sorted", "count"):
        served.until((tmp_path / f"fire-and-forget.{end}").exists, "a forgotten job to have run")
    served.until(lambda: all(case.status == "completed" for case in served.client.cases()), "all cases to be over")
    jobs = {case.id: case for case in served.client.cases() if case.parent}
    assert {case.parent.partition("-soap")[0] for case in jobs.values()} == set(PATTERNS)
    assert all(case.status == "completed" for case in jobs.values()) and len(jobs) == 8


def test_any_client_drives_the_queue_over_soap(served: Any) -> None:  # FM-5
    url = f"{served.url}/soap/jobs"
    status, answer = send(url, f'<submit xmlns="{JOBS}">{SLOW}</submit>', "urn:one")
    job = texts(answer)["jobId"]
    assert status == 200
    assert texts(send(url, f'<submit xmlns="{JOBS}">{SLOW}</submit>', "urn:one")[1])["jobId"] == job, "sent again"
    about = f'<{{0}} xmlns="{JOBS}"><jobId>{job}</jobId></{{0}}>'
    assert texts(send(url, about.format("status"), "urn:two")[1])["state"] == "running"
    assert texts(send(url, about.format("cancel"), "urn:three")[1])["state"] == "cancelled"
    status, answer = send(url, f'<status xmlns="{JOBS}"><jobId>none-1</jobId></status>', "urn:four")
    assert status == 500 and texts(answer)["jobId"] == "none-1"
    status, answer = send(url, f'<run xmlns="{JOBS}"><a/></run>', "urn:five")
    assert status == 500 and "JobDefinition" in texts(answer)["problem"]
    status, answer = send(url, f'<submitAndForget xmlns="{JOBS}">{SLOW}</submitAndForget>', "urn:six")
    assert (status, answer) == (202, b"")


def test_run_waits_for_forgotten_jobs_and_tells_of_all_jobs_of_a_process(tmp_path: Path) -> None:  # FM-5
    (tmp_path / "in.txt").write_text("pear\napple\n")
    (tmp_path / "request.xml").write_text(sorting(tmp_path, "run", tmp_path / "in.txt"))
    words = ["run", str(EXAMPLES / "fire-and-forget.bpel"), "--message", "request.xml", "--data-dir", "data", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "mendflow", *words], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert "both jobs have been handed over" in done.stdout
    assert (tmp_path / "run.sorted").read_text() == "apple\npear\n"
    assert (tmp_path / "run.count").read_text().split() == ["2"]
    page = (tmp_path / "data" / "reports" / "fire-and-forget-soap.1.html").read_text()
    assert "fire-and-forget-soap.1.1" in page and "fire-and-forget-soap.1.2" in page
