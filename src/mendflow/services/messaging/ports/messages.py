"""What the messages of all ports have in common: refusals, and how addresses and elements are read and made.

A port exchanges elements, as text: one comes in, and one goes out or a `PortFault`. It does not matter to the port
whether they come in an envelope over the network or directly from a case."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from mendflow.core.model.errors import BadFlow, RequestError, StoreUnavailable, TemporarilyUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_value
from mendflow.core.soap import SERVICE_REF
from mendflow.core.xml.parser import BadXml
from mendflow.core.xml.reader import read_shared
from mendflow.core.xml.tree import Element, Text
from mendflow.core.xml.writer import NEVER, write

PART: Final = "parameters"
FAULT_PART: Final = "fault"
REFUSED: Final = "refused"
SHOWN_CHARS: Final = 200
ADDRESS: Final = "Address"
LOCATION: Final = "location"


class PortFault(Exception):
    """A fault that a port answers with: its name, its message, and the element that comes with it. A `partner` fault is
    not the port's own: it is passed on unchanged."""

    def __init__(self, name: str, text: str, element: str = "", *, partner: Fault | None = None) -> None:
        super().__init__(text)
        self.name = name
        self.text = text
        self.element = element
        self.partner = partner


def refusal(namespace: str, problems: Iterable[object]) -> PortFault:
    """The request cannot be carried out, for these reasons."""
    texts = [str(each) for each in problems]
    children = [text_element(namespace, "problem", each) for each in texts]
    return PortFault(f"{{{namespace}}}{REFUSED}", "; ".join(texts), write(new_element(namespace, REFUSED, *children)))


def refusal_of(namespace: str, error: RequestError) -> PortFault:
    problems = error.problems if isinstance(error, BadFlow) and error.problems else [error.message]
    return refusal(namespace, problems)


@contextmanager
def raising_port_faults(namespace: str) -> Iterator[None]:
    """Turn errors of the caller into faults of the port; other exceptions are not changed."""
    try:
        yield
    except (StoreUnavailable, TemporarilyUnavailable):
        raise
    except RequestError as error:
        raise refusal_of(namespace, error) from error


def request(namespace: str, text: str, operations: Iterable[str]) -> Element:
    """The element of a request, which is named after its operation."""
    try:
        element = read_shared(text)
    except BadXml as error:
        raise refusal_of(namespace, error) from error
    if element.ns != namespace or element.local not in operations:
        known = ", ".join(operations)
        asked = f"{{{element.ns}}}{element.local}"[:SHOWN_CHARS]
        raise refusal(
            namespace, [f"{asked} is nothing that can be asked of this port; there are {known} of {namespace}"]
        )
    return element


def child(element: Element, local: str) -> Element | None:
    """The first child by this name, in the element's own namespace."""
    return next((each for each in element.elements() if each.local == local and each.ns == element.ns), None)


def children(element: Element, local: str) -> list[Element]:
    return [each for each in element.elements() if each.local == local and each.ns == element.ns]


def text_in(element: Element, local: str) -> str:
    """The text of a child, stripped; empty if there is none."""
    found = child(element, local)
    return found.string().strip() if found is not None else ""


def address_in(element: Element) -> str:
    """The address that an element holds: that of an endpoint reference anywhere in it, the text of a `service-ref`, or
    its own text. A reference comes before the text: it is what the process assigned."""
    inner = [node for node in element.descendants() if isinstance(node, Element)]
    for node in inner:
        found = node.string() if node.local == ADDRESS else node.get(LOCATION) or ""
        if found.strip():
            return found.strip()
    for node in inner:
        if (node.ns, node.local) == (SERVICE_REF, "service-ref") and node.string().strip():
            return node.string().strip()
    return "".join(each.value for each in element.children if type(each) is Text).strip()


def new_element(namespace: str, local: str, *inner: Element) -> Element:
    element = Element(namespace, local, "", {"": namespace})
    for each in inner:
        element.append(each)
    return element


def text_element(namespace: str, local: str, text: str, **attributes: str) -> Element:
    element = Element(namespace, local)
    for name, value in attributes.items():
        element.set("", name, value)
    element.set_text(xml_safe(text))
    return element


def xml_safe(text: str) -> str:
    """A text without characters that XML does not allow: logs of jobs may have any."""
    return NEVER.sub("\ufffd", text)


def as_message(text: str) -> dict[str, Value]:
    """An element as the message that a case gets."""
    return {PART: element_value(text)}


def invoke_fault(fault: PortFault, message: str) -> Fault:
    """A port's fault as the fault of an invoke. `message` is the name of the fault's message in the WSDL."""
    if fault.partner is not None:
        return fault.partner
    data: Value = {"type": {"message": message}, "value": {FAULT_PART: element_value(fault.element)}}
    return Fault(name=fault.name, category=Category.FLOW, message=fault.text, data=data)
