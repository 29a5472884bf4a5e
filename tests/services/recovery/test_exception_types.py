"""Each type of exception: when it is told of, what its rules see, and what it holds (EX-1)."""

import asyncio
from pathlib import Path

from mendflow.core.model.flow import Call, Input, JobActivity, Parallel, Sequence, Stage, UserTask
from mendflow.core.model.jobs import Outcome, Resources
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.templates import ResourceTemplates
from mendflow.formats.yaml import load_flow
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

JOB = JobActivity(name="a", command="true")


async def test_a_case_pre_constraint_holds_the_case_before_anything_of_it_starts(world: World) -> None:
    # EX-1 CasePreConstraint
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_PRE, ("case.data.rows > 10", "stop"), exlets=[stop]))
    one = flow(JOB, inputs={"rows": Input()})
    refused = await world.start(one, rows=11)
    await world.until_status(refused, "cancelled")
    assert await world.domain.items(refused) == []
    assert (await world.decision(refused)).result == "removed"
    let_in = await world.start(one, rows=10)
    assert await world.take() == ["a"]
    await world.report(a=Outcome())
    assert await world.status(let_in) == "completed"
    assert await world.decisions(let_in) == []


async def test_what_is_written_before_a_case_begins_lies_over_the_first_values_of_its_variables(
    world: World, tmp_path: Path
) -> None:
    # EX-1 EX-4
    mended = exlet("mended", mend(Primitive.WRITE, "case", values={"x": 77, "hall.seats": 5}))
    await world.put(rule_set("f", ExceptionType.CASE_PRE, ("true", "mended"), exlets=[mended]))
    file = tmp_path / "f.yaml"
    file.write_text("""
variables: {x: 5, next: "${{ x + 1 }}", hall: {seats: 9, name: old}, other: 3}
jobs: {a: "echo ${{ x }} ${{ next }} ${{ hall.seats }} ${{ hall.name }} ${{ other }}"}
""")
    case = await world.start(load_flow(file))
    await world.take()
    [held] = world.pilot.held
    assert held.spec.command == "echo 77 78 5 old 3"
    assert (await world.decision(case)).state == "done"


async def test_an_item_pre_constraint_holds_the_item_before_it_goes_out(world: World) -> None:
    # EX-1 ItemPreConstraint
    more = exlet("more", mend(Primitive.WRITE, "item", values={"N": "2"}))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ('item.data.N == "1"', "more"), exlets=[more]))
    case = await world.start(flow(JobActivity(name="a", command="true", env={"N": "1"})))
    await world.take()
    [held] = world.pilot.held
    assert held.spec.env == {"N": "2"}
    assert (await world.until_decided(case, "done")).item == "a"


async def test_an_item_post_constraint_holds_the_end_of_an_item(world: World) -> None:
    # EX-1 ItemPostConstraint
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ITEM_POST, ("item.outputs < 5", "again"), exlets=[again]))
    then = JobActivity(name="b", command="true")
    case = await world.start(flow(Sequence(name="s", body=(JOB, then))))
    await world.take()
    await world.report(a=Outcome(outputs=3))
    assert await world.take() == ["a"], "it runs again, and what follows does not"
    assert (await world.until_decided(case, "done")).result == "restarted"
    await world.report(a=Outcome(outputs=5))
    assert await world.take() == ["b"]


async def test_a_write_at_item_post_changes_what_the_item_gave_before_the_flow_sees_it(world: World) -> None:
    # EX-1 ItemPostConstraint
    fix = exlet(
        "fix", mend(Primitive.WRITE, values={"total": 7, "parts[0].size": 2}), mend(Primitive.WRITE, values={"x": 1})
    )
    await world.put(rule_set("f", ExceptionType.ITEM_POST, ("item.outputs.total < 0", "fix"), exlets=[fix]))
    then = JobActivity(name="b", command="true", env={"N": "${{ jobs.a.outputs.total }}"})
    case = await world.start(flow(Sequence(name="s", body=(JOB, then)), outputs={"given": "${{ jobs.a.outputs }}"}))
    await world.take()
    await world.report(a=Outcome(outputs={"total": -1, "kept": "k", "parts": [{"size": 1}]}))
    assert await world.take() == ["b"]
    [held] = world.pilot.held
    assert held.spec.env == {"N": "7"}, "what comes next sees what was written"
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"given": {"total": 7, "kept": "k", "parts": [{"size": 2}], "x": 1}}
    written = [each.message for each in await world.domain.history(case) if each.what == "written"]
    assert written == ["total, parts[0].size", "x"]


async def test_a_write_at_item_post_after_a_restart_is_for_the_new_run(world: World) -> None:
    # EX-1 ItemPostConstraint
    again = exlet("again", mend(Primitive.RESTART), mend(Primitive.WRITE, values={"N": "5"}))
    await world.put(rule_set("f", ExceptionType.ITEM_POST, ("item.outputs == null", "again"), exlets=[again]))
    case = await world.start(flow(JOB, outputs={"given": "${{ jobs.a.outputs }}"}))
    await world.take()
    await world.report(a=Outcome())
    await world.take()
    await world.until_decided(case, "done")
    await world.report(a=Outcome(outputs={"n": 1}))
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"given": {"n": 1}}


async def test_a_write_at_item_post_into_what_has_no_names_fails_and_says_why(world: World) -> None:
    # EX-1 ItemPostConstraint
    fix = exlet("fix", mend(Primitive.WRITE, values={"total": 7}))
    await world.put(rule_set("f", ExceptionType.ITEM_POST, ("true", "fix"), exlets=[fix]))
    case = await world.start(flow(JOB, outputs={"given": "${{ jobs.a.outputs }}"}))
    await world.take()
    await world.report(a=Outcome(outputs=3))
    failed = await world.until_decided(case, "failed")
    assert "item a gave 3, which has no names that could be written; `force-complete` with `outputs`" in failed.note
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"given": 3}


async def test_a_case_post_constraint_holds_the_end_of_a_case(world: World) -> None:
    # EX-1 CasePostConstraint
    fix = exlet("fix", mend(Primitive.WRITE, "case", values={"total": 7}))
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("outcome.outputs.total < 0", "fix"), exlets=[fix]))
    case = await world.start(flow(JOB, outputs={"total": "${{ jobs.a.outputs }}"}))
    await world.take()
    await world.report(a=Outcome(outputs=-1))
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"total": 7}


async def test_a_timeout_of_a_task_asks_its_own_rules_and_those_of_what_runs_beside_it(world: World) -> None:
    # EX-1 Timeout
    done = exlet("done", mend(Primitive.COMPLETE, outputs="late"))
    drop = exlet("drop", mend(Primitive.REMOVE))
    rules = rule_set("f", ExceptionType.TIMEOUT, ("true", "done"), exlets=[done, drop])
    beside = rule_set("f", ExceptionType.TIMEOUT, ('timed_out == "a"', "drop"), task="b").trees[ExceptionType.TIMEOUT]
    rules.trees[ExceptionType.TIMEOUT].update(beside)
    await world.put(rules)
    late, other = UserTask(name="a", role="clerk", deadline_ms=30), UserTask(name="b", role="clerk")
    case = await world.start(flow(Parallel(name="p", branches=(late, other)), outputs={"a": "${{ jobs.a.outputs }}"}))
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"a": "late"}
    assert {(each.item, each.exlet) for each in await world.decisions(case)} == {("a", "done"), ("b", "drop")}


async def test_a_timeout_of_a_job_is_when_it_runs_longer_than_expected(world: World) -> None:
    # EX-1 Timeout
    done = exlet("done", mend(Primitive.COMPLETE, outputs="enough"))
    await world.put(rule_set("f", ExceptionType.TIMEOUT, ("job.expected_ms > 0", "done"), exlets=[done]))
    case = await world.start(flow(JobActivity(name="a", command="true", expected_ms=30)))
    await world.take()
    await world.until_status(case, "completed")
    assert (await world.decision(case)).context["timed_out"] == "a"


async def test_a_case_external_trigger_is_raised_by_somebody(world: World) -> None:
    # EX-1 CaseExternalTrigger
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_EXTERNAL, ('trigger == "band broke up"', "stop"), exlets=[stop]))
    case = await world.start(flow(JOB))
    decision = await world.runtime.administration.raise_exception(case, "band broke up", who="ann")
    assert decision.exlet == "stop"
    await world.until_status(case, "cancelled")


async def test_an_item_external_trigger_is_raised_on_one_item(world: World) -> None:
    # EX-1 ItemExternalTrigger
    done = exlet("done", mend(Primitive.COMPLETE))
    await world.put(rule_set("f", ExceptionType.ITEM_EXTERNAL, ('trigger == "not needed"', "done"), exlets=[done]))
    case = await world.start(flow(Parallel(name="p", branches=(JOB, JobActivity(name="b", command="true")))))
    await world.runtime.administration.raise_exception(case, "not needed", "a", who="ann")
    await world.until_decided(case, "done")
    assert {item.item: item.state for item in await world.domain.items(case)} == {"a": "completed", "b": "waiting"}


async def test_an_abort_is_told_of_every_failed_attempt_of_a_job(world: World) -> None:
    # EX-1 ItemAbort
    again = exlet("again", mend(Primitive.RESUBMIT, resources={"memory_bytes": "${{ job.memory_bytes + 5 }}"}))
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation < 3", "again"), exlets=[again]))
    case = await world.start(flow(JOB))
    for _ in range(2):
        await world.take()
        await world.report(a=FAILED)
    await world.take()
    [third] = world.pilot.held
    assert third.spec.resources.memory_bytes == 10
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    assert [(each.exlet, each.state) for each in await world.decisions(case)] == [
        ("again", "done"),
        ("again", "done"),
        ("", "ignored"),
    ]


async def test_an_abort_is_told_of_tasks_calls_and_stagings_that_fail(world: World) -> None:
    # EX-1 ItemAbort
    done = exlet("done", mend(Primitive.COMPLETE, outputs="mended"))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "done"), exlets=[done], task="*"))
    call = Call(name="c", flow="g")
    gone = Stage(name="s", files={"x": "nowhere.txt"})
    task = UserTask(name="t", role="clerk")
    await world.domain.deploy(flow(JobActivity(name="z", command="false"), "g"))
    case = await world.start(flow(Parallel(name="p", branches=(call, gone, task))))
    [offered] = await world.domain.worklist(case=case)
    await world.domain.reject(offered.id, who="ann")
    await world.take()
    await world.report(z=FAILED)
    await world.until_status(case, "completed")
    kinds = {each.context["item"]["kind"]: each.result for each in await world.decisions(case)}
    assert kinds == {"call": "completed", "stage": "completed", "user-task": "completed"}


async def test_a_resource_is_unavailable_when_no_pilot_could_ever_take_the_job(world: World) -> None:
    # EX-1 ResourceUnavailable
    less = exlet("less", mend(Primitive.RESUBMIT, resources={"gpus": 0}))
    rules = rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able && capacity.pilots > 0", "less"), exlets=[less])
    await world.put(rules)
    await world.pilot.sync()
    case = await world.start(flow(JobActivity(name="a", command="true", resources=ResourceTemplates(gpus=8))))
    assert await world.take() == ["a"]
    assert world.pilot.held[0].spec.resources.gpus == 0
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    assert (await world.decision(case)).result == "recovered"


async def test_a_resource_is_unavailable_when_nobody_takes_the_job_for_a_set_time(world: World) -> None:
    # EX-1 ResourceUnavailable
    tell = exlet("tell", mend(Primitive.NOTIFY, message="nobody takes ${{ item.name }}"))
    rules = rule_set("f", ExceptionType.UNAVAILABLE, ("job.waiting_ms >= 60", "tell"), exlets=[tell])
    await world.put(rules)
    case = await world.start(flow(JOB))
    decision = await world.until_decided(case, "done")
    assert decision.context["job"]["waiting_ms"] >= 60
    assert decision.context["capacity"]["pilots"] == 0
    await asyncio.sleep(0.1)
    assert len(await world.decisions(case)) == 1, "it lasts, and is told once"


async def test_a_resource_is_not_unavailable_while_a_pilot_that_could_take_the_job_is_on_its_way(world: World) -> None:
    tell = exlet("tell", mend(Primitive.NOTIFY, message="nobody takes ${{ item.name }}"))
    await world.put(rule_set("f", ExceptionType.UNAVAILABLE, ("!job.able", "tell"), exlets=[tell]))
    asked: list[Resources] = []
    coming = True

    def is_pilot_coming(needs: Resources) -> bool:
        asked.append(needs)
        return coming

    world.server.runtime.recovery.watches._on_the_way = is_pilot_coming
    case = await world.start(flow(JOB))

    async def asked_often() -> bool:
        return len(asked) >= 10

    await world.until(asked_often)
    assert not await world.decisions(case)
    coming = False
    await world.until_decided(case, "done")


async def test_a_constraint_is_violated_while_the_job_runs(world: World) -> None:
    # EX-1 ConstraintViolation
    stop = exlet("stop", mend(Primitive.FAIL, message="it went wrong", throw=True))
    await world.put(rule_set("f", ExceptionType.VIOLATION, ("values.loss > 10", "stop"), exlets=[stop]))
    case = await world.start(flow(JOB))
    await world.take()
    world.pilot.values = {"loss": 3}
    await world.pilot.sync()
    await world.quiet()
    assert await world.decisions(case) == []
    world.pilot.values = {"loss": 12}
    while await world.status(case) == "running":
        await world.pilot.sync(wait_ms=5)
    assert await world.status(case) == "failed"
    assert (await world.decision(case)).context["values"] == {"loss": 12}


async def test_selection_lets_rules_choose_the_worklet_of_a_call(world: World) -> None:
    # EX-1 EX-8: the eleventh tree set
    for name in ("small", "large"):
        await world.domain.deploy(flow(JobActivity(name=name, command="true"), name, inputs={"n": Input()}))
    rules = rule_set("f", ExceptionType.SELECTION, ("item.data.n > 10", "large"), ("true", "small"))
    await world.put(rules)
    await world.start(flow(Call(name="a", inputs={"n": 11})))
    assert await world.take() == ["large"]


async def test_a_type_without_rules_is_ignored(world: World) -> None:
    # EX-5
    case = await world.start(flow(JOB))
    await world.take()
    await world.report(a=Outcome())
    assert await world.status(case) == "completed"
    assert await world.decisions(case) == []
