"""What variables of simple types hold, and what XPath makes of it. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.documents import assign, copy, note_value, process, traced

Spelled = Callable[[str], str]


@pytest.mark.parametrize(
    ("type", "given", "says"),
    [
        ("decimal", "'10.5'", "10.5"),
        ("decimal", "'0.123456789012345678'", "0.123456789012345678"),
        ("decimal", "'99999999999999999999.25'", "99999999999999999999.25"),
        ("float", "3.14", "3.14"),
        ("float", "1.0", "1"),
        ("int", "'abc'", "abc"),
        ("long", "'9223372036854775807'", "9223372036854775807"),
        ("integer", "'123456789012345678901234567890'", "123456789012345678901234567890"),
        ("boolean", "false()", "false"),
        ("boolean", "'1'", "true"),
        ("string", "true()", "true"),
        ("string", "5", "5"),
        ("date", "'2000-01-01Z'", "2000-01-01Z"),
        ("dateTime", "'2011-01-01T00:00:00+01:00'", "2011-01-01T00:00:00+01:00"),
        ("duration", "'P1D'", "P1D"),
        ("anyURI", "'urn:x'", "urn:x"),
        ("base64Binary", "'YWJj'", "YWJj"),
        ("anyType", "'x'", "x"),
        ("anySimpleType", "'x'", "x"),
    ],
)
def test_simple_values_stay_what_they_are(spelled: Spelled, type: str, given: str, says: str) -> None:
    into = copy(given, '<to variable="it"/>'), copy('<from variable="it"/>', '<to variable="spelling" part="out"/>')
    text = process(
        traced(assign(*into), note_value("$spelling.out")), variables=f'<variable name="it" type="xsd:{type}"/>'
    )
    assert spelled(text) == says


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("1000000 * 100000", "100000000000"),
        ("1 div 0", "Infinity"),
        ("number('x')", "NaN"),
        ("5 mod 3", "2"),
        ("round(2.5) + floor(-1.5) + ceiling(1.2)", "3"),
        ("substring('12345', 2, 3)", "234"),
        ("normalize-space('  a  b ')", "a b"),
        ("translate('bar', 'abc', 'AB')", "BAr"),
        ("concat(substring-before('a-b', '-'), substring-after('a-b', '-'))", "ab"),
        ("count($order/d:item[position() = last()])", "1"),
        ("sum($order/d:count) + count($order/*)", "7"),
        ("string($order/d:item[@x] | $order/d:item[. = 'b'])", "b"),
        ("$order/d:item[2]/preceding-sibling::*", "a"),
        ("name($order/*[last()])", "d:count"),
        ("$order//d:count[ancestor::d:order/@id = 7]", "4"),
        ("boolean($order/d:none)", "false"),
        ("not($word.in)", "false"),
        ("string($word.in = 0 and not($word.in != 0))", "true"),
    ],
)
def test_expressions_give_what_xpath_says(spelled: Spelled, expression: str, says: str) -> None:
    order = "<d:order id='7'><d:item>a</d:item><d:item>b</d:item><d:count>4</d:count></d:order>"
    first = assign(copy(f"<from><literal>{order}</literal></from>", '<to variable="order"/>'))
    assert spelled(process(traced(first, note_value(expression)))) == says
