"""Chooses prefixes for names. A name keeps its own prefix if that means the right namespace or can be made to; else it
takes one that does, or a new one. A prefix that one name of a tag uses is not redeclared on the same tag."""

from collections.abc import Mapping
from typing import Final

from mendflow.core.xml.tree import XML_NAMESPACE, Attribute, Element

Scope = Mapping[str, str]
"""Which prefix means which namespace at a place; the default one as ""."""

EMPTY_SCOPE: Final[Scope] = {"": "", "xml": XML_NAMESPACE}
"""What is in scope around a root element."""


class ElementTag:
    """An element's tag at a place: `name`, `attributes` as written, and what it has to declare, for itself and for what
    `inherited` says."""

    def __init__(self, element: Element, outer: Scope, inherited: Mapping[str, str]) -> None:
        self._outer = outer
        self._relied_on: set[str] = set()
        self.declared: dict[str, str] = {}
        if inherited or element.nsmap:
            self._declare_all({**inherited, **element.nsmap})
        self.prefix, self.name = self._written(element)
        self.attributes = [
            (self._written(each)[1] if each.ns else each.local, each) for each in element.attributes.values()
        ]
        self.scope: Scope = {**outer, **self.declared} if self.declared else outer

    def _declare_all(self, wanted: Mapping[str, str]) -> None:
        """Only what is not so already. Only the default namespace can be taken back."""
        for prefix, uri in wanted.items():
            if self._outer.get(prefix) != uri and (uri or not prefix):
                self.declared[prefix] = uri

    def _written(self, named: Element | Attribute) -> tuple[str, str]:
        prefix = self._prefix(named.ns, named.prefix, isinstance(named, Element))
        self._relied_on.add(prefix)
        return prefix, f"{prefix}:{named.local}" if prefix else named.local

    def _prefix(self, ns: str, prefix: str, bare: bool) -> str:
        """Attributes need one: without a prefix they are in no namespace, whatever the default is."""
        if (prefix or bare) and self._meaning(prefix) == ns:
            return prefix
        for each in (*self.declared, *self._outer):
            if (each or bare) and self._meaning(each) == ns:
                return each
        if not ns:
            prefix = ""
        elif prefix in self.declared or prefix in self._relied_on or prefix == "xml" or not (prefix or bare):
            prefix = self._another()
        self.declared[prefix] = ns
        return prefix

    def _meaning(self, prefix: str) -> str | None:
        found = self.declared.get(prefix)
        return found if found is not None else self._outer.get(prefix)

    def _another(self) -> str:
        number = 0
        while self._meaning(f"ns{number}") is not None:
            number += 1
        return f"ns{number}"
