"""What a job in a container costs, beside `podman run` by hand and beside the same job without a container.

    python -m bench.containers [--jobs N] [--image IMAGE]

Runs N short jobs one after another, each way, on this machine, with the podman (or docker, or apptainer) that
MENDFLOW_CONTAINER_COMMAND and MENDFLOW_CONTAINER_OPTIONS say. The image must be there."""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = ("--pid=host", "--ipc=host", "--network=host", "--log-driver=none")
"""What mendflow asks for too: otherwise something else would be compared."""


def by_hand(image: str, jobs: int) -> list[float]:
    """How long each `run` took, in milliseconds."""
    command = shlex.split(os.environ.get("MENDFLOW_CONTAINER_COMMAND", "podman"))
    options = shlex.split(os.environ.get("MENDFLOW_CONTAINER_OPTIONS", ""))
    took = []
    for _ in range(jobs):
        began = time.perf_counter()
        subprocess.run([*command, "run", "--rm", *SHARED, *options, image, "/bin/sh", "-c", "true"], check=True)
        took.append((time.perf_counter() - began) * 1000)
    return took


def by_mendflow(image: str, jobs: int) -> list[float]:
    """How long each attempt took, from when it was granted until it had ended, in milliseconds."""
    container = f"container: {image}" if image else ""
    flow = f"jobs:\n  a:\n    for-each: {{from: 1, to: {jobs}, in: sequence}}\n    run: 'true'\n    {container}\n"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "flow.yaml").write_text(flow)
        mendflow = [sys.executable, "-m", "mendflow"]
        subprocess.run(
            [*mendflow, "run", "flow.yaml", "--quiet", "-j", "1"], cwd=folder, check=True, capture_output=True
        )
        told = subprocess.run(
            [*mendflow, "jobs", "--case", "last", "--json"], cwd=folder, check=True, capture_output=True
        ).stdout
    attempts = [attempt for job in json.loads(told) for attempt in job["history"]]
    return [attempt["ended_at"] - attempt["granted_at"] for attempt in attempts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--image", default="local/busybox:1")
    options = parser.parse_args()
    ways = {
        "run by hand": by_hand(options.image, options.jobs),
        "job in a container": by_mendflow(options.image, options.jobs),
        "job without one": by_mendflow("", options.jobs),
    }
    for way, took in ways.items():
        print(f"{way:20} median {statistics.median(took):7.0f} ms, fastest {min(took):7.0f} ms")
    extra = statistics.median(ways["job in a container"]) - statistics.median(ways["run by hand"])
    print(f"{'mendflow adds':20} median {extra:7.0f} ms a job")


if __name__ == "__main__":
    main()
