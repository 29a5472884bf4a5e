"""Flows that take long to check hold up nobody: neither when they are deployed nor when cases of them begin."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.core import expressions
from mendflow.core.engine import expression_checks
from mendflow.core.engine.expression_checks import FlowJudge
from mendflow.core.engine.plan import NODES_AT_ONCE, compile_flow, compiling
from mendflow.core.expressions import cel
from mendflow.core.expressions.work_budget import WORK, LongWork
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Assign, Copy, Empty, Flow, JobActivity, Parallel, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.reading_cost import tell_cost_of_reading
from mendflow.services.runtime.server import Server
from mendflow.services.runtime.settings import ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import until

TERMS = 300


def long_expression(name: str) -> str:
    return " || ".join(f"{name} == {number}" for number in range(TERMS))


def long_flow(name: str = "long", expressions: int = 3, *, ends_with: str = "") -> Flow:
    jobs = tuple(
        JobActivity(name=f"j{number}", command=f"echo ${{{{ {long_expression(f'{name}{number}')}{ends_with} }}}}")
        for number in range(expressions)
    )
    return Flow(name=FlowName(name), body=Parallel(name="all", branches=jobs))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    files, settings = FolderFileStore(tmp_path / "files"), ServerSettings(long_steps_aside=True)
    server = Server(store=MemoryStore(), file_store=files, clock=SystemClock(), settings=settings, version="0")
    await server.open()
    files.open()
    yield server
    await server.close()


@pytest.fixture
def checked_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that the server itself checks."""
    found = list[str]()
    check = expressions.problem

    def problem(expr: Expr) -> str | None:
        found.append(expr.text)
        return check(expr)

    monkeypatch.setattr(expression_checks, "problem", problem)
    return found


async def test_a_long_flow_is_checked_beside_the_server_and_costs_who_sends_it(  # SE-3
    server: Server, checked_here: list[str]
) -> None:
    costs = list[float]()
    before = tell_cost_of_reading(costs.append)
    flow = long_flow("dear", 4)
    await Domain(server).deploy(flow, who="eve")
    begun = await Domain(server).start("dear", {}, who="eve")
    sent = await Domain(server).start_with_flow(long_flow("sent", 4), {}, who="eve")
    tell_cost_of_reading(before)
    assert sum(map(len, checked_here)) < 2 * 50_000 / 20, "the server checks no more than it has time for"
    assert {begun.flow, sent.flow} == {"dear", "sent"}
    assert sum(costs) > 0.01, "what the process took is counted"


async def test_a_long_flow_with_a_mistake_is_refused_with_all_of_them(server: Server) -> None:  # SE-3
    flow = long_flow("wrong", 4, ends_with=" +")
    with pytest.raises(BadFlow) as refused:
        await Domain(server).deploy(flow, who="eve")
    with pytest.raises(BadFlow) as at_once:
        compile_flow(flow)
    assert [str(each) for each in refused.value.problems] == [str(each) for each in at_once.value.problems]
    assert len(refused.value.problems) == 4 and refused.value.message == at_once.value.message


async def test_a_short_flow_is_checked_at_once(server: Server, checked_here: list[str]) -> None:  # SE-3
    body = Assign(name="a", copies=(Copy(to="x", value="${{ 1 + 1777 }}"),))
    await Domain(server).deploy(Flow(name=FlowName("short"), body=body), who="ann")
    assert checked_here == ["1 + 1777"]
    assert server.flow_compiler._reads.pid is None, "no process was started for it"


async def test_the_process_is_replaced_when_it_was_killed_and_others_have_their_turn(server: Server) -> None:  # SE-3
    reads = server.flow_compiler._reads
    await Domain(server).deploy(long_flow("first"), who="eve")
    assert reads.pid is not None
    reads._process.kill()
    await Domain(server).deploy(long_flow("second"), who="eve")
    waiting = asyncio.create_task(Domain(server).deploy(long_flow("third", 60), who="eve"))
    pid = reads.pid
    await until(lambda: reads._one_at_a_time.locked(), "the third is being checked")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await Domain(server).deploy(long_flow("fourth"), who="ann")
    assert reads.pid != pid, "what nobody waits for any more is not checked to its end"


def test_all_expressions_of_a_flow_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-3
    monkeypatch.setattr(expression_checks, "FLOW_CHARS_MAX", 10_000)
    inner = long_flow("inner", 2)
    assert compile_flow(inner)
    with pytest.raises(BadFlow, match="characters in all; at most 10,000 are taken"):
        compile_flow(Flow(name=FlowName("outer"), body=Empty(name="e"), calls=(inner, long_flow("other", 2))))
    assert compile_flow(long_flow("inner", 9), taken=True), "what was taken before stays"


def test_what_is_known_of_expressions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:  # SE-3
    monkeypatch.setattr(expression_checks, "KNOWN_CHARS_MAX", 100)
    known = expression_checks._KnownProblems()
    for number in range(20):
        known.learn(f"{number:010d}", "")
    assert known.find(f"{19:010d}") == "" and known.find(f"{9:010d}") is None
    assert 5 <= len(known._known) <= 10


def test_a_long_check_is_given_up_and_a_known_one_is_short() -> None:  # SE-3
    flow = long_flow("known", 2)
    with pytest.raises(LongWork):
        _all_of(compiling(flow, judge=FlowJudge(50_000)))
    compile_flow(flow)
    assert _all_of(compiling(flow, judge=FlowJudge(50_000))) == 0


def test_many_activities_are_compiled_with_pauses() -> None:  # SE-3
    steps = tuple(Empty(name=f"e{number}") for number in range(10 * NODES_AT_ONCE))
    assert _all_of(compiling(Flow(name=FlowName("wide"), body=Sequence(name="s", body=steps)), taken=True)) > 30


def test_a_long_expression_is_not_compiled_in_a_step_that_is_to_be_short() -> None:  # SE-3
    text = long_expression("steps")
    with WORK.interrupted_after(40_000), pytest.raises(LongWork):
        cel.compile_expression(text)
    with WORK.interrupted_after(40_000):
        assert cel.compile_expression("steps == 1 || steps == 2").names == {"steps"}
    assert cel.compile_expression(text).evaluate(lambda name: 7) is True


def _all_of(work: Any) -> int:
    """How many pauses there were."""
    return sum(1 for _ in work)
