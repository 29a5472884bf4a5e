"""Steps whose expressions do much work are done beside the server: nobody else waits for them, and what comes of them
is the same. SE-3"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from collections.abc import Sequence as Orders
from pathlib import Path

import msgspec
import pytest

from mendflow.core.engine import Case, restore, snapshot
from mendflow.core.engine.messages import CaseMoved, Event, Order, SubmitJob
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, Input, JobActivity, Parallel, Sequence, Wait, While
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
from mendflow.stores.contract import Append
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
COUNTING_JOBS = Flow(
    name=FlowName("counting"),
    inputs={"s": Input(type="string")},
    body=Sequence(
        name="s",
        body=(
            JobActivity(name="one", command="echo ${{ inputs.s.split('').size() }}"),
            JobActivity(name="two", command="echo ${{ (inputs.s + inputs.s).split('').size() }}"),
        ),
    ),
)
TWO_WAYS = Flow(
    name=FlowName("two-ways"),
    inputs={"s": Input(type="string")},
    body=Sequence(
        name="s",
        body=(
            JobActivity(name="zero", command="echo ${{ inputs.s.split('').size() }}"),
            Parallel(
                name="both",
                branches=tuple(
                    Sequence(
                        name=f"s-{name}",
                        body=(
                            JobActivity(name=name, command="true"),
                            JobActivity(name=f"after-{name}", command="echo ${{ inputs.s.split('').size() }}"),
                        ),
                    )
                    for name in ("one", "two")
                ),
            ),
        ),
    ),
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
        self.tasks: list[StepTask] = []

    async def run(self, task: StepTask) -> StepResult:
        self.begun += 1
        self.tasks.append(task)
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


@pytest.fixture
async def fresh(server: Server) -> HeldRunner:
    """Nobody has done any work yet."""
    runner = HeldRunner()
    server.long_steps = LongSteps(runner)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    return runner


async def test_a_process_does_the_steps_and_the_answer_is_the_same(server: Server, tmp_path: Path) -> None:
    await Domain(server).deploy(COUNTING)
    post = Post(server, COUNTING, tmp_path)
    assert (await post.ask("begin", said(1))).value == {"id": 3000, "text": "yes"}
    assert server.long_steps is not None and server.long_steps.wants("default", Case.blank())
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


async def test_the_first_long_step_of_a_case_is_not_done_within_the_server(server: Server, fresh: HeldRunner) -> None:
    domain, meta = Domain(server), server.runtime.meta
    await domain.deploy(COUNTING_JOBS)
    fresh.may_go.clear()
    await domain.start("counting", {"s": "abc"}, who="ann")
    await until(lambda: fresh.begun == 1, "its first step is done aside")
    assert not meta.jobs
    fresh.may_go.set()
    await until(lambda: len(meta.jobs) == 1, "its job is submitted")
    [job] = meta.jobs.values()
    assert job.spec.command == "echo 3"


async def test_a_step_that_turns_out_to_be_long_is_taken_back(
    server: Server, fresh: HeldRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case is as it was before, and goes on as if it had been done aside from the beginning. So does its replay."""
    domain, pilot = Domain(server), HandPilot(Domain(server))
    monkeypatch.setattr(long_steps, "LONG_UNITS", 1_000_000)
    await domain.deploy(COUNTING_JOBS)
    case = (await domain.start("counting", {"s": "abc"}, who="ann")).id
    await pilot.sync(want=1, wait_ms=5000)
    assert fresh.begun == 0
    monkeypatch.setattr(long_steps, "LONG_UNITS", 1)
    await pilot.exchange({"one": Outcome()})
    await until(lambda: len(server.runtime.meta.jobs) == 1, "the next job is submitted")
    [job] = server.runtime.meta.jobs.values()
    assert (job.spec.item, job.spec.command) == ("two", "echo 6")
    assert any(task.entries for task in fresh.tasks), "what had been done before was done again aside"
    before, tasks = _case(server, case), len(fresh.tasks)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    after = _case(server, case)
    assert (after.position, after.last_serial, after.last_id) == (before.position, before.last_serial, before.last_id)
    assert list(after.instances) == list(before.instances)
    assert any(task.entries for task in fresh.tasks[tasks:]), "the replay is long too"
    await pilot.sync(want=1, wait_ms=5000)
    await pilot.exchange({"two": Outcome()})
    await until(lambda: case not in server.runtime.manager.live, "the case is over")
    assert (await domain.case(case)).status == "completed"


async def test_a_case_that_is_taken_back_gets_the_process_before_its_next_step(server: Server) -> None:
    """Its step waits for the process while an event comes, which turns out to be long, and whose replay needs the
    process too. Neither waits for the other."""
    runner, now_s = HeldRunner(), [1000.0]
    steps = server.long_steps = LongSteps(runner, lambda: now_s[0])
    steps.count("blue", 1_000_000)
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")
    domain, pilot = Domain(server), HandPilot(Domain(server))
    await domain.deploy(TWO_WAYS)
    await domain.deploy(ONE_TIMER, project="blue")
    case = CaseId((await domain.start("two-ways", {"s": "abc"}, who="ann")).id)
    await _held(pilot, 1)
    await pilot.exchange({"zero": Outcome()})
    await _held(pilot, 2)
    runner.may_go.clear()
    steps.count("blue", 1_000_000)
    before = runner.begun
    await domain.start("one-timer", {}, who="ben")
    await until(lambda: runner.begun == before + 1, "a step of another project has the process")
    await pilot.exchange({"one": Outcome()})
    await until(lambda: _waiting(steps) == 1, "the next step of the case waits for the process")
    now_s[0] += 3600
    assert not steps.wants("default", Case.blank())
    live = server.runtime.manager.live[case]
    reporting = asyncio.create_task(pilot.exchange({"two": Outcome()}))
    await until(lambda: live.away is not None and _waiting(steps) == 2, "the event is taken back")
    runner.may_go.set()
    async with asyncio.timeout(PATIENCE_S):
        await reporting
    await _held(pilot, 2)
    await pilot.exchange({"after-one": Outcome(), "after-two": Outcome()})
    await until(lambda: case not in server.runtime.manager.live, "the case is over")
    assert (await domain.case(case)).status == "completed"


def _waiting(steps: LongSteps) -> int:
    return len(steps._one_at_a_time._waiters or ())


async def _held(pilot: HandPilot, jobs: int) -> None:
    async def fetched() -> bool:
        await pilot.sync(want=jobs - len(pilot.held), wait_ms=20)
        return len(pilot.held) == jobs

    await until(fetched, f"{jobs} jobs")


async def _interrupted(server: Server, monkeypatch: pytest.MonkeyPatch) -> tuple[LiveCase, asyncio.Event]:
    """A case whose first job has ended, and that is about to be taken back when the event is set."""
    domain, pilot = Domain(server), HandPilot(Domain(server))
    monkeypatch.setattr(long_steps, "LONG_UNITS", 1_000_000)
    await domain.deploy(COUNTING_JOBS)
    case = CaseId((await domain.start("counting", {"s": "abc"}, who="ann")).id)
    await _held(pilot, 1)
    monkeypatch.setattr(long_steps, "LONG_UNITS", 1)
    reader, may_read = server.runtime.manager.reader, asyncio.Event()
    before = reader.before

    async def read_later(live: LiveCase) -> Case:
        await may_read.wait()
        return await before(live)

    monkeypatch.setattr(reader, "before", read_later)
    return server.runtime.manager.live[case], may_read


async def test_a_case_is_taken_back_though_whoever_sent_the_event_has_left(
    server: Server, fresh: HeldRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, may_read = await _interrupted(server, monkeypatch)
    manager, state = server.runtime.manager, snapshot(live.case)
    [serial] = live.case.index.serials
    for _ in range(2):
        telling = asyncio.create_task(manager.finish(live.id, serial, Outcome()))
        await until(lambda: live.away is not None, "the event is being taken back")
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        assert live.away is not None, "nobody else gets at it before"
        may_read.set()
        await until(lambda: live.away is None, "it was taken back")
        assert telling.cancelled() and snapshot(live.case) == state and not server.runtime.ledger.broken
        may_read.clear()
        assert server.long_steps is not None
        server.long_steps._long_until.clear()
        server.long_steps._buckets = LongSteps(fresh)._buckets
    may_read.set()
    await manager.finish(live.id, serial, Outcome())
    await until(lambda: len(live.case.index.serials) == 1 and serial not in live.case.index.serials, "it has gone on")


async def test_a_case_that_cannot_be_taken_back_is_loaded_again(
    server: Server, fresh: HeldRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, may_read = await _interrupted(server, monkeypatch)
    runtime, state = server.runtime, snapshot(live.case)
    [serial] = live.case.index.serials
    telling = asyncio.create_task(runtime.manager.finish(live.id, serial, Outcome()))
    await until(lambda: live.away is not None, "the event is being taken back")
    moved = msgspec.json.encode(Event(server.clock.now(), CaseMoved(server="another")))
    await server.store.write([Append(journal_of(live.id), [moved], live.position)])
    telling.cancel()
    may_read.set()
    await until(lambda: server.health().status == "ok" and server.runtime is not runtime, "all was read again")
    assert "another server has taken case" in runtime.ledger.broken
    assert server.runtime.manager.live[live.id].case.instances.keys() == restore(state).instances.keys()


async def test_a_large_case_stays_within_the_server(
    server: Server, held: HeldRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sending it there and back would take longer than its steps."""
    monkeypatch.setattr(long_steps, "INSTANCES_MAX", 1)
    domain, pilot = Domain(server), HandPilot(Domain(server))
    await domain.deploy(COUNTING_JOBS)
    case = (await domain.start("counting", {"s": "abc"}, who="ann")).id
    await _held(pilot, 1)
    begun = held.begun
    held.may_go.clear()
    await pilot.exchange({"one": Outcome()})
    await _held(pilot, 1)
    assert held.begun == begun
    await pilot.exchange({"two": Outcome()})
    await until(lambda: case not in server.runtime.manager.live, "the case is over")


async def test_projects_without_steps_are_forgotten() -> None:
    steps, order = LongSteps(HeldRunner()), list[str]()

    async def step(project: str, name: str) -> None:
        async with steps.turn(project):
            await asyncio.sleep(0)
            order.append(name)

    async with asyncio.TaskGroup() as all_of_them:
        for number in range(100):
            all_of_them.create_task(step(f"p{number % 50}", f"{number}"))
    assert len(order) == 100
    assert not len(steps._turns)


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
