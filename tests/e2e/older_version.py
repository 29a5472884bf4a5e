"""An older version of the package, taken from the history of this repository, to run beside the present one."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

OLDER: Final = "05b8305e2730a31b262b09a39a090cbd34a83118"
"""The newest version whose servers keep no projects, quotas, browser sessions or drained pilots in the store: those of
today find documents that lack these, and write some that it does not know. When the store's format changes again, take
the last commit before that."""


def older_source(folder: Path) -> Path:
    """The folder that Python finds the older package in, by PYTHONPATH."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", OLDER, "src"], capture_output=True, check=False)
    assert packed.returncode == 0, (
        f"the older version {OLDER} is not in the history of {ROOT}: a test of upgrades needs all of it, so clone"
        f" without --depth, or fetch the rest by git fetch --unshallow ({packed.stderr.decode().strip()})"
    )
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    source = folder / "src"
    asked = [sys.executable, "-c", "import mendflow; print(mendflow.__file__)"]
    found = subprocess.run(asked, env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(source)), f"Python takes another package: {found.stdout}"
    return source
