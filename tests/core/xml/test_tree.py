"""Trees of XML: what is written stands for itself and can be read again, and nobody changes what others read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mendflow.core.xml import BadXml, XmlBounds
from mendflow.core.xml.reader import TreeCache, read, read_shared
from mendflow.core.xml.tree import Comment, Element, Instruction, Text, cut, in_own_document, position, replace
from mendflow.core.xml.writer import copy_element, write

ORDER = (
    '<o:order xmlns:o="urn:o" xmlns:x="urn:x" xmlns:t="urn:t" xmlns="urn:d">'
    '<item x:kind="t:Pen">a &amp; b &lt; c</item><o:plain xmlns="">1<inner/></o:plain><!--c--><?go on?> tail</o:order>'
)
prefixes = st.sampled_from(["", "p", "q", "ns0"])
namespaces = st.sampled_from(["", "urn:1", "urn:2", "urn:3"])
texts = st.text(alphabet="a<>&\"' \r\n\t\u00e9\U0001f600:", max_size=8)


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> Element:
    """Trees as assignments leave them: prefixes and declarations that need not fit the names at all."""
    declared = draw(st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from(["urn:1", "urn:2"]), max_size=2))
    made = Element(draw(namespaces), draw(st.sampled_from("abc")), draw(prefixes), declared)
    for ns in draw(st.lists(namespaces, unique=True, max_size=3)):
        made.set(ns, "x", draw(texts), draw(prefixes) if ns else "")
    for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
        made.append(draw(st.one_of(elements(depth + 1), st.builds(Text, texts.filter(bool)))))
    return made


def shape(element: Element) -> object:
    """All that an element means, whatever its prefixes are."""
    pieces: list[object] = []
    for child in element.children:
        if isinstance(child, Element):
            pieces.append(shape(child))
        elif pieces and isinstance(pieces[-1], str):
            pieces[-1] += child.value
        else:
            pieces.append(child.value)
    return element.name, {name: each.value for name, each in element.attributes.items()}, pieces


@given(elements())
def test_what_is_written_means_the_same_when_it_is_read(made: Element) -> None:  # FM-1
    text = write(in_own_document(made))
    assert shape(read(text)) == shape(made)
    again = write(read(text))
    assert write(read(again)) == again
    assert etree.fromstring(text) is not None


@given(elements())
def test_a_copy_of_any_part_means_the_same_and_is_its_own(made: Element) -> None:
    in_own_document(made)
    for part in [made, *(node for node in made.descendants() if isinstance(node, Element))]:
        again = copy_element(part)
        assert shape(again) == shape(part)
        assert again.document is not part.document
        assert write(again) == write(part)


def test_a_text_is_written_as_it_was_read() -> None:
    assert write(read(ORDER)) == ORDER


def test_an_element_takes_along_what_its_names_and_contents_mean() -> None:
    item = next(read(ORDER).elements())
    assert write(item) == '<item xmlns:x="urn:x" xmlns:t="urn:t" xmlns="urn:d" x:kind="t:Pen">a &amp; b &lt; c</item>'
    bare = list(read(ORDER).elements())[1]
    assert write(bare) == '<o:plain xmlns:o="urn:o">1<inner/></o:plain>'


def test_an_element_keeps_its_namespace_where_its_prefix_means_another() -> None:
    outer = read('<p:a xmlns:p="urn:1"/>')
    outer.append(Element("urn:2", "b", "p"))
    outer.set("urn:3", "x", "1", "p")
    outer.set("urn:4", "y", "2")
    text = write(outer)
    assert (
        text
        == '<p:a xmlns:p="urn:1" xmlns:ns0="urn:3" xmlns:ns1="urn:4" ns0:x="1" ns1:y="2"><p:b xmlns:p="urn:2"/></p:a>'
    )
    assert shape(read(text)) == shape(outer)


def test_an_element_without_a_namespace_takes_the_default_one_back() -> None:
    outer = read('<a xmlns="urn:1"/>')
    outer.append(Element("", "b"))
    assert write(outer) == '<a xmlns="urn:1"><b xmlns=""/></a>'


def test_nodes_are_cut_replaced_and_put_in() -> None:
    root = read("<a x='1'>t<b/><c/></a>")
    text, first, second = root.children
    replace(first, Text("now"))
    cut(text)
    cut(root.attributes["x"])
    root.insert(0, Comment("here"))
    root.append(Instruction("go", "on"))
    assert position(second) == 2
    assert write(root) == "<a><!--here-->now<c/><?go on?></a>"
    root.set_text("<new>")
    assert write(root) == "<a>&lt;new&gt;</a>"
    assert second.parent is None


def test_a_tree_that_is_shared_is_not_changed() -> None:
    text = "<a x='1'><b/></a>"
    assert read_shared(text) is read_shared(text)
    root = read_shared(text)
    for change in (
        root.clear,
        lambda: root.set("", "x", "2"),
        lambda: cut(root.children[0]),
        lambda: root.set_text("x"),
    ):
        with pytest.raises(AssertionError):
            change()
    assert write(root) == '<a x="1"><b/></a>'
    assert read(text) is not read(text)


def test_texts_are_kept_as_far_as_there_is_room() -> None:
    kept = TreeCache(room=40)
    texts = [f"<a>{'<b/>' * 9}{number}</a>" for number in range(6)]
    first, *_ = trees = [kept.tree(text) for text in texts]
    assert kept.tree(texts[5]) is trees[5]
    assert kept.tree(texts[4]) is trees[4]
    assert kept.tree(texts[0]) is not first
    assert kept.tree(texts[4]) is trees[4]


@pytest.mark.parametrize("large", ["<b/>" * 99, "x" * 99_999, "<b x='1'/>" * 40])
def test_the_last_text_is_kept_however_large_and_makes_room_for_the_next(large: str) -> None:
    kept, large = TreeCache(room=40), f"<a>{large}</a>"
    small, tree = kept.tree("<a/>"), kept.tree(large)
    assert kept.tree(large) is tree
    assert kept.tree("<a/>") is not small
    assert kept.tree(large) is not tree


def test_children_are_found_by_their_name_after_any_change() -> None:
    root = read(f"<a xmlns:p='urn:p'>{'<b/>x<p:b/><c/>' * 20}</a>")

    def right() -> bool:
        pairs = (("", "b"), ("urn:p", "b"), ("", "c"), ("", "d"))
        every = list(root.elements())
        return all(root.named(ns, local) == [e for e in every if (e.ns, e.local) == (ns, local)] for ns, local in pairs)

    assert right()
    root.insert(3, Element("", "d"))
    assert right()
    cut(root.named("", "b")[7])
    assert right()
    replace(root.named("", "c")[0], Element("urn:p", "b"))
    assert right()
    root.set_text("none")
    assert right()


@pytest.mark.parametrize("inner", ["<b/>", "<b xmlns=''/>", "<b xmlns:q='urn:q'/>", "<q:b xmlns:q='urn:r'/>", "xmlns"])
def test_what_is_declared_stays_where_it_stands(inner: str) -> None:
    root = read(f"<a xmlns='urn:a' xmlns:p='urn:p'><p:b p:x='1' y='2'>{inner}</p:b></a>")
    names = [(e.ns, e.local, e.prefix, e.nsmap) for e in (root, *root.descendants()) if isinstance(e, Element)]
    tree = etree.fromstring(f"<a xmlns='urn:a' xmlns:p='urn:p'><p:b p:x='1' y='2'>{inner}</p:b></a>")
    theirs = [(etree.QName(e).namespace or "", etree.QName(e).localname, e.prefix or "") for e in tree.iter()]
    assert [each[:3] for each in names] == theirs
    assert names[0][3] == {"": "urn:a", "p": "urn:p"} and names[1][3] == {}
    assert write(root) == write(read(write(root)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a><b></a>", "not XML"),
        ("", "not XML"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "a document type is not taken"),
        ("<a>" * 200 + "</a>" * 200, "more than 100 deep"),
    ],
)
def test_what_does_not_pass_the_door_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadXml, match=said):
        read(text)


def test_nothing_is_written_that_could_not_be_read_again() -> None:
    """A value that is put into itself again and again must not become one that nobody can look at any more."""
    small = XmlBounds(bytes=200, depth=4, elements=6, attributes=2, attribute_chars=10, text_chars=20)
    deep = read("<a><a><a><a><a/></a></a></a></a>")
    many = read("<a><b/><b/><b/><b/><b/><b/></a>")
    attributes = read("<a x='1' y='2' z='3'/>")
    long = read(f"<a x='{'1' * 11}'/>")
    wordy = read(f"<a>{'1' * 11}<b/>{'1' * 11}</a>")
    large = read(f"<a><b>{'1' * 20}</b><b>{'1' * 20}</b><c x='&amp;&amp;&amp;&amp;&amp;&amp;&amp;&amp;'/></a>")
    large.set_text("&" * 20)
    large.append(Comment("x" * 100))
    odd = read("<a/>")
    odd.set_text("\x00")
    spaces = read("<a xmlns:p='urn:1'><b xmlns:q='urn:2'/></a>")
    for tree in (deep, many, attributes, long, wordy, large, odd, spaces):
        with pytest.raises(BadXml):
            write(tree, small)
