"""Writes flows as WS-BPEL 2.0 processes, with the WSDL and schema files that they need.

Reading the result gives the same flow; whatever BPEL cannot express is refused by name."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, OnMessage, Scope
from mendflow.core.model.xml import PartnerLink, ScopeDeclarations, XmlDefinitions
from mendflow.formats.bpel.vocabulary import BPEL, SCHEMA, WSDL
from mendflow.formats.bpel.writing import scopes, wsdl
from mendflow.formats.bpel.writing.activities import WRITERS
from mendflow.formats.bpel.writing.activity_writer import InheritedAttributes, ProcessWriter
from mendflow.formats.bpel.writing.bundled_ports import bundled_namespaces
from mendflow.formats.bpel.writing.capabilities import not_expressible
from mendflow.formats.bpel.writing.namespaces import NamespacePrefixes
from mendflow.formats.bpel.writing.native import process_of
from mendflow.formats.bpel.writing.schemas import schema_files
from mendflow.formats.bpel.writing.tags import document, new_tag
from mendflow.formats.bpel.writing.traversal import all_of

__all__ = ["write_bpel"]

FIXED: Final = {"bpel": BPEL}


def write_bpel(flow: Flow, folder: str = "") -> dict[str, str]:
    """The texts of a process's files by their names; the process itself is NAME.bpel, and comes first. What it imports
    goes into `folder`, NAME.files if none is said. Raises BadFlow with all that BPEL cannot say."""
    if flow.xml is None and not flow.exlet:
        flow = process_of(flow)
    if problems := list(not_expressible(flow)):
        raise BadFlow(problems=problems)
    world, body = flow.xml, flow.body
    assert world is not None and isinstance(body, Scope), "what is no process was refused before"
    links = [link for declared in _declarations(flow) for link in declared.partner_links.values()]
    beside = _imported_files(world, links, folder or f"{flow.name}.files")
    return {
        f"{flow.name}.bpel": _process(world, body, beside),
        **{each.location: each.text for each in beside if each.location},
    } | {address: text for address, text in world.sheets.items()}


class ImportedFile(msgspec.Struct, frozen=True):
    """What the process imports. Without a location it is known, and needs no file."""

    namespace: str
    kind: str
    location: str = ""
    text: str = ""


def _process(world: XmlDefinitions, body: Scope, beside: list[ImportedFile]) -> str:
    exprs = list(all_of(body, Expr))
    spaces = NamespacePrefixes(FIXED, exprs, (each for each in all_of(body, str) if each.startswith("<literal")))
    imports = [
        new_tag("bpel:import", {"namespace": each.namespace, "location": each.location, "importType": each.kind})
        for each in beside
    ]
    writer = ProcessWriter(spaces, WRITERS)
    inherited = InheritedAttributes(suppress_join_failure=body.suppress_join_failure)
    root = scopes.process(writer, body, inherited, imports)
    name = body.label or body.name
    root.attributes = {"name": name, "targetNamespace": world.namespace} | spaces.attributes() | root.attributes
    return document(root)


def _imported_files(world: XmlDefinitions, links: list[PartnerLink], folder: str) -> list[ImportedFile]:
    """All that the process imports, in the order in which it is to be read."""
    known, number, found = bundled_namespaces(world, links), count(1), []
    for space in wsdl.namespaces(world, links):
        if space in known:
            found.append(ImportedFile(space, WSDL))
        else:
            name = f"{folder}/definitions{next(number)}.wsdl"
            found.append(ImportedFile(space, WSDL, name, wsdl.wsdl_text(world, links, space)))
    schemas = [schema for schema in world.schemas if schema.namespace not in known]
    for (name, text), schema in zip(schema_files(tuple(schemas)).items(), schemas, strict=True):
        found.append(ImportedFile(schema.namespace, SCHEMA, f"{folder}/{name}", text))
    return found


def _declarations(flow: Flow) -> Iterator[ScopeDeclarations]:
    for scope in all_of(flow.body, Scope):
        if scope.declared is not None:
            yield scope.declared
    for handler in all_of(flow.body, OnMessage):
        if handler.declared is not None:
            yield handler.declared
