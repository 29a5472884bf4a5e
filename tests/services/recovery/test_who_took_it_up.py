"""Who has taken up a failure: what somebody has run again, or rejected, is not something that nobody has handled, and
every count and list says so alike."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mendflow.core.model.flow import Call, Catch, Empty, Input, JobActivity, Parallel, Scope, Throw, UserTask
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, FailureGroup
from mendflow.core.model.retention import PruneRequest
from mendflow.core.model.rules import RuleSet
from mendflow.services.learning.learned_failures import decode_decided, learned_failure
from mendflow.services.recovery.failures import is_rejection
from mendflow.services.recovery.settled_cases import PRUNED_RUNS_KIND
from mendflow.services.retention import pruned_cases
from mendflow.services.retention.pruned_cases import PRUNED_KIND
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")
SHIPPED = RuleSet(name="*", exlets={"try-again": exlet("try-again", mend(Primitive.RESUBMIT))})
ASKED = UserTask(name="approve", role="boss", title="Publish?")
KINDS = ("waiting", "unhandled", "run-again", "settled", "rejected", "told", "handled")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def fails(world: World, case: CaseId) -> CaseId:
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    return case


async def failed_case(world: World) -> CaseId:
    return await fails(world, await world.start(flow(A)))


async def rejected_case(world: World, comment: str = "too dear", **more: Any) -> CaseId:
    case = await world.start(flow(ASKED, name="g", **more))
    [task] = await world.domain.worklist(state="offered")
    await world.domain.reject(task.id, who="ann", comment=comment)
    await world.until_status(case, "failed")
    return case


async def only_group(world: World) -> FailureGroup:
    """The only cause, of which every count is the same wherever it is told, and leads to so many rows."""
    [group] = await world.domain.failures()
    counted = {
        "waiting": group.waiting,
        "unhandled": group.unhandled,
        "run-again": group.run_again,
        "settled": group.settled,
        "rejected": group.rejected,
        "told": group.told,
    }
    counted["handled"] = group.count - sum(counted.values())
    [trend] = (await type(world.domain)(world.server).overview()).failures  # an answer is kept for a while
    trends = (trend.unhandled, trend.run_again, trend.settled, trend.rejected, trend.waiting, trend.told)
    counts_told = tuple(counted[kind] for kind in ("unhandled", "run-again", "settled", "rejected", "waiting", "told"))
    assert (trend.count, trends) == (group.count, counts_told)
    counts = await world.domain.failure_counts(group.id)
    assert sum(each.unhandled for each in counts.periods) == group.unhandled
    listed = [each for each in await world.domain.decisions(DecisionQuery(group=group.id)) if not each.replaced_by]
    for kind in KINDS:
        rows = await world.domain.decisions(DecisionQuery(group=group.id, handling=kind))
        assert [each.id for each in rows] == [each.id for each in listed if each.handling == kind]
        assert len(rows) == counted[kind], kind
    view = await world.domain.failure(group.id)
    assert view.group == group
    assert view.open_failed == group.unhandled, "rules are applied to what nobody has taken up"
    return group


async def told(world: World) -> tuple[int, int, int]:
    group = await only_group(world)
    return group.unhandled, group.run_again, group.rejected


async def test_ui_1_a_failure_whose_case_was_run_again_is_not_left_to_be_handled(world: World) -> None:
    first, _ = await failed_case(world), await failed_case(world)
    assert await told(world) == (2, 0, 0)
    again = (await world.domain.rerun(first, who="me")).id
    assert await told(world) == (1, 1, 0), "while it runs"
    await fails(world, again)
    assert await told(world) == (2, 1, 0), "its own failure counts in place of the first"
    last = (await world.domain.rerun(again, who="me")).id
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(last, "completed")
    assert await told(world) == (1, 2, 0)


async def test_ui_1_a_later_run_that_was_cancelled_stands_for_nothing(world: World) -> None:
    case = await failed_case(world)
    again = (await world.domain.rerun(case, who="me")).id
    await world.domain.cancel(again, who="me")
    await world.until_status(again, "cancelled")
    assert await told(world) == (1, 0, 0)


async def cancelled_rerun(world: World, case: CaseId) -> CaseId:
    again = (await world.domain.rerun(case, who="me")).id
    await world.domain.cancel(again, who="me")
    await world.until_status(again, "cancelled")
    return again


async def completed_rerun(world: World, case: CaseId) -> CaseId:
    again = (await world.domain.rerun(case, who="me")).id
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(again, "completed")
    return again


async def prune(world: World, *cases: CaseId) -> None:
    run = await world.domain.prune(PruneRequest(cases=[*cases]), who="me")

    async def is_over() -> bool:
        return (await world.domain.prune_run(run.id)).state != "running"

    await world.until(is_over, "the prune")
    done = await world.domain.prune_run(run.id)
    assert (done.state, done.cases) == ("done", len(cases)), done


async def test_ui_1_who_runs_a_cancelled_run_again_has_taken_up_what_that_stood_for(world: World) -> None:
    case = await failed_case(world)
    twice = await cancelled_rerun(world, await cancelled_rerun(world, case))
    assert await told(world) == (1, 0, 0)
    last = (await world.domain.rerun(twice, who="me")).id
    assert await told(world) == (0, 1, 0)
    await world.domain.cancel(last, who="me")
    await world.until_status(last, "cancelled")
    assert await told(world) == (1, 0, 0)
    await completed_rerun(world, last)
    assert await told(world) == (0, 1, 0)


async def test_ui_1_a_failure_stays_taken_up_when_the_later_run_is_pruned(world: World) -> None:
    case = await failed_case(world)
    await prune(world, await completed_rerun(world, case))
    assert await told(world) == (0, 1, 0)
    for waiting in (await world.runtime.recovery.reopener.reopen(case, who="me")).waiting:
        await world.runtime.administration.retry(waiting, who="me")
    await fails(world, case)
    assert await told(world) == (1, 0, 0), "what it fails by anew is another failure"


async def test_ui_1_a_failure_stays_taken_up_whichever_of_its_later_runs_are_pruned_first(world: World) -> None:
    first, second, third = [await failed_case(world) for _ in range(3)]
    for case, order in ((first, "between"), (second, "last"), (third, "together")):
        between = await cancelled_rerun(world, case)
        last = await completed_rerun(world, between)
        match order:
            case "between":
                await prune(world, between)
                assert (await told(world))[1] == 1
                await prune(world, last)
            case "last":
                await prune(world, last)
                assert (await told(world))[1] == 2
                await prune(world, between)
            case _:
                await prune(world, last, between)
    assert await told(world) == (0, 3, 0)
    await prune(world, first, second, third)
    assert [found.id async for found in world.store.scan(PRUNED_RUNS_KIND)] == []


async def test_ui_1_a_note_of_a_cancelled_run_stays_as_long_as_the_case_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruned_cases, "KEPT_MS", -1)
    case, other = await failed_case(world), await failed_case(world)
    between = await cancelled_rerun(world, await cancelled_rerun(world, case))
    last = await completed_rerun(world, between)
    [first] = [each.id for each in await world.domain.cases() if each.stands_for == case]
    await prune(world, first, between, await completed_rerun(world, other))
    await prune(world, other)
    assert [found.id async for found in world.store.scan(PRUNED_KIND)] == sorted([first, between])
    await prune(world, last)
    assert await told(world) == (0, 1, 0)
    await prune(world, case)
    assert [found.id async for found in world.store.scan(PRUNED_KIND)] == []


async def test_ui_1_a_run_that_was_cancelled_stands_for_nothing_when_it_is_pruned_either(world: World) -> None:
    case = await failed_case(world)
    between = await cancelled_rerun(world, case)
    await prune(world, between)
    assert await told(world) == (1, 0, 0)


async def test_ui_1_a_failure_whose_case_completed_or_was_cancelled_is_left_to_nobody(world: World) -> None:
    caught = flow(Scope(name="s", body=A, catches=(Catch(body=Empty(name="e")),)), name="caught")
    case = await world.start(caught)
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "completed")
    group = await only_group(world)
    assert (group.unhandled, group.settled) == (0, 1)
    two = Parallel(name="p", branches=(A, JobActivity(name="b", command="true")), on_fault="finish")
    both = flow(two, name="both")
    case = await world.start(both)
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.domain.cancel(case, who="me")
    await world.until_status(case, "cancelled")
    group = await only_group(world)
    assert (group.unhandled, group.settled) == (0, 2)


async def test_ui_1_who_corrects_the_inputs_has_taken_the_failure_up(world: World) -> None:
    counted = flow(A, inputs={"n": Input(type="number", default=1)})
    case = await fails(world, await world.start(counted))
    await world.domain.rerun(case, who="me", inputs={"n": 2})
    assert await told(world) == (0, 1, 0)


async def test_ui_1_who_only_uses_the_results_of_a_case_has_not_taken_up_its_failure(world: World) -> None:
    counted = flow(A, inputs={"n": Input(type="number", default=1)})
    case = await fails(world, await world.start(counted))
    other = await world.domain.start("f", {"n": 2}, who="me", cache_from=case)
    assert other.rerun_of == case
    assert await told(world) == (1, 0, 0), "it does other work"
    await world.domain.start("f", {"n": 1}, who="me", cache_from=case)
    assert await told(world) == (0, 1, 0), "it does the same, the default being said"


async def test_ui_1_who_runs_a_case_again_with_a_corrected_flow_has_taken_its_failure_up(world: World) -> None:
    counted = flow(A, inputs={"n": Input(type="number", default=1)})
    case = await fails(world, await world.start(counted))
    corrected = msgspec.structs.replace(counted, outputs={"done": "yes"})
    await world.domain.start_with_flow(corrected, {"n": 2}, who="me", cache_from=case)
    assert await told(world) == (1, 0, 0)
    await world.domain.start_with_flow(corrected, {"n": 2}, who="me", rerun_of=case)
    assert await told(world) == (0, 1, 0)


async def test_ui_1_a_case_that_goes_on_and_fails_anew_has_failed_after_its_later_run_began(world: World) -> None:
    case = await failed_case(world)
    again = (await world.domain.rerun(case, who="me")).id
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(again, "completed")
    assert await told(world) == (0, 1, 0)
    for waiting in (await world.runtime.recovery.reopener.reopen(case, who="me")).waiting:
        await world.runtime.administration.retry(waiting, who="me")
    await fails(world, case)
    assert await told(world) == (1, 0, 0), "nobody has taken up the new failure"
    await world.domain.rerun(case, who="me")
    assert await told(world) == (0, 1, 0)


async def test_ui_1_a_failure_inside_a_called_case_is_taken_up_by_who_runs_its_caller_again(world: World) -> None:
    await world.domain.deploy(flow(A))
    case = await fails(world, await world.start(flow(Call(name="c", flow="f"), name="g")))
    unhandled, *others = await told(world)
    assert unhandled and others == [0, 0]
    await world.domain.rerun(case, who="me")
    assert await told(world) == (0, unhandled, 0)


async def test_ui_1_a_list_of_what_was_handled_so_is_narrowed_by_its_other_filters(world: World) -> None:
    first, second = await failed_case(world), await failed_case(world)
    group = await only_group(world)

    async def cases(**filters: str) -> list[str]:
        asked = msgspec.convert({"group": group.id, "handling": "unhandled", **filters}, DecisionQuery)
        return [each.case for each in await world.domain.decisions(asked)]

    assert await cases() == [second, first]
    assert await cases(case=first) == [first]
    assert await cases(case=first, item="a", state="ignored") == [first]
    assert await cases(item="b") == await cases(state="done") == await cases(rules="f") == []


async def test_ui_1_a_fault_of_the_same_name_and_data_that_a_flow_throws_is_no_rejection(world: World) -> None:
    rejected = await rejected_case(world)
    [before] = await world.decisions(rejected)
    assert before.fault is not None
    thrown = Throw(name="t", fault=before.fault.name, data=before.fault.data, message="too dear")
    await world.domain.deploy(flow(thrown, name="thrower"))
    case = await world.start(flow(Call(name="c", flow="thrower"), name="caller"))
    await world.until_status(case, "failed")
    [decision] = await world.decisions(case)
    assert decision.fault is not None and decision.fault.data == before.fault.data
    assert not is_rejection(decision) and is_rejection(before)


async def test_ui_1_a_rejection_that_a_rule_took_up_was_handled_by_that_rule(world: World) -> None:
    give_up = exlet("give-up", mend(Primitive.FAIL))
    await world.put(rule_set("g", ExceptionType.ABORT, ("true", "give-up"), exlets=[give_up], task="approve"))
    case = await rejected_case(world)
    [group] = await world.domain.failures()
    assert (group.count, group.rejected, group.unhandled) == (1, 0, 0)
    assert [each.exlet for each in group.handled] == ["give-up"]
    decision = await world.decision(case)
    assert not is_rejection(decision)
    read = decode_decided(msgspec.json.encode(decision))
    assert learned_failure(read, lambda rules, exlet: False) is not None
    assert (await world.domain.failure(group.id)).open_failed == 1, "rules are asked as of any other that they took up"


async def test_ui_1_what_a_person_rejected_is_a_decision_and_no_failure_to_teach_a_rule_of(world: World) -> None:
    case = await rejected_case(world)
    assert await told(world) == (0, 0, 1)
    assert [alert for alert in await world.domain.alerts() if alert.kind == "failure"] == []
    await world.domain.rerun(case, who="me")
    assert await told(world) == (0, 0, 1), "it was rejected all the same"


async def test_ui_1_nothing_is_proposed_of_what_a_person_rejects_again_and_again(world: World) -> None:
    cases = [await rejected_case(world) for _ in range(4)]
    await world.runtime.learning.recount()
    assert await world.domain.proposals() == []
    for case in cases:
        decision = await world.decision(case)
        read = decode_decided(msgspec.json.encode(decision))
        assert learned_failure(read, lambda rules, exlet: False) is None


async def test_ui_1_rejections_of_a_task_are_one_cause_whatever_people_say(world: World) -> None:
    cases = [await rejected_case(world, comment) for comment in ("too dear", "the plan is not good enough")]
    group = await only_group(world)
    assert (group.count, group.rejected, group.message) == (2, 2, "approve was rejected")
    said = (await world.domain.why(cases[1])).sentence
    assert "was rejected by ann: the plan is not good enough" in said


async def test_what_a_person_rejected_waits_for_nobody_else_in_a_flow_that_holds_what_fails(world: World) -> None:
    case = await rejected_case(world, on_unhandled="hold")
    group = await only_group(world)
    assert (group.waiting, group.rejected) == (0, 1)
    assert not [each for each in (await world.domain.overview()).waiting if each.kind == "person"]
    assert (await world.case(case)).held == []
    assert not world.runtime.exceptions.held_failures()
