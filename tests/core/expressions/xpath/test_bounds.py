"""No expression takes more work, or more of the stack, than one may, whatever it is and whatever it looks at."""

import sys
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.expressions import xpath
from mendflow.core.expressions.xpath.evaluation import WORK_MAX
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.values import Value
from mendflow.core.xml.reader import read
from mendflow.core.xml.tree import Element

WIDE = read(f"<r>{'<a><b>1</b></a>' * 2000}</r>")
DEEP = read(f"{'<a>' * 90}{'</a>' * 90}")
NOTHING = xpath.XPathEnvironment(dict[str, Value]().__getitem__)
NESTED = [
    "0 or 1 and 1=1<2+3*- -(/a|/a[{}])",
    "0 or 1 and 1=1<2+3*- -/a[{}]",
    "0 or 0=1<2+3*-string-length(string({}))",
    "({})",
]


def said(text: str, context: Element = DEEP, **variables: str) -> str:
    with pytest.raises(xpath.XPathError) as caught:
        xpath.evaluate(Expr(text, XPATH), xpath.XPathEnvironment(variables.__getitem__), context)
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "//*[//*[//*[//*]]]",
        "//*[count(//*) > 1]",
        "//*/following::*",
        "//a/preceding-sibling::a[last()]",
        "//a[contains(string(/), 'x')]",
        "count(//*[. = //*])",
    ],
)
def test_predicates_that_explode_end_at_the_bound(text: str) -> None:
    assert "too much work" in said(text, WIDE)


LONG = 1 << 18


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("+".join(["$s"] * 10_000), "1" * LONG),
        ("+".join(["$s"] * 10_000), " " * LONG + "x"),
        (" or ".join(["translate($s, $s, 'x')='y'"] * 100), "é" * LONG),
        (" or ".join(["normalize-space($s)='y'"] * 200), " a" * (LONG // 2)),
        (" or ".join(["$s!=concat($s, '')"] * 500), "a" * LONG),
    ],
    ids=["digits", "space", "translate", "words", "equal"],
)
def test_what_is_done_with_long_texts_is_counted(text: str, given: str) -> None:  # SE-3
    """Each of these took many seconds, and some were not counted at all."""
    with pytest.raises(xpath.TooMuchXPathWork):
        xpath.evaluate(Expr(text, XPATH), xpath.XPathEnvironment({"s": given}.__getitem__))


def test_nodes_that_are_joined_or_given_as_values_are_counted() -> None:  # SE-3
    many = read(f"<r>{'<a/>' * 20_000}</r>")
    with pytest.raises(xpath.TooMuchXPathWork):
        xpath.evaluate(Expr(f"count({'|'.join(['a'] * 1000)})", XPATH), NOTHING, many)
    nested = read(f"{'<a>' * 80}{'<b/>' * 5000}{'</a>' * 80}")
    with pytest.raises(xpath.TooMuchXPathWork):
        xpath.value(Expr("//*", XPATH), NOTHING, nested)


@pytest.mark.full
def test_the_bound_is_the_same_each_time() -> None:
    """Documents that differ by a little, of which one is the first that is too large: wherever that is, it stays."""
    text = Expr("count(//b[count(//b) > 0])", XPATH)

    def too_large(count: int) -> bool:
        try:
            xpath.evaluate(text, NOTHING, read(f"<r>{'<b/>' * count}</r>"))
        except xpath.XPathError:
            return True
        return False

    counts = range(600, 1100, 20)
    first = counts[bisect_left(counts, True, key=too_large)]
    assert first > max(600, WORK_MAX // 1100)
    assert [too_large(first - 20), too_large(first)] == [False, True]


def work_of(text: str, context: Element = WIDE, **variables: Value) -> int:
    """What an evaluation says that it took, whether it gives something or not."""
    told: list[int] = []
    world = xpath.XPathEnvironment(variables.__getitem__, spent=told.append)
    try:
        xpath.evaluate(Expr(text, XPATH), world, context)
    except xpath.XPathError:
        pass
    (spent,) = told
    return spent


@pytest.mark.parametrize(
    ("text", "most"),
    [
        *[(f"a[{asked}]/b", 30) for asked in ("$n", "position() = $n", "$n = position()", "last()", "7", "$n + 1")],
        *[(f"a[{asked}]", 30) for asked in ("position() <= $n", "position() > last() - $n", "string($n)")],
        ("count(a)", 30),
        ("sum(a/b)", 12_000),
        ("a[@x = $n]", 4030),
    ],
)
def test_the_usual_questions_take_little_work_in_a_large_document(text: str, most: int) -> None:
    assert 0 < work_of(text, n=3.0) <= most


def test_what_is_the_same_for_all_nodes_is_asked_once() -> None:
    asked: list[str] = []

    def lookup(name: str) -> Value:
        asked.append(name)
        return "1"

    found = xpath.select(
        Expr("a[b = concat($n, '')][contains(b, $n) and count(b) > 0 * $n]", XPATH),
        xpath.XPathEnvironment(lookup),
        WIDE,
    )
    assert len(found) == 2000
    assert len(asked) == 3


def test_what_no_node_asks_for_is_not_looked_up() -> None:
    for text in ("c[$none]", "c[position() = $none]", "c[@x = $none]", "a[c and $none]"):
        assert xpath.select(Expr(text, XPATH), NOTHING, WIDE) == []


@pytest.mark.parametrize("text", ["//*[//*]", "a[$none]", "//*[//*[//*[//*]]]", "count(a[b = 1])"])
def test_work_is_told_once_and_is_the_same_each_time(text: str) -> None:
    assert 0 < work_of(text) == work_of(text, read(f"<r>{'<a><b>1</b></a>' * 2000}</r>")) <= WORK_MAX


def test_a_text_that_would_be_too_long_is_not_made() -> None:
    long = "x" * 400_000
    assert "at most 1,048,576 are made" in said("concat($s, $s, $s)", s=long)
    assert "too much work" in said(f"concat({', '.join(['$s'] * 1000)})", s=long)


def test_an_expression_that_is_too_long_or_too_deep_is_refused() -> None:
    assert "at most 32,768 characters" in said("1" * 40_000)
    assert "nested deeper than 30 levels" in said("(" * 500 + "1" + ")" * 500)
    assert "nested deeper than 30 levels" in said("/a" + "[a" * 500 + "]" * 500)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1" + "+1" * 15_000, 15_001.0),
        ("0" + " or 0" * 6000, False),
        ("-" * 30_000 + "1", 1.0),
        ("/a" + "[1]" * 10_000, [DEEP]),
        ("|".join(["/a"] * 10_000), [DEEP]),
        ("a/" * 15_000 + "a", []),
    ],
)
def test_a_long_expression_is_no_deep_one(text: str, wanted: xpath.XValue) -> None:
    assert xpath.evaluate(Expr(text, XPATH), NOTHING, DEEP) == wanted


@pytest.mark.parametrize("shape", NESTED)
def test_the_deepest_expression_leaves_half_of_the_stack_to_others(shape: str) -> None:
    deepest = text = "1"
    while xpath.flaw(Expr(text := shape.format(text), XPATH)) is None:
        deepest = text
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]  # the last one has none
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + usual // 2 + 10)
    try:
        xpath.evaluate(Expr(deepest + " ", XPATH), NOTHING, DEEP)
        xpath.names(Expr(deepest, XPATH))
    finally:
        sys.setrecursionlimit(usual)


@given(st.text(alphabet="ab$/[]()@.*|+-=<>!'\", 01:", max_size=40))
def test_no_text_does_more_than_evaluate_or_refuse(text: str) -> None:
    try:
        xpath.evaluate(Expr(text, XPATH), xpath.XPathEnvironment({"a": 1, "b": "x"}.__getitem__), DEEP)
    except xpath.XPathError as error:
        assert error.message
