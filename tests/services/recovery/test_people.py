"""What people do: raise what happened, mend what nobody expected, reject what was chosen wrongly, change rules."""

from typing import Any

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import BadRules, Conflict, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Call, Input, JobActivity, Parallel, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RejectRequest
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules import CornerstoneConflict
from mendflow.services.recovery.rules.editor import RuleRequest
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set, tree

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
HOLD = UserTask(name="hold", role="clerk")


async def waiting_for_somebody(world: World) -> Any:
    async def offered() -> Any:
        return await world.domain.worklist(state="offered")

    return (await world.until(offered))[0]


# From outside


async def test_the_triggers_of_a_case_are_those_that_its_rules_name(world: World) -> None:  # EX-9
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    rules = rule_set(
        "f",
        ExceptionType.CASE_EXTERNAL,
        ('trigger == "rain" && case.data.n > 3', "stop"),
        ('trigger in ["storm", "hail"]', "stop"),
        exlets=[stop],
    )
    item = rule_set("f", ExceptionType.ITEM_EXTERNAL, ('trigger == "late"', "stop"), task="a")
    await world.put(RuleSet(name="f", trees={**rules.trees, **item.trees}, exlets=rules.exlets))
    case = await world.start(flow(A, inputs={"n": Input()}), n=1)
    found = await world.runtime.administration.triggers(case)
    assert [(each.level, each.task, each.trigger) for each in found] == [
        ("case", "", "rain"),
        ("case", "", "storm"),
        ("case", "", "hail"),
        ("item", "a", "late"),
    ]
    ignored = await world.runtime.administration.raise_exception(case, "rain", who="ann")
    assert (ignored.state, await world.status(case)) == ("ignored", "running"), "known, and not for this context"


async def test_an_unexpected_exception_suspends_the_case_and_tells_the_administrator_with_its_context(
    world: World,
) -> None:
    # EX-9
    case = await world.start(flow(A, inputs={"band": Input()}), band="The Locals")
    decision = await world.runtime.administration.raise_exception(case, "drummer is ill", who="ann", data={"days": 3})
    assert (decision.state, await world.status(case)) == ("waiting", "suspended")
    notice = (await world.domain.notices())[0]
    assert "'drummer is ill'" in notice.message
    assert "The Locals" in notice.message
    assert notice.case == case


async def test_mending_an_unexpected_exception_makes_exlet_and_rule_and_applies_them_now(world: World) -> None:
    # EX-9 EX-7
    office = world.runtime.administration
    rules = world.runtime.exceptions.rules
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await office.raise_exception(case, "drummer is ill", who="ann")
    fix = exlet("without-drums", mend(Primitive.COMPLETE, item="a", outputs="skipped"))
    condition = 'trigger == "drummer is ill"'
    await office.mend(case, exlet="without-drums", steps=fix, condition=condition, who="admin")
    await world.until_status(case, "running")
    assert (await world.decision(case)).state == "done"
    assert await world.take() == ["b"]
    rule = rules.all()[-1].trees[ExceptionType.CASE_EXTERNAL][""].rules[1]
    assert (rule.condition, rule.author) == (condition, "admin")
    assert rule.cornerstone is not None
    second = await world.start(flow(Parallel(name="p", branches=(A, B))))
    assert [each.trigger for each in await office.triggers(second)] == ["drummer is ill"]
    known = await office.raise_exception(second, "drummer is ill", who="ann")
    assert known.exlet == "without-drums", "every later case has it"


async def test_what_waits_is_taken_up_when_a_rule_for_it_was_made(world: World) -> None:  # EX-7
    office = world.runtime.administration
    cases = [await world.start(flow(A)) for _ in range(3)]
    waiting = [await office.raise_exception(case, "flood", who="ann") for case in cases]
    assert await office.apply(waiting[0].id) is None
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    await office.add_rule(
        RuleRequest(condition='trigger == "flood"', exlet="stop", steps=stop, decision=waiting[0].id), who="admin"
    )
    for each in waiting:
        assert await office.apply(each.id) is not None
    for case in cases:
        await world.until_status(case, "cancelled")


async def test_what_waits_in_a_level_is_taken_up_when_another_rule_was_made_for_it(world: World) -> None:
    # EX-7 AD-3
    office = world.runtime.administration
    later = exlet("later", mend(Primitive.RETRY_LATER, level=1, wait_ms=3_600_000))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "later"), exlets=[later], task="a"))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(case, "running")
    waiting = await world.decision(case)

    async def is_in_level() -> bool:
        return office.is_in_level(waiting.exlet_case)

    await world.until(is_in_level)
    assert await office.apply(waiting.id) is None, "the rules say what they said before"
    done = exlet("as-it-is", mend(Primitive.COMPLETE, outputs="enough"))
    await office.add_rule(RuleRequest(condition="true", exlet="as-it-is", steps=done, decision=waiting.id), who="admin")
    [group] = await world.domain.failures()
    assert (await world.domain.apply_rules(group.id, who="admin")).taken_up == [waiting.id]
    await world.until_status(case, "completed")
    assert sum(world.runtime.levels.counts().values()) == 0, "nothing is left behind in the level"


async def test_what_waits_survives_a_restart(world: World) -> None:  # EX-9
    case = await world.start(flow(A))
    await world.runtime.administration.raise_exception(case, "flood", who="ann")
    await world.restart()
    assert await world.status(case) == "suspended"
    fix = exlet("dry", mend(Primitive.COMPLETE, item="a"))
    await world.runtime.administration.mend(case, exlet="dry", steps=fix, who="admin")
    await world.until_status(case, "completed")


async def test_nothing_can_be_raised_on_what_is_not_there(memory: World) -> None:
    office = memory.runtime.administration
    case = await memory.start(flow(A))
    with pytest.raises(NotFound, match="no live item 'z'"):
        await office.raise_exception(case, "flood", "z")
    with pytest.raises(Conflict, match="is not running"):
        await office.raise_exception("nobody", "flood")
    with pytest.raises(NotFound, match="no exlet 'never'"):
        await office.mend(case, exlet="never")


async def test_a_case_that_is_over_cannot_be_mended(world: World) -> None:
    office = world.runtime.administration
    rules = world.runtime.exceptions.rules
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("false", "stop"), exlets=[stop]))
    failed, cancelled = await world.start(flow(A)), await world.start(flow(B))
    waiting = await office.raise_exception(cancelled, "flood", who="ann")
    await world.runtime.exceptions.engines[""].cancel(cancelled, reason="enough", by="test")
    await world.until_status(cancelled, "cancelled")
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(failed, "failed")
    abort = await world.decision(failed)
    versions = rules.all()
    for case, decision in ((failed, ""), (failed, abort.id), (cancelled, "")):
        with pytest.raises(Conflict, match=r"is over|is not running"):
            await office.mend(case, exlet="stop", decision=decision, condition="true", who="admin")
    with pytest.raises(Conflict, match="does not wait"):
        await office.apply(waiting.id)
    assert (await world.decision(cancelled)).state == "ignored", "it waits no longer"
    assert rules.all() == versions
    assert await world.exlets(failed) == []


# Rejecting


async def test_a_rejected_exlet_is_replaced_by_the_right_one_while_the_case_stands_still(world: World) -> None:  # EX-8
    wrong = exlet("wrong", mend(Primitive.SUSPEND), HOLD)
    right = exlet("right", mend(Primitive.WRITE, values={"N": "9"}))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "wrong"), exlets=[wrong]))
    case = await world.start(flow(JobActivity(name="a", command="true", env={"N": "1"})))
    await waiting_for_somebody(world)
    decision = await world.decision(case)
    replaced = await world.runtime.administration.reject(
        decision.id, exlet="right", steps=right, condition='item.data.N == "1"', who="ann"
    )
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "9"}
    assert await world.status(case) == "running"
    first, second = await world.decisions(case)
    assert (first.state, first.replaced_by, second.id, second.state) == ("rejected", replaced.id, replaced.id, "done")
    assert [view.status for view in await world.exlets(case)] == ["cancelled", "completed"]
    rules = world.runtime.exceptions.rules.newest("f").trees[ExceptionType.ITEM_PRE]["a"].rules
    assert rules[0].on_true == 1, "the correction refines the rule that was wrong"


async def test_a_rejected_abort_is_held_until_the_right_exlet_is_over(world: World) -> None:
    # EX-8
    wrong, right = exlet("wrong", HOLD), exlet("right", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation == 1", "wrong"), exlets=[wrong]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await waiting_for_somebody(world)
    await world.runtime.administration.reject((await world.decision(case)).id, exlet="right", steps=right, who="ann")
    assert await world.take() == ["a"]
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    rules = world.runtime.exceptions.rules.newest("f")
    assert [rule.exlet for rule in rules.trees[ExceptionType.ABORT]["a"].rules.values()] == ["wrong"]
    assert "right" in rules.exlets, "it can be found again"


REPLACED = [
    # type, the condition that is given, what the next case like it gets
    (ExceptionType.ABORT, "", "wrong"),
    (ExceptionType.ABORT, 'item.name == "a"', "right"),
    (ExceptionType.SELECTION, "", "wrong"),
    (ExceptionType.SELECTION, 'item.name == "a"', "right"),
]


@pytest.mark.parametrize(("type", "condition", "later"), REPLACED)
async def test_a_rejection_makes_a_rule_only_when_it_is_asked_for_one(
    world: World, type: ExceptionType, condition: str, later: str
) -> None:
    # EX-8: without a condition this one choice is replaced, and every other case keeps what the rules conclude
    chosen = {name: UserTask(name=f"do-{name}", role="clerk") for name in ("wrong", "right")}
    if type is ExceptionType.SELECTION:
        for name, task in chosen.items():
            await world.domain.deploy(flow(task, name))
        await world.put(rule_set("f", type, ("true", "wrong")))
        body: Any = Call(name="a")
    else:
        await world.put(rule_set("f", type, ("true", "wrong"), exlets=[exlet(*each) for each in chosen.items()]))
        body = A
    for turn in ("first", "second"):
        case = await world.start(flow(body))
        if type is ExceptionType.ABORT:
            await world.take()
            await world.report(a=FAILED)
        if turn == "first":
            await waiting_for_somebody(world)
            decision = await world.decision(case)
            wish = RejectRequest(decision=decision.id, exlet="right", condition=condition)
            stands = await world.domain.reject_choice(wish, who="ann")
            replaced = stands.replaced_by or stands.id
        expected = "do-right" if turn == "first" else f"do-{later}"

        async def is_offered(case: str = case, expected: str = expected) -> bool:
            tasks = await world.domain.worklist(state="offered")
            return any(str(task.item) == expected and task.case.startswith(case) for task in tasks)

        await world.until(is_offered)
    right = await world.domain.decision(replaced)
    assert (right.exlet, right.ordered_by) == ("right", "" if condition else "ann")
    rules = world.runtime.exceptions.rules.newest("f").trees[type]["a"].rules
    assert [rule.exlet for rule in rules.values()] == (["wrong", "right"] if condition else ["wrong"])


async def test_a_rejection_of_a_default_rule_leaves_the_default_rules_alone(world: World) -> None:
    # EX-8: the flow gets the rule; all other flows keep theirs
    wrong, right = exlet("wrong", HOLD), exlet("right", mend(Primitive.RESUBMIT))
    await world.put(rule_set(DEFAULT_RULES, ExceptionType.ABORT, ("job.generation == 1", "wrong"), exlets=[wrong]))
    before = world.runtime.exceptions.rules.newest(DEFAULT_RULES)
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await waiting_for_somebody(world)
    wish = RejectRequest(decision=(await world.decision(case)).id, flow=right, condition="job.generation == 1")
    await world.domain.reject_choice(wish, who="ann")
    assert await world.take() == ["a"]
    assert world.runtime.exceptions.rules.newest(DEFAULT_RULES) == before
    assert world.runtime.exceptions.rules.newest("f").trees[ExceptionType.ABORT]["a"].rules[1].exlet == "right"


async def test_a_rule_made_by_a_rejection_is_held_to_the_cornerstones(world: World) -> None:
    # EX-8 EX-7
    office, rules = world.runtime.administration, world.runtime.exceptions.rules
    wrong, right = exlet("wrong", HOLD), exlet("right", mend(Primitive.RESUBMIT))
    first = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    decision = await world.decision(first)
    await office.add_rule(
        RuleRequest(condition='fault.category == "job"', exlet="wrong", steps=wrong, decision=decision.id), who="ann"
    )
    second = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await waiting_for_somebody(world)
    before = rules.newest("f")
    with pytest.raises(CornerstoneConflict):
        await office.reject(
            (await world.decision(second)).id, exlet="right", steps=right, condition='item.name == "a"', who="ann"
        )
    assert rules.newest("f") == before
    assert (await world.decision(second)).state == "running", "the choice stands until a right one can replace it"


async def test_a_rejected_worklet_is_cancelled_and_the_right_one_runs_in_its_place(world: World) -> None:
    # EX-8
    for name in ("small", "large"):
        await world.domain.deploy(flow(JobActivity(name=name, command="true"), name, inputs={"n": Input()}))
    await world.put(rule_set("f", ExceptionType.SELECTION, ("true", "small")))
    case = await world.start(flow(Call(name="a", inputs={"n": 50})))
    assert await world.take() == ["small"]
    decision = await world.decision(case)
    wrong = await world.runtime.administration.reject(
        decision.id, exlet="large", condition="item.data.n > 10", who="ann"
    )
    await world.pilot.sync()
    assert await world.take() == ["large"]
    assert await world.status(f"{case}.1") == "cancelled"
    chosen = await world.runtime.exceptions.decisions.get(wrong.replaced_by)
    assert (chosen.exlet, wrong.state) == ("large", "rejected")
    await world.report(large=Outcome())
    await world.until_status(case, "completed")


async def test_a_worklet_that_is_nowhere_takes_no_ones_place(world: World) -> None:
    # EX-8: a slip of the pen must not end the worklet that runs, nor break the rule
    await world.domain.deploy(flow(JobActivity(name="small", command="true"), "small"))
    await world.put(rule_set("f", ExceptionType.SELECTION, ("true", "small")))
    case = await world.start(flow(Call(name="a")))
    assert await world.take() == ["small"]
    office, decision = world.runtime.administration, await world.decision(case)
    rules = world.runtime.exceptions.rules
    for condition in ("", 'case.flow == "f"'):
        with pytest.raises(InvalidRequest, match="there is no flow 'smal' here"):
            await office.reject(decision.id, exlet="smal", condition=condition, who="ann")
    assert rules.newest("f").version == 1
    await world.report(small=Outcome())
    await world.until_status(case, "completed")


async def test_why_of_a_call_that_was_chosen_again_tells_of_its_last_run(memory: World) -> None:
    # EX-8: the worklet in place of the wrong one cannot begin
    await memory.domain.deploy(flow(HOLD, "small"))
    await memory.domain.deploy(flow(HOLD, "needy", inputs={"n": Input(required=True)}))
    await memory.put(rule_set("f", ExceptionType.SELECTION, ("true", "small")))
    case = await memory.start(flow(Call(name="a")))
    await waiting_for_somebody(memory)
    await memory.runtime.administration.reject((await memory.decision(case)).id, exlet="needy", who="ann")
    await memory.until_status(case, "failed")
    told = await memory.domain.why(f"{case}:a")
    assert (told.state, "input n is missing" in told.sentence) == ("failed", True), told.sentence


async def test_a_rule_that_selects_a_flow_that_is_nowhere_is_refused_unless_it_comes_along(memory: World) -> None:
    # EX-7
    office = memory.runtime.administration
    wish = RuleRequest(condition="true", exlet="wa", rules="f", type=ExceptionType.SELECTION, task="a")
    with pytest.raises(InvalidRequest, match="there is no flow 'wa' here"):
        await office.add_rule(wish, who="ann")
    added = await office.add_rule(replace(wish, steps=flow(JobActivity(name="j", command="true"), "wa")), who="ann")
    case = await memory.start(flow(Call(name="a")))
    assert (added.rule, await memory.take()) == (1, ["j"])
    assert await memory.status(case) == "running"


async def test_a_decision_without_a_conclusion_cannot_be_rejected(memory: World) -> None:
    case = await memory.start(flow(A))
    await memory.take()
    await memory.report(a=FAILED)
    with pytest.raises(Conflict, match="nothing to reject"):
        await memory.runtime.administration.reject((await memory.decision(case)).id, exlet="x")


# Rules


async def test_rule_sets_have_versions_that_can_be_looked_at_and_restored(world: World) -> None:
    # EX-7
    rules = world.runtime.exceptions.rules
    stop, go = exlet("stop", mend(Primitive.SUSPEND)), exlet("go", mend(Primitive.COMPLETE))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[stop]))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "go"), exlets=[go]))
    await world.restart()
    restored = await rules.restore("f", 1, author="ann")
    assert [each.version for each in await rules.versions("f")] == [3, 2, 1]
    assert (restored.version, list(restored.exlets)) == (3, ["stop"])
    assert list((await rules.version("f", 2)).exlets) == ["go"]
    with pytest.raises(NotFound, match="no version 9"):
        await rules.version("f", 9)


async def test_the_house_rules_are_version_0_until_somebody_changes_them(memory: World) -> None:
    rules = memory.runtime.exceptions.rules
    assert rules.newest(DEFAULT_RULES).version == 0
    stop = exlet("stop", mend(Primitive.SUSPEND))
    trees = {ExceptionType.ABORT: {"*": tree(("true", "stop"))}}
    made = await rules.put(RuleSet(name=DEFAULT_RULES, trees=trees, exlets={"stop": stop}), author="ann")
    assert made.version == 1
    assert [each.version for each in await rules.versions(DEFAULT_RULES)] == [1, 0]


async def test_a_rule_set_with_anything_wrong_is_refused_whole(memory: World) -> None:
    rules = memory.runtime.exceptions.rules
    with pytest.raises(BadRules, match="there is no exlet `gone`"):
        await rules.put(rule_set("f", ExceptionType.ABORT, ("true", "gone")), author="ann")
    with pytest.raises(RequestError):
        await rules.put(rule_set("f", ExceptionType.ABORT, ("1 +", "x"), exlets=[exlet("x")]), author="ann")
    with pytest.raises(NotFound):
        rules.newest("f")
    with pytest.raises(Conflict, match="at version 0, not 4"):
        await rules.put(RuleSet(name="f"), author="ann", expected=4)


async def test_a_rule_that_would_change_what_another_cornerstone_concludes_is_refused(memory: World) -> None:
    # EX-7
    office = memory.runtime.administration
    case = await memory.start(flow(Parallel(name="p", branches=(A, B), on_fault="finish")))
    await memory.take(items=2)
    await memory.report(a=FAILED)
    first = (await memory.decisions(case))[0]
    one, two = exlet("one", mend(Primitive.RESUBMIT)), exlet("two", mend(Primitive.COMPLETE))
    wish = RuleRequest(condition="fault.exit_code == 3", exlet="one", steps=one, decision=first.id)
    added = await office.add_rule(wish, who="ann")
    assert (added.tree, added.rule, added.place.parent) == ("a", 1, None)
    with pytest.raises(CornerstoneConflict, match="cornerstone of rule 1"):
        await office.add_rule(
            RuleRequest(condition="fault.exit_code > 0", exlet="two", steps=two, decision=first.id), who="bob"
        )
    with pytest.raises(InvalidRequest, match="say which decision"):
        await office.add_rule(RuleRequest(condition="true", exlet="one"), who="bob")


async def test_a_rule_is_tried_on_what_happened_before(world: World) -> None:
    # EX-7: would have caught 2 of 3
    office = world.runtime.administration
    rules = world.runtime.exceptions.rules
    for code in (3, 3, 4):
        await world.start(flow(A))
        await world.take()
        assert FAILED.fault is not None
        await world.report(a=Outcome(fault=replace(FAILED.fault, exit_code=code)))
    again = exlet("again", mend(Primitive.RESUBMIT))
    wish = RuleRequest(
        condition="fault.exit_code == 3", exlet="again", steps=again, rules="f", type=ExceptionType.ABORT, task="a"
    )
    tried, past = await office.try_rule(wish, sight=EVERYTHING)
    assert (len(tried.caught), len(tried.missed), len(past)) == (2, 1, 3)
    assert tried.sentence() == "would have caught 2 of 3"
    with pytest.raises(NotFound):
        rules.newest("f")
