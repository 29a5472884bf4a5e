"""What expressions give, what they ask for, and what they refuse."""

import string
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.expressions import (
    ExpressionError,
    Lookup,
    evaluate,
    flaw,
    problem,
    references,
    resolve,
)
from mendflow.core.expressions.scanner import plain_reference, scan
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value


def looking_into(data: Mapping[str, Value]) -> Lookup:
    def lookup(name: str) -> Value:
        try:
            return data[name]
        except KeyError:
            raise KeyError(name, list(data)) from None

    return lookup


DATA: dict[str, Value] = {
    "inputs": {"samples": ["a", "b"], "limit": 3, "share": 0.5, "max-size": 7, "none": None},
    "item": {"name": "x", "n": 4},
    "total": 10,
    "words": ["b", "a", "b"],
    "nested": [[1, 2], [3]],
    "runs": [{"name": "a", "score": 2}, {"name": "b", "score": 1}, {"name": "c", "score": 3}],
    "jobs.fetch": {"outputs": {"rows": 5, "names": ["p", "q"]}, "files": {"raw": {"$file": "abc"}}, "exit_code": 0},
    "jobs.my-job": {"outputs": {"ok": True}},
    "jobs.in": {"outputs": 1},
    "links.a->b": True,
}


def value_of(text: str, data: Mapping[str, Value] = DATA) -> Value:
    return evaluate(Expr(text), looking_into(data))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 + 2", 3),
        ("total / 4", 2.5),
        ("total / 5", 2),
        ("-total / 4", -2.5),
        ("int(total / 4)", 2),
        ("int(-total / 4)", -2),
        ("math.floor(-total / 4)", -3.0),
        ("total % 4", 2),
        ("3 / 20 > 0.1 && 3.0 / 20.0 > 0.1", True),
        ("words[total / 5]", "b"),
        ("math.floor(total / 5) + math.ceil(total / 5)", 4),
        ("range(3)", [0, 1, 2]),
        ("runs.sortBy(o, o.score)[0].name", "b"),
        ("runs.sortBy(o, -o.score / 2).map(o, o.name)", ["c", "a", "b"]),
        ("runs.sortBy( r , r.name).sortBy(r, [3, 1].sortBy(x, x).size() - r.score)[0].score + total / 4", 5.5),
        ("'sortBy' + string(size(runs.filter(o, o.score > 1)))", "sortBy2"),
        ("[[2, 'a'], [1, 'c'], [1, 'b']].sortBy(p, [p[0], p[1]]).map(p, p[1])", ["b", "c", "a"]),
        ("range(1, 4).map(x, 2 * x)", [2, 4, 6]),
        ("range(4, 0, -2)", [4, 2]),
        ("string(total / 5) + 'a/b'", "2a/b"),
        ("duration('3s') / 2", 1500),
        ("12 / 5 / 2 * 10", 12.0),
        ("[3, 4].map(x, x / 2)", [1.5, 2]),
        ("total * 0.5", 5.0),
        ("inputs.share * total", 5.0),
        ("1 - 0.5", 0.5),
        ("total / 4.0", 2.5),
        ("total > 9.5", True),
        ("total == 10.0 ? 'same' : 'other'", "same"),
        ("total > 100 ? 1 : 2.5", 2.5),
        ("jobs.fetch.outputs.rows", 5),
        ("jobs.fetch.outputs.rows > inputs.limit", True),
        ("jobs['fetch'].outputs.rows", 5),
        ("jobs.my-job.outputs.ok", True),
        ("jobs.my-job.outputs.ok && jobs.fetch.exit_code == 0", True),
        ("jobs.`my-job`.outputs.ok", True),
        ("jobs.in.outputs", 1),
        ("inputs['max-size'] + 1", 8),
        ("jobs.fetch.files.raw", {"$file": "abc"}),
        ("inputs.none", None),
        ("inputs.none == null", True),
        ("inputs.limit == 3 && inputs.none == null", True),
        ("has(inputs.limit) && !has(inputs.nothing)", True),
        ("has(jobs.gone) && jobs.gone.outputs.n > 3", False),
        ("inputs.samples.map(s, s + '.csv')", ["a.csv", "b.csv"]),
        ("inputs.samples.all(s, s < 'c') && inputs.samples.exists(s, s == 'b')", True),
        ("inputs.samples.filter(s, s != 'a')", ["b"]),
        ("words.map(w, inputs.samples.filter(s, s == w).size())", [1, 1, 1]),
        ("words.distinct().sort()", ["a", "b"]),
        ("nested.flatten().sum()", 6),
        ("'A,B'.split(',').map(x, x.lowerAscii()).join('-')", "a-b"),
        ("math.greatest(1, total)", 10),
        ("size(words)", 3),
        ("json({'a': [1, null]})", '{"a": [1, null]}'),
        ("json({'d': 4, 'b': {'z': 1, 'y': 2}, 'a': 1})", '{"a": 1, "b": {"y": 2, "z": 1}, "d": 4}'),
        ("string(total) + 'x'", "10x"),
        ("int('7')", 7),
        ("duration('1h')", 3_600_000),
        ("timestamp('1970-01-01T00:00:01Z')", 1000),
        ("{'a': total, 1: 'b'}", {"a": 10, "1": "b"}),
        ("links['a->b']", True),
        ("type(total) == int", True),
        ("item", {"name": "x", "n": 4}),
        ("item == item && item.n == 4", True),
        ("// a remark\n total", 10),
    ],
)
def test_an_expression_gives_plain_data(text: str, wanted: Value) -> None:
    value = value_of(text)
    assert value == wanted
    assert type(value) is type(wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("totl + 1", "there is no `totl`; did you mean `total`?"),
        ("totl", "there is no `totl`; did you mean `total`?"),
        ("jobs.fetsh.outputs", "did you mean `jobs.fetch`?"),
        ("jobs.fetch.output", "`jobs.fetch` has no `output`; did you mean `outputs`?"),
        ("total.x", "`total` is a number and has no member `x`"),
        ("item.nope + 1", "no member `nope`"),
        ("total + 'a'", "`+` cannot put a number and text together; string(x)"),
        ("jobs[item.name].outputs", "needs a name that is written out"),
        ("jobs", "needs a name that is written out"),
        ("total / 0", "divide by zero"),
        ("item.name / 2", "text cannot be divided"),
        ("total / item.name", "a number cannot be divided by text"),
        ("words / 2", "a list cannot be divided"),
        ("words[total / 4]", "expected integer"),
        ("1.0 / 0.0", "not a number that can be kept"),
        ("b'abc'", "not plain data"),
        ("9223372036854775807 + total", "overflow"),
        ("words[7]", "index=7"),
        ("1 +", "ends too early"),
        ("x" * 10_001, "at most 10000"),
        ("total.map(x, x)", ""),
        ("[3, 'a'].sort()", "`sort` cannot compare a number with text; a number is written without quotes"),
        ("[true, 1].sort()", "`sort` cannot compare true or false with a number"),
        ("runs.sort()", "`sort` cannot compare a map with a map; sortBy(x, x.member) sorts by a member"),
        ("[[3, 'x'], ['a', 1]].sortBy(o, o[0])", "`sortBy` cannot compare a number with text"),
        ("words.sum()", "`sum` adds numbers, and this list has text in it; join() puts texts together"),
        ("[1, null].sum()", "`sum` adds numbers, and this list has null in it"),
        ("range(0, 3, 0)", "`range` with a step of 0 never ends"),
        ("range(-9223372036854775807, 9223372036854775807)", "too much work"),
        ("duration('1s') / 0", "divide by zero"),
        ("range(1000000)", "too much work"),
        ("total > '2'", "`>` cannot compare a number with text; a number is written without quotes"),
        ("words.map(w, w > 2)", "`>` cannot compare text with a number"),
    ],
)
def test_a_mistake_is_an_error_with_a_sentence_and_never_a_value(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value_of(text)
    assert said in str(caught.value)


def test_endless_work_is_stopped() -> None:
    with pytest.raises(ExpressionError, match="10,000 elements"):
        value_of("l.map(a, l.map(b, l.map(c, l.map(d, a * b * c * d))))", {"l": list(range(200))})


def test_only_the_names_that_are_written_are_asked_for() -> None:
    asked: list[str] = []

    def lookup(name: str) -> Value:
        asked.append(name)
        return DATA[name]

    evaluate(Expr("jobs.fetch.outputs.rows + total > 3 && 'item' != \"words\""), lookup)
    assert set(asked) == {"jobs.fetch", "total"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b.c", {"a", "b"}),
        ("jobs.a.outputs == jobs.b-c.outputs", {"jobs.a", "jobs.b-c"}),
        ("list_a.map(x, x + y)", {"list_a", "y"}),
        ("list_a.map(x, x) == x", {"list_a", "x"}),
        ("a.filter(x, b.exists(y, y == x)).size() > size(z)", {"a", "b", "z"}),
        ("'a' + \"b\" + r'\\d' + '''d'e'''", set()),
        ("math.ceil(n)", {"n"}),
        ("true && null == false", set()),
        ("1e5 + 0x1F + 2u", set()),
        ("x in [y]", {"x", "y"}),
        ("has(jobs.a.outputs.x)", {"jobs.a"}),
        ("links.one || links['two']", {"links.one", "links.two"}),
        (".a.b", {"a"}),
    ],
)
def test_references_are_found_in_the_text_alone(text: str, wanted: set[str]) -> None:
    assert references(Expr(text)) == wanted


def test_references_of_a_template_come_from_all_its_texts() -> None:
    template = {"k-${{ a }}": ["${{ jobs.x.files.f }}", {"deep": "it is ${{ b }} and ${{ c }}"}], "n": 3}
    assert references(template) == {"a", "b", "c", "jobs.x"}


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("plain", "plain"),
        ("${{ total }}", 10),
        ("  ${{ total }}", "  10"),
        ("n=${{ total }}", "n=10"),
        ("${{ total }}${{ total }}", "1010"),
        ("half: ${{ total * 0.5 }}, ${{ total * 0.25 }}", "half: 5.0, 2.5"),
        ("${{ words }}!", '["b", "a", "b"]!'),
        ("is ${{ inputs.none }}.", "is ."),
        ("${{ true }} and ${{ null }}", "true and "),
        ("$${{ total }}", "${{ total }}"),
        ("$${{ a }} ${{ total }}", "${{ a }} 10"),
        ("$HOME ${x} $(date) ${{ total }}", "$HOME ${x} $(date) 10"),
        ("${{ '}}' + \"}}\" }}", "}}}}"),
        ("${{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
        (["${{ total }}", 1, {"a": "${{ item.name }}"}], [10, 1, {"a": "x"}]),
        ({"k${{ total }}": 1}, {"k10": 1}),
        (3.5, 3.5),
    ],
)
def test_templates_keep_types_alone_and_make_text_in_company(template: Value, wanted: Value) -> None:
    assert resolve(template, looking_into(DATA)) == wanted


def test_data_without_expressions_is_given_back_itself() -> None:
    template = {"a": [1, "two", {"three": None}]}
    assert resolve(template, looking_into({})) is template


def test_an_expression_that_is_never_closed_is_refused() -> None:
    with pytest.raises(ExpressionError, match="has no `}}`"):
        resolve("a ${{ b", looking_into(DATA))


@pytest.mark.parametrize(
    ("text", "said", "offset"),
    [
        ("a +", "ends too early", 3),
        ("nosuch(a)", "there is no function or name `nosuch`", 6),
        ("jobs.my-job.x + nosuch(a)", "there is no function or name `nosuch`", 22),
        ("1 2", "'2'", 2),
        ("'a' + 1", "`+` cannot put text and a number together", 4),
        ("jobs[x].y", "written out", 0),
        ("a / 2 / nosuch(a)", "there is no function or name `nosuch`", 14),
        ("a.sortBy(o, o.x)[0] + nosuch(a)", "there is no function or name `nosuch`", 28),
        ("x.sort(o, o.score)", "by a member it is x.sortBy(o, o.score)", 6),
        ("x.max_by(o, o.score)", "the greatest x.sortBy(o, -o.score)[0]", 8),
        ("max(x)", "that of a list math.greatest(x)", 3),
        ("jobs.my-job.x / 2 +", "ends too early", 19),
        ("'a' / 2", "text cannot be divided", 4),
        ("a.map(1, 2)", "simple identifier", 6),
        ("", "ends too early", 0),
    ],
)
def test_what_is_wrong_in_the_text_is_found_with_its_place(text: str, said: str, offset: int) -> None:
    found = flaw(text)
    assert found is not None
    assert said in found.message
    assert found.offset == offset
    assert problem(Expr(text)) == found.message


def test_a_sound_expression_has_no_problem() -> None:
    for text in ("a.b > 3 ? 1 : 2.5", "jobs.my-job.outputs.n == 1", "a.map(x, x * 0.5).sum()", "math.ceil(a) + 1"):
        assert problem(Expr(text)) is None


def test_an_unknown_language_is_refused() -> None:
    assert "xquery" in str(problem(Expr("/a/b", "xquery")))
    with pytest.raises(ExpressionError, match="xquery"):
        evaluate(Expr("/a/b", "xquery"), looking_into({}))


def test_evaluation_changes_nothing_that_it_is_given() -> None:
    inputs = {"a": {"b": 1}, "c": 2}
    assert value_of("inputs.a.b + inputs.c == 3 && inputs.a.b == 1", {"inputs": inputs}) is True
    assert inputs == {"a": {"b": 1}, "c": 2}


@given(st.text(alphabet=string.printable, max_size=60))
def test_no_text_does_more_than_evaluate_or_refuse(text: str) -> None:
    lookup = looking_into(DATA)
    try:
        evaluate(Expr(text), lookup)
    except ExpressionError as error:
        assert str(error)
    try:
        resolve("${{" + text + "}}", lookup)
    except ExpressionError as error:
        assert str(error)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(string.ascii_letters), st.lists))
def test_data_goes_through_an_expression_unchanged(value: Value) -> None:
    lookup = looking_into({"v": value})
    assert resolve("${{ v }}", lookup) == value
    assert resolve("${{ [v][0] }}", lookup) == value


@pytest.mark.parametrize(
    ("value", "word"),
    [("plain", "'plain'"), ("it's; rm -rf /", "'it'\"'\"'s; rm -rf /'"), ("", "''"), (3, "'3'"), (None, "''")],
)
def test_quote_makes_one_word_of_a_shell_of_anything(value: Value, word: str) -> None:
    assert resolve("echo ${{ quote(inputs.text) }}", looking_into({"inputs": {"text": value}})) == f"echo {word}"


@pytest.mark.parametrize(
    "text",
    [
        "item",
        " inputs.a ",
        "jobs.my-job.outputs.n",
        "jobs.in.files",
        "x.y.z",
        "true",
        "jobs",
        "math.pi",
        "a-b",
        "a.b-c",
        "jobs.a-",
        "jobs.a.outputs - 1",
        "f(x)",
        "int",
        ".a",
        "a.",
        "for",
        "a..b",
        "jobs.a.b-c",
    ],
)
def test_what_is_taken_for_a_plain_path_at_a_glance_is_what_a_scan_finds(text: str) -> None:
    found = plain_reference(text)
    if found is not None:
        scanned = scan(text)
        assert [(each.name, each.members) for each in scanned.references] == [(found.name, found.members)]
        assert scanned.references[0].offset == found.offset


SPILLED: Value = {"$spilled": "sha", "bytes": 2_500_000}


@pytest.mark.parametrize(
    "text", ["xs.map(x, x.bytes)", "json(xs)", "quote(xs)", "xs[1] + 1", "xs[1].n", "text ${{ 1 }} ${{ xs }}"]
)
def test_a_spilled_value_in_a_list_cannot_be_read(text: str) -> None:
    template = text if "${{" in text else f"${{{{ {text} }}}}"
    with pytest.raises(ExpressionError, match=r"MB, too large for an expression; pass it to a job"):
        resolve(template, looking_into({"xs": [1, SPILLED]}))


def test_a_list_with_a_spilled_value_can_be_counted_and_the_value_handed_on() -> None:
    names = looking_into({"xs": [1, SPILLED]})
    assert evaluate(Expr("xs.size()"), names) == 2
    assert evaluate(Expr("xs[1]"), names) == SPILLED
    assert evaluate(Expr("xs.filter(x, x != 1)"), names) == [SPILLED]
    assert resolve({"all": "${{ xs }}"}, names) == {"all": [1, SPILLED]}


def test_a_result_that_is_no_value_is_an_error() -> None:
    deep: Value = 1
    for _ in range(64):
        deep = [deep]
    with pytest.raises(ExpressionError, match="deeper than 64 levels"):
        evaluate(Expr("[x]"), looking_into({"x": deep}))
    with pytest.raises(ExpressionError, match="deeper than 64 levels"):
        resolve({"a": "${{ x }}"}, looking_into({"x": deep}))
    with pytest.raises(ExpressionError):
        evaluate(Expr("[x, x, x].sum()"), looking_into({"x": 2**63 - 1}))


def test_a_text_that_grows_without_bound_is_not_made() -> None:
    # EX-6: safe to evaluate, whoever wrote it
    bomb = "size('aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 12 + ")"
    with pytest.raises(ExpressionError, match="replace` would make a text of"):
        evaluate(Expr(bomb), dict[str, Value]().__getitem__)
    assert evaluate(Expr("'a-b-c'.replace('-', '+').replace('+', '', 1)"), dict[str, Value]().__getitem__) == "ab+c"


def test_functions_on_long_lists_within_loops_end_in_an_error() -> None:
    # EX-6
    names: dict[str, Value] = {"l": list(range(3000))}
    with pytest.raises(ExpressionError, match="too much work"):
        evaluate(Expr("l.map(x, l.sort().distinct().size())"), names.__getitem__)
    assert evaluate(Expr("l.sort().distinct().size()"), names.__getitem__) == 3000


def test_rows_are_grouped_by_a_member_in_the_order_of_their_values() -> None:
    rows: list[Value] = [{"s": "b", "n": 1}, {"s": "a", "n": 2}, {"s": "b", "n": 3}]
    names: dict[str, Value] = {"rows": rows, "odd": [{"s": 1}, {"t": 2}]}
    grouped = [{"key": "b", "items": [rows[0], rows[2]]}, {"key": "a", "items": [rows[1]]}]
    for text in ("rows.group_by('s')", "group_by(rows, 's')"):
        assert evaluate(Expr(text), names.__getitem__) == grouped
    assert evaluate(Expr("rows.group_by('s').map(g, g.items.map(i, i.n))"), names.__getitem__) == [[1, 3], [2]]
    with pytest.raises(ExpressionError, match="element 1 has no member `s` to group by; it has t"):
        evaluate(Expr("odd.group_by('s')"), names.__getitem__)
    names["holes"] = [None, rows[0], None]
    assert evaluate(Expr("holes.group_by('s')"), names.__getitem__) == [{"key": "b", "items": [rows[0]]}]
