"""The next case of a flow begins with the plan of the one before; few plans are kept."""

import gc

import pytest

from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.services.base.long_reads import LongReads
from mendflow.services.cases import flow_compiler
from mendflow.services.cases.flow_compiler import FlowCompiler, FlowMemo


def echo(name: str) -> Flow:
    return Flow(name=FlowName(name), body=JobActivity(name="echo", command="echo"))


async def test_a_flow_is_compiled_once() -> None:
    compiler, flow = FlowCompiler(LongReads()), echo("one")
    plan = await compiler.plan_of(flow)
    assert await compiler.plan_of(flow) is plan
    assert await compiler.plan_of(echo("one")) is not plan


async def test_what_is_only_checked_and_what_is_large_is_not_kept() -> None:
    compiler, flow = FlowCompiler(LongReads()), echo("one")
    plan = await compiler.plan_of(flow)
    for number in range(flow_compiler.PLANS_KEPT_MAX):
        await compiler.check(echo(f"checked{number}"))
    assert await compiler.plan_of(flow) is plan
    large = Flow(name=FlowName("large"), body=JobActivity(name="echo", command="#" * flow_compiler.FLOW_KEPT_BYTES_MAX))
    assert await compiler.plan_of(large) is not await compiler.plan_of(large)


async def test_a_large_flow_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Flow] = []

    def is_large(flow: Flow) -> bool:
        measured.append(flow)
        return True

    monkeypatch.setattr(flow_compiler, "is_large", is_large)
    compiler, flow, other = FlowCompiler(LongReads()), echo("one"), echo("one")
    for _ in range(3):
        await compiler.plan_of(flow)
        await compiler.plan_of(other)
    assert list(map(id, measured)) == [id(flow), id(other)]


async def test_what_was_computed_goes_with_its_flow() -> None:
    computed: list[str] = []
    memo = FlowMemo[None](lambda flow: computed.append(flow.name))
    flow = echo("one")
    memo.of(flow)
    memo.of(flow)
    del flow
    gc.collect()
    memo.of(echo("two"))
    assert computed == ["one", "two"]
    assert not memo.known_count


async def test_the_plans_that_were_used_last_are_kept() -> None:
    compiler, flow = FlowCompiler(LongReads()), echo("first")
    plan = await compiler.plan_of(flow)
    for number in range(flow_compiler.PLANS_KEPT_MAX - 1):
        await compiler.plan_of(echo(f"other{number}"))
    assert await compiler.plan_of(flow) is plan
    for number in range(flow_compiler.PLANS_KEPT_MAX):
        await compiler.plan_of(echo(f"another{number}"))
    assert await compiler.plan_of(flow) is not plan
