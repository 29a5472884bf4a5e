"""What the domain that has sent a job says of it: what its host says, and since when it says nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName, ItemId, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.domains.peer_scheduler import PeerScheduler
from mendflow.services.domains.work_counts import NO_WORK
from mendflow.services.scheduling.facts import FarWaits
from tests.patience import PATIENCE_S
from tests.services.domains.by_hand import HandOrigin, sent_job
from tests.services.domains.kit import AWAY, Domains, soon

GB = 1024**3


def asked(domains: Domains) -> bool:
    """Ask the host anew: a request that it holds is answered then."""
    domains.home.runtime.domains.sent.lines_changed()
    return True


async def until_it_runs(domains: Domains) -> None:
    heard = domains.home.runtime.domains.far.heard
    await soon(lambda: asked(domains) and any(each.status.host for each in heard.values()), "that it runs")


def flow(**more: object) -> Flow:
    job = JobActivity(name="big", command="true", domain=AWAY, **more)  # type: ignore[arg-type]  # own fields
    return Flow(name=FlowName("f"), body=job)


async def test_why_tells_what_the_host_says_of_a_job_that_no_pilot_there_can_take(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        await domains.away.pilot.sync(want=4, wait_ms=20)  # there is a pilot
        case = await domains.home.start(flow(resources=ResourceTemplates(memory_bytes=500 * GB)))
        far = domains.home.runtime.domains.far
        await soon(lambda: asked(domains) and any(each.status.stuck for each in far.heard.values()), "its reason")
        told = await domains.home.domain.why(f"{case}:big")
        assert told.state == "waiting" and told.stuck
        assert "it waits there: no pilot can take it: it asks for 500 GiB" in told.sentence
        assert "as away said at" in told.sentence
        waits = domains.home.runtime.hub.provider(FarWaits)
        assert waits is not None
        assert [job.id for job, _ in waits.stuck_jobs()] == [f"{case}/1"]


async def test_why_tells_that_it_runs_there_and_since_when_the_host_is_silent(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(flow())
        await soon(lambda: bool(domains.away.runtime.manager.live))
        assert await domains.away.take() == ["big"]
        await until_it_runs(domains)
        told = await domains.home.domain.why(f"{case}:big")
        assert told.state == "running" and "it runs there on " in told.sentence
        domains.line.cut_there = domains.line.cut_back = True
        await domains.away.report(big=Outcome())
        await soon(lambda: domains.home.runtime.domains.sent.silence(AWAY) is not None, "the silence")
        told = await domains.home.domain.why(f"{case}:big")
        assert "no answer from away since " in told.sentence
        assert "its lease has certainly ended in " in told.sentence
        domains.line.cut_there = domains.line.cut_back = False
        await domains.home.until_status(case, "completed")


async def test_a_job_that_a_pilot_takes_before_its_case_is_noted_is_told_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        starter = domains.away.runtime.domains.runs.starter
        begin = starter.begin

        async def begin_and_take(*given: Any) -> CaseDocument:
            begun = await begin(*given)
            assert await domains.away.take() == ["align"]
            return begun

        monkeypatch.setattr(starter, "begin", begin_and_take)
        said = await HandOrigin().say(domains.away.runtime.domains.hosted, sent_job())
        assert (said["k-1"].state, said["k-1"].progress) == ("running", "running")
        assert said["k-1"].host


async def test_the_log_of_a_job_that_is_away_says_where_it_is(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(flow())
        await soon(lambda: bool(domains.away.runtime.manager.live))
        await domains.away.take()
        await until_it_runs(domains)
        view = await domains.home.domain.log(f"{case}/1")
        assert view.note == "it runs in the domain away; its log comes from there when it has ended"
        assert not view.silent
        [pilot] = domains.away.runtime.meta.pilots.values()
        [there] = domains.away.runtime.meta.jobs
        pilot.log_tails[there] = "hel"
        async with asyncio.timeout(PATIENCE_S):
            while "So far it ends with:\nhel" not in view.note:
                view = await domains.home.domain.log(f"{case}/1")
                await asyncio.sleep(0.1)
        await domains.away.report(big=Outcome(log_tail="hello\n"))
        await domains.home.until_status(case, "completed")
        view = await domains.home.domain.log(f"{case}/1")
        assert (view.text, view.note) == ("hello\n", "")


async def test_attempts_and_their_times_are_those_of_the_host(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(flow(retries=1))
        fault = Fault(name="exit", category=Category.JOB, message="exit code 3", exit_code=3)
        for _ in range(2):
            await soon(lambda: bool(domains.away.runtime.meta.jobs_waiting()), "that it waits there")
            assert await domains.away.take() == ["big"]
            await domains.away.report(big=Outcome(fault=fault, exit_code=3))
        far = domains.home.runtime.domains.far
        await soon(lambda: not far.jobs, "the end")
        job = await far.read(JobId(f"{case}/1"))
        assert job is not None
        there = [each async for each in domains.stores[AWAY].scan("job")]
        assert len(there) == 1
        assert [each.end for each in job.history] == ["failed", "failed"]
        assert (job.tries, job.failures) == (2, 2)
        assert all(each.pilot == AWAY for each in job.history)
        told = await domains.home.domain.why(f"{case}/1")
        assert any("2 of 2 tries failed" in fact for fact in told.facts)


async def test_a_case_that_waits_for_its_next_try_there_still_needs_the_domain(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(flow())
        work, id = domains.home.runtime.domains, JobId(f"{case}/1")
        await soon(lambda: work.sent.open_work(id) is not None, "that it is sent")
        count = (await work.counts()).get(AWAY, NO_WORK)
        assert (count.sent, count.retrying, count.cases) == (1, 0, (case,))
        item = ItemId("big")
        await domains.home.runtime.levels.enter("k", level=1, job=id, case=case, item=item, wait_ms=600_000)
        await peer(domains).cancel(id)
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0, "that it is given up there")
        async with asyncio.timeout(PATIENCE_S):
            while (count := (await work.counts()).get(AWAY, NO_WORK)).sent:
                await asyncio.sleep(0.01)
        assert (count.retrying, count.cases, count.none) == (1, (case,), False)


def peer(domains: Domains) -> PeerScheduler:
    return domains.home.runtime.domains.peer(AWAY)
