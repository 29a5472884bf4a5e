"""Everything is killed in the middle of a run: what had ended is found by the next run, and what had not is not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.law

SAMPLES = 16
FLOW = """
name: killed
inputs: {{samples: []}}
jobs:
  shout:
    for-each: {{items: "${{{{ inputs.samples }}}}", as: sample, collect: "${{{{ jobs.shout.files.out }}}}"}}
    inputs: {{in.txt: "${{{{ sample }}}}"}}
    run: cat in.txt >> {log}; sleep 0.2; tr a-z A-Z < in.txt > out.txt
    files: {{out: out.txt}}
    cache: true
  merge:
    inputs: {{parts/: "${{{{ jobs.shout.outputs }}}}"}}
    run: cat parts/* | sort > all.txt
    files: {{all: all.txt}}
outputs:
  all: ${{{{ jobs.merge.files.all }}}}
"""


def mendflow(folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "mendflow", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_after_kill_9_whole_results_are_found_and_no_others(tmp_path: Path) -> None:  # DU-2
    log = tmp_path / "log"
    log.touch()
    (tmp_path / "killed.yaml").write_text(FLOW.format(log=log))
    names = [f"s{number}.txt" for number in range(SAMPLES)]
    for name in names:
        (tmp_path / name).write_text(f"sample {name}\n")
    (tmp_path / "in.json").write_text(json.dumps({"samples": names}))
    words = ("run", "killed.yaml", "--inputs", "in.json", "--json", "-j", "2")
    first = mendflow(tmp_path, *words)
    give_up_at = time.monotonic() + PATIENCE_S
    while len(log.read_text().splitlines()) < SAMPLES // 2 and time.monotonic() < give_up_at:
        time.sleep(0.02)
    begun = log.read_text().splitlines()
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert SAMPLES // 2 <= len(begun) < SAMPLES
    second = mendflow(tmp_path, *words, "--new")
    told = json.loads(second.communicate(timeout=PATIENCE_S)[0])
    assert second.returncode == 0
    [merged] = tmp_path.glob(f"outputs/{told['id']}/*")
    assert merged.read_text() == "".join(sorted(f"SAMPLE {name.upper()}\n" for name in names))
    cached = sum(count["cached"] for count in told["counts"] if count["name"] == "shout")
    assert 1 <= cached <= len(begun), "what was begun may have ended, and nothing else"
