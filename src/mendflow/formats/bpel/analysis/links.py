"""Rules about links: they are declared, connect two activities, and form no cycle."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import LinkEnds, ProcessView, declarations_in, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import local_name, own_elements

REPEATABLE: Final = ("while", "repeatUntil", "forEach", "eventHandlers", "compensationHandler")
OUTBOUND: Final = ("catch", "catchAll", "terminationHandler")


@rule(64)
def names_of_links_are_unique(view: ProcessView) -> Iterator[Violation]:
    """Links of one flow have names of their own."""
    for flow in view.all("flow"):
        seen: set[str] = set()
        for link in declarations_in(flow, "links", "link"):
            if word(link, "name") in seen:
                yield Violation(link, f"the flow has another link {word(link, 'name')}; call one of them otherwise")
            seen.add(word(link, "name"))


@rule(65)
def links_are_declared_around(view: ProcessView) -> Iterator[Violation]:
    """Whoever is source or target of a link stands in the flow that declares it."""
    for end in view.link_ends():
        name = word(end, "linkName")
        if name and view.flow_link(end) is None:
            yield Violation(end, f"no flow around this activity declares a link {name}")


@rule(66)
def links_have_two_ends(view: ProcessView) -> Iterator[Violation]:
    """A link has one source and one target."""
    for ends in view.links:
        name = word(ends.link, "name")
        for what, found in (("source", ends.sources), ("target", ends.targets)):
            if len(found) != 1:
                yield Violation(ends.link, f"the link {name} has {len(found)} activities as its {what}; it needs one")


@rule(67)
def two_activities_have_one_link(view: ProcessView) -> Iterator[Violation]:
    """From one activity to another there is one link at most."""
    seen: dict[tuple[ParsedElement, ParsedElement], str] = {}
    for ends in view.links:
        for pair in ends.pairs():
            name = word(ends.link, "name")
            if pair in seen and seen[pair] != name:
                yield Violation(ends.link, f"{name} and {seen[pair]} join the same two activities; one link is enough")
            seen.setdefault(pair, name)


@rule(68)
def sources_are_distinct(view: ProcessView) -> Iterator[Violation]:
    """An activity is the source of a link once."""
    yield from _duplicate_ends(view, "sources", "source")


@rule(69)
def targets_are_distinct(view: ProcessView) -> Iterator[Violation]:
    """An activity is the target of a link once."""
    yield from _duplicate_ends(view, "targets", "target")


@rule(70)
def links_stay_within_what_is_repeated(view: ProcessView) -> Iterator[Violation]:
    """A link does not lead into or out of a loop, event handlers or a compensation handler."""
    for ends in view.links:
        for activity in (*ends.sources, *ends.targets):
            if (enclosing := _between(activity, ends.flow, REPEATABLE)) is not None:
                text = f"the link {word(ends.link, 'name')} crosses the boundary of a <{local_name(enclosing)}>"
                yield Violation(activity, f"{text}; declare it in a flow inside")


@rule(71)
def links_lead_out_of_handlers_only(view: ProcessView) -> Iterator[Violation]:
    """A link may leave a fault or termination handler, for somewhere outside of its scope, and enter none."""
    for ends in view.links:
        for source, target in ends.pairs():
            yield from _boundary_crossings(ends, source, target)


def _boundary_crossings(ends: LinkEnds, source: ParsedElement, target: ParsedElement) -> Iterator[Violation]:
    name = word(ends.link, "name")
    entered = _between(target, ends.flow, OUTBOUND)
    if entered is not None and entered not in source.iterancestors():
        yield Violation(target, f"the link {name} leads into a <{local_name(entered)}>; links may only lead out of one")
    left = _between(source, ends.flow, OUTBOUND)
    if left is None or left in target.iterancestors():
        return
    if _owner(left) in target.iterancestors():
        yield Violation(target, f"the link {name} leads from a handler into its own scope; let it end outside of that")


def _duplicate_ends(view: ProcessView, group: str, one: str) -> Iterator[Violation]:
    for ends in view.all(group):
        counted = Counter(word(each, "linkName") for each in own_elements(ends, one))
        for name, times in counted.items():
            if times > 1:
                yield Violation(ends, f"the activity names the link {name} {times} times as its {one}; once is enough")


def _between(at: ParsedElement, flow: ParsedElement, names: tuple[str, ...]) -> ParsedElement | None:
    """The outermost element of these names around an activity and inside the flow."""
    found = None
    for enclosing in at.iterancestors():
        if enclosing is flow:
            break
        if local_name(enclosing) in names:
            found = enclosing
    return found


def _owner(handler: ParsedElement) -> ParsedElement:
    """The scope, or the invoke, whose handler this is."""
    return next(each for each in handler.iterancestors() if local_name(each) in ("scope", "process", "invoke"))
