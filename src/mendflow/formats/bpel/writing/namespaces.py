"""Prefixes of a written document: one for each namespace, and those that its expressions use.

An expression has its own prefixes. One with the same meaning everywhere is declared once, at the root; the others are
declared where they are used."""

from collections.abc import Iterable

from mendflow.core.model.expr import Expr
from mendflow.formats.bpel.expressions import PREFIX
from mendflow.formats.bpel.reader import split_name


class NamespacePrefixes:
    """`fixed` are prefixes that the document has in any case."""

    def __init__(self, fixed: dict[str, str], spoken: Iterable[Expr], texts: Iterable[str] = ()) -> None:
        self.root = dict(fixed)
        meant: dict[str, set[str]] = {}
        unsure = {prefix for text in texts for prefix in PREFIX.findall(text)}
        for expr in spoken:
            for prefix, uri in expr.namespaces:
                meant.setdefault(prefix, set()).add(uri)
            # A word before a colon that meant nothing must not begin to mean something.
            unsure |= set(PREFIX.findall(expr.text)) - {prefix for prefix, _ in expr.namespaces}
        for prefix, uris in sorted(meant.items()):
            if len(uris) == 1 and prefix not in unsure and prefix not in fixed:
                self.root[prefix] = next(iter(uris))
        self._unsure = unsure

    def name(self, full: str) -> str:
        """A name of the model as an attribute has it; empty if there is none."""
        if not full:
            return ""
        space, local = split_name(full)
        return f"{self.prefix(space)}:{local}" if space else local

    def prefix(self, space: str) -> str:
        found = next((prefix for prefix, uri in self.root.items() if uri == space), None)
        if found is None:
            numbers = (f"ns{number}" for number in range(1, len(self.root) + len(self._unsure) + 2))
            found = next(each for each in numbers if each not in self.root and each not in self._unsure)
            self.root[found] = space
        return found

    def declared(self, expr: Expr) -> dict[str, str]:
        """What an element has to declare for its expression."""
        return {f"xmlns:{prefix}": uri for prefix, uri in expr.namespaces if self.root.get(prefix) != uri}

    def attributes(self) -> dict[str, str]:
        """The declarations at the root, when all is written."""
        return {f"xmlns:{prefix}": uri for prefix, uri in self.root.items()}
