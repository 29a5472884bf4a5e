"""Service references: where a partner is, as a value that flows copy.

A reference is a `service-ref` around some form of address. We write a WS-Addressing endpoint reference, and read any
version of it, a WSDL service with a SOAP address, or the plain address as text."""

from typing import Final

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_text, element_value
from mendflow.core.soap import ADDRESSING, ADDRESSINGS, SERVICE_REF, WSDL, WSDL_SOAP, qualified_name
from mendflow.core.soap.envelope import element_of, elements_of, xml_text
from mendflow.core.xml import parse
from mendflow.lazy import lazy_pattern

_PARAMETERS: Final = qualified_name(ADDRESSING, "ReferenceParameters")
_HEADER_ELEMENTS: Final = tuple(
    qualified_name(namespace, name)
    for namespace in ADDRESSINGS
    for name in ("ReferenceParameters", "ReferenceProperties")
)
OWN_SCHEME: Final = "mendflow:flows/"
SCHEMES: Final = frozenset({"", WSDL, WSDL_SOAP, *ADDRESSINGS})
"""What a reference may say of how it is to be read."""

_KIND: Final = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_KINDS: Final = frozenset({"http", "https", "mendflow"})
_ADDRESSES: Final = frozenset(qualified_name(namespace, "Address") for namespace in ADDRESSINGS)
_SOAP_ADDRESS: Final = qualified_name(WSDL_SOAP, "address")


def service_reference(address: str) -> dict[str, Value]:
    """The reference of whoever is at this address."""
    return element_value(
        f'<sref:service-ref xmlns:sref="{SERVICE_REF}"><wsa:EndpointReference xmlns:wsa="{ADDRESSING}">'
        f"<wsa:Address>{xml_text(address)}</wsa:Address></wsa:EndpointReference></sref:service-ref>"
    )


def address_of(reference: Value) -> str:
    """The address that a reference gives; empty if it gives none."""
    if isinstance(reference, str):
        return reference.strip()
    text = element_text(reference)
    if text is None:
        return ""
    try:
        root = parse(text, "a service reference")
    except BadFlow:
        return ""
    if root.get("reference-scheme", ADDRESSING) not in SCHEMES:
        return ""  # whoever named a way to read it that we do not have means nothing else by it
    for each in root.iter():
        if each.tag in _ADDRESSES:
            return (each.text or "").strip()
        if each.tag == _SOAP_ADDRESS:
            return each.get("location", "").strip()
    words = (root.text or "").split() if not len(root) else []
    return words[0] if len(words) == 1 else ""


def headers_of(reference: Value) -> list[str]:
    """What a reference wants to be sent along with every message to whom it names: WS-Addressing puts that into headers
    as it is, and others know their conversations by it."""
    text = element_text(reference)
    if text is None:
        return []
    try:
        root = parse(text, "a service reference")
    except BadFlow:
        return []
    found: list[str] = []
    for each in root.iter(*_HEADER_ELEMENTS):
        for parameter in elements_of(each):
            if str(each.tag) == _PARAMETERS:
                parameter.set(qualified_name(ADDRESSING, "IsReferenceParameter"), "true")
            found.append(element_of(parameter))
    return found


def is_callable(address: str) -> bool:
    """Whether an address is of a kind that partners are called at."""
    kind = _KIND.match(address)
    return bool(address) and (kind is None or kind.group(1).lower() in _KINDS)


def own_reference(flow: str, link: str) -> dict[str, Value]:
    """The reference of a flow's own role on a link: whoever is called by it is this very flow, wherever its server is
    reached. Inside it is a name; it becomes an address where it leaves."""
    return service_reference(f"{OWN_SCHEME}{flow}/{link}")


def own_link(address: str) -> tuple[str, str]:
    """The flow and the link that an address of our own means."""
    flow, _, link = address.removeprefix(OWN_SCHEME).partition("/")
    return flow, link


def with_public_references(envelope: bytes, url: str) -> bytes:
    """An envelope that leaves: references to our own flows say where this server is reached."""
    return envelope.replace(f">{OWN_SCHEME}".encode(), f">{xml_text(url.rstrip('/'))}/soap/flows/".encode())
