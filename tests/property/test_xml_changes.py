"""A tree that is taken, changed and kept is at every moment the tree that reading its text would give, and the text is
the one that a tree read anew and changed so would be written as."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.xml.checkout import check_in, check_out
from mendflow.core.xml.reader import read, read_shared
from mendflow.core.xml.tree import Attribute, Comment, Element, Instruction, Node, Text, cut, replace
from mendflow.core.xml.writer import copy_element, write

names = st.sampled_from(["a", "b", "p:a", "q:b", "b"])
words = st.sampled_from(["1", " x ", "p:a", "&amp;", "\u00e9", "", "1"])
aside = st.sampled_from(["<!--c-->", "<?go 2?>", "<?b?>"])
declared = st.sampled_from(["", "", "", "", ' xmlns="urn:q"', ' xmlns=""', ' xmlns:q="urn:r"', ' xmlns:r="urn:p"'])
attributes = st.sampled_from(["", "", ' x="1"', ' p:x="p:a"', ' q:y="2" x="&#9;"', ' xml:lang="en"'])


def _element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda name, own, marks, inner, times: f"<{name}{own}{marks}>{''.join(inner) * times}</{name}>",
        names,
        declared,
        attributes,
        st.lists(content, max_size=4),
        st.sampled_from([1, 1, 1, 4]),
    )


documents = st.builds(
    lambda before, own, inner, times: f'{before}<a xmlns:p="urn:p" xmlns:q="urn:q"{own}>{"".join(inner) * times}</a>',
    st.sampled_from(["", "", "<!--first-->"]),
    st.sampled_from(["", ' xmlns="urn:d"', ' p:x="1"']),
    st.lists(st.recursive(st.one_of(words, aside), _element, max_leaves=10), max_size=5),
    st.sampled_from([1, 4, 10]),
)
changes = st.lists(
    st.tuples(
        st.sampled_from(["text", "mark", "other mark", "element", "keep name", "own", "cut", "value"]),
        st.integers(0, 400),
        st.integers(0, 400),
        st.sampled_from(["7", "p:a", "", "<", "two words"]),
    ),
    min_size=1,
    max_size=6,
)
Change = tuple[str, int, int, str]


def shown(node: Node) -> Any:
    """All that can be seen of a node, and the order in which it would be written."""
    match node:
        case Element():
            marks = [(name, shown(mark)) for name, mark in node.attributes.items()]
            names = (node.ns, node.local, node.prefix, list(node.nsmap.items()))
            return names, marks, [shown(child) for child in node.children]
        case Attribute():
            return node.ns, node.local, node.prefix, node.value
        case Instruction():
            return "instruction", node.target, node.value
        case Text():
            return type(node).__name__, node.value
    raise AssertionError(node)


def changed(root: Element, other: Element, change: Change) -> None:
    """Do with a tree what copies do. The nodes are picked by number, so that two trees change alike."""
    how, place, source, text = change
    below = [root, *root.descendants()]
    node = below[place % len(below)]
    element = node if isinstance(node, Element) else root
    given = [each for each in (other, *other.descendants()) if isinstance(each, Element)]
    mine = [each for each in below if isinstance(each, Element)]
    match how:
        case "text":
            element.set_text(text)
        case "mark":
            element.set("", "x", text)
        case "other mark":
            element.set("urn:s", "nil", text)
        case "cut" if node is not root:
            cut(node)
        case "value" if type(node) is Text and node.parent is not None:
            node.parent.own()
            node.value = text
        case "element" | "keep name" | "own" if element is not root:
            new = copy_element((mine if how == "own" else given)[source % len(mine if how == "own" else given)])
            cut(new)
            if how != "keep name":
                new.ns, new.local, new.prefix = element.ns, element.local, element.prefix
            replace(element, new)


@given(documents, documents, changes)
def test_a_tree_that_was_changed_is_the_one_that_its_text_says(first: str, second: str, changing: list[Change]) -> None:
    text, other = first, read(second)
    for change in changing:
        mine, anew = check_out(text), read(text)
        for tree in (mine, anew):
            changed(tree, other, change)
        text = check_in(mine)
        assert text == write(anew)
        assert shown(read_shared(text)) == shown(read(text))
        document = read_shared(text).document
        assert document is not None and document.shared and len(document.children) == 1


def test_what_was_kept_is_not_read_again_and_nobody_else_changes_it() -> None:
    root = read(f"<a xmlns='urn:a'>{'<b><c>1</c></b>' * 20}</a>")
    text = check_in(root)
    assert read_shared(text) is root
    again = check_out(text)
    assert again is root
    assert isinstance(again.children[3], Element)
    again.children[3].set_text("two")
    later = check_in(again)
    assert read_shared(later) is root
    assert read_shared(text) is not root
    assert later == text.replace("<b><c>1</c></b>", "<b>two</b>", 4).replace("<b>two</b>", "<b><c>1</c></b>", 3)


def test_comments_beside_the_root_are_not_written_so_such_a_tree_is_not_kept() -> None:
    root = read("<!--c--><a/>")
    assert check_in(root) == "<a/>"
    assert read_shared("<a/>") is not root
    assert isinstance(root.document and root.document.children[0], Comment)
