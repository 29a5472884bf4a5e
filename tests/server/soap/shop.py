"""A small shop in BPEL: a process that buys from a partner, its WSDL, and a partner that can be told what to answer."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from mendflow.core.model.flow import Flow
from mendflow.core.soap.envelope import write_envelope
from mendflow.formats import load

SHOP = "urn:test:shop"

WSDL = """<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:test:shop"
  xmlns:s="urn:test:shop" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
  xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
  xmlns:p="http://docs.oasis-open.org/wsbpel/2.0/plnktype">
  <types><xsd:schema targetNamespace="urn:test:shop" elementFormDefault="qualified">
    <xsd:element name="order" type="xsd:int"/><xsd:element name="receipt" type="xsd:int"/>
    <xsd:element name="reason" type="xsd:string"/><xsd:element name="note" type="xsd:string"/>
  </xsd:schema></types>
  <message name="orderMessage"><part name="body" element="s:order"/></message>
  <message name="receiptMessage"><part name="body" element="s:receipt"/></message>
  <message name="reasonMessage"><part name="why" element="s:reason"/></message>
  <message name="noteMessage"><part name="body" element="s:note"/></message>
  <portType name="Shop">
    <operation name="buy"><input message="s:orderMessage"/><output message="s:receiptMessage"/>
      <fault name="soldOut" message="s:reasonMessage"/></operation>
    <operation name="remark"><input message="s:noteMessage"/></operation>
  </portType>
  <binding name="ShopBinding" type="s:Shop">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="buy"><soap:operation soapAction="urn:buy"/>
      <input><soap:body use="literal"/></input><output><soap:body use="literal"/></output>
      <fault name="soldOut"><soap:fault name="soldOut" use="literal"/></fault></operation>
    <operation name="remark"><soap:operation soapAction="urn:remark"/>
      <input><soap:body use="literal"/></input></operation>
  </binding>
  <service name="ShopService"><port name="ShopPort" binding="s:ShopBinding">
    <soap:address location="PARTNER"/></port></service>
  <p:partnerLinkType name="ShopLink"><p:role name="shop" portType="s:Shop"/></p:partnerLinkType>
</definitions>"""

PROCESS = """<process name="NAME" targetNamespace="urn:test:process" xmlns:s="urn:test:shop"
  xmlns="http://docs.oasis-open.org/wsbpel/2.0/process/executable"
  xmlns:bpel="http://docs.oasis-open.org/wsbpel/2.0/process/executable">
  <import importType="http://schemas.xmlsoap.org/wsdl/" namespace="urn:test:shop" location="shop.wsdl"/>
  <partnerLinks>
    <partnerLink name="customer" partnerLinkType="s:ShopLink" myRole="shop"/>
    <partnerLink name="maker" partnerLinkType="s:ShopLink" partnerRole="shop"/>
  </partnerLinks>
  <variables>
    <variable name="order" messageType="s:orderMessage"/><variable name="receipt" messageType="s:receiptMessage"/>
    <variable name="reason" messageType="s:reasonMessage"/><variable name="note" messageType="s:noteMessage"/>
  </variables>
  BODY
</process>"""

RECEIVE = '<receive partnerLink="customer" operation="buy" variable="order" createInstance="yes"/>'
INVOKE = '<invoke partnerLink="maker" operation="buy" inputVariable="order" outputVariable="receipt"/>'
REPLY = '<reply partnerLink="customer" operation="buy" variable="receipt"/>'
ECHO = """<assign><copy><from>$order.body</from><to variable="receipt" part="body"/></copy></assign>"""


def written(folder: Path, name: str, body: str, partner: str = "http://127.0.0.1:1/") -> Path:
    """The file of a process that does this, with its WSDL beside it."""
    (folder / "shop.wsdl").write_text(WSDL.replace("PARTNER", partner))
    file = folder / f"{name}.bpel"
    file.write_text(PROCESS.replace("NAME", name).replace("BODY", body))
    return file


def process(folder: Path, name: str, body: str, partner: str = "http://127.0.0.1:1/") -> Flow:
    return load(written(folder, name, body, partner))


def order(number: int) -> bytes:
    return write_envelope([f'<order xmlns="{SHOP}">{number}</order>'])


def number_in(body: bytes) -> int:
    found = re.search(rb"<(?:\w+:)?receipt[^>]*>(-?\d+)<", body)
    assert found is not None, body
    return int(found.group(1))


@asynccontextmanager
async def partner(answer: Callable[[bytes], web.Response]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A service that answers so; its address, and all that it was told."""
    heard: list[bytes] = []

    async def hear(request: web.Request) -> web.Response:
        heard.append(await request.read())
        return answer(heard[-1])

    app = web.Application()
    app.router.add_post("/{path:.*}", hear)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/maker", heard
    finally:
        await runner.cleanup()


def told(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, content_type="text/xml")
