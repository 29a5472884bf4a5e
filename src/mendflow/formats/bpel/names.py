"""Names: qualified ones in the model's notation, and a unique one for each activity.

BPEL does not require unique names, the model does. Leaves get theirs first, in document order, then the activities
around them: so an invoke keeps its name, and the scope for its handlers gets another. A second use gets `~2`, which no
BPEL name contains, so the original name is the part before it."""

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from mendflow.core.xml import ParsedElement

LEAVES: Final = frozenset(
    {"receive", "reply", "invoke", "assign", "throw", "rethrow", "exit", "wait", "empty", "compensate"}
    | {"compensateScope", "validate", "extensionActivity"}
)
STRUCTURES: Final = frozenset({"sequence", "flow", "if", "while", "repeatUntil", "forEach", "pick", "scope"})
ACTIVITIES: Final = LEAVES | STRUCTURES
OPAQUE_ELEMENTS: Final = frozenset({"literal", "documentation", "extensionActivity", "extensionAssignOperation"})
NOT_NAME_CHARS: Final = re.compile(r"[^\w.-]")


def local_name(at: ParsedElement) -> str:
    return etree.QName(at).localname


def namespace(at: ParsedElement) -> str:
    return etree.QName(at).namespace or ""


def elements(at: ParsedElement) -> Iterator[ParsedElement]:
    """Those directly in it, without comments and instructions."""
    return (child for child in at if isinstance(child.tag, str))


def own_elements(at: ParsedElement, *names: str) -> Iterator[ParsedElement]:
    """The elements of its own namespace directly in it, of these names or of any."""
    space = namespace(at)
    return (child for child in elements(at) if namespace(child) == space and (not names or local_name(child) in names))


def activities_in(at: ParsedElement) -> Iterator[ParsedElement]:
    """All activities in an element, in the order of the document. What stands in literals, in documentation or in what
    others have added is none."""
    for child in own_elements(at):
        if local_name(child) in ACTIVITIES:
            yield child
        if local_name(child) not in OPAQUE_ELEMENTS:
            yield from activities_in(child)


def qualified_name(space: str, name: str) -> str:
    """`{namespace}local`, or bare."""
    return f"{{{space}}}{name}" if space else name


class ActivityNames:
    """The names of the activities of one process."""

    def __init__(self, process: ParsedElement) -> None:
        self._of: dict[ParsedElement, str] = {}
        self._claims: dict[str, int] = {}
        inside = list(activities_in(process))
        for each in inside:
            if local_name(each) in LEAVES:
                self._of[each] = self.claim(written_name(each))
        self._scope_names: dict[ParsedElement, str] = {}
        for each in (process, *inside):
            if each not in self._of:
                self._of[each] = self.claim(written_name(each))
            elif needs_scope(each):
                self._scope_names[each] = self.claim(written_name(each))

    def claim(self, name: str) -> str:
        self._claims[name] = number = self._claims.get(name, 0) + 1
        return name if number == 1 else f"{name}~{number}"

    def of(self, at: ParsedElement) -> str:
        return self._of[at]

    def of_scope_for(self, at: ParsedElement) -> str:
        """The name of the scope that stands around an activity for the sake of its own handlers."""
        return self._scope_names[at]


def written_name(at: ParsedElement) -> str:
    """The name that the document gives, or what kind of activity it is."""
    inner = next(elements(at), None) if local_name(at) == "extensionActivity" else None
    given = (at if inner is None else inner).get("name", "").strip()
    return NOT_NAME_CHARS.sub("_", given) or local_name(at if inner is None else inner)


def needs_scope(at: ParsedElement) -> bool:
    """Whether an invoke has handlers of its own, and so means a scope with the invoke in it."""
    return (
        local_name(at) == "invoke"
        and next(own_elements(at, "catch", "catchAll", "compensationHandler"), None) is not None
    )
