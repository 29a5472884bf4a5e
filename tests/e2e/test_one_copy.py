"""A large output lies once on the disk, and nobody who gets it can change what is stored."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

SIZE = 20_000_000
FLOW = f"""
name: big
jobs:
  make:
    run: head -c {SIZE} /dev/zero > big.bin
    files: {{big: big.bin}}
    cache: true
"""
NEXT = (
    FLOW.replace("name: big", "name: next")
    + """
  change:
    needs: make
    inputs: {big.bin: "${{ jobs.make.files.big }}"}
    run: printf changed | dd of=big.bin conv=notrunc status=none
outputs: {big: "${{ jobs.make.files.big }}"}
"""
)


def run(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "mendflow", "run", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def large_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size == SIZE]


def is_whole(path: Path) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == path.name


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_large_output_lies_once_on_the_disk_and_stays_as_it_is(tmp_path: Path) -> None:  # DU-6
    (tmp_path / "big.yaml").write_text(FLOW)
    (tmp_path / "next.yaml").write_text(NEXT)
    run(tmp_path, "big.yaml")
    [stored] = large_files(tmp_path / ".mendflow")
    assert stored.parent.parent == tmp_path / ".mendflow" / "files"
    assert (stored.stat().st_nlink, is_whole(stored)) == (1, True)
    run(tmp_path, "next.yaml", "--output-dir", "out")
    [published] = large_files(tmp_path / "out")
    with published.open("r+b") as mine:
        mine.write(b"edited in place")
    assert is_whole(stored), "neither the job that wrote to its input nor the person changed it"
