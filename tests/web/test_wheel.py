"""`pip install .` in a checkout that never built the web app has it all the same."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_GIT = shutil.ignore_patterns(".*", "node_modules", "web_files", "__pycache__", "site", "dist", "outputs")
NEEDED = ("src", "web", "tools", "pyproject.toml", "README.md", "LICENSE")


@pytest.mark.full
def test_a_wheel_of_a_checkout_has_the_web_app(tmp_path: Path) -> None:  # UI-1
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, checkout / name, ignore=NOT_IN_GIT)
        else:
            shutil.copy(ROOT / name, checkout)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    made = subprocess.run(build, cwd=checkout, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    [wheel] = (tmp_path / "dist").glob("mendflow-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folder = "mendflow/server/web_files/"
    assert f"{folder}index.html" in names
    assert any(name.startswith(f"{folder}assets/") and name.endswith(".js") for name in names)
