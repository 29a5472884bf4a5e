"""Fault patterns, each done to a job through the proxy."""

import asyncio

import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec, JobState, Outcome, Resources, Submission, sources_of
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.conversation import ConversationMessage, ConversationPhase
from mendflow.services.base.contracts import Change, Failure
from tests.proxy.far_domain import FarDomain
from tests.proxy.world import AWAY, EXIT, JOB, OUT_OF_MEMORY, World, bad, hold, new, nothing, turns

KEPT = FileRef(sha256="ab" * 32, bytes=1, name="t")
STAGED = JobSpec(
    item=ItemId("align"),
    command="true",
    inputs={"t.csv": KEPT},
    replicas={"t.csv": ("http://one/t", "http://two/t")},
)
NOT_BROUGHT = Fault(name="missingInput", category=Category.DATA, message="no t", stage="stage-in", file="t.csv")
SECOND = JobId("c-1/1~2")


async def failed_on(world: World, fault: Fault, spec: JobSpec | None = None, *, host: str = "n1") -> Failure:
    """A job that has failed and is held."""
    world.mend = hold
    await world.submit(new(spec))
    await world.sync(host=host)
    await world.sync(host=host, want=0, align=bad(fault))
    return world.failures[-1]


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("FM-8a same again", Change(restage=True)),
        ("FM-8b other parameters", Change(restage=True, transfer={"tries": 10, "timeout_ms": 600_000})),
        ("FM-8c another replica", Change(restage=True, sources={"t.csv": "http://two/t"})),
        ("FM-8d another target", Change(restage=True, avoid_hosts=("n1",), resources={"site": "south"})),
    ],
)
async def test_files_are_brought_again(row: str, change: Change) -> None:
    async with World() as world:
        failure = await failed_on(world, NOT_BROUGHT, STAGED)
        assert (failure.stage, failure.fault.file, failure.host) == ("staging", "t.csv", "n1")
        await world.proxy.resubmit(JOB, change, key="x/1")
        talk = world.proxy.conversation(JOB)
        assert talk is not None and talk.messages[-3:] == (
            ConversationMessage.FAILED,
            ConversationMessage.RESTAGE,
            ConversationMessage.SUBMIT,
        ), row
        await world.sync(host="n1")
        moved = row.startswith("FM-8d")
        assert len(world.running()) == (0 if moved else 1)
        if moved:
            await world.sync(pilot="p-2", host="n2", site="south")
        [assignment] = world.held["p-2" if moved else "p-1"]
        first = "http://two/t" if row.startswith("FM-8c") else "http://one/t"
        assert assignment.job == SECOND and sources_of(assignment.spec, "t.csv")[0] == first
        assert assignment.spec.transfer == change.transfer


async def test_a_lost_attempt_counts_as_a_loss_and_the_next_submission_waits_on_from_there() -> None:
    full = Fault(name="diskFull", category=Category.RESOURCE, message="the disk is full", stage="stage-in")
    async with World() as world:
        failure = await failed_on(world, full)
        assert (failure.final, failure.attempts, failure.losses) == (False, 1, 1)
        await world.proxy.resubmit(JOB, Change(avoid_hosts=("n1",)), key="x/1")
        world.mend = nothing
        begun_at = world.clock.at
        await world.sync(pilot="p-2", host="n2")
        [assignment] = world.held["p-2"]
        await world.sync(pilot="p-2", host="n2", want=0, align=bad(full))
        again = world.meta.jobs[SECOND]
        assert (again.spec.earlier_losses, again.losses) == (1, 1)
        assert (assignment.number, again.spec.earlier_attempts) == (2, 1)
        assert again.available_at >= begun_at + 1_000, "the second loss waits, on whichever host it was"


async def test_a_job_is_submitted_again_with_other_requirements_and_later() -> None:
    # FM-8: re-submit with changed requirements
    async with World() as world:
        await failed_on(world, OUT_OF_MEMORY, JobSpec(item=ItemId("align"), resources=Resources(memory_bytes=1 << 30)))
        await world.proxy.resubmit(
            JOB, Change(resources={"memory_bytes": 2 << 30}, env={"N": "2"}, wait_ms=60_000), key="x/1"
        )
        await world.sync()
        assert world.running() == []
        world.clock.at += 60_001
        await world.sync()
        [assignment] = world.held["p-1"]
        assert (assignment.spec.resources.memory_bytes, assignment.spec.env) == (2 << 30, {"N": "2"})


async def test_a_job_that_no_domain_takes_goes_to_another() -> None:
    # FM-8 FM-12: re-submit to another domain, when the scheduler refuses
    far, near = FarDomain(), FarDomain()
    refused = Fault(name="full", category=Category.REFUSED, message="no more jobs today")
    far.fault = refused

    async def elsewhere(world: World, failure: Failure) -> bool:
        if failure.domain == "":
            await world.proxy.resubmit(failure.job, Change(domain="far"), key="k1")
        else:
            assert (failure.domain, failure.stage, failure.fault) == ("far", "submission", refused)
            await world.proxy.resubmit(failure.job, Change(domain="near"), key="k2")
        return True

    async with World(elsewhere, domains={"far": far, "near": near}) as world:
        await world.submit(new())
        await world.sync()
        await world.sync(align=bad(EXIT))
        assert far.jobs == {} and list(near.jobs) == ["c-1/1~3"]
        await near.end(JobId("c-1/1~3"), Outcome(outputs=3))
        assert [(serial, outcome.outputs) for serial, outcome in world.told] == [(1, 3)]
        assert [failure.generation for failure in world.failures] == [1, 2]


@pytest.mark.parametrize("way", list(Submission))
@pytest.mark.parametrize("category", [Category.NETWORK, Category.SCHEDULER_DOWN, Category.REFUSED])
async def test_a_submission_that_fails_is_a_failure_like_any_other(way: Submission, category: Category) -> None:
    # FM-5 FM-10 FM-12
    own = FarDomain()
    own.fault = Fault(name="no", category=category, message="not now")
    async with World(hold, domains={"": own}) as world:
        await world.submit(new(way=way))
        assert world.told == [] and world.failures[0].stage == "submission"
        own.fault = None
        await world.proxy.resubmit(JOB, Change(), key="k")
        assert list(own.jobs) == [SECOND]
        await own.end(SECOND, Outcome(outputs=1))
        await turns()
        assert [(serial, outcome.outputs) for serial, outcome in world.told] == [(1, 1)]


@pytest.mark.parametrize("way", list(Submission))
async def test_a_submission_that_fails_and_is_not_mended_is_heard_by_the_flow(way: Submission) -> None:
    # FM-5 FM-12
    own = FarDomain()
    own.fault = AWAY
    async with World(domains={"": own}) as world:
        await world.submit(new(way=way))
        assert [outcome.fault for _, outcome in world.told] == [AWAY]
        assert world.proxy.phase_of(JOB) == ""


async def test_several_jobs_that_are_not_taken_are_mended_or_told_one_by_one() -> None:
    own = FarDomain()
    own.fault = AWAY

    async def only_the_first(world: World, failure: Failure) -> bool:
        return failure.job == JOB

    async with World(only_the_first, domains={"": own}) as world:
        heard: list[JobId] = []

        async def tell(id: JobId, outcome: Outcome) -> None:
            heard.append(id)

        second = new(id=JobId("c-1/2"))
        await world.proxy.submit([new(), second])
        await world.proxy.subscribe(JOB, tell)
        await world.proxy.subscribe(second.id, tell)
        await turns()
        assert heard == ["c-1/2"]
        assert world.proxy.phase_of(JOB) == "held"


async def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    # FM-8: re-poll and re-register, after the job was taken and only the answer was lost
    own = FarDomain()
    for way, ask in ((Submission.POLL, "repoll"), (Submission.NOTIFY, "reregister"), (Submission.WAIT, "repoll")):
        own.deaf = AWAY
        async with World(hold, domains={"": own}) as world:
            await world.submit(new(way=way))
            assert world.proxy.phase_of(JOB) == "held" and list(own.jobs) == [JOB]
            await getattr(world.proxy, ask)(JOB, key="k")
            talk = world.proxy.conversation(JOB)
            assert talk is not None and talk.phase in (ConversationPhase.POLLING, ConversationPhase.NOTIFICATION)
            assert world.proxy.phase_of(JOB) == "running"
            await own.end(JOB, Outcome(outputs=2))
            await turns()
            assert [outcome.outputs for _, outcome in world.told] == [2]
            own.jobs, own.outcomes = {}, {}


async def test_a_word_that_was_lost_is_found_by_registering_again() -> None:
    # FM-8: re-register. The job has ended meanwhile, and nobody heard it.
    own = FarDomain()
    async with World(hold, domains={"": own}) as world:
        await world.submit(new())
        await own.end(JOB, Outcome(outputs=4), silently=True)
        await turns()
        assert world.told == []
        await world.proxy.reregister(JOB, key="k")
        assert [outcome.outputs for _, outcome in world.told] == [4]
        await world.proxy.reregister(JOB, key="k")
        assert len(world.told) == 1


async def test_a_poll_that_fails_is_a_failure_at_the_stage_of_polling() -> None:
    # FM-8 FM-12: re-poll
    own = FarDomain()
    async with World(hold, domains={"": own}) as world:
        await world.submit(new(way=Submission.POLL))
        own.fault = AWAY
        await turns()
        assert [(each.stage, each.fault, each.pattern) for each in world.failures] == [
            ("polling", AWAY, "submit-and-poll")
        ]
        await world.proxy.repoll(JOB, key="k1")
        assert [each.stage for each in world.failures] == ["polling", "polling"]
        assert len({each.id for each in world.failures}) == 2, "it is another failure"
        own.fault = None
        await world.proxy.repoll(JOB, key="k2")
        await own.end(JOB, Outcome(outputs=6))
        await turns()
        assert [outcome.outputs for _, outcome in world.told] == [6]


async def test_a_poll_that_fails_and_is_not_mended_is_heard_by_the_flow() -> None:
    # FM-5
    own = FarDomain()
    async with World(domains={"": own}) as world:
        await world.submit(new(way=Submission.POLL))
        own.fault = AWAY
        await turns()
        assert [outcome.fault for _, outcome in world.told] == [AWAY]


async def test_a_registration_that_fails_is_a_failure_at_the_stage_of_notification() -> None:
    # FM-8 FM-12: re-register
    own = FarDomain()
    async with World(hold, domains={"": own}) as world:
        await world.proxy.submit([new()])
        own.fault = AWAY
        await world.proxy.subscribe(JOB, lambda id, outcome: world._finished(new().case, 1, outcome))
        assert [each.stage for each in world.failures] == ["notification"]
        own.fault = None
        await world.proxy.reregister(JOB, key="k")
        await own.end(JOB, Outcome())
        assert len(world.told) == 1


async def test_a_job_that_never_arrived_is_told_as_that() -> None:
    own = FarDomain()
    own.fault = AWAY
    async with World(hold, domains={"": own}) as world:
        await world.submit(new())
        own.fault = None
        await world.proxy.repoll(JOB, key="k")
        assert [each.fault.name for each in world.failures] == ["away", "neverArrived"]


async def test_asking_again_does_not_help_a_job_that_has_failed() -> None:
    async with World() as world:
        await failed_on(world, EXIT)
        with pytest.raises(Conflict, match="has failed, and would only say so again"):
            await world.proxy.repoll(JOB, key="k")
        assert world.proxy.phase_of(JOB) == "held" and len(world.failures) == 1


async def test_a_repair_that_comes_again_under_its_key_is_done_once() -> None:
    async with World() as world:
        await failed_on(world, OUT_OF_MEMORY)
        for _ in range(3):
            await world.proxy.resubmit(JOB, Change(), key="x/1")
        await world.sync()
        assert world.running() == [SECOND]
        await world.proxy.resubmit(JOB, Change(), key="x/1")
        assert len(world.meta.jobs) == 1


async def test_a_job_that_still_runs_is_ended_when_it_is_submitted_again() -> None:
    # a repair of a job that takes too long
    async with World() as world:
        await world.submit(new())
        await world.sync()
        await world.proxy.resubmit(JOB, Change(resources={"wall_ms": 1000}), key="k")
        await world.sync()
        assert world.running() == [SECOND]
        assert (await world.meta.status(JOB)).state is JobState.FAILED
        await world.sync(align=Outcome(outputs=1))
        assert [outcome.outputs for _, outcome in world.told] == [1] and world.failures == []


async def test_nothing_is_done_for_a_job_that_nobody_waits_for() -> None:
    async with World() as world:
        await failed_on(world, EXIT)
        await world.proxy.cancel(JOB)
        await world.proxy.resubmit(JOB, Change(), key="k")
        await world.proxy.repoll(JOB, key="l")
        await world.proxy.pass_on(JOB)
        await world.sync()
        assert world.running() == [] and world.told == [] and world.proxy.phase_of(JOB) == ""


async def test_a_change_that_makes_no_sense_changes_nothing() -> None:
    async with World() as world:
        await failed_on(world, EXIT)
        with pytest.raises(NotFound, match="there is no domain 'nowhere'"):
            await world.proxy.resubmit(JOB, Change(domain="nowhere"), key="k")
        with pytest.raises(InvalidRequest, match="cpus is -1"):
            await world.proxy.resubmit(JOB, Change(resources={"cpus": -1}), key="k")
        assert world.proxy.phase_of(JOB) == "held"


async def test_what_the_flow_orders_goes_to_the_newest_submission() -> None:
    # FM-10
    far = FarDomain()
    async with World(domains={"far": far}) as world:
        await failed_on(world, EXIT)
        await world.proxy.suspend(JOB)
        await world.proxy.resubmit(JOB, Change(domain="far"), key="k")
        assert far.suspended == {SECOND}, "it was suspended while its failure was mended"
        await world.proxy.resume(JOB)
        assert far.suspended == set()
        await world.proxy.suspend(JOB)
        assert far.suspended == {SECOND}
        await world.proxy.cancel(JOB)
        assert far.cancelled == [SECOND]


async def test_an_end_of_a_submission_that_was_overtaken_is_not_heard() -> None:
    # FM-10
    far = FarDomain()
    async with World(domains={"": far}) as world:
        await world.submit(new())
        await world.proxy.resubmit(JOB, Change(), key="k")
        await world.proxy._on_outcome(JOB, Outcome(outputs="old"))
        assert world.told == []
        await far.end(SECOND, Outcome(outputs="new"))
        assert [outcome.outputs for _, outcome in world.told] == ["new"]


async def test_a_failure_says_all_that_rules_may_ask() -> None:
    # FM-10 FM-12
    async with World() as world:
        first = await failed_on(world, OUT_OF_MEMORY)
        assert (first.job, first.real, first.generation, first.attempts, first.level) == (JOB, JOB, 1, 1, 0)
        assert (first.host, first.pilot, first.stage, first.final) == ("n1", "p-1", "execution", True)
        await world.proxy.resubmit(JOB, Change(level=2), key="k")
        await world.sync(pilot="p-2", host="n2", site="south")
        await world.sync(pilot="p-2", host="n2", site="south", align=bad(EXIT))
        second = world.failures[-1]
        assert (second.job, second.real, second.generation, second.attempts, second.level) == (JOB, SECOND, 2, 2, 2)
        assert (second.host, second.site, second.hosts) == ("n2", "south", ("n1", "n2"))
        assert second.outcome.log_tail == "the last words"
        assert first.id != second.id


async def test_a_failed_attempt_is_told_before_the_queue_tries_again() -> None:
    # every failed attempt is told; nobody mends it: the queue goes on as before
    async with World(nothing) as world:
        await world.submit(new(retries=2))
        for _ in range(2):
            await world.sync()
            await world.sync(align=bad(EXIT))
        assert [(each.final, each.attempts) for each in world.failures] == [(False, 1), (False, 2)]
        assert world.told == [] and world.proxy.conversation(JOB) is None
        await world.sync(align=bad(EXIT))
        assert [each.final for each in world.failures] == [False, False, True]
        assert [outcome.fault for _, outcome in world.told] == [EXIT]
        assert len({each.id for each in world.failures}) == 3


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_failed_attempt_that_is_mended_is_the_last_of_its_submission(when: str) -> None:
    async def mend(world: World, failure: Failure) -> bool:
        if when == "at once":
            await world.proxy.resubmit(failure.job, Change(), key=failure.id)
        return True

    async with World(mend) as world:
        await world.submit(new(retries=5))
        await world.sync()
        await world.sync(want=0, align=bad(EXIT))
        assert [each.final for each in world.failures] == [False], "and it is not asked again when the job ends"
        if when == "later":
            assert world.proxy.phase_of(JOB) == "held"
            await world.proxy.resubmit(JOB, Change(), key="k")
        await world.sync()
        assert world.running() == [SECOND]
        job = await world.meta.status(JOB)
        assert (job.state, job.attempts) == (JobState.FAILED, 1)
        await world.sync(align=Outcome(outputs=1))
        assert [outcome.outputs for _, outcome in world.told] == [1]


async def test_an_attempt_whose_pilot_was_lost_is_told_too() -> None:
    async with World(nothing) as world:
        await world.submit(new())
        await world.sync()
        world.clock.at += 31_000
        for attempt in world.meta.leases.expired_attempts(now=world.clock.now()):
            await world.exchange._expire(attempt)
        [failure] = world.failures
        assert (failure.fault.name, failure.final, failure.losses, failure.host) == ("lost", False, 1, "host-of-p-1")


async def test_a_job_that_the_flow_gives_up_while_it_is_submitted_again_is_ended_there() -> None:
    # FM-10
    far = FarDomain()
    async with World(domains={"far": far}) as world:
        await failed_on(world, EXIT)
        far.slow = asyncio.Event()
        again = asyncio.create_task(world.proxy.resubmit(JOB, Change(domain="far"), key="k"))
        await turns()
        await world.proxy.cancel(JOB)
        far.slow.set()
        await again
        assert far.cancelled == [SECOND, SECOND] and far.callbacks == {}


async def test_a_repair_that_comes_again_while_it_is_done_is_done_once() -> None:
    async with World() as world:
        await failed_on(world, EXIT)
        await asyncio.gather(*(world.proxy.resubmit(JOB, Change(), key="k") for _ in range(5)))
        await world.sync()
        assert world.running() == [SECOND] and world.broken == ""


async def test_a_call_that_waits_ends_when_the_job_is_cancelled() -> None:
    # FM-5
    async with World() as world:
        await world.submit(new(way=Submission.WAIT))
        assert len(world.submitter._background) == 1
        await world.proxy.cancel(JOB)
        await turns()
        assert len(world.submitter._background) == 0 and world.told == []


async def test_a_failure_that_is_heard_twice_at_once_is_told_once() -> None:
    # after a restart the word of an end is on its way while somebody asks
    own = FarDomain()
    async with World(hold, domains={"": own}) as world:
        await world.submit(new())
        own.outcomes[JOB] = bad(EXIT)
        own.slow = asyncio.Event()
        asks = [asyncio.create_task(world.proxy._on_outcome(JOB, bad(EXIT))) for _ in range(2)]
        await turns()
        assert (await world.proxy.status(JOB)).state is JobState.AVAILABLE
        own.slow.set()
        await asyncio.gather(*asks)
        assert len(world.failures) == 1
