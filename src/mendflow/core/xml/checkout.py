"""Changes XML values: a tree is checked out, changed and checked in, and the next reader finds it without parsing.

A large document with small changes is neither parsed nor written anew each time. The tree comes from the cache; the
text of unchanged elements is reused; and the tree is cached under its new text. That is correct only if parsing the
text would give the same tree. So prefixes and declarations become those that were written, and a tree that might differ
in anything else is not cached."""

from typing import Final

from mendflow.core.xml.parser import DEFAULT_BOUNDS
from mendflow.core.xml.prefixes import EMPTY_SCOPE, ElementTag, Scope
from mendflow.core.xml.reader import TREE_CACHE
from mendflow.core.xml.tree import INDEX_MIN, Attribute, Element, SerializedElement, Text
from mendflow.core.xml.writer import TreeWriter, join_pieces, write_comment

LEVELS: Final = 3
"""How deep what was written is kept: each level takes the room of the text once more."""

NODES_AN_ELEMENT: Final = 3
CHARS_AN_ELEMENT: Final = 20


def check_out(text: str) -> Element:
    """The root element of a text, in a document of its own that may be changed. Raises BadXml."""
    return TREE_CACHE.take(text)


def check_in_unchanged(text: str, root: Element) -> None:
    """Keep a tree that was taken and did not change."""
    TREE_CACHE.keep(text, root, len(text) // CHARS_AN_ELEMENT)


def check_in(root: Element) -> str:
    """The text of a tree that was changed. It is others' from now on. Raises BadXml if nobody could read it again."""
    document = root.document
    assert document is not None and not document.shared, "a tree that others read is theirs already"
    writing = _NormalizingWriter()
    writing.element(root, EMPTY_SCOPE, {}, 1)
    text = join_pieces(writing.pieces)
    if writing.exact and document.children == [root]:
        TREE_CACHE.keep(text, root, NODES_AN_ELEMENT * writing.count)
    return text


class _NormalizingWriter(TreeWriter):
    """Makes each element what it will be read as. `exact` is whether all are."""

    def __init__(self) -> None:
        super().__init__(DEFAULT_BOUNDS)
        self.exact = True

    def opened(self, element: Element, tag: ElementTag) -> None:
        if tag.prefix != element.prefix or tag.declared != element.nsmap:
            element.prefix, element.nsmap = tag.prefix, tag.declared
        if "" in tag.declared.values():
            self.exact = False
        for name, attribute in tag.attributes:
            if attribute.ns:
                self._settle(attribute, name.partition(":")[0], tag.scope)

    def _settle(self, attribute: Attribute, prefix: str, scope: Scope) -> None:
        """The reader cannot tell which of two prefixes of a namespace an attribute was written with."""
        attribute.prefix = prefix
        if sum(uri == attribute.ns for each, uri in scope.items() if each) != 1:
            self.exact = False

    def content(self, element: Element, scope: Scope, depth: int) -> None:
        """What was written before is used again if it was written in the same place with the same prefixes around."""
        scope = _shared_scope(element, scope)
        keeping = depth < LEVELS and len(element.children) > INDEX_MIN
        beside = False
        for child in element.children:
            if isinstance(child, Element):
                beside = False
                found = child.written
                if found is not None and found.depth == depth and (found.scope is scope or found.scope == scope):
                    self.pieces.append(found.text)
                    self.count += found.elements
                elif keeping:
                    child.written = self._kept(child, scope, depth)
                else:
                    self.element(child, scope, {}, depth + 1)
            else:
                plain = type(child) is Text
                self.exact = self.exact and not (plain and (beside or not child.value))
                beside = plain
                self.pieces.append(write_comment(child))
        self.check_count()

    def _kept(self, child: Element, scope: Scope, depth: int) -> SerializedElement | None:
        """Write an element, and say what came of it if that may be used again."""
        exact, count, pieces = self.exact, self.count, self.pieces
        self.exact, self.pieces = True, []
        self.element(child, scope, {}, depth + 1)
        text = "".join(self.pieces)
        found = SerializedElement(text, self.count - count, depth, scope) if self.exact else None
        self.exact, self.pieces = self.exact and exact, pieces
        self.pieces.append(text)
        return found


def _shared_scope(element: Element, scope: Scope) -> Scope:
    """The scope, as the one that the first child was written in if that is the same: so the others need no look."""
    first = next(element.elements(), None)
    found = first.written if first is not None else None
    return found.scope if found is not None and found.scope == scope else scope
