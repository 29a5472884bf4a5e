"""Durable jobs a second with one, two and three servers on one PostgreSQL. `python -m bench.servers [--write]`.

Each server has a pilot with two slots and gets cases of its own, all at once. Jobs do nothing, and every accepted
result is on disk before anybody is told of it. Beside the rate stands what a job costs in processor time, and whose it
is: on one machine that says where the limit is, and what to expect where each server has a machine to itself."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.ours import Mendflow
from bench.page import ruled, write_section
from bench.run import machine, tell
from mendflow.pilot.slot.processes import descendants
from tests.servers.postgresql import postgresql_server

SERVERS = (1, 2, 3)
JOBS = 6_000
WARM_UP_JOBS = 200
COLUMNS = (
    "servers",
    "jobs/s",
    "processor ms a job",
    "servers' part",
    "pilots' part",
    "PostgreSQL's part",
    "cores busy",
)
TITLE = "Durable jobs on several servers"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class OnStore(Mendflow):
    """A server on the store that MENDFLOW_STORE names, and its pilot."""

    def __init__(self) -> None:
        super().__init__()
        self.pids: list[int] = []

    def _process(self, *words: str) -> subprocess.Popen[bytes]:
        process = super()._process(*words)
        self.pids.append(process.pid)
        return process


class ProcessorCost(NamedTuple):
    """Processor time in seconds, by who took it."""

    servers: float
    pilots: float
    store: float

    @property
    def all(self) -> float:
        return self.servers + self.pilots + self.store


class ServersResult(NamedTuple):
    servers: int
    jobs: int
    seconds: float
    cost: ProcessorCost


def measure(servers: int, jobs: int) -> ServersResult:
    """So many jobs in all, on so many servers."""
    with postgresql_server(synced=True) as store, ExitStack() as stack:
        os.environ["MENDFLOW_STORE"] = store.url
        subjects = [stack.enter_context(OnStore()) for _ in range(servers)]
        _run(subjects, WARM_UP_JOBS)
        before, started = _cost(subjects), time.perf_counter()
        _run(subjects, jobs // servers)
        seconds, after = time.perf_counter() - started, _cost(subjects)
    spent = ProcessorCost(*(late - early for late, early in zip(after, before, strict=True)))
    return ServersResult(servers, jobs // servers * servers, seconds, spent)


def _run(subjects: Sequence[OnStore], jobs: int) -> None:
    with ThreadPoolExecutor(len(subjects)) as pool:
        list(pool.map(lambda subject: subject.python(jobs), subjects))


def _cost(subjects: Sequence[OnStore]) -> ProcessorCost:
    """So far. Whoever is below us and neither a server nor a pilot is the store."""
    servers = {pid for subject in subjects for pid in (subject.pids[0], *descendants(subject.pids[0]))}
    pilots = {pid for subject in subjects for pid in (subject.pids[1], *descendants(subject.pids[1]))}
    store = {*descendants(os.getpid())} - servers - pilots
    return ProcessorCost(*(sum(map(_processor_s, pids)) for pids in (servers, pilots, store)))


def _processor_s(pid: int) -> float:
    """Of a process, and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def row(found: ServersResult) -> tuple[str, ...]:
    cost = found.cost
    parts = [f"{part / cost.all:.0%}" for part in cost]
    each_ms = cost.all / found.jobs * 1000
    rate, cores = found.jobs / found.seconds, cost.all / found.seconds
    return (str(found.servers), f"{rate:,.0f}", f"{each_ms:.2f}", *parts, f"{cores:.1f}")


def body(all_found: Sequence[ServersResult], before: float) -> str:
    jobs = f"{all_found[0].jobs:,} jobs in all"
    lines = [
        "`python -m bench.servers --write` made this section. Each server has a pilot with two slots and cases of its",
        f"own, {jobs}, which do nothing. Every accepted result is on disk, with full sync, before anybody is told.",
        "",
        ruled(COLUMNS, [row(found) for found in all_found]),
        "",
        f"Machine: {machine()}; load {before:.1f} before the run.",
        "Servers, pilots and PostgreSQL share these cores, so the rate is bounded by the processor time of a job, not",
        "by waiting for one another: the last column says how much of the machine was busy. With a machine for each",
        "server and each pilot, what counts is the servers' part of a job, and PostgreSQL's.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.servers", description="Durable jobs on several servers.")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    found = []
    for servers in SERVERS:
        found.append(measure(servers, options.jobs))
        tell(" ".join(row(found[-1])))
    print(ruled(COLUMNS, [row(each) for each in found]))
    if options.write:
        write_section(TITLE, body(found, load))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
