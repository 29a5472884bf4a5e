"""Rules about imports and WSDL documents."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import ParsedElement
from mendflow.core.xml.schema import declares_element, declares_type, schema_problems
from mendflow.formats.bpel.analysis.process_view import ProcessView, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import elements, local_name, namespace, own_elements, qualified_name
from mendflow.formats.bpel.reader import SourceDocument, XmlReader, split_name, text_of
from mendflow.formats.bpel.vocabulary import PARTNER_LINKS, PROPERTIES, SCHEMA, WSDL

ALIAS_TARGETS: Final = ("messageType", "type", "element")

ContentKey = tuple[object, ...]


@rule(1)
def no_operation_begins_with_its_answer(view: ProcessView) -> Iterator[Violation]:
    """The operations of port types that a process uses have an input, and it comes first."""
    used = {port for link in view.all("partnerLink") for port in _port_types(view, link)}
    for document, at in _definitions(view, WSDL, "portType"):
        if qualified_name(document.root.get("targetNamespace", ""), word(at, "name")) not in used:
            continue
        for operation in own_elements(at, "operation"):
            order = [local_name(each) for each in own_elements(operation, "input", "output")]
            if order and order[0] != "input":
                kind = "solicit-response" if len(order) > 1 else "notification"
                text = f"{word(operation, 'name')} is a {kind} operation; only those that begin with an input are known"
                yield Violation(operation, text, document.file)


@rule(2)
def operations_are_not_overloaded(view: ProcessView) -> Iterator[Violation]:
    """The operations of a port type have names of their own."""
    for document, at in _definitions(view, WSDL, "portType"):
        seen: set[str] = set()
        for operation in own_elements(at, "operation"):
            name = word(operation, "name")
            if name in seen:
                yield Violation(
                    operation, f"the port type has another operation {name}; they need two names", document.file
                )
            seen.add(name)


@rule(10)
def what_is_used_is_imported(view: ProcessView) -> Iterator[Violation]:
    """The types, elements, messages, partner link types and properties that a process names are imported."""
    for at in view.every():
        for kind, name in _names_used_at(view, at):
            if name and not _is_known(view, kind, name):
                advice = view.definitions.advice_on(name)
                yield Violation(at, f"nothing that the process imports defines the {kind} {name}{advice}")


@rule(10)
def schemas_can_be_used(view: ProcessView) -> Iterator[Violation]:
    """All that schemas build on is there."""
    for problem in schema_problems(view.world):
        if any(f"{{{space}}}" in problem for space in view.definitions.left_out):
            continue  # what is not read may define it
        yield Violation(view.root, f"the schemas that the process imports cannot be used: {problem}")


@rule(11)
def imports_are_of_their_namespace(view: ProcessView) -> Iterator[Violation]:
    """What is imported for a namespace is of that namespace."""
    for at, given in _imports(view):
        wanted = at.get("namespace")
        if wanted is not None and given is not None and wanted.strip() != given:
            yield Violation(at, f"{word(at, 'location')} is of the namespace {given or '(none)'}, not of {wanted}")


@rule(12)
def imports_without_a_namespace_have_none(view: ProcessView) -> Iterator[Violation]:
    """What is imported for no namespace is of none."""
    for at, given in _imports(view):
        if at.get("namespace") is None and given:
            yield Violation(at, f"{word(at, 'location')} is of the namespace {given}; the import has to say so")


@rule(14)
def definitions_do_not_conflict(view: ProcessView) -> Iterator[Violation]:
    """Nothing is defined in two ways."""
    first: dict[tuple[str, str, str], ContentKey] = {}
    for document in view.definitions.documents:
        for kind, space, at in _components(document):
            key, shape = (kind, space, word(at, "name")), _content_key(at)
            if first.setdefault(key, shape) != shape:
                text = f"the {kind} {qualified_name(space, word(at, 'name'))} is defined in another way elsewhere"
                yield Violation(at, f"{text}; import only one of the two", document.file)


@rule(19)
def properties_have_one_type(view: ProcessView) -> Iterator[Violation]:
    """A property has a type or an element."""
    for document, at in _definitions(view, PROPERTIES, "property"):
        if (at.get("type") is None) == (at.get("element") is None):
            yield Violation(at, "a property has a type or an element, and not both", document.file)


@rule(20)
def aliases_are_of_one_thing(view: ProcessView) -> Iterator[Violation]:
    """A property alias is for a message's part, for a type, or for an element."""
    for document, at in _definitions(view, PROPERTIES, "propertyAlias"):
        given = {name for name in (*ALIAS_TARGETS, "part") if at.get(name) is not None}
        if given not in ({"messageType", "part"}, {"type"}, {"element"}):
            yield Violation(at, "a propertyAlias has a messageType and a part, or a type, or an element", document.file)
        message = XmlReader(document.file, []).qname(at, "messageType")
        parts = view.definitions.messages.get(message)
        if parts is not None and word(at, "part") and word(at, "part") not in {part.name for part in parts}:
            yield Violation(at, f"the message {message} has no part {word(at, 'part')}", document.file)


@rule(22)
def aliases_are_not_ambiguous(view: ProcessView) -> Iterator[Violation]:
    """A property has one alias for a message type, a type or an element."""
    seen: set[tuple[str, XmlType]] = set()
    for document, at in _definitions(view, PROPERTIES, "propertyAlias"):
        reader = XmlReader(document.file, [])
        message, type, element = (reader.qname(at, name) for name in ALIAS_TARGETS)
        key = (reader.qname(at, "propertyName"), XmlType(message=message, element=element, type=type))
        if key in seen:
            text = f"the property {key[0]} has another alias for {message or element or type}; leave only one"
            yield Violation(at, text, document.file)
        seen.add(key)


def _port_types(view: ProcessView, link: ParsedElement) -> Iterator[str]:
    return iter(view.definitions.partner_link_types.get(view.qname(link, "partnerLinkType"), {}).values())


def _definitions(view: ProcessView, space: str, name: str) -> Iterator[tuple[SourceDocument, ParsedElement]]:
    """What WSDL documents define of a kind."""
    for document in view.definitions.documents:
        for at in document.root.iterchildren(f"{{{space}}}{name}"):
            yield document, at


def _names_used_at(view: ProcessView, at: ParsedElement) -> Iterator[tuple[str, str]]:
    """What an element of a process names of the things that documents define."""
    if local_name(at) in ("variable", "onEvent"):
        yield from _of_message(view, view.qname(at, "messageType"))
        yield "element", view.qname(at, "element")
        yield "type", view.qname(at, "type")
    elif local_name(at) == "catch":
        yield from _of_message(view, view.qname(at, "faultMessageType"))
        yield "element", view.qname(at, "faultElement")
    elif local_name(at) == "partnerLink":
        yield "partner link type", view.qname(at, "partnerLinkType")
    elif local_name(at) in ("from", "to"):
        yield "property", view.qname(at, "property")
    elif local_name(at) == "correlationSet":
        yield from (("property", view.resolved(at, name)) for name in word(at, "properties").split())


def _of_message(view: ProcessView, message: str) -> Iterator[tuple[str, str]]:
    """A message, and what its parts are made of."""
    yield "message", message
    for part in view.definitions.messages.get(message, ()):
        yield "element", part.element
        yield "type", part.type


def _is_known(view: ProcessView, kind: str, name: str) -> bool:
    """Whether it is defined, or would be in a document that is not read."""
    given = view.definitions
    if split_name(name)[0] in given.left_out:
        return True
    if kind == "element":
        return declares_element(view.world, name)
    if kind == "type":
        return declares_type(view.world, name)
    if kind == "partner link type":
        return name in given.partner_link_types
    return name in (given.messages if kind == "message" else given.properties)


def _imports(view: ProcessView) -> Iterator[tuple[ParsedElement, str | None]]:
    """Each import of the process, and the namespace of what is there; None if nobody can say."""
    for at in own_elements(view.root, "import"):
        found = view.imported(at)
        given = found.get("targetNamespace", "") if found is not None else None
        readable = found is not None and namespace(found) == word(at, "importType")
        yield at, given if readable else None


def _components(document: SourceDocument) -> Iterator[tuple[str, str, ParsedElement]]:
    """What a document defines, with its namespace: of WSDL and BPEL, and of the schemas in it."""
    space = document.root.get("targetNamespace", "")
    if namespace(document.root) == SCHEMA:
        yield from _of_schema(document.root)
        return
    kinds = ((WSDL, "message"), (WSDL, "portType"), (PARTNER_LINKS, "partnerLinkType"), (PROPERTIES, "property"))
    for owner, kind in kinds:
        for at in document.root.iterchildren(f"{{{owner}}}{kind}"):
            yield kind, space, at
    for schema in document.root.iter(f"{{{SCHEMA}}}schema"):
        yield from _of_schema(schema)


def _content_key(at: ParsedElement) -> ContentKey:
    """What an element says, however it is laid out. Documentation says nothing."""
    inside = tuple(
        _content_key(each) for each in elements(at) if local_name(each) not in ("documentation", "annotation")
    )
    attributes = tuple(sorted((name, _expanded_name(at, value)) for name, value in at.items()))
    return (at.tag, attributes, text_of(at).strip(), inside)


def _expanded_name(at: ParsedElement, value: str) -> str:
    """A name with a prefix by its namespace: two documents may call that otherwise."""
    prefix, colon, rest = value.partition(":")
    return qualified_name(str(at.nsmap[prefix]), rest) if colon and prefix in at.nsmap else value


def _of_schema(schema: ParsedElement) -> Iterator[tuple[str, str, ParsedElement]]:
    space = schema.get("targetNamespace", "")
    for at in own_elements(schema, "element", "simpleType", "complexType"):
        kind = "element" if local_name(at) == "element" else "type"
        if space:  # what has no namespace takes that of whoever includes it
            yield kind, space, at
