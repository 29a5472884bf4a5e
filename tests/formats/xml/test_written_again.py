"""XML that is read and written again is what it was."""

from hypothesis import given
from hypothesis import strategies as st

from mendflow.formats.xml.markup import MarkupComment, MarkupElement, MarkupInstruction, parse_xml, serialize


def test_the_tree_has_tags_comments_and_namespaces_as_they_were_written() -> None:
    inner = 'x<d/>y<!--z--><e xmlns="w" xml:lang="de"/>'
    text = f'<?go on?><!--c--><p:a xmlns:p="u" xmlns="v" p:b="1" c="2">{inner}</p:a><?end?>'
    root = parse_xml(text, "x")
    assert (root.tag, root.attributes) == ("p:a", {"xmlns:p": "u", "xmlns": "v", "p:b": "1", "c": "2"})
    assert root.children[:3] == [MarkupInstruction("go", "on"), MarkupComment("c"), "x"]
    assert root.children[-1] == MarkupInstruction("end", "")
    assert [(each.tag, each.attributes) for each in root.elements()] == [
        ("d", {}),
        ("e", {"xmlns": "w", "xml:lang": "de"}),
    ]
    again = parse_xml(serialize(root), "x")
    assert serialize(again) == serialize(root)


TEXTS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20)


def trees() -> st.SearchStrategy[MarkupElement]:
    tags, attributes = st.sampled_from(["a", "b", "c-d"]), st.dictionaries(st.sampled_from(["x", "y"]), TEXTS)
    leaves = st.builds(
        lambda tag, given, text: MarkupElement(tag, given, [text] if text else []), tags, attributes, TEXTS
    )
    return st.recursive(
        leaves,
        lambda inner: st.builds(lambda tag, children: MarkupElement(tag, {}, children), tags, st.lists(inner)),
        max_leaves=8,
    )


@given(trees())
def test_what_is_written_comes_in_the_same(tree: MarkupElement) -> None:
    assert serialize(parse_xml(serialize(tree), "x")) == serialize(tree)
