"""The declarations in a flow's schemas, by name: elements, types, and the built-in base of simple types.

Schemas are read as documents here, not compiled: a name is found even if the schema has an error elsewhere. A document
without a namespace belongs to the namespaces of those that include it, as in XML Schema."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.xml import SchemaText, XmlDefinitions, XmlType
from mendflow.core.xml.builtin_schemas import BUILTIN_SCHEMAS
from mendflow.core.xml.library import ParsedElement
from mendflow.core.xml.parser import parse
from mendflow.core.xml.resolver import resolve_path

XSD: Final = "http://www.w3.org/2001/XMLSchema"
ANY_SIMPLE: Final = "anySimpleType"
BUILT_IN: Final = frozenset(
    {
        "anySimpleType",
        "string",
        "normalizedString",
        "token",
        "language",
        "Name",
        "NCName",
        "NMTOKEN",
        "NMTOKENS",
        "ID",
        "IDREF",
        "IDREFS",
        "ENTITY",
        "ENTITIES",
        "QName",
        "NOTATION",
        "anyURI",
        "boolean",
        "hexBinary",
        "base64Binary",
        "decimal",
        "integer",
        "nonPositiveInteger",
        "negativeInteger",
        "nonNegativeInteger",
        "positiveInteger",
        "long",
        "int",
        "short",
        "byte",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
        "float",
        "double",
        "duration",
        "dateTime",
        "date",
        "time",
        "gYear",
        "gYearMonth",
        "gMonth",
        "gMonthDay",
        "gDay",
    }
)
DERIVATIONS_MAX: Final = 100
CACHED_MAX: Final = 64


class SchemaDocument(msgspec.Struct, frozen=True):
    """A schema that was read, and the namespaces that its declarations belong to."""

    source: SchemaText
    root: ParsedElement
    namespaces: tuple[str, ...]


class Declarations(msgspec.Struct, frozen=True):
    """`problems` are schemas that cannot be read at all."""

    documents: tuple[SchemaDocument, ...]
    elements: dict[str, ParsedElement]
    types: dict[str, ParsedElement]
    problems: tuple[str, ...]


def name_of(namespace: str, local: str) -> str:
    return f"{{{namespace}}}{local}" if namespace else local


def declarations(schemas: tuple[SchemaText, ...]) -> Declarations:
    """Found once for each set of schemas; nobody changes what is returned."""
    return _declarations(schemas)


def declares_element(world: XmlDefinitions, name: str) -> bool:
    return name in declarations(world.schemas).elements


def declares_type(world: XmlDefinitions, name: str) -> bool:
    return _built_in(name) != "" or name == name_of(XSD, "anyType") or name in declarations(world.schemas).types


def may_stand_for(world: XmlDefinitions, name: str, head: str) -> bool:
    """Whether an element may stand where another is declared: it is that one, or of its substitution group."""
    elements = declarations(world.schemas).elements
    for _ in range(DERIVATIONS_MAX):
        if name == head:
            return True
        node = elements.get(name)
        if node is None or not (named := node.get("substitutionGroup")):
            return False
        name = resolve_name(node, named)
    return False


def builtin_of(world: XmlDefinitions, type: XmlType) -> str | None:
    """The built-in simple type that a simple type comes from, by its local name: `int`, `string`, `dateTime`. Lists and
    unions are `anySimpleType`. None for whatever is no simple type: elements, messages, complex types, unknown ones."""
    return _simple(declarations(world.schemas).types, type.type) if type.type else None


def builtin_of_content(world: XmlDefinitions, element: str) -> str | None:
    """The built-in simple type of what stands in an element whose declared type is a simple one; None otherwise."""
    found = declarations(world.schemas)
    node = found.elements.get(element)
    if node is None:
        return None
    inner = node.find(f"{{{XSD}}}simpleType")
    if inner is not None:
        return _derived(found.types, inner, 0)
    named = node.get("type")
    return _simple(found.types, resolve_name(node, named)) if named else None


def resolve_name(node: ParsedElement, name: str) -> str:
    """A prefixed name as it stands in a schema's attribute."""
    prefix, _, local = name.strip().rpartition(":")
    return name_of(node.nsmap.get(prefix or None) or "", local)


def locate_schema(source: SchemaText, place: str, schemas: tuple[SchemaText, ...]) -> SchemaText | None:
    """The schema that `source` means by a location: seen from its own place, or by that very name."""
    by_place = {resolve_path("", schema.location): schema for schema in schemas}
    for base in (source.location, ""):
        if (found := by_place.get(resolve_path(base, place))) is not None:
            return found
    last = place.rpartition("/")[2]
    same = [schema for schema in schemas if schema.location.rpartition("/")[2] == last]
    return same[0] if len(same) == 1 else None


@lru_cache(maxsize=CACHED_MAX)
def _declarations(schemas: tuple[SchemaText, ...]) -> Declarations:
    documents, problems = _read((*dict.fromkeys(schemas), *_missing(schemas)))
    elements: dict[str, ParsedElement] = {}
    types: dict[str, ParsedElement] = {}
    for document in documents:
        for child in document.root.iterchildren(f"{{{XSD}}}element", f"{{{XSD}}}simpleType", f"{{{XSD}}}complexType"):
            held = elements if str(child.tag).endswith("}element") else types
            for namespace in document.namespaces:
                held.setdefault(name_of(namespace, child.get("name") or ""), child)
    return Declarations(documents, elements, types, tuple(problems))


def _missing(schemas: tuple[SchemaText, ...]) -> Iterator[SchemaText]:
    given = {schema.namespace for schema in schemas}
    return (schema for schema in BUILTIN_SCHEMAS if schema.namespace not in given)


def _read(schemas: tuple[SchemaText, ...]) -> tuple[tuple[SchemaDocument, ...], list[str]]:
    roots: dict[SchemaText, ParsedElement] = {}
    problems = []
    for schema in schemas:
        try:
            roots[schema] = parse(schema.text, schema.location)
        except BadFlow as refusal:
            problems += [str(problem) for problem in refusal.problems]
    spaces = {schema: [root.get("targetNamespace") or ""] for schema, root in roots.items()}
    for _ in roots:  # an included document may include another one in its turn
        if not _adopt(roots, spaces):
            break
    return tuple(SchemaDocument(schema, root, _own(spaces[schema])) for schema, root in roots.items()), problems


def _own(spaces: list[str]) -> tuple[str, ...]:
    """What others adopted is theirs alone."""
    return tuple(filter(None, spaces)) or ("",)


def _adopt(roots: dict[SchemaText, ParsedElement], spaces: dict[SchemaText, list[str]]) -> bool:
    """Give documents without a namespace those of whoever includes them; whether that was news."""
    news = False
    for schema, root in roots.items():
        for include in root.iterchildren(f"{{{XSD}}}include", f"{{{XSD}}}redefine"):
            inner = locate_schema(schema, include.get("schemaLocation") or "", tuple(roots))
            if inner is None or roots[inner].get("targetNamespace"):
                continue
            new = [space for space in spaces[schema] if space not in spaces[inner]]
            spaces[inner] += new
            news = news or bool(new)
    return news


def _built_in(name: str) -> str:
    local = name.removeprefix(f"{{{XSD}}}")
    return local if local != name and local in BUILT_IN else ""


def _simple(types: dict[str, ParsedElement], name: str, steps: int = 0) -> str | None:
    if local := _built_in(name):
        return local
    node = types.get(name)
    if node is None or steps > DERIVATIONS_MAX or not str(node.tag).endswith("}simpleType"):
        return None
    return _derived(types, node, steps)


def _derived(types: dict[str, ParsedElement], node: ParsedElement, steps: int) -> str | None:
    restriction = node.find(f"{{{XSD}}}restriction")
    if restriction is None:
        return ANY_SIMPLE
    if base := restriction.get("base"):
        return _simple(types, resolve_name(restriction, base), steps + 1)
    inner = restriction.find(f"{{{XSD}}}simpleType")
    return ANY_SIMPLE if inner is None or steps > DERIVATIONS_MAX else _derived(types, inner, steps + 1)
