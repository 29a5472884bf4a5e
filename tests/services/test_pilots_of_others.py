"""What a pilot may do with jobs that are not its own: nothing, and somebody is told."""

import asyncio
from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Forbidden
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName, PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import AttemptReport, AttemptStatus, Capacity, LogPart, SyncRequest
from mendflow.server.pilot_exchange import PilotExchangeHandler
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling import pilot_owners
from tests.patience import until

HAS = Capacity(slots=4, cpus=4.0, memory_bytes=1, disk_bytes=1)


def request(pilot: str, serial: int, want: int = 0, **more: Any) -> SyncRequest:
    return SyncRequest(pilot=PilotId(pilot), serial=serial, host="h", capacity=HAS, want=want, **more)


async def start(domain: Domain) -> str:
    await domain.deploy(Flow(name=FlowName("one"), body=JobActivity(name="a", command="true")))
    return (await domain.start("one", {}, who="me")).id


async def test_a_report_for_the_job_of_another_pilot_is_refused_and_told(domain: Domain) -> None:  # SE-2
    case = await start(domain)
    (got,) = (await domain.sync(request("hers", 1, 1), who="ann")).jobs
    forged = AttemptReport(got.job, got.fence, Outcome(outputs="forged"))
    answer = await domain.sync(request("his", 1, reports=[forged]), who="eve")
    assert [ref.job for ref in answer.refused] == [got.job] and not answer.accepted
    assert any(str(got.job) in notice.message for notice in await domain.notices())
    job = await domain.job(str((await domain.item(case, "a")).job))
    assert job.outcome is None and job.pilot == "hers"


async def test_a_refused_report_is_told_once_for_each_pilot_and_for_none_of_other_projects(domain: Domain) -> None:
    """SE-2"""
    await start(domain)
    (got,) = (await domain.sync(request("hers", 1, 1), who="ann")).jobs
    forged = [AttemptReport(got.job, fence, Outcome(outputs="forged")) for fence in range(got.fence, got.fence + 5)]
    answer = await domain.sync(request("visit-evil.example", 1, reports=forged, projects=("astro",)), who="eve")
    assert len(answer.refused) == 5 and not await domain.notices()
    for serial in (1, 2):
        await domain.sync(request("his", serial, reports=forged, projects=("astro", "default")), who="bob")
    await domain.sync(request("its", 1, reports=forged), who="joe")
    told = [notice.message for notice in await domain.notices()]
    assert len(told) == 2 and "not by its" in told[0] and "not by his" in told[1]


async def test_a_pilot_that_names_the_job_of_another_has_lost_it_and_shows_no_log_of_it(domain: Domain) -> None:  # SE-2
    await start(domain)
    (got,) = (await domain.sync(request("hers", 1, 1), who="ann")).jobs
    beat = AttemptStatus(got.job, got.fence, "running", Measurements(), log_tail="forged")
    part = LogPart(got.job, got.fence, 0, data=b"forged", size=6)
    answer = await domain.sync(request("his", 1, running=[beat], logs=[part]), who="eve")
    assert [ref.job for ref in answer.lost] == [got.job]
    assert "forged" not in str(await domain.job(str(got.job)))


class Exchange:
    """The server's side of one request, as it comes from the network."""

    def __init__(self, domain: Domain) -> None:
        self._handler = PilotExchangeHandler(domain)

    async def jobs_for(self, asks: SyncRequest, *projects: str) -> int:
        body, sent = msgspec.msgpack.encode(asks), []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope: Any = {"type": "http", "path": "/api/v1/pilots/sync", "headers": []}
        await self._handler(scope, receive, send, "ann", projects)
        return len(msgspec.msgpack.decode(b"".join(each.get("body", b"") for each in sent))["jobs"])


async def test_a_pilot_works_for_the_projects_of_its_token_whatever_it_says(domain: Domain) -> None:  # SE-2
    case = await start(domain)
    exchange = Exchange(domain)
    assert await exchange.jobs_for(request("hers", 1, 1, projects=("default",)), "astro") == 0
    told = await domain.why(f"{case}:a")
    assert "it belongs to project default, and no pilot works for that" in told.sentence
    assert [pilot.projects for pilot in await domain.pilots()] == [["astro"]]
    assert await exchange.jobs_for(request("hers", 2, 1), "astro", "default") == 1


async def test_the_name_of_an_idle_pilot_is_its_tokens_after_a_restart(domain: Domain) -> None:  # SE-2
    await domain.sync(request("hers", 1), who="ann")
    await domain.sync(request("gone", 1), who="ann")
    await domain.sync(request("gone", 2, leaving=True), who="ann")
    await until_released(domain, "gone")
    server = domain._server
    await restarted(server)
    with pytest.raises(Forbidden, match="the name hers is taken") as refused:
        await domain.sync(request("hers", 1), who="eve")
    assert "ann" not in refused.value.message, "whose it is does not concern others"
    await domain.sync(request("hers", 2), who="ann")
    await domain.sync(request("gone", 1), who="eve")  # who has left has no name any more
    await domain.sync(request("hers", 3, leaving=True), who="ann")
    await until_released(domain, "hers")
    await restarted(server)
    await domain.sync(request("hers", 1), who="eve")
    with pytest.raises(Forbidden, match="the name gone is taken"):
        await domain.sync(request("gone", 3), who="ann")


async def test_a_name_that_nobody_has_used_for_long_is_free(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    """SE-2"""
    await domain.sync(request("old", 1), who="ann")
    monkeypatch.setattr(pilot_owners, "KEPT_MS", -1)
    await restarted(domain._server)
    assert await domain._server.store.get(pilot_owners.OWNER_KIND, "old") is None
    await domain.sync(request("old", 1), who="eve")


async def restarted(server: Server) -> None:
    """Everything is read from the store again, as after a restart."""
    server.on_broken(server.runtime, "the test says so")
    await until(lambda: server.health().status == "ok", "the services are there again")


async def until_released(domain: Domain, pilot: str) -> None:
    while await domain._server.store.get(pilot_owners.OWNER_KIND, pilot) is not None:
        await asyncio.sleep(0.01)
