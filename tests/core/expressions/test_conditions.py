"""Conditions that run as functions of ours: what they answer is what the library answers."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.expressions import ExpressionError
from mendflow.core.expressions.cel import CompiledExpression
from mendflow.core.expressions.cel import flaw as library_flaw
from mendflow.core.expressions.cel_evaluator import NeedsLibrary, evaluator_of
from mendflow.core.expressions.cel_parser import parse, paths_in
from mendflow.core.expressions.conditions import Condition, KnownValues, condition_flaw, only_compares, shorten_value
from mendflow.core.model.values import Value
from tests.examples import examples

ERROR = object()
SPILLED = {"$spilled": "ab", "bytes": 7}

PATHS = ["a", "b", "c.d", "c.e", "c.f.g", "c['x-y']", "gone", "c.gone", "c.d.gone"]
CONSTANTS = ["1", "0", "-3", "2", "1.0", "0.5", "9007199254740993", "'x'", '"xy"', "''", "true", "false", "null"]
VALUES = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 2, -3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e300, 2.0**53, 2.0**63, "", "x", "xy", "X", "é"]),
    st.sampled_from([[], ["x", 1, True], [[1]], {}, {"x": 1}, SPILLED, [SPILLED]]),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("xyZé", max_size=3),
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "b": VALUES,
        "c": st.one_of(
            st.fixed_dictionaries(
                {},
                optional={
                    "d": VALUES,
                    "e": VALUES,
                    "x-y": VALUES,
                    "f": st.one_of(VALUES, st.fixed_dictionaries({"g": VALUES})),
                },
            ),
            VALUES,
        ),
    },
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = ["==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "/", "%", "in"]
    return st.one_of(
        st.tuples(inner, st.sampled_from(binary), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"!({text})"),
        inner.map(lambda text: f"-({text})"),
        st.sampled_from(["a", "c.d", "c.e", "c.f.g"]).map(lambda path: f"!{path}"),
        st.sampled_from(["has(c.d)", "has(c.f.g)", "has(c.gone)", "has(gone.x)", "has(a.x)"]),
        st.tuples(inner, st.sampled_from(["startsWith", "endsWith", "contains"]), inner).map(
            lambda parts: f"({parts[0]}).{parts[1]}({parts[2]})"
        ),
        st.tuples(inner, st.sampled_from(["size", "lowerAscii", "upperAscii"])).map(
            lambda two: f"({two[0]}).{two[1]}()"
        ),
        inner.map(lambda text: f"size({text})"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]}) ? ({three[1]}) : ({three[2]})"),
        st.tuples(inner, st.lists(inner, max_size=3)).map(lambda two: f"{two[0]} in [{', '.join(two[1])}]"),
    )


EXPRESSIONS = st.recursive(st.sampled_from(PATHS + CONSTANTS), larger, max_leaves=8)


def by_library(text: str, data: Mapping[str, Value]) -> Value:
    try:
        return CompiledExpression(text).evaluate(lambda name: data[name])
    except ExpressionError:
        return ERROR


def by_us(text: str, data: Mapping[str, Value]) -> Value:
    """What our functions give, or Unsure."""
    tree = parse(text)
    assert tree is not None, text
    known = KnownValues(lambda name: data[name])
    try:
        for path in paths_in(tree):
            known.look(path)
        return evaluator_of(tree)(known.values)
    except KeyError:
        return ERROR


def is_finite(value: Value) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(not isinstance(part, float) or math.isfinite(part) for part in parts)


@settings(max_examples=examples(1000))
@given(text=EXPRESSIONS, data=DATA)
def test_our_functions_answer_as_the_library_does(text: str, data: dict[str, Value]) -> None:  # EX-6
    try:
        ours = by_us(text, data)
    except NeedsLibrary:
        return
    if not is_finite(ours):
        return  # no condition: the library refuses to hand such numbers out
    theirs = by_library(text, data)
    if isinstance(ours, list) or isinstance(theirs, list | dict):
        return  # whole values are for the library; a condition never gives one
    assert (ours, type(ours)) == (theirs, type(theirs)), (text, data)


KNOWN: dict[str, Value] = {
    "n": 7,
    "m": -7,
    "f": 0.5,
    "t": "text",
    "yes": True,
    "no": False,
    "null": None,
    "l": ["a", 1, 2.0],
    "o": {"k": 1},
}


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"{first} {do} {second}"
            for first in ("gone", "yes", "no")
            for do in ("&&", "||")
            for second in ("gone", "yes", "no")
        ),
        *(
            f"{first} {do} {second}"
            for first in ("n", "m")
            for do in "+-*/%"
            for second in ("2", "-2", "3", "f", "2.5")
        ),
        *(
            f"n {do} {second}"
            for do in ("==", "!=", "<", "<=", ">", ">=")
            for second in ("7", "7.0", "8", "f", "t", "yes", "o.gone")
        ),
        *(f"{value} in l" for value in ("'a'", "1", "1.0", "2", "true", "3", "o.gone")),
        *(f"{value} in ['a', 1, 2.5, true]" for value in ("t", "'a'", "1", "1.0", "yes", "no", "n", "f")),
        "'k' in o",
        "'x' in o",
        "n / 0 == 1",
        "n / 7 == 1",
        "n / 2 > 3.4",
        "n / 2 / 2",
        "(n - 9223372036854775807 - 8) / -1",
        "t / n",
        "yes / n",
        "n % 0 == 1",
        "9223372036854775807 + n > 0",
        "-9223372036854775807 - n > 0",
        "9223372036854775807 * n > 0",
        "t + t == 'texttext'",
        "!yes",
        "!n",
        "-n < 0",
        "-f < 0",
        "has(o.k)",
        "has(o.x)",
        "has(t.x)",
        "has(gone.x)",
        "t.startsWith('te') && t.endsWith('xt') && t.contains('ex')",
        "t.contains(n)",
        "t.upperAscii() == 'TEXT'",
        "size(t) + size(l) + o.size() == 8",
        "yes ? n : f",
        "no ? n : f",
        "n ? n : f",
        "yes == no == no",
        "n - 3 - 3 == 1",
        "no || yes && no || yes",
        "o['k'] == 1",
    ],
)
def test_each_operation_is_the_librarys(text: str) -> None:  # EX-6
    assert by_us(text, KNOWN) == by_library(text, KNOWN), text


@given(text=EXPRESSIONS, data=DATA)
def test_a_condition_holds_when_the_library_says_so(text: str, data: dict[str, Value]) -> None:
    held, error = Condition(text).holds(KnownValues(lambda name: data[name]))
    theirs = by_library(text, data)
    assert held is (theirs is True), (text, data)
    assert bool(error) is (theirs is not True and theirs is not False), (text, data)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('fault.type == "oom" && job.attempts < 3', ["fault.type", "job.attempts"]),
        ("has(job.peak) && job.peak > 3", ["job.peak"]),
        ("has(case.data.n)", ["case.data.n"]),
        ("items.exists(i, i.status == 'failed')", ["items"]),
        ("case.data['max-size'] > 2", ["case.data['max-size']"]),
    ],
)
def test_a_condition_names_what_it_asks_for(text: str, names: list[str]) -> None:
    assert sorted(Condition(text).names) == names


@pytest.mark.parametrize(
    "text",
    [
        "items.exists(i, i > 2)",
        "a.matches('x+')",
        "1u == a",
        'r"a" == a',
        "'''a''' == b",
        "a.b[0]",
        "[1] + a == b",
        "x ? y : z ? 1 : 2 .",
    ],
)
def test_what_we_do_not_know_is_left_to_the_library(text: str) -> None:
    assert parse(text) is None or text.startswith("[1]")


def test_a_condition_as_long_as_they_get_neither_recurses_too_deep_nor_fails() -> None:
    data: dict[str, Value] = {"a": 1}
    for text in (
        " && ".join(["a == 1"] * 400),
        "(" * 300 + "a == 1" + ")" * 300,
        "!" * 1 + "(" * 90 + "a==2" + ")" * 90,
    ):
        held, _ = Condition(text).holds(KnownValues(lambda name: data[name]))
        assert held is (by_library(text, data) is True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a ==", "ends too early"),
        ("nosuch(a)", "nosuch"),
        ("'text'", "must give true or false"),
        ("3", "must give true or false"),
        ("a == 1 && " * 500 + "true", "characters long"),
        ("l.all(a, l.all(b, l.all(c, a + b + c > 0)))", "lists inside lists"),
    ],
)
def test_a_condition_that_cannot_work_or_costs_too_much_is_refused(text: str, said: str) -> None:  # EX-6
    flaw = condition_flaw(text)
    assert flaw is not None
    assert said in flaw.message


COMPARISONS = st.builds(
    "{} {} {}".format,
    st.sampled_from([*PATHS, "c.in", "c.if", "c.list", "c['x y']", "_x.y1"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.one_of(st.sampled_from(CONSTANTS), st.text(max_size=4).map(lambda text: f"'{text}'")),
)


@given(st.lists(COMPARISONS, min_size=1, max_size=4).map(" && ".join))
def test_what_is_let_pass_without_the_library_is_what_the_library_lets_pass(text: str) -> None:
    tree = parse(text)
    if tree is not None and only_compares(tree, text):
        assert library_flaw(text) is None


def test_a_comparison_is_checked_without_the_library() -> None:
    for text in ("mends == ''", "status == 'failed' && attempts > 2", "a.b != null"):
        tree = parse(text)
        assert tree is not None
        assert only_compares(tree, text)
    for text in ("a < null", "a.in == 1", "a == b", "a == 'x\r'", "size(a) == 1"):
        tree = parse(text)
        assert tree is None or not only_compares(tree, text)


@pytest.mark.parametrize(
    "text", ["a * 1.5 > 10", "double(a) / 2 >= 40", "a * 0.5 == 3 && b", "1.5 != 2", "(a * 2.0 > 1 ? 'x' : 1) == 'x'"]
)
def test_numbers_of_both_kinds_may_be_compared(text: str) -> None:
    assert condition_flaw(text) is None


@pytest.mark.parametrize(
    ("text", "said"), [("'a' > 1", "text with a number"), ("a * 1.5 > 10 && 'a' == 1", "text with a number")]
)
def test_what_can_never_be_compared_is_refused(text: str, said: str) -> None:
    flaw = condition_flaw(text)
    assert flaw is not None
    assert said in flaw.message


def test_a_condition_may_look_through_the_items_of_the_items() -> None:
    assert condition_flaw("items.exists(i, i.hosts.exists(h, h == job.host))") is None


def test_what_is_no_expression_never_holds_and_says_why() -> None:
    held, error = Condition("a ==").holds(KnownValues(lambda name: 1))
    assert not held
    assert "ends too early" in error


def test_an_answer_that_is_neither_true_nor_false_does_not_hold() -> None:
    assert Condition("a + 1").holds(KnownValues(lambda name: 1)) == (
        False,
        "`a + 1` gives a number; a condition must give true or false",
    )


def test_each_path_is_read_once_for_all_conditions() -> None:
    asked: list[str] = []

    def lookup(name: str) -> Value:
        asked.append(name)
        return {"type": "oom"}

    known = KnownValues(lookup)
    for text in ('fault.type == "a"', 'fault.type == "b"', 'fault.type in ["c", "oom"]'):
        Condition(text).holds(known)
    assert asked == ["fault"]


def test_what_is_shown_of_a_value_is_short() -> None:
    assert shorten_value("x" * 1000) == "x" * 200 + "..."
    assert shorten_value(list(range(100))) == "a list of 100"
    assert shorten_value({"a": [1]}) == "a map of 1"
    assert shorten_value({"a": 1}) == {"a": 1}
