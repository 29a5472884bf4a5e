"""Copies: where they come from, where they go to, and what comes along with them."""

from pathlib import Path

import pytest

from mendflow.core.model.flow import Assign
from mendflow.core.model.xml import XmlCopy, XmlSource, XmlTarget
from tests.formats.bpel.documents import HEAD, RECEIVE, REPLY, body, flow, process, sequence, step, xpath

SOURCES = [
    ('<from variable="number"/>', XmlSource(variable="number")),
    (
        '<from variable="order" part="order"><query>o:number</query></from>',
        XmlSource(variable="order", part="order", query=xpath("o:number", ("o", "urn:orders"))),
    ),
    ('<from variable="order" property="o:number"/>', XmlSource(variable="order", property="{urn:orders}number")),
    (
        '<from partnerLink="shop" endpointReference="partnerRole"/>',
        XmlSource(partner_link="shop", endpoint="partnerRole"),
    ),
    ("<from> $number + 1 </from>", XmlSource(expression=xpath("$number + 1"))),
    ("<from><literal>7</literal></from>", XmlSource(literal="<literal>7</literal>")),
    ("<from/>", XmlSource(empty=True)),
]


@pytest.mark.parametrize(("text", "source"), SOURCES)
def test_a_copy_comes_from_wherever_it_may(tmp_path: Path, text: str, source: XmlSource) -> None:  # FM-6
    read = step(tmp_path, f'<assign><copy>{text}<to variable="number"/></copy></assign>')
    assert isinstance(read, Assign) and read.xml == (XmlCopy(source=source, target=XmlTarget(variable="number")),)


PLACES = [
    ('<to variable="order" part="order"/>', XmlTarget(variable="order", part="order")),
    ('<to variable="order" property="o:number"/>', XmlTarget(variable="order", property="{urn:orders}number")),
    ('<to partnerLink="shop"/>', XmlTarget(partner_link="shop")),
    ("<to>$paper/o:number</to>", XmlTarget(expression=xpath("$paper/o:number", ("o", "urn:orders")))),
]


@pytest.mark.parametrize(("text", "place"), PLACES)
def test_a_copy_goes_wherever_it_may(tmp_path: Path, text: str, place: XmlTarget) -> None:  # FM-6
    read = step(tmp_path, f"<assign><copy><from>1</from>{text}</copy></assign>")
    assert isinstance(read, Assign) and read.xml[0].target == place


def test_a_copy_may_keep_names_and_bear_that_nothing_is_there(tmp_path: Path) -> None:  # FM-6
    read = step(
        tmp_path,
        '<assign validate="yes"><copy keepSrcElementName="yes" ignoreMissingFromData="yes">'
        '<from variable="order" part="order"/><to variable="paper"/></copy></assign>',
    )
    assert isinstance(read, Assign) and read.validate
    assert read.xml[0].keep_name and read.xml[0].ignore_missing


def test_a_literal_stands_alone_with_every_prefix_that_it_uses_even_in_texts(tmp_path: Path) -> None:
    read = step(
        tmp_path,
        '<assign><copy><from><literal><o:order xmlns:xsi="urn:xsi" xsi:type="xsd:int"><number xmlns="">1</number>'
        '</o:order></literal></from><to variable="paper"/></copy></assign>',
    )
    assert isinstance(read, Assign)
    assert read.xml[0].source.literal == (
        '<literal xmlns:o="urn:orders" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
        '<o:order xmlns:xsi="urn:xsi" xsi:type="xsd:int"><number>1</number></o:order></literal>'
    )


def test_a_variable_may_begin_with_a_value(tmp_path: Path) -> None:
    declared = body(
        tmp_path,
        process(
            HEAD.replace(
                '<variable name="number" type="xsd:int"/>',
                '<variable name="number" type="xsd:int"><from>10</from></variable>',
            )
            + f"<sequence>{RECEIVE}{REPLY}</sequence>"
        ),
    ).declared
    assert declared is not None
    assert declared.first == (XmlCopy(source=XmlSource(expression=xpath("10")), target=XmlTarget(variable="number")),)


def test_style_sheets_come_along_with_those_that_they_draw_in(tmp_path: Path) -> None:  # FM-6
    space = "http://www.w3.org/1999/XSL/Transform"
    sheet = f'<s:stylesheet version="1.0" xmlns:s="{space}"><s:include href="{{}}"/></s:stylesheet>'
    text = sequence(
        "<assign><copy><from>bpel:doXslTransform('a.xslt', $paper)</from><to variable='paper'/></copy></assign>",
        "<assign><copy><from>bpel:doXslTransform('none.xslt', $paper)</from><to variable='paper'/></copy></assign>",
    )
    world = flow(tmp_path, text, a_xslt=sheet.format("b.xslt"), b_xslt=sheet.format("a.xslt")).xml
    assert world is not None and sorted(world.sheets) == ["a.xslt", "b.xslt"]
