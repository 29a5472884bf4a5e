"""The work of an expression is counted inside the functions of the library, too; results stay those of the library."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.expressions import cel
from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.expressions.work_budget import WORK, WORK_MAX

LONG = "a" * 1_000_000
NAMES = [f"x{number}" for number in range(9000)]
DATA: dict[str, Any] = {"s": LONG, "t": "a" * 1_000_000, "l": NAMES, "m": list(NAMES)}


@pytest.mark.parametrize(
    "text",
    [
        'l.filter(a, s.contains("aab"))',
        'l.exists(a, s.indexOf("aab") > 0)',
        'l.exists(a, s.lastIndexOf("aab") > 0)',
        'l.exists(a, s.matches("a*b"))',
        'l.exists(a, a.matches("((a{100}){9}b|(c{100}){9}d|(.{100}){9}e|(\\\\pL{100}){9}f)"))',
        "l.exists(a, size(s) < 0)",
        "l.exists(a, s.substring(5) == '')",
        "l.exists(a, s.lowerAscii() == '')",
        "l.exists(a, s.split('a').size() == 0)",
        "l.exists(a, s.split('').join('') == '')",
        "l.exists(a, [s, s, s].join('') == '')",
        "l.join(t)",
        "l.exists(a, ['', ''].join(s) == '')",
        "l.exists(a, '%s'.format([s]) == '')",
        "l.exists(a, s.format([]) == '')",
        "l.map(a, t)",
        "l.map(a, a == 'x1' ? 1u : 2u).map(a, t)",
        "[bytes(t)].map(b, l.map(a, b))",
        "l.exists(a, s + s == '')",
        "l.exists(a, s != t)",
        "l.exists(a, l != m)",
        "l.exists(a, !(a in l))",
        "l.exists(a, l + l == [])",
        "[l]" + ".map(a, a + a)" * 7,
        "l.exists(a, json(l) == '')",
        "l.exists(a, quote(s) == '')",
        "l.exists(a, s.replace('a', 'b') == '')",
        "l.exists(a, l.distinct() == [])",
        "l.exists(a, " + " && ".join(["a == a"] * 900) + " && false)",
        "l.exists(a, " + " || ".join(["s.contains('b')"] * 300) + ")",
        "s.contains(t.substring(0, 500000) + 'b')",
    ],
)
def test_too_much_work_is_refused_with_the_expression_and_the_budget(text: str) -> None:  # SE-3
    with pytest.raises(ExpressionError, match="too much work: more than 200,000 units") as found:
        cel.compile_expression(text).evaluate(DATA.__getitem__)
    assert text[:100] in found.value.message


def spent(text: str, data: dict[str, Any]) -> int:
    before = WORK.spent_in_all
    cel.compile_expression(text).evaluate(data.__getitem__)
    return WORK.spent_in_all - before


def test_lists_are_made_in_time_that_grows_with_their_length() -> None:  # SE-3
    few, many = ({"l": NAMES[:count]} for count in (400, 8000))
    assert spent("l.map(a, a + 'y').filter(b, b != 'x1y').size() > 0", {"l": NAMES[:4000]}) < WORK_MAX // 4
    assert spent("l.map(a, a + 'y')", many) <= 21 * spent("l.map(a, a + 'y')", few)


def test_the_count_is_the_same_each_time() -> None:  # SE-3
    text = "l.filter(a, a.contains('7')).map(a, a.replace('x', 'y') + '!').join(',').split(',').size()"
    assert len({spent(text, {"l": NAMES[:3000]}) for _ in range(5)}) == 1


TEXTS = st.text("ab,é", max_size=6)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9), TEXTS)
EXPRESSIONS = [
    *("x + y", "x == y", "x != y", "x < y", "x in l", "x in m", "l + [x]", "l == [x, y]", "m == {'a': x}", "size(x)"),
    *("x.contains(y)", "x.indexOf(y)", "x.lastIndexOf(y)", "x.startsWith(y)", "x.endsWith(y)", "x.split(y)"),
    *("x.split(y, 2)", "x.indexOf(y, 1)", "x.substring(1)", "x.substring(1, 2)", "x.charAt(1)", "x.trim()"),
    *("x.lowerAscii()", "x.reverse()", "l.join(y)", "l.join()", "'%s-%s'.format([x, y])", "x.matches('a+')"),
    *("string(x)", "int(x)", "double(x)", "l[x]", "m[x]", "l[0]", "m['a']", "l.map(i, i + x)", "l.map(i, [i, x])"),
    *("l.filter(i, i == x)", "l.exists(i, i + x == y)", "l.all(i, i == x)", "l.exists_one(i, i == x)"),
    *("l.map(i, l.map(j, i == j))", "l.map(i, i > x, i)", "m.map(k, m[k])", "l.map(i, {'v': i})", "has(m.a) && x"),
    *("[1u, 2u].map(i, i + 1u)", "[x].map(i, type(i) == int)", "x.matches(y)", "l.map(i, b'a')"),
]


@settings(max_examples=100)
@given(text=st.sampled_from(EXPRESSIONS), x=VALUES, y=VALUES, l=st.lists(VALUES, max_size=4))
def test_counting_changes_no_result(text: str, x: Any, y: Any, l: list[Any]) -> None:  # noqa: E741  # SE-3
    data = {"x": x, "y": y, "l": l, "m": {"a": x}}
    plain = cel._environment().compile(text, disable_check=True)
    counted = cel._compiled(text)
    WORK.begin()
    assert said(counted, data) == said(plain, data)


def said(program: Any, data: dict[str, Any]) -> tuple[str, str]:
    try:
        found = program.eval(data=data)
    except RuntimeError as error:
        return "refused", str(error).split(" [")[0]
    return str(found.type()), repr(found.plain_value()).split(" [")[0]
