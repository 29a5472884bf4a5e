"""Jobs that are done in another domain: they go there, and their outcomes come back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.domains import DomainRights
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import FunctionRef, JobSpec, JobState, Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import NewJob, SubmissionFailed
from mendflow.services.domains.peer_scheduler import PeerScheduler
from tests.services.domains.kit import AWAY, Domains, soon
from tests.services.recovery.kit import World


def job(number: int = 1, **more: object) -> NewJob:
    command = None if "function" in more else "true"
    spec = JobSpec(item=ItemId(f"align[{number}]"), command=command, owner="ann", **more)  # type: ignore[arg-type]  # own fields
    return NewJob(JobId(f"c-1/{number}"), CaseId("c-1"), spec)


def peer(world: World) -> PeerScheduler:
    return world.runtime.domains.peer(AWAY)


async def test_a_job_runs_there_as_a_case_and_its_outcome_comes_back_once(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        told: list[Outcome] = []

        async def tell(_: JobId, outcome: Outcome) -> None:
            told.append(outcome)

        await peer(domains.home).submit([job()])
        await peer(domains.home).subscribe(job().id, tell)
        assert await domains.away.take() == ["align"]
        [case] = domains.away.runtime.manager.live.values()
        assert case.document.owner == "home/ann"
        await domains.away.report(align=Outcome(outputs={"n": 7}))
        await soon(lambda: bool(told))
        assert told == [Outcome(outputs={"n": 7})]
        status = await peer(domains.home).status(job().id)
        assert status.state is JobState.COMPLETED and status.outcome == told[0]
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0, "the acknowledgement")
        assert len(told) == 1


async def keep(world: World, content: bytes) -> FileRef:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    return await world.server.file_store.keep("f", chunks())


async def test_a_function_takes_its_module_and_the_bundle_of_those_beside_it_along(tmp_path: Path) -> None:  # FM-4
    async with Domains(tmp_path) as domains:
        code, bundle = await keep(domains.home, b"import beside"), await keep(domains.home, b"a bundle")
        function = FunctionRef(
            module="steps", name="count", code=code, folder="/flows", modules=("abc beside.py",), bundle=bundle
        )
        await peer(domains.home).submit([job(function=function)])
        assert await domains.away.take() == ["align"]
        [held] = domains.away.pilot.held
        assert held.spec.function == replace(function, folder="")
        assert [await domains.away.server.file_store.size(each.sha256) for each in (code, bundle)] == [13, 8]


async def test_a_function_whose_modules_were_not_bundled_is_not_sent(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        code = await keep(domains.home, b"import beside")
        function = FunctionRef(module="steps", name="count", code=code, modules=("abc beside.py",))
        with pytest.raises(SubmissionFailed) as failed:
            await peer(domains.home).submit([job(function=function)])
        assert "beside its flow (beside.py)" in failed.value.fault.message


async def test_a_failure_there_is_the_failure_here(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        fault = Fault(name="exit", category=Category.JOB, message="exit code 3", exit_code=3, log_tail="boo")
        await peer(domains.home).submit([job()])
        await domains.away.take()
        await domains.away.report(align=Outcome(fault=fault, exit_code=3, log_tail="boo"))
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs)
        status = await peer(domains.home).status(job().id)
        assert status.state is JobState.FAILED
        assert status.outcome is not None and status.outcome.fault is not None
        assert (status.outcome.fault.name, status.outcome.log_tail) == ("exit", "boo")


async def test_a_cut_line_means_unknown_and_the_job_goes_on(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        await peer(domains.home).submit([job()])
        await domains.away.take()
        domains.line.cut_there = True
        await domains.away.report(align=Outcome(outputs=1))
        status = await peer(domains.home).status(job().id)
        assert status.outcome is None
        domains.line.cut_there = False
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs)
        assert (await peer(domains.home).status(job().id)).outcome == Outcome(outputs=1)


async def test_an_answer_that_is_lost_is_told_again(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        domains.line.cut_back = True
        await peer(domains.home).submit([job()])
        await soon(lambda: len(domains.line.requests) > 2)
        domains.line.cut_back = False
        await domains.away.take()
        domains.line.cut_back = True
        await domains.away.report(align=Outcome(outputs=1))
        before = len(domains.line.requests)
        await soon(lambda: len(domains.line.requests) > before + 1)
        domains.line.cut_back = False
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs)
        assert (await peer(domains.home).status(job().id)).outcome == Outcome(outputs=1)
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0)


async def test_the_host_restarts_and_goes_on_with_what_it_has(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        await peer(domains.home).submit([job()])
        await domains.away.take()
        [held] = domains.away.pilot.held
        await domains.away.restart()
        await domains.away.report(align=Outcome(outputs=1))
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs)
        assert (await peer(domains.home).status(job().id)).outcome == Outcome(outputs=1)
        assert held.fence == 1


async def test_a_job_without_the_right_to_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        domains.line.rights = DomainRights(work_max=0)
        await peer(domains.home).submit([job()])
        await soon(lambda: job().id not in domains.home.runtime.domains.far.jobs)
        outcome = (await peer(domains.home).status(job().id)).outcome
        assert outcome is not None and outcome.fault is not None
        assert (outcome.fault.name, outcome.fault.category) == ("refusedThere", Category.REFUSED)
        assert "may have no more" in outcome.fault.message


async def test_a_refusal_is_no_try_of_the_job_and_uses_up_none_of_its_retries(tmp_path: Path) -> None:
    # FM-4, FM-8
    async with Domains(tmp_path) as domains:
        far = domains.home.runtime.domains.far
        await peer(domains.home).submit([job(1, retries=1)])
        await domains.away.take()
        await soon(lambda: far.jobs[job().id].state is JobState.RUNNING, "it runs there")
        await domains.away.runtime.domains.hosted.disconnect("home")  # by force; the next request comes as before
        domains.line.rights = DomainRights(work_max=0)
        await peer(domains.home).submit([job(2, retries=1)])
        await soon(lambda: not far.jobs, "both are refused")
        began, never_began = await far.read(job(1).id), await far.read(job(2).id)
        assert began is not None and never_began is not None
        assert [each.outcome.fault.name for each in (began, never_began) if each.outcome and each.outcome.fault] == [
            "refusedThere",
            "refusedThere",
        ]
        assert (began.tries, began.failures, began.losses) == (1, 0, 1)
        assert (never_began.tries, never_began.failures, never_began.losses) == (0, 0, 0)


async def test_a_domain_that_is_not_connected_takes_nothing(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        with pytest.raises(SubmissionFailed) as failed:
            await domains.home.runtime.domains.peer("nowhere").submit([job()])
        assert failed.value.fault.category is Category.SCHEDULER_DOWN


async def test_whoever_disconnects_has_its_work_stopped(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        await peer(domains.home).submit([job()])
        await domains.away.take()
        domains.line.disconnected = True
        await domains.away.runtime.domains.hosted.disconnect("home")
        await soon(lambda: not domains.away.runtime.manager.live)
        assert domains.away.runtime.domains.hosted.held("home") == 0
