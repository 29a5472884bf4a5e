"""Rules about links: that they are declared, lead from one activity to one other, and close no circle."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mendflow.core.xml import Node
from mendflow.formats.bpel.analysis.rules import Finding, rule
from mendflow.formats.bpel.analysis.sight import Ends, Sight, declared, word
from mendflow.formats.bpel.names import local, own

REPEATED: Final = ("while", "repeatUntil", "forEach", "eventHandlers", "compensationHandler")
OUTBOUND: Final = ("catch", "catchAll", "terminationHandler")


@rule(64)
def names_of_links_are_unique(sight: Sight) -> Iterator[Finding]:
    """Links of one flow have names of their own."""
    for flow in sight.all("flow"):
        seen: set[str] = set()
        for link in declared(flow, "links", "link"):
            if word(link, "name") in seen:
                yield Finding(link, f"the flow has another link {word(link, 'name')}; call one of them otherwise")
            seen.add(word(link, "name"))


@rule(65)
def links_are_declared_around(sight: Sight) -> Iterator[Finding]:
    """Whoever is source or target of a link stands in the flow that declares it."""
    for end in sight.link_ends():
        name = word(end, "linkName")
        if name and sight.flow_link(end) is None:
            yield Finding(end, f"no flow around this activity declares a link {name}")


@rule(66)
def links_have_two_ends(sight: Sight) -> Iterator[Finding]:
    """A link has one source and one target."""
    for ends in sight.links:
        name = word(ends.link, "name")
        for what, found in (("source", ends.sources), ("target", ends.targets)):
            if len(found) != 1:
                yield Finding(ends.link, f"the link {name} has {len(found)} activities as its {what}; it needs one")


@rule(67)
def two_activities_have_one_link(sight: Sight) -> Iterator[Finding]:
    """From one activity to another there is one link at most."""
    seen: dict[tuple[Node, Node], str] = {}
    for ends in sight.links:
        for pair in ends.pairs():
            name = word(ends.link, "name")
            if pair in seen and seen[pair] != name:
                yield Finding(ends.link, f"{name} and {seen[pair]} join the same two activities; one link is enough")
            seen.setdefault(pair, name)


@rule(68)
def sources_are_distinct(sight: Sight) -> Iterator[Finding]:
    """An activity is the source of a link once."""
    yield from _twice(sight, "sources", "source")


@rule(69)
def targets_are_distinct(sight: Sight) -> Iterator[Finding]:
    """An activity is the target of a link once."""
    yield from _twice(sight, "targets", "target")


@rule(70)
def links_stay_within_what_is_repeated(sight: Sight) -> Iterator[Finding]:
    """A link does not lead into or out of a loop, event handlers or a compensation handler."""
    for ends in sight.links:
        for activity in (*ends.sources, *ends.targets):
            if (around := _between(activity, ends.flow, REPEATED)) is not None:
                said = f"the link {word(ends.link, 'name')} crosses the boundary of a <{local(around)}>"
                yield Finding(activity, f"{said}; declare it in a flow inside")


@rule(71)
def links_lead_out_of_handlers_only(sight: Sight) -> Iterator[Finding]:
    """A link may leave a fault or termination handler, for somewhere outside of its scope, and enter none."""
    for ends in sight.links:
        for source, target in ends.pairs():
            yield from _crossing(ends, source, target)


def _crossing(ends: Ends, source: Node, target: Node) -> Iterator[Finding]:
    name = word(ends.link, "name")
    entered = _between(target, ends.flow, OUTBOUND)
    if entered is not None and entered not in source.iterancestors():
        yield Finding(target, f"the link {name} leads into a <{local(entered)}>; links may only lead out of one")
    left = _between(source, ends.flow, OUTBOUND)
    if left is None or left in target.iterancestors():
        return
    if _owner(left) in target.iterancestors():
        yield Finding(target, f"the link {name} leads from a handler into its own scope; let it end outside of that")


def _twice(sight: Sight, group: str, one: str) -> Iterator[Finding]:
    for ends in sight.all(group):
        counted = Counter(word(each, "linkName") for each in own(ends, one))
        for name, times in counted.items():
            if times > 1:
                yield Finding(ends, f"the activity names the link {name} {times} times as its {one}; once is enough")


def _between(at: Node, flow: Node, names: tuple[str, ...]) -> Node | None:
    """The outermost element of these names around an activity and inside the flow."""
    found = None
    for around in at.iterancestors():
        if around is flow:
            break
        if local(around) in names:
            found = around
    return found


def _owner(handler: Node) -> Node:
    """The scope, or the invoke, whose handler this is."""
    return next(each for each in handler.iterancestors() if local(each) in ("scope", "process", "invoke"))
