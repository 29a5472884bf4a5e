"""What a large output costs: `python -m bench.large_output [--gigabytes N]`.

A job makes one file, a second reads it, on a server with one pilot of this machine; then the same flow runs again, and
takes both results from the cache. Told are the seconds, beside those of making and hashing such a file by hand, and
what is on the disk: each file once, however many links it has."""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GB = 1_000_000_000
MAKE = "head -c {bytes} /dev/zero | tr '\\0' x > big"
FLOW = """
name: large
jobs:
  make:
    run: |
      {make}
    inputs: word
    files: {{big: big}}
  read:
    inputs: {{big: "${{{{ jobs.make.files.big }}}}"}}
    run: test $(stat -L -c %s big) = {bytes}
"""


def timed(command: str, folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["bash", "-c", command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def disk_bytes(folder: Path) -> tuple[int, int]:
    """The bytes of all large files below a folder, each once, and how many these are."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(at, name))
            found[status.st_dev, status.st_ino] = status.st_blocks * 512
    large = [size for size in found.values() if size > GB // 10]
    return sum(large), len(large)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    size = int(parser.parse_args().gigabytes * GB)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="bench-output-") as place:
        folder = Path(place)
        make = MAKE.format(bytes=size)
        (folder / "word").write_text("mendflow")
        (folder / "flow.yaml").write_text(FLOW.format(make=make, bytes=size))
        by_hand = timed(f"{make} && sha256sum big && sync big", folder)
        (folder / "big").unlink()
        run = f"{shlex.quote(sys.executable)} -m mendflow run flow.yaml --quiet -j 1 --cached"
        print(f"load {os.getloadavg()[0]:.1f}")
        print(f"{'made and hashed by hand':26} {by_hand:7.1f} s")
        for way in ("first run", "second run, of the cache"):
            took = timed(run, folder)
            there, files = disk_bytes(folder)
            print(f"{way:26} {took:7.1f} s; {there:,} bytes on the disk, in {files} large file(s)", flush=True)


if __name__ == "__main__":
    main()
