"""What recovery costs jobs that do not fail: the same work with and without it, in turns, in one run.

A whole server on SQLite in this process, without HTTP and with a pilot that ends every job at once: nothing else takes
time, so the share that is recovery's is as large as it can ever be. Rounds alternate, and each begins with the other
kind, so that a busy moment of the machine meets both; of each kind the best round counts, because noise only ever makes
a system slower. Beside the wall clock stands processor time, which other programs' turns do not count in.
`python -m bench.proxy [JOBS [ROUNDS]]`."""

import gc
import json
import sys
import tempfile
import time
from pathlib import Path

from mendflow.core.model.flow import Expr, Flow, ForEach, Input, Job
from mendflow.core.model.ids import CaseId, FlowName, PilotId
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.model.sync import Assignment, Capacity, Report, SyncRequest
from mendflow.event_loop import run
from mendflow.formats.patterns import house_patterns
from mendflow.services.clock import SystemClock
from mendflow.services.house import House, HouseRules
from mendflow.services.local_domain import LocalDomain
from mendflow.stores.files import FolderKeeper
from mendflow.stores.sqlite import SqliteStore
from mendflow.wiring import house_rules

JOBS = 5_000
ROUNDS = 5
BATCH = 128
CAPACITY = Capacity(slots=BATCH, cpus=float(BATCH), memory_bytes=1 << 40, disk_bytes=1 << 40)
MANY = Flow(
    name=FlowName("many"),
    inputs={"jobs": Input(type="number", required=True)},
    body=ForEach(
        name="each",
        first=0,
        last=Expr("int(inputs.jobs) - 1"),
        body=Job(name="noop", command="true", submission=Submission.NOTIFY),
    ),
)


async def play(domain: LocalDomain, case: CaseId, serial: int) -> int:
    """A pilot that has done every job by the time it asks for the next; the serial of its last exchange."""
    held: list[Assignment] = []
    while held or (await domain.case(case)).status == "running":
        serial += 1
        request = SyncRequest(
            pilot=PilotId("quick"),
            serial=serial,
            heard=serial - 1,
            host="here",
            capacity=CAPACITY,
            want=BATCH,
            reports=[Report(each.job, each.fence, Outcome()) for each in held],
        )
        answer = await domain.sync(request)
        assert len(answer.accepted) == len(held)
        held = answer.jobs
    return serial


async def rate(folder: Path, jobs: int, *, recovery: bool) -> tuple[float, float]:
    """Jobs a second, by the wall clock and by processor time."""
    keeper = FolderKeeper(folder / "files")
    house = House(
        store=SqliteStore(folder / "store.db"),
        keeper=keeper,
        clock=SystemClock(),
        rules=HouseRules(recovery=recovery),
        version="bench",
        shipped=house_rules(),
        patterns=house_patterns(),
    )
    await house.open()
    keeper.open()
    domain = LocalDomain(house)
    await domain.deploy(MANY)
    warm = await domain.start("many", {"jobs": 200}, who="bench")
    serial = await play(domain, CaseId(warm.id), 0)
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    case = await domain.start("many", {"jobs": jobs}, who="bench")
    await play(domain, CaseId(case.id), serial)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    ended = await domain.case(case.id)
    assert ended.status == "completed" and ended.counts[0].done == jobs, ended
    await house.close()
    return jobs / seconds, jobs / cpu_seconds


def one(jobs: int, *, recovery: bool) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="bench-proxy-") as folder:
        return run(rate(Path(folder), jobs, recovery=recovery))


def measure(jobs: int = JOBS, rounds: int = ROUNDS) -> dict[str, float]:
    """The best rate of each kind, and what recovery takes away, as a share."""
    rates: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(rounds):
        for recovery in (number % 2 == 0, number % 2 != 0):
            rates[recovery].append(one(jobs, recovery=recovery))
    bare, bare_cpu = (max(each) for each in zip(*rates[False], strict=True))
    wall, cpu = (max(each) for each in zip(*rates[True], strict=True))
    return {
        "jobs": jobs,
        "rounds": rounds,
        "without_recovery": round(bare),
        "with_recovery": round(wall),
        "cost": round(1 - wall / bare, 4),
        "without_recovery_cpu": round(bare_cpu),
        "with_recovery_cpu": round(cpu),
        "cost_cpu": round(1 - cpu / bare_cpu, 4),
    }


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:3])), indent=2))
