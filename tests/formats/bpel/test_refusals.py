"""What cannot be run is refused with its place, and all of it at once."""

from pathlib import Path

import pytest

from tests.formats.bpel.documents import BPEL, HEAD, RECEIVE, complaints, process, sequence

STEPS = [
    ("<emty/>", "<sequence> has no <emty> (did you mean `empty`?)"),
    ('<empty nam="x"/>', "<empty> has no attribute `nam` (did you mean `name`?)"),
    ('<empty suppressJoinFailure="true"/>', "`suppressJoinFailure` of <empty> is yes or no, not 'true'"),
    ("<empty>hello</empty>", "<empty> holds elements and no text; it has 'hello'"),
    ("<opaqueActivity/>", "<opaqueActivity> is for abstract processes"),
    ('<validate variables="##opaque"/>', "`variables` of <validate> is left open"),
    ("<throw/>", "<throw> needs the attribute `faultName`"),
    ('<throw faultName="z:no"/>', "no xmlns says what the prefix of 'z:no' means"),
    ("<wait><for>'PT1S'</for><until>'2030-01-01'</until></wait>", "only one of both makes sense"),
    ("<wait/>", "<wait> needs a <for> or an <until>, to say when"),
    (
        '<pick><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/></onMessage>'
        "<onAlarm><empty/></onAlarm></pick>",
        "<onAlarm> needs a <for> or an <until>, to say when",
    ),
    ("<assign/>", "an <assign> has at least one <copy>"),
    ('<assign><copy><to variable="number"/></copy></assign>', "a <copy> needs a <from>"),
    (
        '<assign><copy><from variable="order" property="o:number" part="order"/><to variable="paper"/></copy></assign>',
        "SA00032: <from> has part, property, variable, which do not go together",
    ),
    (
        '<assign><copy><from>1<literal>2</literal></from><to variable="number"/></copy></assign>',
        "SA00032: <from> has <literal>, an expression, which do not go together",
    ),
    (
        '<assign><copy><from>1</from><to partnerLink="shop" variable="number"/></copy></assign>',
        "SA00032: <to> has partnerLink, variable",
    ),
    (
        "<if><condition>bpel:doXslTransform('a', $paper)</condition><empty/></if>",
        "doXslTransform cannot stand in <condition>",
    ),
    ("<if><empty/></if>", "<if> needs a <condition>"),
    ("<while><condition>true()</condition><empty/><empty/></while>", "<while> holds one activity; here it has 2"),
    ("<scope/>", "<scope> holds one activity; here it has 0"),
    (
        '<while><condition expressionLanguage="urn:xquery">1</condition><empty/></while>',
        "SA00004: nobody here knows the language 'urn:xquery'",
    ),
    ("<if><condition>1<b xmlns='urn:b'/></condition><empty/></if>", "<condition> holds an expression and no elements"),
    ("<pick><onAlarm><for>'PT1S'</for><empty/></onAlarm></pick>", "a <pick> waits for at least one message"),
    (
        '<pick><onMessage partnerLink="buyer" operation="tell" variable="order"><empty/></onMessage>'
        "<onAlarm><for>'PT1S'</for><repeatEvery>'PT1S'</repeatEvery><empty/></onAlarm></pick>",
        "<onAlarm> has no <repeatEvery>",
    ),
    (
        '<receive partnerLink="buyr" operation="tell" variable="order"/>',
        "no partner link buyr is declared around here (did you mean `buyer`?)",
    ),
    (
        '<receive partnerLink="buyer" operation="tel" variable="order"/>',
        "has no operation tel (did you mean `tell`?)",
    ),
    ('<receive partnerLink="shop" operation="tell" variable="order"/>', "the partner link shop has no `myRole`"),
    ('<invoke partnerLink="buyer" operation="tell" inputVariable="order"/>', "has no `partnerRole`"),
    (
        '<receive partnerLink="buyer" operation="tell" variable="order"><correlations>'
        '<correlation set="numbers" initiate="maybe"/></correlations></receive>',
        "`initiate` of <correlation> is yes or join or no, not 'maybe'",
    ),
    (
        '<scope><variables><variable name="v" element="o:order"><from>bpel:doXslTransform("a", $paper)</from>'
        "</variable></variables><empty/></scope>",
        "doXslTransform cannot give a variable its first value",
    ),
    (
        '<scope><partnerLinks><partnerLink name="p" partnerLinkType="o:Byuing" myRole="shop"/></partnerLinks><empty/>'
        "</scope>",
        "SA00010: no WSDL that is imported defines the partner link type {urn:orders}Byuing",
    ),
    (
        '<scope><partnerLinks><partnerLink name="p" partnerLinkType="o:Buying" myRole="shap"/></partnerLinks><empty/>'
        "</scope>",
        "has no role shap; it has shop",
    ),
    (
        '<scope><eventHandlers><onEvent partnerLink="buyer" operation="tell" variable="v" messageType="o:orderMessage">'
        "<empty/></onEvent></eventHandlers><empty/></scope>",
        "an <onEvent> holds one <scope>",
    ),
    ("<extensionActivity/>", "an <extensionActivity> holds one element of another namespace; here it has 0"),
]


@pytest.mark.parametrize(("text", "told"), STEPS)
def test_a_step_that_cannot_be_run_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    found = complaints(tmp_path, sequence(f"\n\n{text}\n"))
    assert any(told in each for each in found), found
    line = sequence("\n\n<here/>").split("<here/>")[0].count("\n") + 1
    assert all(each.startswith(f"buying.bpel:{line}: ") for each in found), found


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    found = complaints(tmp_path, sequence("\n<throw/>", "\n<nothing/>", "\n<assign/>"))
    lines = [int(each.split(":")[1]) for each in found]
    assert len(found) == 3 and lines == sorted(lines) and len(set(lines)) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (sequence().replace("process/executable", "process/abstract"), "this process is abstract"),
        (
            sequence().replace(BPEL, "http://schemas.xmlsoap.org/ws/2003/03/business-process/"),
            "this is BPEL 1.1; WS-BPEL 2.0 is understood here",
        ),
        (sequence().replace(BPEL, "urn:mine"), "'urn:mine' is not the namespace of BPEL processes"),
        ("<definitions/>", "this is no BPEL process: its first element is <definitions>"),
        ("<process", "this is not XML"),
        ('<!DOCTYPE process [<!ENTITY a "b">]>' + sequence(), "a document type is not taken"),
        (process(HEAD), "<process> holds one activity; here it has 0"),
        (process(f"{HEAD}{RECEIVE}", 'queryLanguage="urn:q"'), "SA00004: nobody here knows the language 'urn:q'"),
        (
            sequence(before='<extensions><extension namespace="urn:z" mustUnderstand="yes"/></extensions>'),
            "SA00009: 'urn:z' must be understood",
        ),
    ],
)
def test_a_document_that_is_no_process_to_run_is_refused(tmp_path: Path, text: str, told: str) -> None:  # FM-1
    found = complaints(tmp_path, text)
    assert len(found) == 1 and told in found[0]
