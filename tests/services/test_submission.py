"""The four ways to submit a job, over the meta-scheduler's contract alone."""

from collections.abc import Sequence as Listed
from typing import Any

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.services.api.domain import Domain
from mendflow.services.base.contracts import NewJob, SubmissionFailed

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="it ended with exit code 3"))


def flow(way: Submission) -> Flow:
    first = JobActivity(name="first", command="true", submission=way)
    return Flow(name=FlowName("f"), body=Sequence(name="s", body=(first, JobActivity(name="then", command="true"))))


async def status(domain: Domain, case: str) -> str:
    return (await domain.case(case)).status


@pytest.mark.parametrize("way", [Submission.WAIT, Submission.POLL, Submission.NOTIFY])
async def test_the_flow_goes_on_when_the_job_is_over(domain: Domain, pilot: Any, way: Submission) -> None:
    # FM-5 FM-3: the same contract serves all of them
    await domain.deploy(flow(way))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=4, wait_ms=1000)
    assert [each.spec.item for each in pilot.held] == ["first"]
    await pilot.sync(first=Outcome(outputs=1))
    while not pilot.held:
        await pilot.sync(want=4, wait_ms=1000)
    assert [each.spec.item for each in pilot.held] == ["then"]
    await pilot.sync(then=Outcome())
    assert await status(domain, case) == "completed"


@pytest.mark.parametrize("way", [Submission.WAIT, Submission.POLL, Submission.NOTIFY])
async def test_a_failure_fails_the_flow(domain: Domain, pilot: Any, way: Submission) -> None:
    # FM-5
    await domain.deploy(flow(way))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=4, wait_ms=1000)
    await pilot.sync(first=FAILED)
    while await status(domain, case) == "running":
        await pilot.sync(wait_ms=20)
    view = await domain.case(case)
    assert view.fault is not None
    assert view.fault.message == "it ended with exit code 3"


async def test_the_flow_does_not_wait_for_a_forgotten_job(domain: Domain, pilot: Any) -> None:
    # FM-5
    await domain.deploy(flow(Submission.FORGET))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=4, wait_ms=1000)
    assert {each.spec.item for each in pilot.held} == {"first", "then"}
    await pilot.sync(then=Outcome())
    assert await status(domain, case) == "completed"
    await pilot.sync(first=FAILED)
    assert await status(domain, case) == "completed"
    notices = await domain.notices()
    assert any("which nobody waits for, failed: it ended with exit code 3" in each.message for each in notices)


async def test_a_forgotten_job_is_still_known_after_its_case_is_over_and_the_server_restarted(
    server: Any, domain: Domain, pilot: Any, restart: Any
) -> None:
    # FM-5
    await domain.deploy(flow(Submission.FORGET))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=4, wait_ms=1000)
    await pilot.sync(then=Outcome())
    await restart(server)
    await pilot.sync(first=FAILED)
    assert any("nobody waits for" in each.message for each in await domain.notices())
    assert await status(domain, case) == "completed"


def loop(jobs: int, way: Submission = Submission.NOTIFY) -> Flow:
    body = JobActivity(name="a", command="true", submission=way)
    return Flow(name=FlowName("f"), body=ForEach(name="each", first=0, last=Expr(f"{jobs} - 1"), body=body))


@pytest.mark.parametrize("way", [Submission.WAIT, Submission.POLL, Submission.NOTIFY])
async def test_jobs_that_start_together_all_run_and_each_ends_by_itself(
    domain: Domain, pilot: Any, way: Submission
) -> None:  # FM-5
    await domain.deploy(loop(5, way))
    case = (await domain.start("f", {}, who="me")).id
    while len(pilot.held) < 5:
        await pilot.sync(want=5, wait_ms=1000)
    items = {each.spec.item for each in pilot.held}
    assert items == {f"a[{number}]" for number in range(5)}
    for item in sorted(items):
        assert await status(domain, case) == "running"
        await pilot.sync(**{item: Outcome()})
    while await status(domain, case) == "running":
        await pilot.sync(wait_ms=20)
    assert await status(domain, case) == "completed"


async def test_jobs_that_start_together_are_submitted_with_one_call(
    server: Any, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-5
    calls: list[int] = []
    queue = server.runtime.meta
    real = queue.submit

    async def submit(jobs: Listed[NewJob], *, reissued: bool = False) -> None:
        calls.append(len(jobs))
        await real(jobs, reissued=reissued)

    monkeypatch.setattr(queue, "submit", submit)
    await domain.deploy(loop(7))
    await domain.start("f", {}, who="me")
    assert calls == [7]


async def test_each_job_of_a_submission_that_is_refused_fails_with_the_reason(
    server: Any, domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-5
    async def submit(jobs: Listed[NewJob], *, reissued: bool = False) -> None:
        raise SubmissionFailed(Fault(name="full", category=Category.REFUSED, message="no room for them"))

    monkeypatch.setattr(server.runtime.meta, "submit", submit)
    await domain.deploy(loop(3))
    case = (await domain.start("f", {}, who="me")).id
    while await status(domain, case) == "running":
        await pilot.sync(wait_ms=20)
    view = await domain.case(case)
    assert view.fault is not None and "no room for them" in view.fault.message
