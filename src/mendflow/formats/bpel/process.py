"""Reads a process and everything that it imports as one flow."""

import re
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.xml import ScopeDeclarations
from mendflow.core.xml import ParsedElement, parse
from mendflow.formats.bpel import basic_activities, message_activities, scopes, structured_activities
from mendflow.formats.bpel.declarations import DECLARING, declared_in
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.expressions import Languages, language_of, read_xpath_2_as_1
from mendflow.formats.bpel.imports import definitions_of
from mendflow.formats.bpel.names import local_name, namespace, own_elements
from mendflow.formats.bpel.process_reader import ActivityReader, ProcessReader, ScopeContext
from mendflow.formats.bpel.reader import MANY, SourceDocument, XmlReader, abbreviate
from mendflow.formats.bpel.source_files import BOUNDS, SourceFiles
from mendflow.formats.bpel.vocabulary import ABSTRACT, BPEL, BPEL_1_1, XPATH_1_0
from mendflow.formats.names import NAME_CHARS_MAX

READERS: Final[dict[str, ActivityReader]] = {
    **basic_activities.READERS,
    **message_activities.READERS,
    **structured_activities.READERS,
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
NOT_NAME_CHARS: Final = re.compile(r"[^A-Za-z0-9_-]+")


class ParsedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process as it is written, and what its imports define. `problems` are those found on the way."""

    document: SourceDocument
    definitions: Definitions
    places: SourceFiles
    problems: list[Problem]


def parse_process(data: bytes | str, path: Path, file: str, *, xpath2_as_1: bool = False) -> ParsedProcess:
    """Read the process that stands at this path, and all files that it imports. Raises BadFlow if it is no process."""
    root = parse(data, file, BOUNDS)
    if xpath2_as_1:
        read_xpath_2_as_1(root)
    problems: list[Problem] = []
    document = SourceDocument(root=root, file=file, location=path.name)
    reader = XmlReader(file, problems)
    if reason := _why_no_process(root):
        raise BadFlow(problems=[Problem(file=file, line=root.sourceline or 0, message=reason)])
    places = SourceFiles(path.parent, problems)
    return ParsedProcess(
        document=document, definitions=definitions_of(reader, document, places), places=places, problems=problems
    )


def _why_no_process(root: ParsedElement) -> str:
    """Why a document is no process that can be run; empty if it is one."""
    if local_name(root) != "process":
        return f"this is no BPEL process: its first element is <{local_name(root)}>, not <process>"
    if namespace(root) == BPEL:
        return ""
    if namespace(root) == ABSTRACT:
        return f"this process is abstract, so it cannot be run: make it executable, with the namespace {BPEL}"
    if namespace(root) == BPEL_1_1:
        return f"this is BPEL 1.1; WS-BPEL 2.0 is understood here, whose namespace is {BPEL}"
    return f"{abbreviate(namespace(root))} is not the namespace of BPEL processes that can be run, which is {BPEL}"


def flow_of(given: ParsedProcess) -> Flow:
    """The flow that a process means. What is wrong with it is added to its problems."""
    root = given.document.root
    process = ProcessReader(given.document, given.problems, given.definitions, given.places, READERS)
    process.only(root, ATTRIBUTES)
    process.parts(root, {"extensions": 1, "import": MANY} | DECLARING | scopes.HANDLERS | scopes.ONE_ACTIVITY)
    process.languages = _languages(process, root)
    _extensions(process, root)
    declared = declared_in(process, root)
    context = ScopeContext(suppress_join_failure=process.truth(root, "suppressJoinFailure"))
    inside = scopes.inner_context(process, root, context, declared)
    name = process.needed(root, "name")
    body = scopes.scope_of(process, root, inside, declared, process.names.of(root))
    body = msgspec.structs.replace(
        body,
        label=name if body.name != name else "",
        declared=declared or ScopeDeclarations(),
        suppress_join_failure=context.suppress_join_failure,
    )
    world = given.definitions.world(process.needed(root, "targetNamespace"), process.sheets)
    return Flow(name=flow_name(name), body=body, xml=world)


def flow_name(name: str) -> FlowName:
    """What a flow of this name can be called here."""
    plain = NOT_NAME_CHARS.sub("-", name).strip("-")[:NAME_CHARS_MAX] or "process"
    return FlowName(plain if not plain[0].isdigit() else f"process-{plain}")


def _languages(process: ProcessReader, root: ParsedElement) -> Languages:
    found = {}
    for attribute in ("expressionLanguage", "queryLanguage"):
        language_of(process, root, attribute, XPATH_1_0)
        found[attribute] = root.get(attribute, "").strip() or XPATH_1_0
    return Languages(found["expressionLanguage"], found["queryLanguage"])


def _extensions(process: ProcessReader, root: ParsedElement) -> None:
    """Refuse what must be understood and is not. There is no extension that is."""
    for group in own_elements(root, "extensions"):
        for each in process.parts(group, {"extension": MANY})["extension"]:
            space = process.needed(each, "namespace")
            if process.truth(each, "mustUnderstand"):
                process.problem(
                    each,
                    f"SA00009: {abbreviate(space)} must be understood, and nobody here knows that extension; take it"
                    " out",
                )
