"""BPEL processes that hand over jobs in process: what becomes of both when something happens in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.xml import element_text, element_value
from mendflow.formats import load
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.contracts import MetaScheduler, NewJob, SubmissionFailed
from mendflow.services.messaging.message_store import MessageReply, PostReceipt
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import read_job
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot
from tests.services.messaging.test_message_router import Dying

EXAMPLES = Path(__file__).parents[3] / "examples" / "bpel"
PATTERNS = ("synchronous", "polling", "callback")
REQUEST = element_value(
    '<sort xmlns="urn:example:words"><source>file:///in</source><sorted>file:///sorted</sorted>'
    "<count>file:///count</count></sort>"
)
DOWN = Fault(name="schedulerDown", category=Category.SCHEDULER_DOWN, message="the meta-scheduler is down")


class Outage:
    """The way to the queue, which is down for so many submissions."""

    def __init__(self) -> None:
        self.left = 0
        self.met = 0

    def around(self, queue: MetaScheduler) -> MetaScheduler:
        assert isinstance(queue, PilotScheduler)
        submit = queue.submit

        async def tried(jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
            if self.left:
                self.left, self.met = self.left - 1, self.met + 1
                raise SubmissionFailed(DOWN)
            await submit(jobs, reissued=reissued)

        queue.submit = tried  # type: ignore[method-assign]  # the way there is the only thing that is other
        return queue


@pytest.fixture
def outage() -> Outage:
    return Outage()


@asynccontextmanager
async def opened(folder: Path, outage: Outage, store: Store | None = None) -> AsyncIterator[Server]:
    file_store = FolderFileStore(folder / "files")
    file_store.open()
    server = Server(
        store=store or MemoryStore(),
        file_store=file_store,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=None, levels_ms=(50, 50, 50)),
        version="test",
        shipped=default_rules(),
        read_job=read_job,
        way_to_queue=outage.around,
    )
    await server.open()
    yield server
    await server.close()


@pytest.fixture
async def server(tmp_path: Path, outage: Outage) -> AsyncIterator[Server]:
    async with opened(tmp_path, outage) as server:
        yield server


def well(spec: JobSpec) -> Outcome:
    return Outcome(exit_code=0)


async def post(server: Server, name: str) -> PostReceipt:
    await Domain(server).deploy(load(EXAMPLES / f"{name}.bpel"))
    return await server.runtime.message_router.post(
        name, "client.sort", {"parameters": REQUEST}, id="one", who="me", sight=EVERYTHING
    )


async def ask(server: Server, name: str) -> asyncio.Task[MessageReply]:
    posted = await post(server, name)

    async def answer() -> MessageReply:
        while True:
            try:
                return await server.runtime.message_router.answer(posted.id)
            except StoreUnavailable:
                await asyncio.sleep(0.02)

    return asyncio.create_task(answer())


async def test_a_process_that_moves_in_an_archive_hears_of_its_jobs_where_it_goes_on(
    server: Server, domain: Domain, pilot: HandPilot, tmp_path: Path
) -> None:
    answer = await ask(server, "callback")
    await pilot.sync(want=1, wait_ms=5_000)
    archive = await domain.export(["callback-soap.1"], who="me")
    async with opened(tmp_path / "there", Outage()) as there:
        await Domain(there).import_archive(archive, resume=True, who="me")
        run_on = HandPilot(Domain(there))
        async with asyncio.timeout(PATIENCE_S):
            while (await Domain(there).case("callback-soap.1")).status == "running":
                await run_on.run_all(well)
        assert (await Domain(there).case("callback-soap.1")).status == "completed"
    answer.cancel()


async def answered(answer: asyncio.Task[MessageReply], pilot: HandPilot) -> str:
    """What the process says in the end, while its jobs are run."""
    async with asyncio.timeout(PATIENCE_S):
        while not answer.done():
            await pilot.run_all(well)
    told = answer.result()
    assert told.fault is None and isinstance(told.value, dict), told
    return element_text(told.value["parameters"]) or ""


@pytest.mark.parametrize("name", PATTERNS)
async def test_a_meta_scheduler_that_is_down_at_submission_is_waited_for(
    server: Server, pilot: HandPilot, outage: Outage, name: str
) -> None:  # FM-8 FM-10 FM-12
    outage.left = 3
    assert "both jobs have completed" in await answered(await ask(server, name), pilot)
    assert outage.met == 3


@pytest.mark.parametrize("name", PATTERNS)
async def test_a_process_finds_its_jobs_again_after_every_crash(
    server: Server, pilot: HandPilot, restart: Callable[[Server], Awaitable[None]], name: str
) -> None:  # FM-5 FM-10
    answer = await ask(server, name)
    begun: set[str] = set()
    async with asyncio.timeout(PATIENCE_S):
        while not answer.done():
            await pilot.sync(want=4, wait_ms=50)
            begun |= {each.job for each in pilot.held}
            await restart(server)
            await pilot.exchange({each.spec.item: well(each.spec) for each in pilot.held})
            await restart(server)
    assert "both jobs have completed" in str(answer.result().value)
    assert len(begun) == 2, "no job is handed over twice"


async def test_a_job_whose_process_gives_it_up_is_ended(server: Server, domain: Domain, pilot: HandPilot) -> None:
    answer = await ask(server, "synchronous")
    await pilot.sync(want=1, wait_ms=5_000)
    [held] = pilot.held
    told = await domain.why("synchronous-soap.1")
    assert any("case synchronous-soap.1.1" in fact for fact in told.facts), "it leads to the job"
    case = held.job.partition(".")[0] + "." + held.job.split(".")[1]
    await domain.cancel(case, who="me")
    assert (await answer).end_fault == "processTerminated"
    async with asyncio.timeout(PATIENCE_S):
        while (await domain.case(CaseId(held.job.partition("/")[0]))).status == "running":
            await asyncio.sleep(0.01)
    assert (await domain.job(held.job)).state == "failed", "its pilot is told to end it"


async def play(server: Server, pilot: HandPilot) -> str:
    """A process from its beginning to its end, for one who says the same again if unsure."""
    pilot.domain = Domain(server)
    posted = await post(server, "callback")
    answer = asyncio.create_task(server.runtime.message_router.answer(posted.id))
    try:
        return await answered(answer, pilot)
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)


@pytest.mark.full
async def test_a_process_with_jobs_survives_a_death_between_any_two_writes(tmp_path: Path) -> None:  # FM-10
    deaths = 0
    for writes in range(0, 400, 3):
        store = Dying()
        async with opened(tmp_path, Outage(), store) as server:
            pilot = HandPilot(Domain(server))
            store.left = writes
            try:
                await play(server, pilot)
            except StoreUnavailable:
                deaths += 1
        survived, store.left = store.left > 0, 1_000_000
        async with opened(tmp_path, Outage(), store) as server:
            assert "both jobs have completed" in await play(server, pilot), f"after {writes} writes"
            jobs = [each for each in await Domain(server).cases() if each.parent]
            assert [each.status for each in jobs] == ["completed"] * 2, f"after {writes} writes"
        if survived:
            break
    assert deaths > 10, "it died in the middle"
