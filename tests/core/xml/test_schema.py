"""Values are held against the schemas that their flow came with, and against nothing else."""

import pytest

from mendflow.core.model.values import Value
from mendflow.core.model.xml import MessagePart, SchemaText, XmlDefinitions, XmlType, element_value
from mendflow.core.xml.schema import (
    builtin_of,
    builtin_of_content,
    declares_element,
    declares_type,
    schema_problems,
    violations,
)

XSD = "http://www.w3.org/2001/XMLSchema"
HEAD = f'xmlns:xs="{XSD}" xmlns:o="urn:orders" targetNamespace="urn:orders" elementFormDefault="qualified"'
ORDERS = f"""<xs:schema {HEAD}>
  <xs:simpleType name="amount">
    <xs:restriction base="xs:int"><xs:maxInclusive value="12"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="few">
    <xs:restriction base="o:amount"><xs:maxInclusive value="3"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="many"><xs:list itemType="xs:int"/></xs:simpleType>
  <xs:complexType name="line"><xs:sequence><xs:element name="item" type="xs:string"/>
    <xs:element name="count" type="o:amount"/></xs:sequence></xs:complexType>
  <xs:element name="order"><xs:complexType><xs:sequence>
    <xs:element name="line" type="o:line" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
  <xs:element name="total" type="o:amount"/>
</xs:schema>"""


def world(*texts: str, places: tuple[str, ...] = ()) -> XmlDefinitions:
    names = places or tuple(f"schema{at}.xsd" for at in range(len(texts)))
    schemas = tuple(
        SchemaText(location=place, namespace="urn:orders", text=text) for place, text in zip(names, texts, strict=True)
    )
    ask = (MessagePart(name="order", element="{urn:orders}order"), MessagePart(name="n", type=xsd("int")))
    return XmlDefinitions(namespace="urn:flow", schemas=schemas, messages={"{urn:orders}ask": ask})


def xsd(local: str) -> str:
    return f"{{{XSD}}}{local}"


def order(count: str) -> dict[str, Value]:
    line = f"<line><item>bolt</item><count>{count}</count></line>"
    return element_value(f'<order xmlns="urn:orders">{line}</order>')


ELEMENT = XmlType(element="{urn:orders}order")


def test_an_element_that_is_as_its_schema_wants_it_has_no_violations() -> None:
    assert violations(world(ORDERS), order("12"), ELEMENT) == []


def test_what_is_wrong_deep_in_an_element_is_told() -> None:
    found = violations(world(ORDERS), order("13"), ELEMENT)
    assert len(found) == 1
    assert "count" in found[0] and "13" in found[0]


def test_another_element_than_the_declared_one_is_a_violation() -> None:
    assert "is wanted" in violations(world(ORDERS), element_value('<total xmlns="urn:orders">1</total>'), ELEMENT)[0]
    assert "plain value" in violations(world(ORDERS), 5, ELEMENT)[0]


@pytest.mark.parametrize(
    ("type", "value", "fits"),
    [
        (xsd("int"), 5, True),
        (xsd("int"), 1 << 40, False),
        (xsd("unsignedByte"), -1, False),
        (xsd("boolean"), True, True),
        (xsd("string"), "", True),
        (xsd("date"), "2011-02-30", False),
        (xsd("decimal"), 1e21, True),
        (xsd("double"), 1e21, True),
        ("{urn:orders}amount", 12, True),
        ("{urn:orders}few", 4, False),
        ("{urn:orders}many", "1 2 3", True),
        ("{urn:orders}many", "1 b", False),
        ("{urn:orders}nothing", 1, False),
    ],
)
def test_plain_values_are_held_against_their_simple_types(type: str, value: Value, fits: bool) -> None:
    assert (violations(world(ORDERS), value, XmlType(type=type)) == []) is fits


def test_a_violation_names_the_type_and_no_name_of_our_own() -> None:
    said = violations(world(ORDERS), 13, XmlType(type="{urn:orders}amount"))[0]
    assert "{urn:orders}amount" in said
    assert "mendflow" not in said


def test_a_value_of_a_complex_type_may_stand_in_any_element() -> None:
    good = '<x xmlns:o="urn:orders"><o:item>a</o:item><o:count>1</o:count></x>'
    assert violations(world(ORDERS), element_value(good), XmlType(type="{urn:orders}line")) == []
    assert violations(world(ORDERS), element_value("<x/>"), XmlType(type="{urn:orders}line"))


def test_each_part_of_a_message_is_judged() -> None:
    message = XmlType(message="{urn:orders}ask")
    assert violations(world(ORDERS), {"order": order("1"), "n": 1}, message) == []
    assert [one.split(":")[0] for one in violations(world(ORDERS), {"order": order("x"), "n": "y"}, message)] == [
        "part order",
        "part n",
    ]
    assert violations(world(ORDERS), {"n": 1}, message) == ["the part order is missing"]


def test_several_documents_make_up_one_namespace() -> None:
    more = f'<xs:schema {HEAD}><xs:element name="extra" type="o:few"/></xs:schema>'
    both = world(ORDERS, more)
    assert schema_problems(both) == []
    assert violations(both, element_value('<extra xmlns="urn:orders">4</extra>'), XmlType(element="{urn:orders}extra"))


def test_two_documents_may_bring_the_same_types_along() -> None:
    both = world(ORDERS, ORDERS.replace("</xs:schema>", '<xs:element name="more" type="o:few"/></xs:schema>'))
    assert schema_problems(both) == []
    assert violations(both, order("13"), ELEMENT)
    assert (
        violations(both, element_value('<more xmlns="urn:orders">3</more>'), XmlType(element="{urn:orders}more")) == []
    )


def test_a_document_without_a_namespace_takes_that_of_the_one_that_includes_it() -> None:
    plain = f"""<xs:schema xmlns:xs="{XSD}">
      <xs:simpleType name="code"><xs:restriction base="xs:token"/></xs:simpleType></xs:schema>"""
    outer = f"""<xs:schema {HEAD}><xs:include schemaLocation="../common/code.xsd"/>
      <xs:element name="code" type="o:code"/></xs:schema>"""
    both = world(outer, plain, places=("schemas/orders.xsd", "common/code.xsd"))
    assert schema_problems(both) == []
    assert builtin_of(both, XmlType(type="{urn:orders}code")) == "token"
    assert builtin_of(both, XmlType(type="code")) is None


def test_imports_that_lead_to_each_other_are_followed_once() -> None:
    first = f"""<xs:schema {HEAD} xmlns:p="urn:people"><xs:import namespace="urn:people" schemaLocation="b.xsd"/>
      <xs:element name="by" type="p:name"/></xs:schema>"""
    second = f"""<xs:schema xmlns:xs="{XSD}" xmlns:o="urn:orders" targetNamespace="urn:people">
      <xs:import namespace="urn:orders" schemaLocation="a.xsd"/>
      <xs:simpleType name="name"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema>"""
    both = world(first, second, places=("a.xsd", "b.xsd"))
    assert schema_problems(both) == []
    assert builtin_of_content(both, "{urn:orders}by") == "string"


@pytest.mark.parametrize(
    ("type", "built_in"),
    [
        (XmlType(type=xsd("int")), "int"),
        (XmlType(type="{urn:orders}few"), "int"),
        (XmlType(type="{urn:orders}many"), "anySimpleType"),
        (XmlType(type="{urn:orders}line"), None),
        (XmlType(type=xsd("anyType")), None),
        (XmlType(type="int"), None),
        (XmlType(element="{urn:orders}total"), None),
        (XmlType(message="{urn:orders}ask"), None),
    ],
)
def test_a_simple_type_comes_from_a_built_in_one(type: XmlType, built_in: str | None) -> None:
    assert builtin_of(world(ORDERS), type) == built_in


def test_a_type_that_comes_from_itself_comes_from_nothing() -> None:
    loop = f'<xs:schema {HEAD}><xs:simpleType name="a"><xs:restriction base="o:a"/></xs:simpleType></xs:schema>'
    assert builtin_of(world(loop), XmlType(type="{urn:orders}a")) is None


def test_the_content_of_an_element_has_a_built_in_type_too() -> None:
    assert builtin_of_content(world(ORDERS), "{urn:orders}total") == "int"
    assert builtin_of_content(world(ORDERS), "{urn:orders}order") is None


def test_names_are_found_where_they_are_declared() -> None:
    assert declares_element(world(ORDERS), "{urn:orders}order")
    assert not declares_element(world(ORDERS), "{urn:orders}line")
    assert declares_type(world(ORDERS), xsd("anyURI")) and declares_type(world(ORDERS), "{urn:orders}line")
    assert not declares_type(world(ORDERS), xsd("quantity"))


def test_a_service_reference_is_known_without_a_schema_of_the_flow() -> None:
    space = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
    name = f"{{{space}}}service-ref"
    assert declares_element(world(), name)
    ref = f'<s:service-ref xmlns:s="{space}"><a xmlns="urn:a"/></s:service-ref>'
    assert violations(world(), element_value(ref), XmlType(element=name)) == []


def test_a_schema_that_is_broken_is_told_with_its_place() -> None:
    broken = f'<xs:schema {HEAD}>\n<xs:element name="a" type="o:nobody"/></xs:schema>'
    assert schema_problems(world(broken))[0].startswith("schema0.xsd:2: ")
    assert violations(world(broken), order("1"), ELEMENT) == schema_problems(world(broken))


@pytest.mark.parametrize("many", ["1000000", "99999999999999999999999999"])
def test_a_schema_may_not_ask_for_more_than_can_be_counted(many: str) -> None:
    huge = f"""<xs:schema {HEAD}><xs:element name="a"><xs:complexType><xs:sequence>
      <xs:element name="b" maxOccurs="{many}"/></xs:sequence></xs:complexType></xs:element></xs:schema>"""
    assert "maxOccurs is more than" in schema_problems(world(huge))[0]


@pytest.mark.parametrize("place", ["file:///etc/hostname", "/etc/hostname", "http://127.0.0.1:9/x.xsd"])
@pytest.mark.parametrize("word", ["import", "include", "redefine"])
def test_a_schema_draws_in_nothing_that_the_flow_did_not_bring(place: str, word: str) -> None:  # XML attacks
    space = 'namespace="urn:elsewhere" ' if word == "import" else ""
    outer = f'<xs:schema {HEAD}><xs:{word} {space}schemaLocation="{place}"/><xs:element name="a"/></xs:schema>'
    assert schema_problems(world(outer)) == []


def test_an_import_whose_names_are_used_and_that_leads_nowhere_is_a_problem() -> None:
    outer = f"""<xs:schema {HEAD} xmlns:e="urn:elsewhere"><xs:import namespace="urn:elsewhere"
      schemaLocation="file:///etc/passwd"/><xs:element name="a" type="e:b"/></xs:schema>"""
    found = schema_problems(world(outer))
    assert found
    assert not any("passwd" in one or "root:" in one for one in found)


def test_a_value_cannot_name_a_schema_of_its_own() -> None:
    said = 'xsi:schemaLocation="urn:other file:///etc/passwd"'
    value = f'<a xmlns="urn:other" xmlns:xsi="{XSD}-instance" {said}/>'
    found = violations(world(ORDERS), element_value(value), XmlType(element="{urn:other}a"))
    assert found and not any("passwd" in one or "root:" in one for one in found)


def test_a_pattern_that_explodes_is_a_violation_and_no_end_of_waiting() -> None:
    text = f"""<xs:schema {HEAD}><xs:simpleType name="p"><xs:restriction base="xs:string">
      <xs:pattern value="(a|aa)+b"/></xs:restriction></xs:simpleType></xs:schema>"""
    assert violations(world(text), "a" * 60, XmlType(type="{urn:orders}p"))


def test_a_document_type_in_a_schema_is_refused() -> None:
    bomb = '<!DOCTYPE s [<!ENTITY a "aaaa">]><s>&a;</s>'
    assert "document type" in schema_problems(world(bomb))[0]
