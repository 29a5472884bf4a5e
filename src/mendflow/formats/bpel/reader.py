"""Takes documents apart: elements of BPEL, WSDL and XML Schema are understood or refused with file and line; extensions
are ignored, as the specifications require."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.errors import Problem
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.names import elements, local_name, namespace, qualified_name
from mendflow.formats.spelling import nearest_word

BOOLEANS: Final = {"yes": True, "no": False}
MANY: Final = 1_000_000
OPAQUE: Final = "##opaque"
SHOWN_CHARS: Final = 80
PROBLEMS_MAX: Final = 500
"""The maximum number of reported problems."""

ADDRESSES: Final = frozenset({"namespace", "targetNamespace", "location"})
"""Attributes that may be empty and say something by it."""


class SourceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An XML file that was read. `location` is its path as seen from the process's folder, `file` what people call
    it."""

    root: ParsedElement
    file: str
    location: str


class XmlReader:
    """What is wrong so far, in one document."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems

    def problem(self, at: ParsedElement, message: str, suggestion: str = "") -> None:
        found = Problem(file=self.file, line=at.sourceline or 0, message=message, suggestion=suggestion)
        if len(self.problems) < PROBLEMS_MAX and found not in self.problems:
            self.problems.append(found)

    # elements

    def parts(self, at: ParsedElement, known: Mapping[str, int]) -> dict[str, list[ParsedElement]]:
        """The elements of its own namespace in an element, by their names; `known` says how often each may stand.
        Documentation may stand anywhere, and so may what others have added."""
        found: dict[str, list[ParsedElement]] = {name: [] for name in known}
        space = namespace(at)
        if stray := text_of(at).strip():
            self.problem(at, f"<{local_name(at)}> holds elements and no text; it has {abbreviate(stray)}")
        for child in elements(at):
            name = local_name(child)
            if namespace(child) != space or name == "documentation":
                continue
            if name.startswith("opaque"):
                self.problem(child, f"<{name}> is for abstract processes and says nothing that can be done; replace it")
            elif name not in known:
                self.problem(child, f"<{local_name(at)}> has no <{name}>", nearest_word(name, known))
            elif len(found[name]) >= known[name]:
                self.problem(child, f"<{name}> may stand {times_text(known[name])} in <{local_name(at)}>")
            else:
                found[name].append(child)
        return found

    def only(self, at: ParsedElement, known: Iterable[str]) -> None:
        """Refuse attributes that are not known, and names that are empty. Those of other namespaces are others'
        business."""
        for name in map(str, at.keys()):
            if not name.startswith("{") and name not in known:
                self.problem(at, f"<{local_name(at)}> has no attribute `{name}`", nearest_word(name, known))
            elif name in known and name not in ADDRESSES and not at.get(name, "").strip():
                self.problem(at, f"`{name}` of <{local_name(at)}> is empty: say what it is, or leave it out")

    def needed(self, at: ParsedElement, name: str) -> str:
        """An attribute that must be there."""
        value = at.get(name, "").strip()
        if value == OPAQUE:
            self.problem(at, f"`{name}` of <{local_name(at)}> is left open, as in abstract processes: say what it is")
        if not value:
            self.problem(at, f"<{local_name(at)}> needs the attribute `{name}`")
        return value

    def truth(self, at: ParsedElement, name: str, otherwise: bool = False) -> bool:
        value = at.get(name, "").strip()
        if value and value not in BOOLEANS:
            self.problem(at, f"`{name}` of <{local_name(at)}> is yes or no, not {abbreviate(value)}")
        return BOOLEANS.get(value, otherwise)

    def one_of(self, at: ParsedElement, name: str, known: Sequence[str], otherwise: str) -> str:
        """The word of ours that an attribute says, and not a copy of it: what is written of a flow leaves out words
        that are the usual ones, and tells them by their identity."""
        value = at.get(name, "").strip() or otherwise
        if value not in known:
            self.problem(at, f"`{name}` of <{local_name(at)}> is {' or '.join(known)}, not {abbreviate(value)}")
            return otherwise
        return known[known.index(value)]

    # names

    def qname(self, at: ParsedElement, name: str) -> str:
        """The qualified name in an attribute; empty if it is not there."""
        value = at.get(name, "").strip()
        return self.resolved(at, value) if value else ""

    def qname_needed(self, at: ParsedElement, name: str) -> str:
        value = self.needed(at, name)
        return self.resolved(at, value) if value else ""

    def resolved(self, at: ParsedElement, value: str) -> str:
        """A name with a prefix, as `{namespace}local`. Without one it is of the default namespace."""
        prefix, colon, name = value.rpartition(":")
        space = at.nsmap.get(prefix or None)
        if (colon and space is None) or not name:
            self.problem(at, f"no xmlns says what the prefix of {abbreviate(value)} means")
        elif len(value.split()) > 1:
            self.problem(at, f"{abbreviate(value)} is no name: it has a space in it")
        return qualified_name(str(space or ""), name)


def text_of(at: ParsedElement) -> str:
    """The text in an element itself, whatever else stands between its pieces."""
    return "".join([at.text or "", *(child.tail or "" for child in at)])


def abbreviate(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "...")


def times_text(number: int) -> str:
    return "only once" if number == 1 else f"only {number} times"


def split_name(name: str) -> tuple[str, str]:
    """The namespace and the local part of a name as the model writes it, whatever characters it has."""
    space, _, rest = name.rpartition("}")
    return space[1:], rest
