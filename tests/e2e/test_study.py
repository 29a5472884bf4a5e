"""The example of a parameter study, as a person runs it: killed in the middle, repaired by the default rules, and with
a value added."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.analyst import Analyst
from tests.patience import PATIENCE_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "study"


@pytest.mark.full
def test_a_study_is_drawn_whatever_happens_meanwhile(tmp_path: Path) -> None:  # DU-2 DU-8
    analyst = Analyst(tmp_path, EXAMPLE)
    run = analyst.start("-m", "mendflow", "run", "study.py", "--output-dir", "results")
    end = time.monotonic() + PATIENCE_S
    while re.search(r"simulate: ([2-9]|\d\d+) done", analyst.told(run)) is None:  # two may be told of at once
        assert run.poll() is None and time.monotonic() < end
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()

    analyst.mendflow("resume", "last", "--output-dir", "results")
    told = analyst.mendflow("why", "last")
    assert "did more-memory" in told and "of them repaired" in told
    picture = tmp_path / "results" / "epidemic.png"
    before = picture.read_bytes()
    assert before.startswith(b"\x89PNG")

    wider = "contacts=[0.2, 0.3, 0.4, 0.5]"
    analyst.mendflow("run", "study.py", "--output-dir", "results", "--input", wider)
    ran = sorted(item["name"] for item in analyst.items() if item["state"] != "cached")
    assert ran == ["draw", "peaks_of", "simulate", "simulate"]
    assert picture.read_bytes() != before
