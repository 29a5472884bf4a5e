"""Tier0 on a real Slurm: pilots come for its jobs, and each step finds what the last one made in their caches."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.model.sites import PilotSettings
from tests.e2e.slurm.conftest import Farm

pytestmark = pytest.mark.slurm

RUN = Path(__file__).parents[3] / "examples" / "tier0" / "run.py"


def test_tier0_runs_on_slurm_and_finds_its_files_in_caches(farm: Farm) -> None:  # PJ-4, PJ-6, PJ-8, PJ-9
    farm.put(max_pilots=2, min_pilots=1, pilots=PilotSettings(idle_exit_ms=20_000, share="host"))
    work = farm.folder / "tier0"
    command = [sys.executable, str(RUN), "--server", farm.world.url, "--work", str(work), "--files", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{farm.story()}"
    assert re.search(r"alca-muons: layer \d+ is off by", done.stdout)
    told = re.search(r"^all +(\d+) +(\d+) +(\d+)", done.stdout, re.MULTILINE)
    assert told is not None, done.stdout
    jobs, cached, _ = map(int, told.groups())
    assert jobs > 20 and cached > jobs // 2, done.stdout
    assert {job.site for job in farm.client.pilots()} == {"farm"}
    reports = {path.name: path.read_text() for path in (work / "reports").iterdir()}
    assert {"repack.html", "merge.html", "reco.html", "alca.html"} <= reports.keys()
    assert "share from caches" in reports["reco.html"]
