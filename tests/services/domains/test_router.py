"""Where jobs go, by what they say. FM-4, FM-8"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from mendflow.core.model.domains import ConnectionSpec, DomainReport, InvitationSpec
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.flow import Call, Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome
from mendflow.core.model.sync import Capacity
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.base.contracts import (
    Callback,
    CapacityReport,
    MetaScheduler,
    NewJob,
    Status,
    SubmissionFailed,
)
from mendflow.services.domains.router import DomainRouter
from mendflow.services.domains.work_contracts import WorkSender
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot
from tests.services.domains.neighbours import LocalLines, Neighbour

BIG = Capacity(slots=8, cpus=64.0, memory_bytes=1 << 40, disk_bytes=1 << 40)
GOOD = Outcome(outputs={"x": 1})


class FarQueue:
    """A meta-scheduler in the test's hands: it has what it was given, and calls back when it is told to."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, NewJob] = {}
        self.callbacks: dict[JobId, Callback] = {}
        self.asked: list[str] = []

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        self.jobs |= {new.id: new for new in jobs}

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return GOOD

    async def status(self, id: JobId) -> Status:
        return Status(job=id, state=JobState.RUNNING, reason="there")

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        self.callbacks[id] = callback

    async def suspend(self, id: JobId) -> None:
        self.asked.append(f"suspend {id}")

    async def resume(self, id: JobId) -> None:
        self.asked.append(f"resume {id}")

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        self.asked.append(f"cancel {id}")

    async def capacity(self) -> CapacityReport:
        raise AssertionError("nobody asks")


class Far:
    """All other domains, by name."""

    def __init__(self, one: Neighbour) -> None:
        self.queues: dict[str, FarQueue] = {}
        hub = one.server.runtime.hub
        hub._providers.pop(WorkSender, None)
        hub.provide(WorkSender, self)

    def peer(self, domain: str) -> MetaScheduler:
        return self.queues.setdefault(domain, FarQueue())

    async def sent_to(self, job: JobId) -> str:
        return next((name for name, queue in self.queues.items() if job in queue.jobs), "")


async def connect(one: Neighbour, other: Neighbour, lines: LocalLines) -> None:
    """Connect them; each then hears of the other only what the test says."""
    lines.idle = True
    names = one.connections.own.name, other.connections.own.name
    token = (await one.domain.invite_domain(names[1], InvitationSpec(), who="ann")).token
    await other.domain.connect_domain(names[0], ConnectionSpec(urls=(one.url,), token=token), who="bob")


@pytest.fixture
async def home(north: Neighbour, south: Neighbour, lines: LocalLines) -> Neighbour:
    """North, connected with south, which says that it has much room."""
    await connect(north, south, lines)
    hear(north, "south", slots=8, slots_free=8)
    return north


def hear(one: Neighbour, name: str, **told: Any) -> None:
    one.services.contacts.record_contact(name, DomainReport(largest=BIG, **told), latency_ms=1.0)


def job(domain: str, id: str = "c-1/1", **spec: Any) -> NewJob:
    return NewJob(JobId(id), CaseId("c-1"), JobSpec(item=ItemId("a"), command="true", domain=domain, **spec))


def router_of(one: Neighbour) -> DomainRouter:
    return one.services.router


async def test_a_job_that_says_nothing_stays_here(home: Neighbour) -> None:
    far = Far(home)
    await router_of(home).submit([job("")])
    assert not far.queues
    assert (await router_of(home).status(JobId("c-1/1"))).state is JobState.AVAILABLE
    assert await router_of(home).route_of("c-1/1") is None


async def test_a_job_goes_to_the_domain_that_it_names_and_everything_asked_of_it_too(home: Neighbour) -> None:
    far, router, id = Far(home), router_of(home), JobId("c-1/1")
    await router.submit([job("south")])
    told: list[Outcome] = []

    async def tell(_: JobId, outcome: Outcome) -> None:
        told.append(outcome)

    await router.subscribe(id, tell)
    assert (await router.status(id)).reason == "there"
    await router.suspend(id)
    await router.resume(id)
    await far.queues["south"].callbacks[id](id, GOOD)
    assert told == [GOOD]
    await router.submit([job("south", "c-1/2")])
    await router.cancel(JobId("c-1/2"))
    assert far.queues["south"].asked == ["suspend c-1/1", "resume c-1/1", "cancel c-1/2"]


async def test_a_job_for_any_domain_goes_where_it_can_be_done_and_the_reasons_are_kept(home: Neighbour) -> None:
    far, router = Far(home), router_of(home)
    await router.submit([job("any")])  # there is no pilot at home
    assert list(far.queues["south"].jobs) == ["c-1/1"]
    route = await router.route_of("c-1/1")
    assert route is not None
    assert route.decision.reason == "south: 8 of 8 slots are free"
    assert {row.domain: row.reason for row in route.decision.rows}["north"] == "it has no pilots"


async def test_jobs_that_are_routed_at_the_same_time_do_not_all_go_to_the_same_slots(
    home: Neighbour, settle: Any, lines: LocalLines
) -> None:
    west = await settle("west")
    await connect(home, west, lines)
    for name in ("south", "west"):
        hear(home, name, slots=2, slots_free=2)
    far, router = Far(home), router_of(home)
    for number in range(4):
        await router.submit([job("any", f"c-1/{number}")])
    assert {name: len(queue.jobs) for name, queue in far.queues.items()} == {"south": 2, "west": 2}


async def test_where_a_job_went_is_not_decided_again_after_a_restart(home: Neighbour) -> None:
    far = Far(home)
    await router_of(home).submit([job("any")])
    await home.server.runtime.ledger.settled()
    before = router_of(home)
    await home.restart()
    assert router_of(home) is not before
    hear(home, "south", draining=True)
    again = Far(home)
    await router_of(home).submit([job("any")], reissued=True)
    assert list(again.queues["south"].jobs) == list(far.queues["south"].jobs)


async def test_a_job_that_is_submitted_again_does_not_go_to_who_refused_it(
    home: Neighbour, settle: Any, lines: LocalLines
) -> None:
    west = await settle("west")
    await connect(home, west, lines)
    hear(home, "west", slots=8, slots_free=8)
    far, router = Far(home), router_of(home)
    await router.submit([job("any")])
    [first] = far.queues
    fault = Fault(name="refusedThere", category=Category.REFUSED, message="no", stage=AttemptStage.SUBMISSION)
    over = Job(
        id=JobId("c-1/1"),
        case=CaseId("c-1"),
        spec=job("any").spec,
        state=JobState.FAILED,
        outcome=Outcome(fault=fault),
    )
    home.server.runtime.ledger.touch(JOB_KIND, "c-1/1", over)
    await router.submit([job("any", "c-1/1~2")], reissued=True)
    assert set(far.queues) == {"south", "west"}
    route = await router.route_of("c-1/1~2")
    assert route is not None and route.decision.domain != first
    assert {row.domain: row.reason for row in route.decision.rows}[first] == "it was refused there: no"


async def test_a_domain_that_is_gone_is_a_failed_submission_and_not_a_run_at_home(home: Neighbour) -> None:
    await home.domain.disconnect_domain("south", who="ann", force=True)
    with pytest.raises(SubmissionFailed, match="'south' is not connected here") as failed:
        await router_of(home).submit([job("south")])
    assert failed.value.fault.category is Category.SCHEDULER_DOWN


async def test_the_own_name_means_here(home: Neighbour) -> None:
    far = Far(home)
    await router_of(home).submit([job("north")])
    assert not far.queues
    assert (await router_of(home).status(JobId("c-1/1"))).state is JobState.AVAILABLE


def flow_of(domain: str) -> Flow:
    return Flow(name=FlowName("f"), body=JobActivity(name="a", command="true", domain=domain))


async def test_a_flow_that_names_a_domain_which_is_not_connected_is_refused_at_its_start(north: Neighbour) -> None:
    for flow in (flow_of("nowhere"), Flow(name=FlowName("f"), body=Call(name="a", flow="x", domain="nowhere"))):
        await north.domain.deploy(flow)
        with pytest.raises(InvalidRequest, match="step a: the domain 'nowhere' is not connected here"):
            await north.domain.start("f", {}, who="ann")
    assert not await north.domain.cases()


async def test_without_connections_a_job_for_any_domain_runs_here(north: Neighbour) -> None:
    await north.domain.deploy(flow_of("any"))
    case = (await north.domain.start("f", {}, who="ann")).id
    await HandPilot(north.domain).run_all(lambda _: GOOD)
    assert (await north.domain.case(case)).status == "completed"
    route = await router_of(north).route_of(f"{case}/1")
    assert route is not None and route.decision.reason == "north is connected with no other domain"
    told = await north.domain.why(f"{case}:a")
    assert "it stayed here: north is connected with no other domain" in told.facts


async def test_why_tells_the_way_of_a_job(home: Neighbour) -> None:
    """A job that is away is asked of the domain that has it, not of our own pilots."""
    far = Far(home)
    await home.domain.deploy(flow_of("any"))
    case = (await home.domain.start("f", {}, who="ann")).id
    async with asyncio.timeout(PATIENCE_S):
        while not far.queues:
            await asyncio.sleep(0.01)
    [new] = far.queues["south"].jobs.values()
    id = new.id
    home.server.runtime.ledger.touch(JOB_KIND, id, Job(id=id, case=CaseId(case), spec=new.spec))
    told = await home.domain.why(id)
    assert told.sentence == "a is in the domain south: there."
    assert told.facts[:2] == ["it went to the domain south: 8 of 8 slots are free", "not north: it has no pilots"]
