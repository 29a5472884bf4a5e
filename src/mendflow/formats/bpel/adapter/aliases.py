"""Correlation through the proxy: adds property aliases for the messages of the proxy.

An intercepted invoke keeps its correlations. They now apply to a message of the proxy, so each property gets an alias
there: the path to the part, and from there the path of the alias of the partner's own message."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from lxml import etree

from mendflow.core.model.xml import MessagePart, PropertyAlias, XmlDefinitions
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.adapter.calls import InterceptedCall
from mendflow.formats.bpel.adapter.interceptor import PROXY
from mendflow.formats.bpel.adapter.unique_names import PrefixScope
from mendflow.formats.bpel.names import own_elements
from mendflow.formats.bpel.reader import XmlReader
from mendflow.formats.bpel.vocabulary import PROPERTIES

PATH: Final = re.compile(r"(?:/{0,2}(?:\.|(?:[\w-]+::)?@?(?:[\w.-]+:)?(?:[\w.-]+|\*)(?:\(\))?)(?:\[[^\[\]|]*\])*)+")
"""A way along elements, attributes and texts; whatever else a query may be cannot be continued from elsewhere."""
DIRECTIONS: Final = {"request": ("request",), "response": ("response",), "request-response": ("request", "response")}
MESSAGES: Final = {"request": "beginRequest", "response": "callResponse"}


class PropertyPath(msgspec.Struct, frozen=True):
    """Where a property stands in a part of the partner's message."""

    part: MessagePart
    path: str
    namespaces: tuple[tuple[str, str], ...]


class Aliases:
    """What the proxy's messages must know of the properties of one process."""

    def __init__(self, reader: XmlReader, world: XmlDefinitions) -> None:
        self._reader, self._world = reader, world
        self._steps: dict[tuple[str, str], list[PropertyPath]] = {}

    def add(self, call: InterceptedCall) -> None:
        """The properties that the correlations of an invoke look at."""
        for at in (
            each
            for enclosing in own_elements(call.at, "correlations")
            for each in own_elements(enclosing, "correlation")
        ):
            ways = DIRECTIONS[at.get("pattern", "").strip() or "request"]
            for property in self._properties(at):
                for way in ways:
                    message = call.operation.input if way == "request" else call.operation.output
                    self._found(at, call, way, property, message)

    def write(self, into: ParsedElement) -> None:
        """Into the proxy's WSDL, after all that stands there."""
        for (way, property), steps in self._steps.items():
            prefixes = PrefixScope(into)
            proxy = prefixes.of(PROXY)
            ways = " | ".join(_query_path(proxy, step, prefixes) for step in steps)
            name = prefixes.written(property)
            made = etree.SubElement(
                into,
                f"{{{PROPERTIES}}}propertyAlias",
                {"propertyName": name, "messageType": f"{proxy}:{MESSAGES[way]}", "part": "parameters"},
                nsmap={**prefixes.declared, "vprop": PROPERTIES},
            )
            etree.SubElement(made, f"{{{PROPERTIES}}}query").text = ways
            made.tail = "\n"

    def _properties(self, at: ParsedElement) -> Iterator[str]:
        name = at.get("set", "").strip()
        for enclosing in at.iterancestors():
            for each in (
                each
                for sets in own_elements(enclosing, "correlationSets")
                for each in own_elements(sets, "correlationSet")
            ):
                if each.get("name", "").strip() == name:
                    yield from (self._reader.resolved(each, word) for word in each.get("properties", "").split())
                    return

    def _found(self, at: ParsedElement, call: InterceptedCall, way: str, property: str, message: str) -> None:
        alias = next((each for each in self._world.aliases if _is_alias_of(each, property, message)), None)
        if alias is None:
            self._refuse(at, call, f"no propertyAlias says where {property} stands in {message}")
            return
        part = next(each for each in self._world.messages[message] if each.name == alias.part)
        text = alias.query.text.strip() if alias.query is not None else ""
        if text and not PATH.fullmatch(text):
            self._refuse(at, call, f"the query of the alias of {property} in {message} is no plain path: {text}")
            return
        step = PropertyPath(part, text, alias.query.namespaces if alias.query is not None else ())
        known = self._steps.setdefault((way, property), [])
        if any(_is_ambiguous(step, each) for each in known):
            self._refuse(at, call, f"{property} stands elsewhere in a part `{part.name}` by another alias")
        elif step not in known:
            known.append(step)

    def _refuse(self, at: ParsedElement, call: InterceptedCall, why: str) -> None:
        self._reader.problem(
            at,
            f"{call.activity} cannot be intercepted without losing its correlation: {why}; leave it out by --only",
        )


def _is_alias_of(alias: PropertyAlias, property: str, message: str) -> bool:
    return alias.property == property and alias.of.message == message


def _is_ambiguous(one: PropertyPath, other: PropertyPath) -> bool:
    """Whether both would be found in the same message."""
    return one != other and one.part.name == other.part.name and one.part.element == other.part.element


def _query_path(proxy: str, step: PropertyPath, prefixes: PrefixScope) -> str:
    within = prefixes.written(step.part.element) if step.part.element else f"{proxy}:value"
    path = _with_prefixes(step, prefixes)
    if path.startswith("/"):
        # From the part's own root: its first step is the element itself.
        return f"{proxy}:message/{proxy}:part[@name='{step.part.name}']{path}"
    path = "" if path in ("", ".") else f"/{path}"
    return f"{proxy}:message/{proxy}:part[@name='{step.part.name}']/{within}{path}"


def _with_prefixes(step: PropertyPath, prefixes: PrefixScope) -> str:
    """The path with prefixes that mean here what its own mean where it stands."""
    known = dict(step.namespaces)
    return re.sub(
        r"([^\W\d][\w.-]*):(?!:)",
        lambda found: f"{prefixes.of(known[found[1]])}:" if found[1] in known else found[0],
        step.path,
    )
