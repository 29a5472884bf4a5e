"""Steps whose expressions do much work are done beside the server: nobody else waits for them, and what comes of them
is the same. SE-3"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from collections.abc import Sequence as Orders
from pathlib import Path

import pytest

from mendflow.core.engine import Case
from mendflow.core.engine.messages import Order, SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, JobActivity, Parallel, Sequence, Wait, While
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.cases import long_steps
from mendflow.services.cases.live_case import LiveCase, journal_of
from mendflow.services.cases.long_steps import LongSteps, ProcessStepRunner, StepResult, StepTask
from mendflow.services.cases.step_process import apply
from mendflow.services.runtime.server import Server
from mendflow.services.runtime.settings import ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.core.engine.xml.conversations import said
from tests.patience import PATIENCE_S, until
from tests.services.conftest import HandPilot
from tests.services.messaging.test_message_router import Post
from tests.services.messaging.test_much_work import COUNTING

ENDLESS = Flow(
    name=FlowName("endless"),
    body=While(
        name="loop", condition=Expr("[1, 2, 3].all(a, [1, 2, 3].all(b, b > 0))"), body=Wait(name="wait", duration=0)
    ),
)
TWO_JOBS = Flow(
    name=FlowName("two"),
    body=Sequence(name="s", body=(JobActivity(name="one", command="true"), JobActivity(name="two", command="true"))),
)


TIMERS = Flow(
    name=FlowName("timers"),
    body=Parallel(name="all", branches=(Wait(name="now", duration=0), Wait(name="later", duration=3_600_000))),
)
ONE_TIMER = Flow(name=FlowName("one-timer"), body=Wait(name="wait", duration=0))


class HeldRunner:
    """Does the steps here, when the test lets it; the first `free` ones at once."""

    def __init__(self) -> None:
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.free = 0
        self.begun = 0
        self.ended = 0

    async def run(self, task: StepTask) -> StepResult:
        self.begun += 1
        if self.begun > self.free:
            await self.may_go.wait()
        self.ended += 1
        return apply(task)

    async def stop(self) -> None: ...


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Everything that does any work counts as long, after its first step."""
    monkeypatch.setattr(long_steps, "LONG_UNITS", 1)
    files = FolderFileStore(tmp_path / "files")
    settings = ServerSettings(long_steps_aside=True)
    server = Server(store=MemoryStore(), file_store=files, clock=SystemClock(), settings=settings, version="0")
    await server.open()
    files.open()
    yield server
    await server.close()


@pytest.fixture
async def held(server: Server) -> HeldRunner:
    runner = HeldRunner()
    server.long_steps = LongSteps(runner)
    server.long_steps.count("default", 1_000_000)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    return runner


async def test_a_process_does_the_steps_and_the_answer_is_the_same(server: Server, tmp_path: Path) -> None:
    await Domain(server).deploy(COUNTING)
    post = Post(server, COUNTING, tmp_path)
    assert (await post.ask("begin", said(1))).value == {"id": 3000, "text": "yes"}
    assert server.long_steps is not None and server.long_steps.wants("default", _case(server, "talks-soap.1"))
    assert (await post.ask("ask", said(1), "another")).value == {"id": 3000, "text": "yes"}


async def test_a_process_that_was_killed_costs_nothing(server: Server, tmp_path: Path) -> None:
    runner = ProcessStepRunner()
    server.long_steps = LongSteps(runner)
    server.long_steps.count("default", 1_000_000)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    await Domain(server).deploy(COUNTING)
    post = Post(server, COUNTING, tmp_path)
    sent = await post.send("begin", said(1))
    await until(lambda: runner.pid is not None, "the process has begun")
    assert runner.pid is not None
    os.kill(runner.pid, signal.SIGKILL)
    assert (await post.answer(sent)).value == {"id": 3000, "text": "yes"}
    await runner.stop()


async def test_commands_wait_for_a_step_and_come_before_the_next(server: Server, held: HeldRunner) -> None:
    domain = Domain(server)
    await domain.deploy(ENDLESS)
    held.may_go.clear()
    case = (await domain.start("endless", {}, who="ann")).id
    await until(lambda: held.begun == 1, "the first step is done aside")
    cancelling = asyncio.create_task(domain.cancel(case, who="ann"))
    await asyncio.sleep(0)
    assert (await domain.case(case)).status == "running" and not cancelling.done(), "whoever asks is answered"
    held.may_go.set()
    async with asyncio.timeout(PATIENCE_S):
        await cancelling
    assert (await domain.case(case)).status == "cancelled"


async def test_no_pilot_waits_for_a_step(server: Server, held: HeldRunner) -> None:
    domain = Domain(server)
    pilot = HandPilot(domain)
    await domain.deploy(TWO_JOBS)
    case = (await domain.start("two", {}, who="ann")).id
    await pilot.sync(want=1, wait_ms=5000)
    held.may_go.clear()
    async with asyncio.timeout(PATIENCE_S):
        await pilot.exchange({"one": Outcome()})
    assert len(pilot.held) == 0
    held.may_go.set()
    await pilot.sync(want=1, wait_ms=5000)
    await pilot.exchange({"two": Outcome()})
    await until(lambda: case not in server.runtime.manager.live, "the case is over")
    assert (await domain.case(case)).status == "completed"


async def test_no_timer_of_another_case_waits_for_a_step(server: Server, held: HeldRunner) -> None:
    domain, timers = Domain(server), server.runtime.timers
    await domain.deploy(TIMERS)
    await domain.deploy(ONE_TIMER, project="blue")
    held.may_go.clear()
    held.free = 1  # the step that sets the timers
    case = (await domain.start("timers", {}, who="ann")).id
    await until(lambda: held.begun == 2, "the first timer has fired, and what follows is done aside")
    [(of, serial)] = timers._live
    timers.set(of, serial, server.clock.now())
    await until(lambda: not timers._live, "the second one has fired, while the step is out")
    other = (await domain.start("one-timer", {}, who="ben")).id
    await until(lambda: other not in server.runtime.manager.live, "the timer of the other project has fired")
    assert held.ended == 1
    held.may_go.set()
    await until(lambda: case not in server.runtime.manager.live, "both its own timers have counted")
    assert (await domain.case(case)).status == "completed"


async def test_no_other_project_waits_for_what_follows_from_a_step(
    server: Server, held: HeldRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.long_steps is not None
    server.long_steps.count("blue", 1_000_000)
    domain, meta, may_submit = Domain(server), server.runtime.meta, asyncio.Event()
    await domain.deploy(TWO_JOBS)
    await domain.deploy(ONE_TIMER, project="blue")
    carry_out, reached = server.runtime.dispatcher.carry_out, asyncio.Event()

    async def carry_out_slowly(live: LiveCase, orders: Orders[Order], *, reissued: bool = False) -> None:
        if live.document.project == "default" and any(isinstance(each, SubmitJob) for each in orders):
            reached.set()
            await may_submit.wait()
        await carry_out(live, orders, reissued=reissued)

    monkeypatch.setattr(server.runtime.dispatcher, "carry_out", carry_out_slowly)
    await domain.start("two", {}, who="ann")
    async with asyncio.timeout(PATIENCE_S):
        await reached.wait()
    other = (await domain.start("one-timer", {}, who="ben")).id
    await until(lambda: other not in server.runtime.manager.live, "the steps of the other project are done")
    assert held.ended > 1 and not meta.jobs
    may_submit.set()
    await until(lambda: len(meta.jobs) == 1, "the job is submitted")


async def test_a_case_that_ended_goes_the_same_way_again(server: Server, held: HeldRunner) -> None:
    """What was done aside is in the journal as if it had been done here."""
    domain = Domain(server)
    await domain.deploy(TWO_JOBS)
    case = (await domain.start("two", {}, who="ann")).id
    pilot = HandPilot(domain)
    await pilot.sync(want=1, wait_ms=5000)
    before = _case(server, case)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    after = _case(server, case)
    assert (after.position, after.last_serial, after.last_id) == (before.position, before.last_serial, before.last_id)
    assert list(after.instances) == list(before.instances)
    entries = await server.store.read(journal_of(CaseId(case)), 0)
    assert len(entries) == after.position and b'"proceed"' in b"".join(entries)


def _case(server: Server, case: str) -> Case:
    return server.runtime.manager.live[CaseId(case)].case
