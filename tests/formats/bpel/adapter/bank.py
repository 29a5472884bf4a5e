"""A bank, and a process that calls it in every way that an invoke has."""

from pathlib import Path

from lxml import etree

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import AdaptedProcess, adapt
from mendflow.formats.bpel.vocabulary import BPEL

BANK = "urn:test:bank"
PROXY = "urn:mendflow:proxy:1"
NAMES = {"b": BPEL, "p": PROXY, "s": "http://docs.oasis-open.org/wsbpel/2.0/serviceref", "bank": BANK}

WSDL = """<?xml version="1.0" encoding="UTF-8"?>
<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:bank="urn:test:bank" targetNamespace="urn:test:bank"
    xmlns:plnk="http://docs.oasis-open.org/wsbpel/2.0/plnktype"
    xmlns:vprop="http://docs.oasis-open.org/wsbpel/2.0/varprop">
  <w:types>
    <xsd:schema targetNamespace="urn:test:bank" elementFormDefault="qualified">
      <xsd:complexType name="Loan">
        <xsd:sequence><xsd:element name="number" type="xsd:int"/><xsd:element name="sum" type="xsd:int"/></xsd:sequence>
      </xsd:complexType>
      <xsd:element name="loan" type="bank:Loan"/>
      <xsd:element name="offer" type="xsd:int"/>
      <xsd:element name="broke" type="xsd:string"/>
      <xsd:element name="shut" type="xsd:string"/>
    </xsd:schema>
  </w:types>
  <w:message name="ask"><w:part name="loan" element="bank:loan"/></w:message>
  <w:message name="answer"><w:part name="offer" element="bank:offer"/></w:message>
  <w:message name="transfer"><w:part name="from" type="xsd:string"/><w:part name="loan" type="bank:Loan"/></w:message>
  <w:message name="transferred"><w:part name="left" type="xsd:int"/></w:message>
  <w:message name="broke"><w:part name="why" element="bank:broke"/></w:message>
  <w:message name="shut"><w:part name="why" element="bank:shut"/></w:message>
  <w:message name="ping"/>
  <w:portType name="Bank">
    <w:operation name="ask">
      <w:input message="bank:ask"/><w:output message="bank:answer"/>
      <w:fault name="Broke" message="bank:broke"/><w:fault name="Shut" message="bank:shut"/>
    </w:operation>
    <w:operation name="transfer"><w:input message="bank:transfer"/><w:output message="bank:transferred"/></w:operation>
    <w:operation name="tell"><w:input message="bank:ask"/></w:operation>
    <w:operation name="ping"><w:input message="bank:ping"/></w:operation>
  </w:portType>
  <w:binding name="BankSoap" type="bank:Bank">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <w:operation name="ask">
      <soap:operation soapAction="urn:ask"/>
      <w:input><soap:body use="literal"/></w:input><w:output><soap:body use="literal"/></w:output>
      <w:fault name="Broke"><soap:fault name="Broke" use="literal"/></w:fault>
      <w:fault name="Shut"><soap:fault name="Shut" use="literal"/></w:fault>
    </w:operation>
    <w:operation name="transfer">
      <soap:operation soapAction="urn:transfer" style="rpc"/>
      <w:input><soap:body use="literal" namespace="urn:test:rpc"/></w:input>
      <w:output><soap:body use="literal" namespace="urn:test:rpc"/></w:output>
    </w:operation>
    <w:operation name="tell">
      <soap:operation soapAction="urn:tell"/><w:input><soap:body use="literal"/></w:input>
    </w:operation>
    <w:operation name="ping">
      <soap:operation soapAction="urn:ping"/><w:input><soap:body use="literal"/></w:input>
    </w:operation>
  </w:binding>
  <w:service name="BankService">
    <w:port name="BankPort" binding="bank:BankSoap"><soap:address location="http://127.0.0.1:9/bank"/></w:port>
  </w:service>
  <plnk:partnerLinkType name="BankLink"><plnk:role name="bank" portType="bank:Bank"/></plnk:partnerLinkType>
  <vprop:property name="number" type="xsd:int"/>
  <vprop:propertyAlias propertyName="bank:number" messageType="bank:ask" part="loan">
    <vprop:query>QUERY</vprop:query>
  </vprop:propertyAlias>
  <vprop:propertyAlias propertyName="bank:number" messageType="bank:answer" part="offer"/>
</w:definitions>
"""

PROCESS = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Asks a bank. -->
<process name="loan" targetNamespace="urn:test:loan" xmlns="http://docs.oasis-open.org/wsbpel/2.0/process/executable"
    xmlns:bank="urn:test:bank" xmlns:xsd="http://www.w3.org/2001/XMLSchema" MORE>
  <import namespace="urn:test:bank" location="bank.wsdl" importType="http://schemas.xmlsoap.org/wsdl/"/>
  <partnerLinks>
    <partnerLink name="client" partnerLinkType="bank:BankLink" myRole="bank"/>
    <partnerLink name="bank" partnerLinkType="bank:BankLink" partnerRole="bank"/>
  </partnerLinks>
  <variables>
    <variable name="asked" messageType="bank:ask"/>
    <variable name="answered" messageType="bank:answer"/>
    <variable name="loan" element="bank:loan"/>
    <variable name="offer" element="bank:offer"/>
    <variable name="name" type="xsd:string"/>
    <variable name="left" type="xsd:int"/>
    <variable name="plain" type="bank:Loan"/>
    VARIABLES
  </variables>
  <correlationSets><correlationSet name="set" properties="bank:number"/></correlationSets>
  <sequence>
    <!-- The one who asks. -->
    <receive partnerLink="client" operation="ask" variable="asked" createInstance="yes">
      <correlations><correlation set="set" initiate="yes"/></correlations>
    </receive>
    BODY
    <reply partnerLink="client" operation="ask" variable="answered"/>
  </sequence>
</process>
"""

ASK = (
    '<invoke name="ask" partnerLink="bank" portType="bank:Bank" operation="ask" inputVariable="asked" '
    'outputVariable="answered"/>'
)


def written(folder: Path, body: str = ASK, more: str = "", variables: str = "", query: str = "bank:number") -> Path:
    """The process with this body, and the bank beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bank.wsdl").write_text(WSDL.replace("QUERY", query))
    process = PROCESS.replace("MORE", more).replace("VARIABLES", variables).replace("BODY", body)
    (folder / "loan.bpel").write_text(process)
    return folder / "loan.bpel"


def save(adapted: AdaptedProcess) -> Path:
    """Write the files of an adapted process. It is still a process that can be read."""
    for path, data in adapted.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    out = next(iter(adapted.files))
    load_bpel(out)
    return out


def woven(
    folder: Path, body: str = ASK, more: str = "", variables: str = "", query: str = "bank:number"
) -> ParsedElement:
    """The process with this body after it was adapted."""
    path = written(folder, body, more, variables, query)
    return etree.parse(save(adapt(path, folder / "adapted.bpel"))).getroot()


def found(at: ParsedElement, path: str) -> list[ParsedElement]:
    return [each for each in at.xpath(path, namespaces=NAMES) if isinstance(each, etree._Element)]


def one(at: ParsedElement, path: str) -> ParsedElement:
    (only,) = found(at, path)
    return only


def texts(at: ParsedElement, path: str) -> list[str]:
    return [str(each) for each in at.xpath(path, namespaces=NAMES)]
