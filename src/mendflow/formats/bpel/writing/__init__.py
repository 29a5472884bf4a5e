"""From flows to processes in WS-BPEL 2.0, with the WSDL and schema files that they need.

What is written says the same flow when it is read, or it is not given: whatever BPEL cannot say is refused by name."""

from collections.abc import Iterator
from typing import Final

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, OnMessage, Scope
from mendflow.core.model.problems import BadFlow
from mendflow.core.model.xml import Declared, PartnerLink, XmlWorld
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.vocabulary import BPEL, SCHEMA, WSDL
from mendflow.formats.bpel.writing import scopes, wsdl
from mendflow.formats.bpel.writing.activities import WRITERS
from mendflow.formats.bpel.writing.around import Around, Writer
from mendflow.formats.bpel.writing.native import process_of
from mendflow.formats.bpel.writing.sayable import unsaid
from mendflow.formats.bpel.writing.schemas import files_of
from mendflow.formats.bpel.writing.spaces import Spaces
from mendflow.formats.bpel.writing.tags import Tag, document, tag
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
        **{name: each.text for name, each in beside.items()},
    } | {address: text for address, text in world.sheets.items()}


class Beside(msgspec.Struct, frozen=True):
    namespace: str
    kind: str
    text: str


def _process(world: XmlWorld, body: Scope, beside: dict[str, Beside]) -> str:
    exprs = list(all_of(body, Expr))
    spaces = Spaces(FIXED, exprs, (each for each in all_of(body, str) if each.startswith("<literal")))
    imports = [
        tag("bpel:import", {"namespace": each.namespace, "location": name, "importType": each.kind})
        for name, each in beside.items()
    ]
    writer = Writer(spaces, WRITERS)
    around = Around(suppress_join_failure=body.suppress_join_failure)
    root = scopes.process(writer, body, around, [*imports, *_shipped(world)])
    name = body.label or body.name
    root.attributes = {"name": name, "targetNamespace": world.namespace} | spaces.attributes() | root.attributes
    return document(root)


def _beside(world: XmlWorld, links: list[PartnerLink], folder: str) -> dict[str, Beside]:
    """The files that the process imports."""
    own = [each for each in wsdl.namespaces(world, links) if each not in PORTS.values()]
    found = {
        f"{folder}/definitions{number}.wsdl": Beside(each, WSDL, wsdl.written(world, links, each))
        for number, each in enumerate(own, 1)
    }
    schemas = [schema for schema in world.schemas if schema.namespace not in PORTS.values()]
    for (name, text), schema in zip(files_of(tuple(schemas)).items(), schemas, strict=True):
        found[f"{folder}/{name}"] = Beside(schema.namespace, SCHEMA, text)
    return found


def _shipped(world: XmlWorld) -> list[Tag]:
    """The ports of the product's own, which need no file."""
    known = {name.rpartition("}")[0].removeprefix("{") for name in world.port_types}
    return [tag("bpel:import", {"namespace": each, "importType": WSDL}) for each in PORTS.values() if each in known]


def _declared(flow: Flow) -> Iterator[Declared]:
    for scope in all_of(flow.body, Scope):
        if scope.declared is not None:
            yield scope.declared
    for handler in all_of(flow.body, OnMessage):
        if handler.declared is not None:
            yield handler.declared
