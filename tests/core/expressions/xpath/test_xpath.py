"""What XPath gives in a flow, what it asks for, and which fault it is that it gives nothing."""

import math

import pytest

from mendflow.core.expressions import evaluate as evaluate_any
from mendflow.core.expressions import problem, references, xpath
from mendflow.core.expressions.xpath.flow_functions import EXECUTABLE
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.values import Value
from mendflow.core.xml.reader import read

ORDER = (
    '<o:order xmlns:o="urn:o" xmlns="urn:d" id="7"><o:item price="2.5">pen</o:item><o:item price="4">ink</o:item>'
    '<note xml:lang="en-GB">for <b>you</b></note><!--c--><?go on?></o:order>'
)
VARIABLES: dict[str, Value] = {
    "order": {"$xml": ORDER},
    "message": {"body": {"$xml": ORDER}, "count": 3, "name": "Ann", "share": 0.5, "ok": True},
    "n": 4,
    "text": "abc",
    "no": False,
    "big": 2**70,
    "spilled": {"$spilled": "ab" * 32, "bytes": 200_000},
    "odd": [1],
    "broken": {"$xml": "<a>"},
    "a.to.b": True,
}
NAMESPACES = (("o", "urn:o"), ("d", "urn:d"), ("bpel", EXECUTABLE))


def expr(text: str) -> Expr:
    return Expr(text, XPATH, NAMESPACES)


def given(text: str) -> Value:
    return xpath.value(expr(text), xpath.XPathEnvironment(VARIABLES.__getitem__))


def error(text: str, world: xpath.XPathEnvironment | None = None) -> xpath.XPathError:
    with pytest.raises(xpath.XPathError) as caught:
        xpath.evaluate(expr(text), world or xpath.XPathEnvironment(VARIABLES.__getitem__))
    return caught.value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$n + 1", 5),
        ("$message.count * $message.share", 1.5),
        ("$message.ok and not($no)", True),
        ("concat($message.name, ' ', $message.count)", "Ann 3"),
        ("$message.body/o:item[2]", {"$xml": '<o:item xmlns:o="urn:o" price="4">ink</o:item>'}),
        ("$order/@id", "7"),
        ("$order/o:item/@price", ["2.5", "4"]),
        ("$order/o:item[@price > 3]/text()", "ink"),
        ("sum($order/o:item/@price)", 6.5),
        ("$order/nothing", None),
        ("count($order/d:note/preceding-sibling::*)", 2),
        ("string($order/d:note)", "for you"),
        ("$order/../o:order/@id = 7", True),
        ("count($order/namespace::*)", 3),
        ("name($order/namespace::*[. = 'urn:o'])", "o"),
        ("count($order/namespace::* | $order/namespace::o)", 3),
        ("boolean($order//d:b[lang('en')])", True),
        ("$order/processing-instruction('go')", "on"),
        ("name($order/processing-instruction())", "go"),
        ("id('x')", None),
        ("1 div 0", "Infinity"),
        ("-1 div 0", "-Infinity"),
        ("0 div 0", "NaN"),
        ("string(1 div 3)", "0.3333333333333333"),
        ("string(0.0000001)", "0.0000001"),
        ("string(100000000000000000000000)", "99999999999999991611392"),
        ("string(-0)", "0"),
        ("5 mod -2", 1),
        ("-5 mod 2", -1),
        ("1.5 mod 0", "NaN"),
        ("number(' -12.50 ')", -12.5),
        ("number('1e3')", "NaN"),
        ("number('+1')", "NaN"),
        ("number('\u0663')", "NaN"),
        ("round(2.5)", 3),
        ("round(-2.5)", -2),
        ("round(0.49999999999999994)", 0),
        ("floor(-1.5) + ceiling(1.2)", 0),
        ("substring('12345', 2, 3)", "234"),
        ("substring('12345', 1.5, 2.6)", "234"),
        ("substring('12345', 0 div 0, 3)", ""),
        ("substring('12345', -42, 1 div 0)", "12345"),
        ("substring('12345', -1 div 0, 1 div 0)", ""),
        ("translate('bar', 'abc', 'AB')", "BAr"),
        ("translate('--aaa--', 'abc-', 'ABC')", "AAA"),
        ("normalize-space(' a \t\n b ')", "a b"),
        ("substring-before('1999/04/01', '/')", "1999"),
        ("substring-after('1999/04/01', '/')", "04/01"),
        ("substring-after('abc', '')", "abc"),
        ("string-length('\U0001f600')", 1),
        ("3 > 2 > 1", False),
        ("2 - 1 - 1", 0),
        ("- - 2", 2),
        ("'a' < 'b'", False),
        ("'1' = 1.0", True),
        ("true() = 'no'", True),
        ("$order/nothing = $order/nothing", False),
        ("$order/nothing != 'a'", False),
        ("not($order/nothing)", True),
        ("$order/nothing = false()", True),
        ("$a.to.b", True),
        ("$big > 1000", True),
        ("($order//node())[last()]/self::processing-instruction() = 'on'", True),
        ("$order//*[last()]/text()", ["for ", "you"]),
    ],
)
def test_an_expression_gives(text: str, wanted: Value) -> None:  # FM-1
    assert given(text) == wanted


def test_a_variable_that_has_no_value_is_told_apart_from_other_errors() -> None:
    for text, variable, part in [("$none", "none", ""), ("$message.none + 1", "message", "none"), ("$x.y", "x", "y")]:
        found = error(text)
        assert isinstance(found, xpath.UninitializedVariable)
        assert (found.variable, found.part, found.fault) == (variable, part, "uninitializedVariable")


@pytest.mark.parametrize(
    ("text", "said", "offset"),
    [
        ("1 +", "a name is missing", 3),
        ("", "a name is missing", 0),
        ("No Condition", "`Condition` stands where an operator should", 3),
        ("$a/", "a name is missing", 3),
        ("(1", "`)` is missing", 2),
        ("1)", "behind the end", 1),
        ("count()", "takes one argument; here it has 0", 0),
        ("true(1)", "takes no argument", 0),
        ("substring('a')", "takes 2 to 3 arguments", 0),
        ("nope(1)", "there is no function nope()", 0),
        ("o:nope(1)", "there is no function o:nope()", 0),
        ("1 + zz:a", "the prefix `zz` has no meaning here", 4),
        ("'open", "has no end", 0),
        ("a # b", "`#` means nothing", 2),
        ("$o:x", "have no prefix", 0),
        ("sideways::a", "is no axis", 0),
        ("bpel:getVariableProperty($text, 'o:p')", "quotation marks", 0),
    ],
)
def test_an_expression_that_is_none_says_where(text: str, said: str, offset: int) -> None:
    found = error(text)
    assert said in found.message
    assert (found.offset, found.fault) == (offset, "subLanguageExecutionFault")
    assert str(xpath.flaw(expr(text))) == found.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NoConditionHere", "there is no context node"),
        ("/order", "there is no context node"),
        ("$message", "is a message; name the part"),
        ("$text/a", "a path begins with a text"),
        ("$n[1]", "a predicate stands behind a number"),
        ("$n | $order", "`|` joins a number"),
        ("count($n)", "count() takes nodes"),
        ("$spilled", "too large for an expression"),
        ("$odd", "nothing that XPath can look at"),
        ("$broken", "no XML that can be read"),
        ("bpel:getVariableProperty('message', 'o:p')", "means nothing here"),
        ("bpel:doXslTransform('a.xsl', $order)", "only possible in the <from>"),
    ],
)
def test_an_expression_that_cannot_be_evaluated_says_why(text: str, said: str) -> None:
    found = error(text)
    assert said in found.message
    assert found.fault == "subLanguageExecutionFault"


def test_and_and_or_look_no_further_than_they_must() -> None:
    assert given("false() and $none") is False
    assert given("true() or $none") is True


def test_a_property_is_asked_for_by_its_full_name() -> None:
    world = xpath.XPathEnvironment(VARIABLES.__getitem__, property=lambda variable, name: f"{variable} {name}")
    assert xpath.text(expr("bpel:getVariableProperty('message', 'o:id')"), world) == "message {urn:o}id"
    assert references(expr("bpel:getVariableProperty('message', 'o:id')")) == {"message"}


def test_a_transformation_is_given_its_source_and_parameters_as_values() -> None:
    asked = []

    def transform(sheet: str, source: str, params: tuple[tuple[str, Value], ...]) -> Value:
        asked.append((sheet, source, params))
        return {"$xml": "<made>5</made>"}

    world = xpath.XPathEnvironment(VARIABLES.__getitem__, transform=transform)
    text = "bpel:doXslTransform('urn:s', $order/d:note/d:b, 'o:p', 1 + 1, 'q', $order/o:item[1]) + 1"
    assert xpath.number(expr(text), world) == 6
    item = {"$xml": '<o:item xmlns:o="urn:o" price="2.5">pen</o:item>'}
    assert asked == [("urn:s", '<b xmlns="urn:d">you</b>', (("{urn:o}p", 2), ("q", item)))]
    for source in ("$order/o:item", "$n", "$order/@id"):
        assert error(f"bpel:doXslTransform('urn:s', {source})", world).fault == "xsltInvalidSource"


def test_a_query_begins_at_its_context_node_and_gives_nodes_of_that_very_tree() -> None:
    root = read(ORDER)
    found = xpath.select(expr("o:item[1]/@price"), xpath.XPathEnvironment(VARIABLES.__getitem__), root)
    assert found == [next(iter(next(root.elements()).attributes.values()))]
    assert xpath.select(expr("."), xpath.XPathEnvironment(VARIABLES.__getitem__), root) == [root]
    assert xpath.select(expr("/o:order"), xpath.XPathEnvironment(VARIABLES.__getitem__), root) == [root]


def test_an_expression_selects_in_the_tree_that_it_is_shown() -> None:
    tree = read(ORDER)
    world = xpath.XPathEnvironment({"m": {"body": tree}}.__getitem__)
    assert xpath.select(expr("$m.body"), world) == [tree]
    assert xpath.truth(expr("$m.body/@id > 6"), world)


def test_xpath_is_a_language_of_expressions_whose_flaws_do_not_keep_a_flow_out() -> None:
    assert evaluate_any(expr("$n div 2"), VARIABLES.__getitem__) == 2
    assert references(expr("$n + $message.count - $message.name")) == {"n", "message"}
    assert references(expr("1 +")) == frozenset()
    assert problem(expr("1 +")) is None


def given_back(value: float) -> Value:
    return xpath.value(expr("$v"), xpath.XPathEnvironment({"v": value}.__getitem__))


def test_numbers_that_json_cannot_say_are_texts() -> None:
    assert given_back(math.inf) == "Infinity"
    assert given_back(1e300) == 1e300
    assert given_back(2.0**60) == 2.0**60
