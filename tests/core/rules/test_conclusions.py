"""What rule sets conclude, and how they say why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.expressions import conditions
from mendflow.core.expressions.cel import CompiledExpression
from mendflow.core.expressions.conditions import condition_of
from mendflow.core.model import repair
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules import compile_rules, context_lookup, triggers
from mendflow.core.rules.chains import LINES_MAX
from tests.core.rules.trees import ABORT, CONTEXTS, as_the_paper_says, exlet, one_tree, row, rules_asked, trees
from tests.examples import examples

# The rules for the item DoShow of the paper's figure 4.
SHOW = RuleTree(
    {
        0: Rule(id=0, condition="true", on_true=1),
        1: Rule(id=1, condition="data.TicketsSold < data.Seating * 0.75", exlet="mid-venue", on_true=2),
        2: Rule(id=2, condition="data.TicketsSold < data.Seating * 0.5", exlet="small-venue", on_true=3),
        3: Rule(id=3, condition="data.TicketsSold < data.Seating * 0.2", exlet="cancel"),
    }
)


@pytest.mark.parametrize(
    ("sold", "concluded", "rules"),
    [(900, None, []), (700, "mid-venue", [0, 1]), (400, "small-venue", [0, 1, 2]), (100, "cancel", [0, 1, 2, 3])],
)
def test_the_concert_moves_to_where_its_tickets_fit(sold: int, concluded: str | None, rules: list[int]) -> None:  # EX-5
    asked = compile_rules(one_tree(SHOW, "DoShow", ExceptionType.ITEM_PRE))
    context: dict[str, Value] = {
        "case": {"data": {"Seating": 1000, "TicketsSold": 5000}},
        "item": {"data": {"TicketsSold": sold}},
    }
    conclusion = asked.judge(ExceptionType.ITEM_PRE, "DoShow", context_lookup(context)).conclusion
    assert (conclusion.exlet if conclusion else None) == concluded
    if conclusion:
        assert [tested.rule for tested in conclusion.trail if tested.held] == rules
        assert conclusion.trail[-1].values["data.TicketsSold"] == sold


@settings(max_examples=examples(300))
@given(tree=trees(), context=CONTEXTS)
def test_the_last_rule_that_held_decides_and_the_trail_is_the_way(
    tree: RuleTree, context: dict[str, Value]
) -> None:  # EX-5
    verdict = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup(context))
    decided, asked = as_the_paper_says(tree, context)
    if decided is None or not tree.rules[decided].exlet:
        assert verdict.conclusion is None
        return
    conclusion = verdict.conclusion
    assert conclusion is not None
    assert (conclusion.rule, conclusion.exlet) == (decided, tree.rules[decided].exlet)
    assert rules_asked(tree, conclusion) == asked
    in_force = [id for id in asked if not tree.rules[id].passive]
    lines = [tested.rule for tested in conclusion.trail]
    assert [id for id in in_force if id in lines] == lines, "the trail is in the order of the way"
    assert len(lines) + conclusion.others == len(in_force), "every rule on the way has a line or is counted"


CONSTANTS = st.sampled_from(["true", "false", "null", "0", "1", "1.0", "2.5", "7", '"1"', '"x"'])
COMPARED = st.one_of(
    CONSTANTS.map(lambda constant: f"job.n == {constant}"),
    st.lists(CONSTANTS, min_size=1, max_size=3).map(lambda constants: f"job.n in [{', '.join(constants)}]"),
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-3, 9)).map(lambda two: f"job.n {two[0]} {two[1]}"),
    st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-3, 9)).map(lambda two: f"{two[1]} {two[0]} job.n"),
)
ROWS = st.lists(st.one_of(COMPARED, st.tuples(COMPARED, COMPARED).map(" && ".join)), min_size=8, max_size=30)
NUMBERS: st.SearchStrategy[Value] = st.sampled_from(
    [True, False, None, 0, 1, 1.0, 2, 2.5, 3, 5, 7, 8, -2, "1", "x", [1], {}, 2**60, -1e300]
)


@pytest.mark.full
@settings(max_examples=examples(400))
@given(conditions=ROWS, number=NUMBERS)
def test_in_a_long_row_the_first_that_holds_is_found_without_asking_all(conditions: list[str], number: Value) -> None:
    tree = row(*((condition, "x") for condition in conditions))
    context: dict[str, Value] = {"job": {"n": number}}
    conclusion = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup(context)).conclusion
    assert (conclusion.rule if conclusion else None) == as_the_paper_says(tree, context)[0]


@pytest.mark.full
def test_of_ten_thousand_rules_a_handful_is_asked() -> None:
    for condition in ("job.n == {}", "job.n >= {}", "job.n in [{}, -1]", "{} > job.n && job.n > 5"):
        tree = row(*((condition.format(20_000 - number), "x") for number in range(10_000)))
        conclusion = (
            compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup({"job": {"n": 15_000}})).conclusion
        )
        assert conclusion is not None
        assert len(conclusion.trail) <= 2
        assert len(conclusion.trail) + conclusion.others == len(rules_asked(tree, conclusion))


@given(tree=trees(passive=False), context=CONTEXTS)
def test_every_line_of_a_trail_is_true(tree: RuleTree, context: dict[str, Value]) -> None:
    conclusion = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup(context)).conclusion
    for tested in conclusion.trail if conclusion else ():
        alone = compile_rules(
            one_tree(RuleTree({0: Rule(id=0, condition=tree.rules[tested.rule].condition, exlet="x")}))
        )
        assert (alone.judge(ABORT, "align", context_lookup(context)).conclusion is not None) is tested.held
        assert not (tested.held and tested.error)


@given(tree=trees(), context=CONTEXTS)
def test_a_rule_on_trial_changes_nothing_and_tells_what_it_would_have(
    tree: RuleTree, context: dict[str, Value]
) -> None:
    verdict = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup(context))
    for trial in verdict.trials:
        assert trial.passive
        path = [tested.rule for tested in trial.trail if tested.held]
        assert path[-1] == trial.rule
        on_trial = [id for id in path if tree.rules[id].passive]
        live = {
            id: Rule(
                id=id,
                condition=rule.condition,
                exlet=rule.exlet,
                on_true=rule.on_true,
                on_false=rule.on_false,
                passive=rule.passive and id not in on_trial,
            )
            for id, rule in tree.rules.items()
        }
        decided, _ = as_the_paper_says(RuleTree(live, tree.root), context)
        assert decided == trial.rule, "in force, it would have decided so"


def test_a_task_has_its_own_tree_or_that_of_all_tasks() -> None:  # EX-5
    rules = RuleSet(
        name="flow",
        trees={ABORT: {DEFAULT_RULES: row(("true", "general")), "align": row(("true", "special"))}},
        exlets={"general": exlet("general"), "special": exlet("special")},
    )
    asked = compile_rules(rules)
    assert asked.tree_for(ABORT, "align") == "align"
    assert asked.tree_for(ABORT, "sort") == DEFAULT_RULES
    found = [asked.judge(ABORT, task, context_lookup({})).conclusion for task in ("align", "sort")]
    assert [conclusion.exlet for conclusion in found if conclusion] == ["special", "general"]


def test_a_type_without_rules_concludes_nothing() -> None:  # EX-5
    asked = compile_rules(one_tree(row(("true", "a"))))
    assert asked.tree_for(ExceptionType.TIMEOUT, "align") is None
    assert asked.judge(ExceptionType.TIMEOUT, "align", context_lookup({})) == (None, [], ())


def test_an_error_counts_as_not_held_and_is_told() -> None:  # EX-6
    tree = row(("job.exit_code > 'a'", "a"), ("job.gone == 1", "b"), ("1 / job.zero == 1", "c"), ("true", "d"))
    context: dict[str, Value] = {"job": {"exit_code": 3, "zero": 0}}
    conclusion = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup(context)).conclusion
    assert conclusion is not None
    assert conclusion.exlet == "d"
    assert [bool(tested.error) for tested in conclusion.trail] == [True, True, True, False]
    assert "there is no `job.gone`" in conclusion.trail[1].error
    assert conclusion.trail[0] == repair.TestedRule(1, False, {"job.exit_code": 3}, conclusion.trail[0].error)


def test_a_missing_name_is_told_by_one_of_the_many_rules_that_ask_for_it() -> None:
    tree = row(*((f"job.gone == {number}", "a") for number in range(50)), ("true", "b"))
    conclusion = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup({"job": {}})).conclusion
    assert conclusion is not None
    assert [tested.error for tested in conclusion.trail if tested.error] == ["`job.gone == 0`: there is no `job.gone`"]
    assert conclusion.others == 49


def test_a_trail_is_bounded_and_counts_the_rest() -> None:
    tree = row(*((f"job.name.contains('{number}')", "a") for number in range(500)), ("true", "b"))
    conclusion = compile_rules(one_tree(tree)).judge(ABORT, "align", context_lookup({"job": {"name": "x"}})).conclusion
    assert conclusion is not None
    assert len(conclusion.trail) == LINES_MAX + 1
    assert conclusion.others == 500 - LINES_MAX
    assert len(rules_asked(tree, conclusion)) == 501


def test_what_conditions_see() -> None:  # EX-6
    context: dict[str, Value] = {
        "case": {"data": {"samples": 3}},
        "item": {"status": "running"},
        "items": {"fetch": "failed"},
        "site": {"slots_free": 0},
        "history": {"task": {"failed": 7}},
        "sources": {"weather": {"rain": True}},
    }
    condition = (
        "case.data.samples == 3 && item.status == 'running' && items.fetch == 'failed' && site.slots_free == 0 && "
        "history.task.failed > 5 && sources.weather.rain"
    )
    assert compile_rules(one_tree(row((condition, "a")))).judge(ABORT, "align", context_lookup(context)).conclusion


def test_rules_choose_the_repair_by_how_the_conversation_runs_and_by_what_is_known_now() -> None:  # FM-11
    tree = row(
        ('pattern == "submit-and-poll" && fault.category == "network"', "re-poll"),
        ('pattern == "submit-and-notify" && fault.category == "network"', "re-register"),
        ('fault.category == "memory" && job.memory_bytes < site.largest.memory_bytes', "re-submit"),
    )
    asked = compile_rules(one_tree(tree))
    small, large = {"memory_bytes": 1}, {"memory_bytes": 9}
    for pattern, category, job, concluded in (
        ("submit-and-poll", "network", small, "re-poll"),
        ("submit-and-notify", "network", small, "re-register"),
        ("fire-and-forget", "memory", small, "re-submit"),
        ("fire-and-forget", "memory", large, None),
    ):
        context: dict[str, Value] = {
            "pattern": pattern,
            "fault": {"category": category},
            "job": job,
            "site": {"largest": large},
        }
        conclusion = asked.judge(ABORT, "align", context_lookup(context)).conclusion
        assert (conclusion.exlet if conclusion else None) == concluded


def test_a_tree_as_deep_as_its_authors_like_is_walked() -> None:
    depth = 5000
    rules = {
        id: Rule(id=id, condition="true", exlet=str(id), on_true=id + 1 if id < depth - 1 else None)
        for id in range(depth)
    }
    conclusion = (
        compile_rules(RuleSet(name="flow", trees={ABORT: {DEFAULT_RULES: RuleTree(rules)}}))
        .judge(ABORT, "align", context_lookup({}))
        .conclusion
    )
    assert conclusion is not None
    assert conclusion.exlet == str(depth - 1)


def test_the_triggers_of_a_case_are_those_that_its_rules_define() -> None:
    tree = row(('trigger == "Band Broken Up"', "a"), ('trigger in ["Rain", "Snow"] && now > 3', "b"), ("true", "c"))
    found = triggers(one_tree(tree, "", ExceptionType.CASE_EXTERNAL), ExceptionType.CASE_EXTERNAL)
    assert [trigger.name for trigger in found] == ["Band Broken Up", "Rain", "Snow"]
    assert triggers(one_tree(tree), ExceptionType.CASE_EXTERNAL) == []


def test_of_a_large_tree_only_the_rows_are_read_that_are_asked() -> None:  # EX-5
    """Each of 300 rules has as many exceptions."""
    rules: dict[int, Rule] = {}
    for number in range(300):
        first = 1000 * number + 1000
        next_one = 1000 * (number + 1) if number < 299 else None
        rules[first - 1000] = Rule(
            id=first - 1000, condition=f"fault.code == {number}", exlet="e", on_true=first - 999, on_false=next_one
        )
        for exception in range(10):
            id = first - 999 + exception
            below = id + 1 if exception < 9 else None
            rules[id] = Rule(id=id, condition=f"job.n == {number} && job.m == {id}", exlet="f", on_false=below)
    condition_of.cache_clear()
    asked = compile_rules(one_tree(RuleTree(rules)))
    context: dict[str, Value] = {"fault": {"code": 7}, "job": {"n": 7, "m": 7004}}
    conclusion = asked.judge(ABORT, "align", context_lookup(context)).conclusion
    assert conclusion is not None and (conclusion.rule, conclusion.exlet) == (7004, "f")
    assert condition_of.cache_info().misses == 310, "conditions of rows were read that nobody has asked"


def test_a_condition_for_the_library_is_compiled_only_if_its_plain_parts_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # EX-5
    compiled: list[str] = []

    def counted(text: str) -> CompiledExpression:
        compiled.append(text)
        return CompiledExpression(text)

    monkeypatch.setattr(conditions, "CompiledExpression", counted)
    condition_of.cache_clear()
    wanted = [f"items.exists(i, i == 'x') && job.n == {number}" for number in range(100)]
    asked = compile_rules(one_tree(row(*((condition, "e") for condition in wanted))))
    context: dict[str, Value] = {"items": ["x"], "job": {"n": 41}}
    conclusion = asked.judge(ABORT, "align", context_lookup(context)).conclusion
    assert conclusion is not None and conclusion.trail[-1].values == {"items": ["x"], "job.n": 41}
    assert compiled == [wanted[41]]
