"""Parses and writes envelopes.

Input has passed the bounded XML parser. A header that must be understood, and is not ours, ends the parsing with the
fault of the specification. An element of the body is extracted as text with all namespaces in scope, so that names in
its content keep their meaning."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from mendflow.core.model.errors import BadFlow, RequestError
from mendflow.core.soap import ADDRESSINGS, ENVELOPE, qualified_name
from mendflow.core.xml import ParsedElement, XmlBounds, parse
from mendflow.core.xml.library import etree
from mendflow.core.xml.writer import escape_text

SOAP_12: Final = "http://www.w3.org/2003/05/soap-envelope"
NEXT_ACTOR: Final = "http://schemas.xmlsoap.org/soap/actor/next"
OURS: Final = "urn:mendflow:soap:1"
MESSAGE_ID: Final = "MessageID"
"""WS-Addressing wants more headers around its own, and not every partner takes them; so what we send has ours."""
_TRUE: Final = ("1", "true")
MESSAGE_BYTES_MAX: Final = 1 << 20
MESSAGE_ELEMENTS_MAX: Final = 20_000
_SOAP_BOUNDS: Final = XmlBounds(bytes=MESSAGE_BYTES_MAX, elements=MESSAGE_ELEMENTS_MAX, instructions=False)
"""Messages are read where others wait, and again whenever a case looks at them. SOAP has no instructions."""


class BadEnvelope(RequestError):
    """What was sent is no envelope that we take; `faultcode` is how SOAP says it."""

    code: ClassVar[str] = "bad-envelope"

    def __init__(self, message: str, faultcode: str = "Client", **fields: object) -> None:
        super().__init__(message, **fields)
        self.faultcode = faultcode


class SoapFault(NamedTuple):
    """A fault as an envelope tells it. `code` is `{namespace}local`, or bare."""

    code: str
    string: str
    detail: tuple[ParsedElement, ...]


class Envelope(NamedTuple):
    headers: tuple[ParsedElement, ...]
    body: tuple[ParsedElement, ...]

    def addressing(self, name: str) -> str:
        """The text of a header of WS-Addressing: `MessageID`, `Action`, `RelatesTo`; empty if there is none."""
        wanted = {qualified_name(namespace, name) for namespace in ADDRESSINGS}
        found = next((each for each in self.headers if each.tag in wanted), None)
        return (found.text or "").strip() if found is not None else ""

    @property
    def message_id(self) -> str:
        """What whoever sent it calls it, if they call it anything: a repeated message has the same."""
        ours = next((each for each in self.headers if each.tag == qualified_name(OURS, MESSAGE_ID)), None)
        return (ours.text or "").strip() if ours is not None else self.addressing(MESSAGE_ID)

    def fault(self) -> SoapFault | None:
        """The fault that the body tells of, if it does."""
        if not self.body or self.body[0].tag != qualified_name(ENVELOPE, "Fault"):
            return None
        children = {local_of(each): each for each in elements_of(self.body[0])}
        code, string, detail = children.get("faultcode"), children.get("faultstring"), children.get("detail")
        return SoapFault(
            _qname(code) if code is not None else "",
            (string.text or "").strip() if string is not None else "",
            tuple(elements_of(detail)) if detail is not None else (),
        )


def read_envelope(data: bytes | str, source: str = "the message") -> Envelope:
    """The envelope that this is. Raises BadEnvelope."""
    try:
        root = parse(data, source, _SOAP_BOUNDS)
    except BadFlow as refused:
        raise BadEnvelope(refused.message) from refused
    if root.tag != qualified_name(ENVELOPE, "Envelope"):
        if local_of(root) == "Envelope":
            version = "SOAP 1.2" if etree.QName(root).namespace == SOAP_12 else "an envelope of another kind"
            raise BadEnvelope(f"this is {version}; send SOAP 1.1", "VersionMismatch")
        raise BadEnvelope(f"<{local_of(root)}> is no SOAP envelope; send {qualified_name(ENVELOPE, 'Envelope')}")
    names = [local_of(each) for each in elements_of(root)]
    parts = dict(zip(names, elements_of(root), strict=True))
    if names.count("Body") != 1 or names.count("Header") > 1:
        raise BadEnvelope("an envelope has at most one Header, and one Body")
    headers = tuple(elements_of(parts["Header"])) if "Header" in parts else ()
    for header in headers:
        _demand_understood(header)
    return Envelope(headers, tuple(elements_of(parts["Body"])))


def _demand_understood(header: ParsedElement) -> None:
    """We are asked to understand only what is for us, or for whoever comes next."""
    if header.get(qualified_name(ENVELOPE, "mustUnderstand"), "").strip() not in _TRUE:
        return
    if header.get(qualified_name(ENVELOPE, "actor"), "").strip() not in ("", NEXT_ACTOR):
        return
    if etree.QName(header).namespace not in ADDRESSINGS:
        raise BadEnvelope(f"the header {header.tag!s} must be understood, and is not known here", "MustUnderstand")


def write_envelope(body: Sequence[str], headers: Sequence[str] = ()) -> bytes:
    """An envelope around elements, each a text that declares the namespaces it uses."""
    head = f"<soap:Header>{''.join(headers)}</soap:Header>" if headers else ""
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<soap:Envelope xmlns:soap="{ENVELOPE}">'
        f"{head}<soap:Body>{''.join(body)}</soap:Body></soap:Envelope>"
    ).encode()


def write_fault(string: str, detail: Sequence[str] = (), *, code: str = "Server") -> bytes:
    """An envelope with a fault. `code` is one of SOAP's own."""
    details = f"<detail>{''.join(detail)}</detail>" if detail else ""
    content = f"<faultcode>soap:{code}</faultcode><faultstring>{xml_text(string)}</faultstring>{details}"
    return write_envelope([f"<soap:Fault>{content}</soap:Fault>"])


def header(namespace: str, name: str, content: str) -> str:
    return f'<h:{name} xmlns:h="{xml_text(namespace)}">{xml_text(content)}</h:{name}>'


def xml_text(words: str) -> str:
    """Words as they stand in XML, also in an attribute; what XML cannot say at all is a question mark."""
    sayable = "".join(each if _is_xml_char(each) else "?" for each in words)
    return escape_text(sayable).replace('"', "&quot;")


def _is_xml_char(char: str) -> bool:
    point = ord(char)
    return char in "\t\n\r" or 0x20 <= point <= 0xD7FF or 0xE000 <= point <= 0xFFFD or point >= 0x10000


def elements_of(node: ParsedElement) -> Iterator[ParsedElement]:
    """The elements in it; comments and instructions are passed over."""
    return (each for each in node if isinstance(each.tag, str))


def local_of(node: ParsedElement) -> str:
    return etree.QName(node).localname


def element_of(node: ParsedElement) -> str:
    """The element as text that stands alone. The envelope's own namespace does not go with it, unless it is used."""
    alone = etree.tostring(node, encoding="unicode", with_tail=False)
    if ENVELOPE not in node.nsmap.values():
        return alone
    again = etree.fromstring(alone)
    kept = [prefix for prefix, namespace in again.nsmap.items() if prefix and namespace != ENVELOPE]
    etree.cleanup_namespaces(again, keep_ns_prefixes=kept)
    return etree.tostring(again, encoding="unicode")


def _qname(node: ParsedElement) -> str:
    """A name in an element's text, with the namespace that its prefix means there."""
    prefix, colon, local = (node.text or "").strip().rpartition(":")
    namespace = node.nsmap.get(prefix if colon else None, "")
    return qualified_name(namespace or "", local)
