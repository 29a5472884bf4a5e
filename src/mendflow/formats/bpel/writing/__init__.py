"""From flows to processes in WS-BPEL 2.0, with the WSDL and schema files that they need.

What is written says the same flow when it is read, or it is not given: whatever BPEL cannot say is refused by name."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, OnMessage, Scope
from mendflow.core.model.problems import BadFlow
from mendflow.core.model.xml import Declared, PartnerLink, XmlWorld
from mendflow.formats.bpel.vocabulary import BPEL, SCHEMA, WSDL
from mendflow.formats.bpel.writing import scopes, wsdl
from mendflow.formats.bpel.writing.activities import WRITERS
from mendflow.formats.bpel.writing.around import Around, Writer
from mendflow.formats.bpel.writing.native import process_of
from mendflow.formats.bpel.writing.sayable import unsaid
from mendflow.formats.bpel.writing.schemas import files_of
from mendflow.formats.bpel.writing.shipped import as_shipped
from mendflow.formats.bpel.writing.spaces import Spaces
from mendflow.formats.bpel.writing.tags import document, tag
from mendflow.formats.bpel.writing.walking import all_of

__all__ = ["write_bpel"]

FIXED: Final = {"bpel": BPEL}


def write_bpel(flow: Flow, folder: str = "") -> dict[str, str]:
    """The texts of a process's files by their names; the process itself is NAME.bpel, and comes first. What it imports
    goes into `folder`, NAME.files if none is said. Raises BadFlow with all that BPEL cannot say."""
    if flow.xml is None and not flow.exlet:
        flow = process_of(flow)
    if problems := list(unsaid(flow)):
        raise BadFlow(problems=problems)
    world, body = flow.xml, flow.body
    assert world is not None and isinstance(body, Scope), "what is no process was refused before"
    links = [link for declared in _declared(flow) for link in declared.partner_links.values()]
    beside = _beside(world, links, folder or f"{flow.name}.files")
    return {
        f"{flow.name}.bpel": _process(world, body, beside),
        **{each.location: each.text for each in beside if each.location},
    } | {address: text for address, text in world.sheets.items()}


class Beside(msgspec.Struct, frozen=True):
    """What the process imports. Without a location it is known, and needs no file."""

    namespace: str
    kind: str
    location: str = ""
    text: str = ""


def _process(world: XmlWorld, body: Scope, beside: list[Beside]) -> str:
    exprs = list(all_of(body, Expr))
    spaces = Spaces(FIXED, exprs, (each for each in all_of(body, str) if each.startswith("<literal")))
    imports = [
        tag("bpel:import", {"namespace": each.namespace, "location": each.location, "importType": each.kind})
        for each in beside
    ]
    writer = Writer(spaces, WRITERS)
    around = Around(suppress_join_failure=body.suppress_join_failure)
    root = scopes.process(writer, body, around, imports)
    name = body.label or body.name
    root.attributes = {"name": name, "targetNamespace": world.namespace} | spaces.attributes() | root.attributes
    return document(root)


def _beside(world: XmlWorld, links: list[PartnerLink], folder: str) -> list[Beside]:
    """All that the process imports, in the order in which it is to be read."""
    known, number, found = as_shipped(world, links), count(1), []
    for space in wsdl.namespaces(world, links):
        if space in known:
            found.append(Beside(space, WSDL))
        else:
            name = f"{folder}/definitions{next(number)}.wsdl"
            found.append(Beside(space, WSDL, name, wsdl.written(world, links, space)))
    schemas = [schema for schema in world.schemas if schema.namespace not in known]
    for (name, text), schema in zip(files_of(tuple(schemas)).items(), schemas, strict=True):
        found.append(Beside(schema.namespace, SCHEMA, f"{folder}/{name}", text))
    return found


def _declared(flow: Flow) -> Iterator[Declared]:
    for scope in all_of(flow.body, Scope):
        if scope.declared is not None:
            yield scope.declared
    for handler in all_of(flow.body, OnMessage):
        if handler.declared is not None:
            yield handler.declared
