"""Acquisitions a second: services that compete for the same jobs, on each store. `python -m bench.stores [--write]`.

A job is a document. Each service goes through all of them in an order of its own, reads a handful, and turns those that
are available into running ones by compare-and-set, with the fence that the grant raised. Whoever comes second is
refused by the store. Afterwards somebody who has heard all services counts who got what: no job may have two holders,
and its document must name the one that it has.

On PostgreSQL and OpenSearch each service is a process. SQLite's file, and memory, belong to one process: there the
services are tasks in it, and what they show is how fast one store answers several who ask at once."""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.page import ruled, write_section
from bench.run import ROOT, machine, tell
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as life
from mendflow.stores.contract import Put, Store, StoredDocument, WriteDone
from mendflow.stores.urls import store_at
from tests.servers import opensearch
from tests.servers.postgresql import postgresql_server

SERVICES = (1, 2, 4, 8)
JOBS = 6_000
BATCH_JOBS = 20
FILLED_AT_ONCE = 1_000
COLUMNS = (
    "store",
    "services are",
    *(f"{count} at once, /s" for count in SERVICES),
    "refused by the store",
    "duplicates",
)
TITLE = "Acquisitions by services that compete"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Job).decode


class ServiceResult(msgspec.Struct, frozen=True):
    """What one service got, how often it was refused, and when it began and ended, by the machine's steady clock."""

    service: str
    jobs: list[str]
    refused: int
    began_s: float
    ended_s: float


class StoresResult(NamedTuple):
    per_s: float
    refused: int
    duplicates: int


async def fill(store: Store, kind: str, count: int) -> None:
    for start in range(0, count, FILLED_AT_ONCE):
        numbers = range(start, min(start + FILLED_AT_ONCE, count))
        await store.write([Put(kind, f"{kind}/{n}", _encode(_job(f"{kind}/{n}")), 0) for n in numbers])


def _job(id: str) -> Job:
    case = CaseId(id.partition("/")[0])
    return life.create(JobId(id), case, JobSpec(item=ItemId("tick"), command="true"), now=0)


async def acquire(store: Store, kind: str, count: int, service: str) -> ServiceResult:
    """Get hold of as many jobs as one can before the others do."""
    order = [f"{kind}/{n}" for n in range(count)]
    random.Random(service).shuffle(order)
    got: list[str] = []
    refused = 0
    began_s = time.monotonic()
    for start in range(0, count, BATCH_JOBS):
        found = await store.get_many(kind, order[start : start + BATCH_JOBS])
        puts = [put for document in found if (put := _granted(document, service)) is not None]
        if puts:
            outcomes = await store.write(puts)
            won = [put.id for put, outcome in zip(puts, outcomes, strict=True) if isinstance(outcome, WriteDone)]
            refused += len(puts) - len(won)
            got += won
    return ServiceResult(service, got, refused, began_s, time.monotonic())


def _granted(document: StoredDocument, service: str) -> Put | None:
    job = _decode(document.body)
    granted = life.grant(job, PilotId(service), now=1)
    for event in granted:
        job_events.evolve(job, event)
    return Put(document.kind, document.id, _encode(job), document.version) if granted else None


async def judge(store: Store, kind: str, count: int, all_got: Sequence[ServiceResult]) -> StoresResult:
    """Whoever has heard everybody: each job has one holder, and its document says so."""
    holders = Counter(job for got in all_got for job in got.jobs)
    duplicates = sum(times - 1 for times in holders.values())
    by_job = {job: got.service for got in all_got for job in got.jobs}
    found = [_decode(document.body) async for document in store.scan(kind)]
    assert len(found) == len(by_job) == count, f"{len(by_job)} of {count} jobs were acquired, {len(found)} are there"
    for job in found:
        assert job.state is JobState.RUNNING and job.fence == 1 and job.pilot == by_job[job.id], job
    seconds = max(got.ended_s for got in all_got) - min(got.began_s for got in all_got)
    return StoresResult(count / seconds, sum(got.refused for got in all_got), duplicates)


async def in_one_process(url: str, count: int) -> list[StoresResult]:
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        store = store_at(url, Path(folder)).store
        await store.open()
        try:
            for runtime in SERVICES:
                kind = f"by{runtime}"
                await fill(store, kind, count)
                tasks = (acquire(store, kind, count, f"service-{n}") for n in range(runtime))
                measured.append(await judge(store, kind, count, await asyncio.gather(*tasks)))
        finally:
            await store.close()
    return measured


async def in_processes(url: str, count: int) -> list[StoresResult]:
    measured = []
    store = store_at(url, Path()).store
    await store.open()
    try:
        for runtime in SERVICES:
            kind = f"by{runtime}"
            await fill(store, kind, count)
            got = await asyncio.to_thread(_compete, url, kind, count, runtime)
            measured.append(await judge(store, kind, count, got))
    finally:
        await store.close()
    return measured


def _compete(url: str, kind: str, count: int, runtime: int) -> list[ServiceResult]:
    """All wait until all are ready."""
    environment = {**os.environ, "MENDFLOW_STORE": url}
    command = [sys.executable, "-m", "bench.stores", "--service"]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen(
            [*command, f"service-{n}", kind, str(count)], stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment
        )
        for n in range(runtime)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [msgspec.json.decode(worker.communicate()[0], type=ServiceResult) for worker in workers]


async def service(name: str, kind: str, count: int) -> None:
    """One of the processes that compete."""
    store = store_at(os.environ["MENDFLOW_STORE"], Path()).store
    await store.open()
    try:
        await store.get_many(kind, [f"{kind}/0"])
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(msgspec.json.encode(await acquire(store, kind, count, name)).decode(), flush=True)
    finally:
        await store.close()


@contextmanager
def _opensearch() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bench-node-") as folder:
        node = opensearch.Node(Path(folder))
        node.start()
        try:
            yield f"elasticsearch://{node.address}/bench"
        finally:
            node.kill()


def measure(count: int) -> dict[str, list[StoresResult]]:
    found: dict[str, list[StoresResult]] = {}
    for name in ("memory", "SQLite"):
        found[name] = asyncio.run(in_one_process("memory://" if name == "memory" else "", count))
        tell(f"{name}: {_short(found[name])}")
    with postgresql_server(synced=True) as server:
        found["PostgreSQL"] = asyncio.run(in_processes(server.url, count))
        tell(f"PostgreSQL: {_short(found['PostgreSQL'])}")
    if opensearch.lacking():
        tell(f"OpenSearch: left out, {opensearch.lacking()} is missing")
        return found
    with _opensearch() as url:
        found["OpenSearch"] = asyncio.run(in_processes(url, count))
        tell(f"OpenSearch: {_short(found['OpenSearch'])}")
    return found


def _short(measured: Sequence[StoresResult]) -> str:
    return ", ".join(f"{each.per_s:,.0f}/s ({each.refused} refused, {each.duplicates} twice)" for each in measured)


def rows(found: dict[str, list[StoresResult]]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            "tasks" if name in ("memory", "SQLite") else "processes",
            *(f"{each.per_s:,.0f}" for each in measured),
            f"{sum(each.refused for each in measured):,}",
            str(sum(each.duplicates for each in measured)),
        )
        for name, measured in found.items()
    ]


def body(found: dict[str, list[StoresResult]], count: int) -> str:
    load = os.getloadavg()[0]
    lines = [
        f"`python -m bench.stores --write` made this section. Services compete for the same {count:,} jobs. Each goes",
        f"through all of them in an order of its own, {BATCH_JOBS} at a time, and turns those that are available into",
        "running ones by compare-and-set, with the fence raised. Whoever comes second is refused by the store. Then",
        "every job's document is compared with what all services say they got: a duplicate would be a job that two",
        "were told is theirs.",
        "",
        ruled(COLUMNS, rows(found)),
        "",
        "SQLite's file and memory belong to one process, so there the services are tasks in it. SQLite and PostgreSQL",
        "wait for the disk with each commit. Services and store share the machine, so what is shown is the cost of all",
        f"together: {machine()}; load {load:.1f} at the end.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description="Services compete for jobs.")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    parser.add_argument("--json", action="store_true", help="tell the numbers as JSON")
    parser.add_argument("--service", nargs=3, metavar=("NAME", "KIND", "JOBS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.service:
        name, kind, count = options.service
        asyncio.run(service(name, kind, int(count)))
        return 0
    found = measure(options.jobs)
    print(
        json.dumps({name: [each._asdict() for each in measured] for name, measured in found.items()})
        if options.json
        else ruled(COLUMNS, rows(found))
    )
    if options.write:
        write_section(TITLE, body(found, options.jobs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
