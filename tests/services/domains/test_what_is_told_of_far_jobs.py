"""What the domain that has sent a job says of it: what its host says, and since when it says nothing."""

from pathlib import Path

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity, ResourceTemplates
from mendflow.core.model.ids import FlowName, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.services.scheduling.facts import FarWaits
from tests.services.domains.kit import AWAY, Domains, soon

GB = 1024**3


def flow(**more: object) -> Flow:
    job = JobActivity(name="big", command="true", domain=AWAY, **more)  # type: ignore[arg-type]  # own fields
    return Flow(name=FlowName("f"), body=job)


async def test_why_tells_what_the_host_says_of_a_job_that_no_pilot_there_can_take(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        await domains.away.pilot.sync(want=4, wait_ms=20)  # there is a pilot
        case = await domains.home.start(flow(resources=ResourceTemplates(memory_bytes=500 * GB)))
        far = domains.home.runtime.domains.far
        await soon(lambda: any(heard.status.stuck for heard in far.heard.values()), "the host's reason")
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
        far = domains.home.runtime.domains.far
        await soon(lambda: bool(domains.away.runtime.manager.live))
        assert await domains.away.take() == ["big"]
        await soon(lambda: any(heard.status.host for heard in far.heard.values()), "that it runs")
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


async def test_the_log_of_a_job_that_is_away_says_where_it_is(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(flow())
        await soon(lambda: bool(domains.away.runtime.manager.live))
        await domains.away.take()
        far = domains.home.runtime.domains.far
        await soon(lambda: any(heard.status.host for heard in far.heard.values()), "that it runs")
        view = await domains.home.domain.log(f"{case}/1")
        assert view.note == "it runs in the domain away; its log comes from there when it has ended"
        assert not view.silent
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
