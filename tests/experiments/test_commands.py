"""The experiments as commands: what they print and write, and how they refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100


def run(folder: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
    )


@pytest.mark.full
def test_a_scenario_is_printed_as_a_table_and_written(tmp_path: Path) -> None:  # PJ-11
    done = run(tmp_path, "experiments.beyond", "--scenario", "million", "--jobs", "500", "--out", "far")
    assert done.returncode == 0, done.stderr
    assert "500 in " in done.stdout
    assert done.stdout.rstrip().endswith("written: far/beyond.html")
    assert (tmp_path / "far" / "beyond.html").is_file()


def test_a_scenario_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "experiments.beyond", "--scenario", "billion")
    assert refused.returncode == 2
    assert "there is no scenario 'billion'; choose among sharing" in refused.stderr


def test_a_figure_that_the_paper_does_not_have_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "experiments.paper", "--figure", "3")
    assert refused.returncode == 2
    assert "there is no figure 3; choose among 7, 8, 9, 10, 11, 12" in refused.stderr
    assert not (tmp_path / "paper").exists()
