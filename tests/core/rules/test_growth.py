"""How rule sets grow: a rule for the case at hand, where it belongs, at nobody else's cost."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules import (
    CornerstoneConflict,
    Draft,
    add_rule,
    compile_rules,
    context_lookup,
    find_passive_rule,
    locate_rule,
    neighbour_cornerstone,
    place,
    problems_of,
    replace_exlet,
    retire,
    set_passive,
    with_exlet,
)
from mendflow.core.rules.cornerstones import BYTES_MAX, cornerstone
from tests.core.rules.trees import ABORT, CONDITIONS, CONTEXTS, exlet, holds, one_tree, row

EMPTY = RuleSet(name="flow", exlets={name: exlet(name) for name in ("more", "less", "later")})


def draft(condition: str, exlet: str = "more", **more: Value) -> Draft:
    return Draft(condition=condition, exlet=exlet, author="ann", at=7, **more)


def concluded(rules: RuleSet, context: dict[str, Value], task: str = "align") -> str:
    conclusion = compile_rules(rules).judge(ABORT, task, context_lookup(context)).conclusion
    return conclusion.exlet if conclusion else ""


OOM: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 1, "attempts": 1}}
BIG: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 9, "attempts": 1}}
DISK: dict[str, Value] = {"fault": {"type": "disk"}, "job": {"memory": 1, "attempts": 1}}


def grown() -> RuleSet:
    first = add_rule(EMPTY, ABORT, "align", OOM, draft('fault.type == "oom"'))
    second = add_rule(first.rule_set, ABORT, "align", BIG, draft("job.memory > 5", "less"))
    return add_rule(second.rule_set, ABORT, "align", DISK, draft('fault.type == "disk"', "later")).rule_set


def test_a_rule_goes_where_the_walk_for_its_case_ends() -> None:  # EX-7
    rules = grown()
    tree = rules.trees[ABORT]["align"]
    assert (tree.rules[1].on_true, tree.rules[1].on_false) == (2, 3), "a refinement of the first, an alternative to it"
    assert [concluded(rules, case) for case in (OOM, BIG, DISK)] == ["more", "less", "later"]
    assert rules.version == 3
    assert tree.rules[3].author == "ann"
    assert tree.rules[3].at == 7
    assert not problems_of(rules)


def test_the_tree_says_where_before_anything_is_added() -> None:  # EX-7
    rules = grown()
    context: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 2, "attempts": 4}}
    found = place(rules, ABORT, "align", context)
    assert (found.tree, found.parent, found.side, found.neighbour) == ("align", 2, "false", 1)
    assert neighbour_cornerstone(rules, ABORT, found) == OOM
    unknown = place(rules, ABORT, "align", {"fault": {"type": "new"}})
    assert (unknown.parent, unknown.side, unknown.neighbour) == (3, "false", None)
    assert neighbour_cornerstone(rules, ABORT, unknown) is None
    assert place(rules, ExceptionType.TIMEOUT, "align", {}).parent is None


def test_the_case_is_kept_as_cornerstone() -> None:  # EX-7
    assert grown().trees[ABORT]["align"].rules[2].cornerstone == BIG


def test_a_rule_that_would_change_a_cornerstone_is_refused_by_its_name() -> None:  # EX-7
    rules = grown()
    late: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 1, "attempts": 5}}
    with pytest.raises(CornerstoneConflict) as caught:
        add_rule(rules, ABORT, "align", late, draft("job.attempts > 0", "later"))
    assert "the cornerstone of rule 1 in abort/align would conclude `later` instead of `more`" in caught.value.message
    assert (caught.value.fields["tree"], caught.value.fields["rule"]) == ("align", 1)
    narrowed = add_rule(rules, ABORT, "align", late, draft("job.attempts > 3", "later"))
    assert concluded(narrowed.rule_set, late) == "later"
    assert concluded(narrowed.rule_set, OOM) == "more"


def test_the_same_conclusion_for_a_cornerstone_is_no_change() -> None:
    late: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 1, "attempts": 5}}
    assert add_rule(grown(), ABORT, "align", late, draft("job.attempts > 0", "more"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (draft("fault.type =="), "ends too early"),
        (draft('fault.type == "disk"'), "does not hold for the case at hand"),
        (draft("job.gone == 1"), "there is no `job.gone`"),
        (draft("true", "nosuch"), "there is no exlet `nosuch`"),
        (draft("true", "less", steps=exlet("other")), "give the new one another name"),
        (draft("a.all(x, a.all(y, a.all(z, true)))"), "lists inside lists"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(wanted: Draft, said: str) -> None:  # EX-6
    with pytest.raises(InvalidRequest, match=r".*") as caught:
        add_rule(grown(), ABORT, "align", OOM, wanted)
    assert said in caught.value.message


def test_a_rule_brings_its_exlet_with_it() -> None:
    found = add_rule(EMPTY, ABORT, "align", OOM, draft("true", "fresh", steps=exlet("fresh")))
    assert found.rule_set.exlets["fresh"] == exlet("fresh")
    assert EMPTY.exlets.keys() == {"more", "less", "later"}, "the earlier version is as it was"


def test_a_rule_without_a_case_goes_to_the_end_of_the_first_row() -> None:
    found = add_rule(grown(), ABORT, "align", None, draft('fault.type == "net"', "more"))
    tree = found.rule_set.trees[ABORT]["align"]
    assert tree.rules[3].on_false == found.rule
    assert tree.rules[found.rule].cornerstone is None


def test_a_task_that_gets_a_tree_of_its_own_loses_nothing_of_the_common_one() -> None:
    common = one_tree(row(('fault.type == "oom"', "more")))
    found = add_rule(common, ABORT, "align", DISK, draft("true", "more"))
    assert concluded(found.rule_set, OOM) == concluded(found.rule_set, DISK) == "more"
    assert concluded(found.rule_set, DISK, task="sort") == "", "other tasks know nothing of it"
    assert found.rule_set.trees[ABORT][DEFAULT_RULES] == common.trees[ABORT][DEFAULT_RULES]


def test_a_case_level_type_has_one_tree() -> None:
    found = add_rule(EMPTY, ExceptionType.CASE_PRE, "", OOM, draft("true"))
    assert list(found.rule_set.trees[ExceptionType.CASE_PRE]) == [""]


@given(steps=st.lists(st.tuples(CONTEXTS, CONDITIONS, st.sampled_from(["more", "less", "later"])), max_size=12))
def test_whatever_is_added_each_case_keeps_what_was_concluded_for_it(
    steps: list[tuple[dict[str, Value], str, str]],
) -> None:  # EX-7
    rules, right = EMPTY, list[tuple[dict[str, Value], str]]()
    for context, condition, wanted in steps:
        try:
            found = add_rule(rules, ABORT, "align", context, draft(condition, wanted))
        except InvalidRequest:
            assert not holds(condition, context)
            continue
        except CornerstoneConflict:
            continue
        rules = found.rule_set
        right.append((context, wanted))
        assert [concluded(rules, case) for case, _ in right] == [exlet for _, exlet in right]
    assert not problems_of(rules)


def test_a_rule_on_trial_is_added_whatever_it_would_change_and_put_in_force_only_if_nothing() -> None:
    rules = grown()
    late: dict[str, Value] = {"fault": {"type": "oom"}, "job": {"memory": 1, "attempts": 5}}
    wide = add_rule(rules, ABORT, "align", late, draft("job.attempts > 0", "later", passive=True))
    assert concluded(wide.rule_set, late) == "more"
    [trial] = compile_rules(wide.rule_set).judge(ABORT, "align", context_lookup(late)).trials
    assert (trial.exlet, trial.rule, trial.passive) == ("later", wide.rule, True)
    with pytest.raises(CornerstoneConflict):
        set_passive(wide.rule_set, ABORT, "align", wide.rule, False)
    narrow = add_rule(rules, ABORT, "align", late, draft("job.attempts > 3", "later", passive=True))
    live = set_passive(narrow.rule_set, ABORT, "align", narrow.rule, False, author="bea", at=9)
    assert concluded(live, late) == "later"
    assert concluded(set_passive(live, ABORT, "align", narrow.rule, True), late) == "more"
    assert live.version == narrow.rule_set.version + 1


def test_a_rejected_choice_is_corrected_in_the_rule_itself_or_by_taking_it_out_of_use() -> None:  # EX-8
    rules = grown()
    assert concluded(replace_exlet(rules, ABORT, "align", 2, "later"), BIG) == "later"
    assert concluded(replace_exlet(rules, ABORT, "align", 2, "new", steps=exlet("new")), BIG) == "new"
    assert concluded(retire(rules, ABORT, "align", 2), BIG) == "more"
    whole = retire(rules, ABORT, "align", 1, exceptions=True)
    assert concluded(whole, DISK) == "later", "what was placed beside it still is"
    with pytest.raises(InvalidRequest):
        replace_exlet(rules, ABORT, "align", 2, "nosuch")
    with pytest.raises(InvalidRequest, match="another name"):
        replace_exlet(rules, ABORT, "align", 2, "more", steps=exlet("other"))
    with pytest.raises(NotFound, match="no rule 9 in abort/align"):
        retire(rules, ABORT, "align", 9)


def test_an_exlet_can_be_put_in_place_of_another() -> None:
    after = with_exlet(grown(), "more", exlet("better"), author="bea")
    assert after.exlets["more"] == exlet("better")
    assert (after.version, after.author) == (4, "bea")


def test_a_cornerstone_is_bounded_and_keeps_what_the_conditions_asked_for() -> None:
    context: dict[str, Value] = {
        "job": {"log_tail": "x" * 50_000 + "the end", "command": "y" * 3000},
        "items": {f"item-{number}": "z" * 100 for number in range(5000)},
        "case": {"data": {"deep": [[[[[[[[[[1]]]]]]]]]]}},
    }
    kept = cornerstone(context, ["job.log_tail"])
    assert kept["job"]["log_tail"] == context["job"]["log_tail"]
    rest = {**kept, "job": {}}
    assert len(msgspec.json.encode(rest)) <= BYTES_MAX
    without = cornerstone(context)
    assert len(msgspec.json.encode(without)) <= BYTES_MAX
    assert without["job"]["log_tail"].endswith("the end"), "of a long text the end tells most"


def test_a_rule_with_exceptions_in_use_is_retired_after_them_or_with_them() -> None:  # EX-7
    rules = grown()
    with pytest.raises(Conflict, match=r"rule 1 in abort/align has exceptions .* not be evaluated any more \(2\)"):
        retire(rules, ABORT, "align", 1)
    without = retire(retire(rules, ABORT, "align", 2), ABORT, "align", 1)
    together = retire(rules, ABORT, "align", 1, exceptions=True)
    assert without.trees == together.trees
    assert (together.version, without.version) == (rules.version + 1, rules.version + 2)
    assert [concluded(together, case) for case in (OOM, BIG, DISK)] == ["", "", "later"]
    with pytest.raises(Conflict, match="already out of use"):
        retire(together, ABORT, "align", 2)


def test_a_rule_that_decides_about_the_cornerstone_of_another_is_not_retired() -> None:  # EX-7
    first = Rule(id=1, condition="job.attempts > 0", exlet="later", on_true=2, cornerstone={"job": {"attempts": 3}})
    other = Rule(id=2, condition="job.attempts > 2", exlet="more")
    rules = RuleSet(name="f", trees={ABORT: {"align": RuleTree({1: first, 2: other}, 1)}})
    with pytest.raises(CornerstoneConflict, match="rule 1 in abort/align would conclude `later` instead of `more`"):
        retire(rules, ABORT, "align", 2)


def test_what_is_on_trial_and_then_wished_for_in_earnest_is_the_same_rule() -> None:  # EX-7
    tried = add_rule(grown(), ABORT, "align", DISK, draft("job.attempts == 1", "more", passive=True))
    assert find_passive_rule(tried.rule_set, ABORT, "align", DISK, draft("job.attempts == 1")) is None, (
        "3 has that case"
    )
    new: dict[str, Value] = {"fault": {"type": "new"}, "job": {"memory": 1, "attempts": 9}}
    tried = add_rule(grown(), ABORT, "align", new, draft("job.attempts > 8", "more", passive=True))
    assert find_passive_rule(tried.rule_set, ABORT, "align", new, draft("job.attempts > 8")) == (
        ABORT,
        "align",
        tried.rule,
    )
    assert find_passive_rule(tried.rule_set, ABORT, "align", new, draft("job.attempts > 8", "less")) is None
    assert find_passive_rule(tried.rule_set, ABORT, "align", OOM, draft("job.attempts > 8")) is None


def test_a_rule_is_meant_by_its_number_and_where_several_have_it_by_its_tree_too() -> None:
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="more")}, 1)
    rules = RuleSet(name="f", trees={ABORT: {"align": tree, DEFAULT_RULES: tree}, ExceptionType.CASE_PRE: {"": tree}})
    assert locate_rule(rules, 1, ABORT, DEFAULT_RULES) == (ABORT, DEFAULT_RULES, 1)
    assert locate_rule(rules, 1, ExceptionType.CASE_PRE) == (ExceptionType.CASE_PRE, "", 1)
    assert locate_rule(rules, 1, task="align") == (ABORT, "align", 1)
    with pytest.raises(
        InvalidRequest, match=r"rule 1 in each of abort/align, abort/\*, case-pre; say the type and the task"
    ):
        locate_rule(rules, 1)
    with pytest.raises(NotFound, match="no rule 2 in abort/align of `f`"):
        locate_rule(rules, 2, ABORT, "align")


def test_a_condition_that_asks_for_what_no_context_has_is_refused_with_what_was_meant() -> None:
    with pytest.raises(InvalidRequest, match=r"a rule knows no `falt` \(did you mean `fault`\?\)"):
        add_rule(EMPTY, ABORT, "align", OOM, draft("falt.exit_code == 7"))
