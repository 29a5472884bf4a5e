"""Tier0 as it ships: on local pilots, as one case of 172 jobs, and with server and pilots killed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.views import JobQuery
from tests.e2e.conftest import World

ROOT = Path(__file__).parents[2]
RUN = ROOT / "examples" / "tier0" / "run.py"
PATIENCE_S = 240


def run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(RUN), *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def table(printed: str) -> dict[str, tuple[int, int, int]]:
    """By step: jobs, inputs from caches, inputs from elsewhere."""
    rows = re.findall(r"^(\S+) +(\d+) +(\d+) +(\d+) +\d+%$", printed, re.MULTILINE)
    return {step: (int(jobs), int(cached), int(fetched)) for step, jobs, cached, fetched in rows}


def test_tier0_runs_from_one_command_and_reads_from_caches(tmp_path: Path) -> None:  # PJ-9
    printed = run("--work", str(tmp_path / "t"))
    assert "alca-muons: layer 4 is off by 0.050" in printed
    assert "alca-electrons: layer 4 is off by 0.050" in printed
    steps = table(printed)
    assert {step: jobs for step, (jobs, _, _) in steps.items()} == {
        "repack": 12,
        "merge": 14,
        "reco": 12,
        "alca": 6,
        "all": 44,
    }
    assert steps["reco"][1] > steps["reco"][2], "most inputs of reco were with the pilot that made them"
    assert "share from caches" in (tmp_path / "t" / "reports" / "reco.html").read_text()


def test_the_synthetic_tier0_has_172_jobs(tmp_path: Path) -> None:  # PJ-9
    printed = run("--synthetic", "--work", str(tmp_path / "t"))
    jobs, cached, fetched = table(printed)["all"]
    assert (jobs, cached + fetched) == (172, 240)
    assert cached > fetched
    report = (tmp_path / "t" / "reports" / "synthetic.html").read_text()
    assert re.search(r"<b>\d+%</b><span>of input data from pilots' caches</span>", report)


def test_tier0_comes_to_the_same_when_server_and_pilots_are_killed(world: World, tmp_path: Path) -> None:  # PJ-9 PJ-6
    world.start_server()
    world.wait_for_server()
    for name in ("p1", "p2"):
        world.start_pilot(name, slots=1)
    work = str(tmp_path / "t")
    running = subprocess.Popen(
        [sys.executable, str(RUN), "--server", world.url, "--work", work], stdout=subprocess.PIPE, text=True
    )

    def cases_of(data_set: str) -> int:
        return len(world.client.set_batches(data_set, status="completed"))

    world.until(lambda: cases_of("streamer") >= 2, "the first files to be repacked")
    world.kill_server()
    world.start_server()
    world.until(lambda: cases_of("streamer") >= 6, "half of the files to be repacked")
    world.kill_pilot("p1", whole=True)
    world.start_pilot("p1", slots=1)
    world.until(lambda: cases_of("raw-muons") + cases_of("raw-electrons") >= 1, "something to be reconstructed")
    world.kill_server()
    world.kill_pilot("p2")
    world.start_server()
    world.start_pilot("p2", slots=1)
    printed, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, printed
    assert "alca-muons: layer 4 is off by 0.050" in printed
    done = world.client.count_jobs(JobQuery(state="completed")).counts
    assert sum(done.values()) == 44, f"no result more, and none less: {printed}"


@pytest.mark.short
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pilots", "0"], "'0' is not a number above 0"),
        (["--files", "-1"], "'-1' is not a number above 0"),
        (["--events", "many"], "'many' is not a number above 0"),
        (["--work", "."], ". is there already; give --work a new folder"),
        (["--server", "http://127.0.0.1:1"], "mendflow data storage add"),
    ],
)
def test_what_tier0_cannot_do_it_refuses_in_a_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), *words],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0 and done.stderr.count(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_tier0_leaves_nothing_behind_when_it_is_told_to_end(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([sys.executable, str(RUN)], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and "streamer is open" in process.stdout.readline()
    process.terminate()
    process.stdout.read()  # to its end: nobody holds it any more
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert list(tmp_path.glob("tier0-*")) == []
