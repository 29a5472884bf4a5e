"""References to services: where a partner is, as a value that flows copy about.

A reference is a `service-ref` around whatever says an address. We write an endpoint reference of WS-Addressing, and
read any version of it, a WSDL service with a SOAP address, or the bare address as text."""

from typing import Final

from mendflow.core.model.problems import BadFlow
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_text, element_value
from mendflow.core.soap import ADDRESSING, ADDRESSINGS, SERVICE_REF, WSDL, WSDL_SOAP, joined
from mendflow.core.soap.envelope import text
from mendflow.core.xml import parse

OWN: Final = "mendflow:flows/"
SCHEMES: Final = frozenset({"", WSDL, WSDL_SOAP, *ADDRESSINGS})
"""What a reference may say of how it is to be read."""

_ADDRESSES: Final = frozenset(joined(namespace, "Address") for namespace in ADDRESSINGS)
_SOAP_ADDRESS: Final = joined(WSDL_SOAP, "address")


def service_reference(address: str) -> dict[str, Value]:
    """The reference of whoever is at this address."""
    return element_value(
        f'<sref:service-ref xmlns:sref="{SERVICE_REF}"><wsa:EndpointReference xmlns:wsa="{ADDRESSING}">'
        f"<wsa:Address>{text(address)}</wsa:Address></wsa:EndpointReference></sref:service-ref>"
    )


def address_of(reference: Value) -> str:
    """The address that a reference gives; empty if it gives none."""
    if isinstance(reference, str):
        return reference.strip()
    said = element_text(reference)
    if said is None:
        return ""
    try:
        root = parse(said, "a service reference")
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


def own_reference(flow: str, link: str) -> dict[str, Value]:
    """The reference of a flow's own role on a link: whoever is called by it is this very flow, wherever its server is
    reached. Inside it is a name; it becomes an address where it leaves."""
    return service_reference(f"{OWN}{flow}/{link}")


def own_link(address: str) -> tuple[str, str]:
    """The flow and the link that an address of our own means."""
    flow, _, link = address.removeprefix(OWN).partition("/")
    return flow, link


def outward(envelope: bytes, url: str) -> bytes:
    """An envelope that leaves: references to our own flows say where this server is reached."""
    return envelope.replace(f">{OWN}".encode(), f">{text(url.rstrip('/'))}/soap/flows/".encode())
