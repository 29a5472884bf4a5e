"""The two commands of the README, as somebody does them who has just got the project: in a fresh copy, with an empty
home, and with nothing but Python and pip."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from demo import DEMO

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_A_CHECKOUT = (".git", ".venv", ".venv-peers", ".*_cache", "__pycache__", ".hypothesis", ".mendflow", "outputs")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh") / "mendflow"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_IN_A_CHECKOUT))
    return folder


def as_a_newcomer(command: Sequence[str], checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run with the machine's own Python, not with the environment that these tests run in."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "TMP"))}
    environ = {**kept, "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return subprocess.run([python, *command], cwd=checkout, env=environ, capture_output=True, text=True, check=False)


def assert_all_measured(printed: str) -> None:
    """Nine fail by clouds; on a busy machine another may be taken for lost, and is mended too."""
    found = re.search(r"42 done \((\d+) mended\)", printed)
    assert found is not None and int(found[1]) >= 9, printed


def test_the_command_that_shows_it_at_work(checkout: Path) -> None:
    done = as_a_newcomer(["demo.py"], checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_all_measured(done.stdout)
    assert "brightest: 507" in done.stdout
    (report,) = (checkout / ".mendflow" / "reports").glob("night-*.html")
    assert "a cloud came by" in report.read_text()


@pytest.mark.short
def test_what_the_demo_shows(tmp_path: Path) -> None:
    """The same flow as the demo's, in an environment that is there already."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environ = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "mendflow", *DEMO]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_all_measured(done.stdout)
    assert "brightest: 507" in done.stdout


def test_the_command_that_checks_everything(checkout: Path) -> None:
    """One family of its stages, as all of them would run this test again."""
    done = as_a_newcomer(["check.py", "--only", "lint"], checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 stages passed" in done.stdout


@pytest.mark.short
def test_the_readme_gives_just_these_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "$ python3 demo.py\n$ python3 check.py\n" in text
