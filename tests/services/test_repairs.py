"""What a domain tells and takes about repairs: rules for a case at hand, trials on the past, one history, exceptions
that people raise, choices that they reject, levels that they drain."""

from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Empty,
    Flow,
    ForEach,
    Input,
    JobActivity,
    Parallel,
    PrimitiveStep,
    Sequence,
    UserTask,
)
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, RuleSelector, RuleSpec
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.recovery.patterns import FaultPattern, JobPattern, Patterns
from mendflow.core.rules import CornerstoneConflict
from mendflow.formats import xes
from mendflow.services.api.domain import Domain

CONTEXT = {"context": Input(type="map", required=True)}


def exlet(name: str, *steps: PrimitiveStep) -> Flow:
    return Flow(name=FlowName(name), exlet=True, inputs=CONTEXT, body=Sequence(name=f"{name}.steps", body=steps))


AGAIN = exlet("again", PrimitiveStep(name="again", do=Primitive.RESUBMIT, settings={"env": {"MENDED": "yes"}}))
TOUCH = exlet(
    "touch", PrimitiveStep(name="touch", do=Primitive.WRITE, target="case", settings={"values": {"touched": True}})
)
STOP = exlet("stop", PrimitiveStep(name="stop", do=Primitive.REMOVE, target="case"))


def failed(code: int) -> Outcome:
    fault = Fault(name="exitCode", category=Category.JOB, message=f"it ended with exit code {code}", exit_code=code)
    return Outcome(fault=fault, exit_code=code)


def play(spec: JobSpec) -> Outcome:
    """Turn 0 fails with 7, turn 1 with 9, unless they were mended."""
    if spec.env.get("MENDED") == "yes" or "[" not in spec.item:
        return Outcome()
    return failed(7 if spec.item.endswith("[0]") else 9)


def loop(name: str = "f", turns: int = 2) -> Flow:
    body = ForEach(name="loop", items=list(range(turns)), body=JobActivity(name="a", command="true"), on_fault="finish")
    return Flow(name=FlowName(name), body=body)


def rules_for(name: str, **conditions: str) -> RuleSet:
    """Rules for aborts of `a`, in a row: exlet by condition."""
    rows = list(conditions.items())
    rules = {
        number: Rule(id=number, condition=condition, exlet=to, on_false=number + 1 if number < len(rows) else None)
        for number, (to, condition) in enumerate(rows, 1)
    }
    exlets = {str(each.name): each for each in (AGAIN, TOUCH, STOP)}
    return RuleSet(name=name, trees={ExceptionType.ABORT: {"a": RuleTree(rules, 1)}}, exlets=exlets)


async def ran(domain: Domain, pilot: Any, flow: Flow | None = None) -> str:
    made = flow or loop()
    await domain.deploy(made)
    case = (await domain.start(made.name, {}, who="me")).id
    await pilot.run_all(play)
    return case


async def decided(domain: Domain, case: str) -> dict[str, DecisionView]:
    """The decisions about a case, by item."""
    return {str(each.item): each for each in await domain.decisions(DecisionQuery(case=case))}


async def test_a_repair_is_told_with_its_trail_in_the_decision_and_in_why(domain: Domain, pilot: Any) -> None:
    # EX-6
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    case = await ran(domain, pilot)
    repair = (await decided(domain, case))["a[0]"]
    assert (repair.rules, repair.version, repair.rule, repair.exlet) == ("f", 1, 1, "again")
    assert (repair.state, repair.result) == ("done", "recovered")
    [step] = repair.trail
    assert (step.held, step.condition, step.values) == (True, "fault.exit_code == 7", {"fault.exit_code": 7})
    why = await domain.why(f"{case}:a[0]")
    assert [each.id for each in why.repairs] == [repair.id]
    assert why.sentence == "a[0] completed in attempt 2."
    whole = await domain.decision(repair.id)
    assert whole.context["fault"]["exit_code"] == 7
    item = await domain.item(case, "a[0]")
    assert (item.state, item.serial, len(item.attempts), str(item.job)) == ("completed", 1, 2, f"{case}/1")


async def test_a_rule_is_added_for_the_case_at_hand_and_holds_at_once(domain: Domain, pilot: Any) -> None:
    # EX-7
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    case = await ran(domain, pilot)
    assert (await domain.case(case)).status == "failed"
    [group] = [each for each in await domain.failures() if each.unhandled]
    wish = RuleSpec(condition="fault.exit_code == 9", exlet="again", group=group.id, note="nine too")
    added = await domain.add_rule(wish, who="bob")
    assert (added.rules, added.version, added.type, added.task, added.rule) == ("f", 2, ExceptionType.ABORT, "a", 2)
    assert (added.under, added.side) == (1, "false")
    view = await domain.rule_set("f")
    assert view.rules is not None
    made = view.rules.trees[ExceptionType.ABORT]["a"].rules[2]
    assert (made.author, made.note) == ("bob", "nine too")
    assert made.cornerstone is not None
    assert made.cornerstone["fault"]["exit_code"] == 9
    assert view.decided == {"abort/a/1": 1}
    again = await ran(domain, pilot)
    assert (await domain.case(again)).status == "completed"
    assert {each.version for each in (await decided(domain, again)).values()} == {2}
    assert {each.version for each in (await decided(domain, case)).values() if each.exlet} == {1}


async def test_a_rule_that_would_change_a_cornerstone_is_refused_with_its_name(domain: Domain, pilot: Any) -> None:
    # EX-7
    await ran(domain, pilot)
    nine, seven = sorted(await domain.decisions(DecisionQuery()), key=lambda each: str(each.item), reverse=True)
    await domain.add_rule(
        RuleSpec(condition="fault.exit_code == 9", exlet="again", flow=AGAIN, decision=nine.id), who="ann"
    )
    wide = RuleSpec(condition="fault.exit_code > 0", exlet="stop", flow=STOP, decision=seven.id, rules="f")
    assert "does not hold" not in (await domain.try_rule(wide)).breaks
    added = await domain.add_rule(wide, who="ann")
    assert added.side == "false"
    narrow = RuleSpec(condition='fault.category == "job"', exlet="touch", flow=TOUCH, decision=nine.id)
    with pytest.raises(CornerstoneConflict, match="cornerstone of rule"):
        await domain.add_rule(narrow, who="ann")
    assert "cornerstone of rule" in (await domain.try_rule(narrow)).breaks
    assert (await domain.rule_set("f")).version == 2


async def test_a_rule_is_tried_on_past_failures_and_changes_nothing(domain: Domain, pilot: Any) -> None:
    # EX-7
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    for _ in range(3):
        await ran(domain, pilot)
    [nine] = [each for each in await domain.failures() if each.unhandled]
    trial = await domain.try_rule(RuleSpec(condition="fault.exit_code == 9", exlet="stop", group=nine.id))
    assert (trial.caught, trial.of, trial.otherwise, trial.breaks) == (3, 3, [], "")
    assert next(iter(trial.missing_bounds.items())) == (Primitive.RESTART, "item.attempts < 4")
    assert trial.missing_bounds[Primitive.RESUBMIT] == "job.generation <= 3"
    assert trial.repairs_max == 100
    ends = RuleSpec(condition="fault.exit_code == 9 && job.generation <= 2", exlet="stop", group=nine.id)
    assert not (await domain.try_rule(ends)).missing_bounds
    assert {each.state for each in trial.caught_ids} == {"ignored"}
    none = await domain.try_rule(RuleSpec(condition="fault.exit_code == 8", exlet="never-made", group=nine.id))
    assert (none.caught, none.of, len(none.missed_ids)) == (0, 3, 3)
    free = RuleSpec(condition="true", exlet="stop", rules="f", type=ExceptionType.ABORT, task="a")
    assert (await domain.try_rule(free)).of == 3
    assert (await domain.rule_set("f")).version == 1


async def test_what_another_rule_handled_is_told_apart_in_a_trial(domain: Domain, pilot: Any) -> None:
    # EX-7
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    await ran(domain, pilot)
    nine = (await decided(domain, "last"))["a[1]"]
    empty = RuleSet(name="f", exlets={"stop": STOP})
    await domain.put_rules(empty, who="ann")
    trial = await domain.try_rule(RuleSpec(condition="fault.exit_code >= 7", exlet="stop", decision=nine.id))
    assert (trial.caught, trial.of) == (1, 1)
    [other] = trial.otherwise
    assert (other.exlet, other.result, str(other.item)) == ("again", "recovered", "a[0]")


async def test_a_passive_rule_is_recorded_and_does_nothing(domain: Domain, pilot: Any) -> None:
    # EX-7
    case = await ran(domain, pilot)
    seven = (await decided(domain, case))["a[0]"]
    await domain.add_rule(
        RuleSpec(condition="fault.exit_code == 7", exlet="again", flow=AGAIN, decision=seven.id, passive=True),
        who="ann",
    )
    later = await ran(domain, pilot)
    assert (await domain.case(later)).status == "failed"
    tried = (await decided(domain, later))["a[0]"]
    assert tried.state == "passive"
    assert [each.exlet for each in tried.trials] == ["again"]
    assert (await domain.rule_sets())[1].passive_count == 1


async def test_a_group_is_shown_with_samples_telling_values_and_conditions(domain: Domain, pilot: Any) -> None:
    # EX-7
    await ran(domain, pilot)
    seven = (await decided(domain, "last"))["a[0]"]
    view = await domain.failure(seven.group)
    assert [sample.id for sample in view.samples] == [seven.id]
    assert view.values["fault.exit_code"] == {"7": 1}
    assert "fault.exit_code == 7" in [each.condition for each in view.candidates]
    assert view.candidates[0].reason == "holds in 1 of 1"


async def test_the_first_condition_that_is_proposed_is_the_narrowest(domain: Domain, pilot: Any) -> None:
    # EX-7
    await ran(domain, pilot, loop(turns=1))
    alone = (await decided(domain, "last"))["a[0]"]
    assert (await domain.failure(alone.group)).candidates[0].condition == "fault.exit_code == 7"
    await ran(domain, pilot, loop("g"))
    assert (await domain.failure(alone.group)).candidates[0].condition == "fault.exit_code == 7"


async def test_every_version_of_the_rules_is_kept_and_can_be_restored(domain: Domain) -> None:
    # EX-7
    await domain.put_rules(rules_for("f", again="true"), who="ann", note="first")
    await domain.put_rules(rules_for("f", stop="true"), who="bob", note="second", expected=1)
    with pytest.raises(Conflict, match="version 2, not 1"):
        await domain.put_rules(rules_for("f", stop="true"), who="bob", expected=1)
    restored = await domain.restore_rules("f", 1, who="eve")
    assert [(each.version, each.author) for each in await domain.rule_versions("f")] == [
        (3, "eve"),
        (2, "bob"),
        (1, "ann"),
    ]
    assert restored.version == 3
    newest, first = await domain.rule_set("f"), await domain.rule_set("f", 1)
    assert newest.rules is not None
    assert first.rules is not None
    assert newest.rules.trees == first.rules.trees
    with pytest.raises(NotFound):
        await domain.rule_set("f", 9)


async def test_a_rule_needs_an_exlet_that_is_there_and_something_that_it_is_for(domain: Domain, pilot: Any) -> None:
    await ran(domain, pilot)
    seven = (await decided(domain, "last"))["a[0]"]
    with pytest.raises(InvalidRequest, match="there is no exlet 'nothing'"):
        await domain.add_rule(RuleSpec(condition="true", exlet="nothing", decision=seven.id), who="ann")
    with pytest.raises(InvalidRequest, match="say what the rule is for"):
        await domain.add_rule(RuleSpec(condition="true", exlet="nothing"), who="ann")
    with pytest.raises(NotFound):
        await domain.add_rule(RuleSpec(condition="true", exlet="again", decision="none"), who="ann")
    with pytest.raises(InvalidRequest, match="condition"):
        await domain.try_rule(RuleSpec(condition="1 +", exlet="x", decision=seven.id))


async def test_a_fault_pattern_is_an_exlet_by_its_name(domain: Domain, pilot: Any) -> None:
    # FM-11
    pattern = FaultPattern(
        name="with-a-flag", does="Again, with a flag.", do=Primitive.RESUBMIT, settings={"env": {"MENDED": "yes"}}
    )
    talk = JobPattern(name="hand-over", messages="submit notify end")
    more = await domain.add_patterns(Patterns((talk,), (pattern,)), who="ann")
    assert more.repair("with-a-flag") == pattern
    assert (await domain.patterns()).conversations[-1].name == "hand-over"
    with pytest.raises(InvalidRequest):
        await domain.add_patterns(Patterns((JobPattern(name="odd", messages="submit ("),), ()), who="ann")
    new, nameless = msgspec.structs.replace(talk, name="new"), msgspec.structs.replace(talk, name="")
    with pytest.raises(InvalidRequest, match="needs a name"):
        await domain.add_patterns(Patterns((new, nameless), ()), who="ann")
    assert await domain.patterns() == more, "none is added if one is refused"
    await ran(domain, pilot)
    seven = (await decided(domain, "last"))["a[0]"]
    await domain.add_rule(RuleSpec(condition="fault.exit_code == 7", exlet="with-a-flag", decision=seven.id), who="ann")
    case = await ran(domain, pilot)
    assert (await decided(domain, case))["a[0]"].result == "recovered"


async def test_one_history_has_engine_pilots_decisions_and_the_exlets_steps_in_order(
    domain: Domain, pilot: Any
) -> None:
    # EX-11
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    case = await ran(domain, pilot, loop(turns=1))
    entries = await domain.history(case)
    told = {
        source: [(entry.what, entry.name) for entry in entries if entry.source == source]
        for source in ("engine", "pilot", "service")
    }
    assert told["engine"] == [("started", "f"), ("submitted", "a"), ("completed", "a"), ("completed", "f")]
    assert told["pilot"] == [("began", "a"), ("failed", "a"), ("began", "a")]
    assert told["service"][0] == ("decided", "again")
    assert set(told["service"][1:]) == {("mending", "re-submit"), ("mended", "re-submit"), ("repaired", "again")}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert [str(entry.by) for entry in entries if (entry.source, entry.what) == ("engine", "completed")] == ["p-1", ""]
    assert {entry.decision for entry in entries if entry.exlet} == {(await decided(domain, case))["a[0]"].id}


async def test_the_history_has_what_people_did(domain: Domain) -> None:
    # EX-11
    flow = Flow(name=FlowName("ask"), body=UserTask(name="approve", role="editor"))
    await domain.deploy(flow)
    case = (await domain.start("ask", {}, who="me")).id
    await domain.suspend(case, who="me")
    await domain.resume(case, who="me")
    [task] = await domain.worklist(case=case)
    await domain.claim(task.id, who="ann")
    await domain.complete(task.id, {}, who="ann", comment="fine")
    told = [(entry.source, entry.what, entry.by, entry.message) for entry in await domain.history(case)]
    assert told == [
        ("engine", "started", "me", ""),
        ("engine", "offered", "", "to editor"),
        ("person", "suspended", "me", ""),
        ("person", "continued", "me", ""),
        ("person", "completed", "ann", "fine"),
        ("engine", "completed", "", ""),
    ]
    with pytest.raises(NotFound):
        await domain.history("none")


async def test_levels_are_listed_and_drained(domain: Domain, pilot: Any) -> None:
    later = exlet(
        "later", PrimitiveStep(name="later", do=Primitive.RETRY_LATER, settings={"level": 2, "env": {"MENDED": "yes"}})
    )
    rule = Rule(id=1, condition="true", exlet="later")
    trees = {ExceptionType.ABORT: {DEFAULT_RULES: RuleTree({1: rule}, 1)}}
    await domain.put_rules(RuleSet(name="f", trees=trees, exlets={"later": later}), who="ann")
    case = await ran(domain, pilot, loop(turns=1))
    while not (await domain.levels())[1].waiting:
        await domain._server.clock.sleep(5)
    second = (await domain.levels())[1]
    assert (second.level, second.wait_ms, second.waiting, second.jobs) == (2, 600_000, 1, [f"{case}/1"])
    item = await domain.item(case, "a[0]")
    assert (item.state, item.reason) == ("waiting", "it failed, and is being mended")
    assert "waits for another try since" in (await domain.why(f"{case}:a[0]")).sentence
    with pytest.raises(NotFound, match="there is no level '7'"):
        await domain.drain("7", who="ann")
    assert (await domain.drain("1", who="ann")).let_go == 0
    assert (await domain.drain("all", who="ann")).let_go == 1
    await pilot.run_all(play)
    assert (await domain.case(case)).status == "completed"


async def test_nothing_stands_in_the_way_of_a_case_without_failures(domain: Domain) -> None:
    await domain.deploy(Flow(name=FlowName("calm"), body=Empty(name="nothing")))
    case = (await domain.start("calm", {}, who="me")).id
    assert [entry.what for entry in await domain.history(case)] == ["started", "completed"]
    assert await domain.decisions(DecisionQuery(case=case)) == []
    assert await domain.failures() == []


async def test_a_secret_of_a_job_is_in_nothing_that_is_told_of_its_failure(domain: Domain, pilot: Any) -> None:
    # EX-6: neither in a decision, nor in a group, nor in the history or its XES, nor in a rule made of it
    secret = "hunter2"
    job = JobActivity(name="a", command="true", env={"ARCHIVE_PASSWORD": secret, "PLATE": "7"})
    await domain.deploy(Flow(name=FlowName("f"), body=job))
    case = (await domain.start("f", {}, who="me")).id
    await pilot.run_all(lambda _: failed(9))
    [decision] = await domain.decisions(DecisionQuery(case=case))
    whole = await domain.decision(decision.id)
    assert whole.context["item"]["data"] == {"ARCHIVE_PASSWORD": "(hidden)", "PLATE": "7"}
    [group] = await domain.failures()
    wish = RuleSpec(condition="fault.exit_code == 9", exlet="again", flow=AGAIN, group=group.id)
    added = await domain.add_rule(wish, who="ann")
    history = await domain.history(case)
    told: list[object] = [whole, group, await domain.failure(group.id), added, await domain.rule_set("f"), history]
    told += [await domain.why(case), await domain.notices(), await domain.items(case)]
    assert secret not in repr(told) + xes.log("f", [(await domain.case(case), history)])


async def test_a_secret_is_hidden_wherever_a_context_has_one(domain: Domain, pilot: Any) -> None:
    # EX-6: in what a job reports, leaves or throws, in what somebody says, in results of items before, and in lists
    secret = "hunter2"
    work = Sequence(name="s", body=(JobActivity(name="first", command="true"), JobActivity(name="a", command="true")))
    both = Parallel(name="p", branches=(work, UserTask(name="get-token", role="clerk")), on_fault="finish")
    await domain.deploy(Flow(name=FlowName("f"), body=both))
    case = (await domain.start("f", {}, who="me")).id
    hidden: dict[str, Any] = {"token": secret, "list": [{"password": secret}]}
    fault = Fault(name="bad", category=Category.JOB, message="bad", data=hidden)
    ended = {"first": Outcome(outputs=hidden), "a": Outcome(fault=fault, values=hidden, outputs=hidden)}
    await pilot.run_all(lambda spec: ended[spec.item])
    await domain.raise_trigger(case, "flood", "get-token", who="ann", data=[hidden])
    decisions = [await domain.decision(each.id) for each in await domain.decisions(DecisionQuery(case=case))]
    assert len(decisions) == 2
    raised, failure = sorted(decisions, key=lambda each: each.at, reverse=True)
    assert failure.context["outcome"]["values"] == {"token": "(hidden)", "list": [{"password": "(hidden)"}]}
    assert failure.context["items"]["get-token"] == "waiting", "the state of an item is no secret"
    assert raised.context["event"]["data"]["said"][0]["token"] == "(hidden)"
    wish = RuleSpec(condition='fault.name == "bad"', exlet="again", flow=AGAIN, decision=failure.id)
    added = await domain.add_rule(wish, who="ann")
    groups = [await domain.failure(group.id) for group in await domain.failures()]
    told: list[object] = [*decisions, groups, added, await domain.rule_set("f"), await domain.history(case)]
    assert secret not in repr([*told, await domain.notices(), await domain.why(case)])


async def test_a_rule_on_trial_is_put_in_force_and_a_rule_is_taken_out_of_use(domain: Domain, pilot: Any) -> None:
    # EX-7
    case = await ran(domain, pilot)
    nine = (await decided(domain, case))["a[1]"]
    wish = RuleSpec(condition="fault.exit_code == 9", exlet="again", flow=AGAIN, decision=nine.id, passive=True)
    tried = await domain.add_rule(wish, who="ann")
    promoted = await domain.promote_rule("f", RuleSelector(rule=tried.rule), who="bob")
    assert (promoted.version, promoted.type, promoted.task, promoted.rule) == (2, ExceptionType.ABORT, "a", 1)
    with pytest.raises(Conflict, match="is not on trial"):
        await domain.promote_rule("f", RuleSelector(rule=1), who="bob")
    mended = (await decided(domain, await ran(domain, pilot)))["a[1]"]
    assert (mended.exlet, mended.result) == ("again", "recovered")
    retired = await domain.retire_rule("f", RuleSelector(rule=1, note="no more"), who="eve")
    assert (await decided(domain, await ran(domain, pilot)))["a[1]"].exlet == ""
    notes = [(each.version, each.author, each.note) for each in await domain.rule_versions("f")]
    assert notes[:2] == [(retired.version, "eve", "no more"), (2, "bob", "rule 1 is in force")]
    with pytest.raises(NotFound, match="no rule 7"):
        await domain.retire_rule("f", RuleSelector(rule=7), who="eve")


async def test_adding_in_earnest_what_is_on_trial_puts_that_rule_in_force(domain: Domain, pilot: Any) -> None:
    # EX-7: it would stay on trial for ever beside its double
    nine = (await decided(domain, await ran(domain, pilot)))["a[1]"]
    wish = RuleSpec(condition="fault.exit_code == 9", exlet="again", flow=AGAIN, decision=nine.id)
    await domain.add_rule(msgspec.structs.replace(wish, passive=True), who="ann")
    added = await domain.add_rule(wish, who="ann")
    assert (added.rule, added.version, added.promoted) == (1, 2, True)
    view = await domain.rule_set("f")
    assert (view.rule_count, view.passive_count) == (1, 0)
