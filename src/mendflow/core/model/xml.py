"""XML data and messages of a flow, as in WS-BPEL 2.0, WSDL 1.1 and XML Schema.

Names are written as `{namespace}local`, or bare without a namespace. A value with element content is `{"$xml": "<e
...>...</e>"}`, the element as text with all its namespaces declared; a value of a simple type is plain: a number, a
boolean or a text. A message is a dict from its parts to such values. So the data of a case stays JSON, and is
self-describing."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value

XML: Final = "$xml"

Initiate = Literal["yes", "join", "no"]
Pattern = Literal["", "request", "response", "request-response"]


def element_value(text: str) -> dict[str, Value]:
    """The value that an element is."""
    return {XML: text}


def element_text(value: Value) -> str | None:
    """The text of an element's value; None if the value is none."""
    text = value.get(XML) if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else None


class _Named(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class XmlType(_Named, frozen=True):
    """What a variable or a part holds: one of a message, an element, a type, each by its name."""

    message: str = ""
    element: str = ""
    type: str = ""


class PartnerLink(_Named, frozen=True):
    """`mine` is the port type that the flow offers on it, `partner` the one that it calls. `initialize` says whether
    the partner's address is known from the beginning; None leaves that to whoever deploys."""

    type: str
    mine: str = ""
    partner: str = ""
    my_role: str = ""
    partner_role: str = ""
    initialize: bool | None = None


class XmlSource(_Named, frozen=True):
    """Where a copy comes from: a variable (with part and query, or a property of it), a partner link, an expression, a
    literal (its content as XML text, `<literal>` around it), or nothing at all (`empty`)."""

    variable: str = ""
    part: str = ""
    query: Expr | None = None
    property: str = ""
    partner_link: str = ""
    endpoint: Literal["", "myRole", "partnerRole"] = ""
    expression: Expr | None = None
    literal: str | None = None
    empty: bool = False


class XmlTarget(_Named, frozen=True):
    """Where a copy goes to. An `expression` selects a place in a variable: `$order/item[1]`."""

    variable: str = ""
    part: str = ""
    query: Expr | None = None
    property: str = ""
    partner_link: str = ""
    expression: Expr | None = None


class XmlCopy(_Named, frozen=True):
    source: XmlSource
    target: XmlTarget
    keep_name: bool = False
    ignore_missing: bool = False


class Correlation(_Named, frozen=True):
    set: str
    initiate: Initiate = "no"
    pattern: Pattern = ""


class PartCopy(_Named, frozen=True):
    part: str
    variable: str


class XmlMessage(_Named, frozen=True):
    """How an activity takes a message or makes one: into or from a whole `variable`, or part by part. `partner_link`
    and `operation` say which message it is, together with what it is there for: a request, an answer, a fault.
    `creates` marks what begins a case (createInstance)."""

    partner_link: str
    operation: str
    variable: str = ""
    parts: tuple[PartCopy, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    creates: bool = False


class ScopeDeclarations(_Named, frozen=True):
    """What a scope declares of its own besides activities. `first` are the values that variables begin with, in their
    order. A correlation set names its properties."""

    types: dict[str, XmlType] = {}
    first: tuple[XmlCopy, ...] = ()
    partner_links: dict[str, PartnerLink] = {}
    correlation_sets: dict[str, tuple[str, ...]] = {}
    exchanges: tuple[str, ...] = ()


class MessagePart(_Named, frozen=True):
    name: str
    element: str = ""
    type: str = ""


class Operation(_Named, frozen=True):
    """Messages by name; without `output` it is one-way. `faults` maps a fault's local name to its message."""

    name: str
    input: str
    output: str = ""
    faults: dict[str, str] = {}


class PropertyAlias(_Named, frozen=True):
    """Where a property stands in a message's part, in an element or in a type."""

    property: str
    of: XmlType
    part: str = ""
    query: Expr | None = None


class SoapBinding(_Named, frozen=True):
    """How an operation of a port is spoken in SOAP 1.1."""

    action: str = ""
    style: Literal["document", "rpc"] = "document"
    namespace: str = ""  # of the wrapper, in rpc


class ServicePort(_Named, frozen=True):
    """A port of a service: the port type that is spoken there, how, and where."""

    service: str
    name: str
    port_type: str
    address: str = ""
    style: Literal["document", "rpc"] = "document"
    operations: dict[str, SoapBinding] = {}
    binding: str = ""  # what its WSDL calls its binding


class SchemaText(_Named, frozen=True):
    """An XML Schema, as text, by the place that imports name it by."""

    location: str
    namespace: str
    text: str


class XmlDefinitions(_Named, frozen=True):
    """All that a flow in BPEL knows from its WSDL and XSD files. `namespace` is its own. `sheets` are its XSLT style
    sheets, by the address that it calls them by."""

    namespace: str
    messages: dict[str, tuple[MessagePart, ...]] = {}
    port_types: dict[str, dict[str, Operation]] = {}
    properties: dict[str, str] = {}
    aliases: tuple[PropertyAlias, ...] = ()
    ports: tuple[ServicePort, ...] = ()
    schemas: tuple[SchemaText, ...] = ()
    sheets: dict[str, str] = {}
