"""Activities without children, except those that exchange messages."""

from typing import Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Compensate,
    Empty,
    Exit,
    Rethrow,
    Throw,
    Validate,
    Wait,
)
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.copies import copy_of
from mendflow.formats.bpel.expressions import expression_of
from mendflow.formats.bpel.names import elements, local_name
from mendflow.formats.bpel.process_reader import ActivityReader, ProcessReader, ScopeContext
from mendflow.formats.bpel.reader import MANY, XmlReader, split_name
from mendflow.formats.bpel.vocabulary import BPEL


def fault_name(reader: XmlReader, at: ParsedElement) -> str:
    """The name of a fault as the engine has it: bare in the standard's own namespace, and in none. Beside the
    standard's faults these are the engine's own, such as partnerUnreachable."""
    full = reader.qname(at, "faultName")
    space, name = split_name(full) if full else ("", "")
    return name if space == BPEL else full


def empty(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {})
    return Empty(name=process.names.of(at))


def exit_(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {})
    return Exit(name=process.names.of(at))


def rethrow(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {})
    return Rethrow(name=process.names.of(at))


def throw(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {}, ("faultName", "faultVariable"))
    process.needed(at, "faultName")
    return Throw(name=process.names.of(at), fault=fault_name(process, at), variable=at.get("faultVariable", "").strip())


def wait(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"for": 1, "until": 1})
    duration, until = alarm_times(process, at, parts)
    return Wait(name=process.names.of(at), duration=duration, until=until)


def alarm_times(
    process: ProcessReader, at: ParsedElement, parts: dict[str, list[ParsedElement]]
) -> tuple[Expr | None, Expr | None]:
    """How long, or until when; one of both, unless it comes again and again."""
    if len(parts["for"]) + len(parts["until"]) > 1:
        process.problem(at, "there is a <for> and an <until>; only one of both makes sense")
    if not parts["for"] and not parts["until"] and not parts.get("repeatEvery"):
        process.problem(at, f"<{local_name(at)}> needs a <for> or an <until>, to say when")
    duration = expression_of(process, parts["for"][0], process.languages) if parts["for"] else None
    until = expression_of(process, parts["until"][0], process.languages) if parts["until"] else None
    return duration, until


def assign(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    """An operation that others have added, and that need not be understood, does nothing."""
    parts = process.parts_of(at, {"copy": MANY, "extensionAssignOperation": MANY}, ("validate",))
    if not parts["copy"] and not parts["extensionAssignOperation"]:
        process.problem(at, "an <assign> has at least one <copy>")
    return Assign(
        name=process.names.of(at),
        xml=tuple(copy_of(process, each) for each in parts["copy"]),
        validate=process.truth(at, "validate"),
    )


def validate(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {}, ("variables",))
    return Validate(name=process.names.of(at), variables=tuple(process.needed(at, "variables").split()))


def compensate(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    process.parts_of(at, {})
    return Compensate(name=process.names.of(at))


def compensate_scope(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    process.parts_of(at, {}, ("target",))
    target = process.needed(at, "target")
    return Compensate(name=process.names.of(at), scope=context.compensable.get(target, target))


def extension(process: ProcessReader, at: ParsedElement, _context: ScopeContext) -> Activity:
    """An activity of somebody else's that need not be understood does nothing. It has its links nevertheless."""
    inside = list(elements(at))
    if len(inside) != 1:
        process.problem(at, f"an <extensionActivity> holds one element of another namespace; here it has {len(inside)}")
    return Empty(name=process.names.of(at))


READERS: Final[dict[str, ActivityReader]] = {
    "empty": empty,
    "exit": exit_,
    "rethrow": rethrow,
    "throw": throw,
    "wait": wait,
    "assign": assign,
    "validate": validate,
    "compensate": compensate,
    "compensateScope": compensate_scope,
    "extensionActivity": extension,
}
