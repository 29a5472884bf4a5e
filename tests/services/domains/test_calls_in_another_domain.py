"""Flows that are called in another domain: sent closed, done there, and their outcomes are those of the call."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Call, Flow, Input, JobActivity, Sequence, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import file_of
from mendflow.services.domains.work_documents import SENT_KIND
from tests.services.domains.kit import AWAY, Domains, soon
from tests.services.recovery.kit import FAILED, flow


def inner(**more: object) -> Flow:
    body = JobActivity(name="count", command="wc -l ${{ inputs.name }}", **more)  # type: ignore[arg-type]  # own fields
    return Flow(
        name=FlowName("inner"),
        inputs={"name": Input(type="string", required=True)},
        outputs={"lines": "${{ jobs.count.outputs.n }}"},
        body=body,
    )


def outer(called: Flow, domain: str = AWAY) -> Flow:
    call = Call(name="far", flow="inner", inputs={"name": "table"}, domain=domain)
    after = JobActivity(name="after", command="echo ${{ jobs.far.outputs.lines }}")
    return flow(Sequence(name="s", body=(call, after)), "outer", calls=(called,))


async def test_a_call_runs_there_and_its_outputs_come_back(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(outer(inner()))
        assert await domains.away.take() == ["count"]
        assert domains.away.pilot.held[0].spec.command == "wc -l table"
        [there] = [live.document for live in domains.away.runtime.manager.live.values()]
        assert (there.owner, there.flow) == ("home/me", "inner")
        await domains.away.report(count=Outcome(outputs={"n": 12}))
        assert await domains.home.take() == ["after"]
        assert domains.home.pilot.held[0].spec.command == "echo 12"
        await domains.home.report(after=Outcome())
        await domains.home.until_status(case, "completed")


async def test_a_call_that_fails_there_fails_here(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        case = await domains.home.start(outer(inner()))
        await domains.away.take()
        await domains.away.report(count=FAILED)
        await domains.home.until_status(case, "failed")
        view = await domains.home.case(case)
        assert view.fault is not None and view.fault.name == "exit"


async def test_who_rejects_a_task_there_is_told_as_somebody_of_that_domain(tmp_path: Path) -> None:
    # FM-4: there may be a root here, too
    async with Domains(tmp_path, recovery=False) as domains:
        asks = Flow(name=FlowName("inner"), body=UserTask(name="ask", role="boss", title="Go on?"))
        case = await domains.home.start(flow(Call(name="far", flow="inner", domain=AWAY), "outer", calls=(asks,)))
        [task] = await domains.away.until(domains.away.domain.worklist)
        await domains.away.domain.reject(task.id, who="root", comment="no")
        await domains.home.until_status(case, "failed")
        told = (await domains.home.case(case)).fault
        assert told is not None and (told.rejected_by, told.data) == ("", {"by": "away/root"})
        assert told.message.startswith("domain away says: Go on? was rejected by root")


async def test_a_call_to_a_domain_that_is_not_connected_does_not_run_here_instead(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        with pytest.raises(InvalidRequest, match="the domain 'nowhere' is not connected here"):
            await domains.home.start(outer(inner(), domain="nowhere"))
        assert not await domains.home.domain.cases()


async def test_files_beside_the_flow_and_given_ones_go_along(tmp_path: Path) -> None:
    # DM-1
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "words.txt").write_text("a\nb\n")
    async with Domains(tmp_path) as domains:
        called = inner(inputs={"words.txt": "words.txt"}, files={"made": "made.txt"})
        called = Flow(
            name=called.name,
            inputs=called.inputs,
            outputs={"made": "${{ jobs.count.files.made }}"},
            body=called.body,
            folder=str(tmp_path / "beside"),
        )
        case = await domains.home.start(
            flow(
                Call(name="far", flow="inner", inputs={"name": "words.txt"}, domain=AWAY),
                "outer",
                calls=(called,),
                outputs={"made": "${{ jobs.far.outputs.made }}"},
            )
        )
        await domains.away.take()
        [held] = domains.away.pilot.held
        got = held.spec.inputs["words.txt"]
        there = domains.away.server.file_store
        assert b"".join([each async for each in there.read(got.sha256)]) == b"a\nb\n"

        async def made() -> object:
            yield b"2\n"

        kept = await there.keep("made.txt", made())  # type: ignore[arg-type]  # own fields
        await domains.away.report(count=Outcome(files={"made": kept}))
        await domains.home.until_status(case, "completed")
        back = file_of((await domains.home.case(case)).outputs["made"])
        assert back is not None
        assert b"".join([each async for each in domains.home.server.file_store.read(back.sha256)]) == b"2\n"


async def test_a_path_of_the_other_machine_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("of the host")
    async with Domains(tmp_path, recovery=False) as domains:
        called = inner(inputs={"x": "${{ inputs.name }}"})
        case = await domains.home.start(
            flow(
                Call(name="far", flow="inner", inputs={"name": str(tmp_path / "secret.txt")}, domain=AWAY),
                "outer",
                calls=(called,),
            )
        )
        await domains.home.until_status(case, "failed")
        view = await domains.home.case(case)
        assert view.fault is not None and "means nothing in another domain" in view.fault.message


async def test_a_flow_that_only_the_other_domain_has_is_called_by_its_name(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        domains.line.rights = DomainRights(flows=("inner",), own_flows=False)
        await domains.away.domain.deploy(inner())
        case = await domains.home.start(
            flow(Call(name="far", flow="inner", inputs={"name": "t"}, domain=AWAY), "outer")
        )
        await domains.away.take()
        await domains.away.report(count=Outcome(outputs={"n": 1}))
        await domains.home.until_status(case, "completed")


async def test_a_domain_without_the_right_to_it_is_refused(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        domains.line.rights = DomainRights(own_flows=False)
        case = await domains.home.start(outer(inner()))
        await domains.home.until_status(case, "failed")
        view = await domains.home.case(case)
        assert view.fault is not None and view.fault.name == "refusedThere"


async def test_who_cancels_the_caller_cancels_the_call(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(outer(inner()))
        await domains.away.take()
        await domains.home.domain.cancel(case, reason="enough", who="ann")
        await soon(lambda: not domains.away.runtime.manager.live, "the case there has ended")


async def test_a_call_survives_the_restart_of_both_sides(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(outer(inner()))
        await domains.away.take()
        await domains.home.restart()
        await domains.away.restart()
        await domains.away.report(count=Outcome(outputs={"n": 12}))
        await domains.home.take()
        await domains.home.restart()
        await domains.home.report(after=Outcome())
        await domains.home.until_status(case, "completed")


async def test_why_of_a_call_tells_what_the_other_domain_says(tmp_path: Path) -> None:
    # FM-8
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(outer(inner()))
        await domains.away.take()
        calls = domains.home.runtime.domains.calls
        await soon(lambda: bool(calls.progress_of(case, 1)), "something is said of it")
        told = await domains.home.domain.why(f"{case}:far")
        assert told.facts[0] == "it went to the domain away: it names away"
        assert told.facts[1] == f"away says: {calls.progress_of(case, 1)}"


async def test_a_call_that_is_over_and_acknowledged_leaves_no_document(tmp_path: Path) -> None:
    # FM-4
    async with Domains(tmp_path) as domains:
        await domains.home.start(outer(inner()))
        await domains.away.take()
        assert (await domains.home.runtime.domains.counts())[AWAY].sent == 1
        await domains.away.report(count=Outcome(outputs={"n": 12}))
        assert await domains.home.take() == ["after"]
        await soon(lambda: domains.away.runtime.domains.hosted.held("home") == 0, "the acknowledgement")
        sent = [1]
        while sent:
            await domains.home.quiet()
            await domains.home.runtime.ledger.settled()
            sent = [1 async for _ in domains.home.store.scan(SENT_KIND)]
        assert not await domains.home.runtime.domains.counts()


async def test_who_suspends_the_caller_suspends_the_call_and_resuming_resumes_it(tmp_path: Path) -> None:  # FM-4
    async with Domains(tmp_path) as domains:
        case = await domains.home.start(outer(inner()))
        await domains.away.take()
        [there] = domains.away.runtime.manager.live.values()
        await domains.home.domain.suspend(case, who="ann")
        await soon(lambda: there.document.status == "suspended", "the case there is suspended")
        await domains.home.domain.resume(case, who="ann")
        await soon(lambda: there.document.status == "running", "the case there runs again")
        await domains.away.report(count=Outcome(outputs={"n": 12}))
        await domains.home.take()
        await domains.home.report(after=Outcome())
        await domains.home.until_status(case, "completed")


async def test_se_1_flows_of_other_projects_stay_here(tmp_path: Path) -> None:
    """What goes along is what the case would have called here; a flow of its own project does."""
    async with Domains(tmp_path, recovery=False) as domains:
        domain = domains.home.domain
        for name, project in (("theirs", "red"), ("ours", "blue")):
            work = JobActivity(name="work", command=f"do-{project}")
            await domain.deploy(Flow(name=FlowName(name), body=work), who="ann", project=project)
        for name, ends in (("theirs", "failed"), ("ours", "running")):
            called = flow(Call(name="c", flow=name), "inner")
            far = flow(Call(name="far", flow="inner", domain=AWAY), f"outer-{name}", calls=(called,))
            case = (await domain.start_with_flow(far, {}, who="bob", project="blue")).id
            if ends == "failed":
                await domains.home.until_status(case, "failed")
                fault = (await domain.case(case)).fault
                assert fault is not None and "'theirs', which is not deployed here" in fault.message
                assert not domains.line.requests or b"do-red" not in msgspec.json.encode(domains.line.requests)
            else:
                assert await domains.away.take() == ["work"]
                assert domains.away.pilot.held[0].spec.command == "do-blue"
                await domains.away.report(work=Outcome())
                await domains.home.until_status(case, "completed")


async def test_se_1_logical_files_of_other_projects_stay_here(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        domain = domains.home.domain
        ref = (await domain.store_file("table", _chunks(b"of red"))).as_value()
        file = file_of(ref)
        assert file is not None
        datum = LogicalFile(
            name="/reds/table", sha256=file.sha256, bytes=file.bytes, replicas=(Replica(element="disk"),)
        )
        await domain.put_element(StorageElement(name="disk", url="file:///tmp"), who="root")
        await domain.add_data(datum, who="ann", project="red")
        takes = Flow(
            name=FlowName("inner"), inputs={"f": Input(type="file")}, body=JobActivity(name="work", command="true")
        )
        call = Call(name="far", flow="inner", inputs={"f": "lfn:/reds/table"}, domain=AWAY)
        case = (await domain.start_with_flow(flow(call, "outer", calls=(takes,)), {}, who="bob", project="blue")).id
        await domains.home.until_status(case, "failed")
        fault = (await domain.case(case)).fault
        assert fault is not None and "the catalogue has no file /reds/table" in fault.message
        assert fault.name == "callFailed", "nothing of it was sent"


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
