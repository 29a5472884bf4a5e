"""LSF and PBS through PSI/J, and HTCondor: the words that are said to each keep the contract, with commands that answer
as their manuals say. Whether the real ones do is for a site to try."""

import shutil
import sys
from pathlib import Path

import pytest

from mendflow.core.model.sites import Site
from tests.contract.batch_systems import BatchContract, site_of

COMMANDS = {
    "lsf": ("bsub", "bjobs", "bkill"),
    "pbs": ("qsub", "qstat", "qdel"),
    "htcondor": ("condor_submit", "condor_q", "condor_rm"),
}
STAND_IN = Path(__file__).parents[1] / "batch" / "stand_in.py"


@pytest.mark.parametrize("kind", COMMANDS)
class TestWords(BatchContract):
    @pytest.fixture
    def site(self, kind: str, tmp_path: Path) -> Site:
        folder = tmp_path / "commands"
        folder.mkdir()
        body = STAND_IN.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}")
        for command in COMMANDS[kind]:
            (folder / command).write_text(body)
            (folder / command).chmod(0o755)
        assert shutil.which(COMMANDS[kind][0], path=str(folder))
        return site_of(kind, commands=str(folder), wall_ms=600_000, timeout_ms=20_000)
