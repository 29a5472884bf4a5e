"""What conditions see: the case, its items, the job, the fault, the past, the place, and what was registered (EX-6)."""

from typing import Any

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Assign, Call, Copy, Input, JobActivity, Parallel, Sequence, UserTask
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.templates import ResourceTemplates
from mendflow.services.recovery.contexts import CONTEXT_BYTES_MAX, bounded_context
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set, tree

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
OUT_OF_MEMORY = Outcome(
    fault=Fault(
        name="memoryLimit",
        category=Category.MEMORY,
        message="it took 300 bytes",
        signal=9,
        stage="execution",
        data={"peak_bytes": 300},
    ),
    log_tail="killed",
    measures=Measurements(peak_bytes=300, cpu_ms=7, ran_ms=9),
)


async def failed(world: World, what: Any, outcome: Outcome = FAILED, **inputs: Any) -> dict[str, Any]:
    """The context of the abort of `a`."""
    case = await world.start(what, **inputs)
    await world.take()
    await world.report(a=outcome)
    return (await world.decisions(case))[-1].context


async def test_a_condition_sees_the_cases_data_age_flow_version_and_the_status_of_all_items(world: World) -> None:
    # EX-6
    first = Assign(name="v", copies=(Copy("total", 4),))
    body = Sequence(name="s", body=(first, JobActivity(name="z", command="true"), Parallel(name="p", branches=(A, B))))
    case = await world.start(flow(body, inputs={"rows": Input()}), rows=3)
    await world.take()
    await world.report(z=Outcome(outputs="left"))
    await world.take(items=2)
    await world.report(a=FAILED)
    context = (await world.decision(case)).context
    assert context["case"]["data"] == {"rows": 3, "total": 4}
    assert (context["case"]["flow"], context["case"]["status"]) == ("f", "running")
    assert context["case"]["age_ms"] >= 0
    assert context["case"]["version"] == (await world.case(case)).digest
    assert context["case"]["jobs"]["z"]["outputs"] == "left"
    assert context["items"]["z"] == "completed"
    assert context["items"]["b"] in ("running", "waiting")


async def test_a_condition_sees_the_job_and_the_fault(world: World) -> None:
    # EX-6 FM-12
    job = JobActivity(name="a", command="run it", resources=ResourceTemplates(memory_bytes=200), retries=0)
    context = await failed(world, flow(job), OUT_OF_MEMORY)
    seen = {
        name: context["job"][name] for name in ("memory_bytes", "peak_bytes", "signal", "stage", "log_tail", "host")
    }
    assert seen == {
        "memory_bytes": 200,
        "peak_bytes": 300,
        "signal": 9,
        "stage": "execution",
        "log_tail": "killed",
        "host": "here",
    }
    assert (context["job"]["generation"], context["job"]["level"], context["job"]["pilot"]) == (1, 0, "p-1")
    fault = context["fault"]
    assert (fault["type"], fault["category"], fault["recoverable"]) == ("memoryLimit", "memory", True)
    assert context["site"]["largest"]["memory_bytes"] == 8 << 30
    assert (context["capacity"]["slots"], context["capacity"]["pilots"]) == (4, 1)
    assert context["capacity"]["levels"] == len(world.runtime.levels.waits_ms) == 2


async def test_a_condition_sees_how_often_an_item_was_begun(world: World) -> None:
    # EX-6: the attempts since it last began, and one for each restart before
    again, retry = exlet("again", mend(Primitive.RESTART)), exlet("retry", mend(Primitive.RESUBMIT))
    rules = rule_set("f", ExceptionType.ITEM_POST, ("item.attempts < 4", "again"), exlets=[again, retry])
    rules.trees.update(rule_set("f", ExceptionType.ABORT, ("item.attempts < 2", "retry")).trees)
    await world.put(rules)
    case = await world.start(flow(A))
    for outcome in (FAILED, Outcome(), Outcome(), Outcome(), Outcome()):
        await world.take()
        await world.report(a=outcome)
        if await world.status(case) == "completed":
            break
    decisions = await world.decisions(case)
    told = [(each.type, each.context["item"]["attempts"], each.context["job"]["attempts"]) for each in decisions]
    after = ExceptionType.ITEM_POST
    assert told == [(ExceptionType.ABORT, 1, 1), (after, 2, 2), (after, 2, 1), (after, 3, 1)]
    await world.until_status(case, "completed")


async def test_a_condition_sees_how_often_a_task_was_offered(memory: World) -> None:
    # EX-6
    again = exlet("again", mend(Primitive.RESTART))
    rules = rule_set("f", ExceptionType.ITEM_EXTERNAL, ("item.attempts < 3", "again"), exlets=[again])
    await memory.put(rules)
    case = await memory.start(flow(UserTask(name="a", role="clerk")))
    seen = []
    for _ in range(3):
        decision = await memory.runtime.administration.raise_exception(case, "late", "a", who="ann")
        seen.append(decision.context["item"]["attempts"])
        await memory.quiet()
    assert seen == [1, 2, 3]


async def test_a_condition_sees_what_happened_before_in_numbers(world: World) -> None:
    # EX-6: history
    seen = [(await failed(world, flow(A)))["history"] for _ in range(3)]
    assert [each["task"]["failures"] for each in seen] == [0, 1, 2]
    assert [each["flow"]["failed"] for each in seen] == [0, 1, 2]
    assert seen[2]["flow"]["failure_rate"] == 1.0
    assert [each["host"]["jobs_lately"] for each in seen] == [0, 1, 2]
    assert seen[2]["cause"]["count"] == 2
    await world.restart()
    again = (await failed(world, flow(A)))["history"]
    assert (again["task"]["failures"], again["flow"]["failed"], again["cause"]["count"]) == (3, 3, 3)


async def test_a_condition_that_errs_does_not_hold_and_says_so(world: World) -> None:
    # EX-6: safe whoever wrote it
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    done = exlet("done", mend(Primitive.COMPLETE))
    rules = rule_set(
        "f", ExceptionType.ABORT, ("case.data.nothing.here > 3", "stop"), ("true", "done"), exlets=[stop, done]
    )
    await world.put(rules)
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "completed")
    said = (await world.decision(case)).conclusion
    assert said is not None
    assert said.exlet == "done"
    assert any(step.error for step in said.trail if step.rule == 0)


def test_what_is_kept_of_a_context_is_bounded() -> None:
    long = {"case": {"id": "c", "data": {f"k{n}": "x" * 500 for n in range(150)}}, "job": {"log_tail": "y" * 9_000}}
    kept = bounded_context(long)
    assert kept["job"]["log_tail"].endswith("y")
    assert len(kept["job"]["log_tail"]) < 3_000
    assert kept["left_out"] == ["case"]
    assert kept["case"] == {"id": "c"}
    assert len(str(kept)) < CONTEXT_BYTES_MAX


def test_a_small_context_is_kept_as_it_is() -> None:
    small = {"case": {"data": {"n": [1, 2]}}, "now": 3}
    assert bounded_context(small) == small


async def test_a_condition_sees_how_long_ago_an_item_began(world: World) -> None:
    # EX-6: a job, a task and a call; not an item that has not gone out
    types = (ExceptionType.ABORT, ExceptionType.ITEM_PRE, ExceptionType.ITEM_EXTERNAL)
    rules = {type: {"*": tree(("item.age_ms >= 30", "look"), ("true", "young"))} for type in types}
    exlets = {name: exlet(name, mend(Primitive.NOTIFY, message=name)) for name in ("look", "young")}
    await world.domain.deploy(flow(JobActivity(name="inner", command="true"), "g"))
    parts = (JobActivity(name="a", command="true"), UserTask(name="t", role="clerk"), Call(name="c", flow="g"))
    case = await world.start(flow(Parallel(name="p", branches=parts, on_fault="finish")))
    await world.take(items=2)
    await world.put(RuleSet(name="f", trees=rules, exlets=exlets))
    await world.server.clock.sleep(40)
    await world.restart()
    await world.report(a=FAILED)
    for item in ("t", "c"):
        await world.runtime.administration.raise_exception(case, "look at it", item)
    found = {str(each.item): each.exlet for each in await world.decisions(case)}
    assert found == {"a": "look", "t": "look", "c": "look"}
    late = await world.start(flow(Sequence(name="s", body=(JobActivity(name="b", command="true"),)), "f"))
    decision = await world.until_decided(late, "done")
    assert (decision.exlet, decision.context["item"]["age_ms"]) == ("young", 0)
