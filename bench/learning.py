"""What learning costs: `python -m bench.learning [JOBS]` fills a store with synthetic jobs, of which some failed, and
measures how long all of it takes to be counted and proposed for, and how much memory that needs; then what counting the
end of a job adds to it."""

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState, Measurements, Outcome, Resources
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.recovery.signature import signature
from mendflow.formats.shipped import default_rules
from mendflow.services.base.clock import SystemClock
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.learning.counting import FailureCounter
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Put
from mendflow.stores.files import FolderFileStore
from mendflow.stores.sqlite.store import SqliteStore

JOBS_PER_CASE = 1_000
FAILED_SHARE = 0.02
CAUSES = 40
DAY_MS = 86_400_000
START = 1_760_000_000_000
MB = 1_000_000
_encode = msgspec.json.Encoder().encode


def job_of(number: int, chance: random.Random) -> Job:
    """Every fiftieth job has failed once, and was tried again."""
    case = CaseId(f"flow-{number // JOBS_PER_CASE:06}")
    begun = START + number * 10
    host = f"node-{number % 200}"
    measures = Measurements(peak_bytes=chance.randrange(1, 4) * 500 * MB, ran_ms=60_000)
    attempts = []
    if chance.random() < FAILED_SHARE:
        fault = fault_of(chance.randrange(CAUSES))
        attempts.append(
            Attempt(
                fence=1,
                pilot=PilotId("p"),
                host=host,
                granted_at=begun,
                ended_at=begun + 30_000,
                end="failed",
                fault=fault,
            )
        )
    attempts.append(
        Attempt(
            fence=len(attempts) + 1,
            pilot=PilotId("p"),
            host=host,
            granted_at=begun + 40_000,
            ended_at=begun + 100_000,
            end="completed",
            measures=measures,
        )
    )
    spec = JobSpec(item=ItemId("work"), command="work", resources=Resources(memory_bytes=2_000 * MB))
    return Job(
        id=JobId(f"{case}/{number % JOBS_PER_CASE + 1}"),
        case=case,
        spec=spec,
        name="work",
        state=JobState.COMPLETED,
        created_at=begun,
        fence=len(attempts),
        history=attempts,
        outcome=Outcome(measures=measures),
        finished_at=begun + 100_000,
    )


def fault_of(cause: int) -> Fault:
    text = f"cause {'abcdefghijklmnopqrstuvwxyz'[cause % 26] * (2 + cause // 26)}: the table is locked"
    return Fault(name="exitCode", category=Category.JOB, message=text, exit_code=9, stage="execution")


def decision_of(job: Job) -> Decision:
    fault = job.history[0].fault
    context = {
        "job": {"id": job.id, "host": job.history[0].host, "generation": 1, "final": True, "log_tail": "x" * 2_000},
        "fault": {"name": "exitCode", "category": "job", "message": fault.message if fault else "", "exit_code": 9},
    }
    return Decision(
        id=f"{job.id}:1/abort",
        case=job.case,
        flow="flow",
        type=ExceptionType.ABORT,
        at=job.history[0].ended_at,
        state="ignored",
        result="retried",
        task="work",
        job=job.id,
        fault=fault,
        signature=signature(fault) if fault else "",
        context=context,
        ended_at=job.history[0].ended_at,
    )


def documents(jobs: int) -> Iterator[Put]:
    chance = random.Random(17)
    for number in range(jobs):
        job = job_of(number, chance)
        if number % JOBS_PER_CASE == 0:
            case = CaseDocument(id=job.case, flow="flow", digest="", status="completed")
            yield Put("case", job.case, _encode(case), 0)
        yield Put("job", job.id, _encode(job), 0)
        if len(job.history) > 1:
            decision = decision_of(job)
            yield Put("decision", decision.id, _encode(decision), 0)


async def fill(store: SqliteStore, jobs: int) -> None:
    batch: list[Put] = []
    for put in documents(jobs):
        batch.append(put)
        if len(batch) == 5_000:
            await store.write(batch)
            batch = []
    await store.write(batch)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


def cost_of_an_end(jobs: int = 20_000) -> float:
    """Microseconds that counting adds to the end of a job that has not failed."""
    chance = random.Random(3)
    ended = [job for number in range(2 * jobs) if len((job := job_of(number, chance)).history) == 1][:jobs]
    counter = FailureCounter(lambda job: "flow")
    begun = time.process_time()
    for job in ended:
        counter.count_jobs((job,))
    return (time.process_time() - begun) / len(ended) * 1e6


async def measure(jobs: int, folder: Path) -> None:
    store = SqliteStore(folder / "store.db")
    await store.open()
    await fill(store, jobs)
    await store.close()
    print(f"{jobs:,} jobs in {(folder / 'store.db').stat().st_size / MB:,.0f} MB, {peak_mb():,.0f} MB of memory so far")
    files = FolderFileStore(folder / "files")
    files.open()
    settings = ServerSettings(files_roots=None, learning_look_ms=DAY_MS)
    server = Server(
        store=SqliteStore(folder / "store.db"),
        file_store=files,
        clock=SystemClock(),
        settings=settings,
        version="bench",
        shipped=default_rules(),
    )
    await server.open()
    before = peak_mb()
    for word in ("first look: everything is counted", "later look: nothing is new"):
        wall, cpu = time.perf_counter(), time.process_time()
        found = await server.runtime.learning.look()
        print(
            f"{word}: {time.perf_counter() - wall:.1f} s, {time.process_time() - cpu:.1f} s of CPU,"
            f" {len(found)} proposals, {peak_mb() - before:,.0f} MB more memory at most"
        )
    begun = time.perf_counter()
    report = await server.runtime.learning.report(sees=sees_all)
    print(f"report of {report.jobs:,} jobs and {len(report.lost)} losses: {time.perf_counter() - begun:.2f} s")
    await server.close()


async def sees_all(name: str) -> bool:
    return True


def main(words: list[str]) -> None:
    jobs = int(words[0]) if words else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(jobs, Path(folder)))
    print(f"the end of a job that has not failed: {cost_of_an_end():.1f} us of CPU more")


if __name__ == "__main__":
    main(sys.argv[1:])
