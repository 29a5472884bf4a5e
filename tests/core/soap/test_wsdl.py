"""The WSDL that is served: a document for each namespace, schemas that lead nowhere else, the way it is spoken."""

import pytest
from lxml import etree

from mendflow.core.model.errors import NotFound
from mendflow.core.model.xml import MessagePart, Operation, SchemaText, ServicePort, SoapBinding, XmlDefinitions
from mendflow.core.soap import WSDL, WSDL_SOAP, XSD, qualified_name
from mendflow.core.soap.wsdl import ServedPort, at_address, schema_of, wsdl_of

URL = "http://grid.example/soap/flows/order"
MAIN = f"""<x:schema xmlns:x="{XSD}" targetNamespace="urn:a"><x:include schemaLocation="types/more.xsd"/>
<x:import namespace="urn:b" schemaLocation="http://elsewhere.example/b.xsd"/></x:schema>"""
WORLD = XmlDefinitions(
    namespace="urn:p",
    messages={
        "{urn:b}in": (MessagePart(name="a", type=f"{{{XSD}}}int"),),
        "{urn:b}out": (MessagePart(name="b", element="{urn:c}b"),),
    },
    port_types={"{urn:a}Sums": {"add": Operation(name="add", input="{urn:b}in", output="{urn:b}out")}},
    ports=(
        ServicePort(
            service="s",
            name="p",
            port_type="{urn:a}Sums",
            operations={"add": SoapBinding(action="urn:add", style="rpc", namespace="urn:rpc")},
        ),
    ),
    schemas=(
        SchemaText(location="main.xsd", namespace="urn:a", text=MAIN),
        SchemaText(location="types/more.xsd", namespace="urn:a", text=f'<x:schema xmlns:x="{XSD}"/>'),
    ),
)
SERVED = [ServedPort("customer", "{urn:a}Sums", URL)]


def document(number: int) -> etree._Element:
    return etree.fromstring(wsdl_of(WORLD, "order", SERVED, URL, number).encode())


def found(root: etree._Element, name: str, namespace: str = WSDL) -> list[etree._Element]:
    return list(root.iter(qualified_name(namespace, name)))


def test_each_namespace_has_a_document_and_the_first_imports_the_others() -> None:
    first, second = document(0), document(1)
    [other] = found(first, "import")
    assert (other.get("namespace"), other.get("location")) == ("urn:b", f"{URL}?wsdl=1")
    assert (first.get("targetNamespace"), second.get("targetNamespace")) == ("urn:a", "urn:b")
    assert [each.get("name") for each in found(first, "portType")] == ["Sums"]
    assert [each.get("name") for each in found(second, "message")] == ["in", "out"]
    with pytest.raises(NotFound):
        document(2)


def test_every_name_has_a_prefix_that_is_declared() -> None:
    for root in (document(0), document(1)):
        for node in root.iter():
            for attribute in ("message", "type", "element", "binding"):
                prefix, colon, _ = node.get(attribute, "").partition(":")
                assert not colon or prefix in node.nsmap, etree.tostring(node)


def test_the_binding_says_how_it_is_spoken_and_the_port_where() -> None:
    root = document(0)
    [operation] = found(root, "operation", WSDL_SOAP)
    assert (operation.get("soapAction"), operation.get("style")) == ("urn:add", "rpc")
    assert {each.get("namespace") for each in found(root, "body", WSDL_SOAP)} == {"urn:rpc"}
    assert [each.get("location") for each in found(root, "address", WSDL_SOAP)] == [URL]


def test_schemas_lead_to_what_is_served_here_and_to_nothing_else() -> None:
    [schema] = found(document(0), "schema", XSD)
    [include], [imported] = found(schema, "include", XSD), found(schema, "import", XSD)
    assert include.get("schemaLocation") == f"{URL}?xsd=1"
    assert "schemaLocation" not in imported.attrib
    assert schema_of(WORLD, 1, URL).startswith("<x:schema")
    with pytest.raises(NotFound):
        schema_of(WORLD, 2, URL)


def test_a_wsdl_that_ships_gets_the_address_where_it_is_served() -> None:
    shipped = f'<d xmlns:s="{WSDL_SOAP}"><s:address location="mendflow:jobs"/></d>'
    assert f'location="{URL}"' in at_address(shipped, URL)
