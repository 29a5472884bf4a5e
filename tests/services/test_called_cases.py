"""Calls as their callers see them: listed when they are over, counted after a restart, and taken over in a re-run."""

from typing import Any

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, Flow, ForEach, Input, JobActivity, Receive, Sequence, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.patience import until

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))


def inner(name: str = "inner", command: str = "work") -> Flow:
    number = {"N": "${{ inputs.n }}"}
    body = Sequence(
        name="s",
        body=(
            JobActivity(name="first", command=command, env=number),
            JobActivity(name="then", command="then", env=number),
        ),
    )
    return Flow(name=FlowName(name), body=body, inputs={"n": Input(type="number", required=True)})


def outer(called: Flow, *after: Any, parallel: bool = True) -> Flow:
    call = Call(name="calls", flow=called.name, inputs={"n": "${{ item }}"})
    loop = ForEach(name="loop", items=[1, 2], body=call, parallel=parallel)
    return Flow(name=FlowName("outer"), body=Sequence(name="all", body=(loop, *after)), calls=(called,))


async def start(domain: Domain, flow: Flow, *, cache_from: str = "") -> str:
    await domain.deploy(flow)
    return (await domain.start(flow.name, {}, who="me", cache_from=cache_from)).id


def ok(spec: JobSpec) -> Outcome:
    return Outcome(outputs=spec.item)


def second_fails(spec: JobSpec) -> Outcome:
    return FAILED if spec.command == "then" and spec.env["N"] == "2" else ok(spec)


async def jobs_of_calls(domain: Domain, case: str) -> dict[str, str]:
    """How each job of each called case came about."""
    found: dict[str, str] = {}
    for called in await domain.cases():
        if called.parent == case:
            number = str(called.inputs["n"])
            found |= {
                f"{item.item} {number}": item.cache_reason or item.state for item in await domain.items(called.id)
            }
    return found


async def test_a_rerun_takes_over_the_jobs_of_the_cases_that_the_same_items_called(domain: Domain, pilot: Any) -> None:
    first = await start(domain, outer(inner(), parallel=False))
    await pilot.run_all(second_fails)
    assert (await domain.case(first)).status == "failed"
    second = await start(domain, outer(inner(), parallel=False), cache_from="last")
    await pilot.run_all(ok)
    assert (await domain.case(second)).status == "completed"
    how = await jobs_of_calls(domain, second)
    assert [name for name, word in how.items() if word.startswith("cached")] == ["first 2", "first 1", "then 1"]
    assert how["then 2"] == "run again: it did not complete in the earlier case"


async def test_jobs_of_a_call_that_was_not_there_before_say_so(domain: Domain, pilot: Any) -> None:
    def flow(name: str) -> Flow:
        return Flow(name=FlowName("outer"), body=Call(name=name, flow="inner", inputs={"n": 1}), calls=(inner(),))

    await start(domain, flow("before"))
    await pilot.run_all(ok)
    second = await start(domain, flow("after"), cache_from="last")
    await pilot.run_all(ok)
    assert set((await jobs_of_calls(domain, second)).values()) == {"run again: the earlier case had no such item"}


async def test_a_called_case_that_is_run_again_goes_on_taking_over_after_a_restart(
    server: Any, domain: Domain, pilot: Any, restart: Any
) -> None:
    await start(domain, outer(inner(), UserTask(name="ask", role="pi", title="?")))
    await pilot.run_all(ok)
    await start(domain, outer(inner(command="other"), UserTask(name="ask", role="pi", title="?")), cache_from="last")
    await restart(server)
    await pilot.run_all(ok)
    how = await jobs_of_calls(domain, (await domain.case("last")).id)
    assert how["first 1"] == "run again: its command changed"
    assert how["then 1"].startswith("cached")


async def test_a_call_that_is_over_is_listed_with_its_case_and_counted_after_a_restart(
    server: Any, domain: Domain, pilot: Any, restart: Any
) -> None:
    case = await start(domain, outer(inner(), UserTask(name="ask", role="pi", title="?")))
    assert [item.state for item in await domain.items(case, name="calls")] == ["running", "running"]
    await pilot.run_all(ok)
    items = await domain.items(case, name="calls")
    assert [(item.item, item.state, item.reason) for item in items] == [
        ("calls[0]", "completed", f"case {case}.1"),
        ("calls[1]", "completed", f"case {case}.2"),
    ]
    assert (await domain.why(f"{case}:calls[0]")).sentence == "calls[0] (1) has completed."
    await restart(server)
    [count] = [count for count in (await domain.case(case)).counts if count.name == "calls"]
    assert (count.done, count.running) == (2, 0)


async def test_a_call_that_no_case_came_of_is_listed_as_failed(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("outer"), body=Call(name="go", flow="nowhere")))
    case = (await domain.start("outer", {}, who="me")).id

    async def has_failed() -> bool:
        return (await domain.case(case)).status == "failed"

    await until(has_failed, "the failure")
    [item] = await domain.items(case)
    assert (item.item, item.state) == ("go", "failed")
    assert item.fault is not None and "nowhere" in item.fault.message


async def test_a_receive_that_is_over_is_listed_with_what_it_got(domain: Domain) -> None:
    body = Sequence(name="s", body=(Receive(name="hear", channel="c"), UserTask(name="ask", role="pi", title="?")))
    await domain.deploy(Flow(name=FlowName("f"), body=body))
    case = (await domain.start("f", {}, who="me")).id
    assert [(item.item, item.state) for item in await domain.items(case)] == [("hear", "waiting")]
    await domain.send(case, "c", {"n": 1})
    [heard] = await domain.items(case, name="hear")
    assert (heard.kind, heard.state, heard.outputs) == ("receive", "completed", {"n": 1})
    assert [count.name for count in (await domain.case(case)).counts] == ["ask"], "it is no work"


async def test_a_called_case_keeps_its_name_when_the_store_is_away_as_it_begins(
    server: Server, domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(name: str) -> str | None:
        raise StoreUnavailable("the store is away")

    with monkeypatch.context() as outage:
        outage.setattr(server.runtime.flows, "project_of_removed", away)
        await start(domain, outer(inner(), parallel=False))
        await pilot.run_all(ok)
    called = [each.id for each in await domain.cases() if each.parent]
    documents = (await server.runtime.manager.documents(called)).values()
    assert [(each.counted_as, each.counted_flow) for each in documents] == [("", "inner")] * 2
    assert {each.flow for stats in await domain.stats() for each in stats.cases_ended} == {"outer", "inner"}
    assert (await domain.recount_learning(who="ann")).jobs == 4
