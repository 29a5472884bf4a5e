"""A case that goes on for ever by itself, with conditions that cost nothing, keeps nobody else waiting. SE-3"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Empty, Flow, Wait, While
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.cases.long_steps import LongSteps
from mendflow.services.runtime.server import Server
from mendflow.services.runtime.settings import ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.services.messaging.test_long_steps import HeldRunner

BODIES: list[Activity] = [
    Wait(name="again", duration=0),
    Empty(name="again"),
    While(name="inner", condition=Expr("true"), body=Empty(name="again")),
]


@pytest.fixture
async def runner() -> HeldRunner:
    return HeldRunner()


@pytest.fixture
async def server(tmp_path: Path, runner: HeldRunner) -> AsyncIterator[Server]:
    files = FolderFileStore(tmp_path / "files")
    settings = ServerSettings(long_steps_aside=True)
    server = Server(store=MemoryStore(), file_store=files, clock=SystemClock(), settings=settings, version="0")
    server.long_steps = LongSteps(runner)
    await server.open()
    files.open()
    yield server
    runner.may_go.set()
    await server.close()


@pytest.mark.parametrize("body", BODIES, ids=["waits for no time", "does nothing", "does nothing in a loop"])
async def test_the_steps_of_an_endless_case_are_done_aside(server: Server, runner: HeldRunner, body: Activity) -> None:
    flow = Flow(name=FlowName("endless"), body=While(name="loop", condition=Expr("true"), body=body))
    domain = Domain(server)
    await domain.deploy(flow)
    runner.may_go.clear()
    case = await domain.start("endless", {}, who="eve")
    await until(lambda: runner.begun == 1, "it has used up its share")
    assert [each.id for each in await domain.cases()] == [case.id]
    runner.may_go.set()
    await domain.cancel(case.id, who="eve")
    await until(lambda: not server.runtime.manager.live, "it is over")
