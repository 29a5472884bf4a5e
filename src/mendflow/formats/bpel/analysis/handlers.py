"""Rules about scopes and their handlers: what may stand in which, and what they may be called."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.engine.faults import JOIN_FAILURE, STANDARD
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import FCT_HANDLERS, ProcessView, enclosing_scopes, is_yes, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import local_name, needs_scope, own_elements
from mendflow.formats.bpel.reader import split_name
from mendflow.formats.bpel.vocabulary import BPEL

FAULT_HANDLERS: Final = ("catch", "catchAll")
TYPE_ATTRIBUTES: Final = ("faultMessageType", "faultElement")


@rule(3)
def what_ends_the_process_is_not_caught(view: ProcessView) -> Iterator[Violation]:
    """Where standard faults end the process, none of them is caught by name. `joinFailure` does not end it."""
    for catch in view.all("catch"):
        space, name = split_name(view.qname(catch, "faultName"))
        scope = next(enclosing_scopes(catch))
        if space == BPEL and name in STANDARD - {JOIN_FAILURE} and _exits_on_standard_fault(scope):
            yield Violation(catch, f"{name} ends the process here (exitOnStandardFault), so it is never caught")


@rule(6)
def rethrow_stands_in_a_fault_handler(view: ProcessView) -> Iterator[Violation]:
    """A <rethrow> stands in a <catch> or <catchAll>."""
    yield from _misplaced(view, "rethrow", FAULT_HANDLERS, "a fault handler; there is nothing to throw again here")


@rule(7)
def compensate_scope_stands_in_a_handler(view: ProcessView) -> Iterator[Violation]:
    """A <compensateScope> stands in a fault, compensation or termination handler."""
    yield from _misplaced(view, "compensateScope", FCT_HANDLERS, "a fault, compensation or termination handler")


@rule(8)
def compensate_stands_in_a_handler(view: ProcessView) -> Iterator[Violation]:
    """A <compensate> stands in a fault, compensation or termination handler."""
    yield from _misplaced(view, "compensate", FCT_HANDLERS, "a fault, compensation or termination handler")


@rule(77)
def compensated_scopes_are_near(view: ProcessView) -> Iterator[Violation]:
    """The target of a <compensateScope> is directly inside the scope whose handler it stands in."""
    for at, target, found in _targets(view):
        named = view.by_name.get(target, [])
        if not found and (not named or any(map(_is_scope, named))):
            yield Violation(at, f"{target} is no scope directly inside the one whose handler this is")


@rule(78)
def compensated_is_a_scope(view: ProcessView) -> Iterator[Violation]:
    """The target of a <compensateScope> is a scope, or an invoke with handlers."""
    for at, target, found in _targets(view):
        named = view.by_name.get(target, [])
        if not found and named and not any(map(_is_scope, named)):
            yield Violation(
                at, f"{target} is a <{local_name(named[0])}>; only scopes and invokes with handlers can be undone"
            )


@rule(79)
def scopes_of_handlers_are_not_undone(view: ProcessView) -> Iterator[Violation]:
    """The scope that a fault, compensation or termination handler consists of has no compensation handler."""
    for handler in view.all(*FCT_HANDLERS):
        for scope in own_elements(handler, "scope"):
            for undoing in own_elements(scope, "compensationHandler"):
                yield Violation(
                    undoing, f"a scope that is a whole <{local_name(handler)}> is never undone; take this out"
                )


@rule(80)
def fault_handlers_handle_something(view: ProcessView) -> Iterator[Violation]:
    """<faultHandlers> has a <catch> or a <catchAll>."""
    yield from _empty_handlers(view, "faultHandlers", FAULT_HANDLERS)


@rule(81)
def fault_variables_have_a_type(view: ProcessView) -> Iterator[Violation]:
    """A fault variable has a message type or an element, not both, and these come with a variable only."""
    for catch in view.all("catch"):
        types = [name for name in TYPE_ATTRIBUTES if catch.get(name) is not None]
        if len(types) > 1:
            yield Violation(catch, "a catch has a faultMessageType or a faultElement, and not both")
        elif catch.get("faultVariable") is not None and not types:
            yield Violation(
                catch, "a faultVariable needs a faultMessageType or a faultElement, which say what it holds"
            )
        elif types and catch.get("faultVariable") is None:
            yield Violation(catch, f"{types[0]} says what a faultVariable holds, and there is none")


@rule(83)
def event_handlers_handle_something(view: ProcessView) -> Iterator[Violation]:
    """<eventHandlers> has an <onEvent> or an <onAlarm>."""
    yield from _empty_handlers(view, "eventHandlers", ("onEvent", "onAlarm"))


@rule(91)
def isolated_scopes_hold_none(view: ProcessView) -> Iterator[Violation]:
    """An isolated scope does not stand in another one."""
    for scope in view.all("scope"):
        enclosing = next((each for each in enclosing_scopes(scope) if is_yes(each, "isolated")), None)
        if is_yes(scope, "isolated") and enclosing is not None:
            yield Violation(scope, "an isolated scope stands in another one; the outer one is enough")


@rule(92)
def scopes_side_by_side_have_names_of_their_own(view: ProcessView) -> Iterator[Violation]:
    """Named scopes directly inside one scope have different names."""
    seen: set[tuple[ParsedElement, str]] = set()
    for scope in view.all("scope", "invoke"):
        name = word(scope, "name")
        if not name or not _is_scope(scope):
            continue
        key = (_enclosing_scope(scope), name)
        if key in seen:
            yield Violation(scope, f"another scope beside this one is called {name} too; call one of them otherwise")
        seen.add(key)


@rule(93)
def catches_differ(view: ProcessView) -> Iterator[Violation]:
    """No two <catch> of the same handlers catch the same."""
    for handlers in view.all("faultHandlers", "invoke"):
        seen = set()
        for catch in own_elements(handlers, "catch"):
            what = tuple(view.qname(catch, name) for name in ("faultName", *TYPE_ATTRIBUTES))
            if what in seen:
                yield Violation(catch, "an earlier <catch> beside this one catches the same; take one of them out")
            seen.add(what)


def _misplaced(view: ProcessView, name: str, handlers: tuple[str, ...], where: str) -> Iterator[Violation]:
    for at in view.all(name):
        if not any(local_name(each) in handlers for each in at.iterancestors()):
            yield Violation(at, f"<{name}> may only stand in {where}")


def _empty_handlers(view: ProcessView, name: str, inside: tuple[str, ...]) -> Iterator[Violation]:
    for at in view.all(name):
        if next(own_elements(at, *inside), None) is None:
            yield Violation(
                at, f"<{name}> is empty: give it {' or '.join(f'<{one}>' for one in inside)}, or take it out"
            )


def _exits_on_standard_fault(scope: ParsedElement) -> bool:
    """Whether standard faults end the process in this scope. Inner scopes inherit it."""
    for enclosing in (scope, *enclosing_scopes(scope)):
        if (value := word(enclosing, "exitOnStandardFault")) in ("yes", "no"):
            return value == "yes"
    return False


def _is_scope(at: ParsedElement) -> bool:
    return local_name(at) == "scope" or needs_scope(at)


def _targets(view: ProcessView) -> Iterator[tuple[ParsedElement, str, bool]]:
    """Each <compensateScope> in a handler, its target, and whether that is a scope where it should be."""
    for at in view.all("compensateScope"):
        handler = next((each for each in at.iterancestors() if local_name(each) in FCT_HANDLERS), None)
        target = word(at, "target")
        if handler is not None and target:
            owner = next(each for each in handler.iterancestors() if local_name(each) in ("scope", "process", "invoke"))
            named = view.by_name.get(target, [])
            yield at, target, any(_is_scope(each) and _enclosing_scope(each) is owner for each in named)


def _enclosing_scope(scope: ParsedElement) -> ParsedElement:
    """The scope that a scope is directly inside of. One that stands in a handler belongs to that handler."""
    for enclosing in scope.iterancestors():
        if local_name(enclosing) in FCT_HANDLERS or local_name(enclosing) in ("scope", "process"):
            return enclosing
    raise AssertionError("a scope outside of a process")
