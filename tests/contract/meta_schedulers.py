"""What every meta-scheduler promises the flow manager: our own queue, the proxy before it, another domain. Each runs
the same tests unchanged, in a yard that says who does the jobs and how everything crashes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, JobState, Measurements, Outcome
from mendflow.core.model.sync import AttemptReport, AttemptStatus, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import FileStore, MetaScheduler, NewJob
from tests import patience
from tests.services.conftest import HandPilot

EXIT = Fault(name="exit", category=Category.JOB, message="it ended with exit code 3", exit_code=3)
DONE = Outcome(outputs={"n": 7})


class CommandPilot(HandPilot):
    """A pilot whose jobs are named by their commands."""

    async def end(self, ended: dict[str, Outcome], *, want: int = 0, wait_ms: int = 0) -> None:
        over = [(each, ended[each.spec.command or ""]) for each in self.held if each.spec.command in ended]
        still = [each for each in self.held if each.spec.command not in ended]
        self.serial += 1
        request = SyncRequest(
            pilot=self.name,
            serial=self.serial,
            heard=self.heard,
            host="here",
            capacity=self.capacity,
            want=want,
            wait_ms=wait_ms,
            running=[AttemptStatus(each.job, each.fence, "running", Measurements()) for each in still],
            reports=[AttemptReport(each.job, each.fence, outcome) for each, outcome in over],
        )
        answer = await self.domain.sync(request)
        self.heard = self.serial
        gone = {(ref.job, ref.fence) for ref in (*answer.accepted, *answer.refused, *answer.lost)}
        cancelled = {(order.job, order.fence) for order in answer.orders if order.control == "cancel"}
        self.held = [each for each in self.held if (each.job, each.fence) not in gone | cancelled] + answer.jobs

    def commands(self) -> list[str]:
        return sorted(each.spec.command or "" for each in self.held)


class Yard(Protocol):
    """A meta-scheduler, the pilot that runs its jobs, the files on this side and on the pilot's."""

    @property
    def meta(self) -> MetaScheduler: ...
    @property
    def pilot(self) -> CommandPilot: ...
    @property
    def files(self) -> FileStore: ...
    @property
    def pilot_files(self) -> FileStore: ...
    async def settled(self) -> None: ...
    async def crash(self) -> None:
        """Everything in memory is lost, on this side."""
        ...


def new(number: int = 1, **more: object) -> NewJob:
    spec = JobSpec(item=ItemId(f"work[{number}]"), command=f"do {number}", **more)  # type: ignore[arg-type]  # own fields
    return NewJob(JobId(f"c-1/{number}"), CaseId("c-1"), spec)


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[JobId, Outcome]] = []

    async def __call__(self, id: JobId, outcome: Outcome) -> None:
        self.heard.append((id, outcome))


async def until(check: Callable[[], bool]) -> None:
    await patience.until(check)


async def take(yard: Yard, *commands: str) -> None:
    for _ in range(1_000):
        await yard.pilot.end({}, want=8, wait_ms=20)
        if yard.pilot.commands() == sorted(commands):
            return
    raise AssertionError(f"the pilot has {yard.pilot.commands()}")


async def content(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


class MetaSchedulerContract:
    """Each meta-scheduler has a fixture `yard` that puts it together."""

    async def test_a_job_ends_once_for_who_has_subscribed(self, yard: Yard) -> None:
        # FM-4
        ear = Ear()
        await yard.meta.submit([new()])
        await yard.meta.subscribe(new().id, ear)
        await take(yard, "do 1")
        await yard.pilot.end({"do 1": DONE})
        await until(lambda: bool(ear.heard))
        await yard.settled()
        assert ear.heard == [(new().id, DONE)]

    async def test_many_jobs_end_each_once(self, yard: Yard) -> None:
        ear, jobs = Ear(), [new(number) for number in range(1, 9)]
        await yard.meta.submit(jobs)
        for job in jobs:
            await yard.meta.subscribe(job.id, ear)
        ended = 0
        while ended < len(jobs):
            await yard.pilot.end({}, want=4, wait_ms=20)
            ended += len(yard.pilot.held)
            await yard.pilot.end({each: Outcome(outputs=each) for each in yard.pilot.commands()})
        await until(lambda: len(ear.heard) == len(jobs))
        assert sorted(ear.heard) == sorted((job.id, Outcome(outputs=job.spec.command)) for job in jobs)

    async def test_who_subscribes_after_the_end_is_told(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new()])
        await take(yard, "do 1")
        await yard.pilot.end({"do 1": DONE})
        await yard.settled()
        await yard.meta.subscribe(new().id, ear)
        await until(lambda: bool(ear.heard))
        assert ear.heard == [(new().id, DONE)]

    async def test_a_call_that_waits_returns_the_outcome(self, yard: Yard) -> None:
        running = asyncio.create_task(yard.meta.run(new()))
        await take(yard, "do 1")
        await yard.pilot.end({"do 1": DONE})
        assert await running == DONE

    async def test_the_same_job_submitted_again_is_one_job(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new()])
        await yard.meta.submit([new()], reissued=True)
        await yard.meta.subscribe(new().id, ear)
        await take(yard, "do 1")
        await yard.meta.submit([new()], reissued=True)
        await yard.pilot.end({"do 1": DONE}, want=4, wait_ms=50)
        await until(lambda: bool(ear.heard))
        assert not yard.pilot.held and len(ear.heard) == 1

    async def test_a_failure_is_told_with_its_fault(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new()])
        await yard.meta.subscribe(new().id, ear)
        await take(yard, "do 1")
        await yard.pilot.end({"do 1": Outcome(fault=EXIT, exit_code=3, log_tail="no such file")})
        await until(lambda: bool(ear.heard))
        [(_, outcome)] = ear.heard
        assert outcome.fault is not None and outcome.fault.name == "exit" and outcome.log_tail == "no such file"
        assert (await yard.meta.status(new().id)).state is JobState.FAILED

    async def test_the_status_says_how_a_job_stands(self, yard: Yard) -> None:
        await yard.meta.submit([new()])
        assert (await yard.meta.status(new().id)).state is JobState.AVAILABLE
        await take(yard, "do 1")
        for _ in range(1_000):
            if (await yard.meta.status(new().id)).state is JobState.RUNNING:
                break
            await yard.pilot.end({}, wait_ms=5)
        running = await yard.meta.status(new().id)
        assert running.state is JobState.RUNNING and running.host == "here" and running.reason is not None
        await yard.pilot.end({"do 1": DONE})
        await yard.settled()
        ended = await yard.meta.status(new().id)
        assert (ended.state, ended.outcome) == (JobState.COMPLETED, DONE)

    async def test_an_unknown_job_has_no_status_and_no_end(self, yard: Yard) -> None:
        with pytest.raises(NotFound):
            await yard.meta.status(JobId("c-9/9"))
        with pytest.raises(NotFound):
            await yard.meta.subscribe(JobId("c-9/9"), Ear())

    async def test_a_cancelled_job_stops_and_nobody_is_told(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new()])
        await yard.meta.subscribe(new().id, ear)
        await take(yard, "do 1")
        await yard.meta.cancel(new().id, reason="enough")
        await take(yard)
        status = await yard.meta.status(new().id)
        assert status.state is JobState.FAILED and status.outcome is not None and not ear.heard
        assert status.outcome.fault is not None and status.outcome.fault.category is Category.CANCELLED

    async def test_a_job_that_is_cancelled_before_anybody_has_it_never_runs(self, yard: Yard) -> None:
        await yard.meta.submit([new(1), new(2)])
        await yard.meta.cancel(new(1).id)
        await take(yard, "do 2")

    async def test_a_suspended_job_waits_until_it_is_resumed(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new(1), new(2)])
        await yard.meta.suspend(new(1).id)
        await yard.settled()
        await yard.meta.subscribe(new(1).id, ear)
        assert (await yard.meta.status(new(1).id)).suspended
        await take(yard, "do 2")
        await yard.pilot.end({"do 2": DONE})
        await yard.meta.resume(new(1).id)
        await take(yard, "do 1")
        await yard.pilot.end({"do 1": DONE})
        await until(lambda: bool(ear.heard))

    async def test_a_crash_loses_no_job_and_runs_none_twice(self, yard: Yard) -> None:
        ear = Ear()
        await yard.meta.submit([new(1), new(2)])
        await take(yard, "do 1", "do 2")
        await yard.pilot.end({"do 1": DONE})
        await yard.settled()
        await yard.crash()
        await yard.meta.submit([new(1), new(2)], reissued=True)
        for number in (1, 2):
            await yard.meta.subscribe(new(number).id, ear)
        await until(lambda: len(ear.heard) == 1)
        await take(yard, "do 2")
        await yard.pilot.end({"do 2": DONE})
        await until(lambda: len(ear.heard) == 2)
        await yard.settled()
        assert sorted(ear.heard) == [(new(1).id, DONE), (new(2).id, DONE)]

    async def test_files_go_with_the_job_and_come_back(self, yard: Yard) -> None:
        # DM-1
        await yard.meta.submit([new(2)])
        before, ear = Ear(), Ear()
        await yard.meta.subscribe(new(2).id, before)
        await take(yard, "do 2")
        left = await yard.pilot_files.keep("table.csv", content(b"a,b\n", b"1,2\n"))
        await yard.pilot.end({"do 2": Outcome(files={"table": left})})
        await until(lambda: bool(before.heard))
        await yard.settled()
        kept: FileRef = before.heard[0][1].files["table"]
        await yard.meta.submit([new(inputs={"in/table.csv": kept})])
        await yard.meta.subscribe(new().id, ear)
        await take(yard, "do 1")
        [held] = yard.pilot.held
        got = held.spec.inputs["in/table.csv"]
        assert b"".join([each async for each in yard.pilot_files.read(got.sha256)]) == b"a,b\n1,2\n"
        made = await yard.pilot_files.keep("sum.txt", content(b"3\n"))
        await yard.pilot.end({"do 1": Outcome(files={"sum": made}, outputs={"again": made.as_value()})})
        await until(lambda: bool(ear.heard))
        back: FileRef = ear.heard[0][1].files["sum"]
        assert b"".join([each async for each in yard.files.read(back.sha256)]) == b"3\n"

    async def test_it_says_what_it_has_room_for(self, yard: Yard) -> None:
        told = await yard.meta.capacity()
        assert told.slots >= told.slots_free >= 0 and told.waiting >= 0
