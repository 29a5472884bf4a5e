"""What BPEL cannot express of a flow."""

import posixpath
from collections.abc import Callable, Iterator
from typing import Any, Final

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import (
    ActivityNode,
    Assign,
    Call,
    Choose,
    Flow,
    ForEach,
    Invoke,
    JobActivity,
    OnMessage,
    Parallel,
    Pick,
    PrimitiveStep,
    Receive,
    Reply,
    Scope,
    Stage,
    Throw,
    UserTask,
    Wait,
)
from mendflow.formats.bpel.writing.wsdl import misordered_port_types

WITHOUT_COUNTERPART: Final[dict[type[ActivityNode], str]] = {
    JobActivity: "a job",
    UserTask: "a user task",
    Stage: "a stage",
    Call: "a call of another flow",
    PrimitiveStep: "a repair",
}


def not_expressible(flow: Flow) -> Iterator[str]:
    """A sentence for each."""
    if flow.xml is None:
        yield f"{flow.name}: it knows no partners and no messages, so that nobody could begin it as a process"
    elif not isinstance(flow.body, Scope):
        yield f"{flow.name}: a process is a scope as a whole"
    for address in flow.xml.sheets if flow.xml is not None else ():
        if posixpath.isabs(address) or posixpath.normpath(address).startswith(".."):
            yield f"{flow.name}: the style sheet {address} would stand outside the folder of the process"
    for port_type in misordered_port_types(flow.xml) if flow.xml is not None else ():
        yield f"{flow.name}: {port_type} has ports in services whose order would be lost; put them into one service"
    if flow.inputs or flow.outputs:
        yield f"{flow.name}: BPEL has no inputs and outputs; what a process takes and gives are messages"
    for each in walk_activities(flow):
        name = each.label or each.name
        if type(each) in WITHOUT_COUNTERPART:
            yield f"{name}: BPEL has no word for {WITHOUT_COUNTERPART[type(each)]}"
        if each.when is not None:
            yield f"{name}: BPEL has no `when` on activities; put it into a choice"
        if each.join == "all":
            yield f"{name}: its links are joined by `all`; write a join condition that names them"
        if check := CHECKS.get(type(each)):
            yield from (f"{name}: {reason}" for reason in check(each))


def _assign(at: Assign) -> Iterator[str]:
    if at.copies:
        yield "it writes variables that have no type in XML"


def _throw(at: Throw) -> Iterator[str]:
    if at.data is not None or at.message:
        yield "it throws data or a text that is no variable's"


def _wait(at: Wait) -> Iterator[str]:
    if isinstance(at.until, int):
        yield "it waits for an instant in milliseconds; write it as a date"


def _parallel(at: Parallel) -> Iterator[str]:
    if at.on_fault == "finish":
        yield "in BPEL the first fault ends the other branches"


def _choose(at: Choose) -> Iterator[str]:
    if at.many:
        yield "in BPEL only the first branch that holds is taken"


def _for_each(at: ForEach) -> Iterator[str]:
    if at.items is not None or at.first is None:
        yield "BPEL counts from a number to a number, and has no loop over a list"
    if at.collect is not None or at.max_parallel or at.on_fault == "finish":
        yield "BPEL has no `collect`, no `max-parallel` and no `on-failure: finish` for loops"


def _message(at: Receive | Reply | OnMessage) -> Iterator[str]:
    if at.xml is None:
        yield f"the channel {at.channel} is no partner link's"


def _invoke(at: Invoke) -> Iterator[str]:
    if at.sends is None:
        yield f"{at.partner} is no partner link"


def _pick(at: Pick) -> Iterator[str]:
    for each in at.messages:
        yield from _message(each)
    if not at.messages:
        yield "it waits for time alone; BPEL's pick has a message"


def _scope(at: Scope) -> Iterator[str]:
    if at.variables:
        yield "its variables have no type in XML"
    for each in at.messages:
        yield from _message(each)
        if not isinstance(each.body, Scope):
            yield f"the handler of {each.channel} is no scope"
    if any(isinstance(each.until, int) for each in at.alarms):
        yield "an alarm is set to an instant in milliseconds; write it as a date"


CHECKS: Final[dict[type[ActivityNode], Callable[[Any], Iterator[str]]]] = {
    Assign: _assign,
    Throw: _throw,
    Wait: _wait,
    Parallel: _parallel,
    Choose: _choose,
    ForEach: _for_each,
    Receive: _message,
    Reply: _message,
    Invoke: _invoke,
    Pick: _pick,
    Scope: _scope,
}
