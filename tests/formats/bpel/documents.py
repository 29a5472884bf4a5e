"""Small processes and their WSDL, as tests want them: an order is taken, a shop is asked."""

from pathlib import Path

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Flow, Scope, Sequence
from mendflow.formats.bpel import Definitions, load_bpel, parse_bpel
from mendflow.formats.bpel.process import flow_of

ORDERS = "urn:orders"
BPEL = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
WSDL_TYPE = "http://schemas.xmlsoap.org/wsdl/"
SCHEMA_TYPE = "http://www.w3.org/2001/XMLSchema"
XPATH_TYPE = "urn:oasis:names:tc:wsbpel:2.0:sublang:xpath1.0"

WSDL = """<?xml version="1.0"?>
<definitions name="Orders" targetNamespace="urn:orders" xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:o="urn:orders"
    xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
    xmlns:plnk="http://docs.oasis-open.org/wsbpel/2.0/plnktype"
    xmlns:vprop="http://docs.oasis-open.org/wsbpel/2.0/varprop">
  <types>
    <xsd:schema targetNamespace="urn:orders" elementFormDefault="qualified">
      <xsd:element name="order"><xsd:complexType><xsd:sequence>
        <xsd:element name="number" type="xsd:int"/></xsd:sequence></xsd:complexType></xsd:element>
      <xsd:element name="receipt" type="xsd:string"/>
      <xsd:element name="trouble" type="xsd:string"/>
      <xsd:element name="number" type="xsd:int"/>
    </xsd:schema>
  </types>
  <message name="orderMessage"><part name="order" element="o:order"/></message>
  <message name="receiptMessage"><part name="receipt" element="o:receipt"/></message>
  <message name="troubleMessage"><part name="trouble" element="o:trouble"/></message>
  <message name="countMessage"><part name="count" type="xsd:int"/><part name="of" type="xsd:string"/></message>
  <portType name="Shop">
    <operation name="buy">
      <input message="o:orderMessage"/>
      <output message="o:receiptMessage"/>
      <fault name="soldOut" message="o:troubleMessage"/>
    </operation>
    <operation name="tell"><input message="o:orderMessage"/></operation>
    <operation name="count"><input message="o:countMessage"/><output message="o:countMessage"/></operation>
  </portType>
  <binding name="ShopSoap" type="o:Shop">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="buy"><soap:operation soapAction="urn:buy"/>
      <input><soap:body use="literal"/></input><output><soap:body use="literal"/></output></operation>
    <operation name="tell"><soap:operation/><input><soap:body use="literal"/></input></operation>
    <operation name="count"><soap:operation style="rpc"/>
      <input><soap:body use="literal" namespace="urn:rpc"/></input>
      <output><soap:body use="literal" namespace="urn:rpc"/></output></operation>
  </binding>
  <service name="ShopService">
    <port name="ShopPort" binding="o:ShopSoap"><soap:address location="http://127.0.0.1:1/shop"/></port>
  </service>
  <plnk:partnerLinkType name="Buying"><plnk:role name="shop" portType="o:Shop"/></plnk:partnerLinkType>
  <vprop:property name="number" type="xsd:int"/>
  <vprop:propertyAlias propertyName="o:number" messageType="o:orderMessage" part="order">
    <vprop:query>o:number</vprop:query>
  </vprop:propertyAlias>
</definitions>
"""

IMPORT = f'<import namespace="{ORDERS}" location="orders.wsdl" importType="{WSDL_TYPE}"/>'
LINKS = """<partnerLinks>
  <partnerLink name="buyer" partnerLinkType="o:Buying" myRole="shop"/>
  <partnerLink name="shop" partnerLinkType="o:Buying" partnerRole="shop"/>
</partnerLinks>"""
VARIABLES = """<variables>
  <variable name="order" messageType="o:orderMessage"/>
  <variable name="receipt" messageType="o:receiptMessage"/>
  <variable name="trouble" messageType="o:troubleMessage"/>
  <variable name="number" type="xsd:int"/>
  <variable name="paper" element="o:order"/>
</variables>"""
SETS = '<correlationSets><correlationSet name="numbers" properties="o:number"/></correlationSets>'
RECEIVE = '<receive name="take" partnerLink="buyer" operation="buy" variable="order" createInstance="yes"/>'
REPLY = '<reply name="answer" partnerLink="buyer" operation="buy" variable="receipt"/>'
HEAD = IMPORT + LINKS + VARIABLES + SETS


def xpath(text: str, *namespaces: tuple[str, str]) -> Expr:
    return Expr(text, "xpath", namespaces)


def process(content: str, attributes: str = "") -> str:
    """A process with this content."""
    return (
        f'<process name="buying" targetNamespace="urn:buying" xmlns="{BPEL}" xmlns:bpel="{BPEL}" xmlns:o="{ORDERS}" '
        f'xmlns:xsd="{SCHEMA_TYPE}" {attributes}>\n{content}\n</process>'
    )


def sequence(*steps: str, before: str = "") -> str:
    """A process that takes an order, takes these steps, and answers."""
    return process(f"{HEAD}{before}<sequence>{RECEIVE}{''.join(steps)}{REPLY}</sequence>")


def put(folder: Path, text: str, **files: str) -> Path:
    """The process in a folder, with its WSDL and with other files: `months_xsd` is months.xsd."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"orders_wsdl": WSDL, **files}.items():
        (folder / name.replace("_", ".")).write_text(content)
    path = folder / "buying.bpel"
    path.write_text(text)
    return path


def flow(folder: Path, text: str, **files: str) -> Flow:
    return load_bpel(put(folder, text, **files))


def body(folder: Path, text: str, **files: str) -> Scope:
    """The process itself, which is a scope."""
    found = flow(folder, text, **files).body
    assert isinstance(found, Scope)
    return found


def step(folder: Path, text: str, before: str = "") -> Activity:
    """The activity that a step is read as."""
    inside = body(folder, sequence(text, before=before)).body
    assert isinstance(inside, Sequence)
    return inside.body[1]


def definitions(folder: Path, text: str, **files: str) -> Definitions:
    path = put(folder, text, **files)
    return parse_bpel(path.read_bytes(), path).definitions


def complaints(folder: Path, text: str, **files: str) -> list[str]:
    """All that the reader itself finds wrong, one sentence each, in the order of lines."""
    path = put(folder, text, **files)
    try:
        given = parse_bpel(path.read_bytes(), path)
        flow_of(given)
        problems = sorted(given.problems, key=lambda each: each.line)
    except BadFlow as error:
        problems = error.problems
    return [str(problem).replace(f"{folder}/", "") for problem in problems]
