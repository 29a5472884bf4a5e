"""SOAP 1.1 as values: envelopes, their messages, faults, references, and the WSDL of a flow.

Nothing here sends or listens: callers pass bytes and get values, so a server, a client and a flow that calls itself use
the same functions."""

from typing import Final

ENVELOPE: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ADDRESSING: Final = "http://www.w3.org/2005/08/addressing"
ADDRESSINGS: Final = (
    ADDRESSING,
    "http://schemas.xmlsoap.org/ws/2004/08/addressing",
    "http://schemas.xmlsoap.org/ws/2003/03/addressing",
)
"""WS-Addressing, in the versions that people still send; the first is what we send."""

SERVICE_REF: Final = "http://docs.oasis-open.org/wsbpel/2.0/serviceref"
BPEL: Final = "http://docs.oasis-open.org/wsbpel/2.0/process/executable"
XSD: Final = "http://www.w3.org/2001/XMLSchema"
XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
WSDL_SOAP: Final = "http://schemas.xmlsoap.org/wsdl/soap/"
HTTP_TRANSPORT: Final = "http://schemas.xmlsoap.org/soap/http"
CONTENT_TYPE: Final = "text/xml; charset=utf-8"


def split_name(name: str) -> tuple[str, str]:
    """Namespace and local part of `{namespace}local`; a bare name has no namespace."""
    if name.startswith("{"):
        namespace, _, local = name[1:].partition("}")
        return namespace, local
    return "", name


def qualified_name(namespace: str, local: str) -> str:
    return f"{{{namespace}}}{local}" if namespace else local
