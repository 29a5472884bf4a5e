"""Rule trees as people see them: refinements further in, alternatives below, whatever their number."""

import pytest

from mendflow.cli.rule_files import exlet_of
from mendflow.cli.rule_trees import draw_tree, steps_text, trees_of
from mendflow.core.model.errors import BadFlow, InvalidRequest
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree


def lines(tree: RuleTree, width: int = 200, **decided: int) -> list[str]:
    counts = {int(name[1:]): number for name, number in decided.items()}
    return [line.plain.rstrip() for line in draw_tree(tree, counts, width)]


def test_a_tree_is_drawn_as_it_is_asked() -> None:  # EX-7
    tree = RuleTree(
        {
            0: Rule(id=0, condition="true", on_true=1),
            1: Rule(id=1, condition="a > 1", exlet="first", on_true=2, on_false=3, author="ann"),
            2: Rule(id=2, condition="a > 9", exlet="second", passive=True),
            3: Rule(id=3, condition="b", exlet="third", note="why it is there"),
        }
    )
    assert lines(tree, r1=1_200) == [
        "  0  if true  →  nothing",
        "  1      except if a > 1  →  first  decided 1,200  by ann",
        "  2          except if a > 9  →  second  on trial",
        "  3      else if b  →  third  # why it is there",
    ]


def test_what_does_not_fit_beside_a_condition_goes_below_it() -> None:
    rule = Rule(id=1, condition="a" * 30 + " > 1", exlet="the-exlet", note="n" * 100)
    drawn_lines = lines(RuleTree({1: rule}, 1), width=50)
    assert drawn_lines[0].endswith("> 1")
    assert drawn_lines[1].strip() == "→  the-exlet"
    assert drawn_lines[2].strip().startswith("# nnn")
    assert max(map(len, drawn_lines)) <= 50


@pytest.mark.full
def test_a_chain_of_ten_thousand_rules_is_drawn() -> None:
    last = 10_000
    rules = {n: Rule(id=n, condition=f"a == {n}", on_false=n + 1 if n < last else None) for n in range(1, last + 1)}
    assert len(lines(RuleTree(rules, 1))) == last
    deep = {n: Rule(id=n, condition=f"a == {n}", on_true=n + 1 if n < last else None) for n in range(1, last + 1)}
    assert len(lines(RuleTree(deep, 1))) == last
    assert lines(RuleTree({}, 0)) == []


def test_trees_are_titled_by_type_and_task() -> None:
    one = RuleTree({1: Rule(id=1, condition="true")}, 1)
    rules = RuleSet(
        name="f", trees={ExceptionType.ABORT: {"a": one, DEFAULT_RULES: one}, ExceptionType.CASE_PRE: {"": one}}
    )
    assert [(title, key) for title, key, _ in trees_of(rules)] == [
        ("abort, a: 1 rule", "abort/a"),
        ("abort, all tasks: 1 rule", "abort/*"),
        ("case-pre, the case: 1 rule", "case-pre/"),
    ]


def test_an_exlet_is_taken_by_name_or_written_out() -> None:
    assert exlet_of("later") == ("later", None)
    name, made = exlet_of("[{suspend: case}, {continue: case}]")
    assert made is not None
    assert name.startswith("suspend-")
    assert name == str(made.name)
    assert steps_text(made) == "suspend case, continue case"
    assert exlet_of("[{suspend: case}, {continue: case}]")[0] == name
    with pytest.raises(InvalidRequest, match="--exlet EXLET"):
        exlet_of("")
    with pytest.raises(BadFlow):
        exlet_of("{re-sumbit: true}")
