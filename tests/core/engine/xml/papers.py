"""A small world of papers for flows with XML: orders with items and a note, counts, texts, and a partner to ask."""

from mendflow.core.engine import case_data
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Activity, Assign, Flow, Scope
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from mendflow.core.model.xml import (
    MessagePart,
    Operation,
    PartnerLink,
    PropertyAlias,
    SchemaText,
    ScopeDeclarations,
    ServicePort,
    XmlCopy,
    XmlDefinitions,
    XmlSource,
    XmlTarget,
    XmlType,
    element_text,
    element_value,
)
from tests.core.engine.world import Play

XSD = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = f"""\
<xs:schema xmlns:xs="{XSD}" xmlns="urn:o" targetNamespace="urn:o" elementFormDefault="qualified">
  <xs:complexType name="Order">
    <xs:sequence>
      <xs:element name="item" minOccurs="0" maxOccurs="unbounded">
        <xs:complexType><xs:simpleContent>
          <xs:extension base="xs:string"><xs:attribute name="sku" type="xs:int"/></xs:extension>
        </xs:simpleContent></xs:complexType>
      </xs:element>
      <xs:element name="note" type="xs:string" minOccurs="0" nillable="true"/>
    </xs:sequence>
    <xs:attribute name="id" type="xs:int"/>
  </xs:complexType>
  <xs:simpleType name="Few"><xs:restriction base="xs:int"><xs:maxInclusive value="10"/></xs:restriction></xs:simpleType>
  <xs:element name="order" type="Order"/>
  <xs:element name="copy" type="Order"/>
  <xs:element name="special" type="Order" substitutionGroup="order"/>
  <xs:element name="count" type="xs:int"/>
</xs:schema>
"""
ORDERED, COUNTED, MIXED, NOTHING = (f"{{urn:o}}{name}" for name in ("ordered", "counted", "mixed", "nothing"))
ASKED, OFFERED = "{urn:o}Asked", "{urn:o}Offered"
NUMBER = "{urn:o}number"
FIRST = "{urn:o}first"


def xpath(text: str) -> Expr:
    return Expr(text, language=XPATH, namespaces=(("o", "urn:o"), ("bpel", BPEL)))


BPEL = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
WORLD = XmlDefinitions(
    namespace="urn:p",
    messages={
        ORDERED: (MessagePart(name="order", element="{urn:o}order"),),
        COUNTED: (MessagePart(name="count", element="{urn:o}count"),),
        MIXED: (MessagePart(name="count", element="{urn:o}count"), MessagePart(name="size", type=f"{{{XSD}}}int")),
        NOTHING: (),
    },
    port_types={
        ASKED: {
            "count": Operation(name="count", input=ORDERED, output=COUNTED, faults={"spoiled": ORDERED}),
            "measure": Operation(name="measure", input=MIXED, output=MIXED),
            "tell": Operation(name="tell", input=ORDERED),
            "nudge": Operation(name="nudge", input=NOTHING),
        },
        OFFERED: {"begin": Operation(name="begin", input=ORDERED, output=COUNTED)},
    },
    properties={NUMBER: f"{{{XSD}}}int", FIRST: f"{{{XSD}}}string"},
    aliases=(
        PropertyAlias(property=NUMBER, of=XmlType(message=ORDERED), part="order", query=xpath("@id")),
        PropertyAlias(property=NUMBER, of=XmlType(message=COUNTED), part="count"),
        PropertyAlias(property=NUMBER, of=XmlType(element="{urn:o}order"), query=xpath("@id")),
        PropertyAlias(property=FIRST, of=XmlType(message=ORDERED), part="order", query=xpath("o:item[1]")),
    ),
    ports=(ServicePort(service="{urn:o}S", name="P", port_type=ASKED, address="http://127.0.0.1:1/asked"),),
    schemas=(SchemaText(location="o.xsd", namespace="urn:o", text=SCHEMA),),
    sheets={"flip.xsl": "<x/>"},
)
TYPES = {
    "order": XmlType(element="{urn:o}order"),
    "other": XmlType(element="{urn:o}copy"),
    "count": XmlType(element="{urn:o}count"),
    "whole": XmlType(type="{urn:o}Order"),
    "number": XmlType(type=f"{{{XSD}}}int"),
    "few": XmlType(type="{urn:o}Few"),
    "amount": XmlType(type=f"{{{XSD}}}decimal"),
    "double": XmlType(type=f"{{{XSD}}}double"),
    "flag": XmlType(type=f"{{{XSD}}}boolean"),
    "text": XmlType(type=f"{{{XSD}}}string"),
    "day": XmlType(type=f"{{{XSD}}}date"),
    "ordered": XmlType(message=ORDERED),
    "again": XmlType(message=ORDERED),
    "counted": XmlType(message=COUNTED),
    "mixed": XmlType(message=MIXED),
    "nothing": XmlType(message=NOTHING),
}
LINKS = {
    "partner": PartnerLink(type="{urn:o}L", partner=ASKED, partner_role="asked"),
    "later": PartnerLink(type="{urn:o}L", partner=ASKED, partner_role="asked", initialize=False),
    "unknown": PartnerLink(type="{urn:o}L", partner=OFFERED, partner_role="offered"),
    "mine": PartnerLink(type="{urn:o}L", mine=OFFERED, my_role="offered"),
}
DECLARED = ScopeDeclarations(types=TYPES, partner_links=LINKS)


def order(inside: str = '<o:item sku="1">a</o:item><o:item sku="2">b</o:item><o:note>n</o:note>', id: int = 7) -> Value:
    return element_value(f'<o:order xmlns:o="urn:o" id="{id}">{inside}</o:order>')


def count(text: object) -> Value:
    return element_value(f'<o:count xmlns:o="urn:o">{text}</o:count>')


def source(what: str | XmlSource) -> XmlSource:
    """A text is an expression."""
    return XmlSource(expression=xpath(what)) if isinstance(what, str) else what


def target(what: str | XmlTarget) -> XmlTarget:
    """A text is an expression."""
    return XmlTarget(expression=xpath(what)) if isinstance(what, str) else what


def copy(what: str | XmlSource, to: str | XmlTarget, *, keep_name: bool = False, ignore: bool = False) -> XmlCopy:
    return XmlCopy(source=source(what), target=target(to), keep_name=keep_name, ignore_missing=ignore)


def literal(content: str) -> XmlSource:
    return XmlSource(literal=f'<literal xmlns:o="urn:o">{content}</literal>')


def process(
    body: Activity, *, declared: ScopeDeclarations = DECLARED, scope: Scope | None = None, **variables: Value
) -> Flow:
    """A process with this body; `scope` has its handlers, and variables hold something already."""
    around = scope or Scope(name="process", body=body)
    whole = Scope(
        name="process",
        body=body,
        declared=declared,
        catches=around.catches,
        alarms=around.alarms,
        exit_on_standard_fault=around.exit_on_standard_fault,
    )
    return Flow(name=FlowName("papers"), body=whole, xml=WORLD, variables=variables)


def assign(*copies: XmlCopy, name: str = "assign", validate: bool = False) -> Assign:
    return Assign(name=name, xml=copies, validate=validate)


def ran(body: Activity | list[XmlCopy], **variables: Value) -> Play:
    """A case of a process with this body, or with an assign of these copies, just started."""
    return Play(process(assign(*body) if isinstance(body, list) else body, **variables))


def left(play: Play, name: str) -> Value:
    """What a variable of the process held at its end, or holds now; None if nothing."""
    return case_data(play.case).get(name)


def text_in(value: Value) -> str:
    found = element_text(value)
    assert found is not None, value
    return found


def fault_of(play: Play) -> str:
    assert play.ended.fault is not None, play.ended
    return play.ended.fault.name
