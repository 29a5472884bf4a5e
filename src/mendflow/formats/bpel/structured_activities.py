"""Activities with children."""

from typing import Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Branch,
    Choose,
    ForEach,
    OnMessage,
    Parallel,
    Pick,
    Sequence,
    Until,
    While,
)
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel import message_activities
from mendflow.formats.bpel.expressions import expression_of
from mendflow.formats.bpel.names import local_name, own_elements
from mendflow.formats.bpel.process_reader import ActivityReader, ProcessReader, ScopeContext
from mendflow.formats.bpel.reader import MANY
from mendflow.formats.bpel.scopes import ONE_ACTIVITY, on_alarm


def sequence(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    process.parts_of(at, ONE_ACTIVITY)
    return Sequence(name=process.names.of(at), body=process.activities(at, context))


def flow(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"links": 1} | ONE_ACTIVITY)
    links = [each for group in parts["links"] for each in process.parts(group, {"link": MANY})["link"]]
    return Parallel(
        name=process.names.of(at),
        branches=process.activities(at, context),
        links=tuple(process.needed(each, "name") for each in links),
    )


def if_(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"condition": 1, "elseif": MANY, "else": 1} | ONE_ACTIVITY)
    branches = [Branch(condition(process, at, parts), process.body(at, context))]
    for each in parts["elseif"]:
        inside = process.parts(each, {"condition": 1} | ONE_ACTIVITY)
        branches.append(Branch(condition(process, each, inside), process.body(each, context)))
    otherwise = [process.body(each, context) for each in parts["else"] if process.parts(each, ONE_ACTIVITY)]
    return Choose(name=process.names.of(at), branches=tuple(branches), otherwise=otherwise[0] if otherwise else None)


def while_(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"condition": 1} | ONE_ACTIVITY)
    return While(name=process.names.of(at), condition=condition(process, at, parts), body=process.body(at, context))


def repeat_until(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"condition": 1} | ONE_ACTIVITY)
    return Until(name=process.names.of(at), condition=condition(process, at, parts), body=process.body(at, context))


def condition(process: ProcessReader, at: ParsedElement, parts: dict[str, list[ParsedElement]]) -> Expr:
    return required_expression(process, at, parts, "condition")


def required_expression(
    process: ProcessReader, at: ParsedElement, parts: dict[str, list[ParsedElement]], name: str
) -> Expr:
    """The expression in a part that must be there."""
    if not parts[name]:
        process.problem(at, f"<{local_name(at)}> needs a <{name}>")
        return Expr("", "xpath")
    return expression_of(process, parts[name][0], process.languages)


def for_each(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    known = {"startCounterValue": 1, "finalCounterValue": 1, "completionCondition": 1} | ONE_ACTIVITY
    parts = process.parts_of(at, known, ("counterName", "parallel"))
    process.needed(at, "parallel")
    if next(own_elements(at, "scope"), None) is None:
        process.problem(at, "the body of a <forEach> must be a <scope>; put its activity into one")
    branches = [
        each for given in parts["completionCondition"] for each in process.parts(given, {"branches": 1})["branches"]
    ]
    succeeded = bool(branches) and process.truth(branches[0], "successfulBranchesOnly")
    wanted = expression_of(process, branches[0], process.languages) if branches else None
    return ForEach(
        name=process.names.of(at),
        body=process.body(at, context),
        first=required_expression(process, at, parts, "startCounterValue"),
        last=required_expression(process, at, parts, "finalCounterValue"),
        variable=process.needed(at, "counterName"),
        parallel=process.truth(at, "parallel"),
        min_success=wanted if succeeded else None,
        min_ended=None if succeeded else wanted,
    )


def pick(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    parts = process.parts_of(at, {"onMessage": MANY, "onAlarm": MANY}, ("createInstance",))
    if not parts["onMessage"]:
        process.problem(at, "a <pick> waits for at least one message: give it an <onMessage>")
    creates = process.truth(at, "createInstance")
    return Pick(
        name=process.names.of(at),
        messages=tuple(_on_message(process, each, context, creates) for each in parts["onMessage"]),
        alarms=tuple(on_alarm(process, each, context) for each in parts["onAlarm"]),
    )


def _on_message(process: ProcessReader, at: ParsedElement, context: ScopeContext, creates: bool) -> OnMessage:
    process.only(at, message_activities.INBOUND_ATTRIBUTES)
    process.parts(at, message_activities.PARTS | ONE_ACTIVITY)
    return message_activities.on_message(process, at, context, process.body(at, context), creates)


READERS: Final[dict[str, ActivityReader]] = {
    "sequence": sequence,
    "flow": flow,
    "if": if_,
    "while": while_,
    "repeatUntil": repeat_until,
    "forEach": for_each,
    "pick": pick,
}
