"""Copies between places in XML: what replaces what, after 8.4.2 of the specification."""

import pytest

from mendflow.core.model.flow import Assign, Catch, Copy, Empty, Scope
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlCopy, XmlSource, XmlTarget, XmlType
from mendflow.core.soap.references import address_of
from tests.core.engine.world import Play
from tests.core.engine.xml.papers import (
    FIRST,
    NUMBER,
    ORDERED,
    XSI,
    assign,
    copy,
    count,
    fault_of,
    left,
    literal,
    order,
    process,
    ran,
    text_in,
    xpath,
)

ORDER = XmlTarget(variable="order")
NIL = f'<o:note xmlns:xsi="{XSI}" xsi:nil="true"/>'


def var(name: str, part: str = "") -> XmlSource:
    return XmlSource(variable=name, part=part)


def to(name: str, part: str = "") -> XmlTarget:
    return XmlTarget(variable=name, part=part)


# FM-1
@pytest.mark.parametrize(
    ("what", "where", "said"),
    [
        ("$order/o:item[2]", "$order/o:item[1]", '<o:item sku="2">b</o:item><o:item sku="2">b</o:item>'),
        ("$order/o:item[2]", "$order/o:note", '<o:note sku="2">b</o:note>'),
        ("$order/o:item[2]", "$order/@id", '<o:order xmlns:o="urn:o" id="b">'),
        ("$order/o:item[2]", "$order/o:note/text()", "<o:note>b</o:note>"),
        ("$order/@id", "$order/o:item[1]", '<o:item sku="1">7</o:item>'),
        ("$order/@id", "$order/o:item[1]/@sku", '<o:item sku="7">a</o:item>'),
        ("$order/@id", "$order/o:note/text()", "<o:note>7</o:note>"),
        ("$order/o:note/text()", "$order/o:item[1]", '<o:item sku="1">n</o:item>'),
        ("$order/o:note/text()", "$order/@id", '<o:order xmlns:o="urn:o" id="n">'),
        ("$order/o:note/text()", "$order/o:item[1]/text()", '<o:item sku="1">n</o:item>'),
        ("1 + 1", "$order/o:item[1]", '<o:item sku="1">2</o:item>'),
        ("1 div 4", "$order/@id", '<o:order xmlns:o="urn:o" id="0.25">'),
        ("'<&'", "$order/o:note", "<o:note>&lt;&amp;</o:note>"),
        ("true()", "$order/o:note", "<o:note>true</o:note>"),
        ("''", "$order/o:note/text()", "<o:note/>"),
    ],
)
def test_an_element_replaces_an_element_and_everything_else_replaces_content(what: str, where: str, said: str) -> None:
    play = ran([copy(what, where)], order=order())
    assert play.status == "completed", play.ended
    assert said in text_in(left(play, "order"))


def test_an_element_takes_the_name_of_what_it_replaces_unless_it_keeps_its_own() -> None:
    plain = ran([copy(var("order"), to("other"))], order=order())
    assert text_in(left(plain, "other")).startswith("<copy ") or ":copy " in text_in(left(plain, "other"))
    kept = ran([copy("$order/o:item[1]", "$order/o:note", keep_name=True)], order=order())
    assert '<o:item sku="1">a</o:item></o:order>' in text_in(left(kept, "order"))


def test_a_kept_name_must_be_one_that_may_stand_there() -> None:
    special = literal('<o:special id="1"/>')
    assert "special" in text_in(left(ran([copy(special, ORDER, keep_name=True)]), "order"))
    other = literal('<o:copy id="1"/>')
    assert fault_of(ran([copy(other, ORDER, keep_name=True)])) == "mismatchedAssignmentFailure"


def test_what_is_copied_is_a_copy() -> None:
    copies = [copy(var("order"), to("whole")), copy("'changed'", "$order/o:note")]
    play = ran(copies, order=order())
    assert "<o:note>n</o:note>" in text_in(left(play, "whole"))
    assert "changed" in text_in(left(play, "order"))


def test_a_nil_element_has_no_text_and_one_that_gets_a_text_is_nil_no_more() -> None:
    assert fault_of(ran([copy("$order/o:note", to("text"))], order=order(NIL))) == "selectionFailure"
    play = ran([copy("'x'", "$order/o:note")], order=order(NIL))
    assert 'nil="false">x</o:note>' in text_in(left(play, "order"))
    whole = ran([copy("$order/o:note", "$order/o:note")], order=order(NIL))
    assert 'nil="true"' in text_in(left(whole, "order"))


@pytest.mark.parametrize(
    ("name", "what", "value"),
    [
        ("number", "' 12 '", 12),
        ("number", "12.0", 12),
        ("number", "$order/@id", 7),
        ("number", "'none'", "none"),
        ("number", "'123456789012345678901'", "123456789012345678901"),
        ("few", "11", 11),
        ("amount", "0.5", 0.5),
        ("amount", "'1e3'", "1e3"),
        ("amount", "2", 2),
        ("double", "1 div 0", "INF"),
        ("double", "-1 div 0", "-INF"),
        ("double", "0 div 0", "NaN"),
        ("double", "'1e3'", 1000.0),
        ("flag", "1 = 1", True),
        ("flag", "'0'", False),
        ("text", "' a '", " a "),
        ("text", "3", "3"),
        ("text", "$order", "abn"),
        ("day", "' 2026-01-01 '", "2026-01-01"),
    ],
)
def test_a_value_of_a_simple_type_is_plain(name: str, what: str, value: Value) -> None:
    play = ran([copy(what, to(name))], order=order())
    assert left(play, name) == value
    assert type(left(play, name)) is type(value)


def test_infinity_is_kept_as_a_text_and_is_a_number_to_expressions() -> None:
    play = ran([copy("1 div 0", to("double")), copy("-$double < 5", to("flag")), copy("-$double", to("double"))])
    assert (left(play, "flag"), left(play, "double")) == (True, "-INF")
    assert left(ran([copy("$text = 'INF'", to("flag"))], text="INF"), "flag") is True


def test_variables_and_parts_come_into_being_when_they_are_copied_to() -> None:
    copies = [
        copy("5", to("counted", "count")),
        copy("6", "$mixed.count"),
        copy("7", "$mixed.size"),
        copy("8", XmlTarget(variable="count", query=xpath("."))),
        copy("'w'", to("whole")),
    ]
    play = ran(copies)
    assert left(play, "counted") == {"count": element_of("count", 5)}
    assert left(play, "mixed") == {"count": element_of("count", 6), "size": 7}
    assert left(play, "count") == element_of("count", 8)
    assert left(play, "whole") == {"$xml": "<whole>w</whole>"}


def element_of(name: str, text: object) -> Value:
    return {"$xml": f'<{name} xmlns="urn:o">{text}</{name}>'}


@pytest.mark.parametrize("where", ["$order/o:item", "$order/o:none", "$order/comment()", "$order/@none", "$count/o:x"])
def test_a_copy_goes_to_exactly_one_node(where: str) -> None:
    play = ran([copy("1", where)], order=order("<o:item/><o:item/><!--x-->"))
    assert fault_of(play) == "selectionFailure"


@pytest.mark.parametrize("what", ["$order/o:item", "$order/o:none", "$order/comment()"])
def test_exactly_one_node_is_copied(what: str) -> None:
    assert fault_of(ran([copy(what, to("text"))], order=order("<o:item/><o:item/><!--x-->"))) == "selectionFailure"


def test_missing_data_can_be_ignored_and_then_nothing_happens() -> None:
    copies = [copy("'before'", to("text")), copy("$order/o:none", to("text"), ignore=True)]
    assert left(ran(copies, order=order()), "text") == "before"
    several = [copy("$order/o:item", to("text"), ignore=True)]
    assert fault_of(ran(several, order=order())) == "selectionFailure"


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ("$text", "uninitializedVariable"),
        (var("text"), "uninitializedVariable"),
        (var("ordered"), "uninitializedVariable"),
        (var("ordered", "order"), "uninitializedVariable"),
        ("$ordered.order/o:item", "uninitializedVariable"),
        (XmlSource(variable="ordered", property=NUMBER), "uninitializedVariable"),
        (XmlSource(variable="text", property=NUMBER), "selectionFailure"),
        (XmlSource(), "selectionFailure"),
        ("1 +", "subLanguageExecutionFault"),
        ("name", "subLanguageExecutionFault"),
        ("unheard-of(1)", "subLanguageExecutionFault"),
        (XmlSource(partner_link="unknown", endpoint="partnerRole"), "uninitializedPartnerRole"),
        (XmlSource(partner_link="partner", endpoint="myRole"), "uninitializedPartnerRole"),
        (literal("<o:a/><o:b/>"), "selectionFailure"),
        (literal("a<o:b/>"), "selectionFailure"),
    ],
)
def test_what_cannot_be_taken_is_a_fault_by_its_name(what: str | XmlSource, fault: str) -> None:
    held = {"text": "x"} if isinstance(what, XmlSource) and what.property and what.variable == "text" else {}
    assert fault_of(ran([copy(what, to("number"))], **held)) == fault


def test_a_whole_message_goes_to_a_variable_of_its_type_alone() -> None:
    message = {"order": order()}
    assert left(ran([copy(var("ordered"), to("again"))], ordered=message), "again") == message
    for place in (to("counted"), to("order"), to("counted", "count"), XmlTarget(variable="again", query=xpath("."))):
        assert fault_of(ran([copy(var("ordered"), place)], ordered=message)) == "mismatchedAssignmentFailure"
    assert fault_of(ran([copy("1", to("counted"))])) == "mismatchedAssignmentFailure"
    assert fault_of(ran([copy(var("mixed"), to("mixed"))], mixed={"size": 1})) == "uninitializedVariable"


def test_queries_look_at_what_the_variable_holds() -> None:
    copies = [
        copy(XmlSource(variable="order", query=xpath("o:item[2]/@sku")), to("number")),
        copy(XmlSource(variable="ordered", part="order", query=xpath("count(o:item)")), to("amount")),
        copy(XmlSource(variable="text", query=xpath(".")), XmlTarget(variable="order", query=xpath("o:note"))),
        copy("$amount", XmlTarget(variable="ordered", part="order", query=xpath("@id"))),
    ]
    play = ran(copies, order=order(), ordered={"order": order()}, text="t")
    assert (left(play, "number"), left(play, "amount")) == (2, 2)
    assert "<o:note>t</o:note>" in text_in(left(play, "order"))
    assert 'id="2"' in text_in(left(play, "ordered")["order"])


def test_properties_are_read_and_written_where_their_aliases_say() -> None:
    copies = [
        copy(XmlSource(variable="ordered", property=FIRST), to("text")),
        copy(XmlSource(variable="order", property=NUMBER), XmlTarget(variable="counted", property=NUMBER)),
        copy("99", XmlTarget(variable="ordered", property=NUMBER)),
        copy("bpel:getVariableProperty('counted', 'o:number') + 1", to("number")),
    ]
    play = ran(copies, ordered={"order": order()}, order=order(id=5))
    assert left(play, "text") == "a"
    assert left(play, "counted") == {"count": element_of("count", 5)}
    assert 'id="99"' in text_in(left(play, "ordered")["order"])
    assert left(play, "number") == 6


def test_properties_of_large_messages_are_found() -> None:
    """A case has the whole budget of XPath for them, as it always had."""
    large = {"order": order(f"<o:item>a{'<o:x/>' * 4_000}</o:item>")}
    copies = [
        copy(XmlSource(variable="ordered", property=FIRST), to("text")),
        copy("bpel:getVariableProperty('ordered', 'o:first')", to("text")),
    ]
    for each in copies:
        assert left(ran([each], ordered=large), "text") == "a"


def test_a_property_that_takes_too_much_is_a_fault_of_the_flow() -> None:
    """Finding it is quick, and writing it down is not."""
    large = {"order": order(f"<o:item>{'<o:x/>' * 100_000}</o:item>")}
    play = ran([copy(XmlSource(variable="ordered", property=FIRST), to("text"))], ordered=large)
    assert fault_of(play) == "subLanguageExecutionFault"


def test_the_text_of_a_literal_keeps_its_white_space_and_its_element_does_not_need_it() -> None:
    play = ran([copy(literal("\n -1 \n"), to("text")), copy(literal('\n <o:order id="1"/>\n'), ORDER)])
    assert left(play, "text") == "\n -1 \n"
    assert 'id="1"' in text_in(left(play, "order"))


def test_a_partner_link_takes_a_reference_and_nothing_else() -> None:
    reference = literal(
        '<s:service-ref xmlns:s="http://docs.oasis-open.org/wsbpel/2.0/serviceref">'
        '<a:EndpointReference xmlns:a="http://www.w3.org/2005/08/addressing"><a:Address>http://x/</a:Address>'
        "</a:EndpointReference></s:service-ref>"
    )
    link = XmlTarget(partner_link="unknown")
    held = XmlSource(partner_link="unknown", endpoint="partnerRole")
    play = ran([copy(reference, link), copy(held, to("whole"), keep_name=True)])
    assert address_of(left(play, "whole")) == "http://x/"
    for known in ("partner", "later"):
        moved = ran([copy(XmlSource(partner_link=known, endpoint="partnerRole"), link), copy(held, to("whole"))])
        assert address_of(left(moved, "whole")) == "http://127.0.0.1:1/asked"
    assert fault_of(ran([copy(literal("<o:order/>"), link)])) == "mismatchedAssignmentFailure"
    assert fault_of(ran([copy("'http://x/'", link)])) == "mismatchedAssignmentFailure"


def test_all_copies_happen_or_none() -> None:
    copies = [copy("1", to("number")), copy("'b'", "$order/o:note"), copy("$order/o:none", to("text"))]
    caught = Scope(name="s", body=assign(*copies), catches=(Catch(body=Empty(name="e"), fault="selectionFailure"),))
    play = ran(caught, order=order())
    assert play.status == "completed"
    assert left(play, "number") is None
    assert left(play, "order") == order()


def test_plain_copies_and_copies_of_xml_are_one_assign() -> None:
    both = Assign(name="a", copies=(Copy("number", "${{ 1 + 1 }}"),), xml=(copy("$number + 1", to("number")),))
    assert left(ran(both), "number") == 3
    broken = Assign(name="a", copies=(Copy("number", 5),), xml=(copy("$none", to("number")),))
    assert left(ran(broken, number=1), "number") == 1


def test_other_languages_of_expressions_give_plain_values() -> None:
    play = ran([copy(XmlSource(expression=xpath("1")), to("number")), cel("number + 1", "amount")])
    assert left(play, "amount") == 2
    assert fault_of(ran([cel("none", "text")])) == "uninitializedVariable"
    assert fault_of(ran([cel("1 / 0", "text")])) == "subLanguageExecutionFault"
    assert fault_of(ran([cel("[1]", "text")])) == "selectionFailure"


def cel(text: str, name: str) -> XmlCopy:
    return copy(XmlSource(expression=type(xpath(""))(text)), to(name))


def test_an_assign_that_validates_leaves_nothing_behind_that_is_not_valid() -> None:
    play = Play(process(assign(copy("11", to("few")), validate=True), few=1))
    assert (fault_of(play), left(play, "few")) == ("invalidVariables", 1)
    good = Play(process(assign(copy("10", to("few")), copy(literal("<o:order/>"), ORDER), validate=True)))
    assert good.run_out().status == "completed"


def test_messages_and_types_are_told_apart_by_what_is_declared() -> None:
    assert XmlType(message=ORDERED) != XmlType(element=ORDERED)
    assert count(1) != count(2)
