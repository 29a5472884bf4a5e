"""Parameter sweeps (GFD.149): one document that stands for many, each with other values in some of its places.

The assignments of a <Sweep> change together, each with its next value. A <Sweep> inside another one runs through all
its values for each of the outer one's; those that stand beside each other run one after the other."""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

import msgspec
from lxml import etree

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, elements, local
from mendflow.formats.jsdl.sweep_values import values_of
from mendflow.formats.jsdl.vocabulary import MANY, SWEEP_FUNCTIONS

FUNCTIONS: Final = {"Values": 1, "LoopInteger": 1, "LoopDouble": 1}
JOBS_MAX: Final = 10_000
"""Jobs of one document. Each is read, and checked, before the first one runs."""

MATCH_CHARS_MAX: Final = 1_000
SEARCHES: Final = re.compile(r"\[[^\]]*(//|\[|descendant|ancestor|following|preceding)")
"""Conditions that search the document again for each node."""
WANDERS: Final = re.compile(r"(?:descendant|ancestor|following|preceding)[a-z-]*\s*::")
SEARCHES_MAX: Final = 2
"""Steps that go through the document for each node that was found: three of them take hours."""

SUBSTRING: Final = re.compile(r"\s*substring\s*\((.+?),\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\)\s*", re.DOTALL)


class SweepTarget(msgspec.Struct, frozen=True):
    """The place that a value goes to: an element of the <JobDescription> or an attribute of it, by the element's number
    in it. With a `start` only so many characters from there on are replaced; `chars` -1: all of them."""

    node: int
    attribute: str = ""
    start: int = 0
    chars: int = -1


class SweepAssignment(msgspec.Struct, frozen=True):
    targets: tuple[SweepTarget, ...]
    values: tuple[ParsedElement | str, ...]


class Sweep(msgspec.Struct, frozen=True):
    assignments: tuple[SweepAssignment, ...]
    inner: tuple["Sweep", ...] = ()

    @property
    def size(self) -> int:
        own = len(self.assignments[0].values) if self.assignments else 0
        return own * (sum(each.size for each in self.inner) if self.inner else 1)


Edits = tuple[tuple[SweepTarget, ParsedElement | str], ...]


def read_sweeps(
    reader: JsdlReader, given: Sequence[ParsedElement], root: ParsedElement, described: ParsedElement
) -> tuple[Sweep, ...]:
    """The sweeps of a document; what is wrong with them is a problem of the reader."""
    numbers = {each: number for number, each in enumerate(described.iter()) if number}
    return tuple(_sweep(reader, each, root, numbers) for each in given)


def _sweep(reader: JsdlReader, at: ParsedElement, root: ParsedElement, numbers: dict[ParsedElement, int]) -> Sweep:
    reader.attributes(at)
    parts = reader.parts(at, {"Assignment": MANY, "Sweep": MANY})
    assignments = [_assignment(reader, each, root, numbers) for each in parts.get("Assignment", [])]
    if not assignments:
        reader.problem(at, "<Sweep> has no <Assignment>: say which part of the document gets which values")
    counts = [len(each.values) for each in assignments]
    if len(set(counts)) > 1:
        told = ", ".join(map(str, counts))
        reader.problem(at, f"the assignments of a <Sweep> change together, and these have {told} values; give as many")
    inner = tuple(_sweep(reader, each, root, numbers) for each in parts.get("Sweep", []))
    return Sweep(tuple(assignments), inner)


def _assignment(
    reader: JsdlReader, at: ParsedElement, root: ParsedElement, numbers: dict[ParsedElement, int]
) -> SweepAssignment:
    reader.attributes(at)
    parts = reader.parts(at, {"DocumentNode": MANY, "Parameter": MANY, **FUNCTIONS}, namespaces=(SWEEP_FUNCTIONS,))
    named = [*parts.get("DocumentNode", []), *parts.get("Parameter", [])]
    targets = [found for each in named if (found := _target(reader, each, root, numbers)) is not None]
    functions = [each for name in FUNCTIONS for each in parts.get(name, [])]
    if not named:
        reader.problem(at, "<Assignment> has no <DocumentNode>: say which part of the document gets the values")
    if len(functions) != 1:
        reader.problem(at, f"<Assignment> has one of {', '.join(FUNCTIONS)}; this one has {len(functions)}")
    values = values_of(reader, functions[0], JOBS_MAX) if functions else ()
    return SweepAssignment(tuple(targets), values)


def _target(
    reader: JsdlReader, at: ParsedElement, root: ParsedElement, numbers: dict[ParsedElement, int]
) -> SweepTarget | None:
    """The one place that an expression names."""
    bindings = {prefix: uri for prefix, uri in at.nsmap.items() if prefix}
    if local(at) == "Parameter":
        place, text = at, reader.word(at)
    else:
        reader.attributes(at)
        parts = reader.parts(at, {"NamespaceBinding": MANY, "Match": 1})
        for each in parts.get("NamespaceBinding", []):
            given = reader.attributes(each, "ns", "prefix")
            bindings[given.get("prefix", "").strip()] = given.get("ns", "").strip()
        bindings.pop("", None)
        if not parts.get("Match"):
            reader.problem(at, "<DocumentNode> has no <Match>: give the XPath expression of a node")
            return None
        place = parts["Match"][0]
        text = reader.word(place)
    if not text:
        return None
    partly = SUBSTRING.fullmatch(text)
    found = _node(reader, place, partly.group(1) if partly else text, root, bindings, numbers)
    if found is None:
        return None
    node, attribute = found
    if partly is None:
        return SweepTarget(numbers[node], attribute)
    start, chars = int(partly.group(2)) - 1, partly.group(3)
    before = node.get(attribute) or "" if attribute else node.text or ""
    if len(node) or start < 0 or start > len(before):
        reader.problem(place, f"{abbreviate(text)} names no characters of the text there, which has {len(before)}")
    return SweepTarget(numbers[node], attribute, max(0, start), int(chars) if chars else len(before))


def _node(
    reader: JsdlReader,
    at: ParsedElement,
    text: str,
    root: ParsedElement,
    bindings: dict[str, str],
    numbers: dict[ParsedElement, int],
) -> tuple[ParsedElement, str] | None:
    """The element that an expression names, or the element and the name of its attribute."""
    if len(text) > MATCH_CHARS_MAX or SEARCHES.search(text):
        reader.problem(at, f"{abbreviate(text)} searches the document again in a condition; name the node by its path")
        return None
    if WANDERS.search(text) or text.count("//") > SEARCHES_MAX:
        reader.problem(
            at, f"{abbreviate(text)} goes through the document again and again; name the node by its path, or by //name"
        )
        return None
    try:
        found = root.getroottree().xpath(text, namespaces=bindings)
    except etree.XPathError as error:
        reader.problem(at, f"{abbreviate(text)} is no XPath expression for this document: {error}")
        return None
    places = map(_place, found) if isinstance(found, list) else ()
    nodes = [place for place in places if place is not None and place[0] in numbers]
    if len(nodes) == 1:
        return nodes[0]
    hint = "" if nodes else "; names of a namespace need a prefix, which <NamespaceBinding> can bind"
    reader.problem(
        at, f"{abbreviate(text)} names {len(nodes)} places of the <JobDescription>, and not the one to change{hint}"
    )
    return None


def _place(node: object) -> tuple[ParsedElement, str] | None:
    """An element, or an attribute of it; text stands for its element."""
    attribute = ""
    if isinstance(node, str):
        owner = getattr(node, "getparent", lambda: None)()
        attribute = str(getattr(node, "attrname", "") or "")
        node = owner
    return (node, attribute) if etree.iselement(node) and isinstance(node.tag, str) else None


def combinations(sweeps: Sequence[Sweep]) -> Iterator[Edits]:
    """What is put where, for each job."""
    for sweep in sweeps:
        for values in zip(*(each.values for each in sweep.assignments), strict=True):
            own = tuple(
                (target, value)
                for each, value in zip(sweep.assignments, values, strict=True)
                for target in each.targets
            )
            for more in combinations(sweep.inner) if sweep.inner else ((),):
                yield (*own, *more)


def edited(described: ParsedElement, edits: Edits) -> ParsedElement:
    """A copy of the <JobDescription> with the values in their places. Characters are counted in the text as it was, so
    the last ones are replaced first. The sweeps are not copied: they may be as long as there are jobs."""
    copy = deepcopy(described)
    nodes = list(copy.iter())
    for target, value in sorted(edits, key=lambda each: each[0].start, reverse=True):
        _put(nodes[target.node], target, value)
    return copy


def _put(node: ParsedElement, target: SweepTarget, value: ParsedElement | str) -> None:
    text = value if isinstance(value, str) else value.text or ""
    if target.chars >= 0:
        before = node.get(target.attribute) or "" if target.attribute else node.text or ""
        text = before[: target.start] + text + before[target.start + target.chars :]
    if target.attribute:
        node.set(target.attribute, text)
        return
    for child in list(node) if target.chars < 0 else ():
        node.remove(child)
    node.text = text
    for child in elements(value) if not isinstance(value, str) else ():
        node.append(deepcopy(child))
