"""A case that is started from a flow file: what is deployed under the flow's name stays as it is."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.data_sets import DataSetSpec, Gathering
from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.services.api.domain import Domain
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cases.flows import FLOW_KIND, VERSION_KIND
from mendflow.stores.contract import Put, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import server_on

FIRST = Flow(name=FlowName("qc"), body=JobActivity(name="a", command="first"))
CHANGED = replace(FIRST, body=JobActivity(name="a", command="changed"))
NIGHTLY = ScheduleSpec(name="nightly", flow="qc", cron="0 3 * * *")


async def command_of(domain: Domain, case: str) -> str:
    body = (await domain.flow_of(case)).body
    assert isinstance(body, JobActivity)
    return str(body.command)


async def scheduled(domain: Domain) -> str:
    """What the schedule runs now."""
    return await command_of(domain, (await domain.trigger_schedule("nightly", who="ann")).id)


async def test_a_schedule_goes_on_with_what_is_deployed_until_another_is_deployed(domain: Domain) -> None:  # DU-6
    deployed = await domain.deploy(FIRST, who="ann")
    await domain.put_schedule(NIGHTLY, who="ann")
    tried = await domain.start_with_flow(CHANGED, {}, who="ben")
    assert await command_of(domain, tried.id) == "changed" and tried.digest != deployed.digest
    assert await scheduled(domain) == "first"
    assert await command_of(domain, (await domain.start("qc", {}, who="ann")).id) == "first"
    view = await domain.flow("qc")
    assert (view.version, view.digest, view.tentative) == (1, deployed.digest, False)
    assert (await domain.deploy(CHANGED, who="ann")).version == 2
    assert await scheduled(domain) == "changed"


async def test_a_flow_that_nobody_deployed_is_known_by_the_newest_file(domain: Domain) -> None:  # DU-6
    await domain.start_with_flow(FIRST, {}, who="ben")
    assert (await domain.flow("qc")).tentative
    await domain.start_with_flow(CHANGED, {}, who="ben")
    view = await domain.flow("qc")
    assert view.tentative and view.version == 2
    assert await command_of(domain, (await domain.start("qc", {}, who="ann")).id) == "changed"
    assert (await domain.deploy(CHANGED, who="ann")).version == 2, "it is the same"
    await domain.start_with_flow(FIRST, {}, who="ben")
    view = await domain.flow("qc")
    assert (view.version, view.tentative, view.deployed_by) == (2, False, "ann")


async def test_what_an_older_store_knows_counts_as_deployed(domain: Domain) -> None:  # DU-6
    """It does not say whether anybody deployed it; nothing that runs by a schedule may become another flow."""
    await domain.start_with_flow(FIRST, {}, who="ben")
    flows = domain._server.runtime.flows
    stored = await flows._store.get(FLOW_KIND, "qc")
    assert stored is not None
    old = {key: value for key, value in msgspec.json.decode(stored.body).items() if key != "tentative"}
    await flows._store.write([Put(FLOW_KIND, "qc", msgspec.json.encode(old), stored.version)])
    await flows.refresh("qc")
    tried = await domain.start_with_flow(CHANGED, {}, who="ben")
    assert await command_of(domain, tried.id) == "changed"
    assert await command_of(domain, (await domain.start("qc", {}, who="ann")).id) == "first"


async def test_what_starts_cases_by_itself_keeps_the_version_that_it_was_made_for(domain: Domain) -> None:  # DU-6
    await domain.start_with_flow(FIRST, {}, who="ben")
    await domain.put_schedule(NIGHTLY, who="ann")
    await domain.start_with_flow(CHANGED, {}, who="ben")
    assert await scheduled(domain) == "first"
    other = replace(FIRST, name=FlowName("each"), inputs={"file": Input()})
    await domain.start_with_flow(other, {}, who="ben")
    gathering = Gathering(name="g", flow="each", inputs={"file": "${{ file }}"}, count=1)
    await domain.put_data_set(DataSetSpec(name="run", gatherings=(gathering,)), who="ann")
    assert not (await domain.flow("each")).tentative


async def test_a_flow_that_is_sent_along_stays_in_the_project_of_the_deployed_one(domain: Domain) -> None:  # SE-1
    await domain.deploy(FIRST, who="ann", project="red")
    assert (await domain.start_with_flow(CHANGED, {}, who="ben")).project == "red"
    with pytest.raises(Conflict, match="belongs to another project"):
        await domain.start_with_flow(CHANGED, {}, who="ben", project="blue")


async def test_the_same_key_is_the_same_case_also_of_a_flow_that_is_sent_along(domain: Domain) -> None:
    first = await domain.start_with_flow(FIRST, {}, who="ben", key="k")
    assert (await domain.start_with_flow(FIRST, {}, who="ben", key="k")).id == first.id


@pytest.mark.parametrize("late", ["start", "deployment"])
async def test_a_version_that_another_server_deploys_meanwhile_is_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """Its document is written by both; whichever comes last, nobody may take its file for one that nobody deployed."""
    store = MemoryStore()
    servers = [server_on(store, tmp_path / name, server=ServerDocument(id=name, url="")) for name in ("s1", "s2")]
    for each in servers:
        await each.open()
    first, second = (each.runtime.flows for each in servers)
    get = store.get
    waiting = 1

    async def slow(kind: str, id: str) -> StoredDocument | None:
        nonlocal waiting
        found = await get(kind, id)
        if kind != VERSION_KIND or not waiting:
            return found
        waiting -= 1
        if late == "start":
            await second.refresh("qc")
            await second.adopt("qc", who="ann")
            return await get(kind, id)
        await store.write([Put(kind, id, found.body, found.version)] if found is not None else [])
        return found

    if late == "start":
        monkeypatch.setattr(store, "get", slow)
        await first.version_sent_with_start(FIRST, who="ben")
    else:
        await first.version_sent_with_start(FIRST, who="ben")
        monkeypatch.setattr(store, "get", slow)
        await second.refresh("qc")
        await second.adopt("qc", who="ann")
    stored = await get(VERSION_KIND, "qc@1")
    assert stored is not None and msgspec.json.decode(stored.body)["tentative"] is False
    for each in servers:
        await each.close()
