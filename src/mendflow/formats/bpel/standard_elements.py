"""The standard elements of every activity: its links, and its join condition."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, LinkSource
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.expressions import Languages, expression_of
from mendflow.formats.bpel.reader import MANY, XmlReader
from mendflow.formats.bpel.vocabulary import BPEL


def with_standard(
    reading: XmlReader, at: ParsedElement, activity: Activity, languages: Languages, suppress: bool
) -> Activity:
    """The activity with its links."""
    targets, join = _targets(reading, at, languages)
    return msgspec.structs.replace(
        activity,
        targets=targets,
        join=join,
        sources=_sources(reading, at, languages),
        suppress_join_failure=suppress,
    )


def _targets(
    reading: XmlReader, at: ParsedElement, languages: Languages
) -> tuple[tuple[str, ...], Literal["any"] | Expr]:
    names: list[str] = []
    join: Literal["any"] | Expr = "any"
    for group in _of_bpel(at, "targets"):
        parts = reading.parts(group, {"joinCondition": 1, "target": MANY})
        names += [reading.needed(each, "linkName") for each in parts["target"]]
        for condition in parts["joinCondition"]:
            join = expression_of(reading, condition, languages)
    return tuple(names), join


def _sources(reading: XmlReader, at: ParsedElement, languages: Languages) -> tuple[LinkSource, ...]:
    found = []
    for group in _of_bpel(at, "sources"):
        for each in reading.parts(group, {"source": MANY})["source"]:
            conditions = reading.parts(each, {"transitionCondition": 1})["transitionCondition"]
            when = expression_of(reading, conditions[0], languages) if conditions else None
            found.append(LinkSource(link=reading.needed(each, "linkName"), when=when))
    return tuple(found)


def _of_bpel(at: ParsedElement, name: str) -> Iterator[ParsedElement]:
    """An activity of another namespace has its links in BPEL's."""
    return at.iterchildren(f"{{{BPEL}}}{name}")
