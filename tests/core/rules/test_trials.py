"""Rules tried on the past, and earlier versions brought back."""

import pytest

from mendflow.core.model.errors import BadRules, InvalidRequest
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules import (
    Draft,
    add_rule,
    compile_rules,
    demand_valid,
    problems_of,
    restore,
    try_in_place,
    try_rule,
)
from tests.core.rules.trees import ABORT, decision, exlet, one_tree, row

RULES = RuleSet(
    name="flow",
    version=4,
    trees={ABORT: {DEFAULT_RULES: row(('fault.type == "oom"', "more"))}},
    exlets={"more": exlet("more"), "later": exlet("later")},
)


def failed(type: str, attempts: int = 1) -> dict[str, Value]:
    return {"fault": {"type": type}, "job": {"attempts": attempts}}


PAST = [
    *(decision(f"net-{number}", failed("net", number)) for number in range(52)),
    *(decision(f"oom-{number}", failed("oom"), "more", "done") for number in range(5)),
    *(decision(f"other-{number}", failed("net", 50), "other", "done") for number in range(3)),
    *(decision(f"same-{number}", failed("net", 50), "later", "done") for number in range(2)),
    decision("bad", failed("net", 60), "other", "failed"),
]
WISH = Draft(condition='fault.type == "net" && job.attempts > 10', exlet="later")


def test_a_rule_would_have_caught_so_many_and_some_that_were_handled_otherwise() -> None:
    tried = try_rule(RULES, ABORT, "align", WISH, PAST, failed("net", 40))
    assert tried.sentence() == "would have caught 42 of 53, and 3 that were handled otherwise"
    assert tried.caught == (*(f"net-{number}" for number in range(11, 52)), "bad")
    assert tried.otherwise == ("other-0", "other-1", "other-2")
    assert tried.same == ("same-0", "same-1")
    assert tried.asked == len(PAST)


def test_a_rule_is_tried_in_its_place_not_by_itself() -> None:
    everything = Draft(condition="true", exlet="later")
    tried = try_rule(RULES, ABORT, "align", everything, PAST, failed("net", 40))
    assert not [id for id in (*tried.caught, *tried.otherwise) if id.startswith("oom")], "another rule has those"


def test_a_trial_tells_where_the_condition_errs() -> None:
    tried = try_rule(RULES, ABORT, "align", Draft(condition="job.gone > 3", exlet="later"), PAST[:2])
    assert list(tried.erred) == ["net-0", "net-1"]
    assert tried.missed == ("net-0", "net-1")


def test_what_cannot_be_a_rule_cannot_be_tried() -> None:
    with pytest.raises(InvalidRequest):
        try_rule(RULES, ABORT, "align", Draft(condition="job.", exlet="later"), PAST)


def test_a_rule_that_stands_is_tried_as_well() -> None:
    tried = try_in_place(compile_rules(RULES), ABORT, DEFAULT_RULES, 1, PAST)
    assert (len(tried.same), len(tried.otherwise), tried.caught) == (5, 0, ())


def test_an_earlier_version_comes_back_as_the_newest() -> None:
    grown = add_rule(RULES, ABORT, DEFAULT_RULES, failed("net", 40), WISH).rule_set
    again = restore(grown, RULES, author="bea", at=11)
    assert (again.version, again.trees, again.author, again.note) == (6, RULES.trees, "bea", "version 4 again")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (one_tree(RuleTree({0: Rule(id=0, condition="true", on_true=7)})), "abort/*: rule 7 is missing"),
        (one_tree(RuleTree({0: Rule(id=0, condition="true", on_true=0)})), "rule 0 hangs on two rules"),
        (
            one_tree(RuleTree({0: Rule(id=0, condition="true"), 1: Rule(id=1, condition="true")})),
            "rule 1 hangs on no other",
        ),
        (one_tree(RuleTree({0: Rule(id=3, condition="true")})), "rule 0 calls itself 3"),
        (one_tree(RuleTree({})), "it has no rules"),
        (one_tree(row(("job.", "a"))), "rule 1: in the condition `job.`"),
        (RuleSet(name="x", trees={ABORT: {DEFAULT_RULES: row(("true", "gone"))}}), "there is no exlet `gone`"),
        (one_tree(row(("true", "a")), "align", ExceptionType.CASE_PRE), "case-pre/align: a type of cases has one tree"),
    ],
)
def test_a_rule_set_that_cannot_be_asked_is_refused(rules: RuleSet, said: str) -> None:
    assert said in "\n".join(problems_of(rules))
    with pytest.raises(BadRules):
        demand_valid(rules)


def test_a_selection_concludes_flows_that_need_not_be_exlets() -> None:
    assert not problems_of(RuleSet(name="x", trees={ExceptionType.SELECTION: {"call": row(("true", "some-flow"))}}))
