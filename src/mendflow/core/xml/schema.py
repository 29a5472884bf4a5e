"""Validates values against the XML Schemas of their flow, without fetching or opening anything.

The schemas are texts that come with the flow. Before libxml2 sees them, every import and include is rewritten to refer
to one of these texts by number, or to nothing. A top schema imports all of them, and has an element for each type, so
that a value of a type is validated like an element. It is compiled once per set of schemas."""

from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from functools import lru_cache
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.values import Value
from mendflow.core.model.xml import SchemaText, XmlDefinitions, XmlType, element_text
from mendflow.core.xml.declarations import (
    BUILT_IN,
    CACHED_MAX,
    XSD,
    Declarations,
    SchemaDocument,
    builtin_of,
    builtin_of_content,
    declarations,
    declares_element,
    declares_type,
    locate_schema,
    name_of,
)
from mendflow.core.xml.library import ParsedElement, etree
from mendflow.core.xml.parser import parse
from mendflow.core.xml.resolver import parse_with_resolver

__all__ = [
    "builtin_of",
    "builtin_of_content",
    "declares_element",
    "declares_type",
    "schema_problems",
    "violations",
]

CHECKED: Final = "urn:mendflow:checked"
GLOBAL: Final = tuple(
    f"{{{XSD}}}{name}" for name in ("element", "attribute", "simpleType", "complexType", "group", "attributeGroup")
)
OCCURS_MAX: Final = 100_000
VIOLATIONS_MAX: Final = 20


class _Compiled(msgspec.Struct, frozen=True):
    """`elements` has the element that stands for each type. Without a `schema` there are `problems`."""

    schema: "etree.XMLSchema | None"
    elements: dict[str, str]
    problems: tuple[str, ...]


def violations(world: XmlDefinitions, value: Value, type: XmlType) -> list[str]:
    """What is wrong with a value of a variable or a part, in sentences; nothing if it is as its schema wants it."""
    if type.message:
        return _message_violations(world, value, type.message)
    compiled = _compiled(world.schemas)
    if compiled.schema is None:
        return list(compiled.problems)
    try:
        node = _element(value, type, compiled)
    except BadFlow as refusal:
        return [problem.message for problem in refusal.problems]
    return [_readable(one, type, compiled) for one in _validate(compiled.schema, node)]


def schema_problems(world: XmlDefinitions) -> list[str]:
    """Why the schemas of a flow cannot be used; nothing if they can."""
    return list(_compiled(world.schemas).problems)


def _message_violations(world: XmlDefinitions, value: Value, message: str) -> list[str]:
    if message not in world.messages:
        return [f"no message {message} is known"]
    if not isinstance(value, dict):
        return [f"a message {message} has parts; this is a plain value"]
    found = []
    for part in world.messages[message]:
        if part.name not in value:
            found.append(f"the part {part.name} is missing")
            continue
        inner = violations(world, value[part.name], XmlType(element=part.element, type=part.type))
        found += [f"part {part.name}: {one}" for one in inner]
    return found


def _element(value: Value, type: XmlType, compiled: _Compiled) -> ParsedElement:
    """The value as an element that the schema on top knows. Raises BadFlow, as the door does, if it is none."""
    text = element_text(value)
    if type.element:
        if text is None:
            raise BadFlow(problems=[f"an element {type.element} is wanted; this is a plain value"])
        node = parse(text, "")
        if node.tag != type.element:
            raise BadFlow(problems=[f"an element {type.element} is wanted; this is {node.tag!s}"])
        return node
    if type.type not in compiled.elements:
        raise BadFlow(problems=[f"no type {type.type} is known"])
    node = etree.Element("value") if text is None else parse(text, "")
    if text is None:
        node.text = _lexical(value, type.type)
    node.tag = compiled.elements[type.type]
    return node


def _lexical(value: Value, type: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not type.endswith(("}float", "}double")):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, str | int | float):
        return str(value)
    raise BadFlow(problems=["a text, a number or a boolean is wanted"])


def _validate(schema: "etree.XMLSchema", node: ParsedElement) -> list[str]:
    try:
        if schema.validate(node):
            return []
    except etree.XMLSchemaValidateError:
        return ["it cannot be judged: a pattern or a content model of its schema is too ambiguous"]
    messages = [str(entry.message) for entry in schema.error_log]
    return messages[:VIOLATIONS_MAX] or ["it is not as its schema wants it"]


def _readable(text: str, type: XmlType, compiled: _Compiled) -> str:
    return text.replace(compiled.elements[type.type], f"of type {type.type}") if type.type else text


@lru_cache(maxsize=CACHED_MAX)
def _compiled(schemas: tuple[SchemaText, ...]) -> _Compiled:
    known = declarations(schemas)
    problems = [*known.problems, *_out_of_bounds(known)]
    if problems:
        return _Compiled(None, {}, tuple(problems))
    names = [name_of(XSD, local) for local in ("anyType", *sorted(BUILT_IN - {"NOTATION"}))]
    elements = {name: name_of(CHECKED, f"t{at}") for at, name in enumerate([*names, *known.types])}
    try:
        schema = etree.XMLSchema(_top(known, elements))
    except etree.XMLSchemaParseError as error:
        entries = [f"{_place(entry.filename, known)}{entry.line}: {entry.message}" for entry in error.error_log]
        return _Compiled(None, {}, tuple(entries[:VIOLATIONS_MAX]) or (str(error),))
    return _Compiled(schema, elements, ())


def _out_of_bounds(known: Declarations) -> Iterator[str]:
    for document in known.documents:
        for node in document.root.iter(f"{{{XSD}}}*"):
            for attribute in ("minOccurs", "maxOccurs"):
                many = node.get(attribute) or ""
                if many.strip().isdigit() and len(many) < 20 and int(many) <= OCCURS_MAX:
                    continue
                if many.strip().lstrip("+").isdigit():
                    yield f"{document.source.location}:{node.sourceline}: {attribute} is more than {OCCURS_MAX:,}"


def _place(file: str | None, known: Declarations) -> str:
    number = (file or "").removeprefix("mem:")
    return f"{known.documents[int(number)].source.location}:" if number.isdigit() else ""


def _top(known: Declarations, elements: dict[str, str]) -> ParsedElement:
    """The schema that draws in all others."""
    spaces = _spaces(known)
    numbers = {space: at for at, space in enumerate(spaces)}
    seen: set[tuple[str, str, str]] = set()
    texts = {
        f"mem:{at}": _localize_imports(document, known, numbers, seen) for at, document in enumerate(known.documents)
    }
    for space, number in numbers.items():
        texts[f"mem:all/{number}"] = _merge_documents(space, spaces[space])
    texts["mem:top"] = _driver(numbers, elements)
    return parse_with_resolver(texts, "mem:top")


def _spaces(known: Declarations) -> dict[str, list[int]]:
    """Which documents make up each namespace. What another one adopts or redefines comes in through that one."""
    schemas = tuple(document.source for document in known.documents)
    redefined = {
        locate_schema(document.source, node.get("schemaLocation") or "", schemas)
        for document in known.documents
        for node in document.root.iterchildren(f"{{{XSD}}}redefine")
    }
    spaces: dict[str, list[int]] = {}
    for at, document in enumerate(known.documents):
        space = document.root.get("targetNamespace") or ""
        if space in document.namespaces and document.source not in redefined:
            spaces.setdefault(space, []).append(at)
    return spaces


def _merge_documents(space: str, documents: list[int]) -> bytes:
    """One schema for a namespace that several documents declare: libxml2 imports a namespace once."""
    root = etree.Element(f"{{{XSD}}}schema", nsmap={"xs": XSD})
    if space:
        root.set("targetNamespace", space)
    for at in documents:
        etree.SubElement(root, f"{{{XSD}}}include", schemaLocation=f"mem:{at}")
    return etree.tostring(root)


def _driver(numbers: dict[str, int], elements: dict[str, str]) -> bytes:
    root = etree.Element(f"{{{XSD}}}schema", nsmap={"xs": XSD}, targetNamespace=CHECKED)
    for space, number in numbers.items():
        place = etree.SubElement(root, f"{{{XSD}}}import", schemaLocation=f"mem:all/{number}")
        if space:
            place.set("namespace", space)
    for type, name in elements.items():
        space, _, local = type.rpartition("}")
        scope = {"t": space[1:]} if space else None
        held = etree.SubElement(root, f"{{{XSD}}}element", nsmap=scope, name=name.rpartition("}")[2])
        held.set("type", f"t:{local}" if space else local)
    return etree.tostring(root)


def _localize_imports(
    document: SchemaDocument, known: Declarations, numbers: dict[str, int], seen: set[tuple[str, str, str]]
) -> bytes:
    """The document with imports and includes that stay among ours, and without what was declared before: WSDL documents
    often bring the same types along."""
    root = deepcopy(document.root)
    space = root.get("targetNamespace") or ""
    for node in list(root.iterchildren(*GLOBAL)) if space else ():
        key = (space, str(node.tag), node.get("name") or "")
        if key in seen:
            root.remove(node)
        seen.add(key)
    schemas = tuple(other.source for other in known.documents)
    for node in root.iterchildren(f"{{{XSD}}}import"):
        node.attrib.pop("schemaLocation", None)
        if (number := numbers.get(node.get("namespace") or "")) is not None:
            node.set("schemaLocation", f"mem:all/{number}")
    for node in root.iterchildren(f"{{{XSD}}}include", f"{{{XSD}}}redefine"):
        found = locate_schema(document.source, node.get("schemaLocation") or "", schemas)
        if found is None:
            root.remove(node)
        else:
            node.set("schemaLocation", f"mem:{schemas.index(found)}")
    return etree.tostring(root)
