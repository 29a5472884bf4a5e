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
    reader: XmlReader, at: ParsedElement, activity: Activity, languages: Languages, suppress: bool
) -> Activity:
    """The activity with its links."""
    targets, join = _targets(reader, at, languages)
    return msgspec.structs.replace(
        activity,
        targets=targets,
        join=join,
        sources=_sources(reader, at, languages),
        suppress_join_failure=suppress,
    )


def _targets(
    reader: XmlReader, at: ParsedElement, languages: Languages
) -> tuple[tuple[str, ...], Literal["any"] | Expr]:
    names: list[str] = []
    join: Literal["any"] | Expr = "any"
    for group in _of_bpel(at, "targets"):
        parts = reader.parts(group, {"joinCondition": 1, "target": MANY})
        names += [reader.needed(each, "linkName") for each in parts["target"]]
        for condition in parts["joinCondition"]:
            join = expression_of(reader, condition, languages)
    return tuple(names), join


def _sources(reader: XmlReader, at: ParsedElement, languages: Languages) -> tuple[LinkSource, ...]:
    found = []
    for group in _of_bpel(at, "sources"):
        for each in reader.parts(group, {"source": MANY})["source"]:
            conditions = reader.parts(each, {"transitionCondition": 1})["transitionCondition"]
            when = expression_of(reader, conditions[0], languages) if conditions else None
            found.append(LinkSource(link=reader.needed(each, "linkName"), when=when))
    return tuple(found)


def _of_bpel(at: ParsedElement, name: str) -> Iterator[ParsedElement]:
    """An activity of another namespace has its links in BPEL's."""
    return at.iterchildren(f"{{{BPEL}}}{name}")
