"""What an editor of rules asks a domain: previews without effect, differences, changes of one rule, counts."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import BadRules, Conflict, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RuleSpec
from mendflow.core.model.rule_views import (
    DifferenceView,
    EvaluationRequest,
    RuleCheckRequest,
    RuleRevision,
    TaskMapping,
)
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.rules import CornerstoneConflict
from mendflow.formats.rules import xrs_texts
from mendflow.services.api.domain import Domain
from tests.services.test_repairs import AGAIN, STOP, TOUCH, decided, loop, ran, rules_for

ABORT = ExceptionType.ABORT


async def everything(domain: Domain) -> bytes:
    """All that is stored: an operation without side effects leaves it as it is."""
    await domain._settled()
    kinds = ("decision", "rules", "rules-version", "case", "job", "flow")
    found = [[each.id, each.version] for kind in kinds async for each in domain._server.store.scan(kind)]
    return msgspec.json.encode(found)


async def taught(domain: Domain, pilot: Any) -> tuple[str, str]:
    """Two failures, each with a rule that was made for it: exit code 7, and 9."""
    case = await ran(domain, pilot)
    found = await decided(domain, case)
    for item, exlet in (("a[0]", AGAIN), ("a[1]", TOUCH)):
        code = 7 if item == "a[0]" else 9
        await domain.add_rule(
            RuleSpec(condition=f"fault.exit_code == {code}", exlet=exlet.name, flow=exlet, decision=found[item].id),
            who="ann",
        )
    return found["a[0]"].id, found["a[1]"].id


async def test_ex_7_a_rule_set_stored_or_given_is_evaluated_against_data_without_effect(
    domain: Domain, pilot: Any
) -> None:
    seven, nine = await taught(domain, pilot)
    before = await everything(domain)
    data = {"fault": {"exit_code": 9}}
    table = [
        (EvaluationRequest(name="f", type=ABORT, task="a", context=data), ("touch", [False, True])),
        (EvaluationRequest(decision=seven), ("again", [True])),
        (EvaluationRequest(decision=nine, name="f", version=1, only=True), ("", [False])),
        (EvaluationRequest(decision=nine, rules=rules_for("f", stop="fault.exit_code > 8")), ("stop", [True])),
        (EvaluationRequest(name="nosuch", type=ABORT, task="a", context=data, only=True), ("", [])),
    ]
    for wish, (exlet, trail) in table:
        view = await domain.evaluate_rules(wish)
        assert (view.conclusion.exlet if view.conclusion else "", [each.held for each in view.trail]) == (exlet, trail)
    first = (await domain.evaluate_rules(table[0][0])).trail[0]
    assert (first.condition, first.values) == ("fault.exit_code == 7", {"fault.exit_code": 9})
    assert await everything(domain) == before


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (EvaluationRequest(name="f", context={}), "say the type"),
        (EvaluationRequest(name="f", type=ABORT), "give the context"),
        (EvaluationRequest(type=ABORT, context={}), "say which rules"),
        (EvaluationRequest(rules=rules_for("f", again="1 +"), type=ABORT, context={}), "in the condition"),
        (EvaluationRequest(decision="none"), "there is no decision"),
    ],
)
async def test_ex_7_an_evaluation_that_lacks_something_is_refused(
    domain: Domain, wish: EvaluationRequest, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        await domain.evaluate_rules(wish)


async def test_ex_7_a_changed_set_is_replayed_over_past_decisions_before_it_is_stored(
    domain: Domain, pilot: Any
) -> None:
    _, nine = await taught(domain, pilot)
    stored = (await domain.rule_set("f")).rules
    assert stored is not None
    before = await everything(domain)
    same = await domain.replay_rules(stored)
    assert (same.looked_at, same.same, same.changed, same.cornerstones, same.problems) == (2, 2, [], [], [])
    tree = stored.trees[ABORT]["a"]
    rules = {**tree.rules, 1: replace(tree.rules[1], condition="fault.exit_code > 6")}
    wider = await domain.replay_rules(replace(stored, trees={ABORT: {"a": RuleTree(rules, tree.root)}}))
    assert [(each.decision, each.exlet, each.new_exlet) for each in wider.changed] == [(nine, "touch", "again")]
    assert [(each.rule, each.exlet, each.new_exlet) for each in wider.cornerstones] == [(2, "touch", "again")]
    emptied = await domain.replay_rules(replace(stored, trees={}), limit=1)
    assert emptied.looked_at == 1
    assert await everything(domain) == before
    with pytest.raises(BadRules):
        await domain.replay_rules(rules_for("f", nosuch="true"))


async def test_ex_7_what_distinguishes_a_decision_from_a_cornerstone_is_told(domain: Domain, pilot: Any) -> None:
    seven, nine = await taught(domain, pilot)
    other = await domain.differences(decision=nine, rules="f", rule=1, task="a")
    assert (other.rules, other.rule, other.differences[0].path) == ("f", 1, "fault.exit_code")
    assert (other.differences[0].here, other.differences[0].there) == (9, 7)
    assert other.differences[0].conditions == ["fault.exit_code == 9"]
    assert (await domain.differences(decision=nine)).rule == 2, "the rule that decides about it now"
    group = (await domain.decision(seven)).group
    assert (await domain.differences(group=group)).decision == seven
    with pytest.raises(NotFound):
        await domain.differences(decision=nine, rules="f", rule=77)


async def test_ex_7_a_refusal_a_new_rule_and_a_group_show_the_differences(domain: Domain, pilot: Any) -> None:
    case = await ran(domain, pilot)
    found = await decided(domain, case)
    await domain.add_rule(
        RuleSpec(condition="fault.exit_code > 6", exlet="again", flow=AGAIN, decision=found["a[0]"].id), who="ann"
    )
    wish = RuleSpec(condition="fault.exit_code < 20", exlet="touch", flow=TOUCH, decision=found["a[1]"].id)
    with pytest.raises(CornerstoneConflict) as caught:
        await domain.add_rule(wish, who="ann")
    assert "--if 'fault.exit_code < 20 && fault.exit_code == 9'" in caught.value.message
    [first, *_] = msgspec.convert(caught.value.fields["differences"], list[DifferenceView])
    assert first.path == "fault.exit_code"
    compared = (await domain.failure(found["a[1]"].group)).compared
    assert compared is not None
    assert (compared.rule, compared.differences[0].there) == (1, 7)
    added = await domain.add_rule(
        msgspec.structs.replace(wish, condition="fault.exit_code < 20 && fault.exit_code == 9"), who="ann"
    )
    assert (added.neighbour, added.differences[0].path) == (1, "fault.exit_code")


async def test_ex_2_a_set_and_an_exlet_are_checked_without_being_stored(domain: Domain) -> None:
    before = await everything(domain)
    good = await domain.check_rules(RuleCheckRequest(rules=rules_for("f", again="true")))
    assert (good.problems, good.warnings) == ([], [])
    bad = await domain.check_rules(RuleCheckRequest(rules=rules_for("f", nosuch="1 +")))
    assert len(bad.problems) == 2
    misplaced = await domain.check_rules(RuleCheckRequest(exlet=AGAIN, types=[ExceptionType.CASE_PRE, ABORT]))
    assert [("no item has begun" in each) for each in misplaced.problems] == [True]
    assert (await domain.check_rules(RuleCheckRequest(exlet=AGAIN, types=[ABORT]))).problems == []
    with pytest.raises(InvalidRequest, match="either a rule set or an exlet"):
        await domain.check_rules(RuleCheckRequest())
    assert await everything(domain) == before


async def test_ex_2_the_primitives_have_schemas_that_say_their_parameters(domain: Domain) -> None:
    found = {view.primitive: view for view in await domain.primitives()}
    assert set(found) == set(Primitive)
    again = found[Primitive.RESUBMIT]
    assert (again.targets, ExceptionType.CASE_PRE in again.types, ABORT in again.types) == (["item"], False, True)
    settings = again.schema["properties"]["settings"]["properties"]
    assert {"env", "resources", "wait_ms"} <= settings.keys()
    assert found[Primitive.SUSPEND].schema["properties"]["target"]["enum"] == ["item", "case", "all-cases", "ancestors"]
    assert "values" in found[Primitive.WRITE].schema["properties"]["settings"]["required"]


async def test_ex_6_the_paths_of_contexts_have_types_and_samples(domain: Domain, pilot: Any) -> None:
    await ran(domain, pilot)
    found = {each.path: each for each in await domain.context_paths("f", type="abort", task="a")}
    code = found["fault.exit_code"]
    assert (code.types, sorted(code.samples), code.count, code.of) == (["int"], [7, 9], 2, 2)
    assert found["fault"].types == ["map"]
    nothing = await domain.context_paths("nosuch")
    assert {(each.count, each.of) for each in nothing} == {(0, 0)}
    assert {"fault", "job", "trigger"} <= {each.path for each in nothing}, "the roots are there without a sample"


CHANGES = [
    # what is changed in rule 1, what it is refused for (empty: it is stored)
    (RuleRevision(rule=1, note="a flaky line"), ""),
    (RuleRevision(rule=1, condition="fault.exit_code in [7, 8]"), ""),
    (RuleRevision(rule=1, exlet="touch"), ""),
    (RuleRevision(rule=1, exlet="stop", flow=STOP), ""),
    (RuleRevision(rule=1, exlet=""), ""),
    (RuleRevision(rule=1, condition="fault.exit_code > 6"), "cornerstone of rule 2"),
    (RuleRevision(rule=1, condition="fault.exit_code == 8"), "does not hold for the case at hand"),
    (RuleRevision(rule=1, condition="falt.exit_code == 8"), "did you mean `fault`"),
    (RuleRevision(rule=1, condition="1 +"), "is refused"),
    (RuleRevision(rule=1, exlet="nosuch"), "there is no exlet `nosuch`"),
    (RuleRevision(rule=77, note="x"), "there is no rule 77"),
    (RuleRevision(rule=1), "say what changes"),
    (RuleRevision(rule=1, note="x", expected=1), "is at version 2, not 1"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
@pytest.mark.parametrize("try_only", [True, False])
async def test_ex_7_one_rule_is_changed_and_held_to_the_cornerstones(
    domain: Domain, pilot: Any, change: RuleRevision, said: str, try_only: bool
) -> None:
    await taught(domain, pilot)
    before = (await domain.rule_set("f")).rules
    assert before is not None
    wish = replace(change, try_only=try_only)
    if said:
        with pytest.raises(RequestError, match=said):
            await domain.change_rule("f", wish, who="bob")
    else:
        await domain.change_rule("f", wish, who="bob")
    after = (await domain.rule_set("f")).rules
    assert after is not None
    assert after.version == (before.version if said or try_only else before.version + 1)
    rule, old = (each.trees[ABORT]["a"].rules[1] for each in (after, before))
    if after.version > before.version:
        given = {"condition": change.condition, "exlet": change.exlet, "note": change.note}
        expected = {name: getattr(old, name) if value is None else value for name, value in given.items()}
        assert {name: getattr(rule, name) for name in given} == expected
    assert rule.cornerstone == old.cornerstone


async def test_ex_7_failures_of_a_group_are_counted_over_time_and_by_value(domain: Domain, pilot: Any) -> None:
    for _ in range(3):
        await ran(domain, pilot)
    seven = (await decided(domain, "last"))["a[0]"]
    counts = await domain.failure_counts(seven.group)
    assert sum(each.count for each in counts.periods) == 3
    assert sum(each.unhandled for each in counts.periods) == 3
    by_ms = await domain.failure_counts(seven.group, period_ms=1)
    assert len(by_ms.periods) <= 1_001
    assert sum(each.count for each in by_ms.periods) == 3
    assert (await domain.failure_counts(seven.group, since=seven.at + 60_000)).periods == []
    [code] = await domain.failure_values(seven.group, path="fault.exit_code")
    assert (code.value, code.here, code.of_here, code.elsewhere, code.of_elsewhere) == (7, 3, 3, 0, 3)
    assert code.known_elsewhere == 3, "the others ended with another code, which can be compared"
    assert code.conditions == ["fault.exit_code == 7"]
    best = (await domain.failure_values(seven.group))[0]
    assert (best.here, best.elsewhere) == (3, 0), "what tells the group apart comes first"


async def test_ex_7_what_came_of_exlets_and_how_trials_agreed_is_counted(domain: Domain, pilot: Any) -> None:
    rules = rules_for("f", again="fault.exit_code == 7")
    tree = rules.trees[ABORT]["a"]
    trial = Rule(id=2, condition="fault.exit_code > 6", exlet="again", passive=True, on_false=1)
    await domain.put_rules(replace(rules, trees={ABORT: {"a": RuleTree({**tree.rules, 2: trial}, 2)}}), who="ann")
    await ran(domain, pilot)
    [again] = await domain.exlet_results()
    assert (again.exlet, again.count, again.groups, again.known, again.recovered) == ("again", 1, 1, 1, 1)
    [agreement] = await domain.trial_agreement("f")
    assert (agreement.rule, agreement.fired, agreement.agreed, agreement.nothing) == (2, 2, 1, 1)
    assert (agreement.helped, agreement.otherwise) == (1, [])
    other = replace(trial, exlet="stop")
    await domain.put_rules(replace(rules, trees={ABORT: {"a": RuleTree({**tree.rules, 2: other}, 2)}}), who="ann")
    case = await ran(domain, pilot)
    [agreement] = await domain.trial_agreement("f")
    assert (agreement.fired, agreement.agreed, agreement.otherwise) == (
        2,
        0,
        [(await decided(domain, case))["a[0]"].id],
    )


async def test_ex_7_the_progress_of_an_application_is_told_and_it_can_be_stopped(domain: Domain, pilot: Any) -> None:
    await ran(domain, pilot)
    seven = (await decided(domain, "last"))["a[0]"]
    before = await domain.apply_progress(seven.group)
    assert (before.started_at, before.running, before.by) == (0, False, "")
    assert await domain.stop_apply(seven.group, who="ann") == before
    await domain.put_rules(rules_for("f", again="true"), who="ann")
    applied = await domain.apply_rules(seven.group, who="ann")
    told = await domain.apply_progress(seven.group)
    assert (told.running, told.total, told.done, told.by) == (False, 1, 1, "ann")
    assert (told.cases, told.taken_up) == (applied.cases, applied.taken_up)
    assert (await domain.stop_apply(seven.group, who="ann")).stopped is False, "it is over already"


async def test_ex_12_yawls_files_are_read_and_written_as_texts(domain: Domain) -> None:
    with pytest.raises(Conflict, match="without rule files"):
        await domain.rules_as_xrs(DEFAULT_RULES)
    able = Domain(domain._server, rule_files=xrs_texts)
    before = await everything(domain)
    tree = RuleTree({1: Rule(id=1, condition="data.n == 1", exlet="stop", cornerstone={"data": {"n": 1}})}, 1)
    rules = RuleSet(name="f", trees={ABORT: {"a": tree}}, exlets={"stop": STOP})
    text = xrs_texts.write(rules).text
    assert (await able.read_xrs(text)).rules == rules
    assert (await able.read_xrs(text, name="g")).rules.name == "g"
    with pytest.raises(BadRules):
        await able.read_xrs("<nothing")
    assert await everything(domain) == before
    await domain.put_rules(rules, who="ann")
    view = await able.rules_as_xrs("f")
    assert (view.version, (await able.read_xrs(view.text)).rules.trees) == (1, rules.trees)


async def test_ex_5_a_renamed_task_is_noticed_and_can_be_mapped(domain: Domain, pilot: Any) -> None:
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    assert (await domain.rule_tasks("f")).deployed is False
    await ran(domain, pilot)
    fits = await domain.rule_tasks("f")
    assert (fits.deployed, fits.unknown, fits.holds) == (True, [], True)
    other = loop()
    renamed = replace(other, body=replace(other.body, body=JobActivity(name="align", command="true")))
    case = await ran(domain, pilot, renamed)
    assert {each.exlet for each in (await decided(domain, case)).values()} == {""}, "nobody knows the task"
    [unknown] = (await domain.rule_tasks("f")).unknown
    assert (unknown.task, unknown.types, unknown.meant) == ("a", [ABORT], "align")
    for mapping, said in (({"nosuch": "align"}, "no rule is for a task"), ({"a": "nosuch"}, "has no task 'nosuch'")):
        with pytest.raises(InvalidRequest, match=said):
            await domain.map_tasks("f", TaskMapping(renamed=mapping), who="bob")
    mapped = await domain.map_tasks("f", TaskMapping(renamed={"a": "align"}), who="bob")
    assert (mapped.unknown, mapped.renamed, mapped.version) == ([], {"a": "align"}, 2)
    assert (await domain.map_tasks("f", TaskMapping(renamed={"a": "align"}), who="bob")).version == 2, "nothing changes"
    case = await ran(domain, pilot, renamed)
    assert (await decided(domain, case))["align[0]"].exlet == "again"
    assert (await domain.map_tasks("f", TaskMapping(renamed={"a": ""}), who="bob")).renamed == {}


async def test_ex_5_rules_hold_for_the_versions_of_a_flow_that_they_name(domain: Domain, pilot: Any) -> None:
    await domain.put_rules(rules_for("f", again="true"), who="ann")
    with pytest.raises(InvalidRequest, match="no newest version"):
        await domain.map_tasks("f", TaskMapping(flow_versions=["newest"]), who="bob")
    case = await ran(domain, pilot)
    assert (await decided(domain, case))["a[0]"].exlet == "again"
    await domain.map_tasks("f", TaskMapping(flow_versions=["newest"]), who="bob")
    assert (await domain.rule_tasks("f")).holds
    case = await ran(domain, pilot)
    assert (await decided(domain, case))["a[0]"].exlet == "again"
    case = await ran(domain, pilot, loop(turns=3))
    assert (await decided(domain, case))["a[0]"].exlet == "", "another version of the flow"
    assert not (await domain.rule_tasks("f")).holds
    seven = (await decided(domain, case))["a[0]"].id
    assert (await domain.evaluate_rules(EvaluationRequest(decision=seven, only=True))).conclusion is None
    await domain.map_tasks("f", TaskMapping(flow_versions=[]), who="bob")
    assert (await domain.rule_tasks("f")).holds
