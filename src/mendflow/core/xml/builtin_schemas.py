"""Schemas that everybody takes for granted and few bring along: what BPEL itself uses, and the attributes of XML.

Each says no more than what is needed to judge values: a flow that brings a schema of that namespace is judged by its
own."""

from typing import Final

from mendflow.core.model.xml import SchemaText

SERVICE_REF: Final = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
ADDRESSING: Final = "http://www.w3.org/2005/08/addressing"
XML_NAMES: Final = "http://www.w3.org/XML/1998/namespace"

_REFERENCE: Final = f"""\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="{SERVICE_REF}" elementFormDefault="qualified">
  <xs:element name="service-ref">
    <xs:complexType>
      <xs:sequence><xs:any namespace="##other" processContents="lax"/></xs:sequence>
      <xs:attribute name="reference-scheme" type="xs:anyURI"/>
    </xs:complexType>
  </xs:element>
</xs:schema>
"""

_ADDRESS: Final = f"""\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:a="{ADDRESSING}" targetNamespace="{ADDRESSING}"
    elementFormDefault="qualified">
  <xs:complexType name="AttributedURIType">
    <xs:simpleContent>
      <xs:extension base="xs:anyURI"><xs:anyAttribute namespace="##other" processContents="lax"/></xs:extension>
    </xs:simpleContent>
  </xs:complexType>
  <xs:complexType name="Extras">
    <xs:sequence><xs:any processContents="lax" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
    <xs:anyAttribute namespace="##other" processContents="lax"/>
  </xs:complexType>
  <xs:complexType name="EndpointReferenceType">
    <xs:sequence>
      <xs:element name="Address" type="a:AttributedURIType"/>
      <xs:element name="ReferenceParameters" type="a:Extras" minOccurs="0"/>
      <xs:element name="Metadata" type="a:Extras" minOccurs="0"/>
      <xs:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>
    </xs:sequence>
    <xs:anyAttribute namespace="##other" processContents="lax"/>
  </xs:complexType>
  <xs:element name="EndpointReference" type="a:EndpointReferenceType"/>
</xs:schema>
"""

_ATTRIBUTES: Final = f"""\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="{XML_NAMES}">
  <xs:attribute name="lang" type="xs:string"/>
  <xs:attribute name="space" type="xs:NCName"/>
  <xs:attribute name="base" type="xs:anyURI"/>
  <xs:attribute name="id" type="xs:ID"/>
  <xs:attributeGroup name="specialAttrs">
    <xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/><xs:attribute ref="xml:space"/>
  </xs:attributeGroup>
</xs:schema>
"""

BUILTIN_SCHEMAS: Final = (
    SchemaText(location="known:service-ref", namespace=SERVICE_REF, text=_REFERENCE),
    SchemaText(location="known:addressing", namespace=ADDRESSING, text=_ADDRESS),
    SchemaText(location="known:xml", namespace=XML_NAMES, text=_ATTRIBUTES),
)
