"""What the pages of the web app ask for, over HTTP: for those who may see it, and from several servers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.formats import flow_texts
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.domain import Domain
from tests.patience import until
from tests.server.conftest import Serving, opened
from tests.server.conversation import do_jobs, job_flow, loop_flow, sync_request
from tests.server.people import PEOPLE, KnownPeople
from tests.server.town import town


async def test_a_case_is_drawn_and_shown_over_time(client: Client) -> None:
    await client.deploy(loop_flow())
    case = (await client.start("many")).id
    await do_jobs(client, 3)
    await client.wait(case)
    graph = await client.case_graph(case)
    assert [(node.id, node.counts) for node in graph.nodes] == [("each", {"completed": 3})]
    seen = await client.case_timeline("last", limit=2)
    assert (seen.total, len(seen.rows), seen.cursor) == (3, 2, "2")
    rest = await client.case_timeline(case, after=seen.cursor)
    assert {row.item for row in (*seen.rows, *rest.rows)} == {"turn[0]", "turn[1]", "turn[2]"}
    assert [node.id for node in (await client.flow_graph("many")).nodes] == ["each"]
    with pytest.raises(InvalidRequest):
        await client.case_timeline(case, limit=0)


class TestProjects:
    @pytest.fixture
    async def served(self, serving: Serving) -> HttpServer:
        return await serving(KnownPeople())

    @pytest.fixture
    async def people(self, served: HttpServer) -> AsyncIterator[dict[str, Client]]:
        async with AsyncExitStack() as stack:
            yield {name: await stack.enter_async_context(Client(served.url, token=name)) for name in PEOPLE}

    async def test_each_sees_only_what_is_of_its_projects(self, people: dict[str, Client]) -> None:  # SE-1
        await people["ann"].deploy(job_flow("of-ann"))
        case = (await people["ann"].start("of-ann")).id
        for name in ("vera", "root"):
            assert (await people[name].overview()).cases == {"running": 1}
            assert (await people[name].case_graph(case)).nodes
            assert (await people[name].case_timeline(case)).total == 1
            assert (await people[name].flow_graph("of-ann")).nodes
        seen = await people["boris"].overview()
        assert (seen.cases, seen.jobs, seen.waiting, sum(seen.per_hour.started)) == ({}, {}, [], 0)
        for asked in (
            people["boris"].case_graph(case),
            people["boris"].case_timeline(case),
            people["boris"].flow_graph("of-ann"),
        ):
            with pytest.raises(NotFound, match="in your projects"):
                await asked


async def test_every_server_tells_of_the_queues_and_pilots_of_all(tmp_path: Path) -> None:
    async with town(tmp_path, "one", "two") as [one, two], one.client() as first, two.client() as second:
        await first.deploy(job_flow("f"))
        mine, theirs = (await first.start("f")).id, (await second.start("f")).id
        await first.sync(sync_request(1))

        async def told(client: Client) -> bool:
            seen = await client.overview()
            waiting = sum(each.jobs for each in seen.waiting if each.kind == "job")
            return (seen.cases, sum(seen.jobs.values()), waiting, seen.pilots.up) == ({"running": 2}, 2, 2, 1)

        for client in (first, second):

            async def all_of_it(client: Client = client) -> bool:
                return await told(client)

            await until(all_of_it, "what both servers have")
            for case in (mine, theirs):
                assert (await client.case_graph(case)).nodes[0].counts == {"waiting": 1}
                assert (await client.case_timeline(case)).total == 1


async def test_a_pilot_is_drained_whichever_server_is_asked(tmp_path: Path) -> None:
    async with town(tmp_path, "one", "two") as [one, two], one.client() as first, two.client() as second:
        await first.sync(sync_request(1))

        async def known() -> bool:
            return bool(await second.pilots())

        await until(known, "the other server's pilot")
        assert (await second.drain_pilot("pilot-1", reason="new disks")).drained.endswith(": new disks")
        await first.deploy(job_flow("f"))
        for client in (first, second):
            await client.start("f")
        answer = await first.sync(sync_request(2, want=8, wait_ms=100))
        assert answer.jobs == [] and (await first.pilots())[0].drained
        await second.resume_pilot("pilot-1")
        assert (await first.sync(sync_request(3, want=8, wait_ms=5_000))).jobs


async def test_the_last_entries_of_a_history(client: Client) -> None:
    await client.deploy(loop_flow())
    case = (await client.start("many")).id
    await do_jobs(client, 3)
    await client.wait(case)
    whole = await client.history(case)
    assert await client.history(case, last=2) == whole[-2:] and await client.history(case, last=999) == whole


async def test_cases_are_compared_by_those_who_see_both(serving: Serving) -> None:  # SE-1
    served = await serving(KnownPeople())
    async with (
        Client(served.url, token="ann") as ann,
        Client(served.url, token="boris") as boris,
        Client(served.url, token="root") as root,
    ):
        await ann.deploy(job_flow("red"))
        await boris.deploy(job_flow("blue"))
        mine, theirs = (await ann.start("red")).id, (await boris.start("blue")).id
        again = (await ann.start("red")).id
        assert (await ann.compare_cases(mine, again)).jobs == []
        assert (await root.compare_cases(mine, theirs)).flow_changed
        for one, other in ((mine, theirs), (theirs, mine)):
            with pytest.raises(NotFound, match="in your projects"):
                await ann.compare_cases(one, other)


async def test_the_text_of_a_flow_is_checked(tmp_path: Path) -> None:
    async with opened(tmp_path) as made, aiohttp.ClientSession() as http:
        domain = Domain(made._server, flow_texts=flow_texts)
        served = await serve(create_app(domain, access=AccessControl()))
        try:
            url, good = f"{served.url}/api/v1/flow-checks", {"text": "jobs: {a: {run: echo hi}}", "name": "f.yaml"}
            async with http.post(url, json=good) as response:
                told = await response.json()
            assert told["ok"] and told["flow"]["name"] == "f" and told["graph"]["nodes"][0]["id"] == "a"
            async with http.post(url, json={"text": "jobs: {a: {rum: x}}"}) as response:
                told = await response.json()
            assert not told["ok"] and told["problems"][0]["line"] == 1 and told["flow"] is None
        finally:
            await served.stop()
