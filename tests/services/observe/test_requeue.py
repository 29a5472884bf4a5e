"""A person takes an attempt from its pilot: what it reports counts for nothing, and nobody else gets the job before the
attempt is certain to have ended."""

import asyncio

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Job as KnownJob
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.core.model.sync import AttemptControl
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.cluster.kit import LEASE_MS, Cluster, pilot_of, run
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import flow


async def begun(domain: Domain, pilot: HandPilot) -> JobId:
    """A job that runs on the pilot, and has said so."""
    await domain.deploy(flow(JobActivity(name="a", command="true")))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=1)
    await pilot.sync()
    return JobId(f"{case}/1")


def _why(job: KnownJob) -> str:
    requeue = job.history[-1].requeue
    return requeue.sentence() if requeue is not None else ""


async def test_a_requeued_attempt_is_told_to_stop_and_its_late_result_is_refused(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # JS-5, JS-7
    id = await begun(domain, pilot)
    server.runtime.meta.requeue(id, by="ann", reason="it hangs")
    answer = await pilot.sync()
    assert [(order.job, order.fence, order.control) for order in answer.orders] == [(id, 1, AttemptControl.CANCEL)]
    answer = await pilot.exchange({"a": Outcome(outputs=1)})
    assert [(ref.job, ref.fence) for ref in answer.refused] == [(id, 1)]
    job = await domain.job(id)
    assert (job.state, job.requeued, job.failures, job.losses) == (JobState.AVAILABLE, None, 0, 0)
    assert (job.history[-1].end, _why(job)) == ("requeued", "requeued by ann: it hangs")
    await pilot.sync(want=1)
    answer = await pilot.exchange({"a": Outcome(outputs=2)})
    assert [(ref.job, ref.fence) for ref in answer.accepted] == [(id, 2)]
    assert [attempt.end for attempt in (await domain.job(id)).history] == ["requeued", "completed"]


def test_nobody_gets_a_requeued_job_before_its_pilot_has_stopped_it_or_its_lease_has_ended() -> None:  # JS-5, JS-9
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        first, second = pilot_of(cluster, "one", pilot="p-1"), pilot_of(cluster, "one", pilot="p-2")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        await first.sync(want=1)
        await first.sync()
        silent_since = cluster.loop.true_s
        id = JobId(f"{case}/1")
        one.process.deliver(lambda: one.runtime.meta.requeue(id, by="ann", reason=""))

        async def given() -> bool:
            await second.sync(want=1)
            return bool(second.held)

        await cluster.until(given)
        assert cluster.loop.true_s - silent_since >= LEASE_MS / 1000

    run(story)


def test_a_pilot_that_goes_on_with_a_requeued_attempt_loses_it_and_still_nothing_overlaps() -> None:  # JS-5, JS-9
    async def story(cluster: Cluster) -> None:
        [one] = await cluster.start("one")
        stubborn, second = pilot_of(cluster, "one", pilot="p-1"), pilot_of(cluster, "one", pilot="p-2")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        await stubborn.sync(want=1)
        await stubborn.sync()
        one.process.deliver(lambda: one.runtime.meta.requeue(JobId(f"{case}/1"), by="ann", reason=""))
        named_until = cluster.loop.true_s
        while not second.held:
            if stubborn.held:
                await stubborn.sync()
                named_until = cluster.loop.true_s
            await second.sync(want=1)
            await asyncio.sleep(0.1)
        assert not stubborn.held, "it was told that it had lost the attempt"
        assert cluster.loop.true_s - named_until >= LEASE_MS / 1000 - 0.5
        [job] = await cluster.jobs(case)
        assert [attempt.end for attempt in job.history] == ["requeued", ""]

    run(story)


def test_a_requeue_holds_at_the_server_that_takes_over() -> None:  # JS-4, JS-5
    async def story(cluster: Cluster) -> None:
        one, two = await cluster.start("one", "two")
        pilot = pilot_of(cluster, "one", "two")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        await pilot.sync(want=1)
        await pilot.sync()
        await one.do(_requeue(one.domain, JobId(f"{case}/1")))
        one.kill()
        await cluster.until_home(case, "two")
        answer = await pilot.exchange({"a": Outcome(outputs=1)})
        assert [ref.fence for ref in answer.refused] == [1]
        [job] = await cluster.jobs(case)
        assert (job.state, _why(job)) == (JobState.AVAILABLE, "requeued by ann: stuck")
        assert two.runtime.meta.jobs[job.id].requeued is None

    run(story)


async def _requeue(domain: Domain, id: JobId) -> None:
    runtime = domain._server.runtime
    runtime.meta.requeue(id, by="ann", reason="stuck")
    await runtime.ledger.settled()
