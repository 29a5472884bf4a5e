"""A machine that cannot start containers: its job goes to another one that runs them, or fails at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.views import CaseView
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.conftest import CAPACITY, HandPilot

FLOW = Flow(
    name=FlowName("f"),
    body=JobActivity(name="a", command="true", container=JobContainer(image="tools:1"), retries=3),
)
NONE_STARTS = Outcome(
    fault=Fault(
        name="containerNotStarted",
        category=Category.RESOURCE,
        message="near cannot start containers: podman said: crun: cgroups in hybrid mode not supported",
        stage=AttemptStage.START,
        data={"runtime": "podman", "lasting": True, "of_all": True},
    )
)


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[Domain]:
    """Of a server with the default rules, whose levels are long: who waits in one is noticed."""
    file_store = FolderFileStore(tmp_path / "files")
    file_store.open()
    server = Server(
        store=MemoryStore(),
        file_store=file_store,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=None, levels_ms=(3_600_000,)),
        version="test",
        shipped=default_rules(),
    )
    await server.open()
    yield Domain(server)
    await server.close()


def pilot_on(domain: Domain, host: str, runtime: str) -> HandPilot:
    pilot = HandPilot(domain, f"p-{host}", msgspec.structs.replace(CAPACITY, runtime=runtime))
    pilot.host = host
    return pilot


async def ended(domain: Domain, outcomes: dict[str, Outcome], *pilots: HandPilot) -> CaseView:
    """Start the case; each pilot answers as its host does, the first of them first, until the case is over."""
    await domain.deploy(FLOW)
    for pilot in pilots:
        await pilot.sync()
    case = (await domain.start("f", {}, who="me")).id
    async with asyncio.timeout(PATIENCE_S):
        while (view := await domain.case(case)).status == "running":
            for pilot in pilots:
                await pilot.sync(want=1, wait_ms=20)
                await pilot.exchange({each.spec.item: outcomes[pilot.host] for each in pilot.held})
    return view


async def test_its_job_goes_at_once_to_another_machine_that_runs_containers(domain: Domain) -> None:  # DU-5 FM-12
    near, plain, far = (pilot_on(domain, *each) for each in (("near", "podman"), ("plain", ""), ("far", "podman")))
    view = await ended(domain, {"near": NONE_STARTS, "far": Outcome()}, near, plain, far)
    attempts = (await domain.item(view.id, "a")).attempts
    assert view.status == "completed" and [each.host for each in attempts] == ["near", "far"]


async def test_where_no_other_machine_runs_containers_it_fails_at_once(domain: Domain) -> None:  # DU-5 FM-12
    view = await ended(domain, {"near": NONE_STARTS}, pilot_on(domain, "near", "podman"), pilot_on(domain, "plain", ""))
    item = await domain.item(view.id, "a")
    assert view.status == "failed" and [each.host for each in item.attempts] == ["near"]
    assert item.fault is not None and "near cannot start containers" in item.fault.message
