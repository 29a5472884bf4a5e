"""The namespaces and words of WS-BPEL 2.0, WSDL 1.1 and related standards."""

from typing import Final

BPEL: Final = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
ABSTRACT: Final = "http://docs.oasis-open.org/wsbpel/2.0/process/abstract"
BPEL_1_1: Final = "http://schemas.xmlsoap.org/ws/2003/03/business-process/"
PARTNER_LINKS: Final = "http://docs.oasis-open.org/wsbpel/2.0/plnktype"
PROPERTIES: Final = "http://docs.oasis-open.org/wsbpel/2.0/varprop"
SERVICE_REF: Final = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
SOAP: Final = "http://schemas.xmlsoap.org/wsdl/soap/"
SCHEMA: Final = "http://www.w3.org/2001/XMLSchema"
XML: Final = "http://www.w3.org/XML/1998/namespace"
ADDRESSING: Final = "http://www.w3.org/2005/08/addressing"

XPATH_1_0: Final = "urn:oasis:names:tc:wsbpel:2.0:sublang:xpath1.0"
XPATH_2_0: Final = "urn:oasis:names:tc:wsbpel:2.0:sublang:xpath2.0"
CEL_LANGUAGE: Final = "urn:mendflow:cel"

WELL_KNOWN: Final = frozenset(
    {
        PARTNER_LINKS,
        PROPERTIES,
        SERVICE_REF,
        WSDL,
        SOAP,
        SCHEMA,
        XML,
        ADDRESSING,
        "http://schemas.xmlsoap.org/soap/envelope/",
        "http://schemas.xmlsoap.org/soap/encoding/",
        "http://schemas.xmlsoap.org/ws/2004/08/addressing",
    }
)
"""The meaning of these is built in, so a document that describes them need not be read."""
