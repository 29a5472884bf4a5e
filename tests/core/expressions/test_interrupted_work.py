"""Work that is interrupted is no error of an expression, and what a moment's conditions may take is bounded. SE-3"""

import pytest

from mendflow.core.expressions import ExpressionError, evaluate, resolve, xpath
from mendflow.core.expressions.conditions import TOGETHER_MAX, KnownValues, condition_of
from mendflow.core.expressions.work_budget import WORK, WORK_MAX, LongWork
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.xml.reader import read_shared

LETTERS = "a" * 100_000
SPLIT = Expr("s.split('').size()")


def lookup(name: str) -> object:
    return {"s": LETTERS, "l": list(range(60_000))}[name]


def test_an_expression_is_interrupted_before_it_does_more() -> None:
    with WORK.interrupted_after(1_000), pytest.raises(LongWork):
        evaluate(SPLIT, lookup)
    assert evaluate(SPLIT, lookup) == 100_000, "with more time it gives what it gives"


def test_all_expressions_count_together() -> None:
    cheap = Expr("s.contains('b')")
    with WORK.interrupted_after(5_000), pytest.raises(LongWork):
        for _ in range(10):
            evaluate(cheap, lookup)


def test_a_path_through_a_document_is_interrupted_too() -> None:
    tree = read_shared("<r>" + "<a/>" * 3_000 + "</r>")
    path = Expr("count(//a)", language=XPATH)
    world = xpath.XPathEnvironment(lambda name: None)
    with WORK.interrupted_after(1_000), pytest.raises(LongWork):
        xpath.number(path, world, tree)
    assert xpath.number(path, world, tree) == 3_000


def test_an_error_of_an_expression_stays_one() -> None:
    with WORK.interrupted_after(WORK_MAX * 10), pytest.raises(ExpressionError, match="more than 200,000 units"):
        evaluate(Expr("l.map(a, s.split('').size()).size()"), lookup)


def test_the_data_that_an_expression_is_given_counts() -> None:
    before = WORK.spent_in_all
    assert evaluate(Expr("l.size()"), lookup) == 60_000
    assert WORK.spent_in_all - before >= 60_000


ROWS = [{"n": number, "s": "x"} for number in range(100_000)]


@pytest.mark.parametrize(("text", "gives"), [("l.size()", 100_000), ("l[7].n", 7), ("l.size() > 9", True)])
def test_much_data_is_no_error_of_an_expression_that_does_little_with_it(text: str, gives: object) -> None:
    """It has always given this, so a replay gives it too."""
    assert evaluate(Expr(text), {"l": ROWS}.__getitem__) == gives
    with WORK.interrupted_after(40_000), pytest.raises(LongWork):
        evaluate(Expr(text), {"l": ROWS}.__getitem__)


def test_much_data_is_taken_into_data_of_a_flow() -> None:
    assert resolve({"rows": "${{ l }}"}, {"l": ROWS}.__getitem__) == {"rows": ROWS}


def test_an_expression_after_much_data_is_interrupted_and_does_not_fail() -> None:
    with WORK.interrupted_after(1_000):
        WORK.spent_elsewhere(1_001)
        with pytest.raises(LongWork):
            evaluate(Expr("l.size() + 1"), {"l": [1]}.__getitem__)


def test_a_condition_pays_for_the_data_that_it_is_given() -> None:
    held, why = condition_of("l.map(a, a).size() > 0").holds(KnownValues({"l": ROWS}.__getitem__))
    assert not held and f"more than {TOGETHER_MAX:,} units" in why


def test_the_conditions_of_a_moment_share_a_small_budget() -> None:
    known = KnownValues(lookup)
    held, why = condition_of("s.split('').size() > 0 && s.split('').size() > 1").holds(known)
    assert not held and f"more than {TOGETHER_MAX:,} units" in why
    held, why = condition_of("s.contains('b')").holds(known)
    assert not held and "the conditions before it took too much work" in why
    assert condition_of("s.contains('a')").holds(KnownValues(lookup)) == (True, "")
