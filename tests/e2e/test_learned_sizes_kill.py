"""A server is killed with -9 while jobs run whose memory is learned: what they asked for stands, and what was learned
is known to the next run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.law

JOBS = 10
PATIENCE_S = 120
FLOW = """
name: eats
jobs:
  eat:
    for-each: {{number: {numbers}}}
    memory: auto up to 1 GB
    run: |
      echo ${{{{ number }}}} >> {log}
      python3 -c "import time; block = bytes([1]) * 60_000_000; time.sleep(0.4)"
"""


def mendflow(folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "mendflow", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)


def answer(folder: Path, *words: str) -> Any:
    asked = mendflow(folder, *words, "--json")
    text = asked.communicate(timeout=PATIENCE_S)[0]
    assert asked.returncode == 0, text
    return json.loads(text)


def requests(folder: Path) -> dict[tuple[str, int], int]:
    """What every attempt asked for."""
    return {
        (job["id"], attempt["fence"]): attempt["asked_bytes"]
        for job in answer(folder, "jobs")
        for attempt in job["history"]
    }


def test_requests_and_what_was_learned_survive_kill_9(tmp_path: Path) -> None:  # LE-2
    log = tmp_path / "log"
    log.touch()
    (tmp_path / "eats.yaml").write_text(FLOW.format(numbers=list(range(JOBS)), log=log))
    first = mendflow(tmp_path, "run", "eats.yaml", "--json", "-j", "2")
    give_up_at = time.monotonic() + PATIENCE_S
    while len(log.read_text().splitlines()) < JOBS - 3 and time.monotonic() < give_up_at:
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = requests(tmp_path)
    assert min(before.values()) < 300_000_000 < 700_000_000 < max(before.values())
    assert answer(tmp_path, "resume", "last")["status"] == "completed"
    after = requests(tmp_path)
    assert len({job for job, _ in after}) == JOBS
    assert {attempt: after[attempt] for attempt in before} == before, "what was granted stands"
    [view] = answer(tmp_path, "learn", "sizes")
    assert 60_000_000 <= view["memory_used_bytes"] < 150_000_000
    answer(tmp_path, "run", "eats.yaml")
    newest = answer(tmp_path, "jobs", "--case", "last")
    assert all(job["spec"]["resources"]["memory_bytes"] < 300_000_000 for job in newest), "no scouts any more"
