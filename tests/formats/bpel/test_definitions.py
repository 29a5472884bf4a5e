"""What WSDL and schema files say, and which files are read at all."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.xml import MessagePart, Operation, PropertyAlias, ServicePort, SoapBinding, XmlType
from mendflow.formats.bpel import load_bpel
from tests.formats.bpel.documents import (
    HEAD,
    IMPORT,
    RECEIVE,
    REPLY,
    SCHEMA_TYPE,
    WSDL,
    WSDL_TYPE,
    complaints,
    definitions,
    flow,
    process,
    put,
    sequence,
)

XSD = "{http://www.w3.org/2001/XMLSchema}"
MONTHS = '<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:months">{}</xsd:schema>'


def importing(*imports: str) -> str:
    return process(f"{''.join(imports)}{HEAD}<sequence>{RECEIVE}{REPLY}</sequence>")


def schema_import(location: str, namespace: str = "urn:months") -> str:
    return f'<import namespace="{namespace}" location="{location}" importType="{SCHEMA_TYPE}"/>'


def test_messages_and_port_types_are_known_by_their_full_names(tmp_path: Path) -> None:  # FM-1
    found = definitions(tmp_path, sequence())
    assert found.messages["{urn:orders}orderMessage"] == (MessagePart(name="order", element="{urn:orders}order"),)
    assert found.messages["{urn:orders}countMessage"] == (
        MessagePart(name="count", type=f"{XSD}int"),
        MessagePart(name="of", type=f"{XSD}string"),
    )
    assert found.port_types["{urn:orders}Shop"]["buy"] == Operation(
        name="buy",
        input="{urn:orders}orderMessage",
        output="{urn:orders}receiptMessage",
        faults={"soldOut": "{urn:orders}troubleMessage"},
    )
    assert not found.port_types["{urn:orders}Shop"]["tell"].output
    assert found.partner_link_types == {"{urn:orders}Buying": {"shop": "{urn:orders}Shop"}}
    assert (
        found.places["message", "{urn:orders}orderMessage"].line == WSDL[: WSDL.index('"orderMessage"')].count("\n") + 1
    )


def test_properties_and_their_aliases_are_known(tmp_path: Path) -> None:  # FM-1
    found = definitions(tmp_path, sequence())
    assert found.properties == {"{urn:orders}number": f"{XSD}int"}
    alias = found.aliases[0]
    assert alias == PropertyAlias(
        property="{urn:orders}number",
        of=XmlType(message="{urn:orders}orderMessage"),
        part="order",
        query=alias.query,
    )
    assert alias.query is not None
    assert (alias.query.text, alias.query.namespaces) == ("o:number", (("o", "urn:orders"),))


def test_a_property_of_an_element_has_the_type_of_what_stands_in_it(tmp_path: Path) -> None:
    changed = WSDL.replace(
        '<vprop:property name="number" type="xsd:int"/>', '<vprop:property name="number" element="o:number"/>'
    )
    assert definitions(tmp_path, sequence(), orders_wsdl=changed).properties == {"{urn:orders}number": f"{XSD}int"}


def test_ports_say_how_each_operation_is_spoken_and_where(tmp_path: Path) -> None:  # FM-8
    assert definitions(tmp_path, sequence()).ports == [
        ServicePort(
            service="{urn:orders}ShopService",
            name="ShopPort",
            port_type="{urn:orders}Shop",
            address="http://127.0.0.1:1/shop",
            operations={
                "buy": SoapBinding(action="urn:buy"),
                "tell": SoapBinding(),
                "count": SoapBinding(style="rpc", namespace="urn:rpc"),
            },
            binding="ShopSoap",
        )
    ]


def test_ports_of_other_protocols_are_left_aside(tmp_path: Path) -> None:
    changed = WSDL.replace(
        'xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"', 'xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap12/"'
    )
    assert definitions(tmp_path, sequence(), orders_wsdl=changed).ports == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('use="literal"', 'use="encoded"', "SOAP-encoded"),
        ("soap/http", "soap/smtp", "over HTTP here"),
        (' namespace="urn:rpc"/></input>', ' parts="count" namespace="urn:rpc"/></input>', "has the part of elsewhere"),
    ],
)
def test_a_partner_that_cannot_be_spoken_to_is_refused(tmp_path: Path, before: str, after: str, why: str) -> None:
    told = complaints(tmp_path, sequence(), orders_wsdl=WSDL.replace(before, after))
    assert len(told) == 1 and "{urn:orders}Shop cannot be called" in told[0] and why in told[0]


def test_partner_link_types_of_an_earlier_bpel_are_refused_by_name(tmp_path: Path) -> None:
    earlier = WSDL.replace("http://docs.oasis-open.org/wsbpel/2.0/plnktype", "urn:earlier/partner-link/")
    told = complaints(tmp_path, sequence(), orders_wsdl=earlier)
    assert told and all("{urn:orders}Buying in the words of WS-BPEL 2.0" in each for each in told)


def test_what_is_defined_twice_is_told_and_the_first_one_counts(tmp_path: Path) -> None:
    again = '<message name="orderMessage"><part name="other" type="xsd:int"/></message>'
    found = definitions(tmp_path, sequence(), orders_wsdl=WSDL.replace("<portType ", f"{again}\n<portType "))
    assert [(each.kind, each.name) for each in found.twice] == [("message", "{urn:orders}orderMessage")]
    assert found.messages["{urn:orders}orderMessage"][0].name == "order"


def test_schemas_come_along_with_all_that_they_draw_in(tmp_path: Path) -> None:  # FM-1
    outer = MONTHS.format('<xsd:include schemaLocation="more.xsd"/>')
    text = importing(schema_import("months.xsd"))
    world = flow(tmp_path, text, months_xsd=outer, more_xsd=MONTHS.format("")).xml
    assert world is not None
    assert [(each.location, each.namespace) for each in world.schemas] == [
        ("months.xsd", "urn:months"),
        ("more.xsd", "urn:months"),
        ("orders.wsdl#1", "urn:orders"),
    ]
    assert 'xmlns:o="urn:orders"' in world.schemas[2].text


def test_files_that_name_each_other_in_a_circle_are_read_once(tmp_path: Path) -> None:
    circle = WSDL.replace("<types>", '<import namespace="urn:orders" location="orders.wsdl"/><types>')
    assert not complaints(tmp_path, sequence(), orders_wsdl=circle)


def test_a_wsdl_imports_others_as_seen_from_itself(tmp_path: Path) -> None:
    inner = (
        f'<definitions targetNamespace="urn:all" xmlns="{WSDL_TYPE}">'
        '<import namespace="urn:orders" location="../orders.wsdl"/></definitions>'
    )
    path = put(
        tmp_path,
        importing().replace(IMPORT, f'<import namespace="urn:all" location="deep/all.wsdl" importType="{WSDL_TYPE}"/>'),
    )
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "all.wsdl").write_text(inner)
    assert load_bpel(path).xml is not None


def test_files_may_stand_above_the_process_but_not_far_above(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d"
    near, far = "../../../months.xsd", "../../../../months.xsd"
    for place in (tmp_path, tmp_path / "a"):
        place.mkdir(exist_ok=True)
        (place / "months.xsd").write_text(MONTHS.format(""))
    assert not complaints(deep, importing(schema_import(near)))
    assert "leads too far from the process" in complaints(deep, importing(schema_import(far)))[0]


def test_a_link_on_the_disk_leads_nowhere_else(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d"
    (tmp_path / "months.xsd").write_text(MONTHS.format(""))
    path = put(deep, importing(schema_import("months.xsd")))
    (deep / "months.xsd").symlink_to(tmp_path / "months.xsd")
    told = complaints(deep, path.read_text())
    assert len(told) == 1 and "leads too far from the process" in told[0]


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/months.xsd", "file:///etc/passwd", "/etc/passwd", "//host/m.xsd"]
)
def test_nothing_is_fetched(tmp_path: Path, location: str) -> None:  # FM-8
    told = complaints(tmp_path, importing(schema_import(location)))
    assert len(told) == 1 and "is not fetched" in told[0] and told[0].startswith("buying.bpel:2: ")


def test_a_remote_document_is_not_missed_where_its_namespace_is_known(tmp_path: Path) -> None:
    remote = schema_import("http://www.w3.org/2001/xml.xsd", "http://www.w3.org/XML/1998/namespace")
    again = f'<import namespace="urn:orders" location="http://127.0.0.1:1/orders?wsdl" importType="{WSDL_TYPE}"/>'
    assert not complaints(tmp_path, importing(remote, again))


def test_our_own_ports_need_no_copy_of_their_wsdl(tmp_path: Path) -> None:  # FM-5
    for location in ("", ' location="http://127.0.0.1:1/soap/jobs?wsdl"'):
        ours = f'<import namespace="urn:mendflow:jobs:1"{location} importType="{WSDL_TYPE}"/>'
        found = definitions(tmp_path, importing(ours))
        assert any(name.startswith("{urn:mendflow:jobs:1}") for name in found.port_types)


@pytest.mark.parametrize(
    ("imported", "told"),
    [
        (schema_import("nowhere.xsd"), "there is no file 'nowhere.xsd'"),
        (schema_import("orders.wsdl", "urn:orders"), "SA00013: 'orders.wsdl' is not of the importType"),
        ('<import namespace="urn:x" location="x" importType="urn:x"/>', "SA00013: 'urn:x' is no type of document"),
        (schema_import("bomb.xsd"), "a document type is not taken"),
    ],
)
def test_an_import_that_cannot_be_used_is_refused(tmp_path: Path, imported: str, told: str) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]>' + MONTHS.format("")
    found = complaints(tmp_path, importing(imported), months_xsd=MONTHS.format(""), bomb_xsd=bomb)
    assert len(found) == 1 and told in found[0]


def told_of(path: Path) -> list[str]:
    with pytest.raises(BadFlow) as caught:
        load_bpel(path)
    return [problem.message for problem in caught.value.problems]


def test_of_a_file_that_is_missing_only_that_is_told(tmp_path: Path) -> None:
    path = put(tmp_path, process(f"{HEAD}<sequence>{RECEIVE}{REPLY}</sequence>"))
    (tmp_path / "orders.wsdl").unlink()
    first, *others = told_of(path)
    assert "there is no file 'orders.wsdl'" in first
    assert not [each for each in others if each.startswith("SA00010")]


def test_what_is_imported_without_a_file_is_said_to_be_so(tmp_path: Path) -> None:
    text = process(f"{HEAD}<sequence>{RECEIVE}{REPLY}</sequence>").replace(' location="orders.wsdl"', "")
    undefined = [each for each in told_of(put(tmp_path, text)) if each.startswith("SA00010")]
    assert undefined
    assert all(each.endswith("give the import a location") for each in undefined)
