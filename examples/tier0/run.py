"""Tier0 from one command: a server, pilots on this machine, a detector that writes files, and what comes of them.

    python3 examples/tier0/run.py

With --synthetic it runs one case of 172 jobs instead, which make files of a given size. With --server it uses a server
that runs already, whose pilots may be anywhere that reaches the storage. Everything it does with mendflow it does by
commands that you could type."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tier0

HERE = Path(__file__).resolve().parent
FLOWS = ("repack", "merge", "reco", "alca")
LAST = ("alca-muons", "alca-electrons")
MENDFLOW = [sys.executable, "-m", "mendflow"]
PATIENCE_S = 60
NO_ANSWER = 4
"""How commands end that no server answers."""
FOUND = {"cached_files": "from the cache", "fetched_files": "from elsewhere"}


def mendflow(*words: str, patience_s: float = PATIENCE_S) -> str:
    """What a command prints; its complaint ends the run. A server that is away for a moment is asked again."""
    end = time.monotonic() + patience_s
    while True:
        done = subprocess.run([*MENDFLOW, *words], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        if done.returncode != NO_ANSWER or time.monotonic() > end:
            sys.exit(f"{done.stdout}{done.stderr}mendflow {' '.join(words)} ended with {done.returncode}")
        time.sleep(0.5)


def asked(*words: str) -> Any:
    return json.loads(mendflow(*words, "--json"))


@contextmanager
def local_site(work: Path, pilots: int) -> Iterator[None]:
    """A server and its pilots, for as long as the block lasts. Pilots of one host use each other's caches."""
    data = work / "server"
    with (work / "server.log").open("w") as log:
        server = subprocess.Popen([*MENDFLOW, "serve", "--data-dir", str(data), "--port", "0"], stdout=log, stderr=log)
    processes = [server]
    try:
        _until(lambda: (data / "server.json").exists() or server.poll() is not None, "the server")
        os.environ["MENDFLOW_SERVER"] = url = json.loads((data / "server.json").read_text())["url"]
        for number in range(1, pilots + 1):
            with (work / f"pilot-{number}.log").open("w") as log:
                words = ["pilot", "--server", url, "--work", str(work / f"pilot-{number}"), "--jobs", "1"]
                processes.append(subprocess.Popen([*MENDFLOW, *words], stdout=log, stderr=log))
        yield
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGINT)
        for process in processes:
            process.wait(30)


def _until(check: Any, what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            sys.exit(f"{what} did not come in {seconds:g} s")
        time.sleep(0.1)


def prepare(store: Path) -> None:
    """Flows, data sets, and a watch on the folder that the detector writes to."""
    (store / "incoming").mkdir(parents=True)
    for flow in FLOWS:
        mendflow("flows", "deploy", str(HERE / f"{flow}.yaml"))
    print(mendflow("data", "sets", "apply", str(HERE / "sets.yaml")), end="")


def take_data(store: Path, files: int, events: int) -> None:
    for number in range(files):
        tier0.take_data(str(store / "incoming" / f"run1-{number:03d}.jsonl"), 1, number * events, events)
    print(f"the detector wrote {files} files of {events} events")
    _until(lambda: asked("data", "sets", "show", "streamer")["files"] == files, "all files in the data set")
    mendflow("data", "sets", "close", "streamer")


def results(store: Path) -> None:
    """What calibration found: one layer is not where it should be."""
    for name in LAST:
        mendflow("data", "sets", "wait", name)
        files = [str(store) + each["logical"] for each in asked("data", "sets", "files", name)]
        off = tier0.constants(*files)
        worst = max(range(len(off)), key=lambda layer: abs(off[layer]))
        print(f"{name}: layer {worst} is off by {off[worst]:.3f}")


def cache_hits() -> None:
    """Where the inputs of all jobs came from, step by step."""
    steps: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for job in asked("jobs", "--limit", "1000"):
        measures = job["history"][-1].get("measures", {}) if job.get("history") else {}
        for step in (job["name"], "all"):
            steps[step]["jobs"] += 1
            for count in FOUND:
                steps[step][count] += measures.get(count, 0)
    print(f"\n{'step':10} {'jobs':>5} {'from the cache':>15} {'from elsewhere':>15}")
    for step in sorted(steps, key=lambda name: (name == "all", -steps[name]["jobs"])):
        told = steps[step]
        share = told["cached_files"] / max(1, told["cached_files"] + told["fetched_files"])
        print(f"{step:10} {told['jobs']:5} {told['cached_files']:15} {told['fetched_files']:15}   {share:4.0%}")


def reports(work: Path) -> None:
    """The report of one case of each flow."""
    for flow in FLOWS:
        newest = asked("cases", "--flow", f"tier0-{flow}", "--limit", "1")[0]["id"]
        mendflow("report", newest, "--output", str(work / "reports" / f"{flow}.html"))


def some(text: str) -> int:
    """A number of things of which there is at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def main() -> None:
    known = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known.add_argument("--work", type=Path, help="a new folder for everything; else one that is removed at the end")
    known.add_argument("--server", default="", help="a server that runs already, whose pilots reach the folder")
    known.add_argument("--synthetic", action="store_true", help="one case of 172 jobs, and nothing else")
    known.add_argument("--pilots", type=some, default=2)
    known.add_argument("--files", type=some, default=12)
    known.add_argument("--events", type=some, default=300, help="in each file")
    given = known.parse_args()
    if given.work is not None and given.work.exists():
        known.error(f"{given.work} is there already; give --work a new folder")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left behind
    work = (given.work or Path(tempfile.mkdtemp(prefix="tier0-"))).resolve()
    store = work / "store"
    store.mkdir(parents=True)
    try:
        if given.server:
            os.environ["MENDFLOW_SERVER"] = given.server
            run(given, work, store)
        else:
            with local_site(work, given.pilots):
                run(given, work, store)
    finally:
        if given.work is None:
            shutil.rmtree(work, ignore_errors=True)


def run(given: argparse.Namespace, work: Path, store: Path) -> None:
    mendflow("data", "storage", "add", "--name", "tier0", "--url", store.as_uri(), "--replace", patience_s=0)
    (work / "reports").mkdir()
    if given.synthetic:
        synthetic(work)
    else:
        prepare(store)
        take_data(store, given.files, given.events)
        results(store)
        reports(work)
    cache_hits()
    if given.work is not None:
        print(f"\nreports are in {work / 'reports'}")


def synthetic(work: Path) -> None:
    case = asked("start", str(HERE / "synthetic.yaml"), "--input", f"run={int(time.time())}")["id"]
    mendflow("watch", case)
    mendflow("report", case, "--output", str(work / "reports" / "synthetic.html"))
    print(f"{case} is {asked('cases', '--limit', '1')[0]['status']}")


if __name__ == "__main__":
    main()
