"""What a software environment costs: `python -m bench.environments [--jobs N] [PACKAGE ...]`.

Two pilots of this host run many short jobs of one flow with the same requirements: without an environment, with one
that must be made, with one that is there, and with one that nobody can make. Told are the seconds of each case, and how
often an installer was started. Without packages a small wheel is installed from a folder, so nothing depends on a
network."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.core.model.views import CASE_END_STATES
from mendflow.pilot.software.builders import find_uv

START_S = 120.0
PILOTS, SLOTS = 2, 2
WRAPPED = '#!/bin/sh\necho "$*" >> {calls}\nexec {uv} "$@"\n'


def write_wheel(folder: Path) -> None:
    folder.mkdir()
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting.py", "WORD = 'hello'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


class Installation:
    """A server and pilots whose uv writes down how it is called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.calls = folder / "calls"
        (uv,) = find_uv()
        (folder / "programs").mkdir()
        (folder / "programs" / "uv").write_text(WRAPPED.format(calls=self.calls, uv=uv))
        (folder / "programs" / "uv").chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{folder / 'programs'}:{os.environ['PATH']}",
            "MENDFLOW_ENVIRONMENTS": str(folder / "environments"),
        }
        self._log = (folder / "log").open("wb")
        self._processes = [self._start("serve", "--data-dir", str(folder / "data"), "--port", "0")]
        self.url = url = self._url()
        for number in range(PILOTS):
            work = str(folder / f"work{number}")
            self._processes.append(self._start("pilot", "--server", url, "--work", work, "--jobs", str(SLOTS)))
        self.client = SyncClient(url)
        while len(self.client.pilots()) < PILOTS:
            time.sleep(0.05)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "mendflow", *words]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, env=self._environment, cwd=self._folder)

    def _url(self) -> str:
        give_up_at = time.monotonic() + START_S
        while time.monotonic() < give_up_at:
            for line in (self._folder / "log").read_text().splitlines():
                if line.startswith("mendflow serves "):
                    return line.split()[2]
            time.sleep(0.05)
        raise AssertionError((self._folder / "log").read_text())

    def start(self, flow: str) -> str:
        """Start a case; the command stores what its flow names, too."""
        words = ["start", flow, "--server", self.url, "--no-cache", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "mendflow", *words], cwd=self._folder, stdout=subprocess.PIPE, check=True
        )
        return str(json.loads(done.stdout)["id"])

    def installs(self) -> int:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return sum(" install " in f" {line} " for line in lines)

    def close(self) -> None:
        self.client.close()
        for process in reversed(self._processes):
            process.terminate()
            process.wait()
        self._log.close()


def case(there: Installation, folder: Path, name: str, jobs: int, requirements: str) -> str:
    """Run a case; what is told of it."""
    (folder / "requirements.txt").write_text(requirements)
    environment = "\n    environment: requirements.txt" if requirements else ""
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\non-failure: finish\njobs:\n  one:\n    for-each: {{i: {{from: 1, to: {jobs}}}}}\n"
        f"    run: 'true'\n    retries: 0{environment}\n"
    )
    before = there.installs()
    began = time.perf_counter()
    id = there.start(f"{name}.yaml")
    while True:
        try:
            if (status := there.client.case(id).status) in CASE_END_STATES:
                break
        except RequestError:
            pass
        time.sleep(0.02)
    took = time.perf_counter() - began
    why = there.client.why(f"{id}:one[0]").sentence[:240] if status == "failed" else ""
    return f"{took:7.1f} s, {there.installs() - before} installations, {status}" + (f": {why}" if why else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--jobs", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-environments-") as place:
        folder = Path(place)
        write_wheel(folder / "wheels")
        local = f"--no-index\n--find-links {folder / 'wheels'}\n"
        good = "\n".join([*options.packages, ""]) if options.packages else f"{local}greeting==1.0\n"
        there = Installation(folder)
        try:
            print(f"{options.jobs} jobs on {PILOTS} pilots with {SLOTS} slots each; load {os.getloadavg()[0]:.1f}")
            ways = {"none": "", "made": good, "there": good, "impossible": f"{local}greeting==7.0\n"}
            for name, requirements in ways.items():
                print(f"{name:11} {case(there, folder, name, options.jobs, requirements)}", flush=True)
        finally:
            there.close()


if __name__ == "__main__":
    main()
