"""What the pages ask for where there is much: a case of 100,000 items, 10,000 cases. How long it takes: bench.web."""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Attempt, Job, JobState, Outcome
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Put, StoredDocument
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.recovery.kit import World, flow

pytestmark = pytest.mark.full

ITEMS, CASES, FAILURES = 100_000, 10_000, 5_000
HOUR_MS = 3_600_000
_encode = msgspec.json.encode


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(SqliteStore(tmp_path / "store.sqlite"), tmp_path, ServerSettings(files_roots=None))
    await world.server.open()
    yield world
    await world.server.close()


async def write(world: World, puts: Iterable[Put]) -> None:
    left = iter(puts)
    while some := list(islice(left, 2_000)):
        await world.store.write(some)


async def ended_case(world: World) -> tuple[StoredDocument, Job]:
    """One that ran, whose documents are like any other's."""
    case = await world.start(flow(ForEach(name="each", first=1, last=1, body=JobActivity(name="a", command="true"))))
    await world.take()
    await world.pilot.exchange({"a[0]": Outcome(log_tail="done\n" * 20)})
    await world.until_status(case, "completed")
    document, job = await world.store.get("case", case), await world.store.get("job", f"{case}/1")
    assert document is not None and job is not None
    return document, msgspec.json.decode(job.body, type=Job)


def copy_of(job: Job, number: int) -> Job:
    begun = job.created_at + number // 10
    attempt = Attempt(fence=1, pilot=job.history[0].pilot, granted_at=begun, ended_at=begun + 500, end="completed")
    return msgspec.structs.replace(
        job,
        id=JobId(f"{job.case}/{number}"),
        spec=msgspec.structs.replace(job.spec, item=ItemId(f"a[{number - 1}]"), env={"PATH": "/usr/bin:" * 20}),
        name=f"part-{number % 20}",
        state=JobState.FAILED if number % 1000 == 0 else JobState.COMPLETED,
        history=[attempt],
        finished_at=begun + 500,
    )


async def test_a_case_of_100_000_items_is_shown_before_all_is_read(world: World) -> None:
    document, job = await ended_case(world)
    await write(
        world, (Put("job", f"{job.case}/{number}", _encode(copy_of(job, number)), 0) for number in range(2, ITEMS + 1))
    )
    case = msgspec.json.decode(document.body, type=CaseDocument)
    counts = [msgspec.structs.replace(case.counts[0], done=ITEMS)]
    larger = msgspec.structs.replace(case, serials=ITEMS, counts=counts, ended_at=job.created_at + ITEMS // 10 + 500)
    await world.store.write([Put("case", case.id, _encode(larger), document.version)])

    first = await world.domain.case_timeline(case.id)
    assert len(first.rows) == 500 and first.total == ITEMS
    assert first.read < ITEMS, "the first answer waits for no other item"

    async def known() -> bool:
        return (await world.domain.case_timeline(case.id, limit=1)).read == ITEMS

    await world.until(known, "all items")
    middle = job.created_at + ITEMS // 20
    for begin, end in ((0, 0), (middle, middle + 100)):
        seen = await world.domain.case_timeline(case.id, begin=begin, end=end)
        assert len(seen.folded) >= 20 and len(seen.rows) == 500
    graph = await world.domain.case_graph(case.id)
    assert graph.nodes[0].counts == {"completed": ITEMS}


async def test_10_000_cases_are_looked_over(world: World) -> None:
    document, _ = await ended_case(world)
    case = msgspec.json.decode(document.body, type=CaseDocument)
    now = world.server.clock.now()

    def copied(number: int) -> CaseDocument:
        at = now - number % 24 * HOUR_MS
        status = "failed" if number % 5 == 0 else "completed"
        return msgspec.structs.replace(case, id=CaseId(f"f-{number}"), status=status, started_at=at, ended_at=at + 1)

    fault = Fault(name="exit", category=Category.JOB, message="it ended with exit code 3", exit_code=3)

    def failure(number: int) -> Decision:
        return Decision(
            id=f"f-{number}/1:1",
            case=CaseId(f"f-{number}"),
            flow="f",
            type=ExceptionType.ABORT,
            at=now - number % 24 * HOUR_MS,
            state="ignored",
            signature=f"job: it ended with exit code {number % 30}",
            fault=fault,
            context={"job": {"log": "a line of the log\n" * 100}},
        )

    await write(world, (Put("case", f"f-{number}", _encode(copied(number)), 0) for number in range(CASES)))
    await write(world, (Put("decision", f"f-{number}/1:1", _encode(failure(number)), 0) for number in range(FAILURES)))
    seen = await world.domain.overview()
    assert seen.cases == {"completed": 8_001, "failed": 2_000}
    assert sum(seen.per_hour.failed) == 2_000 and sum(each.count for each in seen.failures) > 3_000
    assert (await world.domain.overview()).cases == seen.cases
