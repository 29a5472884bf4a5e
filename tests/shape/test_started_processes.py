"""What a tool has started is gone when it ends, also what has left its parent."""

import os
import subprocess
import sys

import pytest

from tools.environment import ROOT

PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
from tools import started_processes

started_processes.GRACE_S = 0.5
spared = subprocess.Popen(["sleep", "300"])
try:
    with started_processes.all_ended():
        shell = subprocess.Popen(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
        print(shell.stdout.readline().strip(), flush=True)
        if sys.argv[2] == "fails":
            raise SystemExit(3)
finally:
    assert spared.poll() is None
    spared.kill()
"""
LEAVES = "setsid sleep 300 > /dev/null & echo $!"
IS_DEAF = "setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' > /dev/null & sleep 0.3; echo $!"


@pytest.mark.parametrize("end", ["ends", "fails"])
@pytest.mark.parametrize("command", [LEAVES, IS_DEAF], ids=["leaves its parent", "is deaf"])
def test_nothing_is_left_of_what_was_started(command: str, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, command, end], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == (3 if end == "fails" else 0), done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
