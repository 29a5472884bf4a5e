"""A process and everything that it imports, as one flow."""

import re
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.problems import BadFlow, Problem
from mendflow.core.model.xml import Declared
from mendflow.core.xml import Node, parse
from mendflow.formats.bpel import basic, messaging, scopes, structured
from mendflow.formats.bpel.around import Around, Process, Reader
from mendflow.formats.bpel.declarations import DECLARING, declared_in
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.expressions import Languages, language_of
from mendflow.formats.bpel.imports import definitions_of
from mendflow.formats.bpel.names import local, namespace, own
from mendflow.formats.bpel.places import BOUNDS, Places
from mendflow.formats.bpel.reading import MANY, Document, Reading, shown
from mendflow.formats.bpel.vocabulary import ABSTRACT, BPEL, BPEL_1_1, XPATH_1_0
from mendflow.formats.names import NAME_CHARS_MAX

READERS: Final[dict[str, Reader]] = {
    **basic.READERS,
    **messaging.READERS,
    **structured.READERS,
    **scopes.READERS,
}
ATTRIBUTES: Final = (
    "name",
    "targetNamespace",
    "queryLanguage",
    "expressionLanguage",
    "suppressJoinFailure",
    "exitOnStandardFault",
)
UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A process as it is written, and what its imports define. `problems` are those found on the way."""

    document: Document
    definitions: Definitions
    places: Places
    problems: list[Problem]


def parsed(data: bytes | str, path: Path, file: str) -> Parsed:
    """Read the process that stands at this path, and all files that it imports. Raises BadFlow if it is no process."""
    root = parse(data, file, BOUNDS)
    problems: list[Problem] = []
    document = Document(root=root, file=file, location=path.name)
    reading = Reading(file, problems)
    if reason := _no_process(root):
        raise BadFlow(problems=[Problem(file=file, line=root.sourceline or 0, message=reason)])
    places = Places(path.parent, problems)
    return Parsed(
        document=document, definitions=definitions_of(reading, document, places), places=places, problems=problems
    )


def _no_process(root: Node) -> str:
    """Why a document is no process that can be run; empty if it is one."""
    if local(root) != "process":
        return f"this is no BPEL process: its first element is <{local(root)}>, not <process>"
    if namespace(root) == BPEL:
        return ""
    if namespace(root) == ABSTRACT:
        return f"this process is abstract, so it cannot be run: make it executable, with the namespace {BPEL}"
    if namespace(root) == BPEL_1_1:
        return f"this is BPEL 1.1; WS-BPEL 2.0 is understood here, whose namespace is {BPEL}"
    return f"{shown(namespace(root))} is not the namespace of BPEL processes that can be run, which is {BPEL}"


def flow_of(given: Parsed) -> Flow:
    """The flow that a process means. What is wrong with it is added to its problems."""
    root = given.document.root
    process = Process(given.document, given.problems, given.definitions, given.places, READERS)
    process.only(root, ATTRIBUTES)
    process.parts(root, {"extensions": 1, "import": MANY} | DECLARING | scopes.HANDLERS | scopes.ONE_ACTIVITY)
    process.languages = _languages(process, root)
    _extensions(process, root)
    declared = declared_in(process, root)
    around = Around(suppress_join_failure=process.truth(root, "suppressJoinFailure"))
    inside = scopes.within(process, root, around, declared)
    name = process.needed(root, "name")
    body = scopes.scope_of(process, root, inside, declared, process.names.of(root))
    body = msgspec.structs.replace(
        body,
        label=name if body.name != name else "",
        declared=declared or Declared(),
        suppress_join_failure=around.suppress_join_failure,
    )
    world = given.definitions.world(process.needed(root, "targetNamespace"), process.sheets)
    return Flow(name=flow_name(name), body=body, xml=world)


def flow_name(name: str) -> FlowName:
    """What a flow of this name can be called here."""
    plain = UNFIT.sub("-", name).strip("-")[:NAME_CHARS_MAX] or "process"
    return FlowName(plain if not plain[0].isdigit() else f"process-{plain}")


def _languages(process: Process, root: Node) -> Languages:
    found = {}
    for attribute in ("expressionLanguage", "queryLanguage"):
        language_of(process, root, attribute, XPATH_1_0)
        found[attribute] = root.get(attribute, "").strip() or XPATH_1_0
    return Languages(found["expressionLanguage"], found["queryLanguage"])


def _extensions(process: Process, root: Node) -> None:
    """Refuse what must be understood and is not. There is no extension that is."""
    for group in own(root, "extensions"):
        for each in process.parts(group, {"extension": MANY})["extension"]:
            space = process.needed(each, "namespace")
            if process.truth(each, "mustUnderstand"):
                process.problem(
                    each,
                    f"SA00009: {shown(space)} must be understood, and nobody here knows that extension; take it out",
                )
