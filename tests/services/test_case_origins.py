"""Where a case came from is kept with who told it, and is not passed on to somebody else's case."""  # SE-4

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.views import CaseOrigin, CaseQuery
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.contract.archived import packed, unpacked, world_on

FLOW = Flow(name=FlowName("f"), body=JobActivity(name="a", command="true"))
EVES = CaseOrigin(inputs={"doc": "/home/ann/.ssh/id"}, output_dir="/home/ann/.ssh", report="/home/ann/.bashrc")


async def ended(domain: Domain, who: str, origin: CaseOrigin | None = EVES) -> str:
    case = (await domain.start_with_flow(FLOW, {}, who=who, teller=who, origin=origin)).id
    await domain.cancel(case, who=who)
    return case


async def told(domain: Domain, case: str) -> CaseOrigin | None:
    return (await domain.case(case)).origin


async def test_the_server_says_who_told_it_whatever_is_sent(domain: Domain) -> None:
    case = await ended(domain, "eve", CaseOrigin(flow="/home/ann/f.yaml", told_by="ann"))
    assert await told(domain, case) == CaseOrigin(flow="/home/ann/f.yaml", told_by="eve")


async def test_a_case_of_somebody_else_is_run_again_without_his_paths(domain: Domain) -> None:
    case = await ended(domain, "eve")
    anns = await domain.rerun(case, who="ann", teller="ann")
    assert (anns.owner, anns.origin) == ("ann", None)
    unknown = await domain.rerun(case, who="ann")
    assert unknown.origin is None
    own = await domain.rerun(case, who="eve", teller="eve")
    assert own.origin is not None and (own.origin.told_by, own.origin.output_dir) == ("eve", "/home/ann/.ssh")


async def test_who_continues_a_case_gives_his_own_paths_and_takes_none(server: Server, domain: Domain) -> None:
    case = (await domain.start_with_flow(FLOW, {}, who="eve", teller="eve", origin=EVES)).id
    live = server.runtime.manager.live[case]
    starter = domain._starter()
    starter.update_run_options(live.id, CaseOrigin(flow="/home/eve/g.yaml", told_by="eve"), "")
    eves = await told(domain, case)
    assert eves is not None and (eves.flow, eves.report) == ("/home/eve/g.yaml", EVES.report), "she said it before"
    starter.update_run_options(live.id, CaseOrigin(flow="/home/ann/f.yaml", told_by="ann"), "")
    assert await told(domain, case) == CaseOrigin(flow="/home/ann/f.yaml", told_by="ann")


@pytest.mark.parametrize(
    "origin",
    [
        CaseOrigin(flow="x" * 15_000_000),
        CaseOrigin(output_dir="/a\nb"),
        CaseOrigin(inputs={f"i{number}": "/a" for number in range(257)}),
    ],
)
async def test_an_origin_that_is_too_large_is_refused(domain: Domain, origin: CaseOrigin) -> None:
    await domain.deploy(FLOW)
    asked: list[dict[str, Any]] = [{}, {"resume": True}]
    for more in asked:
        with pytest.raises(InvalidRequest, match=r"origin.*(at most|control character).*; leave it away") as refused:
            await domain.start("f", {}, who="eve", teller="eve", origin=origin, **more)
        assert len(refused.value.message) < 200
        with pytest.raises(InvalidRequest, match="leave it away"):
            await domain.start_with_flow(FLOW, {}, who="eve", teller="eve", origin=origin, **more)
    assert not (await domain.find_cases(CaseQuery())).rows


@pytest.mark.parametrize("is_for_one", [True, False])
async def test_paths_that_a_flow_names_were_told_by_the_servers_account_while_it_is_alone(
    tmp_path: Path, is_for_one: bool
) -> None:
    (tmp_path / "a.txt").write_text("a")
    files = FolderFileStore(tmp_path / "files")
    files.open()
    settings = ServerSettings(files_roots=None if is_for_one else (tmp_path,), teller="account ann")
    server = Server(store=MemoryStore(), file_store=files, clock=SystemClock(), settings=settings, version="test")
    await server.open()
    try:
        domain = Domain(server)
        inputs = {"doc": Input(type="file", default="a.txt")}
        await domain.deploy(Flow(name=FlowName("g"), body=FLOW.body, inputs=inputs, folder=str(tmp_path)), who="eve")
        at_due_time = await told(domain, (await domain.start("g", {}, who="eve")).id)
        assert at_due_time is not None and at_due_time.inputs == {"doc": str(tmp_path / "a.txt")}
        assert at_due_time.told_by == ("account ann" if is_for_one else "")
        asked = await told(domain, (await domain.start("g", {}, who="eve", teller="eve")).id)
        assert asked is not None and asked.told_by == "eve"
    finally:
        await server.close()


async def test_who_told_it_in_another_installation_is_nobody_here(domain: Domain, tmp_path: Path) -> None:
    case = await ended(domain, "account ann")
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, await packed(domain, case))
        assert await told(there.domain, case) == replace(EVES, told_by="")
