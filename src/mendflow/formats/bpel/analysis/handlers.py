"""Rules about scopes and their handlers: what may stand in which, and what they may be called."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.engine.faults import JOIN_FAILURE, STANDARD
from mendflow.core.xml import Node
from mendflow.formats.bpel.analysis.rules import Finding, rule
from mendflow.formats.bpel.analysis.sight import FCT_HANDLERS, Sight, is_yes, scopes_around, word
from mendflow.formats.bpel.names import local, needs_scope, own
from mendflow.formats.bpel.reading import split
from mendflow.formats.bpel.vocabulary import BPEL

FAULT_HANDLERS: Final = ("catch", "catchAll")
TYPED: Final = ("faultMessageType", "faultElement")


@rule(3)
def what_ends_the_process_is_not_caught(sight: Sight) -> Iterator[Finding]:
    """Where standard faults end the process, none of them is caught by name. `joinFailure` does not end it."""
    for catch in sight.all("catch"):
        space, name = split(sight.qname(catch, "faultName"))
        scope = next(scopes_around(catch))
        if space == BPEL and name in STANDARD - {JOIN_FAILURE} and _exits(scope):
            yield Finding(catch, f"{name} ends the process here (exitOnStandardFault), so it is never caught")


@rule(6)
def rethrow_stands_in_a_fault_handler(sight: Sight) -> Iterator[Finding]:
    """A <rethrow> stands in a <catch> or <catchAll>."""
    yield from _misplaced(sight, "rethrow", FAULT_HANDLERS, "a fault handler; there is nothing to throw again here")


@rule(7)
def compensate_scope_stands_in_a_handler(sight: Sight) -> Iterator[Finding]:
    """A <compensateScope> stands in a fault, compensation or termination handler."""
    yield from _misplaced(sight, "compensateScope", FCT_HANDLERS, "a fault, compensation or termination handler")


@rule(8)
def compensate_stands_in_a_handler(sight: Sight) -> Iterator[Finding]:
    """A <compensate> stands in a fault, compensation or termination handler."""
    yield from _misplaced(sight, "compensate", FCT_HANDLERS, "a fault, compensation or termination handler")


@rule(77)
def compensated_scopes_are_near(sight: Sight) -> Iterator[Finding]:
    """The target of a <compensateScope> is directly inside the scope whose handler it stands in."""
    for at, target, found in _targets(sight):
        named = sight.by_name.get(target, [])
        if not found and (not named or any(map(_is_scope, named))):
            yield Finding(at, f"{target} is no scope directly inside the one whose handler this is")


@rule(78)
def compensated_is_a_scope(sight: Sight) -> Iterator[Finding]:
    """The target of a <compensateScope> is a scope, or an invoke with handlers."""
    for at, target, found in _targets(sight):
        named = sight.by_name.get(target, [])
        if not found and named and not any(map(_is_scope, named)):
            yield Finding(at, f"{target} is a <{local(named[0])}>; only scopes and invokes with handlers can be undone")


@rule(79)
def scopes_of_handlers_are_not_undone(sight: Sight) -> Iterator[Finding]:
    """The scope that a fault, compensation or termination handler consists of has no compensation handler."""
    for handler in sight.all(*FCT_HANDLERS):
        for scope in own(handler, "scope"):
            for undoing in own(scope, "compensationHandler"):
                yield Finding(undoing, f"a scope that is a whole <{local(handler)}> is never undone; take this out")


@rule(80)
def fault_handlers_handle_something(sight: Sight) -> Iterator[Finding]:
    """<faultHandlers> has a <catch> or a <catchAll>."""
    yield from _hollow(sight, "faultHandlers", FAULT_HANDLERS)


@rule(81)
def fault_variables_have_a_type(sight: Sight) -> Iterator[Finding]:
    """A fault variable has a message type or an element, not both, and these come with a variable only."""
    for catch in sight.all("catch"):
        types = [name for name in TYPED if catch.get(name) is not None]
        if len(types) > 1:
            yield Finding(catch, "a catch has a faultMessageType or a faultElement, and not both")
        elif catch.get("faultVariable") is not None and not types:
            yield Finding(catch, "a faultVariable needs a faultMessageType or a faultElement, which say what it holds")
        elif types and catch.get("faultVariable") is None:
            yield Finding(catch, f"{types[0]} says what a faultVariable holds, and there is none")


@rule(83)
def event_handlers_handle_something(sight: Sight) -> Iterator[Finding]:
    """<eventHandlers> has an <onEvent> or an <onAlarm>."""
    yield from _hollow(sight, "eventHandlers", ("onEvent", "onAlarm"))


@rule(91)
def isolated_scopes_hold_none(sight: Sight) -> Iterator[Finding]:
    """An isolated scope does not stand in another one."""
    for scope in sight.all("scope"):
        around = next((each for each in scopes_around(scope) if is_yes(each, "isolated")), None)
        if is_yes(scope, "isolated") and around is not None:
            yield Finding(scope, "an isolated scope stands in another one; the outer one is enough")


@rule(92)
def scopes_side_by_side_have_names_of_their_own(sight: Sight) -> Iterator[Finding]:
    """Named scopes directly inside one scope have different names."""
    seen: set[tuple[Node, str]] = set()
    for scope in sight.all("scope", "invoke"):
        name = word(scope, "name")
        if not name or not _is_scope(scope):
            continue
        key = (_home(scope), name)
        if key in seen:
            yield Finding(scope, f"another scope beside this one is called {name} too; call one of them otherwise")
        seen.add(key)


@rule(93)
def catches_differ(sight: Sight) -> Iterator[Finding]:
    """No two <catch> of the same handlers catch the same."""
    for handlers in sight.all("faultHandlers", "invoke"):
        seen = set()
        for catch in own(handlers, "catch"):
            what = tuple(sight.qname(catch, name) for name in ("faultName", *TYPED))
            if what in seen:
                yield Finding(catch, "an earlier <catch> beside this one catches the same; take one of them out")
            seen.add(what)


def _misplaced(sight: Sight, name: str, handlers: tuple[str, ...], where: str) -> Iterator[Finding]:
    for at in sight.all(name):
        if not any(local(each) in handlers for each in at.iterancestors()):
            yield Finding(at, f"<{name}> may only stand in {where}")


def _hollow(sight: Sight, name: str, inside: tuple[str, ...]) -> Iterator[Finding]:
    for at in sight.all(name):
        if next(own(at, *inside), None) is None:
            yield Finding(at, f"<{name}> is empty: give it {' or '.join(f'<{one}>' for one in inside)}, or take it out")


def _exits(scope: Node) -> bool:
    """Whether standard faults end the process in this scope. Inner scopes inherit it."""
    for around in (scope, *scopes_around(scope)):
        if (said := word(around, "exitOnStandardFault")) in ("yes", "no"):
            return said == "yes"
    return False


def _is_scope(at: Node) -> bool:
    return local(at) == "scope" or needs_scope(at)


def _targets(sight: Sight) -> Iterator[tuple[Node, str, bool]]:
    """Each <compensateScope> in a handler, its target, and whether that is a scope where it should be."""
    for at in sight.all("compensateScope"):
        handler = next((each for each in at.iterancestors() if local(each) in FCT_HANDLERS), None)
        target = word(at, "target")
        if handler is not None and target:
            owner = next(each for each in handler.iterancestors() if local(each) in ("scope", "process", "invoke"))
            named = sight.by_name.get(target, [])
            yield at, target, any(_is_scope(each) and _home(each) is owner for each in named)


def _home(scope: Node) -> Node:
    """The scope that a scope is directly inside of. One that stands in a handler belongs to that handler."""
    for around in scope.iterancestors():
        if local(around) in FCT_HANDLERS or local(around) in ("scope", "process"):
            return around
    raise AssertionError("a scope outside of a process")
