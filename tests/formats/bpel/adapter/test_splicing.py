"""A text is changed where it is wanted, and nowhere else."""

from lxml import etree

from mendflow.formats.bpel.adapter.text_edits import TextEditor

TEXT = """<?xml version='1.0' encoding='ISO-8859-1'?>\r
<a one = '>' two="/b>"><!-- <b> --><b  x='1'\ty="2" ><![CDATA[<c/>]]>\u00fc<c/></b><c /></a><?end?>"""


def splice() -> tuple[TextEditor, etree._Element]:
    root = etree.fromstring(TEXT.partition("?>")[2])
    return TextEditor(TEXT, root), root


def test_a_text_without_changes_is_the_same_but_for_its_encoding() -> None:
    unchanged, _ = splice()
    assert unchanged.result().decode() == TEXT.replace("'ISO-8859-1'", '"UTF-8"')


def test_an_element_goes_from_its_first_tag_to_its_last() -> None:
    texts, root = splice()
    assert texts.text_of(root[1]) == "<b  x='1'\ty=\"2\" ><![CDATA[<c/>]]>\u00fc<c/></b>"
    assert texts.text_of(root[2]) == "<c />"


def test_an_attribute_gets_another_value_and_the_others_stay() -> None:
    changed, root = splice()
    changed.set(root[1], "x", 'a<b&"c"')
    assert '<b  x="a&lt;b&amp;&quot;c&quot;"\ty="2" >' in changed.result().decode()


def test_what_is_put_in_has_the_line_ends_of_the_document() -> None:
    changed, root = splice()
    changed.replace(root[2], "<d>\n</d>\r\n")
    assert "<d>\r\n</d>\r\n</a>" in changed.result().decode()


def test_a_change_within_another_is_seen_in_what_the_outer_one_takes_over() -> None:
    changed, root = splice()
    changed.replace(root[1][0], "<d/>")
    changed.replace(root[1], f"[{changed.text_of(root[1])}]")
    changed.put_after(root[2], "!")
    changed.put_inside(root, "?")
    assert (
        changed.result()
        .decode()
        .endswith('two="/b>">?<!-- <b> -->[<b  x=\'1\'\ty="2" ><![CDATA[<c/>]]>\u00fc<d/></b>]<c />!</a><?end?>')
    )
