"""The sandbox shows the Python of the pilot, wherever it is installed; where it cannot, the pilot says what to do."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

SOURCE = Path(__file__).parents[3] / "src"
TRY = """
import logging, os, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from mendflow.pilot.isolation.options import Isolation
from mendflow.pilot.isolation.trial import why_not_confined
work, account = sys.argv[1:]
attempts = os.path.join(work, "attempts")
os.makedirs(attempts, exist_ok=True)
isolation = Isolation(sandbox="bubblewrap", jobs_as=account)
print("tried:", why_not_confined(isolation, work, attempts, {"PATH": os.environ["PATH"]}))
"""

READ = """
import os, subprocess, sys
from mendflow.pilot.isolation.bubblewrap import sandbox_words
from mendflow.pilot.isolation.options import Isolation
work, hidden, shown, *paths = sys.argv[1:]
isolation = Isolation(sandbox="bubblewrap", hidden=(hidden,), shown=(shown,))
os.makedirs(os.path.join(work, "job", "tmp"))
job = os.path.join(work, "job")
words = sandbox_words(isolation, folder=job, temporary=os.path.join(job, "tmp"), work=work)
ran = subprocess.run([*words, "cat", *paths], capture_output=True, text=True)
print("read:", ran.stdout, ran.stderr)
"""


@pytest.fixture
def work() -> Iterator[Path]:
    """A work folder that every account gets to."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def environment_at(folder: Path) -> Path:
    """A virtual environment whose Python is reached over a link of a link, and through a folder that is one; what it
    has installed is that of this process."""
    ways, version = folder / "ways", f"python{sys.version_info.major}.{sys.version_info.minor}"
    ways.mkdir(parents=True)
    (ways / "base").symlink_to(sys.base_prefix)
    (ways / "python").symlink_to(f"base/bin/{version}")
    packages = folder / "venv" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    installed = [each for each in sys.path if Path(each).name == "site-packages"]
    (packages / "more.pth").write_text("\n".join([*installed, str(SOURCE)]))
    (folder / "venv" / "pyvenv.cfg").write_text(f"home = {ways}/base/bin\n")
    (folder / "venv" / "bin").mkdir()
    (folder / "venv" / "bin" / "python").symlink_to(ways / "python")
    return folder / "venv" / "bin" / "python"


def tried(python: Path, work: Path, account: str = "") -> str:
    told = {"PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [python, "-c", TRY, work, account], env=told, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("place", ["/tmp", "/srv"])
def test_functions_start_with_a_python_that_is_anywhere(work: Path, place: str) -> None:  # SE-2, DU-5
    with tempfile.TemporaryDirectory(dir=place) as folder:
        assert tried(environment_at(Path(folder)), work) == "tried: \n"


def test_a_python_that_another_account_does_not_reach_is_told_with_what_to_do(work: Path) -> None:  # SE-2
    with tempfile.TemporaryDirectory(dir="/srv") as folder:  # which lets nobody else pass
        told = tried(environment_at(Path(folder)), work, "nobody")
    assert "jobs that are Python functions cannot be started here, others can: Python is in " in told
    found = re.search(r"and (\S+) does not let the account nobody pass: .* such as /opt, or chmod o\+x (\S+)", told)
    assert found is not None and found[1] == found[2]
    assert found[1] == folder or not Path(found[1]).stat().st_mode & stat.S_IXOTH


def test_what_is_hidden_is_covered_also_where_the_way_leads_over_a_link(work: Path) -> None:  # SE-2
    with tempfile.TemporaryDirectory(dir="/srv") as folder:
        real, link = Path(folder) / "real", Path(folder) / "link"
        environment_at(real)
        link.symlink_to("real")
        shown = real / "shown"
        shown.mkdir()
        (shown / "open").write_text("to be read")
        for place in (real / "venv", shown):
            (place / "secrets").mkdir()
            (place / "secrets" / "token").write_text("tell nobody")
            paths = [f"{top}/{place.name}/secrets/token" for top in (real, link)]
            for hidden in (place / "secrets", place / "secrets" / "token"):
                told = subprocess.run(
                    [link / "venv/bin/python", "-c", READ, work, hidden, link / "shown", *paths, link / "shown/open"],
                    env={"PATH": os.environ["PATH"]},
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE_S,
                    check=True,
                ).stdout
                assert "to be read" in told and "tell nobody" not in told, told
                shutil.rmtree(work / "job")
