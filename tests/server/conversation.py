"""What the tests say to a server: small flows, and a pilot that does its jobs without running anything."""

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import FlowName, PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import AttemptReport, Capacity, SyncAnswer, SyncRequest

SEVERAL = 3


def job_flow(name: str = "one") -> Flow:
    return Flow(name=FlowName(name), body=model.JobActivity(name="work", command="true"))


def loop_flow(name: str = "many", turns: int = SEVERAL) -> Flow:
    body = model.JobActivity(name="turn", command="true")
    each = model.ForEach(name="each", items=list(range(turns)), body=body)
    return Flow(name=FlowName(name), body=each, inputs={"n": model.Input()})


def task_flow(name: str = "ask", role: str = "editor") -> Flow:
    return Flow(name=FlowName(name), body=model.UserTask(name="approve", role=role, title="Look at it"))


def sync_request(
    serial: int, *, want: int = 0, reports: tuple[AttemptReport, ...] = (), wait_ms: int = 0
) -> SyncRequest:
    return SyncRequest(
        pilot=PilotId("pilot-1"),
        serial=serial,
        host="here",
        capacity=Capacity(slots=8, cpus=8, memory_bytes=1 << 30, disk_bytes=1 << 30),
        want=want,
        reports=list(reports),
        wait_ms=wait_ms,
    )


FAULT = Fault(name="exit", category=Category.JOB, message="it ended with 3", exit_code=3)


async def do_jobs(
    client: Client, count: int, *, fail: bool = False, fault: Fault = FAULT, measures: Measurements | None = None
) -> list[SyncAnswer]:
    """Be a pilot until so many jobs are over."""
    ended, measured = fault if fail else None, measures or Measurements()
    reports: tuple[AttemptReport, ...] = ()
    answers: list[SyncAnswer] = []
    done = serial = 0
    while done < count or reports:
        serial += 1
        want = count - done
        answer = await client.sync(sync_request(serial, want=want, reports=reports, wait_ms=5000 if want else 0))
        reports = tuple(
            AttemptReport(one.job, one.fence, Outcome(fault=ended, log_tail="said\n", measures=measured))
            for one in answer.jobs
        )
        done += len(reports)
        answers.append(answer)
    return answers
