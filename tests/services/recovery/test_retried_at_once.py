"""A case was reopened, and somebody tries its failed job again while the server still asks about the first failure.
Whichever of the two comes first, what fails next is a failure of its own, and what ends well has ended well."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend

A = JobActivity(name="a", command="true")
SHIPPED = RuleSet(name="*", exlets={"try-again": exlet("try-again", mend(Primitive.RESUBMIT))})
ANSWERS = ("before it is tried again", "while it runs again", "after it has failed again")


class Gate:
    """Holds the calls whose arguments end with `about`."""

    def __init__(self, call: Callable[..., Awaitable[Any]], *about: str) -> None:
        self._call = call
        self._about = about
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, *given: Any) -> Any:
        if given == self._about:
            self.reached.set()
            await self.opened.wait()
        return await self._call(*given)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def failed_case(world: World) -> CaseId:
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    return case


def where_it_ran(world: World, job: JobId, monkeypatch: pytest.MonkeyPatch) -> Gate:
    queue = world.runtime.proxy.inner[""]
    gate = Gate(queue.status, job)
    monkeypatch.setattr(queue, "status", gate)
    return gate


def what_was_decided(world: World, job: JobId, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(world.store.get, DECISION_KIND, f"{job}:1:1/abort")
    monkeypatch.setattr(world.store, "get", gate)
    return gate


@pytest.mark.parametrize("again", [FAILED, Outcome()], ids=["fails", "ends-well"])
@pytest.mark.parametrize("answered", ANSWERS)
@pytest.mark.parametrize("asked", [where_it_ran, what_was_decided])
async def test_what_fails_again_is_decided_about_anew_and_what_ends_well_is_not_lost(  # FM-8
    world: World,
    asked: Callable[[World, JobId, pytest.MonkeyPatch], Gate],
    answered: str,
    again: Outcome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = await failed_case(world)
    first = await world.decision(case)
    assert first.job is not None
    gate = asked(world, first.job, monkeypatch)
    [waiting] = (await world.runtime.recovery.reopener.reopen(case, who="me")).waiting
    async with asyncio.timeout(PATIENCE_S):
        await gate.reached.wait()
    for turn in ANSWERS:
        if turn == answered:
            gate.opened.set()
            await world.quiet()
        if turn == ANSWERS[0]:
            await world.runtime.administration.retry(waiting, who="me")
            assert await world.take() == ["a"]
            assert await world.status(case) == "running"
        elif turn == ANSWERS[1]:
            await world.report(a=again)
    await world.until_status(case, "completed" if again.ok else "failed")
    await world.quiet()
    found = [(each.id, each.state, each.result) for each in await world.decisions(case)]
    assert found[:2] == [(first.id, "ignored", ""), (waiting, "done", "recovered" if again.ok else "failed")]
    assert [(id.partition(":")[0], state) for id, state, _ in found[2:]] == (
        [] if again.ok else [(f"{first.job}~2", "ignored")]
    )
