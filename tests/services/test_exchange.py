"""The exchange with pilots: fences, leases, answers that overtake each other, and who gets which job."""

import asyncio
from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Forbidden, InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName, PilotId
from mendflow.core.model.jobs import Job, JobState, Measurements, Outcome
from mendflow.core.model.sync import AttemptReport, Capacity, SyncRequest
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.facts import AttemptEnding, FailedAttempts, PilotLost
from mendflow.stores.contract import StoredDocument
from mendflow.stores.memory import MemoryStore

JOB_FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))
NODE_LOST = Outcome(fault=Fault(name="disk", category=Category.RESOURCE, message="the disk is full"))


async def start(domain: Domain, **options: Any) -> str:
    await domain.deploy(Flow(name=FlowName("one"), body=JobActivity(name="a", command="true", **options)))
    return (await domain.start("one", {}, who="me")).id


async def job_of(domain: Domain, case: str) -> Any:
    return await domain.job(str((await domain.item(case, "a")).job))


async def test_a_report_under_an_old_fence_is_refused(domain: Domain, pilot: Any) -> None:
    # JS-1 JS-7
    case = await start(domain, retries=1)
    await pilot.sync(want=1)
    [first] = pilot.held
    await pilot.sync(a=JOB_FAILED)
    await pilot.sync(want=1, wait_ms=1000)
    [second] = pilot.held
    assert (first.fence, second.fence) == (1, 2)
    pilot.held = [first]
    answer = await pilot.sync(a=Outcome(outputs="old"))
    assert [ref.fence for ref in answer.refused] == [1]
    assert "lease 1 is over (latest is 2)" in (await domain.notices())[0].message
    job = await job_of(domain, case)
    assert job.outcome is None, "the refused report must not be merged"


async def test_a_report_that_is_told_again_is_accepted_again_and_counts_once(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    held = list(pilot.held)
    await pilot.sync(a=Outcome(outputs=1))
    pilot.held = held
    answer = await pilot.sync(a=Outcome(outputs=1))
    assert [ref.job for ref in answer.accepted] == [held[0].job]
    assert (await domain.case(case)).counts[0].done == 1


async def test_a_report_repeated_before_its_verdict_was_read_is_judged_from_memory(
    domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(domain)
    await pilot.sync(want=1)
    held, read = list(pilot.held), MemoryStore.get
    looked_for: list[str] = []

    async def get(self: MemoryStore, kind: str, id: str) -> StoredDocument | None:
        looked_for.append(kind)
        return await read(self, kind, id)

    monkeypatch.setattr(MemoryStore, "get", get)
    heard = pilot.heard
    await pilot.sync(a=Outcome(outputs=1))
    pilot.held, pilot.heard = held, heard  # the next request is sent before the verdict is read
    answer = await pilot.sync(a=Outcome(outputs=1))
    assert [ref.job for ref in answer.accepted] == [held[0].job]
    assert "job" not in looked_for
    pilot.held = held
    answer = await pilot.sync(a=Outcome(outputs=1))  # it had the verdict, and has forgotten it
    assert [ref.job for ref in answer.accepted] == [held[0].job]
    assert "job" in looked_for


async def test_a_report_repeated_while_it_is_judged_gets_no_verdict_before_that(
    domain: Domain, server: Server, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(domain, retries=1)
    await pilot.sync(want=1)
    held, heard = list(pilot.held), pilot.heard
    judge, judged = server.runtime.meta.hub.provider(FailedAttempts), asyncio.Event()

    async def attempt_failed(job: Job, outcome: Outcome) -> bool:
        await judged.wait()
        return False

    monkeypatch.setattr(judge, "attempt_failed", attempt_failed)
    first = asyncio.create_task(pilot.sync(a=JOB_FAILED))
    await asyncio.sleep(0)
    pilot.held, pilot.heard = held, heard
    assert not (await pilot.sync(a=JOB_FAILED)).accepted
    judged.set()
    assert [ref.job for ref in (await first).accepted] == [held[0].job]


async def test_a_fault_of_the_infrastructure_does_not_spend_the_jobs_retries(domain: Domain, pilot: Any) -> None:
    case = await start(domain, retries=0)
    await pilot.sync(want=1)
    await pilot.sync(a=NODE_LOST)
    await pilot.sync(want=1, wait_ms=2000)
    await pilot.sync(a=Outcome())
    job = await job_of(domain, case)
    assert (job.state, job.failures, job.losses) == (JobState.COMPLETED, 0, 1)
    assert [attempt.end for attempt in job.history] == ["failed", "completed"]  # JS-2: each transition recorded


async def test_a_job_whose_answer_was_lost_goes_back_at_no_charge(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    pilot.held, pilot.heard = [], 0
    await pilot.sync()
    assert (await job_of(domain, case)).state is JobState.RUNNING, "the answer may still be on its way"
    await pilot.sync()
    job = await job_of(domain, case)
    assert (job.state, job.losses, job.failures, job.fence) == (JobState.AVAILABLE, 0, 0, 1)


@pytest.mark.parametrize(
    ("leaves", "told"),
    [("time", "because the pilot's time was over"), ("told", "told to leave"), ("", "because the pilot left")],
)
async def test_a_job_whose_pilot_leaves_says_why_it_was_ended(
    domain: Domain, pilot: Any, leaves: str, told: str
) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    await pilot.sync()
    pilot.held = []
    await pilot.sync(leaving=True, leaves=leaves)
    [lost] = (await job_of(domain, case)).history
    assert lost.end == "lost" and told in lost.fault.message
    assert any(told in notice.message for notice in await domain.notices())


async def test_a_job_that_outlived_its_pilot_is_not_begun_again_in_vain(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1, ttl_ms=600)
    await pilot.sync(ttl_ms=500)
    await asyncio.sleep(0.1)
    pilot.held = []
    await pilot.sync(leaving=True, leaves="time")
    await pilot.sync(want=1, ttl_ms=90)
    assert not pilot.held, "this one would leave even sooner"
    told = await domain.why((await job_of(domain, case)).id)
    assert "of wall time" in told.sentence and "when its pilot's time was over" in told.facts[0]
    await pilot.sync(want=1, ttl_ms=600_000)
    assert len(pilot.held) == 1


async def test_a_job_that_its_pilot_had_and_no_longer_names_is_lost(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    await pilot.sync()
    pilot.held = []  # the pilot's machine was restarted
    await pilot.sync()
    job = await job_of(domain, case)
    assert (job.state, job.losses) == (JobState.AVAILABLE, 1)


async def test_a_job_that_goes_back_while_its_files_come_is_no_loss(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    pilot.state = "staging"
    await pilot.sync()
    pilot.held = []
    await pilot.sync()
    job = await job_of(domain, case)
    assert (job.state, job.losses, job.failures) == (JobState.AVAILABLE, 0, 0)


async def test_a_damaged_replica_is_told_of_once_however_many_jobs_met_it(domain: Domain, pilot: Any) -> None:
    for _ in range(2):
        await start(domain)
        await pilot.sync(want=1)
        damaged = ("/g.dat on near: it arrived damaged",)
        await pilot.sync(a=Outcome(measures=Measurements(damaged=damaged)))
    [told] = [each.message for each in await domain.notices() if "/g.dat on near" in each.message]
    assert "remove-replica" in told


async def test_an_input_that_all_jobs_of_a_loop_change_is_told_of_once(domain: Domain, pilot: Any) -> None:
    body = ForEach(name="all", items=[1, 2, 3], body=JobActivity(name="a", command="true"))
    await domain.deploy(Flow(name=FlowName("many"), body=body))
    await domain.start("many", {}, who="me")
    await pilot.run_all(lambda _: Outcome(measures=Measurements(changed_inputs=("in",))))
    assert len([each for each in await domain.notices() if "changed its input in" in each.message]) == 1


async def test_an_overtaken_request_is_answered_with_nothing(domain: Domain, pilot: Any) -> None:
    await start(domain)
    pilot.serial = 5
    await pilot.sync()
    pilot.serial = 2
    answer = await pilot.sync(want=1)
    assert (answer.jobs, answer.lease_ms) == ([], 0)


async def test_a_newer_request_releases_the_held_one(domain: Domain, pilot: Any) -> None:
    held = asyncio.create_task(pilot.sync(want=1, wait_ms=10_000))
    await asyncio.sleep(0.02)
    await pilot.sync()
    answer = await asyncio.wait_for(held, 9)
    assert answer.jobs == []


async def test_a_held_request_is_answered_when_a_job_comes(domain: Domain, pilot: Any) -> None:
    # PJ-1: the pilot pulls, and waits with its hand out
    held = asyncio.create_task(pilot.sync(want=1, wait_ms=10_000))
    await asyncio.sleep(0.02)
    await start(domain)
    answer = await asyncio.wait_for(held, 9)
    assert [job.spec.item for job in answer.jobs] == ["a"]


async def test_a_silent_pilot_loses_its_jobs_after_one_lease(hasty_house: Any, another_pilot: Any) -> None:
    # JS-7
    domain = Domain(hasty_house)
    lost, other = another_pilot("lost"), another_pilot("other")
    lost.domain = other.domain = domain
    case = await start(domain)
    await lost.sync(want=1)
    while not other.held:
        await other.sync(want=1, wait_ms=100)
    answer = await lost.sync()
    assert [ref.fence for ref in answer.lost] == [1], "the old holder must stop it"
    await other.sync(a=Outcome())
    job = await job_of(domain, case)
    assert (job.state, job.fence, job.losses, job.failures) == (JobState.COMPLETED, 2, 1, 0)


async def test_attempts_are_not_left_without_a_lease_by_an_error_while_one_of_them_ends(
    hasty_house: Server, another_pilot: Any
) -> None:  # JS-7
    def refuse(_: object) -> None:
        raise RequestError("a subscriber of AttemptEnding")

    domain, lost = Domain(hasty_house), another_pilot("lost")
    lost.domain = domain
    cases = [await start(domain) for _ in range(3)]
    await lost.sync(want=3)
    await lost.sync()
    assert len(lost.held) == 3
    hasty_house.runtime.hub.subscribe(AttemptEnding, refuse)
    async with asyncio.timeout(30):
        for case in cases:
            while not await was_lost_once(hasty_house, domain, case):
                await asyncio.sleep(0.05)


async def was_lost_once(house: Server, domain: Domain, case: str) -> bool:
    """Whether the job of a case was lost once; the services may be away at any moment, also while they are asked."""
    try:
        return house.present is not None and (await job_of(domain, case)).losses == 1
    except StoreUnavailable:
        return False


async def test_leases_end_also_after_an_error_of_who_hears_that_a_pilot_is_lost(
    hasty_house: Server, another_pilot: Any
) -> None:  # JS-7
    def fail(_: object) -> None:
        raise RuntimeError("a subscriber of PilotLost")

    hasty_house.runtime.hub.subscribe(PilotLost, fail)
    domain = Domain(hasty_house)
    for name in ("first", "second"):
        lost = another_pilot(name)
        lost.domain = domain
        case = await start(domain)
        await lost.sync(want=1)
        async with asyncio.timeout(30):
            while name in [each.id for each in await domain.pilots()]:
                await asyncio.sleep(0.05)
        assert (await job_of(domain, case)).losses == 1
        await domain.cancel(case, who="me")


async def test_a_pilot_that_leaves_gives_back_what_it_has(domain: Domain, pilot: Any) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    await pilot.sync(leaving=True)
    job = await job_of(domain, case)
    assert (job.state, job.losses) == (JobState.AVAILABLE, 1)
    assert await domain.pilots() == []


async def test_jobs_survive_a_restart_with_their_holder(server: Any, domain: Domain, pilot: Any, restart: Any) -> None:
    # JS-7: the lease holds, so the running attempt is credited
    case = await start(domain)
    await pilot.sync(want=1)
    await restart(server)
    answer = await pilot.sync()
    assert answer.lost == []
    await pilot.sync(a=Outcome(outputs="kept"))
    assert (await domain.item(case, "a")).outputs == "kept"
    assert (await domain.case(case)).status == "completed"


async def test_a_suspension_that_was_lost_in_a_restart_is_ordered_again(
    server: Any, domain: Domain, pilot: Any, restart: Any
) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    await domain.suspend(case, who="me")
    await restart(server)
    answer = await pilot.sync()
    assert [order.control for order in answer.orders] == ["suspend"]
    pilot.state = "suspended"
    assert (await pilot.sync()).orders == []
    await domain.resume(case, who="me")
    assert [order.control for order in (await pilot.sync()).orders] == ["resume"]


async def test_what_does_not_fit_is_not_handed_out_and_why_names_the_best_pilot(
    domain: Domain, another_pilot: Any
) -> None:
    # JS-6
    small = another_pilot("p-7", Capacity(slots=1, cpus=2.0, memory_bytes=16 * 10**9, disk_bytes=10**12))
    case = await start(domain, resources=ResourceTemplates(memory_bytes=64 * 10**9))
    answer = await small.sync(want=1)
    assert answer.jobs == []
    why = await domain.why(f"{case}:a")
    assert "64 GB of memory" in why.sentence
    assert "p-7" in why.sentence
    assert "16 GB" in why.sentence


async def test_short_jobs_are_shared_between_pilots_that_want_them(domain: Domain, another_pilot: Any) -> None:
    body = ForEach(name="all", items=list(range(100)), body=JobActivity(name="a", command="true"))
    await domain.deploy(Flow(name=FlowName("many"), body=body))
    one, two = another_pilot("one"), another_pilot("two")
    await one.sync(want=64)
    await two.sync(want=64)
    await domain.start("many", {}, who="me")
    await one.sync(want=64)
    await two.sync(want=64)
    assert len(one.held) == 50
    assert len(two.held) >= 25


async def test_a_pilot_of_another_version_is_told_what_to_do(domain: Domain) -> None:
    capacity = Capacity(slots=1, cpus=1.0, memory_bytes=1, disk_bytes=1)
    request = SyncRequest(pilot=PilotId("old"), serial=1, host="h", capacity=capacity, want=1, version=99)
    with pytest.raises(RequestError, match="same version of mendflow"):
        await domain.sync(request)


async def test_one_token_cannot_speak_for_another_tokens_pilot(domain: Domain, pilot: Any) -> None:
    # JS-7
    await start(domain)
    capacity = Capacity(slots=1, cpus=1.0, memory_bytes=1, disk_bytes=1)

    def request(serial: int) -> SyncRequest:
        return SyncRequest(pilot=PilotId("mine"), serial=serial, host="h", capacity=capacity, want=0)

    await domain.sync(request(1), who="ann")
    with pytest.raises(Forbidden, match="is taken by another token"):
        await domain.sync(request(2), who="eve")


async def test_a_restarted_server_still_knows_whose_a_pilot_with_jobs_is(
    server: Server, domain: Domain, restart: Any
) -> None:
    # JS-7
    case = await start(domain)
    capacity = Capacity(slots=1, cpus=1.0, memory_bytes=1, disk_bytes=1)
    asks = SyncRequest(pilot=PilotId("mine"), serial=1, host="h", capacity=capacity, want=1)
    (got,) = (await domain.sync(asks, who="ann")).jobs
    await restart(server)
    forged = msgspec.structs.replace(asks, serial=2, want=0, reports=[AttemptReport(got.job, got.fence, Outcome())])
    with pytest.raises(Forbidden, match="is taken by another token"):
        await domain.sync(forged, who="eve")
    assert (await job_of(domain, case)).pilot == "mine"
    assert len((await domain.sync(forged, who="ann")).accepted) == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        {"serial": 2**63},
        {"pilot": ""},
        {"pilot": "x" * 300},
        {"host": "a\nb"},
        {"ttl_ms": -1},
        {"want": -1},
        {"capacity": Capacity(slots=-5, cpus=1.0, memory_bytes=1, disk_bytes=1)},
        {"capacity": Capacity(slots=1, cpus=float("nan"), memory_bytes=1, disk_bytes=1)},
    ],
)
async def test_what_no_pilot_would_say_is_refused(domain: Domain, nonsense: dict[str, Any]) -> None:
    capacity = Capacity(slots=1, cpus=1.0, memory_bytes=1, disk_bytes=1)
    request = SyncRequest(pilot=PilotId("p"), serial=1, host="h", capacity=capacity, want=0)
    with pytest.raises(InvalidRequest, match="not a pilot's request"):
        await domain.sync(msgspec.structs.replace(request, **nonsense))
    assert await domain.pilots() == []


async def test_an_attempt_that_is_being_killed_is_neither_given_up_nor_lost_again(
    domain: Domain, pilot: Any
) -> None:  # JS-7
    case = await start(domain)
    await pilot.sync(want=1)
    pilot.state = "ending"  # whoever it speaks to has told it so, though its home has not
    await pilot.sync()
    assert (await job_of(domain, case)).state is JobState.RUNNING, "it may still live"
    [held] = pilot.held
    pilot.held = [msgspec.structs.replace(held, fence=held.fence + 1)]
    assert (await pilot.sync()).lost == [], "it has been told already"
    assert (await job_of(domain, case)).state is JobState.AVAILABLE, "now it is dead: the pilot names it no more"
