"""What an exlet suspended stays suspended when it fails, and everybody is told by whom and what to do about it."""

from mendflow.core.model.flow import JobActivity, Parallel, Throw, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RepairRequest
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
WRONG = Throw(name="no", fault="no", message="this exlet is wrong")


async def test_a_case_that_a_failed_exlet_suspended_says_so_everywhere_and_a_person_lets_it_go(world: World) -> None:
    # EX-2: the administrator is told, and the case is held for a person
    bad = exlet("bad", mend(Primitive.SUSPEND, "case"), WRONG)
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(A))
    decision = await world.until_decided(case, "failed")
    said = f"case {case} is suspended by exlet {case}.x1, which is over and will not let it go"
    what_to_do = f"`mendflow resume {case}` resumes it"
    assert said in decision.note
    [notice] = [each for each in await world.domain.notices() if "this exlet is wrong" in each.message]
    assert said in notice.message
    assert what_to_do in notice.message
    [hold] = (await world.case(case)).holds
    assert (hold.item, hold.by, hold.over) == (None, f"exlet {case}.x1", True)
    why = await world.domain.why(case)
    assert said in why.facts[0]
    await world.restart()
    await world.domain.resume(case, who="ann")
    assert await world.take() == ["a"]
    assert (await world.case(case)).holds == []


async def test_an_item_that_a_failed_exlet_suspended_is_let_go_by_its_name(world: World) -> None:
    # EX-2: its failure is passed on when it goes on
    bad = exlet("bad", mend(Primitive.SUSPEND), WRONG)
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await world.take(items=2)
    await world.report(a=FAILED)
    decision = await world.until_decided(case, "failed")
    assert f"`mendflow resume {case} a` resumes it" in decision.note
    assert any(f"item a of case {case} is suspended by exlet {case}.x1" in fact for fact in await facts(world, case))
    assert await world.status(case) == "running", "nobody has told the flow yet"
    await world.domain.resume(case, "a", who="ann")
    await world.until_status(case, "failed")


async def facts(world: World, case: str) -> list[str]:
    return [*(await world.domain.why(case)).facts, *(await world.domain.why(f"{case}:a")).facts]


async def test_the_end_of_a_case_that_a_failed_exlet_holds_is_let_go_by_a_person(world: World) -> None:
    # EX-1 CasePostConstraint
    bad = exlet("bad", mend(Primitive.SUSPEND, "case"), WRONG)
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=Outcome())
    decision = await world.until_decided(case, "failed")
    assert f"`mendflow resume {case}` resumes it" in decision.note
    await world.domain.resume(case, who="ann")
    await world.until_status(case, "completed")


async def test_the_end_of_a_case_can_be_removed_by_a_person_while_an_exlet_looks_at_it(world: World) -> None:
    # EX-1 CasePostConstraint
    look = exlet("look", mend(Primitive.SUSPEND, "case"), UserTask(name="hold", role="clerk"))
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("true", "look"), exlets=[look]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=Outcome())
    await world.until_decided(case, "running")

    async def offered() -> bool:
        return bool(await world.domain.worklist(state="offered"))

    await world.until(offered)
    await world.domain.cancel(case, who="ann", reason="enough")
    await world.until_status(case, "cancelled")
    await world.until_status(f"{case}.x1", "cancelled")
    assert (await world.decision(case)).result == "removed"


async def test_mending_after_a_failed_exlet_lets_go_of_what_that_had_suspended(world: World) -> None:
    # EX-9
    bad = exlet("bad", mend(Primitive.SUSPEND, "case"), WRONG)
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(JobActivity(name="a", command="true", env={"N": "1"})))
    failed = await world.until_decided(case, "failed")
    fix = exlet("fix", mend(Primitive.WRITE, values={"N": "2"}))
    await world.domain.mend(case, RepairRequest(flow=fix, decision=failed.id), who="ann")
    await world.until_decided(case, "done")
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "2"}
