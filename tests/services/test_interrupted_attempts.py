"""Attempts that are interrupted from outside: what has finished does not run again, and a stop is no repair."""

from typing import Any

import pytest

from mendflow.core.model.jobs import JobState, Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.test_exchange import job_of, start


async def test_a_finished_job_is_not_given_back_while_its_case_is_being_loaded(
    server: Server, domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes a case over has its jobs before everything else of it: until all is loaded, reports get no
    verdict."""
    # JS-7
    case = await start(domain)
    await pilot.sync(want=1)
    held = list(pilot.held)
    await pilot.sync()  # it names the attempt, and has read the answer that granted it
    meta = server.runtime.meta
    monkeypatch.setattr(meta, "is_loading", lambda job: job == held[0].job)
    for leaving in (False, True):
        pilot.held = list(held)
        answer = await pilot.sync(a=Outcome(outputs=1), leaving=leaving)
        assert not (answer.accepted or answer.refused)
        job = await job_of(domain, case)
        assert (job.state, job.fence, len(job.history)) == (JobState.RUNNING, 1, 1)
    monkeypatch.undo()
    pilot.held = list(held)
    answer = await pilot.sync(a=Outcome(outputs=1))
    assert [ref.job for ref in answer.accepted] == [held[0].job]
    assert [attempt.fence for attempt in (await job_of(domain, case)).history] == [1]


@pytest.mark.parametrize(("leaves", "mended"), [("told", 0), ("time", 1)])
async def test_a_job_whose_pilot_was_told_to_leave_does_not_count_as_mended(
    domain: Domain, pilot: Any, another_pilot: Any, leaves: str, mended: int
) -> None:
    case = await start(domain)
    await pilot.sync(want=1)
    await pilot.sync()
    await pilot.sync(leaving=True, leaves=leaves)
    other = another_pilot("p-2")
    await other.sync(want=1, wait_ms=1000)
    await other.sync(a=Outcome(outputs=1))
    [count] = (await domain.case(case)).counts
    assert (count.done, count.mended) == (1, mended)
