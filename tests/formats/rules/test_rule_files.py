"""Rule files: what they say, and that writing and reading them loses nothing."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from mendflow.core.model.errors import BadRules
from mendflow.core.model.flow import Call, JobActivity, PrimitiveStep, Scope, Sequence
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules import compile_rules, context_lookup, problems_of
from mendflow.formats.rules import load_rules, read_rules, write_rules
from mendflow.formats.rules.dump import dump
from mendflow.formats.rules.xrs_writer import write_xrs
from tests.examples import examples
from tests.formats.rules.rule_sets import rule_sets

FILE = """
rules: align
note: after the first night
author: ann
at: 2026-01-02T03:04:05Z

case-external:
  - if: trigger == "Band Broken Up"
    do:
      - suspend: case
      - compensate: CancelShow
      - remove: case

abort:
  align:
    - if: fault.type == "out-of-memory"
      do: more-memory
      note: samples grow
      except:
        - if: job.attempts > 3
          do: give-up
          passive: true
        - if: ${{ job.site == "york" }}
          # york has large nodes: nothing to do
    - if: sources.weather.storm
      do:
        - retry-later: 2
          wait: 10 min
      cornerstone: {sources: {weather: {storm: true}}}
  "*":
    - if: true
      do: give-up

selection:
  treat:
    - if: case.data.fever
      do: treat-fever

exlets:
  more-memory:
    - re-submit:
      memory: ${{ job.memory_bytes * 2 }}
  give-up:
    - run: echo "giving up"
    - notify: could not mend ${{ item.name }}
"""


def test_a_rule_file_is_a_rule_set() -> None:  # EX-5
    rules = read_rules(FILE, "align.rules.yaml")
    assert (rules.name, rules.note, rules.author, rules.at) == ("align", "after the first night", "ann", 1767323045000)
    tree = rules.trees[ExceptionType.ABORT]["align"]
    assert [(rule.condition, rule.on_true, rule.on_false) for rule in tree.rules.values()] == [
        ('fault.type == "out-of-memory"', 2, 4),
        ("job.attempts > 3", None, 3),
        ('job.site == "york"', None, None),
        ("sources.weather.storm", None, None),
    ]
    assert (tree.rules[2].passive, tree.rules[3].exlet, tree.rules[1].note) == (True, "", "samples grow")
    assert tree.rules[4].cornerstone == {"sources": {"weather": {"storm": True}}}
    assert rules.trees[ExceptionType.SELECTION]["treat"].rules[1].exlet == "treat-fever"
    assert set(rules.trees[ExceptionType.ABORT]) == {"align", DEFAULT_RULES}
    assert not problems_of(rules)


def test_steps_that_stand_in_a_rule_are_an_exlet_with_a_name_of_its_own() -> None:
    rules = read_rules(FILE, "align.rules.yaml")
    [rule] = rules.trees[ExceptionType.CASE_EXTERNAL][""].rules.values()
    assert rule.exlet == "case-external.1"
    body = rules.exlets[rule.exlet].body
    assert isinstance(body, Sequence)
    suspend, compensate, remove = body.body
    assert isinstance(suspend, PrimitiveStep)
    assert (suspend.do, suspend.target) == (Primitive.SUSPEND, "case")
    assert isinstance(compensate, Sequence)
    assert isinstance(compensate.body[0], Call)
    assert compensate.body[0].flow == "CancelShow"
    assert isinstance(remove, PrimitiveStep)


def test_an_exlet_may_do_what_flows_do() -> None:
    body = read_rules(FILE, "align.rules.yaml").exlets["give-up"].body
    assert isinstance(body, Scope)
    assert isinstance(body.body, Sequence)
    assert isinstance(body.body.body[0], JobActivity)


@pytest.mark.parametrize(
    ("context", "concluded"),
    [
        ({"fault": {"type": "out-of-memory"}, "job": {"attempts": 9, "site": "leeds"}}, "more-memory"),
        ({"fault": {"type": "out-of-memory"}, "job": {"attempts": 1, "site": "york"}}, None),
        ({"fault": {"type": "other"}, "sources": {"weather": {"storm": True}}}, "abort.align.4"),
        ({"fault": {"type": "other"}, "sources": {}}, None),
    ],
)
def test_rows_are_asked_from_the_top_and_exceptions_only_where_their_rule_holds(
    context: dict[str, Value], concluded: str | None
) -> None:
    rules = compile_rules(read_rules(FILE, "align.rules.yaml"))
    conclusion = rules.judge(ExceptionType.ABORT, "align", context_lookup(context)).conclusion
    assert (conclusion.exlet if conclusion else None) == concluded


def test_a_list_alone_is_for_all_tasks() -> None:
    rules = read_rules("abort:\n  - if: true\n    do:\n      - restart:\n", "x.yaml")
    assert list(rules.trees[ExceptionType.ABORT]) == [DEFAULT_RULES]
    assert rules.name == "x"
    assert "abort:\n  - if: true\n    do:\n      - restart:" in write_rules(rules)


def test_a_file_is_written_as_people_write_it() -> None:
    rules = read_rules(FILE, "align.rules.yaml")
    written = write_rules(rules)
    assert read_rules(written, "align.rules.yaml") == rules
    for line in ('    - if: fault.type == "out-of-memory"', "        - if: job.attempts > 3", "          wait: 10 min"):
        assert line in written
    assert "model" not in written
    assert "id:" not in written


def test_a_command_that_was_composed_is_written_as_a_step() -> None:  # EX-12
    steps = [
        {"run": "rm -f ${{ job.inputs.x }}", "name": "tidy", "if": "job.attempts < 3"},
        {"run": "module load x\nx", "shell": "sh", "env": {"A": "b"}, "memory": "2000000000 B", "cpus": 2},
        {"re-submit": True},
    ]
    rules = read_rules(dump({"rules": "align", "abort": {"align": [{"if": True, "do": steps}]}}), "align.rules.yaml")
    composed = msgspec.structs.replace(rules, kept={})
    written = write_rules(composed)
    assert "model" not in written and "run: rm -f ${{ job.inputs.x }}" in written
    assert [line.strip() for line in written.splitlines() if "cpus" in line] == ["cpus: 2.0"]  # one goes without saying
    assert read_rules(written, "align.rules.yaml").exlets == rules.exlets


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(rules=rule_sets())
def test_whatever_is_written_is_read_again(rules: RuleSet) -> None:  # EX-12
    assert read_rules(write_rules(rules), "any.yaml") == rules


def test_a_tree_too_deep_for_a_file_is_written_rule_by_rule() -> None:
    depth = 300
    tree = RuleTree(
        {id: Rule(id=id, condition="true", on_true=id + 1 if id < depth else None) for id in range(1, depth + 1)}, 1
    )
    rules = RuleSet(name="deep", trees={ExceptionType.ABORT: {"align": tree}})
    written = write_rules(rules)
    assert "then: 2" in written
    assert read_rules(written, "deep.yaml") == rules


@pytest.mark.full
def test_many_rules_fit_into_a_file() -> None:
    count = 3_000
    tree = RuleTree(
        {
            id: Rule(
                id=id,
                condition=f"job.exit_code == {id}",
                note="x",
                cornerstone={"job": {"exit_code": id}, "fault": {"type": "a"}},
                on_false=id + 1 if id < count else None,
            )
            for id in range(1, count + 1)
        },
        1,
    )
    rules = RuleSet(name="many", trees={ExceptionType.ABORT: {"align": tree}})
    assert read_rules(write_rules(rules), "many.yaml") == rules


def test_the_ending_of_a_file_says_what_it_is(tmp_path: Path) -> None:
    rules = read_rules("rules: x\nabort:\n  - if: data.n > 3\n    do:\n      - suspend: case\n", "x.yaml")
    for name, text in {"x.yaml": write_rules(rules, tmp_path), "x.xrs": write_xrs(rules).text}.items():
        (tmp_path / name).write_text(text)
        assert load_rules(tmp_path / name) == rules
    with pytest.raises(BadRules, match="there is no such file"):
        load_rules(tmp_path / "gone.yaml")
    with pytest.raises(BadRules, match="it cannot be read"):
        load_rules(tmp_path / "gone.xrs")


def test_a_selection_may_conclude_a_flow_file_beside_the_rules_and_brings_it_along(tmp_path: Path) -> None:  # EX-4
    (tmp_path / "wa.yaml").write_text("name: treat\njobs:\n  give: {run: echo aspirin}\n")
    (tmp_path / "clinic.rules.yaml").write_text("rules: clinic\nselection:\n  pick:\n    - {if: true, do: wa.yaml}\n")
    rules = load_rules(tmp_path / "clinic.rules.yaml")
    assert rules.trees[ExceptionType.SELECTION]["pick"].rules[1].exlet == "treat"
    assert rules.exlets["treat"].name == "treat"
    assert read_rules(write_rules(rules, tmp_path), tmp_path / "again.yaml") == rules


@pytest.mark.parametrize(
    ("does", "problem"),
    [("wb.yaml", "there is no flow file `wb.yaml`"), ("bad.yaml", "bad.yaml:2"), ("../wa.yaml", "leads out")],
)
def test_a_selection_of_a_file_that_is_no_flow_is_a_problem(tmp_path: Path, does: str, problem: str) -> None:  # EX-4
    (tmp_path / "bad.yaml").write_text("name: bad\njobs: {give: {rum: echo}}\n")
    with pytest.raises(BadRules) as raised:
        read_rules(f"selection:\n  pick:\n    - {{if: true, do: {does}}}\n", tmp_path / "clinic.rules.yaml")
    assert problem in str(raised.value)
