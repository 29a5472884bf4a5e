"""Style sheets make one document of another, and touch nothing else."""

from pathlib import Path

import pytest

from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_value
from mendflow.core.xml.style_sheets import StyleSheetFailed, StyleSheetNotFound, transform

HEAD = 'xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"'
ECHO = f"""<xsl:stylesheet {HEAD}><xsl:template match="@*|node()"><xsl:copy>
<xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template></xsl:stylesheet>"""


def sheet(inner: str, top: str = "") -> str:
    return f'<xsl:stylesheet {HEAD}>{top}<xsl:template match="/">{inner}</xsl:template></xsl:stylesheet>'


def ran(text: str, source: str = "<a/>", params: tuple[tuple[str, Value], ...] = (), **others: str) -> Value:
    return transform({"main.xsl": text, **others}, "main.xsl", source, params)


def test_a_sheet_that_copies_gives_the_element_again() -> None:
    assert ran(ECHO, '<a x="1"><b/></a>') == element_value('<a x="1"><b/></a>')


def test_an_element_comes_with_the_namespaces_that_it_uses() -> None:
    made = ran(sheet('<o:x xmlns:o="urn:o"><o:y/></o:x>'))
    assert made == element_value('<o:x xmlns:o="urn:o"><o:y/></o:x>')


def test_where_no_element_is_made_the_text_is_the_result() -> None:
    assert ran(sheet("<xsl:value-of select='1 + 1'/>", '<xsl:output method="text"/>')) == "2"
    assert ran(sheet("")) == ""


@pytest.mark.parametrize("inner", ["<a/><b/>", "<!--c--><a/><b/><c/>"])
def test_several_elements_side_by_side_are_no_document(inner: str) -> None:
    with pytest.raises(StyleSheetFailed, match="elements side by side"):
        ran(sheet(inner.replace("<!--c-->", "<xsl:comment>c</xsl:comment>")))
    assert ran(sheet("<xsl:comment>c</xsl:comment><a/>")) == element_value("<a/>")


@pytest.mark.parametrize(
    ("value", "seen"),
    [('it\'s "so"', 'string:it\'s "so"'), (5, "number:5"), (2.5, "number:2.5"), (True, "boolean:true")],
)
def test_parameters_keep_their_kind(value: Value, seen: str) -> None:
    kind = "xmlns:e='http://exslt.org/common'"
    inner = f"""<r {kind}><xsl:value-of select="concat(e:object-type($p), ':', $p)"/></r>"""
    made = ran(sheet(inner, '<xsl:param name="p"/>'), params=(("p", value),))
    assert isinstance(made, dict)
    assert seen in str(made["$xml"])


def test_an_element_can_be_a_parameter() -> None:
    inner = '<r><xsl:value-of select="$p/b"/></r>'
    made = ran(sheet(inner, '<xsl:param name="p"/>'), params=(("p", element_value("<a><b>7</b></a>")),))
    assert made == element_value("<r>7</r>")


def test_a_sheet_draws_in_others_of_the_flow() -> None:
    outer = f'<xsl:stylesheet {HEAD}><xsl:import href="../common/echo.xsl"/></xsl:stylesheet>'
    made = transform({"sheets/main.xsl": outer, "common/echo.xsl": ECHO}, "sheets/main.xsl", "<a/>", ())
    assert made == element_value("<a/>")


def test_a_sheet_that_the_flow_does_not_have_is_missing() -> None:
    with pytest.raises(StyleSheetNotFound):
        transform({}, "main.xsl", "<a/>", ())


@pytest.mark.parametrize(
    "text",
    [
        "no xml at all",
        "<a/>",
        sheet('<xsl:call-template name="nobody"/>'),
        sheet('<xsl:value-of select="nobody()"/>'),
        sheet('<xsl:message terminate="yes">enough</xsl:message>'),
        f'<xsl:stylesheet {HEAD}><xsl:import href="absent.xsl"/></xsl:stylesheet>',
        '<!DOCTYPE x [<!ENTITY a "b">]>' + sheet("&a;"),
    ],
)
def test_a_sheet_that_cannot_be_used_fails_with_a_sentence(text: str) -> None:
    with pytest.raises(StyleSheetFailed) as failed:
        ran(text)
    assert str(failed.value)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_sheet_reads_no_file(tmp_path: Path, scheme: str) -> None:  # XML attacks
    secret = tmp_path / "secret.xml"
    secret.write_text("<secret>42</secret>")
    text = sheet(f"<r><xsl:copy-of select=\"document('{scheme}{secret}')\"/></r>")
    with pytest.raises(StyleSheetFailed):
        ran(text)


@pytest.mark.parametrize("word", ["import", "include"])
def test_a_sheet_draws_in_no_file(tmp_path: Path, word: str) -> None:  # XML attacks
    other = tmp_path / "other.xsl"
    other.write_text(ECHO)
    with pytest.raises(StyleSheetFailed, match="no such sheet"):
        ran(f'<xsl:stylesheet {HEAD}><xsl:{word} href="{other}"/></xsl:stylesheet>')


def test_a_sheet_writes_no_file(tmp_path: Path) -> None:  # XML attacks
    target = tmp_path / "written.xml"
    inner = f"""<exsl:document xmlns:exsl="http://exslt.org/common" href="{target}"><a/></exsl:document>"""
    text = sheet(inner).replace(
        "<xsl:stylesheet", '<xsl:stylesheet extension-element-prefixes="exsl" xmlns:exsl="http://exslt.org/common"'
    )
    with pytest.raises(StyleSheetFailed):
        ran(text)
    assert not target.exists()
