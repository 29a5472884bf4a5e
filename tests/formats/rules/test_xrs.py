"""YAWL's rule files: read, understood as far as they can be, and written again as they were."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import BadRules
from mendflow.core.model.flow import Call, Parallel, PrimitiveStep, Sequence
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules import Draft, add_rule, compile_rules, context_lookup, problems_of, replace_exlet, triggers
from mendflow.formats.rules import read_rules, write_rules
from mendflow.formats.rules.xrs_reader import load_xrs, read_xrs
from mendflow.formats.rules.xrs_writer import write_xrs
from tests.examples import examples
from tests.formats.rules.rule_sets import rule_sets

CONFORMANCE = Path(__file__).parents[4] / "shared" / "conformance" / "rules"
OURS = Path(__file__).with_name("garden_party.xrs")
REAL = [*sorted(CONFORMANCE.glob("*.xrs")), OURS]


def node(
    id: int, condition: str, conclusion: str, *, links: tuple[int, int, int] = (-1, -1, -1), stone: str = ""
) -> str:
    parent, then, otherwise = links
    return f"""<ruleNode><id>{id}</id><parent>{parent}</parent><trueChild>{then}</trueChild>
    <falseChild>{otherwise}</falseChild><condition>{condition}</condition><conclusion>{conclusion}</conclusion>
    <cornerstone>{stone}</cornerstone><description>rule {id}</description></ruleNode>"""


def steps(*pairs: tuple[str, str], old: bool = False) -> str:
    form = (
        "<_{0}><action>{1}</action><target>{2}</target></_{0}>"
        if old
        else ('<step index="{0}"><action>{1}</action><target>{2}</target></step>')
    )
    return "".join(form.format(count, action, target) for count, (action, target) in enumerate(pairs, 1))


ROOT = node(0, "True", "null", links=(-1, 1, -1))
CHANGE = steps(("suspend", "workitem"), ("compensate", "ChangeVenue;TellFans"), ("continue", "workitem"))
OLD = steps(
    ("remove", "ancestorCases"), ("complete", "workitem"), ("fail", "workitem"), ("restart", "workitem"), old=True
)
EVERYTHING = f"""<?xml version="1.0" encoding="utf-8"?>
<spec uri="Concert" version="0.2" identifier="UID_1">
  <!-- a remark -->
  <constraints>
    <case><pre>{node(0, "Name = smith", steps(("remove", "case")), stone="<Name>smith</Name>")}</pre>
          <post>{node(0, "Paid = false", steps(("suspend", "allcases")))}</post></case>
    <item><pre><task name="Do Show">{ROOT}{
    node(1, "Sold &lt; (Seating * 0.75)", CHANGE, links=(0, -1, -1), stone="<Sold>20000</Sold><Seating>30000</Seating>")
}</task></pre>
          <post><task name="B">{node(0, "True", OLD)}</task></post></item>
  </constraints>
  <selection><task name="Treat">{ROOT}{node(1, "Fever = true", steps(("select", "UID_6c-1")), links=(0, -1, 2))}
    {node(2, "Fever = false", "TreatNothing", links=(1, -1, -1))}</task></selection>
  <abort><task name="A" since="2009">{node(0, "{boolean(//a)}", steps(("rollback", "workitem")))}</task></abort>
  <timeout><task name="Pay">{node(0, "hasTimerExpired(this)", steps(("compensate", "SendReminder")))}</task></timeout>
  <resourceUnavailable><task name="A">{node(0, "True", "null")}</task></resourceUnavailable>
  <violation><task name="A">{node(0, "a = 1 &amp; b = 2 | c = 3", "null")}</task></violation>
  <external><case>{node(0, 'trigger="Band Broken Up"', steps(("remove", "case")))}</case>
    <item><task name="A">{node(0, "true", "null")}</task></item></external>
  <strange kept="yes">as it is</strange>
</spec>"""


def canonical(text: str) -> str:
    return ET.canonicalize(text, strip_text=True)


def test_all_ten_types_and_selection_have_their_places() -> None:  # EX-12
    rules = read_xrs(EVERYTHING).rule_set
    assert set(rules.trees) == set(ExceptionType)
    assert list(rules.trees[ExceptionType.ITEM_PRE]) == ["Do Show"]
    assert list(rules.trees[ExceptionType.CASE_POST]) == [""]
    assert rules.name == "Concert"
    assert not problems_of(rules)


def test_what_was_read_is_written_again_as_it_was() -> None:  # EX-12
    found = read_xrs(EVERYTHING)
    written = write_xrs(found.rule_set)
    assert canonical(written.text) == canonical(EVERYTHING)
    assert read_xrs(written.text).rule_set == found.rule_set
    assert "a remark" in written.text
    assert not written.problems


@pytest.mark.parametrize("path", REAL, ids=[path.stem for path in REAL])
def test_the_files_of_the_worklet_service_come_back_as_they_were(path: Path) -> None:  # EX-12
    found = load_xrs(path)
    assert not found.problems
    assert not problems_of(found.rule_set)
    assert canonical(write_xrs(found.rule_set).text) == canonical(path.read_text("utf-8-sig"))
    assert read_rules(write_rules(found.rule_set), "x.yaml") == found.rule_set, "also by way of our own files"


def test_a_conclusion_becomes_an_exlet_that_does_the_same() -> None:  # EX-12
    rules = read_xrs(EVERYTHING).rule_set
    body = rules.exlets["item-pre.Do-Show.1"].body
    assert isinstance(body, Sequence)
    suspend, compensate, go_on = body.body
    assert isinstance(suspend, PrimitiveStep)
    assert isinstance(go_on, PrimitiveStep)
    assert (suspend.do, suspend.target, go_on.do) == (Primitive.SUSPEND, "item", Primitive.CONTINUE)
    assert isinstance(compensate, Sequence)
    together, *writes = compensate.body
    assert isinstance(together, Parallel)
    assert [call.flow for call in together.branches if isinstance(call, Call)] == ["ChangeVenue", "TellFans"]
    assert [write.do for write in writes if isinstance(write, PrimitiveStep)] == [Primitive.WRITE, Primitive.WRITE]
    old = rules.exlets["item-post.B.0"].body
    assert isinstance(old, Sequence)
    assert [(step.do, step.target) for step in old.body if isinstance(step, PrimitiveStep)] == [
        (Primitive.REMOVE, "ancestors"),
        (Primitive.COMPLETE, "item"),
        (Primitive.FAIL, "item"),
        (Primitive.RESTART, "item"),
    ]
    assert [step.settings for step in old.body if isinstance(step, PrimitiveStep) and step.do is Primitive.FAIL] == [
        {"throw": False}
    ], "in YAWL the next item runs"


def test_a_selection_concludes_its_worklet() -> None:
    rules = read_xrs(EVERYTHING).rule_set
    context: dict[str, Value] = {"item": {"data": {"Fever": True}}}
    chosen = compile_rules(rules).judge(ExceptionType.SELECTION, "Treat", context_lookup(context)).conclusion
    assert chosen is not None
    assert chosen.exlet == "UID_6c-1"


def test_a_case_is_judged_by_its_data_as_there() -> None:
    rules = compile_rules(read_xrs(EVERYTHING).rule_set)
    for sold, concluded in ((20_000, "item-pre.Do-Show.1"), (29_000, None)):
        context: dict[str, Value] = {"case": {"data": {"Seating": 30_000}}, "item": {"data": {"Sold": sold}}}
        conclusion = rules.judge(ExceptionType.ITEM_PRE, "Do Show", context_lookup(context)).conclusion
        assert (conclusion.exlet if conclusion else None) == concluded


def test_cornerstones_conclude_what_they_did() -> None:
    rules = read_xrs(EVERYTHING).rule_set
    stone = rules.trees[ExceptionType.ITEM_PRE]["Do Show"].rules[1].cornerstone
    assert stone == {"data": {"Sold": 20_000, "Seating": 30_000}}
    assert compile_rules(rules).judge(ExceptionType.ITEM_PRE, "Do Show", context_lookup(stone)).conclusion


def test_what_cannot_be_translated_is_told_with_its_place_and_kept() -> None:  # EX-12
    found = read_xrs(EVERYTHING, "c.xrs")
    told = [(problem.line, problem.message) for problem in found.problems]
    line = next(at for at, text in enumerate(EVERYTHING.splitlines(), 1) if "boolean(//a)" in text)
    assert [message.split(";")[0] for _, message in told] == [
        "the condition `{boolean(//a)}` cannot be translated: it is XQuery",
        "step 1: there is no counterpart of the action `rollback`",
        "`strange` is no exception that is known here",
    ]
    assert told[0][0] == line
    rule = found.rule_set.trees[ExceptionType.ABORT]["A"].rules[0]
    assert (rule.condition, rule.exlet) == ("false", "")


def test_a_rule_that_was_changed_here_is_written_anew_and_the_others_as_they_were() -> None:
    rules = read_xrs(EVERYTHING).rule_set
    changed = replace_exlet(rules, ExceptionType.CASE_PRE, "", 0, "case-post.0")
    context: dict[str, Value] = {"item": {"data": {"Sold": 5, "Seating": 30_000}}}
    grown = add_rule(
        changed, ExceptionType.ITEM_PRE, "Do Show", context, Draft(condition="data.Sold < 10", exlet="case-pre.0")
    ).rule_set
    written = write_xrs(grown)
    assert "<condition>Sold &lt; 10</condition>" in written.text
    assert "<condition>Sold &lt; (Seating * 0.75)</condition>" in written.text
    assert read_xrs(written.text).rule_set == grown


def test_a_change_by_another_tool_beats_what_we_wrote_beside_it() -> None:
    rules = read_rules(
        "rules: x\nabort:\n  - if: fault.type == 'oom'\n    author: ann\n    do:\n      - restart:\n", "x.yaml"
    )
    text = write_xrs(rules).text
    changed = read_xrs(text.replace("<condition>False</condition>", "<condition>Size &gt; 3</condition>")).rule_set
    [rule] = changed.trees[ExceptionType.ABORT]["*"].rules.values()
    assert (rule.condition, rule.author) == ("data.Size > 3", "ann")


def test_what_yawl_cannot_say_is_told_and_nothing_is_lost() -> None:
    rules = read_rules(
        "rules: x\nabort:\n  - if: fault.type == 'oom'\n    do:\n      - re-submit:\n        memory: 2 GB\n", "x.yaml"
    )
    written = write_xrs(rules)
    assert [problem.message.split(":", 1)[1].split(";")[0] for problem in written.problems] == [
        " YAWL has no words for the condition `fault.type == 'oom'`",
        " YAWL has no words for the exlet `abort.1`",
    ]
    assert read_xrs(written.text).rule_set == rules


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(rules=rule_sets())
def test_any_rule_set_comes_back_from_xml(rules: RuleSet) -> None:  # EX-12
    assert read_xrs(write_xrs(rules).text).rule_set == rules


def test_the_oldest_files_have_tasks_right_below_the_root_and_names_as_conclusions() -> None:
    text = f'<spec><task name="Treat">{ROOT}{node(1, "Fever = true", "TreatFever", links=(0, -1, -1))}</task></spec>'
    found = read_xrs(text, "Casualty.xrs").rule_set
    assert found.name == "Casualty"
    assert found.trees[ExceptionType.SELECTION]["Treat"].rules[1].exlet == "TreatFever"
    assert canonical(write_xrs(found).text) == canonical(text)


def test_the_triggers_that_can_be_raised_are_in_the_file() -> None:
    rules = read_xrs(EVERYTHING).rule_set
    assert [each.name for each in triggers(rules, ExceptionType.CASE_EXTERNAL)] == ["Band Broken Up"]


LAUGHS = '<!DOCTYPE s [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><spec uri="&b;"/>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "a document type is not taken"),
        ('<!DOCTYPE s SYSTEM "file:///etc/passwd"><spec/>', "a document type is not taken"),
        ("<spec>", "this is not XML"),
        ("", "this is not XML"),
        ("<a>" * 60 + "</a>" * 60, "more than 50 deep"),
        (
            f'<spec><abort><task name="A">{node(0, "True", "null", links=(-1, 7, -1))}</task></abort></spec>',
            "rule 7 is missing",
        ),
        (f'<spec><abort><task name="A">{ROOT}{ROOT}</task></abort></spec>', "two rules of this tree have the id 0"),
        ('<spec><abort><task name="A"><ruleNode><id>x</id></ruleNode></task></abort></spec>', "a rule has an id"),
        (f"<spec><abort><task>{ROOT}</task></abort></spec>", "a task has a name"),
    ],
)
def test_what_is_no_rule_file_is_refused(text: str, said: str) -> None:  # EX-12
    with pytest.raises(BadRules) as caught:
        read_xrs(text, "x.xrs")
    assert said in caught.value.message


def test_a_file_too_large_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(BadRules, match="MB"):
        read_xrs(b" " * (11 * 1024 * 1024))


def test_other_encodings_and_marks_at_the_beginning_are_understood() -> None:
    text = f'<spec uri="Größe"><violation><task name="A">{node(0, "Maß = 3", "null")}</task></violation></spec>'
    for data in (text.encode("utf-8-sig"), text.encode("utf-16"), text):
        rules = read_xrs(data).rule_set
        assert rules.name == "Größe"
        assert rules.trees[ExceptionType.VIOLATION]["A"].rules[0].condition == 'data["Maß"] == 3'


def rule_file(*nodes: str, place: str = "abort", task: str = "A") -> str:
    """A file with one tree, at this place."""
    opened, closed = (
        "".join(f"<{mark}{tag}>" for tag in place.split("/")[:: 1 if not mark else -1]) for mark in ("", "/")
    )
    inner = f'<task name="{task}">{"".join(nodes)}</task>'
    return f'<spec uri="F">{opened}{inner}{closed}</spec>'


@pytest.mark.parametrize("place", ["constraints/case/pre", "constraints/case/post", "external/case"])
def test_ex_12_a_task_that_stands_for_the_whole_case_holds_the_rules_of_the_case(place: str) -> None:
    text = rule_file(node(0, "n = 1", steps(("remove", "case"))), place=place, task="_case_level_")
    found = read_xrs(text)
    [(_, trees)] = found.rule_set.trees.items()
    assert (found.problems, list(trees), trees[""].rules[0].condition) == ([], [""], "data.n == 1")
    written, left = write_xrs(found.rule_set)
    assert left == []
    assert '<task name="_case_level_">' in written
    assert read_xrs(written).rule_set == found.rule_set


def test_ex_12_a_second_tree_for_the_case_is_refused() -> None:
    both = f'<task name="_case_level_">{ROOT}</task><task name="other">{ROOT}</task>'
    with pytest.raises(BadRules, match="a case has one tree of rules"):
        read_xrs(f'<spec uri="F"><constraints><case><pre>{both}</pre></case></constraints></spec>')


DROPPED = [
    ([("suspend", "case"), ("rollback", "case"), ("continue", "case")], ["suspend", "continue"], "step 2:"),
    ([("rollback", "case")], [], "concludes nothing"),
    ([("restart", "case"), ("remove", "workitem")], ["remove"], "`restart` cannot be done to `case`"),
    ([("remove", "case")], ["remove"], ""),
]


@pytest.mark.parametrize(("given", "kept", "said"), DROPPED)
def test_ex_12_a_step_without_a_counterpart_is_left_out_and_told_and_the_others_stay(
    given: list[tuple[str, str]], kept: list[str], said: str
) -> None:
    text = rule_file(node(0, "True", steps(*given)))
    found = read_xrs(text)
    rule = found.rule_set.trees[ExceptionType.ABORT]["A"].rules[0]
    done = list(walk_activities(found.rule_set.exlets[rule.exlet]))[::-1] if rule.exlet else []
    assert [step.do.value for step in done if isinstance(step, PrimitiveStep)] == kept
    assert [said in str(problem) for problem in found.problems] == ([True] if said else [])
    written, _ = write_xrs(found.rule_set)
    assert all(f"<action>{action}</action>" in written for action, _ in given), "written again as it was"
    assert read_xrs(written).rule_set == found.rule_set


TYPED = [
    ("string", "0123", "0123"),
    ("string", "true", "true"),
    ("number", "0123", 123),
    ("boolean", "true", True),
    ("", "0123", 123),
    ("list", "<e>1</e><e>2</e>", [1, 2]),
    ("list", "<e>1</e>", [1]),
    ("list", "", []),
]


@pytest.mark.parametrize(("type", "text", "value"), TYPED)
def test_ex_12_data_in_a_file_has_the_types_that_its_flow_declares(type: str, text: str, value: Value) -> None:
    made = rule_file(node(0, "True", steps(("remove", "workitem")), stone=f"<n>{text}</n>"))
    rules = read_xrs(made, types={"n": type} if type else {}).rule_set
    stone = rules.trees[ExceptionType.ABORT]["A"].rules[0].cornerstone
    assert stone == {"data": {"n": value}}
    assert read_xrs(write_xrs(rules)[0]).rule_set == rules, "nothing is lost on the way out and in"
