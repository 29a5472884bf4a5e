"""The writer of activities, and the attributes that are inherited."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mendflow.core.engine.faults import STANDARD
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Activity, ActivityNode, OnMessage, Receive, Reply
from mendflow.core.model.xml import XmlMessage
from mendflow.formats.bpel.writing.element_writer import ElementWriter
from mendflow.formats.bpel.writing.namespaces import NamespacePrefixes
from mendflow.formats.bpel.writing.tags import XmlTag, new_tag


class InheritedAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """What holds where nothing is said."""

    suppress_join_failure: bool = False
    exit_on_standard_fault: bool = False


ActivityWriter = Callable[["ProcessWriter", Any, InheritedAttributes], XmlTag]


class ProcessWriter:
    """Writes the activities of one process."""

    def __init__(self, spaces: NamespacePrefixes, writers: Mapping[type[ActivityNode], ActivityWriter]) -> None:
        self.spaces, self.parts = spaces, ElementWriter(spaces)
        self._writers = writers

    def activity(self, at: Activity, inherited: InheritedAttributes) -> XmlTag:
        inside = msgspec.structs.replace(inherited, suppress_join_failure=at.suppress_join_failure)
        made = self._writers[type(at)](self, at, inside)
        return self.with_standard(made, at, inherited)

    def with_standard(self, made: XmlTag, at: ActivityNode, inherited: InheritedAttributes) -> XmlTag:
        """The activity with its name and its links."""
        name = written_name(at.name)
        given = {"name": name if f"bpel:{name}" != made.name else ""}
        if at.suppress_join_failure != inherited.suppress_join_failure:
            given["suppressJoinFailure"] = "yes" if at.suppress_join_failure else "no"
        made.attributes = {key: value for key, value in given.items() if value} | made.attributes
        links = [each for each in (self._targets(at), self._sources(at)) if each is not None]
        made.children[:0] = links
        return made

    def _targets(self, at: ActivityNode) -> XmlTag | None:
        if not at.targets:
            return None
        join = self.parts.expression("joinCondition", at.join) if isinstance(at.join, Expr) else None
        return new_tag(
            "bpel:targets", {}, join, *(new_tag("bpel:target", {"linkName": written_name(name)}) for name in at.targets)
        )

    def _sources(self, at: ActivityNode) -> XmlTag | None:
        if not at.sources:
            return None
        found = []
        for each in at.sources:
            when = self.parts.expression("transitionCondition", each.when) if each.when is not None else None
            found.append(new_tag("bpel:source", {"linkName": written_name(each.link)}, when))
        return new_tag("bpel:sources", {}, *found)

    def fault(self, name: str) -> str:
        """A fault's name as an attribute has it: those of the standard are in its namespace."""
        return f"bpel:{name}" if name in STANDARD else self.spaces.name(name)

    def when(self, duration: Expr | int | None, until: Expr | int | None) -> list[XmlTag]:
        found = []
        if duration is not None:
            found.append(self.parts.expression("for", self.duration(duration)))
        if until is not None:
            assert isinstance(until, Expr), "an instant in milliseconds was refused before"
            found.append(self.parts.expression("until", until))
        return found

    def duration(self, value: Expr | int) -> Expr:
        return value if isinstance(value, Expr) else Expr(f"'PT{value / 1000:g}S'", XPATH)

    def number(self, value: Expr | int | None) -> Expr:
        return value if isinstance(value, Expr) else Expr(str(value or 0), XPATH)

    def message(self, at: Receive | Reply | OnMessage) -> XmlMessage:
        assert at.xml is not None, "what has no message was refused before"
        return at.xml


def written_name(name: str) -> str:
    """The name as a process has it: the reader numbers those that stand there twice."""
    return name.partition("~")[0]
