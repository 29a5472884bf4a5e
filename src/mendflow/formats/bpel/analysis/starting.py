"""Rules about how a case of a process begins."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.xml import Node
from mendflow.formats.bpel.analysis.rules import Finding, rule
from mendflow.formats.bpel.analysis.sight import FCT_HANDLERS, Sight, correlations, is_yes, word
from mendflow.formats.bpel.names import ACTIVITIES, local, own

TRANSPARENT: Final = ("sequence", "flow", "scope")


@rule(15)
def something_begins_it(sight: Sight) -> Iterator[Finding]:
    """A process has a <receive> or a <pick> that begins it."""
    if not starts(sight) and next(own(sight.root, *ACTIVITIES), None) is not None:
        yield Finding(sight.root, 'no <receive> or <pick> has createInstance="yes", so no case can ever begin')


@rule(56)
def nothing_comes_before_the_start(sight: Sight) -> Iterator[Finding]:
    """Before what begins a case, and beside it, there are only scopes, flows, sequences and other beginnings."""
    beginnings = set(starts(sight))
    leading = {around for each in beginnings for around in each.iterancestors()}
    for each in beginnings:
        around = next((one for one in each.iterancestors() if _holds_back(one)), None)
        if around is not None:
            yield Finding(
                each, f"what begins a case cannot stand in <{local(around)}>, which would have to begin first"
            )
    for structure in sight.all("sequence", "flow"):
        if structure in leading:
            for early in _early(structure, beginnings, leading):
                yield Finding(
                    early, f"<{local(early)}> comes before, or beside, what begins a case; put it behind that"
                )


@rule(57)
def beginnings_belong_together(sight: Sight) -> Iterator[Finding]:
    """Several beginnings with correlations share a correlation set, and each joins it."""
    correlated = [(each, sets) for each in starts(sight) if (sets := _sets(each))]
    if len(correlated) < 2:
        return
    common = set.intersection(*(set(sets) for _, messages in correlated for sets in messages))
    for each, messages in correlated:
        if not common:
            yield Finding(each, "what begins a case together needs a correlation set that all of them name")
        elif wrong := [name for sets in messages for name in common & set(sets) if sets[name] != "join"]:
            yield Finding(
                each, f'several messages begin a case together: each has to say initiate="join" for {wrong[0]}'
            )


@rule(62)
def time_does_not_begin_it(sight: Sight) -> Iterator[Finding]:
    """A <pick> that begins a case waits for messages only."""
    for at in sight.all("pick"):
        for alarm in own(at, "onAlarm"):
            if is_yes(at, "createInstance"):
                yield Finding(alarm, "a <pick> that begins a case has no alarms: there is no case that could wait")


def starts(sight: Sight) -> list[Node]:
    return [each for each in sight.all("receive", "pick") if is_yes(each, "createInstance")]


def _sets(start: Node) -> list[dict[str, str]]:
    """What each correlated message of a beginning says of correlation sets: how it initiates them, by name."""
    messages = [start] if local(start) == "receive" else list(own(start, "onMessage"))
    said = [{word(each, "set"): word(each, "initiate") or "no" for each in correlations(at)} for at in messages]
    return [sets for sets in said if sets]


def _holds_back(around: Node) -> bool:
    """Whether an element around an activity is something that has to happen before it."""
    inside_handler = local(around) in (*FCT_HANDLERS, "eventHandlers")
    return inside_handler or (local(around) in ACTIVITIES and local(around) not in TRANSPARENT)


def _early(structure: Node, beginnings: set[Node], leading: set[Node]) -> Iterator[Node]:
    """What is directly in a structure, and is not behind the beginnings in it."""
    inside = list(own(structure, *ACTIVITIES))
    begin = [each in beginnings or each in leading for each in inside]
    if local(structure) == "sequence":
        inside = inside[: len(begin) - begin[::-1].index(True)]
    for each, is_beginning in zip(inside, begin, strict=False):
        if not is_beginning and not (local(structure) == "flow" and _waits(each)):
            yield each


def _waits(at: Node) -> bool:
    """Whether an activity, or what comes first in it, is the target of a link."""
    while True:
        if next(own(at, "targets"), None) is not None:
            return True
        if local(at) == "flow":
            return all(map(_waits, own(at, *ACTIVITIES)))
        first = next(own(at, *ACTIVITIES), None) if local(at) in ("sequence", "scope") else None
        if first is None:
            return False
        at = first
