"""Every question that a domain answers can be asked over HTTP, and gets the same answer."""

import asyncio

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import BadFlow, Conflict, NotFound
from mendflow.core.model.flow import Flow, JobActivity, Parallel, Receive
from mendflow.core.model.ids import FlowName
from mendflow.core.model.views import JobQuery
from mendflow.server.runner import HttpServer
from mendflow.services.api import view_operations
from mendflow.services.base import paging
from tests.server.conversation import SEVERAL, do_jobs, job_flow, loop_flow, task_flow


async def test_health_stands_at_the_address_that_probes_know(served: HttpServer, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{served.url}/api/v1/health") as response:
        assert response.status == 200
        assert (await response.json())["status"] == "ok"


async def test_a_deployed_flow_is_read_back_whole(client: Client) -> None:
    view = await client.deploy(loop_flow())
    assert view.version == 1
    assert [flow.name for flow in await client.flows()] == ["many"]
    back = await client.flow("many")
    assert back.flow is not None
    assert back.flow.body == (await client.flow("many")).flow.body  # type: ignore[union-attr]  # just asserted
    assert back.digest == view.digest


async def test_the_same_flow_again_is_the_same_version_and_another_is_the_next(client: Client) -> None:
    first = await client.deploy(loop_flow(turns=2))
    again = await client.deploy(loop_flow(turns=2))
    other = await client.deploy(loop_flow(turns=3))
    assert (first.version, again.version, other.version) == (1, 1, 2)


@pytest.mark.parametrize("name", ["", "a/b", "..", "../up", "x y", "7", "a" * 101, "a\n"])
async def test_a_flow_whose_name_could_be_a_path_is_refused(client: Client, name: str) -> None:
    called = msgspec.structs.replace(job_flow(), calls=(job_flow(name),))
    for flow in (job_flow(name), called):
        with pytest.raises(BadFlow) as refused:
            await client.deploy(flow)
        assert len(refused.value.problems) == 1
    assert await client.flows() == []


async def test_a_case_is_started_by_whoever_asks_and_found_as_the_last(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one", {})
    assert case.owner == "ann"
    assert (await client.case("last")).id == case.id
    assert [one.id for one in await client.cases(flow="one", status="running")] == [case.id]
    assert await client.cases(status="failed") == []


async def test_the_same_key_is_the_same_case(client: Client) -> None:
    await client.deploy(job_flow())
    first = await client.start("one", key="k1")
    again = await client.start("one", key="k1")
    other = await client.start("one", key="k2")
    assert first.id == again.id != other.id


async def test_an_item_of_a_loop_is_found_by_its_id_with_brackets(client: Client) -> None:
    await client.deploy(loop_flow())
    case = await client.start("many")
    items = [one for one in await client.items(case.id) if one.kind == "job"]
    assert len(items) == SEVERAL
    assert "[" in items[-1].item
    assert (await client.item(case.id, items[-1].item)).serial == items[-1].serial
    assert [one.item for one in await client.items(case.id, name="turn", limit=1, offset=1)] == [items[1].item]


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    await client.deploy(job_flow())
    await client.start("one")
    for question in (
        client.flow("none"),
        client.case("none"),
        client.item("last", "none[7]"),
        client.job("none/1"),
        client.user_task("none/1"),
        client.log("none/1"),
    ):
        with pytest.raises(NotFound):
            await question


async def test_a_case_is_suspended_continued_and_removed(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one")
    assert (await client.suspend(case.id)).status == "suspended"
    assert (await client.resume(case.id)).status == "running"
    assert (await client.cancel(case.id, reason="enough")).status == "cancelled"
    with pytest.raises(Conflict):
        await client.suspend(case.id)


async def test_jobs_are_done_by_a_pilot_and_the_case_completes(client: Client) -> None:  # PJ-1
    await client.deploy(loop_flow())
    case = await client.start("many")
    await do_jobs(client, SEVERAL)
    assert (await client.wait(case.id)).status == "completed"
    jobs = await client.jobs(JobQuery(case=case.id, state="completed"))
    assert len(jobs) == SEVERAL
    job = await client.job(jobs[0].id)
    assert job.spec.command == "true"
    log = await client.log(job.id)
    assert (log.text, log.attempt, log.next, log.over, log.job_over) == ("said\n", 1, 5, True, True)
    assert [pilot.id for pilot in await client.pilots()] == ["pilot-1"]


async def test_a_failed_case_is_run_again(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one")
    with pytest.raises(Conflict):
        await client.rerun(case.id, from_failed=True)
    await do_jobs(client, 1, fail=True)
    assert (await client.wait(case.id)).status == "failed"
    again = await client.rerun(case.id, from_failed=True)
    assert again.rerun_of == case.id


async def _offered(client: Client) -> str:
    """The task appears soon after the case has begun."""
    while True:
        if tasks := await client.worklist(role="editor", state="offered"):
            return tasks[0].id
        await asyncio.sleep(0.01)


async def test_a_task_is_claimed_released_and_completed(client: Client) -> None:  # AD-6
    await client.deploy(task_flow())
    case = await client.start("ask")
    task = await _offered(client)
    assert (await client.claim(task)).claimed_by == "ann"
    assert (await client.release(task)).state == "offered"
    await client.claim(task)
    done = await client.complete(task, {"verdict": "good"}, comment="fine")
    assert (done.state, done.outputs, done.ended_by) == ("completed", {"verdict": "good"}, "ann")
    assert (await client.wait(case.id)).status == "completed"


async def test_a_task_is_rejected(client: Client) -> None:  # AD-6
    await client.deploy(task_flow())
    case = await client.start("ask")
    task = await _offered(client)
    await client.claim(task)
    assert (await client.reject(task, comment="no")).state == "rejected"
    assert (await client.wait(case.id)).status == "failed"


async def test_reasons_and_messages_can_be_asked_for(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one")
    why = await client.why(case.id)
    assert why.sentence
    assert isinstance(await client.alerts(severity="info", limit=5), list)


async def test_a_message_reaches_its_case(client: Client) -> None:
    await client.deploy(Flow(name=FlowName("one"), body=Receive(name="hear", channel="news", correlation="c")))
    case = await client.start("one")
    assert (await client.send(case.id, "news", {"n": 1}, correlation="c", id="m1")).id == case.id


async def test_lists_of_the_client_go_on_where_one_answer_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-1
    branches = tuple(JobActivity(name=f"j{number}", command="true") for number in range(5))
    await client.deploy(Flow(name=FlowName("five"), body=Parallel(name="all", branches=branches)))
    case = (await client.start("five")).id
    jobs, items = [each.id for each in await client.jobs()], [each.item for each in await client.items(case)]
    assert len(jobs) == len(items) == 5
    monkeypatch.setattr(paging, "EXAMINED_MAX", 2)
    monkeypatch.setattr(view_operations, "EXAMINED_MAX", 2)
    assert [each.id for each in await client.jobs()] == jobs
    assert [each.id for each in await client.jobs(JobQuery(limit=2, offset=2))] == jobs[2:4]
    assert [each.item for each in await client.items(case)] == items
    assert [each.item for each in await client.items(case, limit=2, offset=2)] == items[2:4]
