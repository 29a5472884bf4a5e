"""What must not come in through the door for XML does not, and what comes in knows its line."""

import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mendflow.core.model.errors import BadFlow, BadRules
from mendflow.core.xml import XmlBounds, parse
from mendflow.core.xml.start_tags import overfull_tag_at

SMALL = XmlBounds(bytes=2000, depth=5, elements=20, attributes=3, attribute_chars=50, name_chars=30, text_chars=100)
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def refusal(data: bytes | str, bounds: XmlBounds = SMALL) -> str:
    with pytest.raises(BadFlow) as caught:
        parse(data, "doc.xml", bounds)
    return str(caught.value)


@pytest.mark.parametrize(
    ("attack", "line"),
    [
        (f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l9;</a>', 1),  # a bomb of entities
        (f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a b="&l9;"/>', 1),  # the same in an attribute
        ('<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', 2),
        ('<!-- c -->\n\n<!DOCTYPE a SYSTEM "http://127.0.0.1:1/evil.dtd"><a/>', 3),
        ('<!DOCTYPE a PUBLIC "-//X//Y" "http://127.0.0.1:1/evil.dtd"><a/>', 1),
        ('<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x"> %p;]><a/>', 1),
        ('<?a <!-- ?><!-- <a> --><!DOCTYPE a [<!ATTLIST a b CDATA "given">]><a/>', 1),
        ("<!doctype a><a/>", 1),
        ("<!ENTITY x 'y'><a/>", 1),
    ],
)
def test_a_document_type_is_refused_before_it_is_read(attack: str, line: int) -> None:  # FM-2
    said = refusal(attack, XmlBounds())
    assert said.startswith(f"doc.xml:{line}:")
    assert "a document type is not taken" in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32", "utf-7", "cp037"])
def test_no_encoding_leads_a_document_type_past_the_door(encoding: str) -> None:
    refusal('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'.encode(encoding), XmlBounds())


def test_an_external_document_type_makes_nobody_call_anywhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        refusal(f'<!DOCTYPE a SYSTEM "http://127.0.0.1:{port}/x.dtd"><a/>', XmlBounds())
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_file_of_the_disk_is_not_read_into_a_document(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    said = refusal(f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><a>&x;</a>', XmlBounds())
    assert "the secret" not in said


def test_an_inclusion_is_an_element_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    root = parse(
        f'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{tmp_path}/secret" parse="text"/></a>', "x"
    )
    assert "the secret" not in etree.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("<a>" * 6 + "</a>" * 6, "more than 5 deep"),
        ("<a>" + "<b/>" * 20 + "</a>", "more than 20 elements"),
        ('<a b="1" c="2" d="3" e="4"/>', "more than 3 attributes"),
        ("<a xmlns:b='1' xmlns:c='2' xmlns:d='3' xmlns:e='4'/>", "more than 3 attributes"),
        (f'<a b="{"x" * 51}"/>', "the attribute b has more than 50 characters"),
        (f'<a {"b" * 40}="x"/>', "too long a name"),
        (f"<{'a' * 31}/>", "a name of more than 30 characters"),
        (f"<a>{'x' * 101}</a>", "the text of <a> has more than 100 characters"),
        (f"<a>{'x' * 60}<b/>{'x' * 60}</a>", "the text of <a> has more than 100 characters"),
        (f"<a>{'x' * 60}<!-- c -->{'x' * 60}</a>", "the text of <a> has more than 100 characters"),
        (f"<a>{' ' * 2000}</a>", "at most"),
    ],
)
def test_what_is_beyond_its_bounds_is_refused(document: str, said: str) -> None:  # FM-2
    assert said in refusal(document)


@pytest.mark.parametrize("attack", ["<a>" * 1_000_000, "<a b='" + "x" * 9_000_000 + "'/>", "<" + "a" * 9_000_000])
def test_what_is_huge_is_refused_with_the_usual_bounds(attack: str) -> None:
    refusal(attack, XmlBounds())


def test_many_elements_end_the_reading_long_before_the_end() -> None:
    said = refusal("<a>\n" + "<b/>\n" * 1_000_000 + "</a", XmlBounds(elements=1000))
    assert "more than 1,000 elements" in said  # and not that the end is missing


@pytest.mark.parametrize(
    ("document", "line", "said"),
    [
        ("", 1, "does not begin with an element"),
        ("words", 1, "does not begin with an element"),
        ("<a>\n<b>", 2, "ends before all its elements are closed"),
        ("<a>\n</b>", 2, "closed that is not the one"),
        ("<a/>\n<b/>", 2, "after the end"),
        ("<a>\n\n&nbsp;</a>", 3, "an entity that XML does not know"),
        ("<a b='&copy;'/>", 1, "an entity that XML does not know"),
        ("<a b='1' b='2'/>", 1, "the same attribute twice"),
        ("<a b=1/>", 1, "quotation marks"),
        ("<a>\n<x:b/></a>", 2, "a prefix is used"),
        ("<a>\n<b xmlns:x='http://a b'/></a>", 2, "a namespace that is no URI"),
        ("<a>\x01</a>", 1, "a character that XML cannot hold"),
        (b"<a>\n\xff</a>", 2, "save the file as UTF-8"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', 1, "it says that it is in utf-7"),
        ("<a>\ud800</a>", 1, "half a character"),
        ("<a>a & b</a>", 1, "&amp;"),
    ],
)
def test_what_is_no_xml_is_told_in_plain_words_with_its_line(document: bytes | str, line: int, said: str) -> None:
    told = refusal(document)
    assert told.startswith(f"doc.xml:{line}:")
    assert said in told
    assert "this is not XML" in told


def test_whoever_asks_says_what_kind_of_refusal_it_is() -> None:
    with pytest.raises(BadRules):
        parse("<a", "x", refusal=BadRules)


def test_lines_are_known_however_many_there_are() -> None:
    assert parse("<a>" + "\n" * 100_000 + "<b/></a>", "x")[0].sourceline == 100_001


def test_encodings_that_are_said_are_understood() -> None:
    for data in (
        '<?xml version="1.0" encoding="iso-8859-1"?><a>Maß</a>'.encode("latin-1"),
        "<a>Maß</a>".encode("utf-16"),
    ):
        assert parse(data, "x").text == "Maß"
    assert parse('<?xml version="1.0" encoding="utf-16"?><a>Maß</a>', "x").text == "Maß"


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    try:
        parse(data, "x")
    except BadFlow as error:
        assert error.problems


MANY = " ".join(f'a{number}="x"' for number in range(40_000))


@pytest.mark.parametrize("before", ["", '<?xml version="1.0"?>\n', "<!-- <b/> --><a b='>'>", "<a><![CDATA[<!--]]>"])
@pytest.mark.parametrize(
    "tag", [f"<b {MANY}/>", f"<b {MANY} c=<", f"<b\n{MANY.replace(' ', chr(10))}", f"<x:é {MANY}>"]
)
def test_very_many_attributes_are_refused_before_they_are_read(before: str, tag: str) -> None:
    for data in (text := before + tag), text.encode(), text.encode("utf-16"):
        begun = time.thread_time()
        assert "more than 256 attributes" in refusal(data, XmlBounds())
        assert time.thread_time() - begun < 2  # the parser takes many times that


def test_what_only_looks_like_a_tag_with_many_attributes_is_taken() -> None:
    tag = f"<b {MANY}/>"
    text = f"<?i {tag}?><!-- {tag} --><a><![CDATA[{tag}]]><!--{tag}--><?i {tag}?>{tag[1:]}<c d='{tag[1:60_000]}'/></a>"
    assert len(parse(text.replace("d='", "d='>"), "x")) == 3


def test_many_namespaces_around_many_elements_are_read_in_little_time() -> None:
    around = "<a " + " ".join(f'xmlns:a{number}="x"' for number in range(255)) + ">"
    begun = time.thread_time()
    parse(around * 99 + "<b xmlns:a0='y'/>" * 2_000 + "</a>" * 99, "x")
    assert time.thread_time() - begun < 4


@given(st.lists(st.sampled_from([*"<>=/'\"! b", ' b="c"', "<b", "<!--", "-->", "<![CDATA[", "]]>", "<?i", "?>"])))
def test_no_tag_is_taken_for_one_with_more_attributes(parts: list[str]) -> None:
    text = f"<a>{''.join(parts)}</a>"
    try:
        most = max(len(each.attrib) for each in etree.fromstring(text).iter("*"))
    except etree.XMLSyntaxError:
        return
    assert overfull_tag_at(text, most) is None
    assert most == 0 or overfull_tag_at(text, most - 1) is not None
