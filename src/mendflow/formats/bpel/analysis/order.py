"""The order of activities in a process, by sequences and links.

Each activity has a start and an end. A structure starts before its parts and ends after them, an activity in a sequence
ends before the next starts, and the source of a link ends before its target starts. A cycle of these can never
complete."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import ProcessView, enclosing_scopes, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import ACTIVITIES, local_name
from mendflow.formats.bpel.vocabulary import BPEL

Moment = tuple[ParsedElement, Literal["start", "end"]]


@rule(72)
def links_close_no_circle(view: ProcessView) -> Iterator[Violation]:
    """No activity comes, by way of links, before itself."""
    circle = moments_in_cycles(moments(view)) if view.links else set()
    for ends in view.links:
        for source, target in ends.pairs():
            if (source, "end") in circle and (target, "start") in circle:
                yield Violation(ends.link, f"with the link {word(ends.link, 'name')} an activity comes before itself")


@rule(82)
def scopes_depend_one_way(view: ProcessView) -> Iterator[Violation]:
    """Of two scopes side by side, not each has something in it that waits for something in the other."""
    after = moments(view)
    peers: dict[ParsedElement, list[ParsedElement]] = {}
    for scope in view.all("scope"):
        if next(scope.iter(f"{{{BPEL}}}source", f"{{{BPEL}}}target"), None) is not None:
            peers.setdefault(next(enclosing_scopes(scope)), []).append(scope)
    for side_by_side in peers.values():
        waited = {scope: _waiting_for(scope, after) for scope in side_by_side if len(side_by_side) > 1}
        for at, first in enumerate(side_by_side):
            for second in side_by_side[at + 1 :]:
                if first in waited[second] and second in waited[first]:
                    named = word(second, "name") or "this scope"
                    yield Violation(
                        second, f"{named} and {word(first, 'name') or 'another'} wait for each other's parts"
                    )


def moments(view: ProcessView) -> dict[Moment, set[Moment]]:
    """What follows on each moment."""
    after: dict[Moment, set[Moment]] = {}
    for activity in view.all(*ACTIVITIES):
        after.setdefault((activity, "start"), set()).add((activity, "end"))
        enclosing = next((each for each in activity.iterancestors() if local_name(each) in ACTIVITIES), None)
        if enclosing is not None:
            after.setdefault((enclosing, "start"), set()).add((activity, "start"))
            after.setdefault((activity, "end"), set()).add((enclosing, "end"))
    for first, second in _neighbours(view):
        after.setdefault((first, "end"), set()).add((second, "start"))
    for ends in view.links:
        for source, target in ends.pairs():
            after.setdefault((source, "end"), set()).add((target, "start"))
    return after


def _neighbours(view: ProcessView) -> Iterator[tuple[ParsedElement, ParsedElement]]:
    for sequence in view.all("sequence"):
        inside = [each for each in sequence if isinstance(each.tag, str) and local_name(each) in ACTIVITIES]
        yield from pairwise(inside)


def _waiting_for(scope: ParsedElement, after: dict[Moment, set[Moment]]) -> set[ParsedElement]:
    """What waits for something in this scope, and all that it stands in."""
    inside = set(scope.iter("*"))
    later: set[Moment] = set()
    wanted: list[Moment] = [(activity, "end") for activity in inside]
    while wanted:
        new = after.get(wanted.pop(), set()) - later
        later |= new
        wanted += new
    outside = {activity for activity, moment in later if moment == "start" and activity not in inside}
    return {enclosing for activity in outside for enclosing in (activity, *activity.iterancestors())}


def moments_in_cycles(after: dict[Moment, set[Moment]]) -> set[Moment]:
    """The moments on a circle, or between two: those that are left when all before circles is taken away, step by step,
    and then all behind them."""
    before: dict[Moment, set[Moment]] = {}
    for moment, following in after.items():
        for each in following:
            before.setdefault(each, set()).add(moment)
    return _without_ends(_without_ends(after.keys() | before.keys(), before, after), after, before)


def _without_ends(
    moments: set[Moment], one_way: dict[Moment, set[Moment]], other: dict[Moment, set[Moment]]
) -> set[Moment]:
    open_ways = {moment: len(one_way.get(moment, set()) & moments) for moment in moments}
    ends = [moment for moment, ways in open_ways.items() if not ways]
    gone = set(ends)
    while ends:
        for each in other.get(ends.pop(), set()) & moments:
            open_ways[each] -= 1
            if not open_ways[each]:
                gone.add(each)
                ends.append(each)
    return moments - gone
