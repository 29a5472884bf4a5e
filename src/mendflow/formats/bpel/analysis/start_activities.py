"""Rules about how a case of a process starts."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import FCT_HANDLERS, ProcessView, correlations, is_yes, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import ACTIVITIES, local_name, own_elements

TRANSPARENT: Final = ("sequence", "flow", "scope")


@rule(15)
def something_begins_it(view: ProcessView) -> Iterator[Violation]:
    """A process has a <receive> or a <pick> that begins it."""
    if not starts(view) and next(own_elements(view.root, *ACTIVITIES), None) is not None:
        yield Violation(view.root, 'no <receive> or <pick> has createInstance="yes", so no case can ever begin')


@rule(56)
def nothing_comes_before_the_start(view: ProcessView) -> Iterator[Violation]:
    """Before what begins a case, and beside it, there are only scopes, flows, sequences and other beginnings."""
    beginnings = set(starts(view))
    leading = {enclosing for each in beginnings for enclosing in each.iterancestors()}
    for each in beginnings:
        enclosing = next((one for one in each.iterancestors() if _delays(one)), None)
        if enclosing is not None:
            yield Violation(
                each, f"what begins a case cannot stand in <{local_name(enclosing)}>, which would have to begin first"
            )
    for structure in view.all("sequence", "flow"):
        if structure in leading:
            for early in _activities_before(structure, beginnings, leading):
                yield Violation(
                    early, f"<{local_name(early)}> comes before, or beside, what begins a case; put it behind that"
                )


@rule(57)
def beginnings_belong_together(view: ProcessView) -> Iterator[Violation]:
    """Several beginnings with correlations share a correlation set, and each joins it."""
    correlated = [(each, sets) for each in starts(view) if (sets := _sets(each))]
    if len(correlated) < 2:
        return
    common = set.intersection(*(set(sets) for _, messages in correlated for sets in messages))
    for each, messages in correlated:
        if not common:
            yield Violation(each, "what begins a case together needs a correlation set that all of them name")
        elif wrong := [name for sets in messages for name in common & set(sets) if sets[name] != "join"]:
            yield Violation(
                each, f'several messages begin a case together: each has to say initiate="join" for {wrong[0]}'
            )


@rule(62)
def time_does_not_begin_it(view: ProcessView) -> Iterator[Violation]:
    """A <pick> that begins a case waits for messages only."""
    for at in view.all("pick"):
        for alarm in own_elements(at, "onAlarm"):
            if is_yes(at, "createInstance"):
                yield Violation(alarm, "a <pick> that begins a case has no alarms: there is no case that could wait")


def starts(view: ProcessView) -> list[ParsedElement]:
    return [each for each in view.all("receive", "pick") if is_yes(each, "createInstance")]


def _sets(start: ParsedElement) -> list[dict[str, str]]:
    """What each correlated message of a beginning says of correlation sets: how it initiates them, by name."""
    messages = [start] if local_name(start) == "receive" else list(own_elements(start, "onMessage"))
    initiations = [{word(each, "set"): word(each, "initiate") or "no" for each in correlations(at)} for at in messages]
    return [sets for sets in initiations if sets]


def _delays(enclosing: ParsedElement) -> bool:
    """Whether an element around an activity is something that has to happen before it."""
    inside_handler = local_name(enclosing) in (*FCT_HANDLERS, "eventHandlers")
    return inside_handler or (local_name(enclosing) in ACTIVITIES and local_name(enclosing) not in TRANSPARENT)


def _activities_before(
    structure: ParsedElement, beginnings: set[ParsedElement], leading: set[ParsedElement]
) -> Iterator[ParsedElement]:
    """What is directly in a structure, and is not behind the beginnings in it."""
    inside = list(own_elements(structure, *ACTIVITIES))
    begin = [each in beginnings or each in leading for each in inside]
    if local_name(structure) == "sequence":
        inside = inside[: len(begin) - begin[::-1].index(True)]
    for each, is_beginning in zip(inside, begin, strict=False):
        if not is_beginning and not (local_name(structure) == "flow" and _is_link_target(each)):
            yield each


def _is_link_target(at: ParsedElement) -> bool:
    """Whether an activity, or what comes first in it, is the target of a link."""
    while True:
        if next(own_elements(at, "targets"), None) is not None:
            return True
        if local_name(at) == "flow":
            return all(map(_is_link_target, own_elements(at, *ACTIVITIES)))
        first = next(own_elements(at, *ACTIVITIES), None) if local_name(at) in ("sequence", "scope") else None
        if first is None:
            return False
        at = first
