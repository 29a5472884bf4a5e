"""Names and prefixes that a document does not use yet."""

from lxml import etree

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.reader import split_name


class UniqueNames:
    """What a process calls things: everything that could be a name stands in an attribute of it."""

    def __init__(self, process: ParsedElement) -> None:
        self._taken = {str(value) for each in process.iter(etree.Element) for value in each.attrib.values()}

    def name(self, wanted: str) -> str:
        """A name with which no other begins, so that numbers may follow it."""
        number, found = 1, wanted
        while any(each.startswith(found) for each in self._taken):
            number += 1
            found = f"{wanted}_{number}_"
        return found


class PrefixScope:
    """The prefixes in the scope of an element, and those that something new inside it has to declare."""

    def __init__(self, element: ParsedElement) -> None:
        self._known_prefixes = {prefix: uri for prefix, uri in element.nsmap.items() if prefix}
        self.declared: dict[str | None, str] = {}

    def of(self, space: str, wanted: str = "ns") -> str:
        """A prefix that means this namespace."""
        known = {**self._known_prefixes, **{str(prefix): uri for prefix, uri in self.declared.items()}}
        if (found := next((prefix for prefix, uri in known.items() if uri == space), None)) is not None:
            return found
        made, number = wanted, 1
        while made in known:
            number += 1
            made = f"{wanted}{number}"
        self.declared[made] = space
        return made

    def written(self, name: str, wanted: str = "ns") -> str:
        """A name of the model as it is written in an attribute."""
        space, local = split_name(name)
        return f"{self.of(space, wanted)}:{local}" if space else local
