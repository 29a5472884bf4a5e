"""What pruning costs: `python -m bench.prune [CASES] [RUNNING]` lets a real server run cases to their end, each with
files of its own and one that it shares, holds some cases open, and prunes the others meanwhile. It tells the seconds,
the bytes, how long the server was busy at most between two answers, and that the cases that ran end with all their
files."""

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mendflow.core.model.data import StoreRequest
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName, PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.retention import PruneRequest, PruneRule, PruneView
from mendflow.core.model.sync import Assignment, AttemptReport, AttemptStatus, Capacity, SyncRequest
from mendflow.core.model.values import FileRef, file_of
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.sqlite.store import SqliteStore

TOGETHER = 200
OWN_BYTES = 20_000
SHARED_EVERY = 100
MB = 1_000_000
DAY_S = 86_400


def content_of(case: str) -> bytes:
    return (case.encode() * OWN_BYTES)[:OWN_BYTES]


def shared_content(number: int) -> bytes:
    return content_of(f"shared {number % SHARED_EVERY}")


class BenchPilot:
    """Takes jobs and ends them when it is told to, with one file of the case's own and one that many cases make."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._serial = 0
        self._made = 0
        self.held: list[Assignment] = []

    async def exchange(self, *, want: int, end: bool) -> None:
        ending = self.held if end else []
        reports = [AttemptReport(each.job, each.fence, await self._outcome(each)) for each in ending]
        running = [
            AttemptStatus(each.job, each.fence, "running", Measurements(), "", {})
            for each in self.held
            if each not in ending
        ]
        self._serial += 1
        request = SyncRequest(
            pilot=PilotId("bench"),
            serial=self._serial,
            heard=self._serial - 1,
            host="here",
            capacity=Capacity(slots=1000, cpus=1000.0, memory_bytes=1 << 40, disk_bytes=1 << 40),
            want=want,
            wait_ms=20,
            running=running,
            reports=reports,
        )
        answer = await self._domain.sync(request)
        gone = {(ref.job, ref.fence) for ref in (*answer.accepted, *answer.refused, *answer.lost)}
        self.held = [each for each in self.held if (each.job, each.fence) not in gone] + answer.jobs

    async def _outcome(self, held: Assignment) -> Outcome:
        self._made += 1
        contents = {"own": content_of(held.job), "shared": shared_content(self._made)}
        known = {hashlib.sha256(body).hexdigest(): body for body in contents.values()}
        await self._domain.store_files(StoreRequest(contents=known))
        refs = {
            name: FileRef(sha256=hashlib.sha256(body).hexdigest(), bytes=len(body), name=name)
            for name, body in contents.items()
        }
        return Outcome(files=refs)


def flow_named(name: str) -> Flow:
    job = JobActivity(name="make", command="make", files={"own": "own", "shared": "shared"})
    outputs = {each: f"${{{{ jobs.make.files.{each} }}}}" for each in ("own", "shared")}
    return Flow(name=FlowName(name), body=job, inputs={}, outputs=outputs)


async def run_cases(domain: Domain, pilot: BenchPilot, cases: int) -> None:
    for start in range(0, cases, TOGETHER):
        number = min(TOGETHER, cases - start)
        await asyncio.gather(*(domain.start("old", {}, who="bench", cache="none") for _ in range(number)))
        ended = 0
        while ended < number:
            before = len(pilot.held)
            await pilot.exchange(want=TOGETHER, end=bool(before))
            ended += before


class Busy:
    """How long the event loop did not come back, at most."""

    def __init__(self) -> None:
        self.most_s = 0.0

    async def watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            self.most_s = max(self.most_s, time.perf_counter() - began)


async def prune(domain: Domain, pilot: BenchPilot) -> PruneView:
    request = PruneRequest(rules=[PruneRule(flow="old", older_than_ms=1)])
    view = await domain.prune(request, who="bench")
    while view.state == "running":
        await pilot.exchange(want=0, end=False)
        view = await domain.prune_run(view.id)
    assert view.state == "done", view.problem
    return view


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def make_old(folder: Path) -> None:
    """As if all files had been stored yesterday, and nobody had asked for them since."""
    then = time.time() - DAY_S
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


async def measure(cases: int, running: int, folder: Path) -> None:
    files = FolderFileStore(folder / "files")
    files.open()
    server = Server(
        store=SqliteStore(folder / "store.db"),
        file_store=files,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=None, lease_ms=600_000),
        version="bench",
    )
    await server.open()
    domain, busy = Domain(server), Busy()
    pilot = BenchPilot(domain)
    for name in ("old", "new"):
        await domain.deploy(flow_named(name))
    began = time.perf_counter()
    await run_cases(domain, pilot, cases)
    print(f"{cases:,} cases were run in {time.perf_counter() - began:.1f} s")
    make_old(folder / "files")
    live = [(await domain.start("new", {}, who="bench", cache="none")).id for _ in range(running)]
    while len(pilot.held) < running:
        await pilot.exchange(want=running, end=False)
    before = disk_bytes(folder / "files")
    watching = asyncio.create_task(busy.watch())
    began, cpu = time.perf_counter(), time.process_time()
    view = await prune(domain, pilot)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    watching.cancel()
    after = disk_bytes(folder / "files")
    print(
        f"prune while {running} cases run: {view.cases:,} cases, {view.documents:,} documents and {view.files:,} files"
        f" in {took:.1f} s ({used:.1f} s of CPU); {view.bytes / MB:,.1f} MB freed, of which files"
        f" {(before - after) / MB:,.1f} MB; {view.later_files:,} files wait; the server was busy for"
        f" {busy.most_s * 1000:.0f} ms at most"
    )
    await pilot.exchange(want=0, end=True)
    await check(domain, live)
    await server.close()


async def check(domain: Domain, live: Sequence[str]) -> None:
    """Every case that ran while others were pruned has completed, and all its files are there."""
    for case in live:
        view = await domain.case(case)
        assert view.status == "completed", (case, view.status)
        for value in view.outputs.values():
            ref = file_of(value)
            assert ref is not None
            content = b"".join([chunk async for chunk in domain.read_file(ref.sha256)])
            assert hashlib.sha256(content).hexdigest() == ref.sha256
    print(f"the {len(live)} cases that ran are completed, and all their files are whole")


def main(words: list[str]) -> None:
    cases, running = int(words[0]) if words else 10_000, int(words[1]) if len(words) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(cases, running, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
